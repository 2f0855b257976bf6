import math
import pickle

import numpy as np
import pandas as pd
import pytest

from exactshap import decompose_hsic, decompose_mmd
from exactshap.decompose import PairwiseSettings
from exactshap.decompose.pairwise._estimate import rows_of_blocks
from exactshap.errors import BudgetError, ExplanationWarning, InputError, InputTypeError
from exactshap.games import OracleGame, ProductGame
from exactshap.kernels import Matern, RationalQuadratic
from exactshap.solvers import solve
from pairwise_oracle import KERNELS, matrices, mmd, radial_values, values
from tolerances import conditioned, exact, roundings


def samples(n=23, m=31, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, d)) + 0.5 * np.eye(d)[0]


def close(actual, expected, n, d):
    assert np.shape(actual) == np.shape(expected)
    assert np.max(np.abs(np.subtract(actual, expected)), initial=0.0) <= exact(4.0, n * n, d)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("index", ["shapley", "banzhaf", "leave-one-out", "moebius"])
@pytest.mark.parametrize("kernels", ["rbf", "laplacian", "cauchy", "mixed"])
def test_shares_are_those_of_all_coalitions(kernels, index, estimator):
    X, Z = samples()
    X[:, 4], Z[:, 4] = np.arange(len(X)) % 3, np.arange(len(Z)) % 2
    kernels = [*KERNELS, "categorical"] if kernels == "mixed" else [kernels] * 4 + ["categorical"]
    sigmas = [0.7, 1.1, 2.0, 1.5, 1.0]
    shares = decompose_mmd(X, Z, kernel=kernels, bandwidth=sigmas, index=index, estimator=estimator)
    players = matrices(np.concatenate([X, Z]), kernels, sigmas)
    close(shares.values, values(lambda K: mmd(K * np.ones((54, 54)), 23, estimator), players, index), 54, 5)
    close(shares.total, mmd(players.prod(axis=0), 23, estimator), 54, 5)


RADIAL = {"matern 1/2": Matern(nu=0.5), "matern 5/2": Matern(nu=2.5), "quadratic": RationalQuadratic(alpha=0.7)}


@pytest.mark.parametrize(
    ("name", "estimator", "index", "order"),
    [
        ("matern 1/2", "unbiased", "shapley", 1),
        ("matern 1/2", "biased", "k-sii", 2),
        ("matern 5/2", "biased", "shapley", 1),
        ("quadratic", "biased", "banzhaf", 1),
        ("quadratic", "unbiased", "k-sii", 2),
    ],
)
def test_radial_kernels_are_functions_of_one_distance(name, estimator, index, order):
    kernel, (X, Z), sigmas = RADIAL[name], samples(d=4), np.array([0.7, 1.1, 2.0, 1.5])
    found = decompose_mmd(X, Z, kernel=kernel, bandwidth=list(sigmas), index=index, order=order, estimator=estimator)
    expected = radial_values(lambda K: mmd(K, 23, estimator), kernel.profile, np.concatenate([X, Z]), sigmas, index, order)
    close(found.values if order == 1 else found.set_values, expected, 54, 4)
    assert 0.0 < found.details["error_bound"] < conditioned(1e4)
    assert found.details["kernel"]["x0"] == str(kernel)


def test_a_radial_kernel_beside_categories_permutations_and_tasks():
    X, Z = samples(d=3)
    X[:, 2], Z[:, 2] = np.arange(len(X)) % 3, np.arange(len(Z)) % 2
    text = [pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "c": rows[:, 2].astype(int).astype(str)}) for rows in (X, Z)]
    both, kernel = np.concatenate([X, Z]), Matern(nu=1.5)
    same = (both[:, None, 2] == both[None, :, 2]) * 1.0

    def game(masks):
        squares = ((both[:, None] - both[None]) / 1.2) ** 2
        factor = [kernel.profile(squares[:, :, :2][:, :, mask[:2]].sum(axis=2)) * (same if mask[2] else 1.0) for mask in masks]
        return np.array([mmd(K, 23) for K in factor])

    found = decompose_mmd(*text, kernel=kernel, bandwidth=1.2, n_permutations=19)
    close(found.values, solve(OracleGame(game, 3), method="enumeration").values, 54, 3)
    assert found.p_value is not None
    by_tasks = decompose_mmd(*text, kernel=kernel, bandwidth=1.2, settings=PairwiseSettings(map=map))
    close(by_tasks.values, found.values, 54, 3)


@pytest.mark.parametrize(("n", "m", "d"), [(70, 200, 3), (300, 130, 2), (2, 2, 1), (64, 64, 3), (257, 3, 1)])
def test_blocks_and_padding_and_few_columns_do_not_change_anything(n, m, d):
    X, Z = samples(n, m, d)
    shares = decompose_mmd(X, Z, bandwidth=1.0)
    players = matrices(np.concatenate([X, Z]), ["rbf"] * d, np.ones(d))
    close(shares.values, values(lambda K: mmd(K * np.ones((n + m, n + m)), n), players), n + m, d)


@pytest.mark.parametrize("bandwidth", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("d", [7, 40, 151])
def test_many_columns_agree_with_the_product_game(d, bandwidth):
    X, Z = samples(6, 7, d)
    shares = decompose_mmd(X, Z, bandwidth=bandwidth, kernel="laplacian")
    players = matrices(np.concatenate([X, Z]), ["laplacian"] * d, [bandwidth] * d)
    weights = np.full((13, 13), -1 / 42)
    weights[:6, :6], weights[6:, 6:] = 1 / 30, 1 / 42
    np.fill_diagonal(weights, 0.0)
    game = ProductGame(weights.ravel(), players.reshape(d, -1).T)
    close(shares.values, solve(game, all_nodes=True).values, 13, d)


@pytest.mark.parametrize("index", ["sii", "k-sii", "stii", "fsii", "banzhaf-interaction"])
@pytest.mark.parametrize("order", [2, 3])
def test_interactions_are_those_of_all_coalitions(index, order):
    X, Z = samples(d=4)
    shares = decompose_mmd(X, Z, bandwidth=1.3, index=index, order=order)
    players = matrices(np.concatenate([X, Z]), ["rbf"] * 4, np.full(4, 1.3))
    expected = values(lambda K: mmd(K * np.ones((54, 54)), 23), players, index, order)
    close(shares.set_values, expected, 54, 16)
    matrix = shares.interactions
    assert np.array_equal(matrix, matrix.T)
    assert matrix[1, 3] == shares.set_values[shares.sets.index((1, 3))]


def test_groups_are_players():
    X, Z = samples()
    shares = decompose_mmd(X, Z, bandwidth=1.0, groups={"ends": [0, 4]})
    K = matrices(np.concatenate([X, Z]), ["rbf"] * 5, np.ones(5))
    players = np.stack([K[0] * K[4], K[1], K[2], K[3]])
    assert shares.feature_names == ("ends", "x1", "x2", "x3")
    close(shares.values, values(lambda K: mmd(K * np.ones((54, 54)), 23), players), 54, 5)


def test_every_permutation_is_a_decomposition_of_relabelled_rows():
    X, Z = samples()
    shares = decompose_mmd(X, Z, bandwidth=1.0, n_permutations=7, random_state=5)
    pooled = np.concatenate([X, Z])
    labels = np.random.default_rng(5).permuted(np.tile(np.arange(54) < 23, (7, 1)).astype(float), axis=1) == 1
    for b, label in enumerate(labels):
        other = decompose_mmd(pooled[label], pooled[~label], bandwidth=1.0)
        close(shares.null_values[b], other.values, 54, 5)
        close(shares.null_totals[b], other.total, 54, 5)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_standard_errors_are_the_jackknife(estimator):
    X, Z = samples(9, 12, 3)
    settings = {"bandwidth": 1.0, "estimator": estimator}
    shares = decompose_mmd(X, Z, **settings)
    variance = 0.0
    for sample, leave in ((X, lambda i: (np.delete(X, i, 0), Z)), (Z, lambda i: (X, np.delete(Z, i, 0)))):
        n = len(sample)
        left = [decompose_mmd(*leave(i), **settings) for i in range(n)]
        left = np.array([[*one.values, one.total] for one in left])
        variance = variance + (n - 1) / n * ((left - left.mean(axis=0)) ** 2).sum(axis=0)
    errors = [*shares.std_error, shares.total_std_error]
    # Differences of values 1/n apart: 1e-14 / 1e-5
    np.testing.assert_allclose(errors, np.sqrt(variance), rtol=conditioned(1e6))


@pytest.mark.parametrize(
    ("decompose", "sizes", "n_pairs"), [(decompose_mmd, (400, 300), 700), (decompose_hsic, (600, 600), 600)]
)
def test_every_number_of_threads_gives_the_same_bits_and_progress_counts_the_pairs(decompose, sizes, n_pairs):
    pair, seen = samples(*sizes, 4), []
    one, two = (decompose(*pair, n_permutations=5, n_jobs=n) for n in (1, 2))
    for name in ("values", "null_values", "std_error"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    decompose(*pair, settings=PairwiseSettings(progress=lambda done, total: seen.append((done, total))))
    n_all = n_pairs * (n_pairs + 1) // 2
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (n_all, n_all)


def test_far_points_underflow_to_nothing():
    shares = decompose_mmd([[0.0, 0.0]] * 2, [[1e200, 0.0]] * 2, bandwidth=1.0)
    assert shares.values.tolist() == [2.0, 0.0]


def test_columns_far_from_zero_lose_no_digits():
    X, Z = samples(d=2)
    near = decompose_mmd(np.round(X * 64) / 64, np.round(Z * 64) / 64, bandwidth=1.0)
    far = decompose_mmd(np.round(X * 64) / 64 + 2.0**40, np.round(Z * 64) / 64 + 2.0**40, bandwidth=1.0)
    assert np.array_equal(near.values, far.values)


def test_a_constant_column_has_no_share():
    X, Z = samples()
    X[:, 2] = Z[:, 2] = 4.0
    for bandwidth in ("median", "column-median"):
        shares = decompose_mmd(X, Z, bandwidth=bandwidth, n_permutations=9)
        assert shares.values[2] == 0.0
        assert shares.p_values[2] == 1.0
        assert not np.signbit(shares.std_error[2])
    nothing = decompose_mmd(np.ones((5, 2)), np.ones((4, 2)), n_permutations=9)
    assert nothing.values.tolist() == [0.0, 0.0]
    assert nothing.total == 0.0
    assert nothing.p_value == 1.0
    assert np.isnan(nothing.fractions).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_mixed_frames_come_straight_in(library):
    frames = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    first = {"age": rng.normal(size=40), "city": rng.choice(["a", "b"], 40), "paid": rng.random(40) < 0.5}
    second = {"age": rng.normal(size=30), "city": rng.choice(["b", "c"], 30), "paid": rng.random(30) < 0.5}
    shares = decompose_mmd(frames.DataFrame(first), frames.DataFrame(second), bandwidth=2.0)
    code = {"a": 0, "b": 1, "c": 2}
    columns = [[*first[c], *second[c]] for c in first]
    columns[1] = [code[value] for value in columns[1]]
    players = matrices(np.array(columns, float).T, ["rbf", "categorical", "categorical"], [2.0, 1.0, 1.0])
    close(shares.values, values(lambda K: mmd(K * np.ones((70, 70)), 40), players), 70, 3)
    assert shares.details["kernel"] == {"age": "rbf", "city": "categorical", "paid": "categorical"}
    assert type(shares.to_frame()).__module__.startswith(library)


def test_settings_by_column_name():
    X, Z = samples()
    one = decompose_mmd(X, Z, kernel={"x1": "cauchy", 3: "laplacian"}, bandwidth={"x0": 0.5, "x4": 2.0})
    median = one.details["bandwidth"]["x1"]
    kernels = ["rbf", "cauchy", "rbf", "laplacian", "rbf"]
    other = decompose_mmd(X, Z, kernel=kernels, bandwidth=[0.5, median, median, one.details["bandwidth"]["x3"], 2.0])
    assert np.array_equal(one.values, other.values)
    assert one.details["kernel"] == dict(zip(one.feature_names, kernels, strict=True))


def test_the_median_heuristic_is_the_median_distance():
    X, Z = samples()
    pooled = np.concatenate([X, Z])
    distances = [np.linalg.norm(pooled[i] - pooled[j]) for i in range(54) for j in range(i)]
    shares = decompose_mmd(X, Z)
    np.testing.assert_allclose(list(shares.details["bandwidth"].values()), np.median(distances), rtol=roundings(50))
    own = decompose_mmd(X * [1, 10, 100, 1000, 1], Z * [1, 10, 100, 1000, 1], bandwidth="column-median")
    unscaled = decompose_mmd(X, Z, bandwidth="column-median")
    close(own.values, unscaled.values, 54, 5)


def test_equal_rows_do_not_make_the_median_vanish():
    """The median of the distances that are not 0, where more than half are; 1 where all are."""
    X = np.zeros((30, 1))
    X[:3, 0] = 1.0, 3.0, 7.0
    pairs = [abs(a - b) for i, a in enumerate(X[:, 0]) for b in X[:i, 0] if a != b]
    assert decompose_mmd(X[::2], X[1::2]).details["bandwidth"]["x0"] == np.median(pairs)
    assert decompose_mmd(np.ones((5, 1)), np.ones((4, 1))).details["bandwidth"]["x0"] == 1.0


def test_a_large_sample_takes_its_median_from_a_seeded_part():
    X, Z = samples(1500, 900, 2)
    one, again, other = (decompose_mmd(X, Z, random_state=seed).details["bandwidth"]["x0"] for seed in (1, 1, 2))
    assert one == again != other
    assert abs(one - other) < 0.1


def test_blocks_average_independent_parts():
    rng = np.random.default_rng(0)
    z_scores = []
    for seed in range(20):
        X, Z = rng.normal(size=(600, 2)), rng.normal([0.5, 0.0], size=(700, 2))
        blocks = decompose_mmd(
            X, Z, bandwidth=1.0, random_state=seed, n_permutations=19, settings=PairwiseSettings(method="blocks", block_size=40)
        )
        assert blocks.details["n_blocks"] == 16
        truth = _population_mmd([0.5, 0.0])
        z_scores.append((blocks.total - truth) / blocks.total_std_error)
        assert blocks.p_value == 0.05
    assert abs(np.mean(z_scores)) < 4 / np.sqrt(20)
    assert 0.5 < np.std(z_scores) < 1.7


def test_every_block_counts_in_the_mean():
    X, Z = np.random.default_rng(0).normal(size=(50, 2)), np.random.default_rng(1).normal(0.5, 1.0, (41, 2))
    cut = decompose_mmd(X, Z, bandwidth=1.0, random_state=3, settings=PairwiseSettings(method="blocks", block_size=10))
    generator = np.random.default_rng(3)
    pairs = zip(rows_of_blocks(50, 4, generator), rows_of_blocks(41, 4, generator), strict=True)
    parts = [decompose_mmd(X[one], Z[two], bandwidth=1.0).values for one, two in pairs]
    np.testing.assert_allclose(cut.values, np.mean(parts, axis=0), rtol=roundings(100))


def _population_mmd(shift):
    """Two unit normals, kernel exp(-|u|^2 / 2): E k = prod 3^-1/2 exp(-shift^2 / 6)."""
    same = 3.0 ** (-len(shift) / 2)
    return 2 * same - 2 * same * math.exp(-np.square(shift).sum() / 6)


def test_blocks_are_taken_beyond_fifty_thousand_rows_and_seeded():
    X, Z = samples(25_001, 25_001, 2)
    small = PairwiseSettings(block_size=250)
    one, again = (decompose_mmd(X, Z, bandwidth=1.0, settings=small) for _ in range(2))
    assert one.details["method"] == "blocks"
    assert one.values.tolist() == again.values.tolist()
    with pytest.raises(InputError, match="Blocks of rows need estimator='unbiased'"):
        decompose_mmd(X, Z, estimator="biased")
    few = decompose_mmd(X[:90], Z[:80], estimator="biased", settings=PairwiseSettings(method="exact"))
    assert few.details["n_blocks"] == 1


def test_what_is_printed_and_pickled():
    shares = decompose_mmd(*samples(), n_permutations=19)
    assert "MMD2 = " in repr(shares)
    assert "p = " in repr(shares)
    copy = pickle.loads(pickle.dumps(shares))
    assert np.array_equal(copy.null_values, shares.null_values)
    assert not copy.values.flags.writeable


def frame(**columns):
    return pd.DataFrame(columns)


GOOD = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]]
AB, AC, BA = (frame(**{name: [1.0, 2.0] for name in names}) for names in ("ab", "ac", "ba"))
DATES = frame(age=np.arange(4), when=pd.date_range("2026-01-01", periods=4))


@pytest.mark.parametrize(
    ("X", "Z", "settings", "text"),
    [
        ([[0.0, 1.0]], GOOD, {}, "`X` has 1 row. A sample needs at least 2"),
        (GOOD, [[0.0, 1.0]], {}, "`Z` has 1 row"),
        (GOOD, [[0.0]] * 3, {}, "`X` and `Z` must have the same columns. Got 2 and 1"),
        (GOOD, [[0.0, np.inf]] * 3, {}, "Input Z contains infinity. First in column 1, row 0"),
        (GOOD, GOOD, {"bandwidth": 0}, "'bandwidth' parameter must be a finite float > 0. Got 0 for column 'x0'"),
        (GOOD, GOOD, {"bandwidth": [1.0, -2.0]}, "Got -2.0 for column 'x1'"),
        (GOOD, GOOD, {"bandwidth": np.nan}, "must be a finite float > 0. Got nan"),
        (GOOD, GOOD, {"bandwidth": "medium"}, "Unknown `bandwidth` 'medium'. Did you mean 'median'?"),
        (GOOD, GOOD, {"bandwidth": [1.0]}, "must hold one entry for each of the 2 columns. Got 1"),
        (GOOD, GOOD, {"kernel": "rfb"}, "Unknown kernel 'rfb' in `kernel`. Did you mean 'rbf'?"),
        (GOOD, GOOD, {"kernel": {"age": "rbf"}}, "`kernel` names an unknown column 'age'"),
        (GOOD, GOOD, {"estimator": "unbaised"}, "Unknown `estimator` 'unbaised'. Did you mean 'unbiased'?"),
        (GOOD, GOOD, {"n_permutations": -1}, "'n_permutations' parameter must be an int >= 0"),
        (GOOD, GOOD, {"settings": PairwiseSettings(correction="bonf")}, "Unknown `correction` 'bonf'"),
        (GOOD, GOOD, {"settings": PairwiseSettings(level=95)}, r"'level' parameter must be a float in \(0, 1\)"),
        (GOOD, GOOD, {"settings": PairwiseSettings(method="block")}, "Unknown `method` 'block'. Did you mean 'blocks'?"),
        (GOOD, GOOD, {"settings": PairwiseSettings(method="blocks")}, "needs at least two blocks"),
        (GOOD, GOOD, {"order": 3}, "'order' parameter must be at most the number of columns, 2. Got 3"),
        (GOOD, GOOD, {"order": 0}, "'order' parameter must be an int >= 1"),
        (GOOD, GOOD, {"index": "shaply"}, "Did you mean 'shapley'?"),
        (GOOD, GOOD, {"groups": {"g": ["age"]}}, "Group 'g' names an unknown column 'age'"),
        (GOOD, GOOD, {"kernel": Matern(2.0)}, r"Bandwidths of `kernel` are those of `bandwidth`. Got Matern\(bandwidth=2.0"),
        (GOOD, GOOD, {"settings": {"method": "exact"}}, "`settings` must be a PairwiseSettings. Got dict"),
        (GOOD, GOOD, {"bandwidth": None}, r"must be a float > 0, 'median' or 'column-median'\. Got None"),
        (AB, AC, {}, r"Only in `X`: \['b'\]; only in `Z`: \['c'\]"),
        (AB, BA, {}, "must have their columns in the same order"),
        (DATES, DATES, {}, "column 'when' holds dates or times, which has no distance. Pass a number"),
        (*samples(3, 3, 100), {"order": 3}, "order=3 over 100 columns has too many sets"),
    ],
)
def test_bad_input_is_refused(X, Z, settings, text):
    with pytest.raises((InputError, InputTypeError, BudgetError), match=text):
        decompose_mmd(X, Z, **settings)


def test_an_identifier_that_hides_all_other_columns_is_named(recwarn):
    X, Z = (pd.DataFrame(part, columns=["a", "b"]) for part in samples(40, 40, 2))
    names = np.array([f"customer {i}" for i in range(80)])
    with pytest.warns(
        ExplanationWarning, match=r"Few rows share a category of 'name', which hides .* 80 categories in 80 rows\. Leave"
    ):
        found = decompose_mmd(X.assign(name=names[:40]), (Z + 9.0).assign(name=names[40:]), bandwidth=1.0)
    assert abs(found.total) <= roundings(80)
    with pytest.warns(ExplanationWarning, match="40 categories in 80 rows"):  # the same in both samples
        decompose_mmd(X.assign(name=names[:40]), Z.assign(name=names[:40]), bandwidth=1.0)
    recwarn.clear()
    decompose_mmd(X.assign(town=names[:40] > "customer 2"), Z.assign(town=names[:40] > "customer 3"), bandwidth=1.0)
    assert not recwarn


def test_columns_that_a_common_bandwidth_cannot_see_are_named(recwarn):
    X, Z = samples(40, 40, 3)
    unscaled = np.array([1.0, 1e4, 1.0])
    with pytest.warns(
        ExplanationWarning, match=r"2 of 3 columns vary too little for the common bandwidth.*bandwidth='column-median'"
    ):
        decompose_mmd(X * unscaled, Z * unscaled)
    recwarn.clear()
    constant = np.array([1.0, 1.0, 0.0])
    for settings in ({"bandwidth": "column-median"}, {"bandwidth": 1.0}, {"kernel": "categorical"}):
        decompose_mmd(X * unscaled, Z * unscaled, **settings)
    decompose_mmd(X, Z)
    decompose_mmd(X * constant, Z * constant)
    assert not [w for w in recwarn if issubclass(w.category, ExplanationWarning)]


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
@pytest.mark.parametrize("bandwidth", [0.7, "median", "column-median"])
def test_a_missing_cell_is_a_level_of_its_own(kernel, bandwidth):
    """Kernel 1 for two missing cells, 0 for a missing and a known one, whatever the kernel of the known ones."""
    X, Z = samples(d=3)
    X[::3, 0], Z[::4, 0], X[1, 1] = np.nan, np.nan, np.nan
    shares = decompose_mmd(X, Z, kernel=kernel, bandwidth=bandwidth)
    pooled, sigmas = np.concatenate([X, Z]), [shares.details["bandwidth"][name] for name in shares.feature_names]
    gaps = np.isnan(pooled)
    players = matrices(np.where(gaps, 0.0, pooled), [kernel] * 3, sigmas)
    players = np.where(gaps.T[:, :, None] | gaps.T[:, None, :], gaps.T[:, :, None] & gaps.T[:, None, :], players)
    close(shares.values, values(lambda K: mmd(K * np.ones((54, 54)), 23), players), 54, 3)
    assert shares.details["kernel"]["x0 is missing"] == "categorical"


def test_missing_categories_are_one_category():
    cells = ["u", None, "v", "u", None, "v", None, "u"]
    words = ["missing" if cell is None else cell for cell in cells]
    gaps, filled = (decompose_mmd(frame(a=one[:4]), frame(a=one[4:])).values for one in (cells, words))
    assert np.array_equal(gaps, filled)
    pandas = pytest.importorskip("pandas")
    truth = pandas.Series([True, None, False, True], dtype="boolean")  # its gap has no truth value
    assert decompose_mmd(frame(a=truth), frame(a=truth)).details["kernel"] == {"a": "categorical"}

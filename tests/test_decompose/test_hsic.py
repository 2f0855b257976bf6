import numpy as np
import pytest

from exactshap import decompose_hsic, solve
from exactshap.decompose import PairwiseSettings
from exactshap.decompose.pairwise._estimate import rows_of_blocks
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.games import OracleGame
from exactshap.kernels import Matern, RationalQuadratic
from pairwise_oracle import hsic, joint_values, matrices, radial_values, values
from tolerances import conditioned, exact, roundings


def variables(n=41, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + X[:, 1] * X[:, -1] + 0.1 * rng.normal(size=n)


def close(actual, expected, n, d):
    """Weights of all pairs add up to at most 4 n^2 / (n - 1)^2 < 5, or n^2 / (n (n - 3)) times that."""
    assert np.shape(actual) == np.shape(expected)
    assert np.max(np.abs(np.subtract(actual, expected)), initial=0.0) <= exact(8.0, n * n, d)


def full(K, n):
    return K * np.ones((n, n))


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("index", ["shapley", "banzhaf", "leave-one-out"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
def test_shares_are_those_of_all_coalitions(kernel, index, estimator):
    X, y = variables()
    shares = decompose_hsic(X, y, kernel_x=kernel, bandwidth_x=1.2, bandwidth_y=0.8, index=index, estimator=estimator)
    players = matrices(X, [kernel] * 4, [1.2] * 4)
    L = matrices(y[:, None], ["rbf"], [0.8])[0]
    close(shares.values, values(lambda K: hsic(full(K, 41), L, estimator), players, index), 41, 4)
    close(shares.total, hsic(players.prod(axis=0), L, estimator), 41, 4)


@pytest.mark.parametrize(
    ("kernel_x", "kernel_y", "estimator"),
    [
        (Matern(nu=0.5), Matern(nu=2.5), "biased"),
        (Matern(nu=0.5), "rbf", "unbiased"),
        (RationalQuadratic(alpha=2.0), "rbf", "biased"),
        (RationalQuadratic(alpha=2.0), Matern(nu=2.5), "unbiased"),
    ],
    ids=str,
)
def test_radial_kernels_are_functions_of_one_distance(kernel_x, kernel_y, estimator):
    X, y = variables()
    settings = {"kernel_x": kernel_x, "kernel_y": kernel_y, "bandwidth_x": 1.2, "bandwidth_y": 0.8, "estimator": estimator}
    found = decompose_hsic(X, y, **settings, n_permutations=19)
    squares = ((y[:, None] - y) / 0.8) ** 2
    L = np.exp(-squares / 2) if kernel_y == "rbf" else kernel_y.profile(squares)
    close(found.values, radial_values(lambda K: hsic(K, L, estimator), kernel_x.profile, X, np.full(4, 1.2)), 41, 4)
    plain = decompose_hsic(X, y, **settings)
    close(plain.values, found.values, 41, 4)
    close(plain.std_error, found.std_error, 41, 4)
    assert 0.0 < found.details["error_bound"] < conditioned(1e4)
    assert found.null_totals.shape == (19,)


def test_permutations_of_a_radial_target_are_those_of_its_rows():
    X, y = variables()
    one = decompose_hsic(X, y, kernel_y=Matern(nu=0.5), bandwidth_x=1.2, bandwidth_y=0.8, n_permutations=19, random_state=3)
    other = decompose_hsic(X, y, kernel_y="laplacian", bandwidth_x=1.2, bandwidth_y=0.8, n_permutations=19, random_state=3)
    close(one.values, other.values, 41, 4)  # exp(-r) is one kernel by two names, in one column
    close(one.null_totals, other.null_totals, 41, 4)


@pytest.mark.parametrize("n", [5, 64, 130, 300])
def test_blocks_and_padding_do_not_change_anything(n):
    X, y = variables(n, 3)
    shares = decompose_hsic(X, y, bandwidth_x=1.0, bandwidth_y=1.0)
    players, L = matrices(X, ["rbf"] * 3, np.ones(3)), matrices(y[:, None], ["rbf"], [1.0])[0]
    close(shares.values, values(lambda K: hsic(full(K, n), L), players), n, 3)


@pytest.mark.parametrize(
    ("kernel_x", "kernel_y", "estimator"),
    [
        (Matern(nu=0.5), "rbf", "biased"),
        ("rbf", RationalQuadratic(alpha=2.0), "unbiased"),
        (Matern(nu=2.5), Matern(nu=1.5), "biased"),
    ],
    ids=str,
)
def test_the_joint_game_of_radial_kernels_is_that_of_all_coalitions(kernel_x, kernel_y, estimator):
    X, y = variables(7, 3)
    Y = np.column_stack([y, X[:, 2] ** 2])
    settings = {"kernel_x": kernel_x, "kernel_y": kernel_y, "bandwidth_x": 1.2, "bandwidth_y": 0.8, "estimator": estimator}
    found = decompose_hsic(X, Y, joint=True, **settings, n_permutations=2, random_state=1)
    squares = [((columns[:, None] - columns) / width) ** 2 for columns, width in ((X, 1.2), (Y, 0.8))]

    def side(kernel, squared, mask):
        total = squared[:, :, mask].sum(axis=2)
        return np.exp(-total / 2) if kernel == "rbf" else kernel.profile(total)

    def value(masks, order=slice(None)):
        pairs = ((side(kernel_x, squares[0], mask[:3]), side(kernel_y, squares[1], mask[3:])) for mask in masks)
        return np.array([hsic(K, L[order][:, order], estimator) for K, L in pairs])

    close(found.values, solve(OracleGame(value, 5), method="enumeration").values, 7, 5)
    close(found.total, value(np.ones((1, 5), bool))[0], 7, 5)
    assert 0.0 < found.details["error_bound"] < conditioned(1e4)
    orders = np.random.default_rng(1).permuted(np.tile(np.arange(7), (2, 1)), axis=1)
    for values_of_order, order in zip(found.null_values, orders, strict=True):
        permuted = solve(OracleGame(lambda masks, order=order: value(masks, order), 5), method="enumeration")
        close(values_of_order, permuted.values, 7, 5)


def test_several_targets_and_classes():
    X, y = variables()
    Y = np.column_stack([y, np.arange(41) % 3])
    shares = decompose_hsic(X, Y, kernel_y=["rbf", "categorical"], bandwidth_x=1.0, bandwidth_y=0.5)
    L = matrices(Y, ["rbf", "categorical"], [0.5, 1.0]).prod(axis=0)
    close(shares.values, values(lambda K: hsic(full(K, 41), L), matrices(X, ["rbf"] * 4, np.ones(4))), 41, 6)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
def test_the_joint_game_is_that_of_all_coalitions(index, estimator):
    X, y = variables(23, 3)
    Y = np.column_stack([y, X[:, 2] ** 2])
    shares = decompose_hsic(X, Y, joint=True, index=index, estimator=estimator, bandwidth_x=1.0, bandwidth_y=0.7)
    first, second = matrices(X, ["rbf"] * 3, np.ones(3)), matrices(Y, ["rbf"] * 2, [0.7, 0.7])
    expected = joint_values(lambda K, L: hsic(full(K, 23), full(L, 23), estimator), first, second, index)
    close(shares.values, expected, 23, 5)
    assert shares.feature_names == ("x0", "x1", "x2", "y0", "y1")
    assert shares.std_error is None


@pytest.mark.parametrize("bandwidth", [0.3, 50.0])
def test_the_joint_game_with_fewer_nodes(bandwidth):
    """Wide kernels need fewer nodes than an exact rule: the a-priori bound decides, and nothing may be lost."""
    X = variables(9, 8)[0]
    Y = variables(9, 5, seed=1)[0]
    shares = decompose_hsic(X, Y, joint=True, bandwidth_x=bandwidth, bandwidth_y=bandwidth)
    first, second = matrices(X, ["rbf"] * 8, [bandwidth] * 8), matrices(Y, ["rbf"] * 5, [bandwidth] * 5)
    expected = joint_values(lambda K, L: hsic(full(K, 9), full(L, 9)), first, second)
    close(shares.values, expected, 9, 13)
    assert (shares.details["error_bound"] > 0) == (bandwidth == 50.0)


def test_joint_blocks_and_permutations():
    X, y = variables(150, 3)
    shares = decompose_hsic(X, y, joint=True, bandwidth_x=1.0, bandwidth_y=0.7, n_permutations=3, random_state=1)
    orders = np.random.default_rng(1).permuted(np.tile(np.arange(150), (3, 1)), axis=1)
    for b, order in enumerate(orders):
        other = decompose_hsic(X, y[order], joint=True, bandwidth_x=1.0, bandwidth_y=0.7)
        close(shares.null_values[b], other.values, 150, 4)


def test_joint_names_never_clash():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(variables()[0], columns=list("abcd"))
    shares = decompose_hsic(frame, frame[["a"]], joint=True)
    assert shares.feature_names == ("X: a", "b", "c", "d", "Y: a")


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_interactions_are_those_of_all_coalitions(estimator):
    X, y = variables()
    shares = decompose_hsic(X, y, order=2, index="k-sii", bandwidth_x=1.0, bandwidth_y=1.0, estimator=estimator)
    L = matrices(y[:, None], ["rbf"], [1.0])[0]
    expected = values(lambda K: hsic(full(K, 41), L, estimator), matrices(X, ["rbf"] * 4, np.ones(4)), "k-sii", 2)
    close(shares.set_values, expected, 41, 16)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_every_permutation_is_a_decomposition_of_reordered_rows(estimator):
    X, y = variables(70)
    settings = {"bandwidth_x": 1.0, "bandwidth_y": 1.0, "estimator": estimator}
    shares = decompose_hsic(X, y, n_permutations=40, random_state=3, **settings)
    orders = np.random.default_rng(3).permuted(np.tile(np.arange(70), (40, 1)), axis=1)
    for b in (0, 1, 33, 39):
        other = decompose_hsic(X, y[orders[b]], **settings)
        close(shares.null_values[b], other.values, 70, 5)
        close(shares.null_totals[b], other.total, 70, 5)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_standard_errors_are_the_jackknife(estimator):
    X, y = variables(12, 3)
    settings = {"bandwidth_x": 1.0, "bandwidth_y": 1.0, "estimator": estimator}
    shares = decompose_hsic(X, y, **settings)
    left = [decompose_hsic(np.delete(X, i, 0), np.delete(y, i), **settings) for i in range(12)]
    left = np.array([[*one.values, one.total] for one in left])
    expected = np.sqrt(11 / 12 * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    np.testing.assert_allclose([*shares.std_error, shares.total_std_error], expected, rtol=conditioned(1e6))


def test_a_constant_column_has_no_share_and_a_constant_target_no_dependence():
    X, y = variables()
    X[:, 1] = 3.0
    assert decompose_hsic(X, y).values[1] == 0.0
    nothing = decompose_hsic(X, np.zeros(41), n_permutations=9)
    assert np.abs(nothing.values).max() <= nothing.tolerance
    assert nothing.p_value == 1.0


def test_series_and_frames_come_straight_in():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = variables()
    label = np.where(y > 0, "yes", "no")
    for library in (pandas, polars):
        frame = library.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
        shares = decompose_hsic(frame, library.Series(label), bandwidth_x=1.0)
        assert shares.feature_names == ("a", "b", "c", "d")
        L = (label[:, None] == label[None, :]) * 1.0
        close(shares.values, values(lambda K, L=L: hsic(full(K, 41), L), matrices(X, ["rbf"] * 4, np.ones(4))), 41, 5)


def test_blocks_average_independent_parts():
    scores = []
    for seed in range(12):
        X, y = variables(800, 2, seed)
        settings = {"bandwidth_x": 1.0, "bandwidth_y": 1.0, "estimator": "unbiased"}
        blocks = decompose_hsic(X, y, random_state=seed, **settings, settings=PairwiseSettings(method="blocks", block_size=40))
        whole = decompose_hsic(X, y, **settings)
        scores.append((blocks.values - whole.values) / blocks.std_error)
    assert np.abs(np.mean(scores, axis=0)).max() < 4 / np.sqrt(12)


@pytest.mark.parametrize("joint", [False, True])
def test_every_block_counts_in_the_mean(joint):
    X, y = variables(50, 2, 0)
    settings = {"bandwidth": 1.0, "estimator": "unbiased", "joint": joint}
    cut = decompose_hsic(X, y, random_state=3, **settings, settings=PairwiseSettings(method="blocks", block_size=9))
    rows = rows_of_blocks(50, 5, np.random.default_rng(3))
    assert sorted(np.concatenate(rows)) == [*range(50)]
    parts = [decompose_hsic(X[some], y[some], **settings).values for some in rows]
    np.testing.assert_allclose(cut.values, np.mean(parts, axis=0), rtol=roundings(100))
    np.testing.assert_allclose(cut.std_error, np.std(parts, axis=0, ddof=1) / np.sqrt(5), rtol=roundings(1000))


X3, Y3 = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("X", "Y", "settings", "text"),
    [
        ([[0.0, 1.0]], [0.0], {}, r"`X` has 1 row\(s\). HSIC needs at least 2"),
        (X3, Y3, {"estimator": "unbiased"}, r"`X` has 3 row\(s\). HSIC needs at least 4"),
        (X3, [0.0, 1.0], {}, "`X` and `Y` must have the same number of rows. Got 3 and 2"),
        (X3, [0.0, np.inf, 1.0], {}, "Input Y contains infinity. First in column 0, row 1"),
        ([[0.0, -np.inf]] * 3, Y3, {}, "Input X contains infinity. First in column 1, row 0"),
        (X3, Y3, {"bandwidth_x": 0.0}, "'bandwidth_x' parameter must be a finite float > 0"),
        (X3, Y3, {"bandwidth_y": -1}, "'bandwidth_y' parameter must be a finite float > 0"),
        (X3, Y3, {"kernel_y": "delta"}, "Unknown kernel 'delta' in `kernel_y`"),
        (X3, Y3, {"order": 5}, "'order' parameter must be at most the number of columns"),
        (X3, Y3, {"settings": PairwiseSettings(method="blocks")}, "Blocks of rows need estimator='unbiased'"),
        (X3, Y3, {"joint": True, "order": 2}, "joint=True has values of single columns only"),
        (X3, Y3, {"joint": True, "groups": {"a": [0, 1]}}, "joint=True has values of single columns only"),
    ],
)
def test_bad_input_is_refused(X, Y, settings, text):
    with pytest.raises((InputError, UnsupportedStructureError), match=text):
        decompose_hsic(X, Y, **settings)


def test_one_bandwidth_serves_both_sides_and_each_side_may_have_its_own():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    for one, both in (
        ({"bandwidth": "column-median"}, {"bandwidth_x": "column-median", "bandwidth_y": "column-median"}),
        ({"bandwidth": 0.7, "bandwidth_x": [1.0, 2.0]}, {"bandwidth_x": [1.0, 2.0], "bandwidth_y": 0.7}),
    ):
        np.testing.assert_array_equal(decompose_hsic(X, y, **one).values, decompose_hsic(X, y, **both).values)
    with pytest.raises(TypeError, match="one number or word, for both sides"):
        decompose_hsic(X, y, bandwidth=[1.0, 2.0])


def test_long_work_is_cut_into_blocks_and_the_result_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 8)), rng.normal(size=4000)
    small = PairwiseSettings(block_size=20)
    cut = decompose_hsic(X, y, estimator="unbiased", n_permutations=1250, settings=small)  # half a minute of permutations
    assert cut.details["n_blocks"] == 200
    assert "mean over 200 random blocks of rows" in repr(cut)
    assert decompose_hsic(X[:400], y[:400], estimator="unbiased", settings=small).details["method"] == "exact"
    # Blocks would be biased
    assert decompose_hsic(X[:400], y[:400], n_permutations=19, settings=small).details["method"] == "exact"


def test_a_missing_cell_is_a_level_of_its_own_on_both_sides():
    X, y = variables(d=2)
    X[::5, 0], y[::7] = np.nan, np.nan
    shares = decompose_hsic(X, y, bandwidth_x=1.0, bandwidth_y=0.8)
    columns = np.column_stack([X, y])
    gaps = np.isnan(columns).T
    kernels = matrices(np.nan_to_num(columns), ["rbf"] * 3, [1.0, 1.0, 0.8])
    kernels = np.where(gaps[:, :, None] | gaps[:, None, :], gaps[:, :, None] & gaps[:, None, :], kernels)
    close(shares.values, values(lambda K: hsic(full(K, 41), kernels[2]), kernels[:2]), 41, 3)
    joint = decompose_hsic(X, y, joint=True, bandwidth_x=1.0, bandwidth_y=0.8)
    expected = joint_values(lambda K, L: hsic(full(K, 41), full(L, 41)), kernels[:2], kernels[2:])
    close(joint.values, expected, 41, 4)


@pytest.mark.parametrize("bandwidth", ["median", "column-median"])
@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_targets_whose_squared_distances_overflow_or_vanish_are_refused(unit, bandwidth):
    X = np.random.default_rng(0).normal(size=(40, 2))
    shares = decompose_hsic(X, X[:, 0], bandwidth=bandwidth)
    with pytest.raises(
        InputError, match=r"squares of the distances of rows overflow, or all vanish. The widest column spans .*e[+-]"
    ):
        decompose_hsic(X, unit * X[:, 0], bandwidth=bandwidth)
    with pytest.raises(InputError, match="'bandwidth_y' parameter must be a float with a square"):
        decompose_hsic(X, unit * X[:, 0], bandwidth=bandwidth, bandwidth_y=unit)
    large = decompose_hsic(X, 2.0**450 * X[:, 0], bandwidth=bandwidth)  # a unit of measurement changes no bit
    assert np.array_equal(large.values, shares.values)
    assert shares.total > 0.01

import warnings

import numpy as np
import pytest
from scipy.stats import kstest

from exactshap import decompose_hsic, decompose_mmd
from exactshap.decompose import PairwiseSettings, decompose_conditional_hsic
from exactshap.decompose.pairwise import check_reach
from exactshap.errors import ExactshapError, ExplanationWarning
from tolerances import roundings


def uniform(p_values, n_permutations):
    """A permutation p-value is uniform on 1/(B+1), ..., 1; a random point of its step is uniform on (0, 1)."""
    jitter = np.random.default_rng(0).uniform(size=len(p_values)) / (n_permutations + 1)
    return kstest(np.asarray(p_values) - jitter, "uniform").pvalue


@pytest.mark.parametrize(("decompose", "shape"), [(decompose_mmd, (20, 2)), (decompose_hsic, 15)])
def test_null_p_values_are_uniform(decompose, shape):
    """Three tests of a true hypothesis; the smallest adjusted p-value is at most 0.1 in a tenth of the samples, or less."""
    found, smallest = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        shares = decompose(rng.normal(size=(15, 2)), rng.normal(size=shape), n_permutations=39, random_state=seed)
        found.append([shares.p_value, *shares.p_values])
        assert (shares.p_adjusted >= shares.p_values.min() - 1e-12).all()
        smallest.append(shares.p_adjusted.min())
    for p_values in np.transpose(found):
        assert uniform(p_values, 39) > 1e-3
    assert np.mean(np.array(smallest) <= 0.1) <= 0.1 + 3 * np.sqrt(0.09 / 200)


def test_a_real_difference_is_found():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(80, 4)), rng.normal(size=(80, 4)) * [1.0, 2.0, 1.0, 1.0]
    shares = decompose_mmd(X, Z, n_permutations=199)
    assert shares.p_value == shares.p_values[1] == 1 / 200
    assert int(shares.values.argmax()) == 1
    assert shares.p_adjusted[1] == 1 / 200  # by the largest share of each permutation
    assert decompose_mmd(X, Z, n_permutations=199, settings=PairwiseSettings(correction="holm")).p_adjusted[1] == 4 / 200


def test_intervals_cover_the_share_of_the_population():
    """Two unit normals, the second shifted in one of two columns; shares of the population in closed form."""
    k, shifted = 3.0**-0.5, 3.0**-0.5 * np.exp(-0.25)  # E exp(-u^2 / 2) for u ~ N(0, 2) and N(sqrt(1.5), 2)
    first, both = 2 * k - 2 * shifted, k * (2 * k - 2 * shifted)
    truth = np.array([first + both, both - first]) / 2
    hits = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(60, 2)), rng.normal([np.sqrt(1.5), 0.0], size=(60, 2))
        intervals = decompose_mmd(X, Z, bandwidth=1.0, settings=PairwiseSettings(level=0.9)).intervals
        hits.append((intervals[:, 0] <= truth) & (truth <= intervals[:, 1]))
    coverage = np.mean(hits, axis=0)
    assert (np.abs(coverage - 0.9) < 4 * np.sqrt(0.09 / 120)).all()  # four standard errors of a binomial frequency


def by_steps(p, factors, up):
    """Return p-values adjusted by the words of their definitions: each times its factor by rank, then monotone."""
    order = np.argsort(p)
    steps = p[order] * factors
    steps = np.maximum.accumulate(steps) if up else np.minimum.accumulate(steps[::-1])[::-1]
    return np.minimum(steps, 1.0)[np.argsort(order)]


def test_p_values_and_corrections_are_those_of_the_definitions():
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(30, 6)), rng.normal([0.3, 0.5, 0.6, 0.4, 0.0, 0.0], size=(30, 6))
    X[:, 5] = Z[:, 5] = 1.0  # all permutations are ties
    rank = np.arange(1, 7)
    for correction, factors, up in (
        ("none", 1.0, True),
        ("holm", 7 - rank, True),
        ("fdr_bh", 6 / rank, False),
        ("fdr_by", 6 / rank * np.sum(1 / rank), False),
    ):
        settings = PairwiseSettings(correction=correction, level=0.5)
        found = decompose_mmd(X, Z, bandwidth=1.0, n_permutations=199, random_state=0, settings=settings)
        above = found.null_values >= found.values - 1e-12
        np.testing.assert_allclose(found.p_values, (1 + above.sum(axis=0)) / 200, rtol=roundings(5))
        expected = found.p_values if correction == "none" else by_steps(found.p_values, factors, up)
        np.testing.assert_allclose(found.p_adjusted, expected, rtol=roundings(50))
        assert found.p_values[5] == 1.0
        assert found.p_value == (1 + (found.null_totals >= found.total - 1e-12).sum()) / 200


REACH = [  # n_permutations, correction, shares, what helps
    (199, "holm", 11, "n_permutations=219 or correction='max'"),
    (218, "holm", 11, "n_permutations=219 or correction='max'"),
    (18, "max", 11, r"n_permutations=19\."),
    (9, "holm", 2, r"n_permutations=39\."),
    (9, "none", 2, r"n_permutations=19\."),
    (19, "fdr_by", 11, "n_permutations=60 or correction='max'"),
]


@pytest.mark.parametrize(("count", "correction", "n_shares", "advice"), REACH)
def test_p_values_that_cannot_reach_the_level_are_announced(count, correction, n_shares, advice):
    with pytest.warns(ExplanationWarning, match=rf"cannot reach 1 - level = 0\.05\. With {count} .* {advice}"):
        check_reach(count, correction, n_shares, 0.95)


@pytest.mark.parametrize(
    ("count", "correction", "n_shares"), [(219, "holm", 11), (19, "max", 99), (19, "none", 3), (60, "fdr_by", 11)]
)
def test_what_can_be_reached_is_not_announced(count, correction, n_shares):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_reach(count, correction, n_shares, 0.95)


def test_eleven_shares_are_found_with_199_permutations():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(60, 11)), rng.normal(size=(60, 11))
    Z[:, 4] += 3.0
    shares = decompose_mmd(X, Z, bandwidth="column-median", n_permutations=199)
    assert shares.p_adjusted[4] <= 0.05
    with pytest.warns(ExplanationWarning, match="cannot reach"):
        holm = decompose_mmd(X, Z, bandwidth="column-median", n_permutations=199, settings=PairwiseSettings(correction="holm"))
    assert holm.p_adjusted.min() > 0.05


def test_the_global_generator_does_not_move():
    state = np.random.get_state()[1].tolist()  # noqa: NPY002 - the global generator must not move
    decompose_mmd(np.eye(4), np.ones((3, 4)), n_permutations=19, random_state=None)
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


X, Z = np.random.default_rng(0).normal(size=(2, 12, 2))
SETTINGS = [{"random_state": bad} for bad in ("1", 1.5, -1, True, object())]
SETTINGS += [{"n_jobs": bad} for bad in ("2", 0, 1.5, [1])] + [{"order": bad} for bad in ("2", None, {}, 0)]
SETTINGS += [{"settings": PairwiseSettings(**one)} for one in ({"map": 3}, {"block_size": None})]
SETTINGS += [{"kernel": {"x0": ["rbf"]}}, {"kernel": {"rbf"}}, {"n_permutations": 2**70}]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: next(iter(one)))
def test_impossible_settings_are_refused_by_their_names(setting):
    (name,) = setting
    said = {"settings": "`map`|'block_size'", "n_permutations": "permutations"}.get(name, name)
    with pytest.raises(ExactshapError, match=said):
        decompose_mmd(X, Z, **setting)
    with pytest.raises(ExactshapError, match=said):
        decompose_hsic(X, Z, **({"kernel_y": setting["kernel"]} if name == "kernel" else setting))
    if name in ("random_state", "n_permutations"):
        with pytest.raises(ExactshapError, match=said):
            decompose_conditional_hsic(X, Z, Z, **setting)

"""MMD and HSIC as tasks over pairs of blocks of rows: the statistic of all rows, and the same bits for any number of workers."""

import numpy as np
import pandas as pd
import pytest

import exactshap.decompose.pairwise._panels as panels
from exactshap import decompose_hsic, decompose_mmd
from exactshap.decompose import PairwiseSettings
from exactshap.errors import ExactnessError, UnsupportedStructureError
from tolerances import assert_close


def here(function, *lists):
    """Stand for an executor's map: not the built-in one, which needs no waves."""
    yield from map(function, *lists)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(panels, "TASK_ROWS", 64)
    monkeypatch.setattr(panels, "TASKS_AT_ONCE", 5)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc")).assign(kind=rng.choice(["u", "v"], 150))
    Z = pd.DataFrame(rng.normal([0.0, 1.0, 0.0], size=(90, 3)), columns=list("abc")).assign(kind=rng.choice(["u", "w"], 90))
    return X, Z


@pytest.mark.parametrize("whole", [False, True])
def test_pairs_of_blocks_are_all_pairs(whole):
    for n_rows, boundary in ((1, 0), (64, 0), (200, 0), (200, 70), (200, 128)):
        met = np.zeros((n_rows, n_rows), int)
        for pair in panels.block_pairs(n_rows, boundary, whole=whole):
            rows, begin = pair.rows, pair.begin
            if begin:
                met[np.ix_(rows[:begin], rows[begin:])] += 1
            else:
                met[np.ix_(rows, rows)] += np.triu(np.ones((len(rows), len(rows)), int), 1)
        assert np.array_equal(met, np.triu(np.ones((n_rows, n_rows), int), 1))


def assert_same(found, expected):
    for name in ("values", "total", "std_error", "set_values", "null_values"):
        one, other = getattr(found, name, None), getattr(expected, name, None)
        assert (one is None) == (other is None)
        if one is not None:
            assert_close(np.asarray(one), np.asarray(other), scale=1.0, n_terms=240)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("order", [1, 2])
def test_mmd_of_pairs_is_that_of_all_rows(samples, order, estimator):
    settings = {"order": order, "estimator": estimator, "n_permutations": 19}
    found, whole = decompose_mmd(*samples, **settings, settings=PairwiseSettings(map=here)), decompose_mmd(*samples, **settings)
    assert_same(found, whole)
    assert found.p_value == whole.p_value


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("order", [1, 2])
def test_hsic_of_pairs_is_that_of_all_rows(samples, order, estimator):
    X, settings = samples[0], {"order": order, "estimator": estimator, "kernel_y": "categorical"}
    y = (X["a"] * X["b"] > 0).astype(int)
    assert_same(decompose_hsic(X, y, **settings, settings=PairwiseSettings(map=here)), decompose_hsic(X, y, **settings))


def test_workers_do_not_change_bits(samples, pool):
    X, Z = samples
    calls = [
        lambda run: decompose_mmd(X, Z, n_permutations=9, settings=PairwiseSettings(map=run)),
        lambda run: decompose_mmd(X, Z, n_permutations=9, settings=PairwiseSettings(method="blocks", block_size=20, map=run)),
        lambda run: decompose_hsic(X, X["a"] ** 2, settings=PairwiseSettings(map=run)),
        lambda run: decompose_hsic(
            X,
            X["a"] ** 2,
            estimator="unbiased",
            n_permutations=9,
            settings=PairwiseSettings(method="blocks", block_size=40, map=run),
        ),
    ]
    for call in calls:
        one, two = call(here), call(pool.map)
        assert np.array_equal(one.values, two.values)
        assert np.array_equal(one.std_error, two.std_error)
        assert one.p_value == two.p_value
    assert np.array_equal(calls[1](None).values, calls[1](here).values)  # blocks are the same with and without a map


def test_a_task_that_loses_a_pair_is_caught(samples):
    def careless(function, *lists):
        for number, part in enumerate(map(function, *lists)):
            part.sums[...] *= number != 3
            yield part

    def forgetful(function, *lists):
        for number, part in enumerate(map(function, *lists)):
            yield (0.0, *part[1:]) if number == 3 and isinstance(part[0], float) else part

    with pytest.raises(ExactnessError, match="MMD2 do not add up to its direct computation"):
        decompose_mmd(*samples, settings=PairwiseSettings(map=careless))
    with pytest.raises(ExactnessError, match="HSIC do not add up to its direct computation"):
        decompose_hsic(samples[0], samples[0]["a"], settings=PairwiseSettings(map=forgetful))


def test_what_tasks_cannot_do_is_refused(samples):
    X = samples[0]
    for settings in ({"joint": True}, {"n_permutations": 9}):
        with pytest.raises(UnsupportedStructureError, match="map= supports the shares of one game only"):
            decompose_hsic(X, X["a"], **settings, settings=PairwiseSettings(map=here))

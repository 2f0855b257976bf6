"""Trees of depth at most 3: the game of all coalitions at once against unit pairs, quadrature and enumeration."""

import numpy as np
import pytest

from exactshap.decompose import decompose_r2
from exactshap.decompose.r2._layout import Layout, lay_out
from exactshap.trees import RawTree, TreeModel, build
from r2_oracle import r2_rows
from tolerances import assert_close_r2

N_ROWS, N_FEATURES = 60, 5


@pytest.fixture
def by_pairs(monkeypatch):
    """Switch the shallow kernels off inside a call: the twin."""

    def decompose(*arguments, **settings):
        with monkeypatch.context() as patch:
            patch.setattr(Layout, "shallow", property(lambda layout: False))
            return decompose_r2(*arguments, **settings)

    return decompose


def random_tree(rng, depth, n_features, categories):
    """Grow a tree whose nodes stop early at times, split on few features, send NaN either way, and have empty children."""
    feature, threshold, left, right, value, cover, missing, sets = [], [], [], [], [], [], [], {}

    def grow(left_over):
        q = len(feature)
        split = left_over > 0 and rng.random() < 0.85
        j = int(rng.integers(n_features)) if split else -1
        feature.append(j)
        threshold.append(round(float(rng.normal()), 1) if split else 0.0)
        value.append(float(rng.normal()))
        cover.append(float(rng.integers(0, 6)))
        missing.append(int(rng.integers(0, 2)))
        left.append(-1), right.append(-1)
        if split:
            if categories and j == 2:
                sets[q] = np.array([rng.integers(1, 31)], np.uint32)
            left[q] = grow(left_over - 1)
            right[q] = grow(left_over - 1)
        return q

    grow(depth)
    arrays = (np.array(feature), np.array(threshold), np.array(left), np.array(right), np.array(value))
    return RawTree(*arrays, cover=np.array(cover), missing=np.array(missing, np.int8), categories=sets)


def random_model(depth, n_trees=12, n_features=N_FEATURES, seed=0, categories=False, boosted=True, less_equal=True):
    rng = np.random.default_rng(seed)
    raw = [random_tree(rng, depth, n_features, categories) for _ in range(n_trees)]
    for tree in raw:
        tree.cover[np.flatnonzero(tree.left < 0)[-1]] += 1.0  # no tree is empty
    trees = build(raw, n_features=N_FEATURES, constant=np.array([0.3]), less_equal=less_equal, single_precision=True)
    outputs, stages = np.full(n_trees, -1, np.int32), np.arange(n_trees, dtype=np.int32) // 3
    return TreeModel(trees, "test", "random trees", "target", ("output",), True, outputs, stages, boosted=boosted)


def random_rows(seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES)).round(1)
    X[:, 2] = rng.integers(0, 6, N_ROWS)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X, rng.normal(size=N_ROWS), rng.random(N_ROWS).round(1)


SETTINGS = {
    "plain": {},
    "one feature only": {"n_features": 1},
    "two features": {"n_features": 2},
    "categories": {"categories": True},
    "no order": {"boosted": False},
    "strictly less": {"less_equal": False},
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("case", SETTINGS)
def test_agrees_with_pairs_of_units_and_with_quadrature(case, depth, seed, by_pairs):
    model = random_model(depth, seed=seed, **SETTINGS[case])
    X, y, weights = random_rows(seed)
    for settings in ({}, {"sample_weight": weights}, {"groups": {"both": [0, 2], "rest": [1, 3]}}):
        fast, twin = decompose_r2(model, X, y, **settings), by_pairs(model, X, y, **settings)
        rows = decompose_r2(model, X, y, per_row=True, **settings)
        assert_close_r2(fast.values, twin.values)
        assert_close_r2(fast.values, rows.values)
        assert_close_r2(fast.total, twin.total)
        assert_close_r2(fast.drift, twin.drift)
        assert abs(fast.residual) <= fast.tolerance


@pytest.mark.parametrize("boosted", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_enumeration(boosted, weighted):
    model = random_model(3, n_trees=6, categories=True, boosted=boosted, seed=5)
    X, y, weights = random_rows()
    rows, total = r2_rows(model, X, y, "residual", weights if weighted else None)
    shares = decompose_r2(model, X, y, sample_weight=weights if weighted else None)
    assert np.abs(shares.values).max() > 1e-3
    assert_close_r2(shares.values, rows.sum(axis=0))
    assert_close_r2(shares.total, total)


def test_only_depth_three_and_less_is_shallow():
    X = random_rows()[0]
    for depth in range(5):
        model = random_model(depth, n_trees=30)
        layout = lay_out(model.trees, X, np.arange(N_FEATURES, dtype=np.int32), N_FEATURES)
        assert layout.depth == depth
        assert layout.shallow == (depth <= 3)


def test_covers_and_empty_values_agree_with_the_slow_ones():
    from exactshap.trees import cover_shares, paths

    model = random_model(4, seed=2)
    layout = lay_out(model.trees, random_rows()[0], np.arange(N_FEATURES, dtype=np.int32), N_FEATURES)
    assert np.array_equal(layout.share, cover_shares(model.trees))
    where = paths(model.trees)
    products = np.array([np.prod(where.ratio[a:b]) for a, b in zip(where.start[:-1], where.start[1:], strict=True)])
    empty = np.bincount(where.tree, products * model.trees.value[where.leaf, 0], minlength=model.trees.n_trees)
    assert_close_r2(layout.empty, empty)


def test_same_bits_for_threads_and_for_every_kind_of_array():
    model = random_model(3, n_trees=150)
    X, y, weights = random_rows()
    one = decompose_r2(model, X, y, sample_weight=weights)
    assert np.array_equal(one.values, decompose_r2(model, X, y, sample_weight=weights, n_jobs=2).values)
    fixed = X.copy()
    fixed.flags.writeable = False
    for other in (np.asfortranarray(X), fixed, np.repeat(X, 2, axis=0)[::2]):
        assert np.array_equal(one.values, decompose_r2(model, other, y, sample_weight=weights).values)

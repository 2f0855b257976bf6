"""Trees of depth at most 3: the game of all coalitions at once against unit pairs, quadrature and enumeration."""

import numpy as np
import pytest

from exactshap.decompose import decompose_r2
from exactshap.decompose.r2._layout import EnsembleLayout, lay_out
from r2_models import N_FEATURES, random_model, random_rows
from r2_oracle import r2_rows
from tolerances import assert_close_r2


@pytest.fixture
def by_pairs(monkeypatch):
    """Switch the shallow kernels off inside a call: the twin."""

    def decompose(*arguments, **settings):
        with monkeypatch.context() as patch:
            patch.setattr(EnsembleLayout, "shallow", property(lambda layout: False))
            return decompose_r2(*arguments, **settings)

    return decompose


SETTINGS = {
    "every rule": {},
    "one feature only": {"n_features": 1},
    "two features": {"n_features": 2},
    "plain splits": {"every_rule": False},
    "no order": {"boosted": False},
    "strictly less": {"less_equal": False},
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("case", SETTINGS)
def test_agrees_with_pairs_of_units_and_with_quadrature(case, depth, seed, by_pairs):
    model = random_model(depth, seed=seed, **SETTINGS[case])
    X, y, weights = random_rows(seed)
    for settings in ({"sample_weight": weights}, {"groups": {"both": [0, 2], "rest": [1, 3]}}):
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
    model = random_model(3, n_trees=6 if boosted else 4, boosted=boosted, seed=5)
    X, y, weights = random_rows()
    rows, total = r2_rows(model, X, y, "residual", weights if weighted else None)
    shares = decompose_r2(model, X, y, sample_weight=weights if weighted else None)
    assert np.abs(shares.values).max() > 1e-3
    assert_close_r2(shares.values, rows.sum(axis=0))
    assert_close_r2(shares.total, total)


def test_more_rows_than_a_tile_and_more_cells_than_a_chunk(by_pairs):
    X, y, weights = (np.concatenate(parts) for parts in zip(*map(random_rows, range(6)), strict=True))
    model = random_model(2, n_trees=3000)
    assert len(X) % 128 != 0
    assert len(X) * model.trees.n_trees > 2**20
    fast, twin = (decompose(model, X, y, sample_weight=weights) for decompose in (decompose_r2, by_pairs))
    assert_close_r2(fast.values, twin.values, n_terms=3000)
    assert_close_r2(fast.total, twin.total, n_terms=3000)


def test_only_depth_three_and_less_is_shallow():
    X = random_rows()[0]
    for depth in range(5):
        model = random_model(depth, n_trees=30)
        layout = lay_out(model.trees, X, np.arange(N_FEATURES, dtype=np.int32), N_FEATURES)
        assert layout.depth == depth
        assert layout.shallow == (depth <= 3)


@pytest.mark.parametrize("rows", [7, 8192])
def test_same_bits_for_threads_and_for_every_kind_of_array(rows, by_pairs, monkeypatch):
    monkeypatch.setattr("exactshap.decompose.r2._games.SHALLOW_ROWS", rows)
    model = random_model(3, n_trees=150)
    X, y, weights = random_rows()
    assert_close_r2(
        decompose_r2(model, X, y, sample_weight=weights).values, by_pairs(model, X, y, sample_weight=weights).values
    )
    one = decompose_r2(model, X, y, sample_weight=weights)
    assert np.array_equal(one.values, decompose_r2(model, X, y, sample_weight=weights, n_jobs=2).values)
    fixed = X.copy()
    fixed.flags.writeable = False
    for other in (np.asfortranarray(X), fixed, np.repeat(X, 2, axis=0)[::2]):
        assert np.array_equal(one.values, decompose_r2(model, other, y, sample_weight=weights).values)

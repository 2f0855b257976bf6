"""Trees of depth at most 3: the game of all coalitions at once against unit pairs, quadrature and enumeration."""

import sys

import numpy as np
import pytest

from exactshap.decompose import decompose_r2
from exactshap.decompose.r2 import _games as games
from exactshap.decompose.r2._games import EnsembleLayout, lay_out
from exactshap.errors import InputTypeError
from exactshap.trees import TreeModel, build
from interruption import interrupted
from r2_oracle import r2_rows
from tolerances import assert_close_r2
from trees_by_rule import random_raw

N_ROWS, N_FEATURES = 60, 5


def random_model(depth, n_trees=12, n_features=N_FEATURES, seed=0, every_rule=True, boosted=True, less_equal=True):
    rng, draw = np.random.default_rng(seed), lambda rng: round(rng.normal(), 1)
    raw = [random_raw(rng, n_features, depth, every_rule=every_rule, draw=draw, zero_covers=0.2) for _ in range(n_trees)]
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
    one = decompose_r2(model, X, y, sample_weight=weights)
    assert_close_r2(one.values, by_pairs(model, X, y, sample_weight=weights).values)
    assert np.array_equal(one.values, decompose_r2(model, X, y, sample_weight=weights, n_jobs=2).values)
    fixed = X.copy()
    fixed.flags.writeable = False
    for other in (np.asfortranarray(X), fixed, np.repeat(X, 2, axis=0)[::2]):
        assert np.array_equal(one.values, decompose_r2(model, other, y, sample_weight=weights).values)


# --- the kernels, with Ctrl-C and with arrays that do not belong together ----------------------------------------------


def laid_out(depth=4, n_trees=5, seed=0, n_rows=20):
    model = random_model(depth, n_trees=n_trees, seed=seed)
    X = np.resize(random_rows(seed)[0], (n_rows, N_FEATURES))
    return lay_out(model.trees, X, np.array([0, 1, 0, 2, 3], np.int32), 4)


def bad_calls():
    layout = laid_out()
    arrays, units, n = layout.arrays, layout.units, layout.trees.n_trees
    decisions, w, out = games._decisions(layout, 0, n), np.ones(20), np.zeros(4)
    rows, half, met = games.Rows(decisions, w, False), games._half_weights(games._table_bits(units) + 1), np.zeros(n)
    short = games.Rows(decisions[:-1], w, False)
    good = (0, n, arrays, units, rows, half, np.zeros(20), met, out)
    codes, rules = np.zeros((len(units.node) - 1, 20), np.uint16), games._rules(units)
    yield games.add_residual_trees, (*good[:1], n + 1, *good[2:])
    yield games.add_residual_trees, (*good[:4], short, *good[5:])
    yield games.add_residual_trees, (*good[:5], half[:-1], *good[6:])
    yield games.add_residual_trees, (*good[:6], np.zeros(19), met, out)
    yield games.add_residual_trees, (*good[:8], np.zeros(3))  # a player has no place
    table = games.Table(layout.X, layout.used, w, True, False)
    yield games.add_shallow_trees, (arrays, layout.nodes, table, half, np.zeros(20), met, out)  # too deep
    yield games.add_tree_rows, (0, n, arrays, units, rows, 0, games.Rules(*(r[:1] for r in rules)), w, np.zeros((4, 20)))
    yield games.add_tree_rows, (0, n, arrays, units, rows, 0, rules, w, np.zeros((3, 20)))
    yield games.add_ensemble_tree, (n, codes, w, w, units, arrays.player_of_node, half, out)
    yield games.fill_codes, (0, len(codes), units, decisions[: units.node.max()], 0, codes)
    yield games.fill_codes, (0, len(codes), units, decisions, 1, codes)
    yield games.fill_columns, (np.zeros((3, 2)), np.array([2]), False, np.zeros((1, 3)))


@pytest.mark.parametrize("case", range(12))
def test_what_does_not_belong_together_is_refused(case):
    kernel, arguments = list(bad_calls())[case]
    with pytest.raises(InputTypeError, match="do not belong together"):
        kernel(*arguments)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of another kind")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_control_c_ends_a_long_game(n_jobs):
    layout = laid_out(9, n_trees=60, n_rows=4000)  # a minute
    y, weights = np.ones(4000), np.linspace(0.5, 1.5, 4000)
    with interrupted(0.5):
        games.ensemble_rows(layout, y, weights, n_jobs)

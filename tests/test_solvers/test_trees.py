"""Trees by every engine: values against the definition, the engines against each other, what is refused and forecast."""

import dataclasses
from unittest import mock

import numpy as np
import pytest

from exactshap.errors import InputError
from exactshap.semivalues import available, beta, find
from exactshap.solvers import solve
from exactshap.solvers.trees import _solve as _trees
from exactshap.solvers.trees import prepare_trees, solve_trees
from exactshap.trees import RawTree, build, margin
from exactshap.trees.ensemble import complete_forest
from test_solvers.trees_by_hand import game_by_hand, random_rows, random_tree, random_trees
from tolerances import assert_close
from trees_by_rule import chain

SINGLES = ((0,), (1,), (2,), (3,), (4,))
GROUPED = ((0, 3), (1,), (4, 2))
X = random_rows(100, 4, 5)
BACKGROUND = random_rows(101, 6, 5)
WEIGHTS = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 1.0])
SHAPLEY = find("shapley")


def engines(prepared):
    """Return the same trees answered by tables and without them; both ways must exist."""
    assert prepared.tables is not None
    return {"tables": prepared, "deep": dataclasses.replace(prepared, tables=None)}


def prepare(trees, players=SINGLES, background=None, weights=None):
    """Prepare with tables wherever they are possible, whatever the forecast says."""
    with mock.patch.object(_trees, "choose_trees", lambda tables, *_, **__: tables.fits):
        return prepare_trees(trees, players, background, weights)


def assert_by_hand(trees, players, background, weights, index, order, rows=X):
    prepared, by_hand = prepare(trees, players, background, weights), {}
    for x in rows:  # some of them several times
        if x.tobytes() not in by_hand:
            game = game_by_hand(trees, players, x, background, weights)
            by_hand[x.tobytes()] = solve(game, index, order, method="enumeration")
    for name, engine in engines(prepared).items():
        solution = solve_trees(engine, rows, find(index), order)
        assert ("tables" in solution.method) == (name == "tables")
        for i, x in enumerate(rows):
            expected = by_hand[x.tobytes()]
            assert solution.sets == expected.sets
            scale = expected.scale + solution.scale[i]
            assert_close(solution.values[i], expected.values, scale, n_terms=64, n_players=len(players))
            assert_close(solution.empty[i], expected.empty, scale, n_terms=64)
            assert_close(solution.full[i], expected.full, scale, n_terms=64)
            if solution.residual is not None:
                assert_close(solution.residual[i], 0 * expected.full, scale, n_terms=64)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("index", [*available(), beta(4, 1)], ids=str)
@pytest.mark.parametrize("background", [None, BACKGROUND], ids=["covers", "background"])
def test_every_index_and_order(index, order, background):
    assert_by_hand(random_trees(1), SINGLES, background, None, index, order, rows=X[:2])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("background", "weights"),
    [(None, None), (BACKGROUND, None), (BACKGROUND, WEIGHTS), (BACKGROUND[:1], None)],
    ids=["covers", "background", "weighted", "baseline"],
)
@pytest.mark.parametrize("players", [SINGLES, GROUPED], ids=["columns", "groups"])
def test_value_functions_and_groups(seed, background, weights, players):
    trees = random_trees(seed, less_equal=seed % 2 == 0)
    assert_by_hand(trees, players, background, weights, "shapley", 1, rows=X[seed % 2 :])


ONE_BY_ONE, TOGETHER = [1, 2], [0, 1, 2, 3, 0] * 4  # rows of a call
OUTPUTS = [(k, background, "sii", order, ONE_BY_ONE) for k in (3, 9) for background in (None, BACKGROUND) for order in (1, 2)]
OUTPUTS += [(k, None, index, 1, TOGETHER) for k in (1, 8) for index in ("shapley", "banzhaf", "leave-one-out", "moebius")]
OUTPUTS += [(1, None, "k-sii", 2, ONE_BY_ONE), (1, None, "stii", 2, TOGETHER), (1, None, "fsii", 2, ONE_BY_ONE)]


@pytest.mark.parametrize("players", [SINGLES, GROUPED], ids=["columns", "groups"])
@pytest.mark.parametrize(("n_outputs", "background", "index", "order", "rows"), OUTPUTS)
def test_outputs_and_covers_of_zero(n_outputs, background, index, order, rows, players):
    """From eight outputs on leaves are added for all of them at once; players are met twice on a path."""
    trees = random_trees(order + n_outputs, n_outputs=n_outputs, zero_covers=background is None)
    assert_by_hand(trees, players, background, None, index, order, rows=X[rows])


@pytest.mark.parametrize("background", [None, BACKGROUND], ids=["covers", "background"])
@pytest.mark.parametrize("order", [1, 2])
def test_trees_that_add_to_one_output_each(background, order):
    trees = random_trees(3, n_outputs=3)
    value = trees.value.copy()
    first, second = trees.tree_start[1:3]
    value[:first, 1:], value[first:second, :2], value[second:, [0, 2]] = 0.0, 0.0, 0.0
    trees = dataclasses.replace(trees, value=value)
    assert len(prepare(trees, SINGLES, background).deep.engines) == 3  # each walks its own trees
    assert_by_hand(trees, SINGLES, background, None, "shapley", order, rows=X[:2])


def test_what_boosted_classes_cost_grows_with_their_trees():
    """Trees of one class each: tables for twice the classes hold as much a tree, and so do walks."""
    forests = {k: complete_forest(4, 2 * k, 6) for k in (10, 40)}
    for k, trees in forests.items():
        value = np.zeros((trees.n_nodes, k))
        owner = np.repeat(np.arange(2 * k) % k, np.diff(trees.tree_start))
        value[np.arange(trees.n_nodes), owner] = trees.value[:, 0]
        trees = dataclasses.replace(trees, value=value, constant=np.zeros(k))
        forests[k] = prepare_trees(trees, [(j,) for j in range(6)], memory_limit=2.0**24)
    few, many = forests.values()
    assert few.rest is many.rest is None, "all of them by tables"
    for work in (lambda prepared: prepared.tables.work(1)[0], lambda prepared: prepared.deep.work(1)):
        assert 3 <= work(many) / work(few) <= 5, "four times as many trees"


@pytest.mark.parametrize("n_trees", [0, 2])
@pytest.mark.parametrize(("background", "order"), [(None, 2), (np.zeros((1, 2)), 1)], ids=["covers", "background"])
def test_no_trees_and_single_leaves(n_trees, background, order):
    leaf = RawTree(feature=[-1], threshold=[0.0], left=[-1], right=[-1], value=[2.5], cover=[1.0])
    trees = build([leaf] * n_trees, n_features=2, constant=[1.0], less_equal=True, single_precision=False)
    prepared = prepare_trees(trees, ((0,), (1,)), background)
    for engine in (prepared, dataclasses.replace(prepared, tables=None)):
        solution = solve_trees(engine, np.zeros((3, 2)), SHAPLEY, order)
        assert np.array_equal(solution.values, np.zeros_like(solution.values))
        assert np.array_equal(solution.full, [1.0 + 2.5 * n_trees] * 3)
        assert np.array_equal(solution.empty, solution.full)


MANY_ROWS = random_rows(7, 60, 12)


def many_trees():
    return random_trees(11, n_features=12, n_trees=8, depth=7)


def kinds(background=None, **settings):
    """Return how many trees go by tables and without them."""
    prepared = prepare_trees(many_trees(), [(j,) for j in range(12)], background, **settings)
    used = (prepared.deep,) if prepared.tables is None else (prepared.tables, prepared.rest)
    assert prepared.engines(1) == tuple(engine for engine in used if engine is not None)
    assert sum(engine.trees.n_trees for engine in prepared.engines(1)) == 9
    return prepared, 0 if prepared.tables is None else prepared.tables.trees.n_trees


def test_trees_are_chosen_within_the_limit(monkeypatch):
    """The engine depends on the trees and on the memory for their tables, and no tables are made for a small advantage."""
    assert kinds()[1] == 9
    assert kinds(MANY_ROWS, memory_limit=0)[1] == 0
    assert kinds(MANY_ROWS, memory_limit=2**16)[1] == 0, "not twice as fast"
    monkeypatch.setattr(_trees, "MIN_ADVANTAGE", 1.0)
    chosen = []
    for limit in (2**14, 2**16, 2**18, 2**30):
        prepared, n_tables = kinds(MANY_ROWS, memory_limit=limit)
        assert prepared.held <= limit
        chosen.append(n_tables)
    assert 0 < chosen[1] < 9
    assert chosen == sorted(chosen)
    without = kinds(MANY_ROWS, memory_limit=0)[0]
    assert without.engines(1)[0] is without.deep, "prepared once"


def test_dummies_get_exactly_nothing():
    trees = random_trees(4, n_features=3)
    wider = dataclasses.replace(trees, n_features=5)
    for background in (None, BACKGROUND):
        for engine in engines(prepare(wider, SINGLES, background)).values():
            assert np.array_equal(solve_trees(engine, X, SHAPLEY, 1).values[:, 3:], np.zeros((4, 2)))


def test_rows_are_rounded_as_they_are_compared():
    """Right of a split before they are rounded to single precision, left of it after that, for each engine and number of rows."""
    forest = complete_forest(3, 6, 1)
    threshold = forest.threshold.astype(np.float32).astype(float)
    for single in (True, False):
        trees = dataclasses.replace(forest, threshold=threshold, single_precision=single)
        rows = np.nextafter(threshold[trees.feature >= 0], np.inf)[:, None]
        assert (margin(trees, rows) != margin(trees, rows.astype(np.float32))).any() == (not single)
        for engine in engines(prepare(trees, ((0,),))).values():
            for part in (rows, *rows[:, None], np.repeat(rows, 40, axis=0)):
                solution = solve_trees(engine, part, SHAPLEY, 1)
                assert_close(solution.full, margin(trees, part).ravel(), solution.scale, n_terms=6)
                assert_close(solution.residual, np.zeros(len(part)), solution.scale, n_terms=6)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("background", [None, MANY_ROWS], ids=["covers", "background"])
def test_shallow_and_deep_trees_in_one_ensemble(background, order):
    """Shallow trees go by tables, a chain of 40 columns does not, and the sums are those of one engine for all."""
    shallow = [random_tree(np.random.default_rng(seed), 12, 4, 1, False) for seed in range(5)]
    deep = chain(40, n_features=40, value=np.random.default_rng(9).normal(size=81))
    deep = dataclasses.replace(deep, threshold=np.full(81, -1.0))
    trees = build([shallow[0], deep, *shallow[1:]], n_features=40, constant=[1.0], less_equal=True, single_precision=False)
    wide = None if background is None else np.hstack([background, random_rows(8, 60, 28)])
    prepared = prepare(trees, [(j,) for j in range(40)], wide)
    assert type(prepared.engines(order)[1]) is type(prepared.deep)
    rows = random_rows(9, 20, 40)
    mixed = solve_trees(prepared, rows, find("k-sii"), order)
    alone = solve_trees(dataclasses.replace(prepared, tables=None), rows, find("k-sii"), order)
    scale = mixed.scale + alone.scale
    assert_close(mixed.values, alone.values, scale, n_terms=200, n_players=40)
    assert_close(mixed.full, margin(trees, rows).ravel(), scale, n_terms=200)
    assert_close(mixed.residual, np.zeros(20), scale, n_terms=200, n_players=40)


@pytest.mark.parametrize(
    ("players", "background", "weights", "text"),
    [
        (SINGLES[:4], None, None, "each of the 5 columns exactly once"),
        ((*SINGLES, (0,)), None, None, "each of the 5 columns exactly once"),
        (SINGLES, np.zeros((2, 4)), None, r"`background` must have shape \(n_rows, 5\). Got \(2, 4\)"),
        (SINGLES, np.zeros((0, 5)), None, "`background` must have at least one row"),
        (SINGLES, np.zeros((2, 5)), [1.0], "weights must have shape"),
        (SINGLES, np.zeros((2, 5)), [1.0, -1.0], "finite, non-negative"),
    ],
)
def test_bad_preparation_and_bad_rows(players, background, weights, text):
    with pytest.raises(InputError, match=text):
        prepare_trees(random_trees(1), players, background, weights)
    with pytest.raises(InputError, match=r"`X` must have shape \(n_rows, 5\). Got \(2, 4\)"):
        solve_trees(prepare_trees(random_trees(1), SINGLES), np.zeros((2, 4)), SHAPLEY, 1)


def test_players_on_a_path_share_a_bit():
    """Ten splits on one column: one bit above each subtree, so that small tables suffice at any depth."""
    depth = 30
    raw = chain(depth, value=np.random.default_rng(0).normal(size=2 * depth + 1))
    raw = dataclasses.replace(raw, threshold=np.append(np.linspace(-1, 1, depth), np.zeros(depth + 1)))
    trees = build([raw], n_features=1, constant=[0.0], less_equal=True, single_precision=False)
    prepared = prepare(trees, ((0,),))
    assert prepared.memory(1, 1) < 2**22 + 2**16
    rows = np.linspace(-1.5, 1.5, 50)[:, None]
    for engine in engines(prepared).values():
        solution = solve_trees(engine, rows, SHAPLEY, 1)
        assert_close(solution.values.ravel(), margin(trees, rows).ravel() - solution.empty, solution.scale, n_terms=depth)


def test_the_memory_of_tables_is_forecast():
    prepared = prepare(many_trees(), [(j,) for j in range(12)], MANY_ROWS[:30])
    engine = prepared.tables
    cells = engine.fill(engine.of_order(2), SHAPLEY, 2, 0, len(engine.tables.groups.root))
    assert cells.nbytes + prepared.held <= prepared.memory(100, 2) <= cells.nbytes + prepared.held + 2**22


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_memory_of_walks_is_forecast(n_outputs):
    deep = prepare(random_trees(9, depth=9, n_outputs=n_outputs)).deep
    steps = deep.steps.value
    arrays = [steps.tree_start, *steps[2:], *steps.nodes[:8]]
    needed = 1.4 * sum(array.nbytes for array in arrays)  # with what is made on the way
    assert 0.9 * needed <= deep.memory(1, 1) <= 1.1 * needed + 140

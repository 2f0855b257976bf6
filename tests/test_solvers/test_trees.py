import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest

from exactshap._runtime.cache import BoundedCache
from exactshap.errors import InputError
from exactshap.semivalues import available, beta, find
from exactshap.solvers import solve
from exactshap.solvers.trees import _solve as _trees
from exactshap.solvers.trees import _table_engine as _tree_tables
from exactshap.solvers.trees import prepare_trees, solve_trees
from exactshap.solvers.trees._layout import TableForecast
from exactshap.solvers.trees._leaf_engine import LeafEngine
from exactshap.solvers.trees._path_engine import PathEngine
from exactshap.solvers.trees._solve import choose_trees
from exactshap.solvers.trees._table_engine import TableEngine
from exactshap.trees import RawTree, build, margin
from exactshap.trees.ensemble import complete_forest
from test_solvers.trees_by_hand import assert_same_bits, game_by_hand, random_rows, random_tree, random_trees
from tolerances import assert_close
from trees_by_rule import chain

SINGLES = ((0,), (1,), (2,), (3,), (4,))
GROUPED = ((0, 3), (1,), (4, 2))
X = random_rows(100, 4, 5)
BACKGROUND = random_rows(101, 6, 5)
WEIGHTS = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 1.0])
SHAPLEY = find("shapley")


def engines(prepared):
    """The same trees answered by tables and without them; both paths must exist."""
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
FEW_OUTPUTS = [
    (k, background, "sii", order, ONE_BY_ONE) for k in (3, 9) for background in (None, BACKGROUND) for order in (1, 2)
]
ZERO_COVERS = [
    *(
        (n_outputs, None, index, 1, TOGETHER)
        for n_outputs in (1, 8)
        for index in ("shapley", "banzhaf", "leave-one-out", "moebius")
    ),
    *((1, None, index, 2, rows) for index, rows in (("k-sii", ONE_BY_ONE), ("stii", TOGETHER), ("fsii", ONE_BY_ONE))),
]


@pytest.mark.parametrize("players", [SINGLES, GROUPED], ids=["columns", "groups"])
@pytest.mark.parametrize(("n_outputs", "background", "index", "order", "rows"), [*FEW_OUTPUTS, *ZERO_COVERS])
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
    assert isinstance(prepare(trees, SINGLES, background).deep, _trees.EachOutput)
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
    assert 3 <= many.tables.of_order(1).rows.table_start[-1] / few.tables.of_order(1).rows.table_start[-1] <= 5, (
        "four times as many trees"
    )
    assert 3 <= many.deep.work(1) / few.deep.work(1) <= 5


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


MANY_ROWS = random_rows(7, 1500, 12)


def many_trees(seed=11, n_outputs=1):
    return random_trees(seed, n_features=12, n_trees=8, depth=7, n_outputs=n_outputs)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("background", [None, MANY_ROWS[:30]], ids=["covers", "background"])
def test_tables_agree_with_deep_engine_on_larger_trees(background, order):
    trees = many_trees()
    prepared = prepare(trees, [(j,) for j in range(12)], background)
    fast, slow = (solve_trees(engine, MANY_ROWS[:40], find("k-sii"), order) for engine in engines(prepared).values())
    scale = np.maximum(fast.scale, slow.scale)
    assert_close(fast.values, slow.values, scale, n_terms=1000, n_players=12)
    assert_close(fast.full, margin(trees, MANY_ROWS[:40]).ravel(), scale, n_terms=1000)
    assert_close(fast.residual, np.zeros(40), scale, n_terms=1000, n_players=12)


@pytest.mark.parametrize("engine", ["tables", "deep"])
@pytest.mark.parametrize("background", [None, MANY_ROWS[:5]], ids=["covers", "background"])
def test_blocking_changes_no_bit(background, engine):
    prepared = engines(prepare(many_trees(), [(j,) for j in range(12)], background))[engine]
    n = 1500 if engine == "tables" else 200
    whole = solve_trees(prepared, MANY_ROWS[:n], SHAPLEY, 1)
    for start, stop in ((0, 1), (1, 14), (100, 141), (n - 1, n)):
        assert_same_bits(solve_trees(prepared, MANY_ROWS[start:stop], SHAPLEY, 1), whole, slice(start, stop))


@pytest.mark.parametrize(("engine", "background"), [("tables", None), ("deep", None), ("deep", MANY_ROWS[:5])])
def test_pickles_to_the_same_bits(background, engine):
    prepared = engines(prepare(many_trees(), [(j,) for j in range(12)], background))[engine]
    before = solve_trees(prepared, MANY_ROWS[:9], SHAPLEY, 1)
    size = len(pickle.dumps(prepared))
    solve_trees(prepared, MANY_ROWS[:9], SHAPLEY, 2)
    assert len(pickle.dumps(prepared)) <= size + 100  # tables are not part of the state
    after = solve_trees(pickle.loads(pickle.dumps(prepared)), MANY_ROWS[:9], SHAPLEY, 1)
    assert np.array_equal(before.values, after.values)


def test_threads_share_prepared_trees():
    prepared = prepare_trees(many_trees(), [(j,) for j in range(12)])
    expected = solve_trees(pickle.loads(pickle.dumps(prepared)), MANY_ROWS, SHAPLEY, 1).values
    with ThreadPoolExecutor(2) as pool:
        indices = ["shapley", "banzhaf"] * 4
        values = list(pool.map(lambda index: solve_trees(prepared, MANY_ROWS, find(index), 1).values, indices))
    assert all(np.array_equal(v, expected) for v in values[::2])


def test_tables_in_runs_agree_with_kept_ones(monkeypatch):
    prepared = prepare(many_trees(), [(j,) for j in range(12)], MANY_ROWS[:30])
    kept = solve_trees(prepared, MANY_ROWS[:50], SHAPLEY, 2)
    monkeypatch.setattr(_tree_tables, "CHUNK_BYTES", 2**16)
    apart = {"cache": BoundedCache(), "questions": BoundedCache()}
    in_runs = dataclasses.replace(prepared, tables=dataclasses.replace(prepared.tables, limit=0.0, **apart))
    filled = solve_trees(in_runs, MANY_ROWS[:50], SHAPLEY, 2)
    assert "kept" in kept.method
    assert "in runs" in filled.method
    assert_close(filled.values, kept.values, kept.scale, n_terms=1000)


def test_trees_are_chosen_within_the_limit():
    tables = TableForecast(
        is_root=np.empty(0, bool),
        fits=np.array([True, True, True, False]),
        look_ups=np.array([10.0, 300.0, 10.0, 0.0]),
        filling=np.array([0.0, 0.0, 180_000.0, 0.0]),
        table_bytes=np.array([100.0, 200.0, 300.0, 1.0]),
        background_bytes=np.array([10.0, 10.0, 10.0, 10.0]),
    )
    other = np.array([200.0, 200.0, 200.0, 10.0])  # kept tables cost 10, 300, 100; refilled ones 10, 300, 910; the last none
    chosen = {limit: choose_trees(tables, other, limit, may_refill=False).tolist() for limit in (50, 350, 450)}
    assert chosen == {50: [False] * 4, 350: [False] * 4, 450: [False] * 4}  # 320 of 610 is not half
    other[0] = 2000.0
    chosen = {limit: choose_trees(tables, other, limit, may_refill=False).tolist() for limit in (50, 350, 450)}
    assert chosen == {50: [False] * 4, 350: [True, False, False, False], 450: [True, False, True, False]}
    # with a background, 25 bytes hold the survival of two trees but no tables: one is worth filling in each call
    assert choose_trees(tables, other, 25, may_refill=True).tolist() == [True, False, False, False]
    assert choose_trees(tables, 100 * other, 25, may_refill=True).tolist() == [True, True, False, False]


def test_background_in_blocks_gives_the_same_bits(monkeypatch):
    players = [(j,) for j in range(12)]
    weights = np.random.default_rng(0).random(300)
    whole = prepare(many_trees(), players, MANY_ROWS[:300], weights)
    monkeypatch.setattr(_tree_tables, "BACKGROUND_BLOCK", 7)
    blocks = prepare(many_trees(), players, MANY_ROWS[:300], weights)
    assert np.array_equal(whole.tables.background.table, blocks.tables.background.table)


def test_dummies_get_exactly_nothing():
    trees = random_trees(4, n_features=3)
    wider = dataclasses.replace(trees, n_features=5)
    for background in (None, BACKGROUND):
        for engine in engines(prepare(wider, SINGLES, background)).values():
            assert np.array_equal(solve_trees(engine, X, SHAPLEY, 1).values[:, 3:], np.zeros((4, 2)))


def test_single_precision_rounds_rows_before_comparing():
    threshold = float(np.float32(0.1))
    raw = RawTree(
        feature=[0, -1, -1],
        threshold=[threshold, 0.0, 0.0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        value=[0.0, 1.0, 3.0],
        cover=[4.0, 2.0, 2.0],
    )
    for single, expected in ((True, 1.0), (False, -1.0)):  # 0.1 rounds up to the threshold and then is not below it
        trees = build([raw], n_features=1, constant=[0.0], less_equal=False, single_precision=single)
        for engine in engines(prepare(trees, ((0,),))).values():
            assert solve_trees(engine, np.array([[0.1]]), SHAPLEY, 1).values.ravel() == [expected]


def test_engine_depends_on_trees_only(monkeypatch):
    players = [(j,) for j in range(12)]
    assert [type(e) for e in prepare_trees(many_trees(), players).engines(1)] == [TableEngine]
    leaf_by_leaf = prepare_trees(many_trees(), players, MANY_ROWS[:100], memory_limit=0)
    assert [type(e) for e in leaf_by_leaf.engines(1)] == [LeafEngine]
    monkeypatch.setattr(_trees, "MIN_ADVANTAGE", 1.0)
    half = prepare_trees(many_trees(), players, MANY_ROWS[:100], memory_limit=2**16)
    assert [type(e) for e in half.engines(1)] == [TableEngine, LeafEngine]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("background", [None, MANY_ROWS[:60]], ids=["covers", "background"])
def test_shallow_and_deep_trees_in_one_ensemble(background, order):
    """Shallow trees go by tables, a chain of 40 columns does not, and the sums are those of one engine for all."""
    shallow = [random_tree(np.random.default_rng(seed), 12, 4, 1, False) for seed in range(5)]
    deep = chain(40, n_features=40, value=np.random.default_rng(9).normal(size=81))
    deep = dataclasses.replace(deep, threshold=np.full(81, -1.0))
    trees = build([shallow[0], deep, *shallow[1:]], n_features=40, constant=[1.0], less_equal=True, single_precision=False)
    wide = None if background is None else np.hstack([background, random_rows(8, 60, 28)])
    prepared = prepare(trees, [(j,) for j in range(40)], wide)
    assert isinstance(prepared.engines(order)[1], PathEngine if background is None else LeafEngine)
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


def test_forecasts_are_those_of_the_engine():
    trees = many_trees()
    prepared = prepare(trees, [(j,) for j in range(12)], MANY_ROWS[:30])
    for engine in engines(prepared).values():
        for order in (1, 2):
            assert engine.memory(100, order) > 0
            assert engine.cost(100, 1, order).seconds > 0
    solve_trees(prepared, MANY_ROWS[:2], SHAPLEY, 2)
    kept = prepared.tables._cells(prepared.tables.of_order(2), SHAPLEY, 2, 0, prepared.tables.layout.n_groups)
    tables = kept.nbytes + prepared.tables.background.table.nbytes
    assert tables <= prepared.memory(100, 2) <= tables + 2**22

"""Each engine has two ways, for few rows and for many: they give the same bits, however rows are cut, copied or shared."""

import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from exactshap._native import Handle
from exactshap.semivalues import available, beta, find
from exactshap.solvers.trees import _leaf_engine as _tree_leaves
from exactshap.solvers.trees import _table_engine as _tree_tables
from exactshap.solvers.trees import prepare_trees, solve_trees
from exactshap.trees import build
from exactshap.trees.ensemble import complete_forest
from test_solvers.trees_by_hand import assert_same_bits, random_rows, random_tree, random_trees
from tolerances import assert_close
from trees_by_rule import chain

SHAPLEY = find("shapley")
BACKGROUND = random_rows(42, 30, 9)
WEIGHTS = np.random.default_rng(43).random(30) * (np.arange(30) % 4 > 0)
SETTINGS = {
    "covers": (None, None),
    "background": (BACKGROUND, None),
    "weights": (BACKGROUND, WEIGHTS),
    "baseline": (BACKGROUND[:1], None),
}
PAIRS = ("sii", "k-sii", "stii", "fsii", "banzhaf-interaction")
QUESTIONS = [*((index, 1) for index in (*available(), beta(4, 1))), *((index, 2) for index in PAIRS)]


def columns_of(rows):
    return np.ascontiguousarray(rows.T)


def singles(n):
    return [(j,) for j in range(n)]


@pytest.fixture
def few_rows(monkeypatch):
    """Let thirty rows and more go together, whatever pays on large forests."""
    monkeypatch.setattr(_tree_leaves.LeafEngine, "one_by_one_rows", 30)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("index", "order"), QUESTIONS, ids=str)
@pytest.mark.parametrize("n_outputs", [1, 3, 8])
def test_walks_and_leaves_give_a_row_the_bits_that_it_has_among_many(few_rows, setting, index, order, n_outputs):
    trees = random_trees(5, n_features=9, depth=8, n_outputs=n_outputs, zero_covers=n_outputs != 3)
    deep, rows = prepare_trees(trees, singles(9), *SETTINGS[setting]).deep, random_rows(41, 60, 9)
    many = deep.solve(columns_of(rows), find(index), order)
    for n in (1, 5, 12, 13):
        assert_same_bits(deep.solve(columns_of(rows[:n]), find(index), order), many, slice(n))


@pytest.mark.parametrize(
    ("setting", "n_outputs"), [("covers", 1), ("covers", 3), ("background", 3), ("weights", 1), ("baseline", 1)]
)
@pytest.mark.parametrize(("index", "order"), [*QUESTIONS, *((index, 3) for index in PAIRS)], ids=str)
def test_tables_give_a_row_the_bits_that_it_has_among_many(setting, index, order, n_outputs, monkeypatch):
    if n_outputs == 3:
        monkeypatch.setattr(_tree_tables, "CHUNK_BYTES", 2**13)  # cuts the groups into several runs
    trees = random_trees(11, n_features=9, depth=5, n_outputs=n_outputs, zero_covers=n_outputs == 1)
    engine = prepare_trees(trees, singles(9), *SETTINGS[setting]).tables
    if n_outputs == 3:
        engine = dataclasses.replace(engine, limit=0.0)  # tables of each run are filled anew
    rows, filled, fill = random_rows(44, 300, 9), [], _tree_tables.TableEngine.fill
    monkeypatch.setattr(_tree_tables.TableEngine, "fill", lambda *given: filled.append(1) or fill(*given))
    few = [engine.solve(columns_of(rows[:n]), find(index), order) for n in (1, 3, 8)]
    assert not filled
    many = engine.solve(columns_of(rows), find(index), order)
    assert filled
    assert len(rows) > engine.one_by_one_rows(order) >= 12
    few += [engine.solve(columns_of(rows[:n]), find(index), order) for n in (1, 4, 5)]
    for some in few:
        assert_same_bits(some, many, slice(len(some.full)))


@pytest.mark.parametrize("engine", ["tables", "deep"])
@pytest.mark.parametrize("background", [None, random_rows(7, 5, 12)], ids=["covers", "background"])
def test_blocks_copies_and_threads_change_no_bit(background, engine):
    n, rows = (1500, random_rows(7, 1500, 12)) if engine == "tables" else (200, random_rows(7, 200, 12))
    trees = random_trees(11, n_features=12, n_trees=8, depth=7)
    prepared = prepare_trees(trees, singles(12), background)
    if engine == "deep":
        prepared = dataclasses.replace(prepared, tables=None)
    whole = solve_trees(prepared, rows, SHAPLEY, 1)
    stored = pickle.dumps(prepared)
    copy = pickle.loads(stored)
    assert_same_bits(solve_trees(copy, rows, SHAPLEY, 1), whole)
    solve_trees(prepared, rows, SHAPLEY, 2)
    assert len(pickle.dumps(prepared)) <= len(stored) + 100  # tables are not part of the state
    for start, stop in ((0, 1), (1, 14), (100, 141), (n - 1, n)):
        assert_same_bits(solve_trees(prepared, rows[start:stop], SHAPLEY, 1), whole, slice(start, stop))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda name: solve_trees(copy, rows, find(name), 1), ["shapley", "banzhaf"] * 4))
    for solution in found[::2]:
        assert_same_bits(solution, whole)


@pytest.mark.parametrize("first", [True, False])
def test_the_rows_of_a_first_call_take_the_quicker_way(first, monkeypatch):
    # a step of a row takes as long as three of a filling; a service that asks row by row gets its tables sooner
    engine = prepare_trees(random_trees(4, n_features=12, depth=10), singles(12)).tables
    filled, _, one_row = engine.work(1)
    even, patience = int(filled / (3.0 * one_row)), int(max(16.0, 0.1 * filled / one_row))
    assert 25 < even > patience
    rows, cells, calls = columns_of(random_rows(44, even + 1, 12)), engine.of_order(1).rows.table_start[-1] + 8, []
    monkeypatch.setattr(_tree_tables.TableEngine, "fill", lambda *given: calls.append(1) or np.zeros(cells))
    if first:
        engine.solve(rows[:, :even].copy(), SHAPLEY, 1)
        assert not calls
        engine.answered[0] = 0
        engine.solve(rows, SHAPLEY, 1)
    else:
        for i in range(patience):
            engine.solve(rows[:, i : i + 1].copy(), SHAPLEY, 1)
        assert not calls
        engine.solve(rows[:, :1].copy(), SHAPLEY, 1)
    assert calls


def test_tables_beyond_any_cache_give_the_bits_of_a_row_however_rows_are_cut():
    trees, rows = complete_forest(8, 25, 20), random_rows(44, 700, 20)
    prepared = prepare_trees(trees, singles(20))
    engine = prepared.tables
    engine.answered[0] = 10**6  # tables, however few the rows
    assert 8 * engine.of_order(1).rows.table_start[-1] > 2**25  # see CACHED_CELLS in tables.cpp
    every = engine.solve(columns_of(rows), SHAPLEY, 1)
    around_parts = slice(0, 319), slice(0, 321), slice(319, 700), slice(600, 700)  # see PARTS in sweep.cpp
    for part in (*map(slice, (1, 4, 5, 24, 25)), *around_parts):
        assert_same_bits(engine.solve(columns_of(rows[part]), SHAPLEY, 1), every, part)
    deep = prepared.deep.solve(columns_of(rows[:24]), SHAPLEY, 1)
    assert_close(every.values[:24], deep.values, every.scale[:24], n_terms=25 * 2**8)


@pytest.mark.parametrize("single_precision", [False, True])
@pytest.mark.parametrize("less_equal", [False, True])
@pytest.mark.parametrize(("depth", "n_trees"), [(0, 3), (1, 4), (3, 9), (6, 7), (9, 3)])
def test_splits_side_by_side_lead_a_row_where_splits_one_by_one_do(depth, n_trees, less_equal, single_precision, monkeypatch):
    monkeypatch.setattr(_tree_tables, "CHUNK_BYTES", 2**15)  # runs begin and end inside of trees
    forest = complete_forest(depth, n_trees, 7)
    threshold = np.round(forest.threshold, 1)  # some rows lie on them
    trees = dataclasses.replace(forest, threshold=threshold, less_equal=less_equal, single_precision=single_precision)
    rows = np.round(np.random.default_rng(depth).normal(size=(40, 7)), 1)
    engine, twin = (prepare_trees(trees, singles(7)).tables for _ in range(2))
    engine.answered[0] = twin.answered[0] = 10**6
    tables = twin.tables
    assert tables.routes.is_plain
    twin.__dict__["packed"] = Handle(tables._replace(routes=tables.routes._replace(is_plain=False)))
    many = engine.solve(columns_of(rows), SHAPLEY, 1)
    for i in range(len(rows)):
        one, other = engine.solve(columns_of(rows[[i]]), SHAPLEY, 1), twin.solve(columns_of(rows[[i]]), SHAPLEY, 1)
        assert_same_bits(one, other)
        assert_same_bits(one, many, [i])


# -- leaf by leaf ------------------------------------------------------------------------------------------------------

ROWS = random_rows(20, 300, 14)
LARGER = random_rows(21, 200, 14)
LARGER_WEIGHTS = np.random.default_rng(22).random(200) * (np.arange(200) % 5 > 0)


@pytest.fixture(params=[16, 0, 6], ids=["dense", "sparse", "both"])
def most_dense(request, monkeypatch, few_rows):
    """Leaves of all sizes by tables of patterns, by pairs of patterns, and some by each."""
    monkeypatch.setattr(_tree_leaves, "most_dense", lambda n_background: request.param)


def leaf_engine(n_outputs, weights):
    trees = random_trees(31, n_features=14, n_trees=4, depth=9, n_outputs=n_outputs)
    return prepare_trees(trees, singles(14), LARGER, weights).deep


def assert_walked(deep, columns, semivalue):
    """Compare patterns, leaf by leaf, with walks of pairs of rows, value by value."""
    part, twin = deep.solve(columns, semivalue, 1), _tree_leaves.WalkEngine.solve(deep, columns, semivalue, 1)
    scale = np.maximum(part.scale, twin.scale)
    assert_close(part.values, twin.values, scale, n_terms=4000, n_players=14)
    if part.values.shape[2] == 1:  # of several outputs, walks add up the magnitudes of each
        assert_close(part.scale, twin.scale, scale, n_terms=4000)
    assert np.all(part.scale >= twin.scale * (1.0 - 1e-12))
    assert np.array_equal(part.full, twin.full)


@pytest.mark.parametrize("weights", [None, LARGER_WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_leaves_agree_with_walks(most_dense, weights, n_outputs):
    deep = leaf_engine(n_outputs, weights)
    for index in [*available(), beta(4, 1)] if n_outputs == 1 and weights is None else ["shapley"]:
        assert_walked(deep, columns_of(ROWS[:40]), find(index))


def test_leaves_of_over_32_players_are_walked(most_dense):
    """A chain of 45 columns between other trees: its last leaves have more players than a pattern has bits."""
    others = [random_tree(np.random.default_rng(seed), 14, 6, 1, False) for seed in range(2)]
    long = chain(45, 45, np.random.default_rng(9).normal(size=91))
    long = dataclasses.replace(long, threshold=np.full(91, -0.5))
    trees = build([others[0], long, others[1]], n_features=45, constant=[1.0], less_equal=True, single_precision=False)
    deep = prepare_trees(trees, singles(45), np.maximum(random_rows(1, 30, 45), -0.6)).deep
    assert_walked(deep, columns_of(np.maximum(random_rows(2, 20, 45), -0.6)), SHAPLEY)


def test_leaves_give_a_row_the_same_bits_in_every_block(most_dense, monkeypatch):
    deep = leaf_engine(1, LARGER_WEIGHTS)
    whole = deep.solve(columns_of(ROWS), SHAPLEY, 1)
    for start, stop in ((0, 1), (1, 3), (7, 20), (100, 140), (40, 300), (299, 300)):
        assert_same_bits(deep.solve(columns_of(ROWS[start:stop]), SHAPLEY, 1), whole, slice(start, stop))
    monkeypatch.setattr(_tree_leaves, "BLOCK_ROWS", 77)
    assert_same_bits(deep.solve(columns_of(ROWS), SHAPLEY, 1), whole)


def test_forecasts_of_leaves_grow_slower_than_the_background():
    """More background makes more leaves dense; wide leaves that few rows reach keep rows alone for longer."""

    def deep(depth, n_background):
        rows = np.resize(LARGER, (n_background, 14))
        return prepare_trees(complete_forest(depth, 4, 14), singles(14), rows, memory_limit=0.0).deep

    one, hundred = deep(10, 100), deep(10, 10_000)
    assert one.work(1) <= hundred.work(1) < 20 * one.work(1)
    for order in (1, 2):
        assert one.memory(100, order) > 0
        assert one.work(order) > 0
    few, many, shallow = deep(10, 20), deep(10, 200), deep(3, 200)
    assert few.one_by_one_rows > many.one_by_one_rows > 1.0
    assert shallow.one_by_one_rows < many.one_by_one_rows

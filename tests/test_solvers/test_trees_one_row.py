"""Deep trees, one row at a time: against the definition, and the bits of the same row among many."""

import dataclasses

import numpy as np
import pytest

from exactshap._native import Handle
from exactshap.semivalues import available, beta, find
from exactshap.solvers.trees import _table_engine as _tree_tables
from exactshap.solvers.trees import prepare_trees
from exactshap.solvers.trees._kernels import Steps
from exactshap.solvers.trees._leaf_engine import LeafEngine
from exactshap.solvers.trees._path_engine import make_steps, steps_bytes
from exactshap.trees import margin
from exactshap.trees.ensemble import complete_forest
from test_solvers.trees_by_hand import assert_same_bits, random_rows, random_trees
from tolerances import assert_close

SHAPLEY = find("shapley")
ROWS, BACKGROUND = random_rows(41, 60, 9), random_rows(42, 30, 9)
WEIGHTS = np.random.default_rng(43).random(30) * (np.arange(30) % 4 > 0)
SETTINGS = {
    "covers": (None, None),
    "background": (BACKGROUND, None),
    "weights": (BACKGROUND, WEIGHTS),
    "baseline": (BACKGROUND[:1], None),
}


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Let thirty rows and more go together, whatever pays on large forests."""
    monkeypatch.setattr(LeafEngine, "one_by_one_rows", 30)


def columns_of(rows):
    return np.ascontiguousarray(rows.T)


@pytest.fixture(params=SETTINGS)
def engine_of(request):
    """The engine without tables for each value function."""
    background, weights = SETTINGS[request.param]
    return lambda trees: prepare_trees(trees, [(j,) for j in range(9)], background, weights).deep


QUESTIONS = [
    *[(index, 1) for index in (*available(), beta(4, 1))],
    *[(index, order) for index in ("sii", "k-sii", "stii", "fsii", "banzhaf-interaction") for order in (2, 3)],
]


@pytest.mark.parametrize(("index", "order"), [question for question in QUESTIONS if question[1] < 3], ids=str)
@pytest.mark.parametrize("n_outputs", [1, 3, 8])
def test_a_row_has_the_bits_that_it_has_among_many(engine_of, index, order, n_outputs):
    deep = engine_of(random_trees(5, n_features=9, depth=8, n_outputs=n_outputs, zero_covers=n_outputs != 3))
    many = deep.solve(columns_of(ROWS), find(index), order)
    for n in (1, 5, 12, 13):
        assert_same_bits(deep.solve(columns_of(ROWS[:n]), find(index), order), many, slice(n))


@pytest.mark.parametrize(
    ("setting", "n_outputs"), [("covers", 1), ("covers", 3), ("background", 3), ("weights", 1), ("baseline", 1)]
)
@pytest.mark.parametrize(("index", "order"), QUESTIONS, ids=str)
def test_tables_answer_a_row_with_the_bits_that_it_has_among_many(setting, index, order, n_outputs, monkeypatch):
    chunk = _tree_tables.CHUNK_BYTES if n_outputs == 1 else 2**13
    monkeypatch.setattr(_tree_tables, "CHUNK_BYTES", chunk)  # the smaller one cuts the groups into several runs
    trees = random_trees(11, n_features=9, depth=5, n_outputs=n_outputs, zero_covers=n_outputs == 1)
    engine = prepare_trees(trees, [(j,) for j in range(9)], *SETTINGS[setting]).tables
    if n_outputs == 3:
        engine = dataclasses.replace(engine, limit=0.0)  # tables of each run are filled anew
    rows = random_rows(44, 300, 9)
    filled = []
    fill = _tree_tables.TableEngine.fill
    monkeypatch.setattr(_tree_tables.TableEngine, "fill", lambda *given: filled.append(1) or fill(*given))
    cell_by_cell = [engine.solve(columns_of(rows[:n]), find(index), order) for n in (1, 3, 8)]
    assert not filled
    many = engine.solve(columns_of(rows), find(index), order)
    assert filled
    assert len(rows) > engine.one_by_one_rows(order) >= 12
    one_by_one = [engine.solve(columns_of(rows[:n]), find(index), order) for n in (1, 3, 4, 5)]
    for few in [*cell_by_cell, *one_by_one]:
        assert_same_bits(few, many, slice(len(few.full)))


@pytest.mark.parametrize("first", [True, False])
def test_the_rows_of_a_first_call_take_the_quicker_way(first, monkeypatch):
    # a step of a row takes as long as three of a filling; a service that asks row by row gets its tables sooner
    engine = prepare_trees(random_trees(4, n_features=12, depth=10), [(j,) for j in range(12)]).tables
    filled, _, one_row = engine.work(1)
    even = int(filled / (3.0 * one_row))
    assert even > 25
    filled_now = []
    monkeypatch.setattr(
        _tree_tables.TableEngine,
        "fill",
        lambda *given: filled_now.append(1) or np.zeros(engine.of_order(1).rows.table_start[-1] + 8),
    )
    rows = columns_of(random_rows(44, even + 1, 12))
    if first:
        engine.solve(rows[:, :even].copy(), SHAPLEY, 1)
        assert not filled_now
        engine.answered[0] = 0
        engine.solve(rows, SHAPLEY, 1)
    else:
        patience = int(max(16.0, 0.1 * filled / one_row))
        assert patience < even
        for i in range(patience):
            engine.solve(rows[:, i : i + 1].copy(), SHAPLEY, 1)
        assert not filled_now
        engine.solve(rows[:, :1].copy(), SHAPLEY, 1)
    assert filled_now


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_memory_of_steps_is_stated(n_outputs):
    trees = random_trees(9, n_features=9, depth=9, n_outputs=n_outputs)
    steps = make_steps(trees, prepare_trees(trees, [(j,) for j in range(9)]).deep.shape)
    arrays = [steps.tree_start, *steps[2:], *(getattr(steps.nodes, name) for name in steps.nodes._fields[:8])]
    assert steps._fields[:2] == ("tree_start", "nodes") == Steps._fields[:2]
    needed = sum(array.nbytes for array in arrays)
    assert 0.9 * needed <= steps_bytes(trees) <= 1.1 * needed + 100


def test_steps_are_the_splits_in_depth_first_order():
    trees = random_trees(10, n_features=9, depth=6)
    shape = prepare_trees(trees, [(j,) for j in range(9)]).deep.shape
    steps = make_steps(trees, shape)
    found = []

    def walk(q, level, above):
        if trees.feature[q] < 0:
            return
        i, j = len(found), trees.feature[q]
        found.append((level, j, trees.threshold[q], above.get(j, 0)))
        for side, child in enumerate((trees.left[q], trees.right[q])):
            is_leaf = trees.feature[child] < 0
            assert steps.is_leaf[i, side] == is_leaf
            assert steps.value[i, side, 0] == (trees.value[child, 0] if is_leaf else 0.0)
            walk(child, level + 1, {**above, j: level + 1})
        assert steps.end[i] == len(found)

    for k in range(trees.n_trees):
        assert steps.tree_start[k] == len(found)
        walk(trees.tree_start[k], 0, {})
    made = zip(steps.level, steps.nodes.feature, steps.nodes.threshold, steps.above, strict=True)
    assert found == [tuple(step) for step in made]


def test_trees_without_tables_are_prepared_once():
    prepared = prepare_trees(random_trees(11, n_features=9, depth=9), [(j,) for j in range(9)], BACKGROUND, memory_limit=0.0)
    assert prepared.tables is None
    assert prepared.rest is prepared.deep


def test_tables_beyond_any_cache_give_the_bits_of_a_row_however_rows_are_cut():
    trees, rows = complete_forest(8, 25, 20), random_rows(44, 700, 20)
    engine = prepare_trees(trees, [(j,) for j in range(20)]).tables
    engine.answered[0] = 10**6  # tables, however few the rows
    assert 8 * engine.of_order(1).rows.table_start[-1] > 2**25  # see CACHED_CELLS in tables.cpp
    every = engine.solve(columns_of(rows), SHAPLEY, 1)
    around_parts = slice(0, 319), slice(0, 321), slice(319, 700), slice(600, 700)  # see PARTS in sweep.cpp
    for part in (*map(slice, (1, 4, 5, 24, 25)), *around_parts):
        assert_same_bits(engine.solve(columns_of(rows[part]), SHAPLEY, 1), every, part)
    deep = prepare_trees(trees, [(j,) for j in range(20)]).deep.solve(columns_of(rows[:24]), SHAPLEY, 1)
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
    engine, twin = (prepare_trees(trees, [(j,) for j in range(7)]).tables for _ in range(2))
    engine.answered[0] = twin.answered[0] = 10**6
    tables = twin.tables.value
    assert tables.routes.is_plain
    twin.__dict__["tables"] = Handle(tables._replace(routes=tables.routes._replace(is_plain=False)))
    many = engine.solve(columns_of(rows), SHAPLEY, 1)
    for i in range(len(rows)):
        one, other = engine.solve(columns_of(rows[[i]]), SHAPLEY, 1), twin.solve(columns_of(rows[[i]]), SHAPLEY, 1)
        assert_same_bits(one, other)
        assert_same_bits(one, many, [i])


def test_rows_are_rounded_as_they_are_compared():
    forest = complete_forest(3, 6, 1)
    threshold = forest.threshold.astype(np.float32).astype(float)
    trees = dataclasses.replace(forest, threshold=threshold, single_precision=True)
    rows = np.nextafter(threshold[trees.feature >= 0], np.inf)[
        :, None
    ]  # right of a split before they are rounded, left after that
    engine = prepare_trees(trees, [(0,)]).tables
    for answered in (0, 10**6):
        engine.answered[0] = answered
        for part in (rows, *rows[:, None]):
            solution = engine.solve(columns_of(part), SHAPLEY, 1)
            assert_close(solution.full + trees.constant, margin(trees, part), solution.scale[:, None], n_terms=6)

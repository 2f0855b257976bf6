"""Deep trees with a background, leaf by leaf, against walks of pairs of rows and against the definition."""

import dataclasses

import numpy as np
import pytest

from exactshap.semivalues import available, beta, find
from exactshap.solvers.trees import _leaf_engine as _tree_leaves
from exactshap.solvers.trees import prepare_trees
from exactshap.solvers.trees._leaf_engine import LeafEngine
from exactshap.solvers.trees._path_engine import WalkEngine
from exactshap.trees import build
from exactshap.trees.ensemble import complete_forest
from test_solvers.trees_by_hand import assert_same_bits, random_rows, random_tree, random_trees
from tolerances import assert_close
from trees_by_rule import chain

SHAPLEY = find("shapley")
ROWS = random_rows(20, 300, 14)
BACKGROUND = random_rows(21, 200, 14)
WEIGHTS = np.random.default_rng(22).random(200) * (np.arange(200) % 5 > 0)
DENSE = {"dense": 16, "sparse": 0, "both": 6}


@pytest.fixture
def few_rows(monkeypatch):
    """Let thirty rows and more go together, whatever pays on large forests."""
    monkeypatch.setattr(LeafEngine, "one_by_one_rows", 30)


@pytest.fixture(params=DENSE)
def most_dense(request, monkeypatch, few_rows):
    """Leaves of all sizes by tables of patterns, by pairs of patterns, and some by each."""
    monkeypatch.setattr(_tree_leaves, "most_dense", lambda n_background: DENSE[request.param])
    return DENSE[request.param]


def engine(trees, n_players, background, weights=None):
    """Return the leaf engine of all trees."""
    return prepare_trees(trees, [(j,) for j in range(n_players)], background, weights).deep


def wide_trees(n_outputs=1):
    return random_trees(31, n_features=14, n_trees=4, depth=9, n_outputs=n_outputs)


def assert_same(part, twin, n_terms=4000):
    """Compare an engine's answer with its twin's, value by value."""
    scale = np.maximum(part.scale, twin.scale)
    assert_close(part.values, twin.values, scale, n_terms=n_terms, n_players=14)
    if part.values.shape[2] == 1:  # of several outputs, walks add up the magnitudes of each
        assert_close(part.scale, twin.scale, scale, n_terms=n_terms)
    assert np.all(part.scale >= twin.scale * (1.0 - 1e-12))
    assert np.array_equal(part.full, twin.full)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_leaves_agree_with_walks(most_dense, weights, n_outputs):
    deep = engine(wide_trees(n_outputs), 14, BACKGROUND, weights)
    columns = np.ascontiguousarray(ROWS[:40].T)
    for index in [*available(), beta(4, 1)] if n_outputs == 1 and weights is None else ["shapley"]:
        assert_same(deep.solve(columns, find(index), 1), WalkEngine.solve(deep, columns, find(index), 1))


def test_a_row_has_the_same_bits_in_every_call_and_block(most_dense, monkeypatch):
    deep = engine(wide_trees(), 14, BACKGROUND, WEIGHTS)
    whole = deep.solve(np.ascontiguousarray(ROWS.T), SHAPLEY, 1)
    for start, stop in ((0, 1), (1, 3), (7, 20), (100, 140), (40, 300), (299, 300)):
        assert_same_bits(deep.solve(np.ascontiguousarray(ROWS[start:stop].T), SHAPLEY, 1), whole, slice(start, stop))
    monkeypatch.setattr(_tree_leaves, "BLOCK_ROWS", 77)
    assert_same_bits(deep.solve(np.ascontiguousarray(ROWS.T), SHAPLEY, 1), whole)


def test_leaves_of_over_32_players_are_walked(most_dense):
    """A chain of 45 columns beside other trees: its last leaves have more players than a pattern has bits."""
    others = [random_tree(np.random.default_rng(seed), 14, 6, 1, False) for seed in range(2)]
    long = chain(45, 45, np.random.default_rng(9).normal(size=91))
    long = dataclasses.replace(long, threshold=np.full(91, -0.5))
    trees = build([others[0], long, others[1]], n_features=45, constant=[1.0], less_equal=True, single_precision=False)
    deep = engine(trees, 45, np.maximum(random_rows(1, 30, 45), -0.6))
    columns = np.ascontiguousarray(np.maximum(random_rows(2, 20, 45), -0.6).T)
    assert_same(deep.solve(columns, SHAPLEY, 1), WalkEngine.solve(deep, columns, SHAPLEY, 1))


def test_more_background_makes_more_leaves_dense():
    assert _tree_leaves.most_dense(1000) <= _tree_leaves.most_dense(10_000) <= _tree_leaves.MAX_DENSE
    deep = engine(wide_trees(), 14, BACKGROUND)
    few, many = (_tree_leaves.leaf_costs(deep.trees, deep.shape, n).sum() for n in (100, 10_000))
    assert few <= many < 20 * few
    for order in (1, 2):
        assert deep.memory(100, order) > 0
        assert deep.work(order) > 0


def test_rows_go_together_where_that_is_cheaper():
    """Wide leaves and few reached nodes keep rows alone for longer; so do few background rows of deep leaves."""
    deep, shallow = (complete_forest(depth, 4, 14) for depth in (10, 3))
    few, many = (prepare_trees(deep, [(j,) for j in range(14)], BACKGROUND[:n], memory_limit=0.0).deep for n in (20, 200))
    assert few.one_by_one_rows > many.one_by_one_rows > 1.0
    assert (
        prepare_trees(shallow, [(j,) for j in range(14)], BACKGROUND, memory_limit=0.0).deep.one_by_one_rows
        < many.one_by_one_rows
    )

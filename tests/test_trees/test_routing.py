"""The one definition of "goes left", held against the rules in words."""

import numpy as np
import pytest

from exactshap.trees import apply, build, decisions, margin, prepared, take_trees
from tolerances import assert_close
from trees_by_rule import chain, goes_left, leaf, nasty_rows, random_trees

CASES = [(le, single, seed) for le in (True, False) for single in (True, False) for seed in (0, 1, 2)]


@pytest.mark.parametrize(("less_equal", "single", "seed"), CASES)
def test_decisions_follow_the_rules(less_equal, single, seed):
    trees = random_trees(seed, less_equal=less_equal, single_precision=single)
    X = nasty_rows(seed, 60, 4)
    got = decisions(trees, X)
    assert got.shape == (trees.n_nodes, 60)
    for q in np.flatnonzero(trees.feature >= 0):
        expected = [goes_left(trees, q, x) for x in X[:, trees.feature[q]]]
        np.testing.assert_array_equal(got[q], expected, err_msg=f"node {q}")
    assert not got[trees.feature < 0].any()


@pytest.mark.parametrize(("less_equal", "single", "seed"), CASES[:6])
def test_leaves_and_margins_follow_the_rules(less_equal, single, seed):
    trees = random_trees(seed, n_outputs=2, less_equal=less_equal, single_precision=single)
    X = nasty_rows(seed + 10, 40, 4)
    expected = np.array([[leaf(trees, k, row) for k in range(trees.n_trees)] for row in X])
    np.testing.assert_array_equal(apply(trees, X), expected)
    assert_close(margin(trees, X), trees.constant + trees.value[expected].sum(axis=1), np.abs(trees.value).max(), 4)


def test_single_precision_rounds_before_it_compares():
    raw = chain(1)
    x = np.array([[0.5 + 1e-9], [0.5], [0.5 + 1e-6]])
    single = build([raw], n_features=1, constant=[0.0], less_equal=True, single_precision=True)
    double = build([raw], n_features=1, constant=[0.0], less_equal=True, single_precision=False)
    np.testing.assert_array_equal(decisions(single, x)[0], [1, 1, 0])
    np.testing.assert_array_equal(decisions(double, x)[0], [0, 1, 0])
    assert prepared(single, np.array([[1e300]]))[0, 0] == np.inf


def test_a_chain_of_a_thousand_splits():
    trees = build([chain(1000)], n_features=1, constant=[0.0], less_equal=True, single_precision=False)
    x = np.array([[0.0], [500.0], [999.0], [2000.0]])
    np.testing.assert_array_equal(margin(trees, x)[:, 0], [1000, 1500, 1999, 2000])


def test_no_rows_no_trees_and_stumps():
    empty = build([], n_features=2, constant=[3.0], less_equal=True, single_precision=False)
    np.testing.assert_array_equal(margin(empty, np.zeros((2, 2))), [[3.0], [3.0]])
    trees = random_trees(0)
    assert apply(trees, np.empty((0, 4))).shape == (0, 3)
    assert decisions(trees, np.empty((0, 4))).shape == (trees.n_nodes, 0)


def test_any_layout_of_rows_is_taken():
    trees = random_trees(1)
    X = nasty_rows(3, 30, 4)
    expected = margin(trees, X)
    reversed_view = np.ascontiguousarray(X[::-1])[::-1]
    read_only = X.copy()
    read_only.setflags(write=False)
    for view in (np.asfortranarray(X), reversed_view, read_only, X.astype(object).astype(float)):
        np.testing.assert_array_equal(margin(trees, view), expected)


def test_take_trees_keeps_their_leaves():
    trees = random_trees(2, n_trees=5)
    X = nasty_rows(4, 30, 4)
    chosen = [3, 0, 3]
    some = take_trees(trees, np.array(chosen))
    values = trees.value[apply(trees, X)][:, chosen]
    assert_close(margin(some, X), trees.constant + values.sum(axis=1), np.abs(values).max(), 4)
    assert take_trees(trees, np.arange(5)) is trees

"""Trees are built or refused with their tree and node, and rows routed by the rules in words, linear leaves included."""

import dataclasses
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from exactshap.errors import ModelFormatError
from exactshap.trees import LeafFunction, RawTree, TreeModel, apply, build, decisions, loads, margin, prepared, take_trees
from exactshap.trees.ensemble import _build
from tolerances import assert_close
from trees_by_rule import chain, goes_left, leaf, leaf_answer, linear_trees, nasty_rows, random_trees


def made(*raw, constant=(0.0,), n_features=2):
    return build(raw, n_features=n_features, constant=constant, less_equal=True, single_precision=False)


def changed(name, node, value):
    raw = chain(3)
    array = getattr(raw, name).astype(float if isinstance(value, float) else getattr(raw, name).dtype)
    array[node] = value
    return replace(raw, **{name: array})


FAULTS = [
    (changed("right", 1, 91), r"tree 1 node 1: right child 91 out of range \[0, 7\)"),
    (changed("left", 0, -5), r"tree 1 node 0: left child -5 out of range"),
    (changed("right", 2, -1), r"tree 1 node 2: right child -1 out of range"),
    (changed("right", 2, 0), r"tree 1 node 0: reached twice.*cycle"),
    (changed("right", 2, 3), r"tree 1 node 3: reached twice"),
    (changed("feature", 1, 2), r"tree 1 node 1: feature is not valid for 2 columns. Got -?\d"),
    (changed("feature", 1, -1), r"tree 1 node 1: feature is not valid"),
    (changed("threshold", 2, np.nan), r"tree 1 node 2: threshold is not valid"),
    (changed("value", 4, np.nan), r"tree 1 node 4: leaf value is not valid"),
    (changed("value", 4, np.inf), r"tree 1 node 4: leaf value is not valid"),
    (changed("cover", 5, -1.0), r"tree 1 node 5: cover is not valid"),
    (changed("cover", 5, np.nan), r"tree 1 node \d: cover is not valid"),
    (replace(chain(3), threshold=np.zeros(2)), r"tree 1: arrays of 7 nodes differ in length. Got \{'threshold': 2\}"),
    (replace(chain(3), output=3), r"tree 1: .*output 3 out of range"),
    (replace(chain(3), root=9), r"tree 1: "),
    (replace(chain(3), value=np.zeros((7, 2))), r"tree 1: leaves for 2 outputs"),
    (replace(chain(3), missing=np.full(7, 5)), r"tree 1 node 0: missing direction is not valid"),
]


@pytest.mark.parametrize(("raw", "text"), FAULTS, ids=[text[:40] for _, text in FAULTS])
def test_faults_name_tree_and_node(raw, text):
    with pytest.raises(ModelFormatError, match=text):
        made(chain(2), raw)


def test_constants_must_be_finite_and_trees_not_empty():
    with pytest.raises(ModelFormatError, match=r"constant \(base score\) must be finite"):
        made(chain(1), constant=(np.nan,))
    with pytest.raises(ModelFormatError, match="tree 0: has no nodes"):
        made(replace(chain(1), feature=np.empty(0, int)))


def test_sums_must_be_finite():
    with pytest.raises(ModelFormatError, match="leaf values are too large"):
        made(changed("value", 4, 1.5e308), changed("value", 4, 1.5e308))


def test_depth_and_size_are_bounded(monkeypatch):
    monkeypatch.setattr(_build, "MAX_DEPTH", 50)
    with pytest.raises(ModelFormatError, match=r"tree 0 node \d+: deeper than 50 levels"):
        made(chain(60))
    monkeypatch.setattr(_build, "MAX_NODES", 20)
    with pytest.raises(ModelFormatError, match="too many nodes"):
        made(chain(20))
    monkeypatch.setattr(_build, "MAX_CELLS", 30)
    with pytest.raises(ModelFormatError, match=r"7 nodes x 5 outputs would need .* GiB"):
        made(replace(chain(3), output=1), constant=np.zeros(5))


def test_unreached_nodes_are_dropped():
    raw = chain(3)
    feature = np.where(np.arange(7) == 1, 0, raw.feature)
    left, right = raw.left.copy(), raw.right.copy()
    left[1] = right[1] = -1
    trees = made(replace(raw, feature=feature, left=left, right=right))
    assert trees.n_nodes == 3


def test_values_that_no_row_reaches_may_be_anything():
    value = np.full(7, np.nan)
    value[3:] = 1.0
    assert np.isfinite(made(replace(chain(3), value=value)).value).all()


def test_values_are_taken_in_any_layout():
    value = np.asfortranarray(np.arange(14.0).reshape(7, 2))
    np.testing.assert_array_equal(made(replace(chain(3), value=value), constant=np.zeros(2)).value[-1], value[-1])


# --- routing by the rules in words ------------------------------------------------------------------------------------


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


# --- linear leaves ----------------------------------------------------------------------------------------------------


FILE = Path(__file__).parents[1] / "data" / "trees" / "lightgbm_linear.txt"
STUMP = RawTree(
    feature=np.array([0, -1, -1]),
    threshold=np.array([0.5, 0.0, 0.0]),
    left=np.array([1, -1, -1]),
    right=np.array([2, -1, -1]),
    value=np.array([0.0, 1.0, 2.0]),
)


def rows(seed, n_rows, n_features):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n_rows, n_features)) < 0.2, np.nan, rng.normal(size=(n_rows, n_features)))


def built(functions, n_features=3, n_outputs=1):
    raw = dataclasses.replace(STUMP, functions=functions)
    if n_outputs > 1:
        raw = dataclasses.replace(raw, value=np.tile(raw.value[:, None], n_outputs))
    return build([raw], n_features=n_features, constant=np.zeros(n_outputs), less_equal=True, single_precision=False)


def by_rule(trees, X):
    return np.array([trees.constant + sum(leaf_answer(trees, leaf(trees, k, x), x) for k in range(trees.n_trees)) for x in X])


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_margin_by_the_rule_in_words(n_outputs):
    trees, X = linear_trees(1, n_trees=5, n_outputs=n_outputs), rows(2, 60, 5)
    assert_close(margin(trees, X), by_rule(trees, X), 30.0, 30)


def test_parts_of_an_ensemble_keep_their_functions():
    trees, X = linear_trees(3, n_trees=4, n_outputs=2), rows(4, 20, 5)
    some = take_trees(trees, [2, 0])
    assert_close(margin(some, X), by_rule(some, X), 30.0, 30)
    model = TreeModel(trees, "none", "mine", "target", ("a", "b"), False, np.full(4, -1, np.int32), np.zeros(4, np.int32))
    assert_close(model.pick("b").predict(X), by_rule(trees, X)[:, 1], 30.0, 30)
    assert "linear leaves" in repr(trees)


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ({0: LeafFunction([0], [1.0])}, "node 0: has a linear function"),
        ({7: LeafFunction([0], [1.0])}, "tree 0: no node 7"),
        ({1: LeafFunction([3], [1.0])}, "leaf 1: a column is not valid for 3 columns"),
        ({1: LeafFunction([-1], [1.0])}, "leaf 1: a column is not valid"),
        ({1: LeafFunction([0, 1], [1.0])}, "leaf 1: columns and coefficients differ in length"),
        ({1: LeafFunction([0.5], [1.0])}, "leaf 1: columns and coefficients differ"),
        ({1: LeafFunction([0], [np.inf])}, "leaf 1: the linear function must be finite"),
        ({1: LeafFunction([0], [1.0], np.nan)}, "leaf 1: the linear function must be finite"),
        ({1: LeafFunction([0], [[1.0, 2.0]])}, "leaf 1: coefficients of 2 outputs"),
    ],
)
def test_building_refuses(functions, said):
    with pytest.raises(ModelFormatError, match=re.escape(said)):
        built(functions)


def test_one_output_of_several():
    raw = dataclasses.replace(STUMP, output=1, functions={2: LeafFunction([1], [3.0], 0.5)})
    trees = build([raw], n_features=2, constant=np.zeros(2), less_equal=True, single_precision=False)
    assert margin(trees, [[1.0, 2.0]]).tolist() == [[0.0, 2.0 + 0.5 + 6.0]]


@pytest.mark.parametrize(
    ("entry", "replacement", "said"),
    [
        ("is_linear=1", "is_linear=2", "is_linear must be within [0, 1]"),
        ("is_linear=1", "is_linear=yes", "is_linear must be a whole number"),
        (r"\nleaf_const=[^\n]*", "", "leaf_const is missing"),
        (r"\nnum_features=[^\n]*", "", "num_features is missing"),
        (r"num_features=(\d+) ", "num_features=9 ", "leaf_features must hold"),
        (r"num_features=(\d+) ", "num_features=-1 ", "num_features must be within"),
        (r"num_features=(\d+) ", "num_features=99999999999 ", "num_features must be within"),
        (r"leaf_coeff=[^ ]*", "leaf_coeff=nan", "the linear function must be finite"),
        (r"leaf_coeff=[^ ]*", "leaf_coeff=", "leaf_coeff must hold"),
        (r"leaf_features=\d+", "leaf_features=77", "a column is not valid"),
        (r"leaf_features=\d+", "leaf_features=-3", "a column is not valid"),
    ],
)
def test_files_with_damaged_functions(entry, replacement, said):
    head, *trees = FILE.read_text().split("Tree=")
    damaged = head + "Tree=".join(["", *trees[:1], re.sub(entry, replacement, trees[1], count=1), *trees[2:]])
    damaged = re.sub(r"tree_sizes=[^\n]*\n", "", damaged)
    with pytest.raises(ModelFormatError, match=re.escape(said)):
        loads(damaged.encode())

"""Linear functions of leaves: predictions by the rule in words, what building refuses, what files may not say."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from exactshap.errors import ModelFormatError
from exactshap.trees import LeafFunction, RawTree, TreeModel, build, loads, margin, take_trees
from tolerances import assert_close
from trees_by_rule import leaf, leaf_answer, linear_trees

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

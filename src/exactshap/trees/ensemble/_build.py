"""Check raw trees and lay them out as :class:`FlatTrees`, from live models and files alike."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exactshap._native import kernel
from exactshap.errors import ModelFormatError, memory_needed, message
from exactshap.trees.ensemble._flat import MISSING_RIGHT, FlatTrees
from exactshap.trees.ensemble._forest import RawForest, RawTree, joined
from exactshap.trees.ensemble._linear import collected

MAX_DEPTH = 10_000
MAX_NODES = 100_000_000
# Leaf values of all nodes and outputs: 4 GiB.
MAX_CELLS = 2**29

# As in layout.cpp: the faults of a node, and the array of each
FAULTS = (
    ("", ""),
    ("left child", "left"),
    ("right child", "right"),
    ("reached twice. The nodes form a cycle or share a child", ""),
    ("deeper than {} levels", ""),
    ("feature", "feature"),
    ("threshold", "threshold"),
    ("leaf value", "value"),
    ("cover", "cover"),
    ("missing direction", "missing"),
)


class Forest(NamedTuple):
    """Hold trees as a library stores them; children are numbered within a tree, roots over all trees."""

    offset: np.ndarray  # int64 (n_trees + 1,): the trees' first nodes
    root: np.ndarray  # int64 (n_trees,)
    feature: np.ndarray  # int64 (n_nodes,); left and right likewise
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray  # float64 (n_nodes,)
    cover: np.ndarray  # float64 (n_nodes,), read at leaves
    missing: np.ndarray  # int8 (n_nodes,)
    zero_is_missing: np.ndarray  # bool (n_nodes,)
    value: np.ndarray  # float64 (n_nodes, n_outputs), read at leaves


class Laid(NamedTuple):
    """Hold the reachable nodes as in :class:`~exactshap.trees.FlatTrees`; ``order`` has their numbers in the forest."""

    tree_start: np.ndarray
    order: np.ndarray  # int64 (n_nodes,)
    feature: np.ndarray
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray
    cover: np.ndarray
    missing: np.ndarray
    zero_is_missing: np.ndarray
    value: np.ndarray


lay_out = kernel("trees.lay_out(forest, laid, n_features, max_depth)")


def build(
    raw: Sequence[RawTree] | RawForest, *, n_features: int, constant: np.ndarray, less_equal: bool, single_precision: bool
) -> FlatTrees:
    """Lay trees out in one set of arrays. Parents come before children, ``right == left + 1``, leaf covers are summed upwards.

    Parameters
    ----------
    raw : sequence of RawTree, or RawForest
    n_features : int
    constant : array of shape (n_outputs,)
        Constant that the trees are added to.
    less_equal : bool
        Whether a value equal to the threshold goes left.
    single_precision : bool
        Whether the library compares in float32.

    Returns
    -------
    trees : FlatTrees

    Raises
    ------
    ModelFormatError
        Naming tree and node, for child numbers out of range, cycles, shared nodes, columns out of range, values or linear functions that are
        not finite, negative covers and trees deeper than ``MAX_DEPTH``.

    Examples
    --------
    >>> from exactshap.trees import RawTree, build
    >>> stump = RawTree(
    ...     feature=np.array([0, -1, -1]), threshold=np.array([0.5, 0.0, 0.0]), left=np.array([1, -1, -1]),
    ...     right=np.array([2, -1, -1]), value=np.array([0.0, 1.0, 2.0]), cover=np.array([0.0, 3.0, 1.0]),
    ... )
    >>> trees = build([stump], n_features=1, constant=np.zeros(1), less_equal=True, single_precision=False)
    >>> trees.cover.tolist()
    [4.0, 3.0, 1.0]
    """
    constant = np.atleast_1d(np.asarray(constant, float)).copy()
    # Before anything is allocated: a file's claim of billions of nodes must not take the memory first
    _check_totals(raw.sizes if isinstance(raw, RawForest) else np.array([len(t.feature) for t in raw], np.int64), constant)
    forest = raw if isinstance(raw, RawForest) else joined(raw, len(constant))
    laid = _laid(forest, len(constant), int(n_features))
    start, count, words = _category_sets(forest, laid.order)
    trees = FlatTrees(
        **{name: values for name, values in laid._asdict().items() if name != "order"},
        category_start=start,
        category_count=count,
        category_words=words,
        constant=constant,
        n_features=int(n_features),
        less_equal=bool(less_equal),
        single_precision=bool(single_precision),
        linear=collected(forest.functions, laid.feature, laid.order, int(n_features), len(constant)),
    )
    # Finite leaves can still add up to infinity, which no check of single nodes sees
    if not np.isfinite(largest_sum(trees)):
        raise ModelFormatError("The leaf values are too large", "Their sum over the trees overflows")
    return trees


def largest_sum(trees: FlatTrees) -> float:
    """Bound the sum of magnitudes in one prediction."""
    with np.errstate(over="ignore"):
        return float(trees.largest.sum() + np.abs(trees.constant).max(initial=0.0))


def _check_totals(sizes: np.ndarray, constant: np.ndarray) -> None:
    n_nodes = int(sizes.sum())
    if n_nodes > MAX_NODES:
        raise ModelFormatError("The model has too many nodes", f"Got {n_nodes}; the limit is {MAX_NODES}")
    if n_nodes * len(constant) > MAX_CELLS:
        needed = 8.0 * float(n_nodes) * len(constant)
        raise ModelFormatError(
            "The table of leaf values does not fit",
            f"{n_nodes} nodes x {len(constant)} outputs would need {memory_needed(needed, 8.0 * MAX_CELLS)}",
        )
    if not np.all(np.isfinite(constant)):
        raise ModelFormatError("The model's constant (base score) must be finite", f"Got {constant.tolist()}")
    if (sizes == 0).any():
        raise ModelFormatError(f"tree {int(np.argmin(sizes))}: has no nodes")


def _laid(forest: RawForest, n_outputs: int, n_features: int) -> Laid:
    """Return the reachable nodes by tree and level. Siblings are adjacent, and covers summed upwards."""
    given = _given(forest, n_outputs)
    laid = _empty_layout(len(forest.sizes), len(given.left), n_outputs)
    n_reached, fault, q, place = lay_out(given, laid, n_features, MAX_DEPTH)
    if fault:
        raise ModelFormatError(_fault(given, laid.cover[place], n_features, fault, q))
    # All nodes are reachable: no copy
    if n_reached == len(laid.order):
        return laid
    # Unreachable nodes (deleted ones that files keep) are left out; copies release their memory
    return Laid(laid.tree_start, *(values[:n_reached].copy() for values in laid[1:]))


def _empty_layout(n_trees: int, n: int, n_outputs: int) -> Laid:
    """Allocate arrays for ``n`` nodes."""
    numbers = functools.partial(np.empty, n)
    return Laid(
        np.empty(n_trees + 1, np.int64),
        order=numbers(np.int64),
        feature=numbers(np.int32),
        left=numbers(np.int32),
        right=numbers(np.int32),
        threshold=numbers(),
        cover=numbers(),
        missing=numbers(np.int8),
        zero_is_missing=numbers(bool),
        value=np.empty((n, n_outputs)),
    )


def _given(forest: RawForest, n_outputs: int) -> Forest:
    """Return a forest for the kernel, without thresholds of category splits."""
    n, offset, threshold = len(forest.left), forest.offset, forest.threshold
    if forest.sets is not None:
        # What a library keeps in their place, such as the number of a set,
        # need not be a valid threshold; the caller's array stays
        threshold = threshold.copy()
        threshold[forest.sets[0]] = 0.0
    return Forest(
        offset,
        offset[:-1] + forest.root,
        feature=np.ascontiguousarray(forest.feature, np.int64),
        left=np.ascontiguousarray(forest.left, np.int64),
        right=np.ascontiguousarray(forest.right, np.int64),
        threshold=np.ascontiguousarray(threshold, float),
        cover=np.zeros(n) if forest.cover is None else np.ascontiguousarray(forest.cover, float),
        missing=np.full(n, MISSING_RIGHT, np.int8) if forest.missing is None else forest.missing,
        zero_is_missing=np.zeros(n, bool) if forest.zero_is_missing is None else forest.zero_is_missing,
        value=np.ascontiguousarray(forest.dense_values(n_outputs), float),
    )


def _fault(given: Forest, cover: float, n_features: int, fault: int, q: int) -> str:
    """Say what is wrong with node q."""
    # The last tree that starts at or before q
    k = int(np.searchsorted(given.offset, q, side="right")) - 1
    (what, name), where = FAULTS[fault], f"tree {k} node {q - given.offset[k]}"
    if name == "":
        return message(f"{where}: {what.format(MAX_DEPTH)}")
    got = cover if name == "cover" else getattr(given, name)[q]
    if name in ("left", "right"):
        return message(f"{where}: {what} {got} out of range [0, {given.offset[k + 1] - given.offset[k]})")
    return message(f"{where}: {what} is not valid{f' for {n_features} columns' if name == 'feature' else ''}", f"Got {got}")


def _category_sets(forest: RawForest, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, count = np.full(len(order), -1, np.int64), np.zeros(len(order), np.int32)
    if forest.sets is None:
        return start, count, np.zeros(1, np.uint32)
    nodes, starts, counts, words = forest.sets
    # Sets are listed by the file's nodes; -1 marks unreachable ones
    number = np.full(len(forest.left), -1, np.int64)
    number[order] = np.arange(len(order))
    reached = number[nodes] >= 0
    start[number[nodes[reached]]], count[number[nodes[reached]]] = starts[reached], counts[reached]
    return start, count, words if len(words) else np.zeros(1, np.uint32)


def complete_forest(depth: int, n_trees: int, n_features: int) -> FlatTrees:
    """Return complete trees with random splits of standard normal columns, to measure speed."""
    # Always the same forest, so that measured figures can be compared
    rng = np.random.default_rng(0)
    place = np.arange(2 ** (depth + 1) - 1)
    is_split = place < 2**depth - 1
    raw = [
        RawTree(
            feature=np.where(is_split, rng.integers(0, n_features, len(place)), -1),
            threshold=rng.normal(size=len(place)) / 2.0,
            # A complete tree in level order: the children of node q are 2q + 1 and 2q + 2
            left=np.where(is_split, 2 * place + 1, -1),
            right=np.where(is_split, 2 * place + 2, -1),
            value=rng.normal(size=len(place)),
            cover=np.ones(len(place)),
        )
        for _ in range(n_trees)
    ]
    return build(raw, n_features=n_features, constant=np.zeros(1), less_equal=True, single_precision=False)

"""Check raw trees and lay them out: the only way to make :class:`FlatTrees`, for live models and for files alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactshap.errors import ModelFormatError, memory_needed, message
from exactshap.trees.ensemble._flat import MISSING_RIGHT, FlatTrees
from exactshap.trees.ensemble._forest import RawForest, RawTree, joined

__all__ = ["MAX_CELLS", "MAX_DEPTH", "MAX_NODES", "RawTree", "build", "largest_sum"]

MAX_DEPTH = 10_000
MAX_NODES = 100_000_000
MAX_CELLS = 2**29  # leaf values of all nodes and outputs: 4 GiB


def build(
    raw: Sequence[RawTree] | RawForest, *, n_features: int, constant: np.ndarray, less_equal: bool, single_precision: bool
) -> FlatTrees:
    """Return the trees in one set of arrays: parents before children, ``right == left + 1``, leaf covers summed upwards.

    Raises :class:`exactshap.errors.ModelFormatError` naming tree and node for child numbers out of range, cycles, shared nodes, columns out of
    range, values that are not finite, negative covers and trees deeper than ``MAX_DEPTH``.
    """
    constant = np.atleast_1d(np.asarray(constant, float)).copy()
    _check_totals(raw.sizes if isinstance(raw, RawForest) else np.array([len(t.feature) for t in raw], np.int64), constant)
    forest = raw if isinstance(raw, RawForest) else joined(raw, len(constant))
    offset = forest.offset
    _check_children(forest, offset)
    order, left, cover = _breadth_first(forest, offset)
    internal = left >= 0
    start, count, words = _category_sets(forest, order)
    missing = np.full(len(order), MISSING_RIGHT, np.int8) if forest.missing is None else forest.missing[order]
    zero = np.zeros(len(order), bool) if forest.zero_is_missing is None else forest.zero_is_missing[order] & internal
    owner = np.searchsorted(offset, order, side="right") - 1
    trees = FlatTrees(
        tree_start=np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(forest.sizes)))]).astype(np.int64),
        feature=np.where(internal, forest.feature[order], -1).astype(np.int32),
        threshold=np.where(internal & (start < 0), forest.threshold[order], 0.0),
        left=left,
        right=np.where(internal, left + 1, -1).astype(np.int32),
        missing=np.where(internal, missing, MISSING_RIGHT).astype(np.int8),
        zero_is_missing=zero,
        category_start=start,
        category_count=count,
        category_words=words,
        cover=cover,
        value=np.where(internal[:, None], 0.0, forest.dense_values(len(constant))[order]),
        constant=constant,
        n_features=int(n_features),
        less_equal=bool(less_equal),
        single_precision=bool(single_precision),
    )
    _check_numbers(trees, owner, order - offset[owner])
    if not np.isfinite(largest_sum(trees)):
        raise ModelFormatError(message("The leaf values are too large", "Their sum over the trees overflows"))
    return trees


def largest_sum(trees: FlatTrees) -> float:
    """Return the largest sum of magnitudes that one prediction can add up."""
    with np.errstate(over="ignore"):
        leaves = np.abs(trees.value).max(axis=1)
        largest = np.maximum.reduceat(leaves, trees.tree_start[:-1]) if trees.n_trees else np.zeros(1)
        return float(largest.sum() + np.abs(trees.constant).max(initial=0.0))


def _check_totals(sizes: np.ndarray, constant: np.ndarray) -> None:
    if sizes.sum() > MAX_NODES:
        raise ModelFormatError(message("The model has too many nodes", f"Got {sizes.sum()}; the limit is {MAX_NODES}"))
    if sizes.sum() * len(constant) > MAX_CELLS:
        needed = 8.0 * float(sizes.sum()) * len(constant)
        raise ModelFormatError(
            message(
                "The table of leaf values does not fit",
                f"{sizes.sum()} nodes x {len(constant)} outputs would need {memory_needed(needed, 8.0 * MAX_CELLS)}",
            )
        )
    if not np.all(np.isfinite(constant)):
        raise ModelFormatError(message("The model's constant (base score) must be finite", f"Got {constant.tolist()}"))
    if (sizes == 0).any():
        raise ModelFormatError(message(f"tree {int(np.argmin(sizes))}: has no nodes"))


def _check_children(forest: RawForest, offset: np.ndarray) -> None:
    limit = np.repeat(forest.sizes, forest.sizes)
    for side, child in (("left", forest.left), ("right", forest.right)):
        bad = (child < -1) | (child >= limit) | ((child < 0) != (forest.left < 0))
        if bad.any():
            q = int(np.argmax(bad))
            raise ModelFormatError(message(f"{_where(q, offset)}: {side} child {child[q]} out of range [0, {limit[q]})"))


def _where(q: int, offset: np.ndarray) -> str:
    k = int(np.searchsorted(offset, q, side="right")) - 1
    return f"tree {k} node {q - int(offset[k])}"


def _breadth_first(forest: RawForest, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the reached nodes, tree by tree, level by level, siblings side by side; their left children; their covers."""
    from exactshap.trees.ensemble._layout_kernels import TOO_DEEP, Links, fill_breadth_first, sum_covers

    n = len(forest.left)
    order, left, seen = np.empty(n, np.int64), np.empty(n, np.int32), np.zeros(n, bool)
    roots = offset[:-1] + forest.root
    n_reached, fault, q = fill_breadth_first(roots, Links(forest.left, forest.right, offset, MAX_DEPTH, seen, order, left))
    if fault == TOO_DEEP:
        raise ModelFormatError(message(f"{_where(q, offset)}: deeper than {MAX_DEPTH} levels"))
    if fault:
        raise ModelFormatError(message(f"{_where(q, offset)}: reached twice", "The nodes form a cycle or share a child"))
    order, left = order[:n_reached].copy(), left[:n_reached].copy()
    cover = np.zeros(n_reached) if forest.cover is None else forest.cover[order].astype(float)
    sum_covers(left, cover)
    return order, left, cover


def _category_sets(forest: RawForest, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, count = np.full(len(order), -1, np.int64), np.zeros(len(order), np.int32)
    if forest.sets is None:
        return start, count, np.zeros(1, np.uint32)
    nodes, starts, counts, words = forest.sets
    number = np.full(len(forest.left), -1, np.int64)
    number[order] = np.arange(len(order))
    reached = number[nodes] >= 0
    start[number[nodes[reached]]], count[number[nodes[reached]]] = starts[reached], counts[reached]
    return start, count, words if len(words) else np.zeros(1, np.uint32)


def _check_numbers(trees: FlatTrees, owner: np.ndarray, node: np.ndarray) -> None:
    internal = trees.feature >= 0
    split = trees.left >= 0
    faults = (
        (split & ((trees.feature < 0) | (trees.feature >= trees.n_features)), "feature", trees.feature),
        (split & np.isnan(trees.threshold), "threshold", trees.threshold),
        (~np.isfinite(trees.value).all(axis=1), "leaf value", trees.value),
        (~(np.isfinite(trees.cover) & (trees.cover >= 0)), "cover", trees.cover),
        (internal & ((trees.missing < 0) | (trees.missing > 2)), "missing direction", trees.missing),
    )
    for bad, what, values in faults:
        if bad.any():
            q = int(np.argmax(bad))
            limit = f" for {trees.n_features} columns" if what == "feature" else ""
            raise ModelFormatError(message(f"tree {owner[q]} node {node[q]}: {what} is not valid{limit}", f"Got {values[q]}"))

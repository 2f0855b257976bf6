"""Check raw trees and lay them out: the only way to make :class:`FlatTrees`, for live models and for files alike."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from exactshap.errors import ModelFormatError, memory_needed, message
from exactshap.trees.ensemble._flat import MISSING_RIGHT, FlatTrees
from exactshap.trees.ensemble._forest import RawForest, RawTree, joined

if TYPE_CHECKING:
    from exactshap.trees.ensemble._layout_kernels import Forest, Laid

__all__ = [
    "MAX_CELLS",
    "MAX_DEPTH",
    "MAX_NODES",
    "RawTree",
    "build",
    "empty_layout",
    "finished",
    "largest_sum",
    "reached",
]

MAX_DEPTH = 10_000
MAX_NODES = 100_000_000
MAX_CELLS = 2**29  # leaf values of all nodes and outputs: 4 GiB


def build(
    raw: Sequence[RawTree] | RawForest, *, n_features: int, constant: np.ndarray, less_equal: bool, single_precision: bool
) -> FlatTrees:
    """Lay trees out in one set of arrays: parents before children, ``right == left + 1``, leaf covers summed upwards.

    Parameters
    ----------
    raw : sequence of RawTree, or RawForest
    n_features : int
    constant : array of shape (n_outputs,)
        What the trees are added to.
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
        Naming tree and node, for child numbers out of range, cycles, shared nodes, columns out of range, values that are not finite, negative
        covers and trees deeper than ``MAX_DEPTH``.

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
    _check_totals(raw.sizes if isinstance(raw, RawForest) else np.array([len(t.feature) for t in raw], np.int64), constant)
    forest = raw if isinstance(raw, RawForest) else joined(raw, len(constant))
    laid = _laid(forest, len(constant), int(n_features))
    return finished(
        laid,
        forest,
        n_features=int(n_features),
        constant=constant,
        less_equal=bool(less_equal),
        single_precision=bool(single_precision),
    )


def finished(
    laid: Laid,
    forest: RawForest | None,
    *,
    n_features: int,
    constant: np.ndarray,
    less_equal: bool,
    single_precision: bool,
) -> FlatTrees:
    """Return trees that were laid out, with the sets of categories of ``forest``, and refuse sums that overflow."""
    start, count, words = _category_sets(forest, laid.order)
    trees = FlatTrees(
        **{name: values for name, values in laid._asdict().items() if name != "order"},
        category_start=start,
        category_count=count,
        category_words=words,
        constant=constant,
        n_features=n_features,
        less_equal=less_equal,
        single_precision=single_precision,
    )
    if not np.isfinite(largest_sum(trees)):
        raise ModelFormatError(message("The leaf values are too large", "Their sum over the trees overflows"))
    return trees


def largest_sum(trees: FlatTrees) -> float:
    """Return the largest sum of magnitudes that one prediction can add up."""
    with np.errstate(over="ignore"):
        return float(trees.largest.sum() + np.abs(trees.constant).max(initial=0.0))


def _check_totals(sizes: np.ndarray, constant: np.ndarray) -> None:
    n_nodes = int(sizes.sum())
    if n_nodes > MAX_NODES:
        raise ModelFormatError(message("The model has too many nodes", f"Got {n_nodes}; the limit is {MAX_NODES}"))
    if n_nodes * len(constant) > MAX_CELLS:
        needed = 8.0 * float(n_nodes) * len(constant)
        raise ModelFormatError(
            message(
                "The table of leaf values does not fit",
                f"{n_nodes} nodes x {len(constant)} outputs would need {memory_needed(needed, 8.0 * MAX_CELLS)}",
            )
        )
    if not np.all(np.isfinite(constant)):
        raise ModelFormatError(message("The model's constant (base score) must be finite", f"Got {constant.tolist()}"))
    if (sizes == 0).any():
        raise ModelFormatError(message(f"tree {int(np.argmin(sizes))}: has no nodes"))


def _laid(forest: RawForest, n_outputs: int, n_features: int) -> Laid:
    """Return the reached nodes, tree by tree, level by level, siblings side by side, with covers summed upwards."""
    from exactshap.trees.ensemble._layout_kernels import lay_out

    given = _given(forest, n_outputs)
    empty = empty_layout(len(forest.sizes), len(given.left), n_outputs)
    n_reached, fault, q, place = lay_out(given, empty, n_features, MAX_DEPTH)
    if fault:
        raise ModelFormatError(_fault(given, empty.cover[place], n_features, fault, q))
    return reached(empty, n_reached)


def empty_layout(n_trees: int, n: int, n_outputs: int) -> Laid:
    """Return room for ``n`` nodes."""
    from exactshap.trees.ensemble._layout_kernels import Laid

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


def reached(laid: Laid, n: int) -> Laid:
    """Return the first ``n`` nodes in arrays of their own."""
    return laid if n == len(laid.order) else type(laid)(laid.tree_start, *(values[:n].copy() for values in laid[1:]))


def _given(forest: RawForest, n_outputs: int) -> Forest:
    """Return a forest as the kernel takes it, without the thresholds of splits by category."""
    from exactshap.trees.ensemble._layout_kernels import Forest

    n, offset, threshold = len(forest.left), forest.offset, forest.threshold
    if forest.sets is not None:
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
    from exactshap.trees.ensemble._layout_kernels import FAULTS

    k = int(np.searchsorted(given.offset, q, side="right")) - 1
    (what, name), where = FAULTS[fault], f"tree {k} node {q - given.offset[k]}"
    if name == "":
        return message(f"{where}: {what.format(MAX_DEPTH)}")
    got = cover if name == "cover" else getattr(given, name)[q]
    if name in ("left", "right"):
        return message(f"{where}: {what} {got} out of range [0, {given.offset[k + 1] - given.offset[k]})")
    return message(f"{where}: {what} is not valid{f' for {n_features} columns' if name == 'feature' else ''}", f"Got {got}")


def _category_sets(forest: RawForest | None, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, count = np.full(len(order), -1, np.int64), np.zeros(len(order), np.int32)
    if forest is None or forest.sets is None:
        return start, count, np.zeros(1, np.uint32)
    nodes, starts, counts, words = forest.sets
    number = np.full(len(forest.left), -1, np.int64)
    number[order] = np.arange(len(order))
    reached = number[nodes] >= 0
    start[number[nodes[reached]]], count[number[nodes[reached]]] = starts[reached], counts[reached]
    return start, count, words if len(words) else np.zeros(1, np.uint32)

"""Check raw trees and lay them out: the only way to make :class:`FlatTrees`, for live models and for files alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from exactshap.errors import ModelFormatError, message
from exactshap.trees._flat import MISSING_RIGHT, FlatTrees

__all__ = ["MAX_CELLS", "MAX_DEPTH", "MAX_NODES", "RawTree", "build", "largest_sum"]

MAX_DEPTH = 10_000
MAX_NODES = 100_000_000
MAX_CELLS = 2**29  # leaf values of all nodes and outputs: 4 GiB


@dataclass(frozen=True, eq=False)
class RawTree:
    """One tree as a library stores it: node numbers are its own, the root is ``root``, unreached nodes are allowed.

    ``left`` and ``right`` are -1 at leaves. ``value`` is (n_nodes,) or (n_nodes, n_outputs). ``cover`` is read at leaves only;
    None if the library kept none. ``categories`` maps nodes to bit sets (uint32 words) of the categories that go left.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    cover: np.ndarray | None = None
    missing: np.ndarray | None = None
    zero_is_missing: np.ndarray | None = None
    categories: dict[int, np.ndarray] = field(default_factory=dict)
    output: int = -1  # the one output that a one-dimensional ``value`` adds to; -1: the only one, or all
    root: int = 0


def build(
    raw: Sequence[RawTree], *, n_features: int, constant: np.ndarray, less_equal: bool, single_precision: bool
) -> FlatTrees:
    """Return the trees in one set of arrays: parents before children, ``right == left + 1``, leaf covers summed upwards.

    Raises :class:`ModelFormatError` naming tree and node for child numbers out of range, cycles, shared nodes, columns out of
    range, values that are not finite, negative covers and trees deeper than ``MAX_DEPTH``.
    """
    constant = np.atleast_1d(np.asarray(constant, float)).copy()
    sizes = np.array([len(tree.feature) for tree in raw], np.int64)
    _check_totals(raw, sizes, constant)
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    left = _joined([np.asarray(tree.left, np.int64) for tree in raw], np.int64)
    right = _joined([np.asarray(tree.right, np.int64) for tree in raw], np.int64)
    _check_children(left, right, sizes, offset)
    owner = np.repeat(np.arange(len(raw)), sizes)
    roots = offset[:-1] + np.array([tree.root for tree in raw], np.int64)
    order, levels = _breadth_first(left + offset[owner], right + offset[owner], left >= 0, roots, owner, offset)
    number = np.full(len(left), -1, np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    internal = left[order] >= 0
    shift = offset[owner[order]]
    new_left = np.where(internal, number[left[order] + shift], -1).astype(np.int32)
    new_right = np.where(internal, number[right[order] + shift], -1).astype(np.int32)
    start, count, words = _category_sets(raw, offset, number, len(order))
    trees = FlatTrees(
        tree_start=np.concatenate([[0], np.cumsum(np.bincount(owner[order], minlength=len(raw)))]).astype(np.int64),
        feature=np.where(internal, _joined([tree.feature for tree in raw], np.int64)[order], -1).astype(np.int32),
        threshold=np.where(internal & (start < 0), _joined([tree.threshold for tree in raw], float)[order], 0.0),
        left=new_left,
        right=new_right,
        missing=np.where(internal, _flags(raw, "missing", MISSING_RIGHT)[order], MISSING_RIGHT).astype(np.int8),
        zero_is_missing=_flags(raw, "zero_is_missing", 0)[order].astype(bool) & internal,
        category_start=start,
        category_count=count,
        category_words=words,
        cover=_covers(raw, order, number, levels, new_left, new_right),
        value=np.where(internal[:, None], 0.0, _values(raw, len(constant))[order]),
        constant=constant,
        n_features=int(n_features),
        less_equal=bool(less_equal),
        single_precision=bool(single_precision),
    )
    _check_numbers(trees, owner[order], order - shift)
    if not np.isfinite(largest_sum(trees)):
        raise ModelFormatError(message("The leaf values are too large", "Their sum over the trees overflows"))
    return trees


def largest_sum(trees: FlatTrees) -> float:
    """Return the largest sum of magnitudes that one prediction can add up."""
    with np.errstate(over="ignore"):
        leaves = np.abs(trees.value).max(axis=1)
        largest = np.maximum.reduceat(leaves, trees.tree_start[:-1]) if trees.n_trees else np.zeros(1)
        return float(largest.sum() + np.abs(trees.constant).max(initial=0.0))


def _joined(arrays: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([np.asarray(array) for array in arrays]).astype(dtype) if arrays else np.empty(0, dtype)


def _flags(raw: Sequence[RawTree], name: str, default: int) -> np.ndarray:
    arrays = [getattr(tree, name) for tree in raw]
    return _joined([np.full(len(t.feature), default) if a is None else a for t, a in zip(raw, arrays, strict=True)], np.int8)


def _values(raw: Sequence[RawTree], n_outputs: int) -> np.ndarray:
    """Return leaf values (n_nodes, n_outputs); one-dimensional ones go to the tree's own output."""
    blocks = []
    for tree in raw:
        value = np.asarray(tree.value, float)
        if value.ndim == 1 and tree.output >= 0:
            block = np.zeros((len(value), n_outputs))
            block[:, tree.output] = value
        else:
            block = value.reshape(len(value), -1)
        blocks.append(block)
    return np.concatenate(blocks) if blocks else np.empty((0, n_outputs))


def _check_totals(raw: Sequence[RawTree], sizes: np.ndarray, constant: np.ndarray) -> None:
    if sizes.sum() > MAX_NODES:
        raise ModelFormatError(message("The model has too many nodes", f"Got {sizes.sum()}; the limit is {MAX_NODES}"))
    if sizes.sum() * len(constant) > MAX_CELLS:
        needed = 8.0 * float(sizes.sum()) * len(constant) / 2**30
        raise ModelFormatError(
            message(
                "The table of leaf values does not fit",
                f"{sizes.sum()} nodes x {len(constant)} outputs would need {needed:.3g} GiB; the limit is {MAX_CELLS / 2**27:.3g} GiB",
            )
        )
    if not np.all(np.isfinite(constant)):
        raise ModelFormatError(message("The model's constant (base score) must be finite", f"Got {constant.tolist()}"))
    for k, tree in enumerate(raw):
        if not len(tree.feature):
            raise ModelFormatError(message(f"tree {k}: has no nodes"))
        lengths = {
            name: len(values)
            for name in ("threshold", "left", "right", "value", "cover", "missing", "zero_is_missing")
            if (values := getattr(tree, name)) is not None and len(values) != len(tree.feature)
        }
        if lengths:
            raise ModelFormatError(message(f"tree {k}: arrays of {len(tree.feature)} nodes differ in length", f"Got {lengths}"))
        outputs = np.shape(tree.value)[1] if np.ndim(tree.value) == 2 else len(constant) if tree.output >= 0 else 1
        if outputs != len(constant) or tree.output >= len(constant) or not 0 <= tree.root < len(tree.feature):
            raise ModelFormatError(message(f"tree {k}: leaves for {outputs} outputs or output {tree.output} out of range",
                                           f"The model has {len(constant)}"))  # fmt: skip


def _check_children(left: np.ndarray, right: np.ndarray, sizes: np.ndarray, offset: np.ndarray) -> None:
    limit = np.repeat(sizes, sizes)
    for side, child in (("left", left), ("right", right)):
        bad = (child < -1) | (child >= limit) | ((child < 0) != (left < 0))
        if bad.any():
            q = int(np.argmax(bad))
            where = _where(q, offset)
            raise ModelFormatError(message(f"{where}: {side} child {child[q]} out of range [0, {limit[q]})"))


def _where(q: int, offset: np.ndarray) -> str:
    k = int(np.searchsorted(offset, q, side="right")) - 1
    return f"tree {k} node {q - int(offset[k])}"


def _breadth_first(
    left: np.ndarray, right: np.ndarray, internal: np.ndarray, roots: np.ndarray, owner: np.ndarray, offset: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the reached nodes, tree by tree, level by level, siblings side by side; and the levels of all trees."""
    seen = np.zeros(len(left), bool)
    levels = []
    level = roots
    while len(level):
        _, first = np.unique(level, return_index=True)
        twice = seen[level]
        if len(first) < len(level) or twice.any():
            once = np.zeros(len(level), bool)
            once[first] = True
            q = int(level[np.argmax(twice | ~once)])
            raise ModelFormatError(message(f"{_where(q, offset)}: reached twice", "The nodes form a cycle or share a child"))
        seen[level] = True
        levels.append(level)
        if len(levels) > MAX_DEPTH:
            raise ModelFormatError(message(f"{_where(int(level[0]), offset)}: deeper than {MAX_DEPTH} levels"))
        split = level[internal[level]]
        level = np.stack([left[split], right[split]], axis=1).ravel()
    reached = np.concatenate(levels) if levels else np.empty(0, np.int64)
    return reached[np.argsort(owner[reached], kind="stable")], levels


def _covers(
    raw: Sequence[RawTree], order: np.ndarray, number: np.ndarray, levels: list[np.ndarray], left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Return the leaves' covers summed upwards, so that children add up to their parent; zeros if there are none."""
    arrays = [np.zeros(len(tree.feature)) if tree.cover is None else tree.cover for tree in raw]
    cover = _joined(arrays, float)[order]
    for level in reversed(levels):
        nodes = number[level]
        nodes = nodes[left[nodes] >= 0]
        cover[nodes] = cover[left[nodes]] + cover[right[nodes]]
    return cover


def _category_sets(
    raw: Sequence[RawTree], offset: np.ndarray, number: np.ndarray, n_nodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, count, words = np.full(n_nodes, -1, np.int64), np.zeros(n_nodes, np.int32), []
    total = 0
    for k, tree in enumerate(raw):
        for node, bits in tree.categories.items():
            q = number[offset[k] + node] if 0 <= node < len(tree.feature) else -1
            if q < 0:
                continue
            start[q], count[q] = total, len(bits)
            total += len(bits)
            words.append(np.asarray(bits, np.uint32))
    return start, count, np.concatenate(words) if words else np.zeros(1, np.uint32)


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

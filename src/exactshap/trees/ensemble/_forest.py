"""Hold trees as a library stores them, one at a time or all in one set of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactshap.errors import ModelFormatError
from exactshap.trees.ensemble._linear import LeafFunction, offsets_of


@dataclass(frozen=True, eq=False)
class RawTree:
    """Hold one tree as a library stores it; unreachable nodes are allowed.

    Parameters
    ----------
    feature : int array of shape (n_nodes,)
        The column of each split; not read at leaves.
    threshold : array of shape (n_nodes,)
    left, right : int arrays of shape (n_nodes,)
        Children; -1 at leaves.
    value : array of shape (n_nodes,) or (n_nodes, n_outputs)
        Read at leaves only.
    cover : array of shape (n_nodes,), default=None
        Read at leaves only; None if the library kept none.
    missing : int8 array of shape (n_nodes,), default=None
        Where missing values go; None: right.
    zero_is_missing : bool array of shape (n_nodes,), default=None
        Whether zeros are treated as missing at the node; None: nowhere.
    categories : dict of node to uint32 array, optional
        Bit sets of the categories that go left.
    output : int, default=-1
        Output that a one-dimensional ``value`` adds to; -1: the only one, or all.
    root : int, default=0
    functions : dict of node to LeafFunction, optional
        Linear functions of leaves, added to their values.

    Examples
    --------
    >>> leaf = RawTree(np.array([-1]), np.zeros(1), np.array([-1]), np.array([-1]), np.array([2.5]), np.array([10.0]))
    >>> leaf.root, leaf.output
    (0, -1)
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
    # The one output that a one-dimensional ``value`` adds to; -1: the only one, or all
    output: int = -1
    root: int = 0
    functions: dict[int, LeafFunction] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RawForest:
    """Hold all trees of an ensemble one after the other, with node numbers of each tree.

    ``sizes`` (n_trees,) counts nodes. Arrays over nodes are those of :class:`RawTree`; ``value`` is (n_nodes,), of the output
    ``output`` (n_trees,) of its tree (-1: of the only one), or (n_nodes, n_outputs). ``sets`` holds bit sets, if there are any:
    node numbers (counted over all trees), the start of each node's words, their number, and the words. ``functions`` holds the linear
    function of each leaf that has one (counted over all trees), and the output that it adds to.
    """

    sizes: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    output: np.ndarray
    root: np.ndarray
    cover: np.ndarray | None = None
    missing: np.ndarray | None = None
    zero_is_missing: np.ndarray | None = None
    sets: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None
    functions: dict[int, tuple[LeafFunction, int]] = field(default_factory=dict)

    @property
    def offset(self) -> np.ndarray:
        return offsets_of(self.sizes)

    def dense_values(self, n_outputs: int) -> np.ndarray:
        """Return the values (n_nodes, n_outputs)."""
        if self.value.ndim == 2:
            return self.value
        if n_outputs == 1:
            return self.value[:, None]
        dense = np.zeros((len(self.value), n_outputs))
        dense[np.arange(len(dense)), np.repeat(self.output, self.sizes)] = self.value
        return dense


def joined(raw: Sequence[RawTree], n_outputs: int) -> RawForest:
    """Return the trees as one; refuse arrays that differ in length, naming the tree."""
    for k, tree in enumerate(raw):
        _check_tree(tree, k, n_outputs)
    sizes = np.array([len(tree.feature) for tree in raw], np.int64)
    output = np.array([tree.output for tree in raw], np.int64)
    values = [np.asarray(tree.value, float) for tree in raw]
    # One tree with several outputs makes all dense, as the values of a forest are one array
    if any(value.ndim == 2 for value in values):
        values = [_dense(value, tree.output, n_outputs) for value, tree in zip(values, raw, strict=True)]
    return RawForest(
        sizes=sizes,
        feature=_chain([tree.feature for tree in raw], np.int64),
        threshold=_chain([tree.threshold for tree in raw], float),
        left=_chain([tree.left for tree in raw], np.int64),
        right=_chain([tree.right for tree in raw], np.int64),
        value=np.concatenate(values) if values else np.empty(0),
        output=output,
        root=np.array([tree.root for tree in raw], np.int64),
        cover=_optional(raw, "cover", float),
        missing=_optional(raw, "missing", np.int8),
        zero_is_missing=_optional(raw, "zero_is_missing", bool),
        sets=_sets(raw, sizes),
        functions=_functions(raw, sizes),
    )


def _dense(value: np.ndarray, output: int, n_outputs: int) -> np.ndarray:
    if value.ndim == 2:
        return value
    dense = np.zeros((len(value), n_outputs))
    dense[:, max(output, 0)] = value
    return dense


def _chain(arrays: Sequence[Any], dtype: type) -> np.ndarray:
    return np.concatenate([np.asarray(array) for array in arrays]).astype(dtype, copy=False) if arrays else np.empty(0, dtype)


def _optional(raw: Sequence[RawTree], name: str, dtype: type) -> np.ndarray | None:
    """Return the chained arrays, zeros where a tree has none; None where no tree has one."""
    arrays = [getattr(tree, name) for tree in raw]
    if all(array is None for array in arrays):
        return None
    return _chain([np.zeros(len(t.feature), dtype) if a is None else a for t, a in zip(raw, arrays, strict=True)], dtype)


def _sets(raw: Sequence[RawTree], sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    offset = offsets_of(sizes)
    sets = [
        (int(offset[k]) + node, np.asarray(bits, np.uint32))
        for k, tree in enumerate(raw)
        for node, bits in tree.categories.items()
        if 0 <= node < sizes[k]
    ]
    if not sets:
        return None
    counts = np.array([len(bits) for _, bits in sets], np.int64)
    # Start of each set's words among all words
    start = np.cumsum(counts) - counts
    return np.array([q for q, _ in sets], np.int64), start, counts, np.concatenate([bits for _, bits in sets])


def _functions(raw: Sequence[RawTree], sizes: np.ndarray) -> dict[int, tuple[LeafFunction, int]]:
    offset = (np.cumsum(sizes) - sizes).tolist()
    for k, tree in enumerate(raw):
        if wrong := [node for node in tree.functions if not 0 <= node < sizes[k]]:
            raise ModelFormatError(f"tree {k}: no node {wrong[0]} for a linear function")
    return {
        offset[k] + node: (function, tree.output) for k, tree in enumerate(raw) for node, function in tree.functions.items()
    }


def _check_tree(tree: RawTree, k: int, n_outputs: int) -> None:
    n = len(tree.feature)
    if not n:
        raise ModelFormatError(f"tree {k}: has no nodes")
    lengths = {
        name: len(values)
        for name in ("threshold", "left", "right", "value", "cover", "missing", "zero_is_missing")
        if (values := getattr(tree, name)) is not None and len(values) != n
    }
    if lengths:
        raise ModelFormatError(f"tree {k}: arrays of {n} nodes differ in length", f"Got {lengths}")
    outputs = np.shape(tree.value)[1] if np.ndim(tree.value) == 2 else n_outputs if tree.output >= 0 else 1
    if outputs != n_outputs or tree.output >= n_outputs or not 0 <= tree.root < n:
        raise ModelFormatError(
            f"tree {k}: leaves for {outputs} outputs or output {tree.output} out of range", f"The model has {n_outputs}"
        )

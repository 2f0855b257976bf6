"""Hold all trees of an ensemble in one set of arrays, and linear functions of their leaves."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from exactshap._native import Handle

MISSING_RIGHT, MISSING_LEFT, MISSING_NEVER = 0, 1, 2
SPECIAL = 1 << 30  # as in the kernel
# LightGBM's kZeroThreshold: a float literal stored in a double.
LIGHTGBM_ZERO = float(np.float32(1e-35))


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """Return the start of each owner's items in compressed rows."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def taken(start: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return some owners' starts in compressed rows, and their items' old positions."""
    counts = np.diff(start)[chosen]
    new = offsets_of(counts)
    # Number the new items, and shift each owner's by the distance between its starts
    return new, np.arange(new[-1]) + np.repeat(start[chosen] - new[:-1], counts)


class LeafFunction(NamedTuple):
    """Hold the linear function of one leaf, beyond the leaf's constant value.

    A row that reaches the leaf gets ``value + offset + sum(coefficients * x[columns])``; where one of the columns is missing (NaN),
    it gets ``value`` alone, as in LightGBM.

    Parameters
    ----------
    columns : int array of shape (n_terms,)
        Columns of the function. The path to the leaf need not split on them.
    coefficients : array of shape (n_terms,) or (n_terms, n_outputs)
    offset : float or array of shape (n_outputs,), default=0.0

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap.trees import LeafFunction, RawTree, build, margin
    >>> leaf = RawTree(np.array([-1]), np.zeros(1), np.array([-1]), np.array([-1]), np.array([2.5]),
    ...                functions={0: LeafFunction([0, 1], [1.0, -2.0])})
    >>> trees = build([leaf], n_features=2, constant=np.zeros(1), less_equal=True, single_precision=False)
    >>> margin(trees, [[3.0, 1.0], [np.nan, 1.0]]).tolist()
    [[3.5], [2.5]]
    """

    columns: Sequence[int] | np.ndarray
    coefficients: Sequence[float] | np.ndarray
    offset: float | np.ndarray = 0.0


class LinearLeaves(NamedTuple):
    """Hold linear functions of leaves in compressed rows: node q owns terms ``start[q]:start[q + 1]``."""

    start: np.ndarray  # int64 (n_nodes + 1,)
    column: np.ndarray  # int32 (n_terms,)
    coefficient: np.ndarray  # float64 (n_terms, n_outputs)
    offset: np.ndarray  # float64 (n_nodes, n_outputs): added where no column of the leaf's terms is missing

    @property
    def node(self) -> np.ndarray:
        """Return the node (n_terms,) of each term."""
        return np.repeat(np.arange(len(self.offset)), np.diff(self.start))

    @property
    def columns(self) -> np.ndarray:
        """Return the columns that any leaf multiplies, ascending."""
        return np.unique(self.column)

    def take(self, nodes: np.ndarray) -> LinearLeaves:
        """Return the functions of some nodes, in the given order."""
        start, terms = taken(self.start, nodes)
        return LinearLeaves(start, self.column[terms], self.coefficient[terms], self.offset[nodes])

    def pick(self, output: int) -> LinearLeaves:
        """Return the functions of one output."""
        coefficient, offset = (np.ascontiguousarray(values[:, [output]]) for values in (self.coefficient, self.offset))
        return self._replace(coefficient=coefficient, offset=offset)


class NodeArrays(NamedTuple):
    """Bundle the arrays of :class:`~exactshap.trees.FlatTrees` that routing reads as one kernel argument."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing: np.ndarray
    zero_is_missing: np.ndarray
    category_start: np.ndarray
    category_count: np.ndarray
    category_words: np.ndarray
    less_equal: bool


class Routes(NamedTuple):
    """Bundle the arrays for sums of leaves, packed for routing by :func:`_packed`."""

    tree_start: np.ndarray
    packed: np.ndarray
    nodes: NodeArrays
    value: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class FlatTrees:
    """Hold an ensemble of binary trees. Node numbers are global; a tree's nodes are contiguous and start with its root.

    Made by :func:`exactshap.trees.build`, which guarantees that parents come before their children and ``right == left + 1``.

    Attributes
    ----------
    tree_start : int64 array of shape (n_trees + 1,)
        Tree k owns nodes ``tree_start[k]:tree_start[k + 1]``.
    feature : int32 array of shape (n_nodes,)
        Column that the node splits on; -1 at leaves.
    threshold : float64 array of shape (n_nodes,)
        Numeric splits send x to the left if ``x <= threshold`` (``less_equal``) or ``x < threshold``.
    left, right : int32 arrays of shape (n_nodes,)
        Global numbers of the children; -1 at leaves.
    missing : int8 array of shape (n_nodes,)
        Where NaN goes: 1 left, 0 right, 2 the split never sees NaN as missing (NaN is read as 0.0).
    zero_is_missing : bool array of shape (n_nodes,)
        Whether ``|x| <= 1e-35`` is treated as missing too (LightGBM's "Zero" missing type).
    category_start : int64 array of shape (n_nodes,)
        -1 for numeric splits; else the offset of the node's bit set in ``category_words``.
    category_count : int32 array of shape (n_nodes,)
        Number of 32-bit words of the bit set. A category goes left if its bit is set; categories outside the set, negative,
        go right; ``missing`` decides for NaN.
    category_words : uint32 array
        Bit sets of all categorical splits.
    cover : float64 array of shape (n_nodes,)
        Weight of the training rows that reached the node, as the library defines it, summed upwards from the leaves (so that children
        sum to their parent); all zeros if the library kept none.
    value : float64 array of shape (n_nodes, n_outputs)
        Contribution of a leaf to the outputs, learning rate and averaging folded in; 0 at internal nodes.
    constant : float64 array of shape (n_outputs,)
        Added to every prediction.
    n_features : int
    less_equal : bool
        Whether equality goes left.
    single_precision : bool
        Whether the library rounds x to float32 before it compares. Thresholds are stored exactly as the library holds them.
    linear : LinearLeaves, default=None
        Linear functions of leaves, added to ``value``; None where all leaves are constant.
    """

    tree_start: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing: np.ndarray
    zero_is_missing: np.ndarray
    category_start: np.ndarray
    category_count: np.ndarray
    category_words: np.ndarray
    cover: np.ndarray
    value: np.ndarray
    constant: np.ndarray
    n_features: int
    less_equal: bool
    single_precision: bool
    linear: LinearLeaves | None = None

    def __repr__(self) -> str:
        sizes = f"{self.n_trees} trees, {self.n_nodes} nodes, {self.n_features} columns, {self.n_outputs} outputs"
        sizes += "" if self.linear is None else ", linear leaves"
        return f"<FlatTrees: {sizes}>"

    @property
    def nodes(self) -> NodeArrays:
        """Return what routing reads, as one argument of a compiled kernel."""
        return NodeArrays(*(getattr(self, name) for name in NodeArrays._fields))

    @functools.cached_property
    def largest(self) -> np.ndarray:
        """Return the magnitude of each tree's largest leaf, of shape (n_trees,)."""
        # Internal nodes hold 0, so the largest over all nodes is that of the leaves
        leaves = np.abs(self.value[:, 0] if self.n_outputs == 1 else self.value)
        largest = np.maximum.reduceat(leaves, self.tree_start[:-1]) if self.n_trees else np.zeros(0)
        return largest if largest.ndim == 1 else largest.max(axis=1)

    @functools.cached_property
    def routes(self) -> Any:
        """Return what sums of leaves need, as one kernel argument with addresses taken once."""
        return Handle(Routes(self.tree_start, _packed(self), self.nodes, self.value))

    def __getstate__(self) -> dict[str, Any]:
        known = self.__dict__.copy()
        known.pop("routes", None)  # not pickled, but made again on demand
        return known

    def pick(self, output: int) -> FlatTrees:
        """Return the same trees with one of their outputs."""
        value, linear = np.ascontiguousarray(self.value[:, [output]]), self.linear
        linear = None if linear is None else linear.pick(output)
        return replace(self, value=value, constant=self.constant[[output]], linear=linear)

    @property
    def n_trees(self) -> int:
        return len(self.tree_start) - 1

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @property
    def n_outputs(self) -> int:
        return self.value.shape[1]


def _packed(trees: FlatTrees) -> np.ndarray:
    """Return thresholds next to columns and left children, (n_nodes, 2).

    The latter two are packed into one double.

    A column has bit 30 set where the rule takes more than the threshold.
    """
    # Such nodes need the full rule; for all others one comparison with an adjacent number is enough
    special = ((trees.category_start >= 0) | trees.zero_is_missing) & (trees.feature >= 0)
    packed = np.empty((trees.n_nodes, 2))
    packed[:, 0] = trees.threshold
    # A row of two doubles is four int32: 0 and 1 are the threshold, 2 and 3 the column and the left child
    halves = packed.view(np.int32)
    halves[:, 2] = np.where(special, trees.feature | SPECIAL, trees.feature)
    halves[:, 3] = trees.left
    return packed

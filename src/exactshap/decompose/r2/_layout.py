"""An ensemble and its rows in the form that the kernels of both R2 games read."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from exactshap.decompose.r2._shallow_kernels import DEEPEST, fill_columns, fill_shares
from exactshap.decompose.r2._unit_kernels import Units, count_units, fill_units
from exactshap.trees import FlatTrees, parents, prepared
from exactshap.trees.ensemble import Nodes

__all__ = ["Layout", "lay_out"]


@dataclass(frozen=True, eq=False)
class Layout:
    """An ensemble and its rows in the form that the kernels read.

    Attributes
    ----------
    trees : FlatTrees
        Single output.
    nodes : Nodes
        What routing reads; ``feature`` counts only the columns that are split on.
    columns : float64 array of shape (n_used, n_rows)
        Those columns, contiguous, at the model's precision.
    player_of_node : int32 array of shape (n_nodes,)
    share : float64 array of shape (n_nodes,)
        cover(node) / cover(parent), 1 at roots.
    depth : int
        Of the deepest tree.
    n_players : int
    empty : float64 array of shape (n_trees,)
        Value of each tree when no player is known.
    """

    trees: FlatTrees
    nodes: Nodes
    columns: np.ndarray
    player_of_node: np.ndarray
    share: np.ndarray
    depth: int
    n_players: int
    empty: np.ndarray

    @functools.cached_property
    def units(self) -> Units:
        """With one unit more than there are: the constant 1. The shallow kernels do without."""
        return _units(self.trees, self.player_of_node, self.share)

    @property
    def shallow(self) -> bool:
        """Whether the tree-by-tree game goes by :func:`add_shallow_trees`."""
        return self.depth <= DEEPEST

    @property
    def n_rows(self) -> int:
        return self.columns.shape[1]

    @property
    def shape(self) -> tuple[np.ndarray, ...]:
        return self.trees.tree_start, self.trees.feature, self.trees.left, self.trees.right

    @property
    def value(self) -> np.ndarray:
        return self.trees.value[:, 0]


def lay_out(trees: FlatTrees, X: np.ndarray, player_of_column: np.ndarray, n_players: int) -> Layout:
    """Return the layout of ``trees`` (one output) for the rows ``X`` (n_rows, n_features)."""
    used = np.flatnonzero(np.bincount(trees.feature + 1, minlength=trees.n_features + 1)[1:])
    place = np.full(trees.n_features + 1, -1, np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    columns = _columns(trees, X, used)
    player_of_node = np.append(player_of_column, -1).astype(np.int32)[trees.feature]
    depths, share, empty = np.empty(trees.n_nodes, np.int32), np.empty(trees.n_nodes), np.empty(trees.n_trees)
    depth = fill_shares(trees.tree_start, trees.left, trees.right, trees.cover, np.ascontiguousarray(trees.value[:, 0]), depths,
                        share, empty)  # fmt: skip
    nodes = trees.nodes._replace(feature=place[trees.feature])
    return Layout(trees, nodes, columns, player_of_node, share, depth, n_players, empty)


def _columns(trees: FlatTrees, X: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return columns ``used`` of ``X`` (n_rows, n_features), contiguous, at the model's precision."""
    if not (X.flags.c_contiguous and X.flags.writeable):  # what the kernel is compiled for
        return prepared(trees, X.T[used])
    out = np.empty((len(used), len(X)))
    fill_columns(X, used, trees.single_precision, out)
    return out


def _units(trees: FlatTrees, player_of_node: np.ndarray, share: np.ndarray) -> Units:
    parent, _ = parents(trees)
    depths, start = np.empty(trees.n_nodes, np.int32), np.empty(trees.n_trees + 1, np.int64)
    deepest = count_units(trees.tree_start, parent, trees.left, trees.right, depths, start)
    n = int(start[-1]) + 1  # the last one is the constant 1
    ints = functools.partial(np.zeros, dtype=np.int32)
    wide = (n, deepest + 1)
    units = Units(start, ints(n), ints(n), ints((n, 3)), ints(wide), np.zeros(wide), np.ones((n, 3)), ints(n), ints(wide),
                  np.zeros(wide, np.uint8), ints(wide))  # fmt: skip
    units.tree[-1], units.size[-1, 2] = -1, -1
    fill_units(trees.tree_start, parent, trees.left, trees.right, depths, player_of_node, share,
               np.ascontiguousarray(trees.value[:, 0]), units)  # fmt: skip
    return units

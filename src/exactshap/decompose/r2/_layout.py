"""Lay an ensemble and its rows out for the compiled kernels."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from exactshap._native import Handle
from exactshap._runtime.threads import map_in_threads, worker_count
from exactshap.decompose.r2._kernels import DEEPEST, Trees, Units, count_units, fill_columns, fill_shares, fill_units
from exactshap.trees import FlatTrees, parents, prepared
from exactshap.trees.ensemble import NodeArrays

__all__ = ["EnsembleLayout", "lay_out"]

WORTH_THREADS = 2**20  # numbers of the columns, a millisecond


@dataclass(frozen=True, eq=False)
class EnsembleLayout:
    """An ensemble and its rows in the form that the kernels read.

    Attributes
    ----------
    trees : FlatTrees
        Single output.
    arrays : Trees
        The same for the kernels, with players and cover shares.
    nodes : Nodes
        What routing reads; ``feature`` counts only the columns that are split on.
    used : int64 array of shape (n_used,)
        Those columns.
    X : float64 array of shape (n_rows, n_features)
    depth : int
        Of the deepest tree.
    n_players : int
    """

    trees: FlatTrees
    arrays: Trees
    nodes: NodeArrays
    used: np.ndarray
    X: np.ndarray
    depth: int
    n_players: int
    n_jobs: int | None

    @functools.cached_property
    def columns(self) -> np.ndarray:
        """The columns that are split on, (n_used, n_rows), contiguous, at the model's precision. The shallow kernels do without."""
        return _columns(self.trees, self.X, self.used, self.n_jobs)

    @functools.cached_property
    def units(self) -> Units:
        """With one unit more than there are: the constant 1. The shallow kernels do without."""
        return _units(self.trees, self.arrays)

    @functools.cached_property
    def handles(self) -> tuple[Handle, Handle]:
        """``arrays`` and ``units``, prepared for the many calls of a kernel."""
        return Handle(self.arrays), Handle(self.units)

    @property
    def empty(self) -> np.ndarray:
        """Value of each tree when no player is known, of shape (n_trees,)."""
        return self.arrays.empty

    @property
    def shallow(self) -> bool:
        """Whether the tree-by-tree game goes by :func:`add_shallow_trees`."""
        return self.depth <= DEEPEST

    @property
    def n_rows(self) -> int:
        return len(self.X)


def lay_out(
    trees: FlatTrees, X: np.ndarray, player_of_column: np.ndarray, n_players: int, n_jobs: int | None = None
) -> EnsembleLayout:
    """Return the layout of ``trees`` (one output) for the rows ``X`` (n_rows, n_features)."""
    found = np.zeros(trees.n_features + 1, bool)  # the last entry of these three is that of leaves: their column is -1
    found[trees.feature] = True
    used = found[:-1].nonzero()[0]
    place, player = np.full((2, trees.n_features + 1), -1, np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    player[:-1] = player_of_column
    depths, share, empty = np.empty(trees.n_nodes, np.int32), np.empty(trees.n_nodes), np.empty(trees.n_trees)
    value = np.ascontiguousarray(trees.value[:, 0])
    depth = fill_shares(trees.tree_start, trees.left, trees.right, trees.cover, value, depths, share, empty)
    arrays = Trees(trees.tree_start, trees.feature, trees.left, trees.right, value, player[trees.feature], share, empty)
    nodes = trees.nodes._replace(feature=place[trees.feature])
    return EnsembleLayout(trees, arrays, nodes, used, X, depth, n_players, n_jobs)


def _columns(trees: FlatTrees, X: np.ndarray, used: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return columns ``used`` of ``X`` (n_rows, n_features), contiguous, at the model's precision."""
    if not X.flags.c_contiguous:
        return prepared(trees, X.T[used])
    out = np.empty((len(used), len(X)))
    if out.size < WORTH_THREADS:
        fill_columns(X, used, trees.single_precision, out)
        return out

    def fill(places: tuple[int, int]) -> None:
        fill_columns(X, used[slice(*places)], trees.single_precision, out[slice(*places)])

    workers = worker_count(n_jobs)
    for _ in map_in_threads(fill, itertools.pairwise(np.linspace(0, len(used), workers + 1).astype(int)), workers):
        pass
    return out


def _units(trees: FlatTrees, arrays: Trees) -> Units:
    parent, _ = parents(trees)
    depths, start = np.empty(trees.n_nodes, np.int32), np.empty(trees.n_trees + 1, np.int64)
    deepest = count_units(trees.tree_start, parent, trees.left, trees.right, depths, start)
    n = int(start[-1]) + 1  # the last one is the constant 1
    ints = functools.partial(np.zeros, dtype=np.int32)
    wide = (n, deepest + 1)
    units = Units(
        start,
        tree=ints(n),
        node=ints(n),
        size=ints((n, 3)),
        player=ints(wide),
        beta=np.zeros(wide),
        value=np.ones((n, 3)),
        depth=ints(n),
        path_node=ints(wide),
        path_left=np.zeros(wide, np.uint8),
        path_slot=ints(wide),
    )
    units.tree[-1], units.size[-1, 2] = -1, -1
    fill_units(arrays, parent, depths, units)
    return units

r"""Lay an ensemble and its rows out for the compiled kernels.

The kernels (``src/native/r2``) sweep the two games of R2.

A tree's game is a sum over *units*, half as many as its leaves: a unit is an internal node with two leaf children, or a leaf
with an internal sibling. With prefix players F_u (the splits above it), cover ratios b_uk and, for a node, its own split on
player j with leaf values v_left, v_right:

.. math:: f_S(x) = \sum_u \prod_{k \in S} \alpha_{uk}(x) \prod_{k \notin S} \beta_{uk}

with alpha_uk = 1 if x passes every split on k above u (else 0), beta_uk = b_uk, and on the unit's own player j additionally
alpha_uj times v_left or v_right (the side x takes), beta_uj times their cover-weighted mean. Two leaves that differ in
their last split only add up to one product.

Pairs of units are solved by table (``pairs.h``) or by quadrature, row by row (``quadrature.h``); trees of depth at most 3
need neither (``shallow.cpp``).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap.trees import FlatTrees, parents, prepared
from exactshap.trees.ensemble import NodeArrays

MAX_BITS = 16  # of the largest joint table, as in pairs.h
DEEPEST, SHALLOW_PLAYERS = 3, 7  # depth of shallow trees, and the splits of a full one


class Trees(NamedTuple):
    """Hold an ensemble of one output; nodes are numbered through all trees."""

    tree_start: np.ndarray  # int64 (n_trees + 1,)
    feature: np.ndarray  # int32 (n_nodes,), -1 for leaves; left and right likewise
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray  # float64 (n_nodes,)
    player_of_node: np.ndarray  # int32 (n_nodes,)
    share: np.ndarray  # float64 (n_nodes,): cover(node) / cover(parent), 1 at roots
    empty: np.ndarray  # float64 (n_trees,): value of each tree when no player is known


class Units(NamedTuple):
    """Hold all units of an ensemble. The slots of a unit are its prefix players in path order, then its own player if new."""

    tree_start: np.ndarray  # int64 (n_trees + 1,): tree k owns units tree_start[k]:tree_start[k + 1]
    tree: np.ndarray  # int32 (n_units,)
    node: np.ndarray  # int32 (n_units,): global node number
    size: np.ndarray  # int32 (n_units, 3): prefix players, players, slot of the unit's own player (-1 for leaves)
    player: np.ndarray  # int32 (n_units, width)
    beta: np.ndarray  # float64 (n_units, width)
    value: np.ndarray  # float64 (n_units, 3): left and right value of a node (else 1), the value of a leaf (else 1)
    depth: np.ndarray  # int32 (n_units,): number of edges above
    path_node: np.ndarray  # int32 (n_units, width), from the root down
    path_left: np.ndarray  # uint8 (n_units, width)
    path_slot: np.ndarray  # int32 (n_units, width)


class Rows(NamedTuple):
    """Hold the rows that some trees route."""

    decisions: np.ndarray  # uint8 (n_nodes, n_rows): whether a row goes left, from the first of these trees on
    weights: np.ndarray  # float64 (n_rows,)
    averaged: bool  # whether the trees are averaged over their orders (else boosted)


class Table(NamedTuple):
    """Hold the rows that all trees route."""

    X: np.ndarray  # float64 (n_rows, n_features)
    used: np.ndarray  # int64 (n_used,): the columns that are split on
    weights: np.ndarray  # float64 (n_rows,)
    single_precision: bool  # whether the trees compare in float32
    averaged: bool


class Rules(NamedTuple):
    """Hold Gauss-Legendre rules on [0, 1]: row q has the rule of q nodes."""

    nodes: np.ndarray  # float64 (n_rules, n_nodes)
    weights: np.ndarray


fill_columns = kernel("r2.fill_columns(X, used, single_precision, out)")
fill_shares = kernel("r2.fill_shares(tree_start, left, right, cover, value, depths, share, empty)")
count_units = kernel("r2.count_units(tree_start, parent, left, right, depths, start)")
fill_units = kernel("r2.fill_units(trees, parent, depths, units)")
fill_codes = kernel("r2.fill_codes(first, last, units, decisions, offset, codes)")
fill_alphas = kernel("r2.fill_alphas(first, last, units, decisions, offset, alphas)")
fill_half_weights = kernel("r2.fill_half_weights(largest, out)")
add_shallow_trees = kernel("r2.add_shallow_trees(trees, nodes, rows, half_weights, residual, met, out)")
add_residual_trees = kernel("r2.add_residual_trees(first, last, trees, units, rows, half_weights, residual, met, out)")
add_tree_rows = kernel("r2.add_tree_rows(first, last, trees, units, rows, losers_of, rules, residual, out)")
add_ensemble_tree = kernel("r2.add_ensemble_tree(k, codes, weights, linear, units, player_of_node, half_weights, out)")
add_ensemble_rows = kernel("r2.add_ensemble_rows(alphas, weights, linear, units, player_of_node, losers_of, rules, out)")


@dataclass(frozen=True, eq=False)
class EnsembleLayout:
    """Hold an ensemble and its rows in the form that the kernels read."""

    trees: FlatTrees  # single output
    arrays: Trees  # the same for the kernels, with players and cover shares
    nodes: NodeArrays  # what routing reads; ``feature`` counts only the columns that are split on
    used: np.ndarray  # int64 (n_used,): those columns
    X: np.ndarray  # float64 (n_rows, n_features)
    depth: int  # of the deepest tree
    n_players: int
    n_jobs: int | None

    @functools.cached_property
    def columns(self) -> np.ndarray:
        """Return the split columns (n_used, n_rows), contiguous, at the model's precision; unused by shallow kernels."""
        # The kernel reads rows; columns of a transposed array lie together already.
        if not self.X.flags.c_contiguous:
            return prepared(self.trees, self.X.T[self.used])
        out = np.empty((len(self.used), len(self.X)))
        fill_columns(self.X, self.used, self.trees.single_precision, out)
        return out

    @functools.cached_property
    def units(self) -> Units:
        """Return the units and one more, the constant 1; unused by shallow kernels."""
        return _units(self.trees, self.arrays)

    @functools.cached_property
    def handles(self) -> tuple[Handle, Handle]:
        """Prepare ``arrays`` and ``units`` for the many calls of a kernel."""
        return Handle(self.arrays), Handle(self.units)

    @property
    def shallow(self) -> bool:
        """Say whether the tree-by-tree game is solved by :func:`add_shallow_trees`."""
        return self.depth <= DEEPEST

    @property
    def n_rows(self) -> int:
        return len(self.X)


def lay_out(
    trees: FlatTrees, X: np.ndarray, player_of_column: np.ndarray, n_players: int, n_jobs: int | None = None
) -> EnsembleLayout:
    """Return the layout of ``trees`` (one output) for the rows ``X`` (n_rows, n_features)."""
    # The last entry of these three is for leaves, which have column -1.
    found = np.zeros(trees.n_features + 1, bool)
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

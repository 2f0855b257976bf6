"""Call the compiled routing and paths (``src/native/trees/routing.cpp``, ``paths.cpp``).

``nodes`` is a :class:`NodeArrays` tuple (``FlatTrees.nodes``), or a ``Handle`` of one. Values must have been rounded to the precision
of the model before (:func:`exactshap.trees.prepared`): the kernels compare float64 with float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel
from exactshap.trees.ensemble._linear import LeafTerms


class Above(NamedTuple):
    """Bundle arrays over nodes for the way up from a leaf: ``player`` is -1 at leaves, ``share`` is cover(node) / cover(parent)."""

    parent: np.ndarray
    is_left: np.ndarray
    player: np.ndarray
    share: np.ndarray


class PathSlots(NamedTuple):
    """Bundle what ``fill_paths`` writes: the number of distinct players of each leaf, the edges, and the players."""

    counts: np.ndarray
    edge_node: np.ndarray
    edge_left: np.ndarray
    edge_slot: np.ndarray
    player: np.ndarray
    ratio: np.ndarray


class Edges(NamedTuple):
    """Bundle what ``fill_inside`` reads of :class:`~exactshap.trees.Paths`."""

    start: np.ndarray
    edge_start: np.ndarray
    edge_node: np.ndarray
    edge_left: np.ndarray
    edge_slot: np.ndarray
    player: np.ndarray


class HybridTrees(NamedTuple):
    """Bundle what ``sum_hybrids`` reads of an ensemble: the player of each node, and the output of each tree (-1: all)."""

    tree_start: np.ndarray
    left: np.ndarray
    right: np.ndarray
    player: np.ndarray
    value: np.ndarray
    tree_output: np.ndarray


class HybridCells(NamedTuple):
    """Bundle what ``sum_hybrids`` reads of linear leaves: their terms, the players of these, and the cells of both rows."""

    terms: LeafTerms
    player: np.ndarray
    row: np.ndarray
    background: np.ndarray


fill_decisions = kernel("trees.fill_decisions(columns, nodes, out)")
fill_leaves = kernel("trees.fill_leaves(X, tree_start, nodes, out)")
sum_leaf_values = kernel("trees.sum_leaf_values(X, trees, out)")
fill_parents = kernel("trees.fill_parents(left, right, parent, is_left)")
fill_shares = kernel("trees.fill_shares(left, right, cover, out)")
fill_paths = kernel("trees.fill_paths(leaves, edge_start, above, n_players, found)")
add_leaf_functions = kernel("trees.add_leaf_functions(X, leaves, terms, out, sizes)")
sum_hybrids = kernel("trees.sum_hybrids(trees, row, background, members, cells, out)")
sum_all_hybrids = kernel("trees.sum_all_hybrids(trees, row, background, bit, out)")
sum_along_orders = kernel("trees.sum_along_orders(trees, row, background, place, out)")
fill_inside = kernel("trees.fill_inside(decisions, edges, out)")

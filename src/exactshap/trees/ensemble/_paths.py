"""Write the path of each leaf as a product over its distinct players."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel
from exactshap.trees.ensemble._flat import FlatTrees
from exactshap.trees.ensemble._linear import offsets_of
from exactshap.trees.ensemble._routing import decisions


class Paths(NamedTuple):
    """Hold the paths to all leaves in compressed rows: leaf l owns slots ``start[l]:start[l + 1]``."""

    node: np.ndarray  # int32 (n_leaves,): global node number of each leaf, ascending
    start: np.ndarray  # int64 (n_leaves + 1,): slots of the leaves
    player: np.ndarray  # int32 (n_slots,): the distinct players (columns, or groups of columns) of the path's splits, ascending
    # float64 (n_slots,): b_lj, the product of cover(child) / cover(parent) over the splits on that player on the path
    ratio: np.ndarray
    edge_start: np.ndarray  # int64 (n_leaves + 1,): edges of the leaves, from the root down
    edge_node: np.ndarray  # int32 (n_edges,): the internal node that the edge leaves
    edge_left: np.ndarray  # bool (n_edges,): whether the path goes left there
    edge_slot: np.ndarray  # int32 (n_edges,): which of the leaf's own slots (0-based within the leaf) the split's player has


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


fill_parents = kernel("trees.fill_parents(left, right, parent, is_left)")
fill_shares = kernel("trees.fill_shares(left, right, cover, out)")
fill_paths = kernel("trees.fill_paths(leaves, edge_start, above, n_players, found)")
fill_inside = kernel("trees.fill_inside(decisions, paths, out)")


def parents(trees: FlatTrees) -> tuple[np.ndarray, np.ndarray]:
    """Return each node's parent, -1 at roots, and whether it is left."""
    parent, is_left = np.full(trees.n_nodes, -1, np.int32), np.zeros(trees.n_nodes, bool)
    fill_parents(trees.left, trees.right, parent, is_left)
    return parent, is_left


def cover_shares(trees: FlatTrees) -> np.ndarray:
    """Return cover(node) / cover(parent) of each node: 1 at roots, 1/2 for both children of an empty parent."""
    shares = np.ones(trees.n_nodes)
    fill_shares(trees.left, trees.right, trees.cover, shares)
    return shares


def paths(trees: FlatTrees, player_of_column: np.ndarray | None = None) -> Paths:
    r"""Return the distinct players of every leaf's path with their cover ratios; by default each column is a player.

    .. math:: b_{lj} = \prod_{q \to c \text{ on the path},\, j_q = j} \mathrm{cover}(c) / \mathrm{cover}(q)

    The memory is the sum of the depths of all leaves: linear in the depth, never exponential.
    """
    columns = np.arange(trees.n_features) if player_of_column is None else np.asarray(player_of_column)
    columns = columns.astype(np.int32)
    parent, is_left = parents(trees)
    depth = _depths(trees, parent)
    leaf = np.flatnonzero(trees.feature < 0).astype(np.int32)
    edge_start = offsets_of(depth[leaf])
    # A path has at most as many distinct players as edges; ``keep`` cuts the surplus
    n_edges = int(edge_start[-1])
    node, slot, player = (np.empty(n_edges, np.int32) for _ in range(3))
    slots = PathSlots(np.empty(len(leaf), np.int64), node, np.empty(n_edges, bool), slot, player, np.empty(n_edges))
    n_players = int(columns.max(initial=-1)) + 1
    player_of_node = np.append(columns, np.int32(-1))[trees.feature]  # leaves have feature -1
    fill_paths(leaf, edge_start, Above(parent, is_left, player_of_node, cover_shares(trees)), n_players, slots)
    # The first ``counts`` slots of each leaf are in use
    keep = np.arange(n_edges) - np.repeat(edge_start[:-1], np.diff(edge_start)) < np.repeat(slots.counts, np.diff(edge_start))
    start, player, ratio = offsets_of(slots.counts), player[keep], slots.ratio[keep]
    # Players ascending, as ranks of sets need them; ``place`` tells the edges where their slot went
    order = np.lexsort((player, np.repeat(np.arange(len(leaf)), slots.counts)))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    first = np.repeat(start[:-1], np.diff(edge_start))
    slot = (place[first + slot] - first).astype(np.int32)
    return Paths(leaf, start, player[order], ratio[order], edge_start, node, slots.edge_left, slot)


def _depths(trees: FlatTrees, parent: np.ndarray) -> np.ndarray:
    """Return the number of edges above each node, by one pass per level."""
    depth = np.zeros(trees.n_nodes, np.int64)
    level = trees.tree_start[:-1]
    while len(level := level[trees.feature[level] >= 0]):
        # Both children of every split on this level
        below = np.concatenate([trees.left[level], trees.right[level]])
        depth[below] = depth[parent[below]] + 1
        level = below
    return depth


def inside(trees: FlatTrees, where: Paths, X: np.ndarray, n_players: int) -> np.ndarray:
    """Return a_lj (n_rows, n_leaves, n_players): 1.0 where a row satisfies every split on j on the path to l, else 0.0.

    It is 1.0 for players without a split there.
    """
    out = np.ones((len(X), len(where.node), n_players))
    fill_inside(decisions(trees, X), where, out)
    return out

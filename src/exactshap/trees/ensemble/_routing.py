"""Send rows and hybrids of rows through trees, by compiled routing, and write paths as products over their players.

Kernels take ``FlatTrees.nodes``, or a ``Handle`` of it, and compare float64 with float64: rows must have been rounded (:func:`prepared`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap._runtime.slices import slices
from exactshap.trees.ensemble._flat import FlatTrees, LinearLeaves, offsets_of

# Bytes of the background's decisions at all nodes; larger ones are computed in each call
KEPT_BYTES = 2.0**28
# Background rows at a time.
CHUNK_ROWS = 256
# Margins of all coalitions at a time: 1 MiB.
MARGIN_VALUES = 2**17
# Coalitions of a word, as in hybrids.cpp.
BITS = 64


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

    terms: LinearLeaves
    player: np.ndarray
    row: np.ndarray
    background: np.ndarray


fill_decisions = kernel("trees.fill_decisions(columns, nodes, out)")
fill_leaves = kernel("trees.fill_leaves(X, tree_start, nodes, out)")
sum_leaf_values = kernel("trees.sum_leaf_values(X, trees, out)")
add_leaf_functions = kernel("trees.add_leaf_functions(X, leaves, terms, out, sizes)")
sum_hybrids = kernel("trees.sum_hybrids(trees, row, background, members, cells, out)")
sum_all_hybrids = kernel("trees.sum_all_hybrids(trees, row, background, bit, out)")
sum_along_orders = kernel("trees.sum_along_orders(trees, row, background, place, out)")
fill_parents = kernel("trees.fill_parents(left, right, parent, is_left)")
fill_shares = kernel("trees.fill_shares(left, right, cover, out)")
fill_paths = kernel("trees.fill_paths(leaves, edge_start, above, n_players, found)")
fill_inside = kernel("trees.fill_inside(decisions, paths, out)")


def prepared(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return rows as they are compared with thresholds: float64, rounded to float32 if the library does so."""
    X = np.asarray(X, np.float64)
    if trees.single_precision:
        with np.errstate(over="ignore"):
            X = X.astype(np.float32).astype(np.float64)
    return np.ascontiguousarray(X)


def decisions(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return which way each row goes at each node: (n_nodes, n_rows), 1 where left, 0 where right and at leaves."""
    # By node, as solvers read the decisions of all rows at a node together
    out = np.zeros((trees.n_nodes, len(X)), np.uint8)
    fill_decisions(np.ascontiguousarray(prepared(trees, X).T), trees.nodes, out)
    return out


def apply(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return the leaf that each row reaches in each tree. They are global numbers of nodes, (n_rows, n_trees)."""
    out = np.empty((len(X), trees.n_trees), np.int32)
    fill_leaves(prepared(trees, X), trees.tree_start, trees.nodes, out)
    return out


def margin(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    r"""Return the sum (n_rows, n_outputs) of the leaves that rows reach.

    Linear functions of leaves are included, in float64.

    .. math:: f(x) = c + \sum_k v_{\mathrm{leaf}_k(x)}
    """
    out = np.empty((len(X), trees.n_outputs))
    out[...] = trees.constant
    X = prepared(trees, X)
    sum_leaf_values(X, trees.routes, out)
    if trees.linear is not None:
        # A cell times a coefficient may overflow, as in the model itself; solvers refuse infinite cells (``check_cells``)
        with np.errstate(all="ignore"):
            add_leaf_functions(X, apply(trees, X), trees.linear, out, np.zeros(0))
    return out


def function_sizes(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return the magnitudes (n_rows,) of the linear functions of the reached leaves; 0 for constant leaves."""
    sizes = np.zeros(len(X))
    if trees.linear is not None:
        X = prepared(trees, X)
        add_leaf_functions(X, apply(trees, X), trees.linear, np.zeros((len(X), trees.n_outputs)), sizes)
    return sizes


# --- paths ------------------------------------------------------------------------------------------------------------
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


# --- hybrids of a row and background rows -----------------------------------------------------------------------------
class HybridRow(NamedTuple):
    """Hold the decisions of one row at each node, and its cells as they are compared."""

    ways: np.ndarray
    cells: np.ndarray


class Hybrids:
    r"""Evaluate hybrids on an ensemble bound to players and background rows.

    .. math:: f(x_S, z_{\bar S}) = c + \sum_k v_{\mathrm{leaf}_k(x_S, z_{\bar S})}

    Parameters
    ----------
    player_of_column : int array of shape (n_features,)
    background : array of shape (n_background, n_features)
    tree_output : int32 array of shape (n_trees,)
        The only output that each tree adds to, -1 for all.
    """

    def __init__(
        self, trees: FlatTrees, player_of_column: np.ndarray, n_players: int, background: np.ndarray, tree_output: np.ndarray
    ) -> None:
        self._trees, self._n_players, self._background = trees, n_players, prepared(trees, background)
        none = np.zeros((0, trees.n_outputs))
        self._terms = trees.linear or LinearLeaves(np.zeros(1, np.int64), np.zeros(0, np.int32), none, none)
        # The kernel needs the player of each node and term, not of each column
        self._player, self._term_player = (
            player_of_column[column].astype(np.int32) for column in (np.maximum(trees.feature, 0), self._terms.column)
        )
        arrays = (trees.tree_start, trees.left, trees.right, self._player, trees.value, np.asarray(tree_output, np.int32))
        self._arrays = Handle(HybridTrees(*map(np.ascontiguousarray, arrays)))
        self._rows = slices(len(background), CHUNK_ROWS)
        # One byte for each background row and node
        keeps = float(len(background)) * trees.n_nodes <= KEPT_BYTES
        self._kept = [self._ways(self._background[rows]) for rows in self._rows] if keeps else None

    def _ways(self, rows: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(decisions(self._trees, rows).T)

    def row(self, row: np.ndarray) -> HybridRow:
        """Return the decisions of one row (1, n_features) at each node, and its cells."""
        return HybridRow(self._ways(row)[0], prepared(self._trees, row)[0])

    def _chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield some background rows after others, and their decisions."""
        ways = self._kept if self._kept is not None else (self._ways(self._background[rows]) for rows in self._rows)
        return zip(self._rows, ways, strict=True)

    def moving(self, row: HybridRow) -> list[int]:
        """Return the players that distinguish the row from some background row."""
        # All other players are dummies
        differs = np.zeros(len(row.ways), bool)
        for _, ways in self._chunks():
            differs |= (ways != row.ways).any(axis=0)
        cells = self._background[:, self._terms.column] != row.cells[self._terms.column]
        return sorted({*self._player[differs].tolist(), *self._term_player[cells.any(axis=0)].tolist()})

    def margins(self, row: HybridRow, masks: np.ndarray) -> np.ndarray:
        """Return the margins (n_background, n_outputs, n_masks) of a row's hybrids."""
        n_words = -(-len(masks) // BITS)
        bits = np.zeros((self._n_players, n_words * BITS), np.uint8)
        bits[:, : len(masks)] = masks.T
        # A word has one bit for each of 64 coalitions; "<u8" fixes the byte order on any machine
        members = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)
        out = np.empty((len(self._background), self._trees.n_outputs, len(masks)))
        out[...] = self._trees.constant[:, None]
        for rows, ways in self._chunks():
            cells = HybridCells(self._terms, self._term_player, row.cells, self._background[rows])
            sum_hybrids(self._arrays, row.ways, ways, members, cells, out[rows])
        return out

    def all_margins(self, row: HybridRow, players: Sequence[int]) -> Iterator[np.ndarray]:
        """Yield the margins of all hybrids, for some background rows at a time.

        They are (n_some, n_outputs, n_coalitions).

        Bit k of the number of a coalition says whether it holds ``players[k]``, all players that are no dummies, at least two.
        """
        bit = np.zeros(self._n_players, np.int32)
        bit[list(players)] = np.arange(len(players))
        n_coalitions, n_outputs = 2 ** len(players), self._trees.n_outputs
        # 2^n coalitions for each row: fewer rows at a time for more players
        step = max(1, MARGIN_VALUES // (n_coalitions * n_outputs))
        for _, ways in self._chunks():
            for some in (ways[rows] for rows in slices(len(ways), step)):
                out = np.empty((len(some), n_outputs, n_coalitions))
                out[...] = self._trees.constant[:, None]
                sum_all_hybrids(self._arrays, row.ways, some, bit, out)
                yield out

    def along_orders(self, row: HybridRow, orders: np.ndarray, players: Sequence[int]) -> np.ndarray:
        """Return the margins of a row's hybrids along orders of players.

        They are (n_background, n_outputs, n_orders, n + 1).

        ``orders`` (n_background, n_orders, n) are the place of each player in each order, of those that are no dummies.
        """
        place = np.zeros((len(orders), self._n_players, orders.shape[1]), np.int32)
        place[:, list(players)] = orders.transpose(0, 2, 1)
        out = np.zeros((len(orders), self._trees.n_outputs, orders.shape[1], len(players) + 1))
        for rows, ways in self._chunks():
            sum_along_orders(self._arrays, row.ways, ways, place[rows], out[rows])
        return out + self._trees.constant[:, None, None]

    def by_use(self, players: Sequence[int]) -> list[int]:
        """Return players by their number of nodes, fewest first."""
        uses = np.bincount(self._player[self._trees.left >= 0], minlength=self._n_players)
        return sorted(players, key=lambda player: uses[player])

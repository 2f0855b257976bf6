"""Send rows and hybrids of rows through trees, by compiled routing.

Kernels take ``FlatTrees.nodes``, or a ``Handle`` of it, and compare float64 with float64: rows must have been rounded (:func:`prepared`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap.trees.ensemble._flat import FlatTrees
from exactshap.trees.ensemble._linear import LeafTerms


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
add_leaf_functions = kernel("trees.add_leaf_functions(X, leaves, terms, out, sizes)")
sum_hybrids = kernel("trees.sum_hybrids(trees, row, background, members, cells, out)")
sum_all_hybrids = kernel("trees.sum_all_hybrids(trees, row, background, bit, out)")
sum_along_orders = kernel("trees.sum_along_orders(trees, row, background, place, out)")


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
    """Return the leaf that each row reaches in each tree.

    They are global numbers of nodes, (n_rows, n_trees).
    """
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
            add_leaf_functions(X, apply(trees, X), trees.linear.arrays, out, np.zeros(0))
    return out


def function_sizes(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return the magnitudes (n_rows,) of the linear functions of the reached leaves; 0 for constant leaves."""
    sizes = np.zeros(len(X))
    if trees.linear is not None:
        X = prepared(trees, X)
        add_leaf_functions(X, apply(trees, X), trees.linear.arrays, np.zeros((len(X), trees.n_outputs)), sizes)
    return sizes


# Bytes of the background's decisions at all nodes; larger ones are computed in each call
KEPT_BYTES = 2.0**28
CHUNK_ROWS = 256  # background rows at a time
MARGIN_VALUES = 2**17  # margins of all coalitions at a time: 1 MiB
BITS = 64


class HybridRow(NamedTuple):
    """Hold the decisions of one row at each node, and its cells as they are compared."""

    ways: np.ndarray
    cells: np.ndarray


class Hybrids:
    r"""Evaluate hybrids on an ensemble bound to players and background rows.

    .. math:: f(x_S, z_{\bar S}) = c + \sum_k v_{\mathrm{leaf}_k(x_S, z_{\bar S})}

    Parameters
    ----------
    player : int32 array of shape (n_nodes,)
        Player of the column that each node splits on; any number at leaves.
    background : array of shape (n_background, n_features)
    tree_output : int32 array of shape (n_trees,)
        The only output that each tree adds to, -1 for all.
    player_of_column : int32 array of shape (n_features,), default=None
        Player of each column, for linear leaves; None makes each column a player.
    """

    def __init__(
        self,
        trees: FlatTrees,
        player: np.ndarray,
        n_players: int,
        background: np.ndarray,
        tree_output: np.ndarray,
        player_of_column: np.ndarray | None = None,
    ) -> None:
        self._trees, self._player, self._n_players, self._background = trees, player, n_players, prepared(trees, background)
        self._terms = trees.linear.arrays if trees.linear is not None else _no_terms(trees.n_outputs)
        # The kernel needs the player of each term, not of each column
        owner = np.arange(trees.n_features) if player_of_column is None else player_of_column
        self._term_player = np.ascontiguousarray(owner[self._terms.column], np.int32)
        arrays = (trees.tree_start, trees.left, trees.right, player, trees.value, np.asarray(tree_output, np.int32))
        self._arrays = Handle(HybridTrees(*map(np.ascontiguousarray, arrays)))
        # One byte for each background row and node
        keeps = float(len(background)) * trees.n_nodes <= KEPT_BYTES
        self._kept = [self._ways(part) for part in self._parts()] if keeps else None

    def _parts(self) -> list[np.ndarray]:
        return [self._background[i : i + CHUNK_ROWS] for i in range(0, len(self._background), CHUNK_ROWS)]

    def _ways(self, rows: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(decisions(self._trees, rows).T)

    def row(self, row: np.ndarray) -> HybridRow:
        """Return the decisions of one row (1, n_features) at each node, and its cells."""
        return HybridRow(self._ways(row)[0], prepared(self._trees, row)[0])

    def _chunks(self) -> Any:
        return self._kept if self._kept is not None else map(self._ways, self._parts())

    def moving(self, row: HybridRow) -> list[int]:
        """Return the players that distinguish the row from some background row."""
        # All other players are dummies
        differs = np.zeros(len(row.ways), bool)
        for part in self._chunks():
            differs |= (part != row.ways).any(axis=0)
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
        start = 0
        for part in self._chunks():
            cells = HybridCells(self._terms, self._term_player, row.cells, self._background[start : start + len(part)])
            sum_hybrids(self._arrays, row.ways, part, members, cells, out[start : start + len(part)])
            start += len(part)
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
        for part in self._chunks():
            for start in range(0, len(part), step):
                some = part[start : start + step]
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
        start = 0
        for part in self._chunks():
            some = slice(start, start + len(part))
            sum_along_orders(self._arrays, row.ways, part, place[some], out[some])
            start += len(part)
        return out + self._trees.constant[:, None, None]

    def by_use(self, players: Sequence[int]) -> list[int]:
        """Return players by their number of nodes, fewest first."""
        uses = np.bincount(self._player[self._trees.left >= 0], minlength=self._n_players)
        return sorted(players, key=lambda player: uses[player])


def _no_terms(n_outputs: int) -> LeafTerms:
    none = np.zeros((0, n_outputs))
    return LeafTerms(np.zeros(1, np.int64), np.zeros(0, np.int32), none, none)

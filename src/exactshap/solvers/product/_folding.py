r"""Solve product games of few players by summing the background once.

.. math:: v(S) = v_0 + \sum_l c_l M_l(S) \prod_{j \in S} a_{lj}, \qquad M_l(S) = \sum_z w_z \prod_{j \notin S} b_{zlj}

The table M depends on the background alone. With it the values of all coalitions of a row cost O(n_terms 2^d), whatever the
number of background rows; every index of every order follows from those by its definition. Quadrature costs
O(n_terms n_background n_nodes d) a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from exactshap._native import kernel
from exactshap._runtime.slices import slices
from exactshap.games import ProductGame
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part, Solution, count_sets, player_sets, set_sizes

LANES = 4  # the number of terms of `folded` is a multiple of this
fill_folded = kernel("product.fill_folded(b, weights, n_low, out)")
fill_coalitions = kernel("product.fill_coalitions(a, folded, c, out)")
fill_set_values = kernel("product.fill_set_values(table, sets, weights, out)")

# Values of the tables that ``solve_folded`` holds at once: 32 MiB.
TABLE_VALUES = 2**22


@dataclass(frozen=True, eq=False)
class Folded:
    """Hold the folded background of a block of terms.

    ``table (n_terms and padding, 2^n_high, 2^n_low)`` holds M, ``top (n_players, n_terms)`` the largest |b| of the background
    and ``same (n_players, n_terms)`` its b if it is the same for all rows, else NaN.
    """

    table: np.ndarray
    top: np.ndarray
    same: np.ndarray


def fold(tiles: Iterable[tuple[np.ndarray, np.ndarray]], n_players: int, n_terms: int) -> Folded:
    """Sum up the background of a block of terms: tiles of weights (n_background,) and b (n_background, n_players, n_terms)."""
    n_low = low_players(n_players)
    table = np.zeros((-(-n_terms // LANES) * LANES, 2 ** (n_players - n_low), 2**n_low))
    top, same = np.zeros((n_players, n_terms)), None
    for weights, b in tiles:
        fill_folded(np.ascontiguousarray(b.transpose(2, 0, 1)), np.array(weights), n_low, table)
        np.maximum(top, np.abs(b).max(axis=0), out=top)
        same = b[0].copy() if same is None else same
        # NaN equals nothing, so no later tile can make such a factor the same again
        same[(b != same).any(axis=0)] = np.nan
    return Folded(table, top, np.full((n_players, n_terms), np.nan) if same is None else same)


def low_players(n_players: int) -> int:
    """Return the number of players in the low part of a coalition's number: 6 or half, never all."""
    return max(min(n_players - 1, 6), n_players // 2)


@dataclass(eq=False)
class CoalitionTable:
    """Add up the values of all coalitions of a block of rows over blocks of terms."""

    n_rows: int
    n_players: int
    n_outputs: int
    table: np.ndarray = field(init=False)  # v (n_rows, n_outputs, 2^n_high, 2^n_low)
    scale: np.ndarray = field(init=False)
    # (n_rows, n_players): players with factor b in every term and background row
    null: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        n_low = low_players(self.n_players)
        self.table = np.zeros((self.n_rows, self.n_outputs, 2 ** (self.n_players - n_low), 2**n_low))
        self.scale = np.zeros(self.n_rows)
        self.null = np.ones((self.n_rows, self.n_players), bool)

    def add(self, rows: slice, a: np.ndarray, c: np.ndarray, folded: Folded) -> None:
        """Add a block of terms for some rows: ``a (n_rows, n_players, n_terms)``, ``c (n_outputs, n_terms)``."""
        fill_coalitions(np.ascontiguousarray(a.transpose(0, 2, 1)), folded.table, np.ascontiguousarray(c), self.table[rows])
        heights = np.maximum(np.abs(a), folded.top).prod(axis=1)
        self.scale[rows] += (heights * np.abs(c).max(axis=0)).sum(axis=1)
        self.null[rows] &= (a == folded.same).all(axis=2)

    def part(self, semivalue: Semivalue, order: int, method: str) -> Part:
        """Return the values of all sets of 1..order players; sets with a null player get exactly 0."""
        n_rows, d = self.n_rows, self.n_players
        table = self.table.reshape(n_rows, self.n_outputs, 2**d)
        sets = player_sets(d, order)
        values = np.empty((n_rows, len(sets), self.n_outputs))
        for size in set_sizes(order):
            chosen = [number for number, players in enumerate(sets) if len(players) == size]
            masks = np.array([sum(1 << player for player in sets[number]) for number in chosen], np.int64)
            part = np.empty((n_rows, self.n_outputs, len(chosen)))
            fill_set_values(table, masks, semivalue.weights(d, size, order), part)
            values[:, chosen] = part.transpose(0, 2, 1)
        # Sums over coalitions would leave rounding in values known to be 0
        if self.null.any():
            values[np.stack([self.null[:, list(players)].any(axis=1) for players in sets], axis=1)] = 0.0
        return Part(values, table[:, :, 0], table[:, :, -1], method, error_bound=np.zeros(n_rows), scale=self.scale)


def solve_folded(game: ProductGame, semivalue: Semivalue, order: int, *, all_nodes: bool = False) -> Solution:
    """Solve a product game from the values of all coalitions, after summing up the background.

    Exact at every degree, so that ``all_nodes`` (see :func:`exactshap.solvers.product._quadrature.solve_product`) has no effect. Cost: about
    n_terms 2^d (n_background + 3 n_rows n_outputs) operations.
    """
    count_sets(game.n_players, order)  # refuses what cannot fit
    a, b, c = game.a.transpose(0, 2, 1), game.b.transpose(0, 2, 1), game.c.T
    coalitions = CoalitionTable(len(a), game.n_players, game.n_outputs)
    # As many terms at a time as fit
    step = max(LANES, TABLE_VALUES // 2**game.n_players)
    for terms in slices(game.n_terms, step):
        folded = fold([(game.weights, b[:, :, terms])], game.n_players, a[:, :, terms].shape[2])
        coalitions.add(slice(None), a[:, :, terms], c[:, terms], folded)
    part = coalitions.part(semivalue, order, folded_method(game.n_players, game.n_background))
    return part.finish_game(game, semivalue, order, constant=game.constant)


def folded_method(n_players: int, n_background: int) -> str:
    """Return the text of ``Solution.method``."""
    return f"folded enumeration (2^{n_players} coalitions, {n_background} background rows)"

r"""Solve product games of few players by summing the background once.

.. math:: v(S) = v_0 + \sum_l c_l M_l(S) \prod_{j \in S} a_{lj}, \qquad M_l(S) = \sum_z w_z \prod_{j \notin S} b_{zlj}

The table M depends on the background alone. With it the values of all coalitions of a row cost O(n_terms 2^d), whatever the
number of background rows; every index of every order follows from those by its definition. Quadrature costs
O(n_terms n_background n_nodes d) a row.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from exactshap._native import kernel
from exactshap._runtime.machine import Sample, seconds_per_unit
from exactshap._runtime.slices import slices
from exactshap.games import ProductGame
from exactshap.semivalues import Semivalue, find
from exactshap.solvers.core import Cost, Part, Solution, count_sets, player_sets, set_sizes
from exactshap.solvers.product._quadrature import solve_terms

# The number of terms of `folded` is a multiple of this.
LANES = 4
fill_folded = kernel("product.fill_folded(b, weights, n_low, out)")
fill_coalitions = kernel("product.fill_coalitions(a, folded, c, out)")
fill_set_values = kernel("product.fill_set_values(table, sets, weights, out)")

# Values of the tables that ``solve_folded`` holds at once: 32 MiB.
TABLE_VALUES = 2**22

# Players: 2^20 values, 8 MiB, for each term and row.
MAX_FOLDED_PLAYERS = 20
# Nominal units choose between quadrature and folding, this machine's rates give the cost: the choice must not depend on the
# machine, as values would differ by rounding. A background is folded if that pays off within this many rows.
WORTH_ROWS = 64
# Terms that are processed together.
LANE_SETS = 32.0


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
    """Add up all coalitions' values of a block of rows over blocks of terms."""

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


# Each request asks twice, for its memory and to be solved
@functools.lru_cache(maxsize=64)
def folding_pays(
    n_players: int,
    n_background: int,
    n_terms: int,
    n_outputs: int,
    semivalue: Semivalue,
    order: int,
    n_swept: float | None = None,
) -> bool:
    """Say whether to sum up the background first.

    The number of rows must not matter, as values of a row must not depend on its batch. ``n_swept``: the effective number of
    terms of quadrature, which sweeps mixtures at once.
    """
    # With one background row there is nothing to sum
    if n_players > MAX_FOLDED_PLAYERS or n_background < 2 or order > n_players:
        return False
    sweep = (n_terms if n_swept is None else n_swept) * n_background * quadrature_units(n_players, semivalue, order)
    row = _folded_row_units(n_players, n_terms, n_outputs, order)
    once = _fold_units(n_players, n_background, n_terms)
    # The background is folded once, all else is per row
    return once + WORTH_ROWS * row < WORTH_ROWS * sweep


def quadrature_units(n_players: int, semivalue: Semivalue, order: int) -> float:
    """Return nanoseconds of quadrature per row, term and background row: within a third for 2 to 16 players, orders 1 and 2."""
    steps = 0.0
    for size in set_sizes(order):
        nodes = len(semivalue.rule(size, order, degree=n_players - size)[0])
        steps += nodes * max(n_players, math.comb(n_players, size))
    return 8.0 + 0.27 * steps


def _fold_units(n_players: int, n_background: int, n_terms: int) -> float:
    # The tables are new memory: its pages take as long as some sixteen background rows
    return n_terms * (n_background * (35.0 + 0.06 * 2.0**n_players) + 2.0**n_players)


def _folded_row_units(n_players: int, n_terms: int, n_outputs: int, order: int) -> float:
    coalitions = 2.0**n_players
    subtractions = sum(coalitions * math.comb(n_players, size) * 2.0 ** (size - 1) for size in set_sizes(order))
    return n_outputs * (n_terms * (60.0 + 0.2 * coalitions) + 0.5 * subtractions)


def quadrature_cost(
    n_rows: int, n_background: int, n_terms: int, n_players: int, n_outputs: int, semivalue: Semivalue, order: int
) -> Cost:
    """Return the cost of quadrature with exact rules, without that of the factors."""
    work = float(n_rows) * n_background * n_terms * quadrature_units(n_players, semivalue, order)
    sets = sum(math.comb(n_players, size) for size in set_sizes(order))
    rate = seconds_per_unit("product quadrature", _quadrature_sample)
    held = 8.0 * (LANE_SETS * (6 * n_players + sets) + n_rows * n_outputs * sets)
    nodes = max(len(semivalue.rule(size, order, degree=n_players - size)[0]) for size in set_sizes(order))
    return Cost(work * rate, held, True, f"quadrature ({nodes} node{'s' if nodes != 1 else ''})")


def folded_cost(n_rows: int, n_background: int, n_terms: int, n_players: int, n_outputs: int, order: int) -> Cost:
    """Return the cost of folding the background once and of all rows. That of the factors is left out."""
    once = _fold_units(n_players, n_background, n_terms) * seconds_per_unit("product folding", _fold_sample)
    row = _folded_row_units(n_players, n_terms, n_outputs, order) * seconds_per_unit("product coalitions", _tally_sample)
    sets = sum(math.comb(n_players, size) for size in set_sizes(order))
    held = 8.0 * n_rows * n_outputs * (2.0**n_players + 2 * sets)
    return Cost(once + n_rows * row, held, True, folded_method(n_players, n_background))


# -- samples: a millisecond of work for each rate ----------------------------------------------------------------------

_ROWS, _BACKGROUND, _TERMS, _PLAYERS = 8, 16, 256, 10


def _factors(n_rows: int) -> np.ndarray:
    return np.random.default_rng(0).random((n_rows, _PLAYERS, _TERMS))


def _quadrature_sample() -> Sample:
    def run() -> None:
        weights = np.full(_BACKGROUND, 1.0 / _BACKGROUND)
        solve_terms(_factors(_ROWS), _factors(_BACKGROUND), np.ones((1, _TERMS)), weights, find("shapley"), 1, all_nodes=True)

    return _ROWS * _BACKGROUND * _TERMS * quadrature_units(_PLAYERS, find("shapley"), 1), run


def _fold_sample() -> Sample:
    def run() -> None:
        fold([(np.ones(_BACKGROUND), _factors(_BACKGROUND))], _PLAYERS, _TERMS)

    return _fold_units(_PLAYERS, _BACKGROUND, _TERMS), run


def _tally_sample() -> Sample:
    def run() -> None:
        n_low = low_players(_PLAYERS)
        table = np.ones((_TERMS, 2 ** (_PLAYERS - n_low), 2**n_low))
        coalitions = CoalitionTable(_ROWS, _PLAYERS, 1)
        nothing = np.ones((_PLAYERS, _TERMS))
        coalitions.add(slice(None), _factors(_ROWS), np.ones((1, _TERMS)), Folded(table, nothing, nothing))
        coalitions.part(find("shapley"), 1, "")

    return _ROWS * _folded_row_units(_PLAYERS, _TERMS, 1, 1), run

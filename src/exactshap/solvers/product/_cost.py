"""Forecast the solvers of product games: nominal units choose the method, this machine's rates give the cost.

The choice between quadrature and folding must not depend on the machine, as values would differ by rounding.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from exactshap._runtime.machine import Sample, seconds_per_unit
from exactshap.semivalues import Semivalue, find
from exactshap.solvers.core import Cost, set_sizes
from exactshap.solvers.product._folding import CoalitionTable, Folded, fold, folded_method, low_players
from exactshap.solvers.product._quadrature import solve_terms

# Players: 2^20 values, 8 MiB, for each term and row.
MAX_FOLDED_PLAYERS = 20
# A background is folded if that pays off within this many rows.
WORTH_ROWS = 64
# Terms that are processed together.
LANE_SETS = 32.0


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
    return Cost(work * rate, held, True, _method(n_players, semivalue, order))


def folded_cost(n_rows: int, n_background: int, n_terms: int, n_players: int, n_outputs: int, order: int) -> Cost:
    """Return the cost of folding the background once and of all rows. That of the factors is left out."""
    once = _fold_units(n_players, n_background, n_terms) * seconds_per_unit("product folding", _fold_sample)
    row = _folded_row_units(n_players, n_terms, n_outputs, order) * seconds_per_unit("product coalitions", _tally_sample)
    sets = sum(math.comb(n_players, size) for size in set_sizes(order))
    held = 8.0 * n_rows * n_outputs * (2.0**n_players + 2 * sets)
    return Cost(once + n_rows * row, held, True, folded_method(n_players, n_background))


def _method(n_players: int, semivalue: Semivalue, order: int) -> str:
    """Return the text of ``Solution.method`` for exact rules."""
    nodes = max(len(semivalue.rule(size, order, degree=n_players - size)[0]) for size in set_sizes(order))
    return f"quadrature ({nodes} node{'s' if nodes != 1 else ''})"


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

"""Players that change nothing in a row, as their columns equal the whole background: they are not paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.games import OracleGame
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution, player_sets, solve

__all__ = ["moving_players", "single_values", "solve_moving"]

FIXED_WAYS = frozenset({"estimator", "frontier", "pairing", "polynomial_order", "sampling", "surrogate", "tol"})


def single_values(background: Table) -> dict[int, Any]:
    """Return the value of each column that holds only one."""
    columns = {j: background.column(j) for j in range(background.n_columns)}
    return {j: cells[0] for j, cells in columns.items() if all(_same(cell, cells[0]) for cell in cells[1:])}


def _same(one: Any, other: Any) -> bool:
    """Say whether a function sees the same in two cells: gaps are alike; zeros of two signs are not, nor is True the number one."""
    if getattr(one, "ndim", 0) or getattr(other, "ndim", 0):  # a vector in a cell
        return np.array_equal(one, other)
    try:
        alike = bool(one == other or (one != one and other != other))
    except (TypeError, ValueError):  # pandas' NA compares to nothing
        return one is other
    return alike and _kind(one) == _kind(other)


def _kind(cell: object) -> tuple[bool, bool]:
    """Return what cells may differ in that compare as equal: whether it is a truth value, and whether it is a negative zero."""
    is_negative_zero = isinstance(cell, (float, np.floating)) and cell == 0.0 and math.copysign(1.0, cell) < 0.0
    return isinstance(cell, (bool, np.bool_)), is_negative_zero


def moving_players(players: Sequence[Sequence[int]], fixed: dict[int, Any], row: Table) -> list[int]:
    """Return players with columns where the row differs from the background. One different background row is enough."""
    idle = {j for j, value in fixed.items() if _same(row.column(j)[0], value)}
    return [place for place, columns in enumerate(players) if not idle.issuperset(columns)]


def solve_moving(game: OracleGame, moving: list[int], semivalue: Semivalue, order: int, **settings: Any) -> Solution:
    """Solve a game in which only the ``moving`` players matter: a semivalue gives exactly zero to the others."""
    d = game.n_players
    idle = [place for place in range(d) if place not in set(moving)]
    live = sorted([*moving, *idle[: max(order - len(moving), 0)]])
    if len(live) == d or FIXED_WAYS & settings.keys():
        return solve(game, semivalue, order, **settings)

    def value(masks: np.ndarray) -> np.ndarray:
        among_all = np.zeros((len(masks), d), bool)
        among_all[:, live] = masks
        return game.value(among_all)

    found = solve(OracleGame(value, len(live)), semivalue, order, **settings)
    sets = player_sets(d, order)
    number = {members: place for place, members in enumerate(sets)}
    places = [number[tuple(live[j] for j in members)] for members in found.sets]

    def among_all_sets(values: np.ndarray) -> np.ndarray:
        out = np.zeros((len(sets), *values.shape[1:]))
        out[places] = values
        return out

    return replace(
        found,
        sets=sets,
        values=among_all_sets(found.values),
        std_error=None if found.std_error is None else among_all_sets(found.std_error),
        method=f"{found.method} of {len(live)} of {d} players, which differ from the background",
    )

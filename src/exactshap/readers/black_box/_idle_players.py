"""Players that change nothing in a row, as their columns equal the whole background: they are not paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from exactshap.frames import Table

__all__ = ["moving_players", "single_values"]


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

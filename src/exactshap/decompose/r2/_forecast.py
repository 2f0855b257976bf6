"""How long and how large a decomposition of R2 will be, before anything is allocated."""

from __future__ import annotations

import numpy as np

from exactshap._runtime.memory import physical_memory
from exactshap.decompose.r2._games import BLOCK_ROWS, CHUNK_BYTES, Layout
from exactshap.decompose.r2._input import Problem
from exactshap.errors import BudgetError, memory_needed, message

__all__ = ["check_memory", "forecast_seconds"]

# Seconds on one core of a server of 2023: an increment, a table cell and axis, a factor of one row at one node, a pair's setup
INCREMENT, CELL, FACTOR, SETUP = 0.9e-9, 0.25e-9, 0.8e-9, 0.5e-6
SHALLOW_ROW, SHALLOW_TREE = 3e-9, 2e-6  # of one tree of depth at most 3


def forecast_seconds(problem: Problem, game: str, per_row: bool) -> float:
    """Return about how long the decomposition takes on one core, from the number of pairs and their typical players.

    A pair costs n increments and m 2^m additions by table, or n m^2 / 2 factors by quadrature, whichever is less.
    """
    layout = problem.layout
    if _goes_shallow(layout, game, per_row):
        return layout.trees.n_trees * (SHALLOW_TREE + SHALLOW_ROW * layout.n_rows)
    n, units = layout.n_rows, np.diff(layout.units.tree_start).astype(float)
    axes = np.add.reduceat(layout.units.size[:-1, 1].astype(float), layout.units.tree_start[:-1]) / units
    if game == "ensemble":
        total = units.sum()
        return float(total**2 / 2.0 * _pair_seconds(n, np.array([2.0 * np.average(axes, weights=units)]), per_row)[0])
    splits = np.diff(layout.trees.tree_start) // 2
    patterns = np.where(splits <= 15, np.minimum(n, 2.0 ** np.minimum(splits, 30)), n)
    players = np.maximum(1.0, 2.0 * axes - 2.0)
    rows = np.full(len(units), float(n)) if per_row else patterns
    return float(np.sum(units**2 / 2.0 * _pair_seconds(rows, players, per_row)))


def _pair_seconds(n_rows: np.ndarray | int, players: np.ndarray, per_row: bool) -> np.ndarray:
    by_rows = n_rows * players * np.ceil(players / 2.0) * FACTOR
    by_table = n_rows * INCREMENT + (players + 6.0) * 2.0 ** np.minimum(players, 60.0) * CELL
    return SETUP + (by_rows if per_row else np.minimum(by_rows, by_table))


def check_memory(problem: Problem, game: str, per_row: bool, limit: float | None) -> None:
    """Refuse what cannot fit, with the number."""
    layout = problem.layout
    if _goes_shallow(layout, game, per_row):
        _require_bytes(2.0 * CHUNK_BYTES, f"The {game!r} game of {layout.trees.n_trees} trees", layout.n_rows, limit)
        return
    n_units, width = layout.units.player.shape
    alphas = 8.0 * width * BLOCK_ROWS * (n_units if game == "ensemble" else np.diff(layout.units.tree_start).max())
    codes = 2.0 * n_units * layout.n_rows if game == "ensemble" and not per_row else 0.0
    rows = 8.0 * layout.n_rows * layout.n_players if per_row else 0.0
    needed = alphas + codes + rows + 2.0 * CHUNK_BYTES
    _require_bytes(needed, f"The {game!r} game of {n_units - 1} terms", layout.n_rows, limit)


def _goes_shallow(layout: Layout, game: str, per_row: bool) -> bool:
    return layout.shallow and game == "residual" and not per_row


def _require_bytes(needed: float, what: str, n_rows: int, limit: float | None) -> None:
    allowed = 0.8 * physical_memory() if limit is None else float(limit)
    if needed > allowed:
        raise BudgetError(
            message(
                f"{what} and {n_rows} rows does not fit",
                f"It would need {memory_needed(needed, allowed)}",
                "Pass fewer rows, a larger memory_limit=, or per_row=False",
            )
        )

"""How long and how large a decomposition of R2 will be, before anything is allocated."""

from __future__ import annotations

import numpy as np

from exactshap._runtime.calibration import Sample, seconds_per_unit
from exactshap._runtime.memory import physical_memory
from exactshap.decompose.r2._games import BLOCK_ROWS, CHUNK_BYTES, residual_rows, residual_shares
from exactshap.decompose.r2._layout import EnsembleLayout, lay_out
from exactshap.errors import BudgetError, memory_needed, message
from exactshap.solvers import Cost
from exactshap.trees.ensemble import complete_forest

__all__ = ["check_memory", "cost_of"]

# Relative work, in nanoseconds of a core of 2023: an increment, a table cell and axis, a factor of one row at one node, a pair
INCREMENT, CELL, FACTOR, SETUP = 0.9, 0.25, 0.8, 500.0
SHALLOW_ROW, SHALLOW_TREE = 3.0, 2000.0  # of one tree of depth at most 3


def cost_of(layout: EnsembleLayout, game: str, per_row: bool) -> Cost:
    """Return about what the decomposition costs on one core, from the number of pairs and their typical players.

    A pair costs n increments and m 2^m additions by table, or n m^2 / 2 factors by quadrature, whichever is less.
    """
    way = "shallow" if _goes_shallow(layout, game, per_row) else "rows" if per_row else "pairs"
    seconds = _work(layout, game, per_row) * seconds_per_unit(f"R2: {way}", lambda: _sample(way))
    return Cost(seconds, _bytes(layout, game, per_row), True, f"{game} game by {way}")


def _work(layout: EnsembleLayout, game: str, per_row: bool) -> float:
    if _goes_shallow(layout, game, per_row):
        return layout.trees.n_trees * (SHALLOW_TREE + SHALLOW_ROW * layout.n_rows)
    n, units = layout.n_rows, np.diff(layout.units.tree_start).astype(float)
    axes = np.add.reduceat(layout.units.size[:-1, 1].astype(float), layout.units.tree_start[:-1]) / units
    if game == "ensemble":
        total = units.sum()
        return float(total**2 / 2.0 * _pair_work(n, np.array([2.0 * np.average(axes, weights=units)]), per_row)[0])
    splits = np.diff(layout.trees.tree_start) // 2
    patterns = np.where(splits <= 15, np.minimum(n, 2.0 ** np.minimum(splits, 30)), n)
    players = np.maximum(1.0, 2.0 * axes - 2.0)
    rows = np.full(len(units), float(n)) if per_row else patterns
    return float(np.sum(units**2 / 2.0 * _pair_work(rows, players, per_row)))


def _pair_work(n_rows: np.ndarray | int, players: np.ndarray, per_row: bool) -> np.ndarray:
    by_rows = n_rows * players * np.ceil(players / 2.0) * FACTOR
    by_table = n_rows * INCREMENT + (players + 6.0) * 2.0 ** np.minimum(players, 60.0) * CELL
    return SETUP + (by_rows if per_row else np.minimum(by_rows, by_table))


def _sample(way: str) -> Sample:
    """Return some milliseconds of work that goes this way."""
    n_rows, n_features, depth = 1000, 12, 2 if way == "shallow" else 4
    rng = np.random.default_rng(0)
    trees = complete_forest(depth, 8 if way == "shallow" else 1, n_features)
    layout = lay_out(trees, rng.normal(size=(n_rows, n_features)), np.arange(n_features, dtype=np.int32), n_features)
    solver, weights = residual_rows if way == "rows" else residual_shares, np.ones(n_rows)
    return _work(layout, "residual", way == "rows"), lambda: solver(layout, rng.normal(size=n_rows), weights, False, None)


def check_memory(cost: Cost, layout: EnsembleLayout, game: str, limit: float | None) -> None:
    """Refuse what cannot fit, with the number."""
    allowed = 0.8 * physical_memory() if limit is None else float(limit)
    if cost.bytes > allowed:
        raise BudgetError(
            message(
                f"The {game!r} game of {layout.trees.n_trees} trees and {layout.n_rows} rows does not fit",
                f"It would need {memory_needed(cost.bytes, allowed)}",
                "Pass fewer rows, a larger memory_limit=, or per_row=False",
            )
        )


def _bytes(layout: EnsembleLayout, game: str, per_row: bool) -> float:
    if _goes_shallow(layout, game, per_row):
        return 2.0 * CHUNK_BYTES
    n_units, width = layout.units.player.shape
    alphas = 8.0 * width * BLOCK_ROWS * (n_units if game == "ensemble" else np.diff(layout.units.tree_start).max())
    codes = 2.0 * n_units * layout.n_rows if game == "ensemble" and not per_row else 0.0
    rows = 8.0 * layout.n_rows * layout.n_players if per_row else 0.0
    return float(alphas + codes + rows + 2.0 * CHUNK_BYTES)


def _goes_shallow(layout: EnsembleLayout, game: str, per_row: bool) -> bool:
    return layout.shallow and game == "residual" and not per_row

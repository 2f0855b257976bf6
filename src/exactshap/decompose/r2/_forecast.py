"""Forecast seconds and bytes of a decomposition of R2, before anything is allocated."""

from __future__ import annotations

import numpy as np

from exactshap._runtime.calibration import Sample, seconds_per_unit
from exactshap._runtime.memory import physical_memory
from exactshap.decompose.r2._games import (
    BLOCK_ROWS,
    CHUNK_BYTES,
    bytes_of_a_wave,
    ensemble_rows,
    ensemble_shares,
    residual_rows,
    residual_shares,
)
from exactshap.decompose.r2._layout import EnsembleLayout, lay_out
from exactshap.errors import BudgetError, memory_needed, message
from exactshap.solvers import Cost
from exactshap.trees.ensemble import complete_forest

__all__ = ["check_memory", "cost_of"]

# Nanoseconds of a core of 2023, which a sample of each way turns into those of this machine. They were fitted to 200 decompositions
# of trees of depth 2 to 8, 200 to 10,000 rows and 5 to 30 columns, within a factor of 1.7.
CALL, SHALLOW_TREE, SHALLOW_ROW = 30e3, 1e3, 1.6  # trees of depth at most 3, tree by tree
TREE, NODE_ROW, PAIR, INCREMENT, CELL = 10e3, 5.0, 280.0, 1.6, 0.02  # pairs of units by table
FACTOR = {"residual": 1.6, "ensemble": 0.95}  # of a pair, one of its players and a row, by quadrature
BLOCK = {"residual": 50e3, "ensemble": 10e3}  # of a block of rows
SKEW = {
    "residual": 0.5,
    "ensemble": 1.75,
}  # of a sample's columns: real rows share cells of the tables, and their sums wait for each other


def cost_of(layout: EnsembleLayout, game: str, per_row: bool) -> Cost:
    """Return about what the decomposition costs on one core, from the number of pairs and their typical players.

    A pair costs n increments and m 2^m additions by table, or n m factors by quadrature, whichever is less.
    """
    way = "shallow" if _goes_shallow(layout, game, per_row) else "rows" if per_row else "pairs"
    seconds = _work(layout, game, per_row) * seconds_per_unit(f"R2: {game} by {way}", lambda: _sample(game, way))
    return Cost(seconds, _bytes(layout, game, per_row), True, f"{game} game by {way}")


def _work(layout: EnsembleLayout, game: str, per_row: bool) -> float:
    n, n_trees = layout.n_rows, layout.trees.n_trees
    if _goes_shallow(layout, game, per_row):
        return CALL + n_trees * (SHALLOW_TREE + SHALLOW_ROW * n)
    units = np.diff(layout.units.tree_start).astype(float)
    axes = np.add.reduceat(layout.units.size[:-1, 1].astype(float), layout.units.tree_start[:-1]) / units
    rows = np.full(n_trees, float(n))
    if game == "ensemble":
        pairs, players, rows = (
            units.sum(keepdims=True) ** 2 / 2.0,
            2.0 * np.average(axes, weights=units, keepdims=True),
            rows[:1],
        )
    else:
        pairs, players = (
            units**2 / 2.0,
            np.maximum(1.0, 2.0 * axes - 2.0),
        )  # pairs of a tree share the upper part of their paths
        splits = np.diff(layout.trees.tree_start) // 2
        rows = rows if per_row else np.where(splits <= 15, np.minimum(n, 2.0 ** np.minimum(splits, 30)), n)
    players = np.minimum(players, layout.n_players)
    by_rows = rows * players * FACTOR[game]
    if per_row:
        return float(BLOCK[game] * np.ceil(n / BLOCK_ROWS) + np.sum(pairs * by_rows))
    by_table = rows * INCREMENT + (players + 6.0) * 2.0 ** np.minimum(players, 60.0) * CELL
    codes = NODE_ROW * layout.trees.n_nodes * n if game == "ensemble" else 0.0
    return float(n_trees * TREE + codes + np.sum(pairs * (PAIR + np.minimum(by_rows, by_table))))


def _sample(game: str, way: str) -> Sample:
    """Return a millisecond or so of work that goes this way."""
    n_rows, n_features, rng = 1000, 12, np.random.default_rng(0)
    trees = complete_forest(2 if way == "shallow" else 4, 4, n_features)
    layout = lay_out(
        trees, SKEW[game] + rng.normal(size=(n_rows, n_features)), np.arange(n_features, dtype=np.int32), n_features
    )
    target, weights = rng.normal(size=n_rows), np.ones(n_rows)
    if game == "ensemble":
        solve = ensemble_rows if way == "rows" else ensemble_shares
        return _work(layout, game, way == "rows"), lambda: solve(layout, target, weights, None)
    residual_game = residual_rows if way == "rows" else residual_shares
    return _work(layout, game, way == "rows"), lambda: residual_game(layout, target.copy(), weights, False, None)


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
    met = bytes_of_a_wave(layout) if game == "residual" and not per_row else 0.0
    return float(alphas + codes + rows + met + 2.0 * CHUNK_BYTES)


def _goes_shallow(layout: EnsembleLayout, game: str, per_row: bool) -> bool:
    return layout.shallow and game == "residual" and not per_row

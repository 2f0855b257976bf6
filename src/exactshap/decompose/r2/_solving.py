"""Solve the games of R2, with a forecast of seconds and bytes before anything is allocated."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.checks import check_memory_limit
from exactshap._runtime.machine import Sample, physical_memory, seconds_per_unit
from exactshap.decompose.r2 import _games as games
from exactshap.decompose.r2._games import (
    BLOCK_ROWS,
    CHUNK_BYTES,
    EnsembleLayout,
    bytes_of_a_wave,
    ensemble_rows,
    ensemble_shares,
    lay_out,
    residual_rows,
    residual_shares,
)
from exactshap.decompose.r2._input import R2Problem, R2Sums, check_seconds
from exactshap.errors import BudgetError, InputError, UnknownNameError, did_you_mean, memory_needed
from exactshap.solvers import Cost
from exactshap.trees import apply
from exactshap.trees.ensemble import complete_forest

GAMES = ("residual", "ensemble")


def forecast(problem: R2Problem, game: str, per_row: bool, memory_limit: float | None) -> float:
    """Return the forecast seconds of one core; warn above a minute, refuse above a day or the memory limit."""
    cost, layout = cost_of(problem.layout, game, per_row), problem.layout
    if memory_limit is not None:
        check_memory_limit(memory_limit)
    allowed, seconds = 0.8 * physical_memory() if memory_limit is None else float(memory_limit), cost.seconds
    if cost.bytes > allowed:
        raise BudgetError(
            f"The {game!r} game of {layout.trees.n_trees} trees and {layout.n_rows} rows does not fit",
            f"It would need {memory_needed(cost.bytes, allowed)}",
            "Pass fewer rows, a larger memory_limit=, or per_row=False",
        )
    what = f"The {game!r} game of {problem.ensemble.name} is forecast to take {seconds:.2g} s on one core"
    do = "Pass n_jobs=, fewer rows, or game='residual'" if game == "ensemble" else "Pass n_jobs= or fewer rows"
    check_seconds(seconds, what, do)
    return seconds


# Shapley(Q) by player and by row, the predictions, and Q of no player
Solved = tuple[np.ndarray, np.ndarray | None, np.ndarray, float]


def _solve_ensemble(problem: R2Problem, per_row: bool, n_jobs: int | None) -> Solved:
    layout, weights = problem.layout, problem.weights
    target = problem.y - problem.ensemble.trees.constant[0]
    rows = games.ensemble_rows(layout, target, weights, n_jobs) if per_row else None
    shares = games.ensemble_shares(layout, target, weights, n_jobs) if rows is None else rows.sum(axis=0)
    return shares, rows, problem.predict(), float(np.sum(weights * (target - layout.arrays.empty.sum()) ** 2))


def _solve_averaged(problem: R2Problem, per_row: bool, n_jobs: int | None) -> Solved:
    """Solve averaged trees: each tree's residual is y less half of the others, all centred (see decompose_r2)."""
    layout, weights = problem.layout, problem.weights
    prediction, empty = problem.predict(), problem.ensemble.trees.constant[0] + layout.arrays.empty.sum()
    base = problem.y - empty - 0.5 * (prediction - empty)
    rows = games.residual_rows(layout, base, weights, True, n_jobs) if per_row else None
    shares = games.residual_shares(layout, base, weights, True, n_jobs)[0] if rows is None else rows.sum(axis=0)
    return shares, rows, prediction, problem.squared_error(empty)


def _solve_boosted(problem: R2Problem, per_row: bool, n_jobs: int | None) -> Solved:
    """Solve boosted trees: each has the residual of those before it (Jiang, Zhang & Zhang, equation 9)."""
    layout, weights, trees = problem.layout, problem.weights, problem.ensemble.trees
    start, rows = problem.y - trees.constant[0], None
    if per_row:
        rows, prediction = games.residual_rows(layout, start, weights, False, n_jobs), problem.predict()
        added = weights @ trees.value[:, 0][apply(trees, problem.numbers)]
        shares, met = rows.sum(axis=0), np.sum(weights * start) - np.concatenate([[0.0], np.cumsum(added)[:-1]])
    else:
        residual = start.copy()
        shares, met = games.residual_shares(layout, residual, weights, False, n_jobs)
        prediction = problem.y - residual
    empty = layout.arrays.empty
    drift = np.sum(empty**2) * problem.weight - 2.0 * np.sum(empty * met)
    return shares, rows, prediction, float(np.sum(weights * start**2) + drift)


def solve_sums(
    problem: R2Problem, game: str, n_jobs: int | None, memory_limit: float | None, *, per_row: bool = False
) -> tuple[R2Sums, np.ndarray | None]:
    """Return what some rows add to the sums, and each row's part. The model's own predictions check it."""
    seconds = forecast(problem, game, per_row, memory_limit)
    solve = _solve_ensemble if game == "ensemble" else _solve_boosted if problem.boosted else _solve_averaged
    shares, rows, prediction, empty = solve(problem, per_row, n_jobs)
    problem.check_prediction(prediction)
    squared_error = problem.squared_error(prediction)
    sums = R2Sums(
        facts={
            "model": problem.ensemble.name,
            "n_trees": problem.ensemble.trees.n_trees,
            "order": "given" if problem.boosted else "averaged",
            "checked_against_model": problem.own_prediction is not None,
        },
        statistic="Brier skill score" if problem.ensemble.unit == "probability" else "R2",
        feature_names=problem.player_names,
        game=game,
        shares=shares,
        expected=empty - squared_error,
        rounding=problem.rounding(game),
        squared_error=squared_error,
        weight=problem.weight,
        mean=problem.mean,
        variation=problem.sst,
        n_rows=len(problem.y),
        seconds=seconds,
    )
    return sums, rows


def check_game(game: Any) -> None:
    """Refuse an unknown game."""
    if game == "refit":
        do = "Call decompose_r2(model, X, y, game='refit') on all rows"
        raise InputError("Shares of refits are not sums over rows, so that parts cannot be added up", "Got game='refit'", do)
    if game not in GAMES:
        raise UnknownNameError(f"Unknown game {game!r}", do=did_you_mean(str(game), GAMES))


# Nanoseconds of a core of 2023; a sample of each method scales them to this machine. They were fitted to 200 decompositions
# of trees of depth 2 to 8, 200 to 10,000 rows and 5 to 30 columns, within a factor of 1.7.
CALL, SHALLOW_TREE, SHALLOW_ROW = 30e3, 1e3, 1.6  # trees of depth at most 3, tree by tree
TREE, NODE_ROW, PAIR, INCREMENT, CELL = 10e3, 5.0, 280.0, 1.6, 0.02  # pairs of units by table
FACTOR = {"residual": 1.6, "ensemble": 0.95}  # of a pair, one of its players and a row, by quadrature
BLOCK = {"residual": 50e3, "ensemble": 10e3}  # of a block of rows
# Of a sample's columns: real rows share cells of the tables, and their sums wait for each other.
SKEW = {"residual": 0.5, "ensemble": 1.75}


def cost_of(layout: EnsembleLayout, game: str, per_row: bool) -> Cost:
    """Estimate the cost on one core from pairs: n increments and m 2^m additions by table, or n m factors, if that is less."""
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
        pairs, rows = units.sum(keepdims=True) ** 2 / 2.0, rows[:1]
        players = 2.0 * np.average(axes, weights=units, keepdims=True)
    else:
        # Pairs of a tree share the upper part of their paths.
        pairs, players = units**2 / 2.0, np.maximum(1.0, 2.0 * axes - 2.0)
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
    """Return about a millisecond of work for a method."""
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

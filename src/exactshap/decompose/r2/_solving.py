"""Solve for the sums that R2 and its shares are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.decompose.r2 import _games as games
from exactshap.decompose.r2._forecast import check_memory, cost_of
from exactshap.decompose.r2._input import R2Problem
from exactshap.decompose.r2._result import R2Sums
from exactshap.errors import BudgetError, ExplanationWarning, UnknownNameError, did_you_mean, message, warn

__all__ = ["Solved", "check_game", "forecast", "solve", "solve_sums", "sums"]

GAMES = ("residual", "ensemble")
WARN_SECONDS, REFUSE_SECONDS = 60.0, 86_400.0  # of one core: a minute is said beforehand, a day refused


def forecast(problem: R2Problem, game: str, per_row: bool, memory_limit: float | None) -> float:
    """Return the seconds that one core will take; warn of a minute, refuse a day and what does not fit."""
    cost = cost_of(problem.layout, game, per_row)
    check_memory(cost, problem.layout, game, memory_limit)
    seconds = cost.seconds
    what = f"The {game!r} game of {problem.ensemble.name} is forecast to take {seconds:.2g} s on one core"
    do = "Pass n_jobs=, fewer rows, or game='residual'" if game == "ensemble" else "Pass n_jobs= or fewer rows"
    if seconds > REFUSE_SECONDS:
        raise BudgetError(message(what, "More than a day", do))
    if seconds > WARN_SECONDS:
        warn(message(what, do=do), ExplanationWarning)
    return seconds


@dataclass(frozen=True, eq=False)
class Solved:
    """Hold Shapley(Q) by player, with its rows if wanted, the predictions, their squared error and what ``sum(values)`` must be times SST."""

    shares: np.ndarray
    rows: np.ndarray | None
    prediction: np.ndarray
    squared_error: float
    expected: float


def solve(problem: R2Problem, game: str, per_row: bool, n_jobs: int | None) -> Solved:
    """Solve the residual or the ensemble game."""
    if game == "ensemble":
        return _solve_ensemble(problem, per_row, n_jobs)
    return _solve_boosted(problem, per_row, n_jobs) if problem.boosted else _solve_averaged(problem, per_row, n_jobs)


def _solve_ensemble(problem: R2Problem, per_row: bool, n_jobs: int | None) -> Solved:
    layout, weights = problem.layout, problem.weights
    target = problem.y - problem.ensemble.trees.constant[0]
    prediction = problem.predict()
    rows = games.ensemble_rows(layout, target, weights, n_jobs) if per_row else None
    shares = games.ensemble_shares(layout, target, weights, n_jobs) if rows is None else rows.sum(axis=0)
    empty, squared_error = np.sum(weights * (target - layout.empty.sum()) ** 2), problem.squared_error(prediction)
    return Solved(shares, rows, prediction, squared_error, empty - squared_error)


def _solve_averaged(problem: R2Problem, per_row: bool, n_jobs: int | None) -> Solved:
    """Tree by tree where the trees have no order: each meets y less half of the others, all centred (see decompose_r2)."""
    layout, weights = problem.layout, problem.weights
    prediction, empty = problem.predict(), problem.ensemble.trees.constant[0] + layout.empty.sum()
    base = problem.y - empty - 0.5 * (prediction - empty)
    rows = games.residual_rows(layout, base, weights, True, n_jobs) if per_row else None
    shares = games.residual_shares(layout, base, weights, True, n_jobs)[0] if rows is None else rows.sum(axis=0)
    squared_error = problem.squared_error(prediction)
    return Solved(shares, rows, prediction, squared_error, problem.squared_error(empty) - squared_error)


def _solve_boosted(problem: R2Problem, per_row: bool, n_jobs: int | None) -> Solved:
    """Tree by tree in the given order: each meets the residual of those before it (Jiang, Zhang & Zhang, equation 9)."""
    layout, weights = problem.layout, problem.weights
    start = problem.y - problem.ensemble.trees.constant[0]
    residual = start.copy()
    if per_row:
        rows = games.residual_rows(layout, start, weights, False, n_jobs)
        prediction = problem.predict()
        shares, met = rows.sum(axis=0), problem.residual_sums(start)
    else:
        rows = None
        shares, met = games.residual_shares(layout, residual, weights, False, n_jobs)
        prediction = problem.y - residual
    squared_error = problem.squared_error(prediction)
    drift = np.sum(layout.empty**2) * problem.weight - 2.0 * np.sum(layout.empty * met)
    return Solved(shares, rows, prediction, squared_error, np.sum(weights * start**2) - squared_error + drift)


def sums(problem: R2Problem, game: str, solved: Solved, seconds: float) -> R2Sums:
    """Return what the rows of a problem add to each sum that R2 and its shares are made of."""
    return R2Sums(
        facts={
            "model": problem.ensemble.name,
            "n_trees": problem.ensemble.trees.n_trees,
            "order": "given" if problem.boosted else "averaged",
            "checked_against_model": problem.own_prediction is not None,
        },
        statistic="Brier skill score" if problem.ensemble.unit == "probability" else "R2",
        feature_names=problem.player_names,
        game=game,
        shares=solved.shares,
        expected=solved.expected,
        rounding=problem.rounding(game),
        squared_error=solved.squared_error,
        weight=problem.weight,
        mean=problem.mean,
        variation=problem.sst,
        n_rows=len(problem.y),
        seconds=seconds,
    )


def solve_sums(problem: R2Problem, game: str, n_jobs: int | None, memory_limit: float | None) -> R2Sums:
    """Return the sums of a problem, checked against the model's own predictions."""
    seconds = forecast(problem, game, False, memory_limit)
    solved = solve(problem, game, False, n_jobs)
    problem.check_prediction(solved.prediction)
    return sums(problem, game, solved, seconds)


def check_game(game: Any) -> None:
    """Refuse the name of a game that is not known."""
    if game not in GAMES:
        raise UnknownNameError(message(f"Unknown game {game!r}", do=did_you_mean(str(game), GAMES)))

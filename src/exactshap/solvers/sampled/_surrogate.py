"""Fit structured surrogates of a game to sampled coalitions, with exact values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from exactshap.games import ProductGame
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import count_sets
from exactshap.solvers.sampled._problem import RegressionProblem
from exactshap.solvers.sampled.process import CubeProcess, fit_process

# Pairs that decide the relevances of up to 1,600, and so many more of more that the time grows as the calls; all pairs decide the values
RELEVANCE_ROWS, OF_ROWS = 1000, 1600


class Surrogate(NamedTuple):
    """Predict coalitions by a game with exact values."""

    predict: Callable[[np.ndarray], np.ndarray]  # from masks to (n_masks, n_outputs)
    values: Callable[[Semivalue, int], np.ndarray]  # of an index and an order: (n_sets, n_outputs)


def game_values(game: ProductGame, semivalue: Semivalue, order: int) -> np.ndarray:
    """Return the exact values (n_sets, n_outputs) of a product game."""
    from exactshap.solvers.product import solve_product

    return np.asarray(solve_product(game, semivalue, order).values)


def posterior(problem: RegressionProblem, relevance_rows: int | None = None) -> CubeProcess:
    """Return the process given all calls so far, its relevances fitted to at most so many rows."""
    known = 1 if problem.paired else 2  # the full coalition, and the empty one unless pairs include it
    ends = np.array([[True] * problem.n_players, [False] * problem.n_players])
    n = problem.n_fitted
    masks = np.concatenate([ends[:known], problem.masks[:n]])
    most = problem.settings.relevance_rows or round(RELEVANCE_ROWS * max(len(masks) / OF_ROWS, 1.0) ** (1.0 / 3.0))
    return fit_process(
        2.0 * masks - 1.0,
        np.concatenate([np.stack([problem.full, problem.empty])[:known], problem.inside[:n]]),
        np.concatenate([problem.empty[None], problem.outside[:n]]) if problem.paired else None,
        even=problem.sees_even,
        relevance_rows=min(most, relevance_rows or most),
        rng=problem.rng,
        start=problem.relevances,
    )


def _fit_process(masks: np.ndarray, inside: np.ndarray, outside: np.ndarray, rng: np.random.Generator) -> Surrogate:
    _, distinct = np.unique(np.where(masks[:, :1], masks, ~masks), axis=0, return_index=True)
    rows = np.concatenate([[0], np.sort(distinct[distinct > 0])])
    points = 2.0 * masks[rows] - 1.0
    process = fit_process(points, inside[rows], outside[rows], even=True, relevance_rows=200, rng=rng)
    return Surrogate(process.predict, lambda semivalue, order: game_values(process.game(), semivalue, order))


def _fit_boosting(masks: np.ndarray, inside: np.ndarray, outside: np.ndarray, rng: np.random.Generator) -> Surrogate:
    """Fit boosted trees on memberships, one model per output; their game is that of a row of ones, 0 where a player is absent."""
    from sklearn.ensemble import GradientBoostingRegressor

    from exactshap.solvers.trees import prepare_trees, solve_trees
    from exactshap.trees import convert

    rows, targets = np.vstack([masks, ~masks]).astype(float), np.vstack([inside, outside])
    settings = {"n_estimators": 200, "max_depth": 4, "learning_rate": 0.1, "random_state": int(rng.integers(2**31))}
    models = [GradientBoostingRegressor(**settings).fit(rows, target) for target in targets.T]
    absent, present = np.zeros((1, masks.shape[1])), np.ones((1, masks.shape[1]))

    def predict(masks: np.ndarray) -> np.ndarray:
        return np.stack([model.predict(masks.astype(float)) for model in models], axis=1)

    def values(semivalue: Semivalue, order: int) -> np.ndarray:
        games = (prepare_trees(convert(model).trees, [[j] for j in range(masks.shape[1])], absent) for model in models)
        return np.stack([solve_trees(game, present, semivalue, order).values[0] for game in games], axis=1)

    return Surrogate(predict, values)


def _fit_nothing(masks: np.ndarray, inside: np.ndarray, outside: np.ndarray, rng: np.random.Generator) -> Surrogate:
    """Fit the mean answer: a constant, with values of zero."""
    level = (inside.mean(axis=0) + outside.mean(axis=0)) / 2.0
    n_players = masks.shape[1]
    return Surrogate(
        lambda masks: np.tile(level, (len(masks), 1)),
        lambda semivalue, order: np.zeros((count_sets(n_players, order), len(level))),
    )


# name -> fit(masks, inside, outside, rng); the first row is the full coalition, its complement the empty one
SURROGATES = {"process": _fit_process, "boosting": _fit_boosting, "none": _fit_nothing}

"""Fit structured surrogates of a game to sampled coalitions, with exact values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from exactshap._runtime.types import Foreign, Model
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
    """Fit boosted trees on memberships, one model per output; a leaf is a product of one-player indicators."""
    from sklearn.ensemble import GradientBoostingRegressor

    rows, targets = np.vstack([masks, ~masks]).astype(float), np.vstack([inside, outside])
    settings = {"n_estimators": 200, "max_depth": 4, "learning_rate": 0.1, "random_state": int(rng.integers(2**31))}
    models = [GradientBoostingRegressor(**settings).fit(rows, target) for target in targets.T]

    def predict(masks: np.ndarray) -> np.ndarray:
        return np.stack([model.predict(masks.astype(float)) for model in models], axis=1)

    def values(semivalue: Semivalue, order: int) -> np.ndarray:
        games = (_game_of_trees(model, masks.shape[1]) for model in models)
        return np.concatenate([game_values(game, semivalue, order) for game in games], axis=1)

    return Surrogate(predict, values)


def _game_of_trees(model: Model, n_players: int) -> ProductGame:
    """Return boosted trees as a product game up to a constant."""
    leaves = [leaf for tree in model.estimators_[:, 0] for leaf in _leaf_products(tree.tree_, n_players)]
    values, inside, outside = map(np.array, zip(*leaves, strict=True))
    return ProductGame(model.learning_rate * values[:, None], inside, outside)


def _leaf_products(tree: Foreign, n_players: int) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Return (value, factors inside, factors outside) of every leaf of a scikit-learn tree grown on memberships of 0 and 1."""
    leaves, stack = [], [(0, np.ones(n_players), np.ones(n_players))]
    while stack:
        node, a, b = stack.pop()
        if tree.children_left[node] < 0:
            leaves.append((float(tree.value[node].ravel()[0]), a, b))
            continue
        player = tree.feature[node]
        without, with_ = a.copy(), b.copy()
        without[player] = 0.0  # left: membership 0
        with_[player] = 0.0  # right: membership 1
        stack.append((tree.children_left[node], without, b))
        stack.append((tree.children_right[node], a, with_))
    return leaves


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

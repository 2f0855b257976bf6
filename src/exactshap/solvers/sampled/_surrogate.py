"""Structured stand-ins for a game, fitted to sampled coalitions, with exact values of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from exactshap.games import ProductGame
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import count_sets
from exactshap.solvers.sampled._problem import RegressionProblem
from exactshap.solvers.sampled.process import CubeProcess, fit_process

RELEVANCE_ROWS = 1000  # so many pairs decide the relevances, a third of all if that is more; all pairs decide the values
MOST_RELEVANCE_ROWS = 3000
MAX_ITERATIONS = 25


class Surrogate(Protocol):
    """Anything that predicts coalitions and has exact values."""

    def predict(self, masks: np.ndarray) -> np.ndarray:
        """Return the surrogate's value (n_masks, n_outputs) of every coalition."""

    def values(self, semivalue: Semivalue, order: int) -> np.ndarray:
        """Return the surrogate's exact values (n_sets, n_outputs)."""


def game_values(game: ProductGame, semivalue: Semivalue, order: int) -> np.ndarray:
    """Return the exact values (n_sets, n_outputs) of a product game."""
    from exactshap.solvers.product import solve_product

    return np.asarray(solve_product(game, semivalue, order).values)


@dataclass(frozen=True, eq=False)
class ProcessSurrogate:
    process: CubeProcess

    def predict(self, masks: np.ndarray) -> np.ndarray:
        return self.process.predict(masks)

    def values(self, semivalue: Semivalue, order: int) -> np.ndarray:
        return game_values(self.process.game(), semivalue, order)


@dataclass(frozen=True, eq=False)
class BoostingSurrogate:
    """Gradient-boosted trees on memberships: every leaf is a product of one-player indicators."""

    models: tuple[Any, ...]  # one per output
    n_players: int

    def predict(self, masks: np.ndarray) -> np.ndarray:
        return np.stack([model.predict(masks.astype(float)) for model in self.models], axis=1)

    def values(self, semivalue: Semivalue, order: int) -> np.ndarray:
        return np.concatenate([game_values(self._game(model), semivalue, order) for model in self.models], axis=1)

    def _game(self, model: Any) -> ProductGame:
        values, inside, outside = [], [], []
        for tree in model.estimators_[:, 0]:
            for value, a, b in leaf_products(tree.tree_, self.n_players):
                values.append(model.learning_rate * value)
                inside.append(a)
                outside.append(b)
        return ProductGame(np.array(values)[:, None], np.array(inside), np.array(outside))


def leaf_products(tree: Any, n_players: int) -> list[tuple[float, np.ndarray, np.ndarray]]:
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


@dataclass(frozen=True, eq=False)
class NoSurrogate:
    n_players: int
    level: np.ndarray  # (n_outputs,)

    def predict(self, masks: np.ndarray) -> np.ndarray:
        return np.tile(self.level, (len(masks), 1))

    def values(self, semivalue: Semivalue, order: int) -> np.ndarray:
        return np.zeros((count_sets(self.n_players, order), len(self.level)))


def posterior(problem: RegressionProblem, relevance_rows: int | None = None) -> CubeProcess:
    """Return the process given all calls so far, its relevances fitted to at most so many rows."""
    known = 1 if problem.paired else 2  # the full coalition, and the empty one where it is not the full one's complement
    ends = np.array([[True] * problem.n_players, [False] * problem.n_players])
    masks = np.concatenate([ends[:known], problem.masks])
    most = problem.settings.relevance_rows or min(max(RELEVANCE_ROWS, len(masks) // 3), MOST_RELEVANCE_ROWS)
    return fit_process(
        2.0 * masks - 1.0,
        np.concatenate([np.stack([problem.full, problem.empty])[:known], problem.inside]),
        np.concatenate([problem.empty[None], problem.outside]) if problem.paired else None,
        even=problem.sees_even,
        relevance_rows=min(most, relevance_rows or most),
        max_iterations=MAX_ITERATIONS,
        rng=problem.rng,
        start=problem.relevances,
    )


def _fit_process(masks: np.ndarray, inside: np.ndarray, outside: np.ndarray, rng: np.random.Generator) -> Surrogate:
    _, distinct = np.unique(np.where(masks[:, :1], masks, ~masks), axis=0, return_index=True)
    rows = np.concatenate([[0], np.sort(distinct[distinct > 0])])
    points = 2.0 * masks[rows] - 1.0
    return ProcessSurrogate(
        fit_process(points, inside[rows], outside[rows], even=True, relevance_rows=200, max_iterations=25, rng=rng)
    )


def _fit_boosting(masks: np.ndarray, inside: np.ndarray, outside: np.ndarray, rng: np.random.Generator) -> Surrogate:
    from sklearn.ensemble import GradientBoostingRegressor

    rows, targets = np.vstack([masks, ~masks]).astype(float), np.vstack([inside, outside])
    settings = {"n_estimators": 200, "max_depth": 4, "learning_rate": 0.1, "random_state": int(rng.integers(2**31))}
    models = tuple(GradientBoostingRegressor(**settings).fit(rows, target) for target in targets.T)
    return BoostingSurrogate(models, masks.shape[1])


def _fit_nothing(masks: np.ndarray, inside: np.ndarray, outside: np.ndarray, rng: np.random.Generator) -> Surrogate:
    return NoSurrogate(masks.shape[1], (inside.mean(axis=0) + outside.mean(axis=0)) / 2.0)


# name -> fit(masks, inside, outside, rng); the first row is the full coalition, its complement the empty one
SURROGATES = {"process": _fit_process, "boosting": _fit_boosting, "none": _fit_nothing}

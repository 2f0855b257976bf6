r"""Explain piecewise linear functions of sums over players, such as isotonic calibrations.

.. math:: v_x(S) = \sum_z w_z\, g\Bigl(\beta + \sum_{j \in S} s_j(x) + \sum_{j \notin S} s_j(z)\Bigr), \qquad
    g(t) = g_0 + \sum_k c_k \max(0, t - t_k)

Each knot between the least and the largest score of a hybrid is a hinge (:func:`exactshap.solvers.product.solve_hinges`); all hinges
of a background row share one sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap.errors import BudgetError, message
from exactshap.frames import Table
from exactshap.games import OracleGame, normalised_weights
from exactshap.readers import Reader, RowGames
from exactshap.readers.responses._exact import PlayerScores
from exactshap.readers.responses._links import Isotonic, Response
from exactshap.readers.responses._reader import CHUNK_VALUES, LinkedReader
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part, Solution, player_sets
from exactshap.solvers.product import MAX_HINGE_PLAYERS, solve_hinges


class PiecewiseReader(LinkedReader):
    """Read a piecewise linear function of a sum over players with one output, bound to a background."""

    block_rows = 16

    def __init__(self, inner: Reader, scores: PlayerScores, response: Response) -> None:
        super().__init__(inner, response)
        assert inner.traits.background is not None
        assert response.pieces is not None
        self.pieces: Isotonic = response.pieces
        # knots, and coalitions of a half of the players; rounding grows with their root
        n_terms = len(self.pieces.knots) * 2.0 ** (min(self.traits.n_players, MAX_HINGE_PLAYERS) / 2)
        traits = self.traits.with_rounding(n_terms=n_terms, relative=None, floor=1.0)
        self.traits = replace(traits, weights=normalised_weights(inner.traits.weights, inner.traits.background.n_rows))
        self.scores = scores
        self._absent = scores.of(inner.traits.background, "background")

    def game(self, X: Table) -> RowGames:
        """Return the rows' games, by their definition."""
        games = tuple(OracleGame(self._value(row), self.traits.n_players) for row in self.scores.of(X))
        return RowGames(games, self.traits.n_players, 1, True)

    def _value(self, row: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        steps, base = row - self._absent, self.scores.intercept + self._absent.sum(axis=1)
        step = max(1, CHUNK_VALUES // len(base))

        def value(masks: np.ndarray) -> np.ndarray:
            parts = (masks[start : start + step].astype(float) for start in range(0, max(len(masks), 1), step))
            return np.concatenate([self.pieces(base + part @ steps.T) @ np.asarray(self.traits.weights) for part in parts])

        return value

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Solve row by row."""
        if not X.n_rows:
            sets = player_sets(self.traits.n_players, order)
            return Solution(Part.zeros(0, len(sets)), sets)
        scores = self.scores.of(X)
        sizes = np.abs(self.pieces.slopes).max() * self.scores.sizes(X)
        return Solution.join(
            (self._row(row, float(size), semivalue, order) for row, size in zip(scores, sizes, strict=True)), len(scores)
        )

    def _row(self, row: np.ndarray, size: float, semivalue: Semivalue, order: int) -> Solution:
        steps = row - self._absent
        hinges = _hinges(self.pieces, steps, self.scores.intercept + self._absent.sum(axis=1), np.asarray(self.traits.weights))
        try:
            part = solve_hinges(steps, hinges.starts, hinges.shifts, hinges.coefficients[:, None], semivalue, order)
        except BudgetError as error:
            got = f"More than {MAX_HINGE_PLAYERS} players move a score across a knot"
            do = "Join columns with groups=, or sample: explain(model.predict_proba, X, background)"
            raise BudgetError(
                message(f"{self.traits.model_name} has too many players for its isotonic calibration", got, do)
            ) from error
        part = replace(part, scale=part.scale + size)
        return part.finish(
            self.traits.n_players,
            semivalue,
            order,
            constant=np.array([hinges.constant]),
            single_output=True,
            with_residual=False,
        )

    def bind(self, row: Table) -> PiecewiseReader:
        bound = self._rebound(row, np.ones(1))
        bound._absent = self.scores.of(row, "background")
        return bound

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Time one row with one background row, and multiply."""
        assert self.traits.background is not None
        row, bound = few.take(slice(0, 1)), self.bind(self.traits.background.take(slice(0, 1)))
        seconds = clocked(lambda: bound.solve(row, semivalue, order)) * self.traits.background.n_rows
        return Cost(n_rows * seconds, self.memory(block_rows, order), method="meet in the middle")


class _Hinges(NamedTuple):
    starts: np.ndarray
    shifts: np.ndarray
    coefficients: np.ndarray
    constant: float


def _hinges(pieces: Isotonic, steps: np.ndarray, base: np.ndarray, weights: np.ndarray) -> _Hinges:
    """Return the hinges of each background row within the range of its hybrids, so that slopes outside of it cancel nothing.

    The first one is at the least score: there the function is a constant and its slope.
    """
    low, high = base + np.minimum(steps, 0.0).sum(axis=1), base + np.maximum(steps, 0.0).sum(axis=1)
    knots, slopes = pieces.knots, np.concatenate([[0.0], pieces.slopes, [0.0]])
    places = np.concatenate([low[:, None], np.broadcast_to(knots, (len(low), len(knots)))], axis=1)
    bends = np.broadcast_to(np.diff(slopes), (len(low), len(knots)))
    c = np.concatenate([slopes[np.searchsorted(knots, low, side="right")][:, None], bends], axis=1)
    used = np.concatenate([c[:, :1] != 0.0, (knots > low[:, None]) & (knots < high[:, None])], axis=1)
    starts = np.cumsum([0, *used.sum(axis=1)])
    return _Hinges(starts, (base[:, None] - places)[used], (weights[:, None] * c)[used], float(weights @ pieces(low)))

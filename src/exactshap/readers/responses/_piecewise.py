r"""Explain piecewise linear functions of sums over players, such as isotonic calibrations.

.. math:: v_x(S) = \sum_z w_z\, g\Bigl(\beta + \sum_{j \in S} s_j(x) + \sum_{j \notin S} s_j(z)\Bigr), \qquad
    g(t) = g_0 + \sum_k c_k \max(0, t - t_k)

Each knot between the least and the largest score of a hybrid is a hinge (:func:`exactshap.solvers.product.solve_hinges`); all hinges
of a background row share one sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from exactshap.errors import BudgetError
from exactshap.frames import Table
from exactshap.readers import Reader
from exactshap.readers.responses._links import Isotonic, Response
from exactshap.readers.responses._reader import MeanResponse, PlayerReader, PlayerScores
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution
from exactshap.solvers.product import MAX_HINGE_PLAYERS, solve_hinges


class PiecewiseReader(PlayerReader):
    """Read a piecewise linear function of a sum over players with one output, bound to a background."""

    method = "meet in the middle"

    def __init__(self, inner: Reader, scores: PlayerScores, response: Response) -> None:
        super().__init__(inner, scores, response)
        assert isinstance(response.function, Isotonic)
        self.pieces = response.function
        # knots, and coalitions of a half of the players; rounding grows with their root
        n_terms = len(self.pieces.knots) * 2.0 ** (min(self.traits.n_players, MAX_HINGE_PLAYERS) / 2)
        self.traits = self.traits.with_rounding(n_terms=n_terms, relative=None, floor=1.0)

    def _rows(self, X: Table) -> Iterator[tuple[np.ndarray, float]]:
        sizes = self.pieces.steepest * (self.scores.sizes(X) + self._absent_sizes.max())
        yield from zip(self._scores(X), sizes.tolist(), strict=True)

    def _value(self, row: np.ndarray) -> MeanResponse:
        return self._mean_response(row, self.pieces)

    def _solutions(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        for row, size in self._rows(X):
            steps = row - self._absent
            hinges = _hinges(self.pieces, steps, self._intercept + self._absent.sum(axis=1), self._weights)
            try:
                part = solve_hinges(steps, hinges.starts, hinges.shifts, hinges.coefficients[:, None], semivalue, order)
            except BudgetError as error:
                got = f"More than {MAX_HINGE_PLAYERS} players move a score across a knot"
                do = "Join columns with groups=, or sample: explain(model, X, background, budget=500)"
                what = f"{self.traits.model_name} has too many players for its isotonic calibration"
                raise BudgetError(what, got, do) from error
            yield self._finished(replace(part, scale=part.scale + size), hinges.constant, semivalue, order)


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

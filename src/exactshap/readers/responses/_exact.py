r"""Explain probabilities and rates exactly, as inverse links of sums over players.

.. math:: v_x(S) = \sum_z w_z\, g\Bigl(\beta + \sum_{j \in S} s_j(x) + \sum_{j \notin S} s_j(z)\Bigr)

A sum of exponentials in place of g makes this a product game with as many terms (:mod:`exactshap.expansions`). All coalitions of
few players cost less than its waves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from exactshap._runtime.slices import slices
from exactshap.errors import BudgetError
from exactshap.expansions import Expansion, expand
from exactshap.frames import Table
from exactshap.games import Game, ProductGame
from exactshap.readers import Reader
from exactshap.readers.responses._links import Response, link_of, steepest
from exactshap.readers.responses._reader import ALL_COALITIONS, CHUNK_VALUES, MeanResponse, PlayerReader, PlayerScores
from exactshap.semivalues import Semivalue
from exactshap.solvers import Part, Solution
from exactshap.solvers.product import solve_terms

_BLOCK_BYTES = 2.0**25  # of factors at a time: those of a few rows and of a hundred background rows stay in a core's caches


class ResponseReader(PlayerReader):
    """Read an inverse link of a sum over players with one output, bound to a background."""

    method = "quadrature"
    timed_background = 8

    def __init__(self, inner: Reader, scores: PlayerScores, response: Response) -> None:
        super().__init__(inner, scores, response)
        # waves of scores up to 16; rounding grows with their root
        self.traits = self.traits.with_rounding(n_terms=max(100.0, inner.traits.rounding.n_terms), relative=None)
        # An exponential is one product.
        self.is_enumerated = self.traits.n_players <= ALL_COALITIONS and self._link != "exponential"

    def game(self, X: Table) -> Game:
        """Return the rows' product games, by one expansion that holds for all of them; those of few players by their definition."""
        if self.is_enumerated:
            return super().game(X)
        scores = self._scores(X)
        expansion = expand(self._link, float(self._limits(scores).max(initial=0.0)))
        inside, absent = (_waves(expansion.rates, one).transpose(0, 2, 1) for one in (scores, self._absent))
        return ProductGame(self._coefficients(expansion), inside, absent, self.traits.weights, expansion.constant)

    def _rows(self, X: Table) -> Iterator[tuple[np.ndarray, float]]:
        scores = self._scores(X)
        yield from zip(scores, self._sizes(X, scores), strict=True)

    def _value(self, row: np.ndarray) -> MeanResponse:
        return self._mean_response(row, link_of(self._link))

    def _solutions(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        """Solve the rows of each expansion; a row's own scores say which one is its."""
        scores = self._scores(X)
        sizes = self._sizes(X, scores)
        limits = np.array([expand(self._link, limit).limit for limit in self._limits(scores).tolist()])
        rows: dict[int, Solution] = {}
        for limit in np.unique(limits):
            chosen = np.flatnonzero(limits == limit)
            solution = self._expanded(expand(self._link, float(limit)), scores[chosen], sizes[chosen], semivalue, order)
            rows |= {row: solution.rows(slice(place, place + 1)) for place, row in enumerate(chosen.tolist())}
        yield from (rows[row] for row in range(X.n_rows))

    def _expanded(
        self, expansion: Expansion, scores: np.ndarray, sizes: np.ndarray, semivalue: Semivalue, order: int
    ) -> Solution:
        """Add up blocks of terms, each over blocks of rows."""
        coefficients, weights = self._coefficients(expansion), self._weights
        n_terms, (n_background, d) = len(expansion.rates), self._absent.shape
        width = int(np.clip(_BLOCK_BYTES / (16.0 * d * n_background), 1, n_terms))
        step = int(np.clip(_BLOCK_BYTES / (16.0 * d * width), 1, max(len(scores), 1)))
        total = None
        for terms in slices(n_terms, width):
            absent = _waves(expansion.rates[terms], self._absent)
            c = np.ascontiguousarray(coefficients[None, terms])
            rows = (
                solve_terms(_waves(expansion.rates[terms], scores[i : i + step]), absent, c, weights, semivalue, order)
                for i in range(0, max(len(scores), 1), step)
            )
            part = Part.join(rows, len(scores))
            total = part if total is None else total + part
        assert total is not None
        bound = np.asarray(total.error_bound) + 2.0**order * expansion.error
        return self._finished(
            replace(total, error_bound=bound, scale=total.scale + sizes), expansion.constant, semivalue, order
        )

    def _sizes(self, X: Table, scores: np.ndarray) -> np.ndarray:
        """Return what is added up in the score (n_rows,), times the steepest place of g: rounding of the score, in the response."""
        # Hybrids add up terms of both.
        of_rows = self.scores.sizes(X) * self._steepness(scores)
        of_background = self._absent_sizes * self._steepness(self._absent)
        return np.asarray(abs(self._slope) * (of_rows + of_background.max()))

    def _steepness(self, scores: np.ndarray) -> np.ndarray | float:
        """Return the steepest slope of g, at the scores (n_rows, n_players) where it grows without end."""
        slope = steepest(self._link)
        return np.asarray(np.exp(self._intercept + scores.sum(axis=1))) if slope is None else slope

    def _coefficients(self, expansion: Expansion) -> np.ndarray:
        """Return c_l exp(r_l beta)."""
        return np.asarray(expansion.coefficients * np.exp(expansion.rates * self._intercept))

    def _limits(self, scores: np.ndarray) -> np.ndarray:
        """Return how far from 0 hybrids' scores can be, for each row."""
        limits = np.zeros(len(scores))
        for z in self._absent:
            low, high = (self._intercept + choose(scores, z).sum(axis=1) for choose in (np.minimum, np.maximum))
            limits = np.maximum(limits, np.maximum(np.abs(low), np.abs(high)))
        return limits

    def memory(self, n_rows: int, order: int) -> float:
        n_background, d = self._absent.shape
        if self.is_enumerated:  # scores of coalitions
            return super().memory(n_rows, order) + 32.0 * min(float(CHUNK_VALUES), 2.0**d * n_background)
        waves = sum(min(_BLOCK_BYTES, 16.0 * d * self._n_waves * n) for n in (n_background, n_rows))
        return super().memory(n_rows, order) + 2.0 * waves

    @functools.cached_property
    def _n_waves(self) -> float:
        """How long an expansion is for rows as far from zero as each player's lowest and highest of the background are together."""
        low, high = (self._intercept + choose(axis=0).sum() for choose in (self._absent.min, self._absent.max))
        try:
            return float(len(expand(self._link, max(abs(low), abs(high))).rates))
        except BudgetError:
            return math.inf


def _waves(rates: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return exp(r_l s_j) of shape (n_rows, n_players, n_terms)."""
    return np.exp(scores[:, :, None] * rates)

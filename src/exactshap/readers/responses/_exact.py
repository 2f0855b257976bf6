r"""Explain probabilities and rates exactly, as inverse links of sums over players.

.. math:: v_x(S) = \sum_z w_z\, g\Bigl(\beta + \sum_{j \in S} s_j(x) + \sum_{j \notin S} s_j(z)\Bigr)

A sum of exponentials in place of g makes this a product game with as many terms (:mod:`exactshap.expansions`). All coalitions of
few players cost less than its waves.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap.errors import BudgetError
from exactshap.expansions import Expansion, expand
from exactshap.frames import Table
from exactshap.games import OracleGame, ProductGame, normalised_weights
from exactshap.readers import Reader, RowGames
from exactshap.readers.responses._links import Response, link_of, steepest
from exactshap.readers.responses._reader import ALL_COALITIONS, CHUNK_VALUES, LinkedReader
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part, Rows, Solution, solve
from exactshap.solvers.product import solve_terms

_BLOCK_BYTES = 2.0**25  # of factors at a time: those of a few rows and of a hundred background rows stay in a core's caches
TIMED_BACKGROUND = 8  # background rows that a forecast is timed with


class PlayerScores(Protocol):
    """Describe a score that is a sum over players."""

    intercept: float

    def of(self, X: Table, what: str = "X") -> np.ndarray:
        """Return s_j(x) of shape (n_rows, n_players); a row has the same bits in every batch."""

    def sizes(self, X: Table) -> np.ndarray:
        """Return the magnitudes (n_rows,) that are added up in the score."""


class ResponseReader(LinkedReader):
    """Read an inverse link of a sum over players with one output, bound to a background."""

    def __init__(self, inner: Reader, scores: PlayerScores, response: Response) -> None:
        super().__init__(inner, response)
        assert inner.traits.background is not None
        # waves of scores up to 16; rounding grows with their root
        traits = self.traits.with_rounding(n_terms=max(100.0, inner.traits.rounding.n_terms), relative=None)
        self.traits = replace(traits, weights=normalised_weights(inner.traits.weights, inner.traits.background.n_rows))
        self.scores = scores
        self._intercept = self._slope * scores.intercept + self._shift
        # s_j(z), of shape (n_background, n_players)
        self._absent = self._scores(inner.traits.background, "background")

    @property
    def _is_enumerated(self) -> bool:
        """Say whether all coalitions cost less than the waves of an expansion; an exponential is one product."""
        return self.traits.n_players <= ALL_COALITIONS and self._link != "exponential"

    def _scores(self, X: Table, what: str = "X") -> np.ndarray:
        scores = self.scores.of(X, what)
        return scores if self._slope == 1.0 else self._slope * scores

    def game(self, X: Table) -> ProductGame | RowGames:
        """Return the rows' product games, by one expansion that holds for all of them; those of few players by their definition."""
        scores = self._scores(X)
        if self._is_enumerated:
            games = tuple(OracleGame(self._value(row), self.traits.n_players) for row in scores)
            return RowGames(games, self.traits.n_players, 1, True)
        expansion = expand(self._link, float(self._limits(scores).max(initial=0.0)))
        inside, absent = (_waves(expansion.rates, one).transpose(0, 2, 1) for one in (scores, self._absent))
        return ProductGame(self._coefficients(expansion), inside, absent, self.traits.weights, expansion.constant)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Solve the rows of each expansion; a row's own scores say which one is its."""
        scores = self._scores(X)
        sizes = self._sizes(X, scores)
        if self._is_enumerated and X.n_rows:
            return Solution.join(map(self._enumerated(semivalue, order), scores, sizes), X.n_rows)
        limits = np.array([expand(self._link, limit).limit for limit in self._limits(scores).tolist()])
        rows = Rows(X.n_rows)
        for limit in np.unique(limits):
            chosen = np.flatnonzero(limits == limit)
            part = self._solved(expand(self._link, float(limit)), scores[chosen], sizes[chosen], semivalue, order)
            for place, row in enumerate(chosen.tolist()):
                rows.put(row, part.rows(slice(place, place + 1)))
        return rows.solution() if X.n_rows else self._solved(expand(self._link, 1.0), scores, sizes, semivalue, order)

    def _value(self, row: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return v(S) of one row, by its definition."""
        steps, base, link = row - self._absent, self._intercept + self._absent.sum(axis=1), link_of(self._link)
        step = max(1, CHUNK_VALUES // len(base))

        def value(masks: np.ndarray) -> np.ndarray:
            parts = (masks[start : start + step] for start in range(0, len(masks), step))
            return np.concatenate([link(base + part.astype(float) @ steps.T) @ self.traits.weights for part in parts])

        return value

    def _enumerated(self, semivalue: Semivalue, order: int) -> Callable[[np.ndarray, float], Solution]:
        """Return what solves one row by all of its coalitions."""

        def solved(row: np.ndarray, size: float) -> Solution:
            found = solve(OracleGame(self._value(row), self.traits.n_players), semivalue, order, method="enumeration")
            return replace(found, part=replace(found.part, scale=found.scale + size)).as_batch()

        return solved

    def _solved(
        self, expansion: Expansion, scores: np.ndarray, sizes: np.ndarray, semivalue: Semivalue, order: int
    ) -> Solution:
        """Add up blocks of terms, each over blocks of rows."""
        coefficients, weights = self._coefficients(expansion), np.array(self.traits.weights)
        n_terms, (n_background, d) = len(expansion.rates), self._absent.shape
        width = int(np.clip(_BLOCK_BYTES / (16.0 * d * n_background), 1, n_terms))
        step = int(np.clip(_BLOCK_BYTES / (16.0 * d * width), 1, max(len(scores), 1)))
        total = None
        for start in range(0, n_terms, width):
            terms = slice(start, start + width)
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
        total = replace(total, error_bound=bound, scale=total.scale + sizes)
        return total.finish(
            d, semivalue, order, constant=np.array([expansion.constant]), single_output=True, with_residual=False
        )

    def _sizes(self, X: Table, scores: np.ndarray) -> np.ndarray:
        """Return what is added up in the score (n_rows,), times the steepest place of g: rounding of the score, in the response."""
        slope = steepest(self._link)
        steep = np.exp(self._intercept + scores.sum(axis=1)) if slope is None else slope
        return np.asarray(abs(self._slope) * self.scores.sizes(X) * steep)

    def _coefficients(self, expansion: Expansion) -> np.ndarray:
        """Return c_l exp(r_l beta)."""
        return np.asarray(expansion.coefficients * np.exp(expansion.rates * self._intercept))

    def _limits(self, scores: np.ndarray) -> np.ndarray:
        """Return how far from 0 the score of a hybrid can be, for each row."""
        limits = np.zeros(len(scores))
        for z in self._absent:
            low, high = (self._intercept + choose(scores, z).sum(axis=1) for choose in (np.minimum, np.maximum))
            limits = np.maximum(limits, np.maximum(np.abs(low), np.abs(high)))
        return limits

    def bind(self, row: Table) -> ResponseReader:
        bound = self._rebound(row, np.ones(1))
        bound._absent = self._scores(row, "background")
        return bound

    def memory(self, n_rows: int, order: int) -> float:
        n_background, d = self._absent.shape
        if self._is_enumerated:  # scores of coalitions
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

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Time one row's waves with a few background rows, and multiply."""
        if self._is_enumerated:
            return super().cost(few, n_rows, semivalue, order, block_rows)
        bound, n_background = copy.copy(self), len(self._absent)
        bound._absent = self._absent[:TIMED_BACKGROUND]
        bound.traits = replace(self.traits, weights=np.full(len(bound._absent), 1.0 / len(bound._absent)))
        seconds = clocked(lambda: bound.solve(few.take([0]), semivalue, order)) * n_background / len(bound._absent)
        return Cost(n_rows * seconds, self.memory(block_rows, order), method="quadrature")


def _waves(rates: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return exp(r_l s_j) of shape (n_rows, n_players, n_terms)."""
    return np.exp(scores[:, :, None] * rates)

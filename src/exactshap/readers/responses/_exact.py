r"""Explain functions of sums over players exactly: probabilities and rates, and piecewise linear calibrations.

.. math:: v_x(S) = \sum_z w_z\, g\Bigl(\beta + \sum_{j \in S} s_j(x) + \sum_{j \notin S} s_j(z)\Bigr)

A sum of exponentials in place of g makes this a product game with as many terms (:mod:`exactshap.expansions`). All coalitions of
few players cost less than its waves. Of a piecewise linear function

.. math:: g(t) = g_0 + \sum_k c_k \max(0, t - t_k)

each knot between the least and the largest score of a hybrid is a hinge (:func:`exactshap.solvers.product.solve_hinges`); all hinges
of a background row share one sum.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from exactshap._runtime.slices import slices
from exactshap.errors import BudgetError
from exactshap.expansions import Expansion, expand
from exactshap.frames import Table
from exactshap.games import Game, ProductGame, normalised_weights
from exactshap.readers import Reader, RowReader, SecondReading
from exactshap.readers.responses._links import Isotonic, Response
from exactshap.semivalues import Semivalue
from exactshap.solvers import Part, Solution
from exactshap.solvers.product import MAX_HINGE_PLAYERS, solve_hinges, solve_terms

# Players up to which visiting all coalitions costs less than 100 waves (benchmarks/bench_probabilities.py): a third at 10 players
ALL_COALITIONS = 10
CHUNK_VALUES = 2**22  # scores of hybrids at a time: 32 MiB
_BLOCK_BYTES = 2.0**25  # of factors at a time: those of a few rows and of a hundred background rows stay in a core's caches

Row = TypeVar("Row")  # what a reader keeps of a row


class LinkedReader(RowReader[Row]):
    """Read an inverse link of a score, bound to its background; subclasses solve it."""

    def __init__(self, inner: Reader, response: Response, *, block_rows: int = 256) -> None:
        traits, self.inner, self.response = inner.traits, inner, response
        self.traits = replace(
            traits.with_rounding(relative=traits.relative_rounding, floor=0.0),
            unit=response.unit,
            output_names=response.outputs or traits.output_names,
            weights=normalised_weights(traits.weights, traits.reference.n_rows),
            own_call=response.call,
            offset=None,  # it would change the slope of the link
            block_rows=block_rows,
            uses_threads=False,
            second_reading=SecondReading,
        )

    def predict(self, X: Table) -> np.ndarray:
        """Return the model's own response."""
        return super().predict(self.response.rows(X))

    def mean_response(self, scores: Callable[[np.ndarray], np.ndarray], masks: np.ndarray) -> np.ndarray:
        """Return v(S) of one row, by its definition: mean responses of hybrids with ``scores(masks)`` (n_masks, n_background)."""
        parts = (masks[part] for part in slices(max(len(masks), 1), CHUNK_VALUES // len(self._weights)))
        return np.concatenate([self.response.inverse(scores(part)) @ self._weights for part in parts])


class PlayerScores(Protocol):
    """Describe a score that is a sum over players."""

    intercept: float

    def of(self, X: Table, what: str = "X") -> np.ndarray:
        """Return s_j(x) of shape (n_rows, n_players); a row has the same bits in every batch."""

    def sizes(self, X: Table) -> np.ndarray:
        """Return the magnitudes (n_rows,) that are added up in the score."""


class PlayerReader(LinkedReader[np.ndarray]):
    """Read a function of a sum over players with one output, bound to a background."""

    def __init__(self, inner: Reader, scores: PlayerScores, response: Response) -> None:
        super().__init__(inner, response)
        self.scores, self._intercept = scores, response.slope * scores.intercept + response.shift
        self._keep_background(self.traits.reference)

    def _keep_background(self, rows: Table) -> None:
        self._absent = self._scores(rows, "background")  # s_j(z), of shape (n_background, n_players)
        self._absent_sizes = self.scores.sizes(rows)  # (n_background,)

    def _scores(self, X: Table, what: str = "X") -> np.ndarray:
        scores, slope = self.scores.of(X, what), self.response.slope
        return scores if slope == 1.0 else slope * scores

    def _value(self, row: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        steps, base = row - self._absent, self._intercept + self._absent.sum(axis=1)
        return partial(self.mean_response, lambda masks: base + masks.astype(float) @ steps.T)


class ResponseReader(PlayerReader):
    """Read an inverse link of a sum over players with one output, bound to a background."""

    method = "quadrature"
    timed_background = 8

    def __init__(self, inner: Reader, scores: PlayerScores, response: Response) -> None:
        super().__init__(inner, scores, response)
        # waves of scores up to 16; rounding grows with their root
        self.traits = self.traits.with_rounding(n_terms=max(100.0, inner.traits.rounding.n_terms), relative=None)
        # An exponential is one product.
        self.is_enumerated = self.traits.n_players <= ALL_COALITIONS and response.link != "exponential"
        self._expand = partial(expand, str(response.link))

    def game(self, X: Table) -> Game:
        """Return the rows' product games, by one expansion that holds for all of them; those of few players by their definition."""
        if self.is_enumerated:
            return super().game(X)
        scores = self._scores(X)
        expansion = self._expand(float(self._limits(scores).max(initial=0.0)))
        inside, absent = (_waves(expansion.rates, one).transpose(0, 2, 1) for one in (scores, self._absent))
        return ProductGame(self._coefficients(expansion), inside, absent, self.traits.weights, expansion.constant)

    def _rows(self, X: Table) -> Iterator[tuple[np.ndarray, float]]:
        scores = self._scores(X)
        yield from zip(scores, self._sizes(X, scores), strict=True)

    def _solutions(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        """Solve the rows of each expansion; a row's own scores say which one is its."""
        scores = self._scores(X)
        sizes = self._sizes(X, scores)
        limits = np.array([self._expand(limit).limit for limit in self._limits(scores).tolist()])
        rows: dict[int, Solution] = {}
        for limit in np.unique(limits):
            chosen = np.flatnonzero(limits == limit)
            solution = self._expanded(self._expand(float(limit)), scores[chosen], sizes[chosen], semivalue, order)
            rows |= {row: solution.rows(slice(place, place + 1)) for place, row in enumerate(chosen.tolist())}
        yield from (rows[row] for row in range(X.n_rows))

    def _expanded(
        self, expansion: Expansion, scores: np.ndarray, sizes: np.ndarray, semivalue: Semivalue, order: int
    ) -> Solution:
        """Add up blocks of terms, each over blocks of rows."""
        coefficients, weights = self._coefficients(expansion), self._weights
        n_terms, (n_background, d) = len(expansion.rates), self._absent.shape
        width = int(np.clip(_BLOCK_BYTES / (16.0 * d * n_background), 1, n_terms))
        step = int(_BLOCK_BYTES / (16.0 * d * width))
        total = None
        for terms in slices(n_terms, width):
            absent = _waves(expansion.rates[terms], self._absent)
            c = np.ascontiguousarray(coefficients[None, terms])
            rows = (
                solve_terms(_waves(expansion.rates[terms], scores[some]), absent, c, weights, semivalue, order)
                for some in slices(len(scores), step)
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
        return np.asarray(abs(self.response.slope) * (of_rows + of_background.max()))

    def _steepness(self, scores: np.ndarray) -> np.ndarray | float:
        """Return the steepest slope of g, at the scores (n_rows, n_players) where it grows without end."""
        slope = self.response.inverse.steepest
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
            return float(len(self._expand(max(abs(low), abs(high))).rates))
        except BudgetError:
            return math.inf


def _waves(rates: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return exp(r_l s_j) of shape (n_rows, n_players, n_terms)."""
    return np.exp(scores[:, :, None] * rates)


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

    def _solutions(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        for row, size in self._rows(X):
            steps, base = row - self._absent, self._intercept + self._absent.sum(axis=1)
            starts, shifts, coefficients, constant = _hinges(self.pieces, steps, base, self._weights)
            try:
                part = solve_hinges(steps, starts, shifts, coefficients[:, None], semivalue, order)
            except BudgetError as error:
                got = f"More than {MAX_HINGE_PLAYERS} players move a score across a knot"
                do = "Join columns with groups=, or sample: explain(model, X, background, budget=500)"
                what = f"{self.traits.model_name} has too many players for its isotonic calibration"
                raise BudgetError(what, got, do) from error
            yield self._finished(replace(part, scale=part.scale + size), constant, semivalue, order)


def _hinges(
    pieces: Isotonic, steps: np.ndarray, base: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return starts, shifts and coefficients of the hinges of each background row, and a constant.

    They are within the range of its hybrids, so that slopes outside of it cancel nothing. The first one is at the least score: there the
    function is a constant and its slope.
    """
    low, high = base + np.minimum(steps, 0.0).sum(axis=1), base + np.maximum(steps, 0.0).sum(axis=1)
    knots, slopes = pieces.knots, np.concatenate([[0.0], pieces.slopes, [0.0]])
    places = np.concatenate([low[:, None], np.broadcast_to(knots, (len(low), len(knots)))], axis=1)
    bends = np.broadcast_to(np.diff(slopes), (len(low), len(knots)))
    c = np.concatenate([slopes[np.searchsorted(knots, low, side="right")][:, None], bends], axis=1)
    used = np.concatenate([c[:, :1] != 0.0, (knots > low[:, None]) & (knots < high[:, None])], axis=1)
    starts = np.cumsum([0, *used.sum(axis=1)])
    return starts, (base[:, None] - places)[used], (weights[:, None] * c)[used], float(weights @ pieces(low))

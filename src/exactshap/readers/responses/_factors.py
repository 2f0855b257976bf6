r"""Explain responses of scores with terms on few players exactly, by variable elimination.

.. math:: v_x(S) = \sum_z w_z\, g\Bigl(\beta + \sum_f s_{fz}(S \cap I_f)\Bigr)

A sum of exponentials in place of g makes every wave a product of factors on the players of a term each: a graphical model. Its
players have two states (:func:`exactshap.solvers.product.solve_factors`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from exactshap.expansions import expand
from exactshap.frames import Table
from exactshap.readers import Reader
from exactshap.readers.responses._links import Response, link_of, steepest
from exactshap.readers.responses._reader import LinkedReader, MeanResponse
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution
from exactshap.solvers.product import eliminate, solve_factors

MAX_WIDTH = 12  # of the graph of factors: tables of 2^13 states for each wave and background row


class Factor(NamedTuple):
    """Hold the sum of the terms of some players for each of their coalitions."""

    players: tuple[int, ...]  # ascending
    table: np.ndarray  # (n_background, n_outputs, 2^k): bit p of a column says whether the p-th player comes from the row


class FactorScores(Protocol):
    """Describe a score that is a sum of factors."""

    intercept: np.ndarray

    def row(self, X: Table) -> list[Factor]:
        """Return the factors of one row; which players they have does not depend on it."""

    def scores(self, factors: list[Factor], masks: np.ndarray) -> np.ndarray:
        """Return the scores (n_background, n_outputs, n_masks) of hybrids."""

    def bound(self, background: Table) -> FactorScores:
        """Return the same with other background rows."""

    def sizes(self, X: Table) -> np.ndarray:
        """Return the magnitudes (n_rows,) that are added up in the score."""


class FactorReader(LinkedReader[list[Factor]]):
    """Read an inverse link of a sum of factors with one output, bound to a background."""

    timed_background = 16  # which take as long as one

    def __init__(self, inner: Reader, factors: FactorScores, response: Response) -> None:
        super().__init__(inner, response, block_rows=16)
        self.factors = factors
        self._absent_size = float(factors.sizes(self.traits.reference).max())
        members = [factor.players for factor in factors.row(self.traits.reference.take([0]))]
        plan = eliminate(self.traits.n_players, members)
        self.method = f"variable elimination of width {plan.width}"
        self._n_states = sum(2 ** len(clique) for clique in plan.cliques)

    def _keep_background(self, rows: Table) -> None:
        self.factors = self.factors.bound(rows)
        self._absent_size = float(self.factors.sizes(rows).max())

    def _rows(self, X: Table) -> Iterator[tuple[list[Factor], float]]:
        for i, size in enumerate(self.factors.sizes(X).tolist()):
            yield self.factors.row(X.take([i])), size

    def _value(self, row: list[Factor]) -> MeanResponse:
        return MeanResponse(partial(self._scores, row), link_of(self._link), self._weights)

    def _scores(self, factors: list[Factor], masks: np.ndarray) -> np.ndarray:
        return np.asarray(self._shift + self._slope * self.factors.scores(factors, masks)[:, 0].T)

    def _solutions(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        for factors, size in self._rows(X):
            yield self._solved(factors, size, semivalue, order)

    def _solved(self, factors: list[Factor], size: float, semivalue: Semivalue, order: int) -> Solution:
        """Solve one row; its own scores say how long its expansion is."""
        tables = [(factor.players, self._slope * factor.table[:, 0]) for factor in factors if factor.players]
        constant = self._slope * (float(self.factors.intercept[0]) + sum(f.table[:, 0, 0] for f in factors if not f.players))
        constant = constant + self._shift
        expansion = expand(self._link, _limit(constant, tables))
        if isinstance(constant, np.ndarray):  # terms without columns
            tables, constant = [*tables, ((0,), np.repeat(constant[:, None], 2, axis=1))], 0.0
        coefficients = expansion.coefficients * np.exp(expansion.rates * constant)
        part = solve_factors(self.traits.n_players, tables, expansion.rates, coefficients, self._weights, semivalue, order)
        steep = steepest(self._link)
        # The steepest slope of g at the row and, on average, at the background: that of an exponential is its value
        ends = [abs(float(end) + expansion.constant) if steep is None else steep for end in (part.full[0, 0], part.empty[0, 0])]
        size = abs(self._slope) * float(np.dot(ends, [size, self._absent_size]))
        bound = part.error_bound + 2.0**order * expansion.error
        part = replace(part, error_bound=bound, scale=part.scale + size, method=self.method)
        return self._finished(part, expansion.constant, semivalue, order)

    def memory(self, n_rows: int, order: int) -> float:
        # four tables of complex numbers for at least one background row and 200 waves
        tables = 64.0 * max(2.0**17, 200.0 * self._n_states)
        return super().memory(n_rows, order) + tables + 8.0 * self.traits.reference.n_rows * self.traits.n_players**2


def _limit(constant: np.ndarray | float, tables: Sequence[tuple[tuple[int, ...], np.ndarray]]) -> float:
    """Return how far from 0 the score of a hybrid can be."""
    low = constant + sum(table.min(axis=1) for _, table in tables)
    high = constant + sum(table.max(axis=1) for _, table in tables)
    return float(np.max(np.maximum(np.abs(low), np.abs(high))))

r"""Explain responses of scores with terms on few players exactly, by variable elimination.

.. math:: v_x(S) = \sum_z w_z\, g\Bigl(\beta + \sum_f s_{fz}(S \cap I_f)\Bigr)

A sum of exponentials in place of g makes every wave a product of factors on the players of a term each: a graphical model. Its
players have two states (:func:`exactshap.solvers.product.solve_factors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap.expansions import expand
from exactshap.frames import Table
from exactshap.games import OracleGame, normalised_weights
from exactshap.readers import Reader, RowGames
from exactshap.readers.responses._links import Response, link_of, steepest
from exactshap.readers.responses._reader import LinkedReader
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part, Solution, player_sets
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


class FactorReader(LinkedReader):
    """Read an inverse link of a sum of factors with one output, bound to a background."""

    def __init__(self, inner: Reader, factors: FactorScores, response: Response) -> None:
        super().__init__(inner, response, block_rows=16)
        assert inner.traits.background is not None
        self.factors = factors
        self.traits = replace(self.traits, weights=normalised_weights(inner.traits.weights, inner.traits.background.n_rows))
        members = [factor.players for factor in factors.row(inner.traits.background.take([0]))]
        plan = eliminate(self.traits.n_players, members)
        self._width, self._n_states = plan.width, sum(2 ** len(clique) for clique in plan.cliques)

    def game(self, X: Table) -> RowGames:
        """Return the games of the rows, by their definition."""
        games = tuple(OracleGame(self._value(self.factors.row(X.take([i]))), self.traits.n_players) for i in range(X.n_rows))
        return RowGames(games, self.traits.n_players, 1, True)

    def _value(self, factors: list[Factor]) -> _Value:
        return _Value(self, factors)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Solve row by row; a row's own scores say how long its expansion is."""
        sizes = self.factors.sizes(X)
        rows = (self._row(self.factors.row(X.take([i])), float(sizes[i]), semivalue, order) for i in range(X.n_rows))
        sets = player_sets(self.traits.n_players, order)
        return Solution.join(rows, X.n_rows) if X.n_rows else Solution(Part.zeros(0, len(sets)), sets)

    def _row(self, factors: list[Factor], size: float, semivalue: Semivalue, order: int) -> Solution:
        tables = [(factor.players, self._slope * factor.table[:, 0]) for factor in factors if factor.players]
        constant = self._slope * (float(self.factors.intercept[0]) + sum(f.table[:, 0, 0] for f in factors if not f.players))
        constant = constant + self._shift
        expansion = expand(self._link, _limit(constant, tables))
        if isinstance(constant, np.ndarray):  # terms without columns
            tables, constant = [*tables, ((0,), np.repeat(constant[:, None], 2, axis=1))], 0.0
        coefficients, weights = expansion.coefficients * np.exp(expansion.rates * constant), np.asarray(self.traits.weights)
        part = solve_factors(self.traits.n_players, tables, expansion.rates, coefficients, weights, semivalue, order)
        steep = steepest(self._link)
        full = float(part.full[0, 0]) + expansion.constant
        size = abs(self._slope) * size * (abs(full) if steep is None else steep)
        return replace(
            part, error_bound=part.error_bound + 2.0**order * expansion.error, scale=part.scale + size, method=self._method
        ).finish(
            self.traits.n_players,
            semivalue,
            order,
            constant=np.array([expansion.constant]),
            single_output=True,
            with_residual=False,
        )

    @property
    def _method(self) -> str:
        return f"variable elimination of width {self._width}"

    def bind(self, row: Table) -> FactorReader:
        bound = self._rebound(row, np.ones(1))
        bound.factors = self.factors.bound(row)
        return bound

    def memory(self, n_rows: int, order: int) -> float:
        assert self.traits.background is not None
        # four tables of complex numbers for at least one background row and 200 waves
        tables = 64.0 * max(2.0**17, 200.0 * self._n_states)
        return super().memory(n_rows, order) + tables + 8.0 * self.traits.background.n_rows * self.traits.n_players**2

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Time one row with one background row, and multiply."""
        row = few.take(slice(0, 1))
        assert self.traits.background is not None
        bound = self.bind(self.traits.background.take(slice(0, 1)))
        seconds = clocked(lambda: bound.solve(row, semivalue, order)) * max(1.0, self.traits.background.n_rows / 16.0)
        return Cost(n_rows * seconds, self.memory(block_rows, order), method=self._method)


class _Value:
    """Evaluate v(S) of one row, by its definition."""

    def __init__(self, reader: FactorReader, factors: list[Factor]) -> None:
        self._reader, self._factors = reader, factors

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        reader, means = self._reader, []
        for start in range(0, len(masks), 256):
            scores = reader._shift + reader._slope * reader.factors.scores(self._factors, masks[start : start + 256])
            means.append(np.asarray(reader.traits.weights) @ link_of(reader._link)(scores)[:, 0])
        return np.concatenate(means) if means else np.zeros(0)


def _limit(constant: np.ndarray | float, tables: Sequence[tuple[tuple[int, ...], np.ndarray]]) -> float:
    """Return how far from 0 the score of a hybrid can be."""
    low = constant + sum(table.min(axis=1) for _, table in tables)
    high = constant + sum(table.max(axis=1) for _, table in tables)
    return float(np.max(np.maximum(np.abs(low), np.abs(high))))

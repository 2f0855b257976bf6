"""Define readers that solve one row after the other, against rows of a background that are prepared once."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

import numpy as np

from exactshap._runtime.machine import clocked
from exactshap.frames import Table
from exactshap.games import Game, OracleGame
from exactshap.readers._base import Reader
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part, Solution, player_sets, solve

Row = TypeVar("Row")  # what a reader keeps of a row


@dataclass(frozen=True, eq=False)
class RowGames:
    """Hold the games of several rows, for value-by-value checks."""

    games: tuple[OracleGame, ...]
    n_players: int
    n_outputs: int
    single_output: bool

    @property
    def n_rows(self) -> int:
        return len(self.games)

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) of shape (n_rows, n_masks[, n_outputs])."""
        return np.stack([game.value(masks) for game in self.games])


class RowReader(Reader, Generic[Row]):
    """Read a model that is solved row by row against a background.

    Subclasses say what they keep of the background and of a row, what v(S) of a row is, and how it is solved.
    """

    is_enumerated = False  # whether all coalitions cost less than the family's own way
    method = ""  # of the family's own way, for a forecast
    timed_background = 1  # background rows that a forecast is timed with

    @abstractmethod
    def _keep_background(self, rows: Table) -> None:
        """Prepare background rows, at construction and for copies."""

    @abstractmethod
    def _rows(self, X: Table) -> Iterable[tuple[Row, float]]:
        """Yield what is kept of a row, and the magnitudes that round in its score."""

    @abstractmethod
    def _value(self, row: Row) -> Callable[[np.ndarray], np.ndarray]:
        """Return v(S) of one row, by its definition."""

    @abstractmethod
    def _solutions(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        """Yield the solutions of the rows, in the family's own way."""

    @property
    def _weights(self) -> np.ndarray:
        return np.asarray(self.traits.weights)

    def predict(self, X: Table) -> np.ndarray:
        assert self.traits.own_call is not None
        return self.traits.own_call.of_table(self.traits.model, X)

    def game(self, X: Table) -> Game:
        games = tuple(self._row_game(row) for row, _ in self._rows(X))
        return RowGames(games, self.traits.n_players, self.traits.n_outputs, self.traits.single_output)

    def _row_game(self, row: Row) -> OracleGame:
        return OracleGame(self._value(row), self.traits.n_players)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        if X.n_rows:
            solve_rows = self._enumerated if self.is_enumerated else self._solutions
            return Solution.join(solve_rows(X, semivalue, order), X.n_rows)
        sets = player_sets(self.traits.n_players, order)
        return Solution(Part.zeros(0, len(sets), *(() if self.traits.single_output else (self.traits.n_outputs,))), sets)

    def _enumerated(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        """Yield the solutions of the rows, each by all of its coalitions."""
        for row, size in self._rows(X):
            solution = solve(self._row_game(row), semivalue, order, method="enumeration")
            # The score rounds as well, before the coalition values that the solver sees.
            yield replace(solution, part=replace(solution.part, scale=solution.scale + size)).as_batch()

    def _finished(self, part: Part, constant: np.ndarray | float, semivalue: Semivalue, order: int) -> Solution:
        return part.finish(
            self.traits.n_players,
            semivalue,
            order,
            constant=constant,
            single_output=self.traits.single_output,
            with_residual=False,
        )

    def bind(self, row: Table) -> Self | None:
        return self._bound(row)

    def _bound(self, rows: Table) -> Self:
        """Return a copy with other background rows, of equal weights."""
        bound = copy.copy(self)
        bound.traits = replace(self.traits, background=rows, weights=np.full(rows.n_rows, 1.0 / rows.n_rows))
        bound._keep_background(rows)
        return bound

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Time one row with a few background rows, and multiply."""
        if self.is_enumerated:
            return super().cost(few, n_rows, semivalue, order, block_rows)
        n_background = self.traits.reference.n_rows
        n_timed = min(self.timed_background, n_background)
        row, bound = few.take(slice(0, 1)), self._bound(self.traits.reference.take(slice(0, n_timed)))
        seconds = clocked(lambda: bound.solve(row, semivalue, order)) * n_background / n_timed
        return Cost(n_rows * seconds, self.memory(block_rows, order), method=self.method)

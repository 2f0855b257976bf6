"""Define games of rows: conditional expectations, functions in which some players are null, models solved row by row."""

from __future__ import annotations

import copy
import functools
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.machine import clocked
from exactshap._runtime.threads import asked_jobs, coalitions_in_threads, worker_count
from exactshap.frames import Table
from exactshap.games import Game, OracleGame, check_masks
from exactshap.readers._base import Reader, among_all
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part, Solution, player_sets, solve

# 2^12 coalitions cost twice as much as a sample of the default budget, and are exact.
MAX_ENUMERATED = 12
DEFAULT_BUDGET = 2048
# Coalitions on which a game is timed, and on which two ways to it are compared.
TIMED_COALITIONS = 2
COMPARED_COALITIONS = 8
# Settings that say how a game is sampled or solved.
FIXED_WAYS = frozenset({"estimator", "frontier", "pairing", "polynomial_order", "sampling", "surrogate", "tol"})


@dataclass(frozen=True)
class Coalitions:
    """Choose the coalitions of conditional games: all up to 12 players or if 2^d fits the budget, else a sample."""

    n_players: int
    budget: int | None  # None: 2048 beyond 12 players
    random_state: int

    @classmethod
    def of(cls, n_players: int, settings: Mapping[str, Any]) -> Coalitions:
        """Return the choice for the settings ``budget`` and ``random_state``, checked."""
        budget, random_state = settings.get("budget"), settings.get("random_state", 0)
        budget = None if budget is None else check_count("budget", budget, 2)
        return cls(n_players, budget, check_count("random_state", random_state, 0))

    @property
    def enumerated(self) -> bool:
        return self.n_players <= MAX_ENUMERATED if self.budget is None else 2**self.n_players <= self.budget

    @property
    def count(self) -> float:
        """Return the number of coalitions that one block of rows evaluates."""
        return 2.0**self.n_players if self.enumerated else float(DEFAULT_BUDGET if self.budget is None else self.budget)

    def table_values(self) -> float:
        """Return the number of coalition values in memory for each row and output."""
        return 3.0 * 2.0 ** min(self.n_players, MAX_ENUMERATED)

    def solve(self, game: ConditionalGame, semivalue: Semivalue, order: int) -> Solution:
        if self.enumerated:
            return solve(game, semivalue, order, method="enumeration")
        found = solve(game.as_oracle(), semivalue, order, budget=int(self.count), random_state=self.random_state)
        return split_by_row(found, game.n_rows, game.n_outputs, game.single_output)

    def seconds(self, game: Callable[[int], ConditionalGame], n_timed: int, n_rows: int, n_blocks: int) -> tuple[float, str]:
        """Time a few random coalitions for one row and for several, which share work; ``game(k)`` is the game of k rows."""
        masks = some_coalitions(self.n_players, np.random.default_rng(0), TIMED_COALITIONS)
        # A coalition and its complement may share work
        masks = np.concatenate([masks, ~masks])
        one, some = game(1), game(n_timed)
        one.value(masks[:1])  # loads the kernels
        # Processor time of this thread if it works alone; with other threads, the wall clock.
        clock = time.thread_time if worker_count(asked_jobs()) == 1 else time.perf_counter
        seconds = [
            min(clocked(functools.partial(game.value, masks), clock) for _ in range(2)) / max(1, len(masks))
            for game in (one, some)
        ]
        # Two points of a line: the cost of a coalition, and that of each further row.
        each = max(0.0, seconds[1] - seconds[0]) / max(1, n_timed - 1)
        total = (n_blocks * seconds[0] + n_rows * each) * self.count
        return total, "enumeration" if self.enumerated else "sampled coalitions"


@dataclass(frozen=True, eq=False)
class ConditionalGame:
    """Define a batch of observational games, one per row; v(empty) and v(D) are exact by definition."""

    function: Any
    empty: np.ndarray
    full: np.ndarray
    intercept: np.ndarray
    n_players: int
    single_output: bool
    size: float = 0.0  # values of a coalition's largest matrix
    routes: Any = None  # sizes, which ``choose`` shows
    approximate: bool = False  # as ``choose`` says
    replicates: int = 1  # draws of each output next to each other, of which the mean is wanted

    @property
    def n_rows(self) -> int:
        return len(self.full)

    @property
    def n_outputs(self) -> int:
        return self.full.shape[1]

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S), of shape (n_rows, n_masks[, n_outputs])."""
        masks = check_masks(masks, self.n_players)
        # Some conditional means share work between S and its complement: both are computed together.
        groups = _with_complements(masks) if hasattr(self.function, "pair") else [(i,) for i in range(len(masks))]
        values = np.empty((self.n_rows, len(masks), self.n_outputs))
        for group, found in zip(
            groups, coalitions_in_threads(lambda group: self._some(masks, group), groups, self.size), strict=True
        ):
            for column, value in zip(group, found, strict=True):
                values[:, column] = value
        return values[..., 0] if self.single_output else values

    def _some(self, masks: np.ndarray, group: tuple[int, ...]) -> list[np.ndarray]:
        """Return v of one coalition, or of one and its complement."""
        if len(group) == 2 and not masks[group[0]].all() and masks[group[0]].any():
            return [part + self.intercept for part in self.function.pair(masks[group[0]])]
        return [self._one(masks[column]) for column in group]

    def _one(self, mask: np.ndarray) -> np.ndarray:
        if mask.all():
            return self.full
        # v(empty) is the mean prediction itself, without an estimate.
        return np.asarray(self.function(mask) + self.intercept) if mask.any() else np.broadcast_to(self.empty, self.full.shape)

    def as_oracle(self) -> OracleGame:
        """Return one game with the outputs of all rows as its outputs."""
        return OracleGame(self._flat, self.n_players)

    def _flat(self, masks: np.ndarray) -> np.ndarray:
        return np.moveaxis(self.value(masks).reshape(self.n_rows, len(masks), -1), 1, 0).reshape(len(masks), -1)


def _with_complements(masks: np.ndarray) -> list[tuple[int, ...]]:
    """Return the masks' numbers, each with its complement's where both exist."""
    waiting: dict[bytes, list[int]] = {}
    groups: list[tuple[int, ...]] = []
    for i, mask in enumerate(masks):
        others = waiting.get(np.packbits(~mask).tobytes())
        if others:
            groups.append((others.pop(), i))
        else:
            waiting.setdefault(np.packbits(mask).tobytes(), []).append(i)
    return groups + [(i,) for left in waiting.values() for i in left]


def some_coalitions(n_players: int, rng: np.random.Generator, n_masks: int = COMPARED_COALITIONS) -> np.ndarray:
    """Return different random proper coalitions (at most n_masks, n_players), with sizes as in a Shapley value."""
    found: dict[bytes, np.ndarray] = {}
    # Draws repeat for few players: four times as many draws cover most coalitions.
    for _ in range(4 * n_masks if n_players > 1 else 0):
        mask = np.zeros(n_players, bool)
        # A uniform size, then a uniform set of that size, as in the Shapley value.
        mask[rng.choice(n_players, rng.integers(1, n_players), replace=False)] = True
        found.setdefault(mask.tobytes(), mask)
    return np.array(list(found.values())[:n_masks], bool).reshape(-1, n_players)


def split_by_row(found: Solution, n_rows: int, n_outputs: int, single_output: bool) -> Solution:
    """Return the solution of rows from one of ``n_rows`` x ``n_outputs`` outputs."""

    def rows(array: Any, n_axes: int = 0) -> Any:
        if array is None:
            return None
        # A game of one output has no axis for it
        shaped = np.reshape(array, (*np.shape(array)[:n_axes], n_rows, n_outputs))
        shaped = np.moveaxis(shaped, -2, 0)
        return shaped[..., 0] if single_output else shaped

    part = replace(
        found.part,
        values=rows(found.values, 1),
        std_error=rows(found.std_error, 1),
        empty=rows(found.empty),
        full=rows(found.full),
        # One game had all rows as its outputs, so its scale is a bound for each.
        scale=np.full(n_rows, np.max(found.scale)),
        error_bound=np.full(n_rows, np.max(found.error_bound)),
    )
    return replace(found, part=part, residual=rows(found.residual))


def averaged(found: Solution, replicates: int, single_output: bool) -> Solution:
    """Return the mean over replicates, with a standard error."""

    def split(array: Any) -> np.ndarray:
        return np.asarray(array).reshape(*np.shape(array)[:-1], -1, replicates)

    def mean(array: Any) -> Any:
        return None if array is None else _single(split(array).mean(axis=-1))

    def _single(array: np.ndarray) -> np.ndarray:
        return array[..., 0] if single_output else array

    # Variance of a mean of r draws, s^2 / r, from the spread of the draws.
    variance = split(found.values).var(axis=-1, ddof=1) / replicates
    if found.std_error is not None:
        # All draws share their coalitions, so averaging over draws does not reduce this part.
        variance = variance + (split(found.std_error) ** 2).mean(axis=-1)
    part = replace(
        found.part,
        values=mean(found.values),
        std_error=_single(np.sqrt(variance)),
        empty=mean(found.empty),
        full=mean(found.full),
    )
    return replace(found, part=part, residual=mean(found.residual))


def solve_moving(game: OracleGame, moving: list[int], semivalue: Semivalue, order: int, **settings: Any) -> Solution:
    """Solve a game in which only the ``moving`` players matter; the others get exactly zero."""
    d = game.n_players
    idle = [place for place in range(d) if place not in set(moving)]
    # The solver refuses orders above the number of players: null players fill up.
    live = sorted([*moving, *idle[: max(order - len(moving), 0)]])
    # These settings depend on the number of players that the user sees.
    if len(live) == d or FIXED_WAYS & settings.keys():
        return solve(game, semivalue, order, **settings)

    def value(masks: np.ndarray) -> np.ndarray:
        everyone = np.zeros((len(masks), d), bool)
        everyone[:, live] = masks
        return game.value(everyone)

    found = among_all(solve(OracleGame(value, len(live)), semivalue, order, **settings), live, d, order, axis=0)
    method = f"{found.method} of {len(live)} of {d} players, which differ from the background"
    return replace(found, part=replace(found.part, method=method))


# -- models that are solved one row after the other, against rows of a background that are prepared once ---------------------

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
        """Yield what is kept of a row, and the magnitudes in its score."""

    @abstractmethod
    def _value(self, row: Row) -> Callable[[np.ndarray], np.ndarray]:
        """Return v(S) of one row, by its definition."""

    @abstractmethod
    def _solutions(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        """Yield the solutions of the rows, in the family's own way."""

    @property
    def _weights(self) -> np.ndarray:
        return np.asarray(self.traits.weights)

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
        single = self.traits.single_output
        return part.finish(self.traits.n_players, semivalue, order, constant=constant, single_output=single)

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

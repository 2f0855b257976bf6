"""Weighted sums of models, each of them read, and solved, in its own way: values of a sum are sums of values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap.errors import ExactshapError, UnsupportedStructureError, message
from exactshap.frames import Table
from exactshap.games import Game
from exactshap.readers import Reader, Request, names_of, players_of
from exactshap.readers import read as read_any
from exactshap.readers.wrappers._live_players import read_live
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Solution, of_formula

__all__ = ["Member", "SumGame", "SumReader", "read_member"]


@dataclass(frozen=True, eq=False)
class Member:
    """One model of a sum.

    Attributes
    ----------
    reader : Reader
    weights : array of shape (n_member_outputs, n_outputs)
        What each of its outputs adds to those of the sum.
    columns : tuple of int or None
        The columns that it was fitted on, as an array; None: it takes the rows as they come.
    """

    reader: Reader
    weights: np.ndarray
    columns: tuple[int, ...] | None = None

    def rows(self, X: Table) -> Table:
        """Return the rows as the member takes them."""
        return X if self.columns is None else _array(X, self.columns)

    def outputs(self, values: np.ndarray) -> np.ndarray:
        """Return what the member's ``values`` (..., [n_member_outputs]) add to the sum, of shape (..., n_outputs)."""
        return (values[..., None] if self.reader.single_output else values) @ self.weights

    @property
    def magnitude(self) -> float:
        """The largest factor between an error of the member's outputs and one of the sum's."""
        return float(np.abs(self.weights).sum(axis=0).max(initial=0.0))


def read_member(model: Any, request: Request, owner: str, columns: Sequence[int] | None = None) -> Reader:
    """Read one model of a sum for the sum's players; ``columns``: those that it was fitted on, as an array.

    A model that cannot be read is refused with the sum's own prediction as the way out.
    """
    if columns is not None:
        request = _of_columns(request, tuple(columns))
    try:
        return read_live(functools.partial(read_any, model), request) if request.players else read_any(model, request)
    except UnsupportedStructureError as error:
        raise UnsupportedStructureError(_of_member(owner, error)) from error
    except ExactshapError as error:
        raise type(error)(_of_member(owner, error)) from error


def _of_member(owner: str, error: Exception) -> str:
    return f"{owner} is read as the sum of its models, and one of them is refused: {error}"


def _of_columns(request: Request, columns: tuple[int, ...]) -> Request:
    """Return the request of a model that was fitted on some columns, which may be repeated; players keep their number."""
    assert request.players is not None
    assert request.feature_names is not None
    players = tuple(
        (name, tuple(place for place, column in enumerate(columns) if column in members)) for name, members in request.players
    )
    background = None if request.background is None else _array(request.background, columns)
    repeated = len(set(columns)) < len(columns)
    names = tuple(request.feature_names[c] + (f" [{place}]" if repeated else "") for place, c in enumerate(columns))
    return replace(request, background=background, players=players, feature_names=names)


def _array(X: Table, columns: tuple[int, ...]) -> Table:
    values = X.numeric() if X.is_frame else np.asarray(X.native)
    return Table(np.ascontiguousarray(values[:, list(columns)]), None, X.n_rows, len(columns))


@dataclass(frozen=True, eq=False)
class SumGame:
    """The sum of the members' games, of whatever kind each of them is: the definition, for value-by-value checks."""

    members: tuple[Member, ...]
    games: tuple[Game, ...]
    constant: np.ndarray
    single_output: bool

    @property
    def n_players(self) -> int:
        return self.games[0].n_players

    @property
    def n_rows(self) -> int | None:
        return self.games[0].n_rows

    @property
    def n_outputs(self) -> int:
        return len(self.constant)

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) of shape ([n_rows,] n_masks[, n_outputs])."""
        values = [member.outputs(game.value(masks)) for member, game in zip(self.members, self.games, strict=True)]
        total = sum(values, start=self.constant)
        return total[..., 0] if self.single_output else total


class SumReader(Reader):
    r"""A weighted sum of other readers' models.

    .. math:: f(x) = c + \sum_m f_m(x_{C_m}) W_m

    Parameters
    ----------
    model : object
        The fitted model itself.
    request : Request
    members : sequence of Member
        All of them with the sum's players and one value function.
    own : callable
        The model's own prediction, ``own(table) -> (n_rows,) or (n_rows, n_outputs)``.
    constant : array of shape (n_outputs,)
        c.
    output_names : tuple of str
    unit : str
    fitted_names : tuple of str or None
    n_columns : int
    single_output : bool
    """

    def __init__(
        self,
        model: Any,
        request: Request,
        members: Sequence[Member],
        own: Callable[[Table], Any],
        *,
        constant: np.ndarray,
        output_names: tuple[str, ...],
        unit: str,
        fitted_names: tuple[str, ...] | None,
        n_columns: int,
        single_output: bool,
    ) -> None:
        self.model, self.members, self._own, self.constant = model, tuple(members), own, constant
        kinds = list(dict.fromkeys(member.reader.model_name for member in self.members))
        self.model_name = f"{type(model).__name__}({', '.join(kinds)})"
        self.fitted_names, self.output_names, self.unit = fitted_names, output_names, unit
        self.feature_names = names_of(request, fitted_names, n_columns, self.model_name)
        self.players, self.player_names = players_of(request, self.feature_names)
        self.single_output = single_output
        self.background, self.weights = request.background, request.weights
        self.value_function = self._one_value_function()
        self.block_rows = min(member.reader.block_rows for member in self.members)
        self.threads_inside = any(member.reader.threads_inside for member in self.members)
        self.rows_are_cheap = all(member.reader.rows_are_cheap for member in self.members)
        self.evaluates = all(member.reader.evaluates for member in self.members)

    def _one_value_function(self) -> str:
        names = list(dict.fromkeys(member.reader.value_function for member in self.members))
        if len(names) > 1:
            raise UnsupportedStructureError(
                message(
                    f"The models of {self.model_name} have no value function in common without a background",
                    f"Got {' and '.join(map(repr, names))}",
                    "Pass background=X_reference for the interventional one",
                )
            )
        return names[0]

    def predict(self, X: Table) -> np.ndarray:
        return np.asarray(self._own(X), float)

    def game(self, X: Table) -> Any:
        games = tuple(member.reader.game(member.rows(X)) for member in self.members)
        return SumGame(self.members, games, self.constant, self.single_output)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Add up what the members' own solvers find; what is missing to the prediction is worked out beside it."""
        parts = [member.reader.solve(member.rows(X), semivalue, order) for member in self.members]
        squeezed = self._squeezed
        values, empty, full = (self._total(parts, name) for name in ("values", "empty", "full"))
        empty, full = empty + self.constant, full + self.constant
        return Solution(
            values=squeezed(values),
            sets=parts[0].sets,
            empty=squeezed(empty),
            full=squeezed(full),
            method=f"sum of {len(parts)} models: " + "; ".join(dict.fromkeys(part.method for part in parts)),
            std_error=self._std_error(parts),
            error_bound=self._largest(part.error_bound for part in parts),
            scale=self._scale(parts),
            n_evaluations=sum(part.n_evaluations for part in parts),
            approximation_error=self._approximation_error(parts),
        )

    def evaluate(self, X: Table) -> Solution:
        parts = [member.reader.evaluate(member.rows(X)) for member in self.members]
        full = self._squeezed(self._total(parts, "full") + self.constant)
        return of_formula(full, self._scale(parts), self._largest(part.error_bound for part in parts))

    def _total(self, parts: list[Solution], name: str) -> np.ndarray:
        return sum(member.outputs(getattr(part, name)) for member, part in zip(self.members, parts, strict=True))  # type: ignore[return-value]

    def _squeezed(self, array: np.ndarray) -> np.ndarray:
        return array[..., 0] if self.single_output else array

    def _largest(self, errors: Iterable[np.ndarray | float]) -> np.ndarray | float:
        """Return a bound on an error of the sum, given bounds (n_rows,) on the members'."""
        return sum(
            (member.magnitude * np.asarray(error) for member, error in zip(self.members, errors, strict=True)), start=0.0
        )

    def _scale(self, parts: list[Solution]) -> np.ndarray | float:
        """Return the magnitudes that are added up: the members' own, and their predictions, which are terms here."""
        magnitudes = (part.scale + np.abs(part.full).reshape(len(part.full), -1).max(axis=1, initial=0.0) for part in parts)
        return self._largest(magnitudes) + float(np.abs(self.constant).max(initial=0.0))

    def _std_error(self, parts: list[Solution]) -> np.ndarray | None:
        """Add standard errors in squares: members are sampled on their own."""
        squares = [
            (np.square(part.std_error)[..., None] if member.reader.single_output else np.square(part.std_error))
            @ member.weights**2
            for member, part in zip(self.members, parts, strict=True)
            if part.std_error is not None
        ]
        if not squares:
            return None
        return self._squeezed(np.sqrt(sum(squares)))

    def _approximation_error(self, parts: list[Solution]) -> np.ndarray | None:
        if all(part.approximation_error is None for part in parts):
            return None
        return np.asarray(
            self._largest(0.0 if part.approximation_error is None else part.approximation_error for part in parts)
        )

    def tolerance(self, prediction: np.ndarray, solution: Solution) -> np.ndarray:
        r"""Return the largest residual (n_rows,) that rounding can explain.

        .. math:: \max_m \mathrm{tolerance}_m(\mathrm{scale}) + 4\, \epsilon \sqrt{M}\, \mathrm{scale}

        Every member's tolerance is a multiple of its magnitudes, all of which are in the scale of the sum, and so are the M
        terms that are added up here (see :meth:`Reader.tolerance`).
        """
        members = [member.reader.tolerance(prediction, solution) for member in self.members]
        own = 4.0 * np.finfo(float).eps * np.sqrt(len(members)) * np.asarray(solution.scale)
        return np.max(members, axis=0) + own

    def cancelled(self, X: Table) -> np.ndarray | float:
        return self._largest(member.reader.cancelled(member.rows(X)) for member in self.members)

    def epsilon(self) -> float:
        return max(member.reader.epsilon() for member in self.members)

    def n_terms(self) -> float:
        return sum(member.reader.n_terms() for member in self.members)

    def memory(self, n_rows: int, order: int) -> float:
        return super().memory(n_rows, order) + max(member.reader.memory(n_rows, order) for member in self.members)

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Return the costs of all members, one after the other."""
        costs = [member.reader.cost(member.rows(few), n_rows, semivalue, order, block_rows) for member in self.members]
        method = f"sum of {len(costs)} models: " + "; ".join(dict.fromkeys(cost.method for cost in costs))
        return replace(sum(costs, start=Cost()), bytes=self.memory(block_rows, order), method=method)

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        """Mask columns by hand and call the model where they are replaced; else add up what the members' readers find."""
        by_hand = super().masked_predictions(X, masks)
        if by_hand is not None:
            return by_hand
        parts = [member.reader.masked_predictions(member.rows(X), masks) for member in self.members]
        if any(part is None for part in parts):
            return None
        values = [member.outputs(np.asarray(part)) for member, part in zip(self.members, parts, strict=True)]
        return self._squeezed(sum(values, start=self.constant))

    def reading_gap(self) -> str:
        return "; ".join(dict.fromkeys(filter(None, (member.reader.reading_gap() for member in self.members))))

    def bound_to(self, row: Table) -> SumReader | None:
        """Bind every member to the row as it takes it."""
        readers = [member.reader.bound_to(member.rows(row)) for member in self.members]
        bound = self._rebound(row)
        bound.members = tuple(
            replace(member, reader=reader) for member, reader in zip(self.members, readers, strict=True) if reader is not None
        )
        return bound if len(bound.members) == len(self.members) else None

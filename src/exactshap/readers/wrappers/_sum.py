"""Weighted sums of models, each of them read, and solved, in its own way: values of a sum are sums of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap.errors import UnsupportedStructureError, message
from exactshap.frames import Table
from exactshap.games import Game
from exactshap.readers import Reader, Request, SecondReading, names_of, players_of, rounding_of
from exactshap.readers.wrappers._member import Member, name_of_sum, total_of
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Solution

__all__ = ["SumGame", "SumReader"]

_NO_VALUES = np.empty(0)
MOST_ROWS = 2**12  # of a block: the values of all outputs stay in a core's caches while members add to them


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
        total = total_of(self.members, [game.value(masks) for game in self.games], self.constant)
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
        self.model, self.members, self.constant = model, tuple(members), constant
        self._own = own
        self.model_name = name_of_sum(model, [member.reader for member in self.members])
        self.fitted_names, self.output_names, self.unit = fitted_names, output_names, unit
        self.feature_names = names_of(request, fitted_names, n_columns, self.model_name)
        self.players, self.player_names = players_of(request, self.feature_names)
        self.single_output = single_output
        self.background, self.weights = request.background, request.weights
        self.value_function = self._one_value_function()
        self.block_rows = min(MOST_ROWS, *(member.reader.block_rows for member in self.members))
        self.threads_inside = any(member.reader.threads_inside for member in self.members)
        self._round()

    def _round(self) -> None:
        r"""Set what rounding explains: the largest of the members', and 4 eps sqrt(M) of the M terms that are added up here.

        All of the members' magnitudes are in the scale of the sum.
        """
        readers = [member.reader for member in self.members]
        self.n_terms, self.precision = sum(reader.n_terms for reader in readers), max(reader.precision for reader in readers)
        self.rounding = max(map(rounding_of, readers)) + 4.0 * float(np.finfo(float).eps) * len(readers) ** 0.5
        self.floor = max(reader.floor for reader in readers)

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
        try:
            return np.asarray(self._own(X), float)
        except ValueError:
            for member in self.members:
                member.reader.predict(member.rows(X))  # refuses by row and column what the ensemble refuses
            raise

    def game(self, X: Table) -> Any:
        games = tuple(member.reader.game(member.rows(X)) for member in self.members)
        return SumGame(self.members, games, self.constant, self.single_output)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Add up what the members' own solvers find; what is missing to the prediction is worked out beside it."""
        members, parts = self.members, list[Solution]()

        def solved() -> Iterator[np.ndarray]:
            for member in members:  # no values are held until the last member's: fresh memory costs more than adding up
                part = member.reader.solve(member.rows(X), semivalue, order)
                parts.append(replace(part, values=_NO_VALUES))
                yield part.values

        values = total_of(members, solved())
        return Solution(
            values=self._squeezed(values),
            sets=parts[0].sets,
            empty=self._squeezed(total_of(members, [part.empty for part in parts], self.constant)),
            full=self._squeezed(total_of(members, [part.full for part in parts], self.constant)),
            method=f"sum of {len(parts)} models: " + "; ".join(dict.fromkeys(part.method for part in parts)),
            std_error=self._std_error(parts),
            error_bound=self._largest(part.error_bound for part in parts),
            scale=self._scale(parts),
            n_evaluations=sum(part.n_evaluations for part in parts),
            approximation_error=self._approximation_error(parts),
        )

    def _squeezed(self, array: np.ndarray) -> np.ndarray:
        return array[..., 0] if self.single_output else array

    def _largest(self, errors: Iterable[np.ndarray | float]) -> np.ndarray | float:
        """Return a bound on an error of the sum, given bounds (n_rows,) on the members'."""
        return sum(
            (member.magnitude * np.asarray(error) for member, error in zip(self.members, errors, strict=True)), start=0.0
        )

    def _scale(self, parts: list[Solution]) -> np.ndarray | float:
        """Return the magnitudes that are added up: the members' own, and their predictions, which are terms here."""
        sizes = (np.abs(part.full) for part in parts)
        largest = (size if size.ndim == 1 else size.max(axis=1, initial=0.0) for size in sizes)
        return self._largest(part.scale + size for part, size in zip(parts, largest, strict=True)) + float(
            np.abs(self.constant).max(initial=0.0)
        )

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

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of a block: of one member at a time, of the rows as it takes them, and of what each member predicts."""
        predictions = sum(len(member.weights) for member in self.members)
        once = super().memory(n_rows, order) + 8.0 * n_rows * (predictions + self.n_features)
        return once + max(member.reader.memory(n_rows, order) for member in self.members)

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
        return self._squeezed(total_of(self.members, [np.asarray(part) for part in parts], self.constant))

    def second_reading(self) -> SecondReading:
        gaps = (member.reader.second_reading().gap for member in self.members)
        return SecondReading(gap="; ".join(dict.fromkeys(filter(None, gaps))))

    def bind(self, row: Table) -> SumReader | None:
        """Bind every member to the row as it takes it."""
        readers = [member.reader.bind(member.rows(row)) for member in self.members]
        bound = self._rebound(row)
        bound.members = tuple(
            replace(member, reader=reader) for member, reader in zip(self.members, readers, strict=True) if reader is not None
        )
        if len(bound.members) < len(self.members):
            return None
        bound._round()
        return bound

"""Read weighted sums of models, with values that are sums of values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import ExactshapError, UnsupportedStructureError
from exactshap.frames import Table, as_table, check_columns
from exactshap.games import ProductGame, SumGame, weighted_sum, with_equal_shares
from exactshap.readers import (
    Columns,
    Outputs,
    OwnCall,
    Reader,
    Request,
    Rounding,
    SecondReading,
    Traits,
    fitted_names,
    read_live,
    require_all_columns,
)
from exactshap.readers import read as read_any
from exactshap.readers.wrappers._columns import readable, reads_texts
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Part, Solution

_NO_VALUES = np.empty(0)
# Rows of a block: the values of all outputs stay in a core's caches while members add to them.
MAX_BLOCK_ROWS = 2**12


@dataclass(frozen=True, eq=False)
class Member:
    """Hold one model of a sum."""

    reader: Reader
    weights: np.ndarray  # (n_member_outputs, n_outputs): what each of its outputs adds to those of the sum
    # the columns that it was fitted on, as an array; None: it takes the rows as they come
    columns: tuple[int, ...] | None = None

    def rows(self, X: Table) -> Table:
        """Return the rows as the member takes them."""
        return X if self.columns is None else _array(X, self.columns)

    @property
    def magnitude(self) -> float:
        """Return the largest factor from the member's errors to the sum's."""
        return float(np.abs(self.weights).sum(axis=0).max(initial=0.0))


def own_answers(model: Model, call: OwnCall, X: Table) -> np.ndarray:
    """Return a model's own prediction of a table."""
    return call(model, readable(model, X))


def n_columns_of(model: Model) -> int:
    """Return the number of columns of the models inside; a column of texts has none."""
    return 1 if reads_texts(model) else int(model.n_features_in_)


def request_of_sum(model: Model, request: Request) -> Request:
    """Give all models inside the same names and players."""
    names, n_columns, owner = fitted_names(model), n_columns_of(model), type(model).__name__
    background = request.background
    if request.options.get("uncertainty") is True:
        raise UnsupportedStructureError(
            "The covariance of values is known of one Gaussian process, and not of a sum of models",
            f"Got uncertainty=True for {owner}",
            "Remove it, or explain the models inside one by one",
        )
    if background is not None:
        background = check_columns(background, names, n_columns, owner=owner, what="background")
    columns = Columns.of(request, names, n_columns, owner)
    named = tuple(zip(columns.player_names, columns.players, strict=True))
    return replace(request, background=background, groups=None, players=named, feature_names=columns.names)


def name_of_sum(model: Model, readers: Iterable[Reader]) -> str:
    """Return the name of a sum: its class, with the kinds of its models."""
    return f"{type(model).__name__}({', '.join(dict.fromkeys(reader.traits.model_name for reader in readers))})"


def read_member(model: Model, request: Request, owner: str, columns: Sequence[int] | None = None) -> Reader:
    """Read one model of a sum for the sum's players; ``columns``: those that it was fitted on, as an array.

    A model that cannot be read is refused with the sum's own prediction as the way out.
    """
    if columns is not None:
        request = _of_columns(request, tuple(columns))
    try:
        # A member of some columns leaves most players without any: those cost nothing (see ``read_live``).
        return read_live(functools.partial(read_any, model), request) if request.players else read_any(model, request)
    except UnsupportedStructureError as error:
        raise UnsupportedStructureError(_of_member(owner, error)) from error
    except ExactshapError as error:
        raise type(error)(_of_member(owner, error)) from error


def _of_member(owner: str, error: Exception) -> str:
    return f"{owner} is read as the sum of its models, and one of them is refused: {error}"


def _of_columns(request: Request, columns: tuple[int, ...]) -> Request:
    """Return the request of a model of some columns, perhaps repeated; players keep their number."""
    assert request.players is not None
    assert request.feature_names is not None
    require_all_columns(request, columns, len(request.feature_names))
    players = tuple(
        (name, tuple(place for place, column in enumerate(columns) if column in members)) for name, members in request.players
    )
    background = None if request.background is None else _array(request.background, columns, "background")
    repeated = len(set(columns)) < len(columns)
    # Bagging with replacement of columns hands a column to a member twice: names must stay apart.
    names = tuple(request.feature_names[c] + (f" [{place}]" if repeated else "") for place, c in enumerate(columns))
    return replace(request, background=background, players=players, feature_names=names)


def _array(X: Table, columns: tuple[int, ...], what: str = "X") -> Table:
    if X.is_sparse:
        return as_table(X.native[:, list(columns)])
    values = X.numeric(what=what, categories=True) if X.is_frame else np.asarray(X.native)
    if columns != tuple(range(X.n_columns)):
        values = values[:, list(columns)]
    return Table(np.ascontiguousarray(values), None, X.n_rows, len(columns))


def _method_of(parts: Sequence[Solution | Cost]) -> str:
    methods = "; ".join(dict.fromkeys(part.method for part in parts))
    return methods if len(parts) == 1 else f"sum of {len(parts)} models: {methods}"


def _all_gaps(parts: Sequence[Traits]) -> SecondReading:
    """Return the reasons why members have no second reading."""
    gaps = (part.second_reading().gap for part in parts)
    return SecondReading(gap="; ".join(dict.fromkeys(filter(None, gaps))))


class SumReader(Reader):
    r"""Read a weighted sum of other readers' models.

    All have the sum's players and value function.

    .. math:: f(x) = c + \sum_m f_m(x_{C_m}) W_m

    ``own``, or ``own(table) -> (n_rows,) or (n_rows, n_outputs)``, is the model's own prediction; ``names`` and ``n_columns`` of the fit are those of
    the model, where it has any.
    """

    def __init__(
        self,
        model: Model,
        request: Request,
        members: Sequence[Member],
        own: OwnCall | Callable[[Table], Any],
        *,
        outputs: Outputs,
        unit: str,
        constant: np.ndarray | None = None,
        names: tuple[str, ...] | None = None,
        n_columns: int | None = None,
    ) -> None:
        self.members = tuple(members)
        self._own = functools.partial(own_answers, model, own) if isinstance(own, OwnCall) else own
        self.constant = np.zeros(len(outputs.names)) if constant is None else constant
        parts = [member.reader.traits for member in self.members]
        name = name_of_sum(model, [member.reader for member in self.members])
        self.traits = Traits.of(
            model,
            request,
            model_name=name,
            fitted_names=names or fitted_names(model),
            n_columns=n_columns or n_columns_of(model),
            value_functions=(self._one_value_function(name),),
            default=parts[0].value_function,
            output_names=outputs.names,
            single_output=outputs.single,
            unit=unit,
            rounding=self._rounding(),
            offset_note=next(filter(None, (part.offset_note for part in parts)), ""),
            block_rows=min(MAX_BLOCK_ROWS, *(part.block_rows for part in parts)),
            uses_threads=any(part.uses_threads for part in parts),
            second_reading=functools.partial(_all_gaps, parts),
        )

    def _rounding(self) -> Rounding:
        r"""Return the relative rounding: the largest of the members', and 4 eps sqrt(M) for adding M terms.

        All of the members' magnitudes are in the scale of the sum.
        """
        parts = [member.reader.traits for member in self.members]
        added = 4.0 * float(np.finfo(float).eps) * len(parts) ** 0.5
        return Rounding(
            n_terms=sum(part.rounding.n_terms for part in parts),
            precision=max(part.rounding.precision for part in parts),
            relative=max(part.relative_rounding for part in parts) + added,
            floor=max(part.rounding.floor for part in parts),
            cancels=any(part.rounding.cancels for part in parts),
        )

    def _one_value_function(self, name: str) -> str:
        names = list(dict.fromkeys(member.reader.traits.value_function for member in self.members))
        if len(names) > 1:
            raise UnsupportedStructureError(
                f"The models of {name} have no value function in common without a background",
                f"Got {' and '.join(map(repr, names))}",
                "Pass background=X_reference for the interventional one",
            )
        return names[0]

    def predict(self, X: Table) -> np.ndarray:
        try:
            return np.asarray(self._own(X), float)
        except ValueError:
            for member in self.members:
                # Refuses by row and column what the ensemble refuses
                member.reader.predict(member.rows(X))
            raise

    def game(self, X: Table) -> SumGame:
        games = [member.reader.game(member.rows(X)) for member in self.members]
        weights, constant = [member.weights for member in self.members], self.constant
        if self.traits.value_function == "normalized":
            nothing = ProductGame(np.zeros((1, len(constant))), np.ones((X.n_rows, 1, self.traits.n_players)))
            games.append(with_equal_shares(nothing, constant, constant=np.zeros(1)))
            weights.append(np.eye(len(constant)))
            constant = np.zeros_like(constant)
        return SumGame(tuple(games), tuple(weights), constant, self.traits.single_output)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Add up the solutions of the members."""
        members, parts = self.members, list[Solution]()

        def solved() -> Iterator[np.ndarray]:
            # No values are held until the last member's: fresh memory costs more than adding up
            for member in members:
                part = member.reader.solve(member.rows(X), semivalue, order)
                parts.append(replace(part, part=replace(part.part, values=_NO_VALUES)))
                yield part.values

        values = self._total(solved())
        total = Part(
            values=values,
            empty=self._total((part.empty for part in parts), self.constant),
            full=self._total((part.full for part in parts), self.constant),
            method=_method_of(parts),
            std_error=self._std_error(parts),
            error_bound=self._largest(part.error_bound for part in parts),
            scale=self._scale(parts),
        )
        if self.traits.value_function == "normalized":
            total = total.with_shared_baseline(self.traits.n_players, semivalue.mass)
        calls, error = sum(part.n_evaluations for part in parts), self._approximation_error(parts)
        return Solution(total, parts[0].sets, n_evaluations=calls, approximation_error=error)

    def _total(self, arrays: Iterable[np.ndarray], constant: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the weighted sum (...[, n_outputs]) of one array of each member. Arrays are predictions, values or v(S) of masks."""
        pairs = zip(self.members, arrays, strict=True)
        columns = (array[..., None] if member.reader.traits.single_output else array for member, array in pairs)
        return self._squeezed(weighted_sum(columns, [member.weights for member in self.members], constant))

    def _squeezed(self, array: np.ndarray) -> np.ndarray:
        return array[..., 0] if self.traits.single_output else array

    def _largest(self, errors: Iterable[np.ndarray | float]) -> np.ndarray | float:
        """Return a bound on the sum's error from the members' errors (n_rows,)."""
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
        """Add standard errors up: members with one seed are sampled on the same coalitions, and their errors go together."""
        errors = [
            (part.std_error[..., None] if member.reader.traits.single_output else part.std_error) @ np.abs(member.weights)
            for member, part in zip(self.members, parts, strict=True)
            if part.std_error is not None
        ]
        return self._squeezed(np.sum(errors, axis=0)) if errors else None

    def _approximation_error(self, parts: list[Solution]) -> np.ndarray | None:
        if all(part.approximation_error is None for part in parts):
            return None
        return np.asarray(
            self._largest(0.0 if part.approximation_error is None else part.approximation_error for part in parts)
        )

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes of a block: of one member at a time, of the rows as it takes them, and of what each member predicts."""
        predictions = sum(len(member.weights) for member in self.members)
        once = super().memory(n_rows, order) + 8.0 * n_rows * (predictions + self.traits.n_features)
        return once + max(member.reader.memory(n_rows, order) for member in self.members)

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Return the costs of all members, one after the other."""
        costs = [member.reader.cost(member.rows(few), n_rows, semivalue, order, block_rows) for member in self.members]
        return replace(sum(costs, start=Cost()), bytes=self.memory(block_rows, order), method=_method_of(costs))

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        """Mask columns by hand and call the model where they are replaced; else add up what the members' readers find."""
        by_hand = super().masked_predictions(X, masks)
        if by_hand is not None:
            return by_hand
        parts = [member.reader.masked_predictions(member.rows(X), masks) for member in self.members]
        if any(part is None for part in parts):
            return None
        return self._total(map(np.asarray, parts), self.constant)

    def bind(self, row: Table) -> SumReader | None:
        """Bind every member to the row as it takes it."""
        readers = [member.reader.bind(member.rows(row)) for member in self.members]
        bound = self._rebound(row)
        bound.members = tuple(
            replace(member, reader=reader) for member, reader in zip(self.members, readers, strict=True) if reader is not None
        )
        # Half of a sum is no sum: one member that cannot be bound keeps the whole from it.
        if len(bound.members) < len(self.members):
            return None
        bound.traits = replace(bound.traits, rounding=bound._rounding())
        return bound

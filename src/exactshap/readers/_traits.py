"""Hold the traits of a reader: names, players, value function, background, rounding, the model's own call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from exactshap._runtime.progress import Calls
from exactshap._runtime.types import Foreign, Model, TableLike
from exactshap.errors import InputError, InputTypeError
from exactshap.frames import Table, check_columns, with_unique_index
from exactshap.readers._request import REPLACING, Columns, Request, choose_value_function, select_outputs

# Games that replace nothing by background rows.
_WITHOUT_BACKGROUND = ("functional", "normalized", "path_dependent")


def outputs_of(chosen: list[int], single: bool, values: np.ndarray) -> np.ndarray:
    """Return the explained outputs of predictions (n_rows,) or (n_rows, n_model_outputs)."""
    values = values.reshape(len(values), -1)[:, chosen]
    return values[:, 0] if single else values


def joined_outputs(values: Foreign) -> np.ndarray:
    """Return predictions as one array; some classifiers of several targets return a list of tables.

    >>> joined_outputs([[[0.25, 0.75]], [[1.0, 0.0]]])
    array([[0.25, 0.75, 1.  , 0.  ]])
    """
    # Only a list of tables: a list of numbers is one target.
    if isinstance(values, list) and all(np.ndim(table) == 2 for table in values):
        return np.concatenate([np.asarray(table, float) for table in values], axis=1)
    return np.asarray(values, float)


def _unchanged(values: np.ndarray) -> np.ndarray:
    return values


@dataclass(frozen=True, eq=False)
class OwnCall:
    """Call a model's documented method, and finish its result.

    Parameters
    ----------
    settings : mapping, default={}
        Keyword arguments of the call, which scikit-learn's pipelines hand to their last step.
    finish : callable, default: unchanged
        ``finish(values) -> (n_rows,) or (n_rows, n_outputs)`` in the explained unit.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> model = SVR().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> OwnCall("predict")(model, [[0.0]]).shape
    (1,)
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[np.ndarray], np.ndarray] = _unchanged

    def __call__(self, model: Model, rows: TableLike) -> np.ndarray:
        """Return the prediction of ``model``, or of a wrapper, for rows of the kind that it was fitted with."""
        try:
            # Only frames have labels
            rows = rows if isinstance(rows, np.ndarray) else with_unique_index(rows)
            values = getattr(model, self.method)(rows, **self.settings)
        except (TypeError, ValueError) as error:
            if type(rows).__module__.startswith("scipy.sparse"):  # of a model that was fitted on dense rows
                raise InputTypeError(f"{type(model).__name__} refuses sparse rows", f"{error}", "Pass X.toarray()") from error
            _, known, category = str(error).partition("Found a category not in the training set")
            if known:  # of XGBoost 3.4, also for one that only the dtype of a column has; a stack trace follows
                do = "Leave it out of the column's dtype: X[column].cat.remove_unused_categories()"
                what = f"{type(model).__name__} refuses a category that it was not fitted with"
                raise InputError(what, f"Got it {category.splitlines()[0].strip()}", do) from error
            raise
        # A copy, as some models return the same array in each call
        return np.array(self.finish(joined_outputs(values)), float)

    def of_table(self, model: Model, X: Table) -> np.ndarray:
        """Return the prediction of a table."""
        return self(model, X.native)

    def in_double(self, model: Model, X: Table) -> np.ndarray:
        """Return a table's prediction in double precision. Many models compute in the precision of their rows."""
        return self(model, X.in_double().native)


@dataclass(frozen=True, eq=False)
class Outputs:
    """Hold the explained outputs of a model."""

    names: tuple[str, ...]
    numbers: list[int]  # among the model's
    single: bool  # whether values have no axis of outputs

    @classmethod
    def of(cls, names: tuple[str, ...], output: object, *, owner: str, multiple: bool | None = None) -> Outputs:
        """Return the outputs of ``names`` that ``output=`` means.

        ``multiple`` says whether the model's answers have an axis of outputs, by default where there are several.

        >>> Outputs.of(("no", "yes"), "yes", owner="forest").pick(np.array([[0.25, 0.75]]))
        array([0.75])
        """
        numbers, picked = select_outputs(names, output, owner=owner)
        multiple = len(names) > 1 if multiple is None else multiple
        return cls(tuple(names[k] for k in numbers), numbers, picked or not multiple)

    def pick(self, values: np.ndarray) -> np.ndarray:
        """Return the explained outputs of a model's answers."""
        return outputs_of(self.numbers, self.single, values)

    def call(self, method: str, link: Callable[[np.ndarray], np.ndarray] | None = None) -> OwnCall:
        """Return a call of the model that gives the explained outputs, perhaps of a function of its answers."""
        return OwnCall(method, finish=self.pick if link is None else partial(_picked, link, self))


def _picked(link: Callable[[np.ndarray], np.ndarray], outputs: Outputs, values: np.ndarray) -> np.ndarray:
    return outputs.pick(link(values))


def target_names(n: int) -> tuple[str, ...]:
    """Return the names of n targets of a regression.

    >>> target_names(1), target_names(2)
    (('target',), ('target 0', 'target 1'))
    """
    return ("target",) if n == 1 else tuple(f"target {k}" for k in range(n))


def class_names(classes: Iterable[object]) -> tuple[str, ...]:
    """Return the names of classes; those of several targets, a list of arrays, say which.

    >>> class_names(["no", "yes"]), class_names([np.array([0, 1]), np.array(["a"])])
    (('no', 'yes'), ('target 0 = 0', 'target 0 = 1', 'target 1 = a'))
    """
    if isinstance(classes, list) and all(isinstance(labels, np.ndarray) for labels in classes):
        return tuple(f"target {k} = {label}" for k, labels in enumerate(classes) for label in labels)
    return tuple(map(str, classes))


def score_names(classes: Iterable[object]) -> tuple[str, ...]:
    """Return the names of a classifier's scores: of two classes that of the second.

    >>> score_names(["no", "yes"]), score_names([0, 1, 2])
    (('yes',), ('0', '1', '2'))
    """
    names = tuple(map(str, classes))
    return names[1:] if len(names) == 2 else names


@dataclass(frozen=True, eq=False)
class Offset:
    """Describe how a model uses an offset of each row."""

    # Keyword of the model's own call; None if the offset is added to its result.
    keyword: str | None = None
    # number or (n_model_outputs,): what an offset replaces, XGBoost's base_score
    replaces: np.ndarray | float = 0.0


@dataclass(frozen=True)
class SecondReading:
    """Compare a reader with an independent reading of the model."""

    difference: float | None = None  # the largest relative difference; None where there is no second reading
    gap: str = ""  # why there is none, where the family has one


@dataclass(frozen=True)
class Rounding:
    """Describe the rounding of predictions, for the tolerance of the certificate.

    Parameters
    ----------
    n_terms : float, default=1
        Number of terms in one prediction.
    precision : float, default: that of float64
        Rounding unit of the model's own predictions.
    relative : float, default=None
        Relative error of a prediction; None: that of ``n_terms`` products of one factor for each column.
    floor : float, default=0
        Magnitude that rounding is relative to besides the scale of a solution and the prediction.
    cancels : bool, default=False
        Whether terms may be so much larger than their sum that the certificate counts the digits left.

    Examples
    --------
    >>> Rounding(n_terms=100.0).floor
    0.0
    """

    n_terms: float = 1.0
    precision: float = float(np.finfo(np.float64).eps)
    relative: float | None = None
    floor: float = 0.0
    cancels: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Traits:
    r"""Hold all that is known of a reader without a row.

    ``relative_rounding`` is the relative error of a prediction, unless the reader sets it:

    .. math:: 4\, \epsilon\, (\sqrt{n_\mathrm{terms}} + d)

    A product of d factors is off by at most d eps relative (Higham 2002, Lemma 3.1), a sum of n rounded terms by
    sqrt(n) eps with overwhelming probability (Higham & Mary 2019); 4 = 2 sides (ours and the model's) x 2 for its constant.

    Parameters
    ----------
    model, model_name : object and str
        The object that the user holds.
    feature_names, fitted_names : tuple of str
        Names of the columns, and those of the fit, None if the model was fitted without names.
    players, player_names : tuple of tuple of int, and tuple of str
        The columns of each player.
    output_names, single_output, unit : tuple of str, bool and str
        Names and unit of the explained outputs; a single output has no axis.
    value_function : str
    background, weights : Table and array, or None
    rounding : Rounding
    own_call : OwnCall or None
        The call that a pipeline or a search also has; None if no single call predicts.
    offset, offset_note : Offset or None, and str
        How the model uses an offset, None if it is no summand in the explained unit; and the warning for rows without offsets of a
        model that was fitted with them.
    absent : float
        Value of cells that a sparse matrix does not store.
    block_rows : int
        Largest number of rows of a block, which one thread solves and which is a step of progress.
    uses_threads : bool
        Whether ``solve`` uses threads itself, so that blocks are solved one after the other.
    second_reading : callable
        Returns the difference to a second, independent reading of the model, such as the library's own dump of trees.
    calls : Calls or None
        Calls that a row needs of a model that is called for each coalition.
    advice_on_memory : str
        What to do where a row does not fit.

    Examples
    --------
    >>> from exactshap.readers import Request, Traits
    >>> traits = Traits.of(abs, Request(), n_columns=2, value_functions=("functional",), default="functional", unit="metres")
    >>> traits.players, traits.player_names, traits.unit
    (((0,), (1,)), ('x0', 'x1'), 'metres')
    """

    model: Any
    model_name: str
    feature_names: tuple[str, ...]
    fitted_names: tuple[str, ...] | None = None
    players: tuple[tuple[int, ...], ...]
    player_names: tuple[str, ...]
    output_names: tuple[str, ...] = ("output",)
    single_output: bool = True
    unit: str
    value_function: str
    background: Table | None = None
    weights: np.ndarray | None = None
    rounding: Rounding = Rounding()
    own_call: OwnCall | None = None
    offset: Offset | None = Offset()
    offset_note: str = ""
    absent: float = 0.0
    block_rows: int = 256
    uses_threads: bool = False
    second_reading: Callable[[], SecondReading] = SecondReading
    calls: Calls | None = None
    advice_on_memory: str = "Raise memory_limit=, or group columns with groups="
    reference: Table = field(init=False)  # the background, of a reader that has one
    n_features: int = field(init=False)
    n_players: int = field(init=False)
    n_outputs: int = field(init=False)
    relative_rounding: float = field(init=False)

    def __post_init__(self) -> None:
        rounding, n_features = self.rounding, len(self.feature_names)
        relative = rounding.relative
        if relative is None:
            relative = 4.0 * rounding.precision * (math.sqrt(rounding.n_terms) + n_features)
        derived = {"n_features": n_features, "n_players": len(self.players), "n_outputs": len(self.output_names)}
        # Frozen dataclasses set derived fields by this call only.
        for name, value in {**derived, "relative_rounding": relative, "reference": self.background}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        model: Model,
        request: Request,
        *,
        n_columns: int,
        value_functions: tuple[str, ...] = REPLACING,
        default: str | None = None,
        fitted_names: tuple[str, ...] | None = None,
        names: tuple[str, ...] | None = None,
        model_name: str = "",
        **facts: Any,
    ) -> Traits:
        """Return the traits of a model under the user's settings.

        Parameters
        ----------
        model, request
        n_columns : int
            Of the rows.
        value_functions : tuple of str
            Those of the reader, by default "interventional" and "baseline", and ``default`` without a background; None if it needs one.
        fitted_names : tuple of str, default=None
            What the model itself knows, and a frame must have.
        names : tuple of str, default: ``fitted_names``
            What the model calls its columns, where frames may have others.
        model_name : str, default: that of its class
        **facts
            Other fields: ``unit``, ``output_names``, ``rounding`` ...
        """
        name = model_name or type(model).__name__
        columns = Columns.of(request, names or fitted_names, n_columns, name)
        value_function = choose_value_function(request, value_functions, default, owner=name)
        background = request.background
        if background is not None:
            # Columns are checked by name: a background with swapped columns would silently explain another model.
            background = check_columns(background, fitted_names, n_columns, owner=name, what="background")
        return cls(
            model=model,
            model_name=name,
            feature_names=columns.names,
            fitted_names=fitted_names,
            players=columns.players,
            player_names=columns.player_names,
            value_function=value_function,
            background=background,
            weights=request.weights,
            **facts,
        )

    @cached_property
    def compared_with(self) -> Table | None:
        """Return the background rows that v(S) depends on."""
        return None if self.value_function in _WITHOUT_BACKGROUND else self.background

    @property
    def is_sampled(self) -> bool:
        """Say whether calls leave out coalitions of players with columns."""
        return self.calls is not None and not self.calls.every

    def with_rounding(self, **changes: Any) -> Traits:
        """Return the traits with other rounding."""
        return replace(self, rounding=replace(self.rounding, **changes))

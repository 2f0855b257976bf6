"""Describe your own additive model by columns and functions or by an object that returns its terms; score the terms of any."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import ExactnessError, InputError, InputTypeError, UnsupportedModelError
from exactshap.frames import Table, as_table, check_columns
from exactshap.readers import Outputs, Request
from exactshap.readers import read as read_any
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._functions import FunctionTerm, SeparateTerms


class AdditiveModel:
    r"""Describe a model as a sum of functions of few columns.

    .. math:: f(x) = f_0 + \sum_I f_I(x_I)

    Parameters
    ----------
    terms : sequence of (columns, function)
        ``columns`` is a column number, a column name (with ``feature_names``), or a sequence of them. ``function(values)``
        takes an array of shape (n, k), the columns in the given order, and returns (n,) or (n, n_outputs). Terms may overlap.
    intercept : float or array of shape (n_outputs,), default=0.0
        Added to every prediction.
    feature_names : sequence of str, default=None
        Names of all columns. Without names, the model has as many columns as its terms use.
    n_features : int, default=None
        Number of columns, for a model without names and with last columns in no term.
    output_names : sequence of str, default=None
        Names of the outputs of functions that return (n, n_outputs); None means one output.

    Raises
    ------
    InputError
        If a term names no column, an unknown one, or one twice; at prediction, if a function returns a wrong shape, NaN or
        infinity: the message names the term.

    Notes
    -----
    Explaining costs (2^k - 2) calls per row and background row for a term on k columns, vectorised in chunks, and only
    one call per row for terms on one column; a term on more than 20 players is refused.

    Examples
    --------
    >>> import numpy as np
    >>> model = AdditiveModel([(0, lambda v: v[:, 0] ** 2), ((0, 1), lambda v: v[:, 0] * v[:, 1])], intercept=1.0)
    >>> model.predict(np.array([[2.0, 3.0]]))
    array([11.])
    """

    def __init__(
        self,
        terms: Sequence[tuple[Any, Callable[[np.ndarray], Any]]],
        intercept: Any = 0.0,
        feature_names: Sequence[str] | None = None,
        *,
        n_features: int | None = None,
        output_names: Sequence[str] | None = None,
    ) -> None:
        self.feature_names = None if feature_names is None else tuple(str(name) for name in feature_names)
        self.output_names = None if output_names is None else tuple(str(name) for name in output_names)
        self.intercept = np.atleast_1d(np.asarray(intercept, float))
        n_outputs = 1 if self.output_names is None else len(self.output_names)
        if self.intercept.shape not in ((1,), (n_outputs,)) or not np.all(np.isfinite(self.intercept)):
            raise InputError(f"`intercept` must be finite and hold 1 or {n_outputs} numbers", f"Got {intercept!r}")
        self.terms = tuple(self._term(number, term, n_outputs) for number, term in enumerate(terms))
        used = 1 + max((j for term in self.terms for j in term.columns), default=-1)
        self.n_features = len(self.feature_names) if self.feature_names is not None else max(used, n_features or 0)
        if not self.terms or (self.feature_names is None and n_features is not None and n_features < used):
            raise InputError("An additive model needs terms within its columns", f"Got {len(self.terms)} terms")

    def _term(self, number: int, term: Any, n_outputs: int) -> FunctionTerm:
        try:
            columns, function = term
        except (TypeError, ValueError):
            raise InputTypeError(f"Term {number} must be a pair (columns, function)", f"Got {term!r}") from None
        if not callable(function):
            raise InputTypeError(f"The function of term {number} must be callable", f"Got {type(function).__name__}")
        single = isinstance(columns, (str, int, np.integer))
        places = tuple(self._place(number, column) for column in ([columns] if single else columns))
        if not places or len(set(places)) != len(places):
            raise InputError(f"Term {number} needs distinct columns, at least one", f"Got {columns!r}")
        label = places if self.feature_names is None else tuple(self.feature_names[j] for j in places)
        return FunctionTerm(places, function, f"Term {number} on columns {label}", n_outputs)

    def _place(self, number: int, column: Any) -> int:
        names = self.feature_names or ()
        if isinstance(column, str):
            if column in names:
                return names.index(column)
            raise InputError(f"Term {number} names an unknown column {column!r}", f"Known: {list(names)}")
        limit = len(names) if self.feature_names is not None else np.inf
        if isinstance(column, (int, np.integer)) and 0 <= column < limit:
            return int(column)
        raise InputError(f"Term {number} names column {column!r}", "Pass numbers from 0, or names with feature_names=")

    def predict(self, X: TableLike) -> np.ndarray:
        """Return the sum of the terms, (n_rows,) or (n_rows, n_outputs)."""
        table = check_columns(as_table(X, allow_empty=True), self.feature_names, self.n_features, owner="AdditiveModel")
        rows = table.numeric()
        total = np.zeros((len(rows), len(self.output_names or ("",)))) + self.intercept
        for term in self.terms:
            total += term(rows[:, term.columns])
        return total[:, 0] if self.output_names is None else total


def read(model: AdditiveModel, request: Request) -> AdditiveReader:
    """Read the sum with every term as a function, evaluated on hybrids."""
    names = model.output_names or ("target",)
    outputs = Outputs.of(names, request.output, owner="AdditiveModel", multiple=model.output_names is not None)
    chosen = outputs.numbers
    terms = tuple(
        FunctionTerm(term.columns, functools.partial(_pick, term, chosen), term.label, len(chosen)) for term in model.terms
    )
    form = AdditiveForm(
        blocks=(SeparateTerms(terms),),
        intercept=np.broadcast_to(model.intercept, (len(names),))[chosen],
        encode=_numbers,
        own_call=outputs.call("predict"),
        n_columns=model.n_features,
        fitted_names=model.feature_names,
        outputs=outputs,
        unit="target",
    )
    return AdditiveReader(model, request, form)


def _pick(term: FunctionTerm, chosen: list[int], values: np.ndarray) -> np.ndarray:
    return term(values)[:, chosen]


def _numbers(X: Table, what: str) -> np.ndarray:
    return X.numeric(what=what)


# -- models that return their own terms by ``partial(columns)`` and ``get_all_unique_fs()``, as in STAR-SHAP's code ------------


class StructuredModel(AdditiveModel):
    """Sum a model's partial models, and predict by the model's own call."""

    def __init__(self, model: Model, n_features: int) -> None:
        subsets = [tuple(int(j) for j in subset) for subset in model.get_all_unique_fs()]
        terms = [(subset, _of_columns(model.partial(list(subset)), subset, n_features)) for subset in subsets if subset]
        constants = [model.partial([])(np.zeros((1, n_features))) for subset in subsets if not subset]
        super().__init__(terms, float(np.sum(constants)), n_features=n_features)
        self.model = model

    def predict(self, X: TableLike) -> np.ndarray:
        """Return the model's own prediction."""
        rows = np.asarray(X, float)
        own = self.model.predict if hasattr(self.model, "predict") else self.model
        return np.asarray(own(rows), float).reshape(len(rows))


def _of_columns(
    partial: Callable[[np.ndarray], Any], subset: tuple[int, ...], n_features: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a partial model of whole rows as a function of its columns."""

    def term(values: np.ndarray) -> np.ndarray:
        rows = np.zeros((len(values), n_features))
        rows[:, subset] = values
        return np.asarray(partial(rows), float).reshape(len(values))

    return term


def read_structured(model: Model, request: Request) -> AdditiveReader:
    """Read the terms; the number of columns is the model's or the background's."""
    if request.background is None:
        do = "Pass reference rows: explain(model, X, background)"
        raise UnsupportedModelError("The terms of a structured model need a background", "Got none", do)
    n_features = getattr(model, "n_features_in_", None) or request.background.n_columns
    return read(StructuredModel(model, int(n_features)), request)


# -- terms as glass-box libraries score them: without a background, and without sharing ---------------------------------------


@dataclass(frozen=True, eq=False)
class TermScores:
    """Hold the terms of an additive model; made by :func:`explain_terms`.

    Attributes
    ----------
    values : array of shape (n_rows, n_terms) or (n_rows, n_terms, n_outputs)
        f_I(x_I), in ``unit``.
    names : tuple of str
        Of the terms: the column, or columns joined by " & ".
    columns : tuple of tuple of int
        Of each term.
    intercept : float or array of shape (n_outputs,)
    prediction : array of shape (n_rows,) or (n_rows, n_outputs)
        The model's own, in ``unit``: intercept + sum of values, to rounding.
    unit : str
    output_names : tuple of str or None
        None for models with one output.

    Examples
    --------
    >>> from exactshap.readers import AdditiveModel, explain_terms
    >>> model = AdditiveModel([(0, lambda v: v[:, 0] ** 2), ((0, 1), lambda v: v[:, 0] * v[:, 1])], intercept=1.0)
    >>> explain_terms(model, [[2.0, 3.0]]).columns
    ((0,), (0, 1))
    """

    values: np.ndarray
    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    intercept: Any
    prediction: np.ndarray
    unit: str
    output_names: tuple[str, ...] | None

    def __repr__(self) -> str:
        return f"TermScores of {len(self.values)} rows: {len(self.names)} terms ({', '.join(self.names[:5])}{', ...' if len(self.names) > 5 else ''})"


def explain_terms(model: Model, X: TableLike, *, output: Any = "auto") -> TermScores:
    r"""Return the terms of an additive model at some rows.

    .. math:: f(x) = f_0 + \sum_I f_I(x_I)

    These are the parts that the model was fitted with, main effects and pairs, not Shapley values: they compare with no background,
    a pair has a score of its own, and another way of writing the same function has other terms. :class:`exactshap.Explainer` gives
    one value for each column.

    Parameters
    ----------
    model : object
        A fitted additive model that a reader knows: an explainable boosting machine, a GAM, a polynomial, spline or linear model,
        :class:`AdditiveModel`.
    X : array or DataFrame of shape (n_rows, n_features)
    output : "auto", "all", int or str, default="auto"
        As of :class:`exactshap.Explainer`.

    Returns
    -------
    scores : TermScores

    Raises
    ------
    UnsupportedModelError
        If the model is not additive, or in a pipeline, where terms are of transformed columns.
    InputError
        If the rows do not fit the model.
    ExactnessError
        If intercept and terms do not add up to the model's own prediction.

    Notes
    -----
    One evaluation of each term for each row.

    Examples
    --------
    >>> from exactshap.readers import AdditiveModel
    >>> model = AdditiveModel([(0, lambda v: v[:, 0] ** 2), ((0, 1), lambda v: v[:, 0] * v[:, 1])], intercept=1.0)
    >>> scores = explain_terms(model, [[2.0, 3.0]])
    >>> scores.names, scores.values, scores.intercept
    (('x0', 'x0 & x1'), array([[4., 6.]]), 1.0)
    """
    table = as_table(X)
    while len(getattr(model, "steps", ())) == 1:  # a pipeline of its model alone
        model = model.steps[0][1]
    try:
        # Terms need no background: one row replaces it
        reader = read_any(model, Request(background=table.take([0]), output=output))
    except InputError as error:
        raise type(error)(str(error).replace("background", "X", 1)) from error
    if not isinstance(reader, AdditiveReader):
        raise UnsupportedModelError(
            f"{type(model).__name__} is not a sum of terms of its own columns",
            do="Explain its columns with exactshap.Explainer, pairs of them with index='k-sii', order=2",
        )
    encoded, blocks = reader.encode(table), reader.form.blocks
    values = np.concatenate(
        [np.zeros((table.n_rows, 0, reader.traits.n_outputs)), *(block.evaluate(encoded) for block in blocks)], axis=1
    )
    prediction = np.asarray(reader.predict(table), float)
    _check(reader, encoded, values, prediction.reshape(table.n_rows, -1))
    columns = tuple(tuple(map(int, members)) for block in blocks for members in block.columns)
    return TermScores(
        values[:, :, 0] if reader.traits.single_output else values,
        tuple(" & ".join(reader.traits.feature_names[j] for j in dict.fromkeys(members)) for members in columns),
        columns,
        float(reader.form.intercept[0]) if reader.traits.single_output else reader.form.intercept,
        prediction,
        reader.traits.unit,
        None if reader.traits.single_output else reader.traits.output_names,
    )


def _check(reader: AdditiveReader, encoded: np.ndarray, values: np.ndarray, prediction: np.ndarray) -> None:
    residual = np.abs(prediction - reader.form.intercept - values.sum(axis=1)).max(axis=1, initial=0.0)
    scale = np.abs(values).max(axis=2, initial=0.0).sum(axis=1) + reader.form.cancelled(encoded)
    limit = reader.limit(prediction, scale)
    if np.any(~(residual <= limit)):
        i = int(np.argmax(~(residual <= limit)))
        got = f"Row {i} is off by {residual[i]:.3g}, rounding explains {limit[i]:.3g}"
        raise ExactnessError(f"The terms of {reader.traits.model_name} do not add up to its prediction", got)

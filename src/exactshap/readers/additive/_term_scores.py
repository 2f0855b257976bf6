"""Score each term of an additive model as glass-box libraries do, without a background and without sharing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import ExactnessError, InputError, UnsupportedModelError
from exactshap.frames import as_table
from exactshap.readers import Request, read
from exactshap.readers.additive._additive import AdditiveReader


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
        reader = read(model, Request(background=table.take([0]), output=output))
    except InputError as error:
        raise type(error)(str(error).replace("background", "X", 1)) from error
    if not isinstance(reader, AdditiveReader):
        raise UnsupportedModelError(
            f"{type(model).__name__} is not a sum of terms of its own columns",
            do="Explain its columns with exactshap.Explainer, pairs of them with index='k-sii', order=2",
        )
    encoded, blocks = reader.encode(table), [block for block in reader.form.blocks if len(block.columns)]
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

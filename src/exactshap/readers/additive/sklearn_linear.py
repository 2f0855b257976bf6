"""Linear models of scikit-learn, generalised ones in link space, and linear SVMs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.errors import UnsupportedStructureError, message
from exactshap.frames import Table, as_table
from exactshap.readers import (
    OwnCall,
    OwnPrediction,
    Request,
    Stages,
    are_sklearns_own,
    assuming_finite,
    finite_numbers,
    fitted_names,
    known_class,
    replaced,
    require_fitted,
    select_outputs,
    sklearn_name,
)
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._form import AdditiveForm
from exactshap.readers.additive.terms import ColumnTerms
from exactshap.solvers import player_sets

__all__ = ["LinearParts", "as_given", "in_double", "is_a_product", "linear_parts", "product", "read", "scaled"]

THROUGH = ("_decision_function",)  # what methods of scikit-learn go through, in some releases and classes
TRIED = 3  # rows on which the product alone is held against the model's own method,
TRIED_SIZES = (1.0, 1e3, 1e6)  # of each of these magnitudes: a prediction that is cut off shows


@dataclass(frozen=True, eq=False)
class LinearParts:
    """A linear model taken apart: f(x) = intercept + coefficients . x, and how the model itself says so.

    ``coefficients (n_columns, n_outputs)``; ``method`` of the model gives the prediction, ``link`` takes it to link space.
    """

    coefficients: np.ndarray
    intercept: np.ndarray
    output_names: tuple[str, ...]
    unit: str
    method: str = "predict"
    link: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def floor(self) -> float:
        return 0.0 if self.link is None else 1.0

    @property
    def precision(self) -> Any:
        return np.float32 if self.coefficients.dtype == np.float32 else np.float64

    def predict(self, model: Any, chosen: list[int], single: bool, X: Table) -> np.ndarray:
        """Return the model's own prediction in the unit of the parts, for the chosen outputs."""
        return self._in_unit(self.documented(model, in_double(X).native), chosen, single)

    def predict_again(self, own: OwnPrediction, chosen: list[int], single: bool, X: Table) -> np.ndarray:
        """Return the same of rows whose numbers are looked at elsewhere: a linear model of scikit-learn spends most of its time on that."""
        return self._in_unit(own(X), chosen, single)

    def stages(self, own: OwnPrediction, chosen: list[int], single: bool, X: Table) -> Stages | None:
        """Return the same in parts that threads may share, where there are such."""
        stages = own.stages(X)
        return None if stages is None else stages._replace(finish=lambda: self._in_unit(stages.finish(), chosen, single))

    def call(self, chosen: list[int], single: bool) -> OwnCall:
        """Return the documented call of the model, or of a pipeline that ends in it."""
        return OwnCall(self.method, finish=functools.partial(self._finished, chosen, single))

    def _finished(self, chosen: list[int], single: bool, values: np.ndarray) -> np.ndarray:
        return self._in_unit(values, chosen, single)

    def own(self, model: Any) -> OwnPrediction:
        """Return the model's own prediction of rows that are finite, by its product alone where it is scikit-learn's own."""
        rows = np.linspace(-1.0, 1.0, TRIED * len(self.coefficients)).reshape(TRIED, -1)
        through = self.through(model)
        return OwnPrediction(
            model,
            self.method,
            self._assuming_finite,
            product if is_a_product(type(model), (self.method, *through)) else None,
            trial=np.concatenate([size * rows for size in TRIED_SIZES]),
            readable=in_double,
            through=through,
            cells=as_given,
            most=np.inf,
        )

    @staticmethod
    def through(model: Any) -> tuple[str, ...]:
        """Return the methods that the model's own goes through."""
        return tuple(name for name in THROUGH if hasattr(type(model), name))

    def documented(self, model: Any, rows: Any) -> np.ndarray:
        return np.asarray(getattr(model, self.method)(rows), float)

    def _assuming_finite(self, model: Any, rows: Any) -> np.ndarray:
        with assuming_finite():
            return self.documented(model, rows)

    def _in_unit(self, values: np.ndarray, chosen: list[int], single: bool) -> np.ndarray:
        values = values if self.link is None else self.link(values)
        if values.ndim == 1 and single:
            return values
        values = values.reshape(len(values), -1)[:, chosen]
        return values[:, 0] if single else values


def is_a_product(kind: type, names: tuple[str, ...]) -> bool:
    """Say whether methods are scikit-learn's own in every class that has them, and no link follows: what was put in their place may do more."""
    if hasattr(kind, "_linear_predictor"):  # a generalised linear model
        return False
    return are_sklearns_own(kind, names)


def product(model: Any, rows: np.ndarray) -> np.ndarray | None:
    """Return what scikit-learn's linear models predict in the end, by the coefficients as they are now; None where it may be more.

    The same operation on the same operands makes the same bits, whatever the layout of the rows.
    """
    coefficients = model.coef_
    if type(coefficients) is not np.ndarray or coefficients.shape[-1] != rows.shape[1]:  # sparse ones, or those of another fit
        return None
    values = rows @ coefficients.T + model.intercept_
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 and hasattr(model, "classes_") else values


def in_double(X: Table) -> Table:
    """Return rows as the model takes them: those of arrays as float64, as the terms."""
    return X if X.is_frame else as_table(X.numeric())


def as_given(X: Table) -> np.ndarray | None:
    """Return rows as scikit-learn reads them itself, in the layout that they have."""
    if not X.is_frame:
        return X.numeric()
    return np.asarray(X.native) if X.has_one_dtype and X.dtypes[0] == np.float64 else None


def read(model: Any, request: Request) -> AdditiveReader:
    """Read a linear model: one term for each column."""
    parts = linear_parts(model)
    chosen, picked = select_outputs(parts.output_names, request.output, owner=type(model).__name__)
    single = picked or len(parts.output_names) == 1
    n_columns, coefficients = len(parts.coefficients), parts.coefficients[:, chosen].astype(float)
    own = parts.own(model)
    form = AdditiveForm(
        blocks=(ColumnTerms(player_sets(n_columns, 1), functools.partial(scaled, coefficients), coefficients),),
        intercept=parts.intercept[chosen],
        encode=functools.partial(finite_numbers, owner=type(model).__name__, names=request.feature_names),
        predict=functools.partial(parts.predict, model, chosen, single),
        predict_again=functools.partial(parts.predict_again, own, chosen, single),
        n_columns=n_columns,
        fitted_names=fitted_names(model),
        output_names=tuple(parts.output_names[k] for k in chosen),
        unit=parts.unit,
        single_output=single,
        floor=parts.floor,
        precision=parts.precision,
        is_product=own.is_direct,
        own_call=parts.call(chosen, single),
    )
    return AdditiveReader(model, request, form)


def linear_parts(model: Any) -> LinearParts:
    """Take a fitted linear model apart, or say why it is not linear."""
    name = sklearn_name(model)
    if name == "RANSACRegressor":
        require_fitted(model, "estimator_")
        return linear_parts(_linear_inside(model))
    require_fitted(model, "coef_")
    coefficients = np.asarray(model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_)
    flat = coefficients.ndim == 1
    coefficients = np.atleast_2d(coefficients).T
    if name == "SGDOneClassSVM":
        offset = -np.atleast_1d(np.asarray(model.offset_, float))
        return LinearParts(coefficients, offset, ("decision function",), "decision function", "decision_function")
    n_outputs = coefficients.shape[1]
    intercept = np.broadcast_to(np.atleast_1d(np.asarray(model.intercept_, float)), (n_outputs,))
    if hasattr(model, "classes_"):
        names, unit = _classifier_words(model, n_outputs)
        return LinearParts(coefficients, intercept, names, unit, "decision_function")
    targets = ("target",) if flat or n_outputs == 1 else tuple(f"target {k}" for k in range(n_outputs))
    if _has_log_link(model):
        return LinearParts(coefficients, intercept, targets, "log of the target", link=np.log)
    return LinearParts(coefficients, intercept, targets, "target")


def _classifier_words(model: Any, n_outputs: int) -> tuple[tuple[str, ...], str]:
    """Return output names and unit of a decision function: log-odds where the model is logistic."""
    classes = tuple(str(c) for c in model.classes_)
    multinomial = sklearn_name(model) in ("LogisticRegression", "LogisticRegressionCV")
    logistic = multinomial or getattr(model, "loss", "") == "log_loss"
    if n_outputs == 1:
        return (classes[1],), f"{'log-odds' if logistic else 'decision function'} (> 0: {classes[1]})"
    if multinomial:
        return classes, "score before the softmax"
    return classes, "one-vs-rest log-odds" if logistic else "decision function"


def _linear_inside(model: Any) -> Any:
    """Return the linear regressor inside RANSAC; its predictions are those of that regressor."""
    inner = model.estimator_
    known = known_class(inner)
    linear = known is not None and known.__module__.startswith("sklearn.linear_model") and not replaced(inner, known)
    if linear and hasattr(inner, "coef_") and not _has_log_link(inner):
        return inner
    raise UnsupportedStructureError(
        message(
            f"RANSACRegressor is as linear as the estimator inside it, and {type(inner).__name__} is not known to be",
            do="Explain model.estimator_ itself, or RANSACRegressor.predict as a black box",
        )
    )


def _has_log_link(model: Any) -> bool:
    """Say whether a generalised linear model predicts exp(linear)."""
    name = sklearn_name(model)
    if name == "TweedieRegressor":
        return model.link == "log" or (model.link == "auto" and model.power > 0)
    return name in ("PoissonRegressor", "GammaRegressor")


def scaled(coefficients: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return rows times coefficients, of shape (n_rows, n_columns, n_outputs)."""
    if coefficients.shape[1] == 1:  # without an innermost axis of one, on which NumPy spends a call for each product
        return (rows * coefficients[:, 0])[:, :, None]
    return rows[:, :, None] * coefficients

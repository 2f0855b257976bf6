"""Read linear models of scikit-learn, generalised ones in link space, linear SVMs, constants and isotonic functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import (
    Outputs,
    OwnCall,
    Reader,
    Request,
    class_names,
    fitted_names,
    joined_outputs,
    known_class,
    nameless,
    replaced,
    sklearn_name,
    target_names,
)
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._functions import FunctionTerm, SeparateTerms
from exactshap.readers.additive._terms import LinearTerms
from exactshap.readers.additive.response import with_response

if TYPE_CHECKING:
    from exactshap.readers.responses import Response


# Steps that predict one product, with or without a link
LINEAR = (
    "sklearn.linear_model.",
    "sklearn.svm._classes.LinearSV",
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
    "sklearn.cross_decomposition._pls.PLSRegression",
    "sklearn.cross_decomposition._pls.PLSCanonical",
    "sklearn.cross_decomposition._pls.CCA",
)
# Machines that are linear where their kernel is.
_MACHINES = tuple(f"sklearn.svm._classes.{name}" for name in ("SVR", "NuSVR", "SVC", "NuSVC"))


@dataclass(frozen=True, eq=False)
class LinearParts:
    """Hold a linear model, f(x) = intercept + coefficients . x, and its own call.

    ``coefficients (n_columns, n_outputs)``; ``method`` of the model gives the prediction, ``link`` takes it to link space.
    """

    coefficients: np.ndarray
    intercept: np.ndarray
    output_names: tuple[str, ...]
    unit: str
    method: str = "predict"
    link: Callable[[np.ndarray], np.ndarray] | None = None
    centres_rows: bool = False  # whether the rows are moved to their mean, which rounds them in their own precision

    @property
    def floor(self) -> float:
        return 0.0 if self.link is None else 1.0

    def precision_for(self, background: Table | None) -> DTypeLike:
        """Return the precision of the model; a pipeline passes rows of the background's dtype."""
        centred = background if self.centres_rows else None
        dtypes = self.coefficients.dtype, getattr(centred and centred.native, "dtype", None)
        return np.float32 if np.float32 in dtypes else np.float64

    def call(self, outputs: Outputs) -> OwnCall:
        """Return the documented call that predicts the linear parts, which a pipeline also has."""
        return outputs.call(self.method, link=self.link)


def is_logistic(model: Model) -> bool:
    """Say whether a linear classifier's probabilities are a known function of scores."""
    name = sklearn_name(model)
    logistic = name in ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis")
    return logistic or (name == "SGDClassifier" and model.loss == "log_loss")


def response_of(model: Model) -> Response:
    """Return the second class's probability, or a generalised linear model's mean."""
    from exactshap.readers.responses import Response, no_response, probabilities

    parts = linear_parts(model)
    if not hasattr(model, "classes_"):
        return Response(None if parts.link is None else "exponential", OwnCall("predict"), "target")
    if not is_logistic(model):
        raise no_response(model, f"Its score is a {parts.unit}")
    return probabilities(model.classes_, "one-vs-rest" if sklearn_name(model) == "SGDClassifier" else "softmax")


@with_response(response_of)
def read(model: Model, request: Request) -> AdditiveReader:
    """Read a linear model: one term for each column."""
    return read_parts(model, request, linear_parts(model), fitted_names(model))


def read_parts(
    model: Model,
    request: Request,
    parts: LinearParts,
    names: tuple[str, ...] | None,
    call: OwnCall | None = None,
    **facts: Any,
) -> AdditiveReader:
    """Read the parts of a linear model of any library.

    ``call`` is its documented one, where ``parts.call`` is not; ``facts`` are other fields of the form.
    """
    outputs = Outputs.of(parts.output_names, request.output, owner=type(model).__name__)
    form = AdditiveForm(
        blocks=(LinearTerms(parts.coefficients[:, outputs.numbers].astype(float)),),
        intercept=parts.intercept[outputs.numbers],
        own_call=call or parts.call(outputs),
        n_columns=len(parts.coefficients),
        fitted_names=names,
        outputs=outputs,
        unit=parts.unit,
        floor=parts.floor,
        precision=parts.precision_for(request.background),
    )
    return AdditiveReader(model, request, replace(form, **facts))


def read_side_by_side(
    model: Model, request: Request, parts: Sequence[Reader], model_name: str, **facts: Any
) -> AdditiveReader | None:
    r"""Read several linear models as one's outputs, None if one is not linear.

    .. math:: f_k(x) = b_k + \sum_j x_j \beta_{jk}

    ``facts`` are the prediction of ``model``, which holds them, and other fields of its form. Solved one by one, 100,000 rows of five
    classes take twice as long.
    """
    forms = [part.form for part in parts if isinstance(part, AdditiveReader)]
    blocks = [block for form in forms for block in form.blocks if isinstance(block, LinearTerms)]
    if len(blocks) < len(parts):
        return None
    form = replace(
        forms[0],
        blocks=(LinearTerms(np.concatenate([block.coefficients for block in blocks], axis=1)),),
        intercept=np.concatenate([form.intercept for form in forms]),
        own_call=None,
        floor=max(form.floor for form in forms),
        precision=max((np.dtype(form.precision) for form in forms), key=lambda dtype: np.finfo(dtype).eps),
        **facts,
    )
    return AdditiveReader(model, request, form, model_name)


def linear_parts(model: Model) -> LinearParts:
    """Return the parts of a fitted linear model, or refuse it."""
    name = sklearn_name(model)
    if name == "RANSACRegressor":
        return linear_parts(_linear_inside(model))
    coefficients = np.asarray(model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_)
    coefficients = np.atleast_2d(coefficients).T
    if name == "SGDOneClassSVM":
        offset = -np.atleast_1d(np.asarray(model.offset_, float))
        return LinearParts(coefficients, offset, ("decision function",), "decision function", "decision_function")
    n_outputs = coefficients.shape[1]
    intercept = np.broadcast_to(np.atleast_1d(np.asarray(model.intercept_, float)), (n_outputs,))
    # Partial least squares move the rows to their mean first
    if hasattr(model, "x_weights_"):
        intercept = np.ravel(nameless(model).predict(np.zeros((1, len(coefficients)))))
    if hasattr(model, "classes_"):
        names, unit = _classifier_words(model, n_outputs)
        return LinearParts(coefficients, intercept, names, unit, "decision_function")
    targets = target_names(n_outputs)
    if _has_log_link(model):
        return LinearParts(coefficients, intercept, targets, "log of the target", link=np.log)
    unit = f"quantile {model.quantile:g} of the target" if name == "QuantileRegressor" else "target"
    return LinearParts(coefficients, intercept, targets, unit, centres_rows=hasattr(model, "x_weights_"))


def _classifier_words(model: Model, n_outputs: int) -> tuple[tuple[str, ...], str]:
    """Return output names and unit of a decision function: log-odds where the model is logistic."""
    classes = tuple(str(c) for c in model.classes_)
    multinomial = sklearn_name(model) in ("LogisticRegression", "LogisticRegressionCV")
    logistic = multinomial or getattr(model, "loss", "") == "log_loss"
    if n_outputs == 1:
        return (classes[1],), f"{'log-odds' if logistic else 'decision function'} of class {classes[1]}"
    if multinomial:
        return classes, "score before the softmax"
    return classes, "one-vs-rest log-odds" if logistic else "decision function"


def _linear_inside(model: Model) -> Any:
    """Return the linear regressor inside RANSAC; its predictions are those of that regressor."""
    inner = model.estimator_
    known = known_class(inner)
    linear = known is not None and known.__module__.startswith("sklearn.linear_model") and not replaced(inner, known)
    if linear and hasattr(inner, "coef_") and not _has_log_link(inner):
        return inner
    raise UnsupportedStructureError(
        f"The {type(inner).__name__} inside RANSACRegressor is not known to be linear",
        do="Explain model.estimator_ itself, or RANSACRegressor.predict as a black box",
    )


def _has_log_link(model: Model) -> bool:
    """Say whether a generalised linear model predicts exp(linear)."""
    name = sklearn_name(model)
    if name == "TweedieRegressor":
        return model.link == "log" or (model.link == "auto" and model.power > 0)
    return name in ("PoissonRegressor", "GammaRegressor")


def linear_step(model: Model) -> Any:
    """Return a linear step's parts if it predicts without a link, else None.

    >>> from sklearn.linear_model import PoissonRegressor, Ridge
    >>> linear_step(Ridge().fit([[0.0], [2.0]], [1.0, 1.0])).intercept
    array([1.])
    >>> linear_step(PoissonRegressor().fit([[0.0], [2.0]], [1.0, 1.0]))
    """
    known = known_class(model)
    if known is None or replaced(model, known):
        return None
    name = f"{known.__module__}.{known.__qualname__}"
    # A kernel machine is linear where its kernel is, and where it is no vote of several.
    is_machine = name in _MACHINES and model.kernel == "linear" and len(getattr(model, "classes_", ())) <= 2
    if not name.startswith(LINEAR) and not is_machine:
        return None
    parts = linear_parts(model)
    return parts if parts.link is None else None


# -- constants, and monotone functions of one column -----------------------------------------------------------------------


def read_constant(model: Model, request: Request) -> AdditiveReader:
    """Read a dummy, in which all columns are null players."""
    is_classifier = sklearn_name(model) == "DummyClassifier"
    if is_classifier and model.strategy == "stratified":
        do = "Fit it with strategy='prior'"
        raise UnsupportedStructureError("DummyClassifier draws its predictions at random", "Got strategy='stratified'", do)
    row, method = np.zeros((1, int(model.n_features_in_))), "predict_proba" if is_classifier else "predict"
    answer = joined_outputs(getattr(nameless(model), method)(row)).reshape(-1)
    names = class_names(model.classes_) if is_classifier else target_names(answer.size)
    wanted = "auto" if is_classifier and request.asks_response else request.output
    if is_classifier and isinstance(wanted, str) and wanted == "auto" and len(names) == 2:
        wanted = 1
    outputs, unit = Outputs.of(names, wanted, owner=sklearn_name(model)), "probability" if is_classifier else "target"
    if is_classifier and outputs.single:
        unit = f"{unit} of class {outputs.names[0]}"
    parts = LinearParts(np.zeros((row.shape[1], answer.size)), answer, names, unit, method)
    return read_parts(model, replace(request, output=wanted), parts, None, encode=_nothing, in_double=False)


def _nothing(X: Table, what: str) -> np.ndarray:
    """Return an empty array, as a constant ignores cells of any type."""
    return np.zeros((X.n_rows, X.n_columns))


def read_isotonic(model: Model, request: Request) -> AdditiveReader:
    """Read a function of the only column."""
    of_column = functools.partial(_isotonic, model)
    form = AdditiveForm(
        blocks=(SeparateTerms((FunctionTerm((0,), of_column, "IsotonicRegression", 1),)),),
        intercept=np.zeros(1),
        predict=of_column,
        n_columns=1,
        outputs=Outputs.of(("target",), request.output, owner="IsotonicRegression"),
        unit="target",
    )
    return AdditiveReader(model, request, form)


def _isotonic(model: Model, rows: Table | np.ndarray) -> np.ndarray:
    """Return the model's prediction, for a single column without a name."""
    values = rows.numeric() if isinstance(rows, Table) else rows
    return np.asarray(model.predict(values[:, 0]), float)

"""Read sparse linear models of skglm: regressions, linear classifiers and Cox's model."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError, message
from exactshap.readers import OwnCall, Request, fitted_names, require_fitted
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LinearParts, read_parts
from exactshap.readers.responses import Response, no_response

_REGRESSIONS = ("Lasso", "WeightedLasso", "ElasticNet", "MCPRegression", "GroupLasso", "MultiTaskLasso")
_CLASSIFIERS = {"SparseLogisticRegression": "log-odds", "LinearSVC": "decision function"}
_SCORES = ("Quadratic", "WeightedQuadratic", "Huber", "QuadraticSVC")  # data fits of a general estimator


def _response(model: Model) -> Response:
    if _kind(model) == "SparseLogisticRegression":
        raise no_response(model, "Its predict_proba is not the logistic function of its log-odds in release 0.5")
    if _kind(model) == "LinearSVC":
        raise no_response(model, "Its score is a decision function")
    return Response(None, OwnCall("predict"), "target")


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    """Read a linear function: what the model predicts, or its decision function."""
    require_fitted(model, "coef_", "intercept_")
    kind = _kind(model)
    coefficients = np.atleast_2d(np.asarray(model.coef_, float)).T
    intercept = np.broadcast_to(np.atleast_1d(np.asarray(model.intercept_, float)), (coefficients.shape[1],))
    if kind in _CLASSIFIERS:
        if len(model.classes_) != 2:
            _refuse(model, f"Got {len(model.classes_)} classes")
        name = str(model.classes_[1])
        parts = LinearParts(coefficients, intercept, (name,), f"{_CLASSIFIERS[kind]} of class {name}", "decision_function")
    elif kind == "CoxEstimator":
        parts = LinearParts(coefficients, intercept, ("output",), "log hazard: high is early")
    elif kind in _REGRESSIONS or type(getattr(model, "datafit", None)).__name__ in _SCORES:
        n_targets = coefficients.shape[1]
        names = ("target",) if n_targets == 1 else tuple(f"target {k}" for k in range(n_targets))
        parts = LinearParts(coefficients, intercept, names, "target")
    else:
        _refuse(model, f"Got datafit={type(getattr(model, 'datafit', None)).__name__}")
    return read_parts(model, request, parts, fitted_names(model))


def _kind(model: Model) -> str:
    return next(cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("skglm."))


def _refuse(model: Model, got: str) -> NoReturn:
    do = "Call it: explain(model.predict, X, background), exact up to 13 players"
    raise UnsupportedStructureError(message(f"{type(model).__name__} can be read only where its prediction is linear", got, do))

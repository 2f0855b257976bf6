"""Read linear survival models of scikit-survival: Cox, Coxnet, componentwise boosting, ridge and linear SVMs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.readers import Request, fitted_names, require_fitted
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive.sklearn_linear import LinearParts, read_parts

HAZARD, TIME, RANK = "log hazard: high is early", "log of the survival time", "risk score: high is early"


def read(model: Model, request: Request) -> AdditiveReader:
    """Read a risk score, or the log of a predicted time."""
    require_fitted(model, "coef_", "n_features_in_")
    kind = next(cls.__name__ for cls in type(model).__mro__ if cls.__name__ in _PARTS)
    coefficients, intercept, unit = _PARTS[kind](model)
    link = np.log if unit == TIME else None
    parts = LinearParts(
        np.asarray(coefficients, float)[:, None], np.array([float(intercept)]), ("output",), unit, "predict", link
    )
    return read_parts(model, request, parts, fitted_names(model))


def _coxnet(model: Model) -> tuple[Any, Any, str]:
    """Return the coefficients of the smallest penalty, which ``predict`` uses."""
    return model.coef_[:, -1], -np.ravel(model.offset_)[-1], HAZARD


def _componentwise(model: Model) -> tuple[Any, Any, str]:
    return model.coef_[1:], model.coef_[0], HAZARD if model.loss == "coxph" else TIME


def _fast_svm(model: Model) -> tuple[Any, Any, str]:
    """Return scores of ranks, or of times if fitted to them."""
    intercept = getattr(model, "intercept_", 0.0)
    if model.rank_ratio == 1:
        return -model.coef_, -intercept, RANK
    return model.coef_, intercept, TIME


_PARTS: dict[str, Callable[[Any], tuple[Any, Any, str]]] = {
    "CoxPHSurvivalAnalysis": lambda model: (model.coef_, 0.0, HAZARD),
    "CoxnetSurvivalAnalysis": _coxnet,
    "ComponentwiseGradientBoostingSurvivalAnalysis": _componentwise,
    "IPCRidge": lambda model: (model.coef_, model.intercept_, TIME),
    "FastSurvivalSVM": _fast_svm,
    "NaiveSurvivalSVM": lambda model: (-model.coef_[0], -np.ravel(model.intercept_)[0], RANK),
}

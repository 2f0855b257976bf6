"""Searches, thresholds and frozen estimators: they predict what the model inside them predicts, so that one is read."""

from __future__ import annotations

from typing import Any

from exactshap.errors import InputError, message
from exactshap.readers import Reader, Request, require_fitted
from exactshap.readers import read as read_any

__all__ = ["read"]

_INSIDE = {"BaseSearchCV": "best_estimator_", "BaseThresholdClassifier": "estimator_", "FrozenEstimator": "estimator"}


def read(model: Any, request: Request) -> Reader:
    """Read the fitted model inside; a threshold changes labels, not the output that is explained."""
    inside = next(_INSIDE[cls.__name__] for cls in type(model).__mro__ if cls.__name__ in _INSIDE)
    if inside == "best_estimator_" and model.refit is False:
        do = "Fit one with the best parameters, or search with refit=True"
        raise InputError(message(f"{type(model).__name__} holds no fitted model", "Got refit=False", do))
    require_fitted(model, inside)
    return read_any(getattr(model, inside), request)

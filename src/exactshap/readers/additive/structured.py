"""Read models that return their own terms by ``partial(columns)`` and ``get_all_unique_fs()``, as in STAR-SHAP's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import UnsupportedModelError
from exactshap.readers import Request
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive.additive_model import AdditiveModel
from exactshap.readers.additive.additive_model import read as read_terms


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
        rows = X.numeric() if hasattr(X, "numeric") else np.asarray(X, float)
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


def read(model: Model, request: Request) -> AdditiveReader:
    """Read the terms; the number of columns is the model's or the background's."""
    if request.background is None:
        do = "Pass reference rows: explain(model, X, background)"
        raise UnsupportedModelError("The terms of a structured model need a background", "Got none", do)
    n_features = getattr(model, "n_features_in_", None) or request.background.n_columns
    return read_terms(StructuredModel(model, int(n_features)), request)

"""Histogram gradient boosting of scikit-learn, with missing values and categorical columns, in the space of its link."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.readers import Request
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import convert

__all__ = ["read"]


def read(model: Any, request: Request) -> TreeReader:
    """Read f(x) = baseline + sum of trees: log-odds, the log of the target (Poisson, gamma), or the target."""
    return TreeReader(model, request, convert(model), functools.partial(_own_margin, model))


def _own_margin(model: Any, X: Table) -> np.ndarray:
    if hasattr(model, "decision_function"):
        return model.decision_function(X.native)
    prediction = model.predict(X.native)
    return np.log(prediction) if model.loss in ("poisson", "gamma") else prediction

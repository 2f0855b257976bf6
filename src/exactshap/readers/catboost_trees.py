"""CatBoost's models as raw formula values: symmetric and non-symmetric trees on numeric columns, missing values."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.readers._base import Request
from exactshap.readers._trees import TreeReader
from exactshap.trees import convert

__all__ = ["read"]


def read(model: Any, request: Request) -> TreeReader:
    """Read f(x) = bias + scale times the sum of trees, in the space of the objective's link."""
    return TreeReader(model, request, convert(model), functools.partial(_own_margin, model))


def _own_margin(model: Any, X: Table) -> np.ndarray:
    return model.predict(X.native, prediction_type="RawFormulaVal")

"""XGBoost's boosters and estimators in margin space: DART, random forests, categorical splits, missing values, vector leaves.

Estimators stop at their best iteration as their own ``predict`` does; a ``Booster`` uses all rounds, as its ``predict`` does.
"""

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
    """Read f(x) = base margin + sum of trees, in the space of the objective's link."""
    return TreeReader(model, request, convert(model), functools.partial(_own_margin, model))


def _own_margin(model: Any, X: Table) -> np.ndarray:
    if hasattr(model, "get_booster"):
        return model.predict(X.native, output_margin=True, validate_features=False)
    return model.inplace_predict(X.native, predict_type="margin", validate_features=False)

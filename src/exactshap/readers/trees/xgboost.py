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
from exactshap.trees import TreeModel, convert
from exactshap.trees.ensemble import readable

__all__ = ["read"]


def read(model: Any, request: Request) -> TreeReader:
    """Read f(x) = base margin + sum of trees, in the space of the objective's link."""
    ensemble = convert(model)
    return TreeReader(model, request, ensemble, functools.partial(_margin, model, ensemble))


def _margin(model: Any, ensemble: TreeModel, X: Table) -> np.ndarray:
    rows = readable(ensemble, X).native  # names were compared: XGBoost refuses any if it was fitted without
    if hasattr(model, "get_booster"):
        return model.predict(rows, output_margin=True, validate_features=False)
    return model.inplace_predict(rows, predict_type="margin", validate_features=False)

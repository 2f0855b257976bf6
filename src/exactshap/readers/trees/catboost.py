"""CatBoost's models as raw formula values: symmetric and non-symmetric trees, missing values, categorical columns.

One-hot splits and target statistics of one column are splits on that column. A target statistic that combines columns belongs to
the group that holds them all; without such a group the model is refused with the groups to pass.
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
    """Read f(x) = bias + scale times the sum of trees, in the space of the objective's link."""
    ensemble = convert(model)
    return TreeReader(model, request, ensemble, functools.partial(_own_margin, model, ensemble))


def _own_margin(model: Any, ensemble: TreeModel, X: Table) -> np.ndarray:
    from catboost import CatBoost  # rankers, for one, take no type of prediction themselves

    return CatBoost.predict(model, readable(ensemble, X).native, prediction_type="RawFormulaVal")

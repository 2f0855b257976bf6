"""CatBoost's models as raw formula values: symmetric and non-symmetric trees, missing values, categorical columns.

One-hot splits and target statistics of one column are splits on that column. A target statistic that combines columns belongs to
the group that holds them all; without such a group the model is refused with the groups to pass.
"""

from __future__ import annotations

import inspect

from exactshap._runtime.types import Model
from exactshap.readers import OwnCall, Request
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import convert

__all__ = ["read"]


def read(model: Model, request: Request) -> TreeReader:
    """Read f(x) = bias + scale times the sum of trees. It is in the space of the objective's link."""
    ensemble = convert(model)
    # rankers take no type of prediction: theirs is the raw value
    typed = "prediction_type" in inspect.signature(model.predict).parameters
    return TreeReader(model, request, ensemble, OwnCall("predict", {"prediction_type": "RawFormulaVal"} if typed else {}))

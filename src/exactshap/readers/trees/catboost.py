"""Read CatBoost's models as raw formula values: symmetric and non-symmetric trees, missing values, categories.

One-hot splits and target statistics of one column are splits on that column. A target statistic that combines columns belongs to
the group that holds them all; without such a group the model is refused with the groups to pass.
"""

from __future__ import annotations

import functools
import inspect

from exactshap._runtime.types import Model
from exactshap.readers import OwnCall, Reader, Request
from exactshap.readers.trees._response import LINKS, by_unit, read_trees
from exactshap.trees import TreeModel, convert


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = bias + scale times the sum of trees."""
    ensemble = convert(model)
    # rankers take no type of prediction: theirs is the raw value
    typed = "prediction_type" in inspect.signature(model.predict).parameters
    call = OwnCall("predict", {"prediction_type": "RawFormulaVal"} if typed else {})
    return read_trees(model, request, ensemble, call, functools.partial(_response, typed))


def _response(typed: bool, ensemble: TreeModel) -> tuple[str, OwnCall, float] | None:
    kind = "Exponent" if LINKS.get(ensemble.unit) == "exponential" else "Probability"
    return by_unit(ensemble, OwnCall("predict", {"prediction_type": kind})) if typed else None

"""Read CatBoost's models as raw formula values: symmetric and non-symmetric trees, missing values, categories.

One-hot splits and target statistics of one column are splits on that column. A target statistic that combines columns belongs to
the group that holds them all; without such a group the model is refused with the groups to pass.
"""

from __future__ import annotations

import functools
import inspect

from exactshap._runtime.types import Model
from exactshap.readers import OwnCall, Reader, Request
from exactshap.readers.trees._response import read_trees
from exactshap.trees import TreeModel, convert

_LINKS = {
    **dict.fromkeys(("CrossEntropy", "Focal", "Logloss"), "logistic"),
    **dict.fromkeys(("MultiClassOneVsAll", "MultiCrossEntropy", "MultiLogloss"), "logistic"),
    **dict.fromkeys(("Cox", "Poisson", "Tweedie"), "exponential"),
    "MultiClass": "softmax",
}


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = bias + scale times the sum of trees."""
    ensemble = convert(model)
    # rankers take no type of prediction: theirs is the raw value
    typed = "prediction_type" in inspect.signature(model.predict).parameters
    call = OwnCall("predict", {"prediction_type": "RawFormulaVal"} if typed else {})
    return read_trees(model, request, ensemble, call, functools.partial(_response, typed))


def _response(typed: bool, ensemble: TreeModel) -> tuple[str, OwnCall, float] | None:
    """Return the link, the documented call of the response, and its slope."""
    link = _LINKS.get(ensemble.objective)
    if link is None or not typed:
        return None
    return link, OwnCall("predict", {"prediction_type": "Exponent" if link == "exponential" else "Probability"}), 1.0

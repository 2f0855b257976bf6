"""Read XGBoost's boosters and estimators as margins: DART, random forests, categories, missing values, vector leaves.

Estimators stop at their best iteration as their own ``predict`` does; a ``Booster`` uses all rounds, as its ``predict`` does.
"""

from __future__ import annotations

import functools
import json

from exactshap._runtime.types import Model
from exactshap.readers import Offset, OwnCall, Reader, Request, raise_not_fitted
from exactshap.readers.trees._response import by_unit, read_trees
from exactshap.trees import TreeModel, convert

# Names were compared here: XGBoost refuses any if it was fitted without
_UNCHECKED = {"validate_features": False}


def reader_elsewhere(model: Model) -> str | None:
    """Return the module that reads a linear booster, which has no trees."""
    try:
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        name = json.loads(booster.save_config())["learner"]["gradient_booster"]["name"]
    except Exception:  # not fitted: the reader of trees says so
        return None
    return "exactshap.readers.additive.xgboost_linear" if name == "gblinear" else None


def _require_trained(model: Model) -> None:
    """Refuse a new ``Booster``, which answers every question with an error."""
    import xgboost

    try:
        hasattr(model, "get_booster") or model.num_features()
    except xgboost.core.XGBoostError:
        raise_not_fitted(model)


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = base margin + sum of trees."""
    _require_trained(model)
    ensemble = convert(model)
    if hasattr(model, "get_booster"):
        call = OwnCall("predict", {"output_margin": True, **_UNCHECKED})
    else:
        call = OwnCall("inplace_predict", {"predict_type": "margin", **_UNCHECKED})
    offset = Offset("base_margin", ensemble.trees.constant)
    return read_trees(model, request, ensemble, call, functools.partial(_response, model), offset=offset)


def _response(model: Model, ensemble: TreeModel) -> tuple[str, OwnCall, float] | None:
    if hasattr(model, "predict_proba"):
        return by_unit(ensemble, OwnCall("predict_proba", _UNCHECKED))
    # Such a model predicts the class itself.
    if ensemble.objective == "multi:softmax":
        return None
    return by_unit(ensemble, OwnCall("predict" if hasattr(model, "get_booster") else "inplace_predict", _UNCHECKED))

"""Read XGBoost, LightGBM and CatBoost as margins, and ensembles from files: what ``exactshap.trees.load`` returns, and ONNX.

Categories, missing values, DART, random forests and vector leaves are read. Estimators stop at their best iteration as their own
``predict`` does; a ``Booster`` uses all rounds, as its ``predict`` does. CatBoost's target statistics that combine columns belong to the
group that holds them all; without such a group the model is refused with the groups to pass.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from functools import partial

import numpy as np

from exactshap._graphs import TreeCore
from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.readers import Offset, OwnCall, Reader, Request, raise_not_fitted
from exactshap.readers.trees._response import LINKS, by_unit, read_trees
from exactshap.trees import convert

# Names were compared here: XGBoost refuses any if it was fitted without
_UNCHECKED = {"validate_features": False}
# Objectives of which LightGBM may leave out trees of a prediction
_STOPPING = ("binary", "multiclass", "multiclassova", "lambdarank", "rank_xendcg")


def reader_elsewhere(model: Model) -> str | None:
    """Return the module that reads a linear booster of XGBoost, which has no trees."""
    try:
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        name = json.loads(booster.save_config())["learner"]["gradient_booster"]["name"]
    except Exception:  # another library's, or not fitted: the reader of trees says so
        return None
    return "exactshap.readers.additive.linear_packages:read_xgboost" if name == "gblinear" else None


def read_xgboost(model: Model, request: Request) -> Reader:
    """Read f(x) = base margin + sum of trees."""
    import xgboost

    # A new ``Booster`` answers every question with an error
    try:
        hasattr(model, "get_booster") or model.num_features()
    except xgboost.core.XGBoostError:
        raise_not_fitted(model)
    ensemble = convert(model)
    if hasattr(model, "get_booster"):
        call = OwnCall("predict", {"output_margin": True, **_UNCHECKED})
    else:
        call = OwnCall("inplace_predict", {"predict_type": "margin", **_UNCHECKED})
    offset = Offset("base_margin", ensemble.trees.constant)
    method = "predict_proba" if hasattr(model, "predict_proba") else call.method
    # Without probabilities such a model predicts the class itself
    is_class = ensemble.objective == "multi:softmax" and method != "predict_proba"
    response = None if is_class else by_unit(ensemble, OwnCall(method, _UNCHECKED))
    return read_trees(model, request, ensemble, call, response, offset=offset)


def read_lightgbm(model: Model, request: Request) -> Reader:
    """Read f(x) = sum of trees, their mean in random-forest mode."""
    ensemble = convert(model)
    method = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    if ensemble.objective in _STOPPING and hasattr(model, "get_params") and model.get_params().get("pred_early_stop"):
        raise UnsupportedStructureError(
            "A prediction that stops early is no sum of trees",
            "Got pred_early_stop=True",
            "Explain all trees, after model.set_params(pred_early_stop=False); or call the model:"
            f" explain(model.{method}, X, background)",
        )
    call = OwnCall("predict", {"raw_score": True})
    if not ensemble.boosted:
        n_rounds = ensemble.trees.n_trees // len(ensemble.output_names)
        call = replace(call, finish=partial(_mean_of_rounds, n_rounds))
    return read_trees(model, request, ensemble, call, by_unit(ensemble, OwnCall(method)))


def _mean_of_rounds(n_rounds: int, scores: np.ndarray) -> np.ndarray:
    return scores / n_rounds  # LightGBM's raw score of a forest is the sum


def read_catboost(model: Model, request: Request) -> Reader:
    """Read the raw formula value, bias + scale times the sum of trees."""
    ensemble = convert(model)
    # rankers take no type of prediction: theirs is the raw value
    typed = "prediction_type" in inspect.signature(model.predict).parameters
    call = OwnCall("predict", {"prediction_type": "RawFormulaVal"} if typed else {})
    kind = "Exponent" if LINKS.get(ensemble.unit) == "exponential" else "Probability"
    response = by_unit(ensemble, OwnCall("predict", {"prediction_type": kind})) if typed else None
    return read_trees(model, request, ensemble, call, response)


def read_tree_model(model: Model, request: Request) -> Reader:
    """Read what was loaded from a file: f(x) = constant + sum of trees."""
    # Our own prediction adds in float64
    ensemble = replace(model, epsilon=float(np.finfo(np.float64).eps))
    # XGBoost leaves base_score out, as it does itself
    replaced = model.trees.constant if model.library == "xgboost" else 0.0
    # There is no library that could say what it predicts in another unit
    no_response = UnsupportedStructureError(
        f"{ensemble.name} was read from a file: its response has no prediction to be held against",
        f"Its predict gives the {ensemble.unit}",
        f"Load it with {ensemble.library} and explain that model, or leave output= out for its {ensemble.unit}",
    )
    return read_trees(model, request, ensemble, OwnCall("predict"), no_response, offset=Offset(replaces=replaced))


def read_onnx(model: TreeCore, request: Request) -> Reader:
    """Read f(x) = base values + sum of trees. The file's own transform of the scores is left out."""
    ensemble = convert(model)
    finish = partial(_outputs, len(ensemble.output_names))
    response = by_unit(ensemble, OwnCall("responses", finish=finish))
    return read_trees(model, request, ensemble, OwnCall("scores", finish=finish), response)


def _outputs(n_outputs: int, answers: np.ndarray) -> np.ndarray:
    """Return the answers of the outputs; of two classes with one score the file answers both."""
    return answers[:, -1] if n_outputs == 1 else answers

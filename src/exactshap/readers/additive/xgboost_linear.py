"""Read XGBoost's ``gblinear`` boosters as linear margins, without the terms of missing cells."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Outputs, OwnCall, Request, score_names, target_names
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LinearParts, read_parts
from exactshap.readers.responses import Response, no_response, probabilities

# Names were compared here; XGBoost refuses any if it was fitted without
_UNCHECKED = {"validate_features": False}
_LOGARITHMS = {
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie"), "log of the target"),
    "survival:cox": "log hazard",
}


def _response(model: Model) -> Response:
    """Return the mean, or the probabilities."""
    unit = _unit(model)
    if unit == "target":
        return Response(None, OwnCall("predict", _UNCHECKED), "target")
    if unit == "log of the target":
        return Response("exponential", OwnCall("predict", _UNCHECKED), "target")
    if not hasattr(model, "predict_proba"):
        raise no_response(model, f"Its margin is a {unit}")
    return probabilities(model.classes_)


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    """Read the margins by the weights of the saved model; the constant is its prediction of a row of zeros."""
    if not hasattr(model, "get_booster"):
        do = "Load it into an XGBRegressor or XGBClassifier: estimator.load_model(path)"
        raise UnsupportedStructureError("A booster of gblinear predicts for a DMatrix only", "Got a Booster", do)
    booster, outputs = model.get_booster(), Outputs.of(_output_names(model), request.output, owner=type(model).__name__)
    saved = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]["model"]
    weights = np.asarray(saved["weights"], np.float32).reshape(booster.num_features() + 1, -1)
    call = OwnCall("predict", {"output_margin": True, **_UNCHECKED})
    constant = np.ravel(call(model, np.zeros((1, booster.num_features()), np.float32)))
    fitted = None if booster.feature_names is None else tuple(booster.feature_names)
    return read_parts(
        model,
        request,
        LinearParts(weights[:-1], constant, _output_names(model), _unit(model)),
        fitted,
        replace(call, finish=outputs.pick),
        encode=functools.partial(_encoded, model.missing, type(model).__name__, request.feature_names),
    )


def _encoded(missing: float, owner: str, names: tuple[str, ...] | None, X: Table, what: str = "X") -> np.ndarray:
    """Return rows with 0 in missing cells, of which XGBoost adds nothing."""
    rows = X.numeric(what=what)
    with np.errstate(over="ignore"):
        # In the library's precision, in which cells and the missing value may agree
        is_missing = np.isnan(rows) | (rows.astype(np.float32) == np.float32(missing))
    return Table(np.where(is_missing, 0.0, rows), None, *rows.shape).finite(what, owner, names=X.names or names)


def _unit(model: Model) -> str:
    names = _output_names(model)
    if hasattr(model, "classes_"):
        return f"log-odds of class {names[0]}" if len(names) == 1 else "score before the softmax"
    objective = str(json.loads(model.get_booster().save_config())["learner"]["objective"]["name"])
    return _LOGARITHMS.get(objective, "log-odds" if objective.endswith(":logistic") else "target")


def _output_names(model: Model) -> tuple[str, ...]:
    if hasattr(model, "classes_"):
        return score_names(model.classes_)
    return target_names(int(json.loads(model.get_booster().save_config())["learner"]["learner_model_param"]["num_target"]))

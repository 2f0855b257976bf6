"""Read LightGBM's boosters and estimators as raw scores: categories, missing types, DART, random forests, best iteration."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.readers import OwnCall, Reader, Request
from exactshap.readers.trees._response import by_unit, read_trees
from exactshap.trees import TreeModel, convert

# Objectives of which LightGBM may leave out trees of a prediction
_STOPPING = ("binary", "multiclass", "multiclassova", "lambdarank", "rank_xendcg")


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = sum of trees, their mean in random-forest mode."""
    ensemble = convert(model)
    _require_all_trees(model, ensemble)
    call = OwnCall("predict", {"raw_score": True})
    if not ensemble.boosted:
        n_rounds = ensemble.trees.n_trees // len(ensemble.output_names)
        call = OwnCall("predict", {"raw_score": True}, functools.partial(_mean_of_rounds, n_rounds))
    return read_trees(model, request, ensemble, call, functools.partial(_response, model))


def _require_all_trees(model: Model, ensemble: TreeModel) -> None:
    """Refuse estimators that leave out trees of rows with a large margin."""
    if ensemble.objective in _STOPPING and hasattr(model, "get_params") and model.get_params().get("pred_early_stop"):
        method = "predict_proba" if hasattr(model, "predict_proba") else "predict"
        raise UnsupportedStructureError(
            "A prediction that stops early is no sum of trees",
            "Got pred_early_stop=True",
            "Explain all trees, after model.set_params(pred_early_stop=False); or call the model:"
            f" explain(model.{method}, X, background)",
        )


def _response(model: Model, ensemble: TreeModel) -> tuple[str, OwnCall, float] | None:
    return by_unit(ensemble, OwnCall("predict_proba" if hasattr(model, "predict_proba") else "predict"))


def _mean_of_rounds(n_rounds: int, scores: np.ndarray) -> np.ndarray:
    return scores / n_rounds  # LightGBM's raw score of a forest is the sum

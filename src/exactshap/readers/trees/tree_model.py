"""Explain tree models from files (:func:`exactshap.trees.load`), with our routing as their own prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError, message
from exactshap.readers import Offset, OwnCall, Reader, Request
from exactshap.readers.trees._response import read_trees
from exactshap.trees import TreeModel


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = constant + sum of trees."""
    # Our own prediction adds in float64
    ensemble = replace(model, epsilon=float(np.finfo(np.float64).eps))
    # XGBoost leaves base_score out, as it does itself
    replaced = model.trees.constant if model.library == "xgboost" else 0.0
    return read_trees(model, request, ensemble, OwnCall("predict"), _response, offset=Offset(replaces=replaced))


def _response(ensemble: TreeModel) -> tuple[str, OwnCall, float] | None:
    """Refuse: there is no library that could say what it predicts in another unit."""
    what = f"{ensemble.name} was read from a file: its response has no prediction to be held against"
    do = f"Load it with {ensemble.library} and explain that model, or leave output= out for its {ensemble.unit}"
    raise UnsupportedStructureError(message(what, f"Its predict gives the {ensemble.unit}", do))

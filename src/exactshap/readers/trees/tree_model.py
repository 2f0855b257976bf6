"""Tree models that were read from files (:func:`exactshap.trees.load`): their own prediction is our routing of their trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.readers import Offset, OwnCall, Request
from exactshap.readers.trees._tree_reader import TreeReader

__all__ = ["read"]


def read(model: Model, request: Request) -> TreeReader:
    """Read f(x) = constant + sum of trees."""
    ensemble = replace(model, epsilon=float(np.finfo(np.float64).eps))  # our own prediction adds in float64
    replaced = model.trees.constant if model.library == "xgboost" else 0.0  # XGBoost leaves base_score out, as it does itself
    return TreeReader(model, request, ensemble, OwnCall("predict"), offset=Offset(replaces=replaced))

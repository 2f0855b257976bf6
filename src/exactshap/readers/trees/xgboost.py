"""XGBoost's boosters and estimators in margin space: DART, random forests, categorical splits, missing values, vector leaves.

Estimators stop at their best iteration as their own ``predict`` does; a ``Booster`` uses all rounds, as its ``predict`` does.
"""

from __future__ import annotations

from exactshap._runtime.types import Model
from exactshap.readers import Offset, OwnCall, Request
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import convert

__all__ = ["read"]


def read(model: Model, request: Request) -> TreeReader:
    """Read f(x) = base margin + sum of trees. It is in the space of the objective's link."""
    ensemble = convert(model)
    unchecked = {"validate_features": False}  # names were compared here: XGBoost refuses any if it was fitted without
    call = OwnCall("inplace_predict", {"predict_type": "margin", **unchecked})
    if hasattr(model, "get_booster"):
        call = OwnCall("predict", {"output_margin": True, **unchecked})
    return TreeReader(model, request, ensemble, call, offset=Offset("base_margin", ensemble.trees.constant))

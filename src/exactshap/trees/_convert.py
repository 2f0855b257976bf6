"""Find the converter of a model by dotted name, so that no optional library is imported before its model is seen."""

from __future__ import annotations

import importlib
from typing import Any

from exactshap.errors import UnsupportedModelError, message
from exactshap.trees._flat import FlatTrees
from exactshap.trees._model import TreeModel

__all__ = ["convert", "flatten"]

# module of any class in the model's MRO -> module with a function ``convert(model) -> TreeModel``
_CONVERTERS = {
    "sklearn.tree._classes": "exactshap.trees.from_sklearn",
    "sklearn.ensemble._forest": "exactshap.trees.from_sklearn",
    "sklearn.ensemble._gb": "exactshap.trees.from_sklearn",
    "sklearn.ensemble._iforest": "exactshap.trees.from_sklearn",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": "exactshap.trees.from_sklearn_hist",
    "xgboost.core": "exactshap.trees.from_xgboost",
    "xgboost.sklearn": "exactshap.trees.from_xgboost",
    "lightgbm.basic": "exactshap.trees.from_lightgbm",
    "lightgbm.sklearn": "exactshap.trees.from_lightgbm",
    "catboost.core": "exactshap.trees.from_catboost",
}


def convert(model: Any) -> TreeModel:
    """Return a fitted tree model of any known library (or a :class:`TreeModel`) as a :class:`TreeModel`."""
    if isinstance(model, TreeModel):
        return model
    for cls in type(model).__mro__:
        if cls.__module__ in _CONVERTERS:
            return importlib.import_module(_CONVERTERS[cls.__module__]).convert(model)
    raise UnsupportedModelError(
        message(
            f"No tree converter for `{type(model).__module__}.{type(model).__qualname__}`",
            "Known: scikit-learn, XGBoost, LightGBM and CatBoost tree models",
            "Pass a fitted model of one of these, or a file through exactshap.trees.load",
        )
    )


def flatten(model: Any, output: Any = "auto") -> FlatTrees:
    """Return the flat trees of a fitted model; of a binary probability forest, those of the positive class."""
    return convert(model).pick(output).trees

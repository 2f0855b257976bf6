"""Find the converter of a model by dotted name, without importing optional libraries."""

from __future__ import annotations

import importlib
from typing import Any

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedModelError
from exactshap.trees.ensemble import FlatTrees, TreeModel

# module of any class in the model's MRO -> module with a function ``convert(model) -> TreeModel``
_CONVERTERS = {
    "sksurv.tree.tree": "exactshap.trees.formats.sksurv",
    "sksurv.ensemble.forest": "exactshap.trees.formats.sksurv",
    "sksurv.ensemble.boosting": "exactshap.trees.formats.sksurv",
    "sklearn.tree._classes": "exactshap.trees.formats.sklearn",
    "sklearn.ensemble._forest": "exactshap.trees.formats.sklearn",
    "sklearn.ensemble._gb": "exactshap.trees.formats.sklearn",
    "sklearn.ensemble._weight_boosting": "exactshap.trees.formats.sklearn",
    "sklearn.ensemble._iforest": "exactshap.trees.formats.sklearn",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": "exactshap.trees.formats.sklearn",
    "xgboost.core": "exactshap.trees.formats.xgboost",
    "xgboost.sklearn": "exactshap.trees.formats.xgboost",
    "lightgbm.basic": "exactshap.trees.formats.lightgbm",
    "lightgbm.sklearn": "exactshap.trees.formats.lightgbm",
    "catboost.core": "exactshap.trees.formats.catboost",
    "exactshap._graphs._file": "exactshap.trees.formats.onnx",
    "ngboost.ngboost": "exactshap.trees.formats.ngboost",
    "quantile_forest._quantile_forest": "exactshap.trees.formats.quantile_forest",
    "perpetual.booster": "exactshap.trees.formats.perpetual",
    "ydf.model.decision_forest_model.decision_forest_model": "exactshap.trees.formats.ydf",
    "imodels.tree.figs": "exactshap.trees.formats.imodels",
    "imodels.tree.hierarchical_shrinkage": "exactshap.trees.formats.imodels",
    "imodels.rule_list.greedy_rule_list": "exactshap.trees.formats.imodels",
    "imodels.rule_set.rule_fit": "exactshap.trees.formats.imodels",
    "treelite.model": "exactshap.trees.formats.treelite",
}


def convert(model: Model) -> TreeModel:
    """Return a fitted tree model of any known library as :class:`TreeModel`.

    Parameters
    ----------
    model : object
        A fitted model; a :class:`TreeModel` is returned unchanged.

    Returns
    -------
    model : TreeModel

    Raises
    ------
    UnsupportedModelError
        If the model is of another kind.
    UnsupportedStructureError
        If the trees have no exact form (text columns, custom initial models).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ensemble = convert(GradientBoostingRegressor(n_estimators=3).fit(X, y))
    >>> ensemble.trees.n_trees, ensemble.unit, ensemble.boosted, ensemble.tree_stage.tolist()
    (3, 'target', True, [0, 1, 2])
    """
    if isinstance(model, TreeModel):
        return model
    for cls in type(model).__mro__:
        if cls.__module__ in _CONVERTERS:
            return importlib.import_module(_CONVERTERS[cls.__module__]).convert(model)
    raise UnsupportedModelError(
        f"No tree converter for `{type(model).__module__}.{type(model).__qualname__}`",
        "Known: scikit-learn, XGBoost, LightGBM, CatBoost and treelite tree models",
        _route(model),
    )


def _route(model: Model) -> str:
    """Return what to pass instead of a model without trees."""
    if type(model).__name__ == "Pipeline":
        last = model[-1]
        if not any(cls.__module__ in _CONVERTERS for cls in type(last).__mro__):
            return f"Its last step is {type(last).__name__}, which has no trees"
        return "Pass its last step, and rows that went through the others: model[-1] and model[:-1].transform(X)"
    if hasattr(model, "best_estimator_"):
        return "Pass the model that the search has fitted: model.best_estimator_"
    if hasattr(model, "columns") or hasattr(model, "shape"):
        return "Pass the model first, then the rows"
    return "Pass a fitted model of one of these, or a file through exactshap.trees.load"


def flatten(model: Model, output: Any = "auto") -> FlatTrees:
    """Return the flat trees of a fitted model (the positive class of a binary probability forest).

    ``output`` is one of several by number or name; "auto" keeps all of them.
    """
    return convert(model).pick(output).trees

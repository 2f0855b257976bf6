"""XGBoost's boosters and estimators in margin space: DART, random forests, categorical splits, missing values, vector leaves.

Estimators stop at their best iteration as their own ``predict`` does; a ``Booster`` uses all rounds, as its ``predict`` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap.readers import OwnPrediction, Request
from exactshap.readers.trees._own_margin import own_margin
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.readers.trees._xgboost_call import dense_margin
from exactshap.trees import TreeModel, convert

__all__ = ["prediction", "read"]


def read(model: Any, request: Request) -> TreeReader:
    """Read f(x) = base margin + sum of trees, in the space of the objective's link."""
    ensemble = convert(model)
    if hasattr(model, "get_booster"):
        return TreeReader(model, request, ensemble, own_margin(model, ensemble, "predict", _of_estimator, _few_of_estimator))
    return TreeReader(model, request, ensemble, own_margin(model, ensemble, "inplace_predict", _of_booster, _few_of_booster))


def prediction(model: Any, ensemble: TreeModel) -> OwnPrediction:
    """Return what XGBoost predicts on the scale of y, of few rows by its margin: one model speaks for others of its objective."""
    if hasattr(model, "get_booster"):
        return own_margin(model, ensemble, "predict", _response_of_estimator, _few_of_estimator, kind=ensemble.objective)
    return own_margin(model, ensemble, "inplace_predict", _response_of_booster, _few_of_booster, kind=ensemble.objective)


def _response_of_estimator(model: Any, rows: Any) -> np.ndarray:
    return model.predict(rows, validate_features=False)


def _response_of_booster(model: Any, rows: Any) -> np.ndarray:
    return model.inplace_predict(rows, validate_features=False)


def _of_estimator(model: Any, rows: Any) -> np.ndarray:
    return model.predict(rows, output_margin=True, validate_features=False)


def _few_of_estimator(model: Any, rows: np.ndarray) -> np.ndarray | None:
    booster = model.get_booster()
    best = booster.attr("best_iteration")  # asked each time, as ``predict`` does: it decides which trees there are
    return dense_margin(booster, rows, 0 if best is None else int(best) + 1, model.missing)


def _of_booster(model: Any, rows: Any) -> np.ndarray:
    return model.inplace_predict(rows, predict_type="margin", validate_features=False)


def _few_of_booster(model: Any, rows: np.ndarray) -> np.ndarray | None:
    return dense_margin(model, rows, 0, np.nan)

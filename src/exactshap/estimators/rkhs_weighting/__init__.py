"""RKHS weightings of random subsets of columns, as scikit-learn estimators."""

from __future__ import annotations

from exactshap.estimators.rkhs_weighting._classifier import RKHSWeightingClassifier
from exactshap.estimators.rkhs_weighting._cross_validation import RKHSWeightingCV
from exactshap.estimators.rkhs_weighting._regressor import RKHSWeightingRegressor
from exactshap.estimators.rkhs_weighting._subsets import connected_subsets, grid_edges

__all__ = [
    "RKHSWeightingCV",
    "RKHSWeightingClassifier",
    "RKHSWeightingRegressor",
    "connected_subsets",
    "grid_edges",
]

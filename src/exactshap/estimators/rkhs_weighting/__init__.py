"""RKHS weightings of random subsets of columns, as scikit-learn estimators."""

from __future__ import annotations

from exactshap.estimators.rkhs_weighting._cross_validation import RKHSWeightingCV
from exactshap.estimators.rkhs_weighting._regressor import RKHSWeightingRegressor

__all__ = [
    "RKHSWeightingCV",
    "RKHSWeightingRegressor",
]

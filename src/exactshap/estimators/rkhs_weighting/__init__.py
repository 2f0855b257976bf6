"""RKHS weightings of random subsets of columns, as scikit-learn estimators."""

from __future__ import annotations

from exactshap.estimators.rkhs_weighting._classifier import RKHSWeightingClassifier
from exactshap.estimators.rkhs_weighting._cross_validation import RKHSWeightingCV
from exactshap.estimators.rkhs_weighting._instantiation import Instantiation, MonteCarlo
from exactshap.estimators.rkhs_weighting._instantiations import ExponentialSign, PolynomialSign, UniformStump
from exactshap.estimators.rkhs_weighting._regressor import RKHSWeightingRegressor
from exactshap.estimators.rkhs_weighting._subsets import connected_subsets, grid_edges

__all__ = [
    "ExponentialSign",
    "Instantiation",
    "MonteCarlo",
    "PolynomialSign",
    "RKHSWeightingCV",
    "RKHSWeightingClassifier",
    "RKHSWeightingRegressor",
    "UniformStump",
    "connected_subsets",
    "grid_edges",
]

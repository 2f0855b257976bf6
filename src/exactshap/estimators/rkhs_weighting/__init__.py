"""Fit RKHS weightings of random subsets of columns, as scikit-learn estimators."""

from __future__ import annotations

from exactshap.estimators.rkhs_weighting._classifier import RKHSWeightingClassifier as RKHSWeightingClassifier
from exactshap.estimators.rkhs_weighting._cross_validation import RKHSWeightingCV as RKHSWeightingCV
from exactshap.estimators.rkhs_weighting._instantiations import PolynomialSign as PolynomialSign
from exactshap.estimators.rkhs_weighting._instantiations import UniformStump as UniformStump
from exactshap.estimators.rkhs_weighting._interface import Instantiation as Instantiation
from exactshap.estimators.rkhs_weighting._interface import MonteCarlo as MonteCarlo
from exactshap.estimators.rkhs_weighting._regressor import RKHSWeightingRegressor as RKHSWeightingRegressor
from exactshap.estimators.rkhs_weighting._subsets import connected_subsets as connected_subsets

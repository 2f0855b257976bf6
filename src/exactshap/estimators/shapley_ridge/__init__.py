"""Fit kernel ridge regression and classification with a penalty on Shapley values."""

from __future__ import annotations

from exactshap.estimators.shapley_ridge._regressor import ShapleyKernelClassifier as ShapleyKernelClassifier
from exactshap.estimators.shapley_ridge._regressor import ShapleyKernelRidge as ShapleyKernelRidge

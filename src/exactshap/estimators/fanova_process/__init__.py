"""Gaussian processes that are sums of independent functions of few columns, with Shapley values of those functions."""

from __future__ import annotations

from exactshap.estimators.fanova_process._regressor import FanovaGaussianProcess
from exactshap.estimators.fanova_process._results import FanovaEffects, FanovaValues

__all__ = ["FanovaEffects", "FanovaGaussianProcess", "FanovaValues"]

"""Provide estimators with scikit-learn's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use

__all__ = [
    "FanovaEffects",
    "FanovaGaussianProcess",
    "FanovaValues",
    "HSICSelector",
    "Instantiation",
    "MonteCarlo",
    "PolynomialSign",
    "RKHSWeightingCV",
    "RKHSWeightingClassifier",
    "RKHSWeightingRegressor",
    "ShadowSelector",
    "ShapleyKernelClassifier",
    "ShapleyKernelRidge",
    "UniformStump",
    "connected_subsets",
    "grid_edges",
]

if TYPE_CHECKING:
    from exactshap.estimators.fanova_process import FanovaEffects, FanovaGaussianProcess, FanovaValues
    from exactshap.estimators.rkhs_weighting import (
        Instantiation,
        MonteCarlo,
        PolynomialSign,
        RKHSWeightingClassifier,
        RKHSWeightingCV,
        RKHSWeightingRegressor,
        UniformStump,
        connected_subsets,
        grid_edges,
    )
    from exactshap.estimators.selectors import HSICSelector, ShadowSelector
    from exactshap.estimators.shapley_ridge import ShapleyKernelClassifier, ShapleyKernelRidge

# Imported on first use, as they load scikit-learn
__getattr__ = on_first_use(
    __name__,
    {
        "fanova_process": "FanovaEffects FanovaGaussianProcess FanovaValues",
        "rkhs_weighting": "Instantiation MonteCarlo PolynomialSign RKHSWeightingCV RKHSWeightingClassifier "
        "RKHSWeightingRegressor UniformStump connected_subsets grid_edges",
        "selectors": "HSICSelector ShadowSelector",
        "shapley_ridge": "ShapleyKernelClassifier ShapleyKernelRidge",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Estimators that keep scikit-learn's contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "ExponentialSign": "exactshap.estimators.rkhs_weighting._instantiations",
    "FanovaEffects": "exactshap.estimators.fanova_process",
    "FanovaGaussianProcess": "exactshap.estimators.fanova_process",
    "FanovaValues": "exactshap.estimators.fanova_process",
    "HSICSelector": "exactshap.estimators.hsic_selector",
    "Instantiation": "exactshap.estimators.rkhs_weighting._instantiation",
    "MonteCarlo": "exactshap.estimators.rkhs_weighting._instantiation",
    "PolynomialSign": "exactshap.estimators.rkhs_weighting._instantiations",
    "RKHSWeightingCV": "exactshap.estimators.rkhs_weighting._cross_validation",
    "RKHSWeightingClassifier": "exactshap.estimators.rkhs_weighting._classifier",
    "RKHSWeightingRegressor": "exactshap.estimators.rkhs_weighting._regressor",
    "ShadowSelector": "exactshap.estimators.shadow_selector",
    "ShapleyKernelClassifier": "exactshap.estimators.shapley_ridge._classifier",
    "ShapleyKernelRidge": "exactshap.estimators.shapley_ridge._regressor",
    "UniformStump": "exactshap.estimators.rkhs_weighting._instantiations",
    "connected_subsets": "exactshap.estimators.rkhs_weighting._subsets",
    "grid_edges": "exactshap.estimators.rkhs_weighting._subsets",
}

__all__ = [
    "ExponentialSign",
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
    from exactshap.estimators.hsic_selector import HSICSelector
    from exactshap.estimators.rkhs_weighting import (
        ExponentialSign,
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
    from exactshap.estimators.shadow_selector import ShadowSelector
    from exactshap.estimators.shapley_ridge import ShapleyKernelClassifier, ShapleyKernelRidge


def __getattr__(name: str) -> Any:
    """Import an estimator on first use: scikit-learn is not needed before."""
    import importlib

    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'exactshap.estimators' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""Provide estimators with scikit-learn's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use

__all__ = [
    "FanovaGaussianProcess",
    "Instantiation",
    "MonteCarlo",
    "PolynomialSign",
    "RKHSWeightingCV",
    "RKHSWeightingClassifier",
    "ShadowSelector",
    "ShapleyKernelClassifier",
    "UniformStump",
    "connected_subsets",
]

if TYPE_CHECKING:
    from exactshap.estimators.fanova_process import FanovaGaussianProcess
    from exactshap.estimators.rkhs_weighting import (
        Instantiation,
        MonteCarlo,
        PolynomialSign,
        RKHSWeightingClassifier,
        RKHSWeightingCV,
        UniformStump,
        connected_subsets,
    )
    from exactshap.estimators.rkhs_weighting import RKHSWeightingRegressor as RKHSWeightingRegressor
    from exactshap.estimators.selectors import HSICSelector as HSICSelector
    from exactshap.estimators.selectors import ShadowSelector
    from exactshap.estimators.shapley_ridge import ShapleyKernelClassifier
    from exactshap.estimators.shapley_ridge import ShapleyKernelRidge as ShapleyKernelRidge

# Imported on first use, as they load scikit-learn; some are offered by the package itself
_NAMES = {
    "fanova_process": "FanovaGaussianProcess",
    "rkhs_weighting": "Instantiation MonteCarlo PolynomialSign RKHSWeightingCV RKHSWeightingClassifier "
    "RKHSWeightingRegressor UniformStump connected_subsets",
    "selectors": "HSICSelector ShadowSelector",
    "shapley_ridge": "ShapleyKernelClassifier ShapleyKernelRidge",
}
__getattr__ = on_first_use(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(" ".join(_NAMES.values()).split())

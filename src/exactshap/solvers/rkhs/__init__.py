"""Functions in the span of kernels: embeddings, covariances of Gaussian-process values, norms and functionals of games."""

from __future__ import annotations

from exactshap.solvers.rkhs._embedding import (
    FeatureRidge,
    check_eta,
    choose_eta,
    embedding_weights,
    pivoted_rows,
    ridge_inverse,
    subset_product,
    whitener,
)
from exactshap.solvers.rkhs._functionals import coalition_weights, player_functionals
from exactshap.solvers.rkhs._gp_covariance import (
    BLOCK_VALUES,
    Uncertainty,
    covariance_seconds,
    interaction_variance,
    shapley_covariance,
)
from exactshap.solvers.rkhs._gp_factors import KernelFactors, MonomialFactors
from exactshap.solvers.rkhs._stability import Stability, conditional_stability, functional_distance, machine_stability

__all__ = [
    "BLOCK_VALUES",
    "FeatureRidge",
    "KernelFactors",
    "MonomialFactors",
    "Stability",
    "Uncertainty",
    "check_eta",
    "choose_eta",
    "coalition_weights",
    "conditional_stability",
    "covariance_seconds",
    "embedding_weights",
    "functional_distance",
    "interaction_variance",
    "machine_stability",
    "pivoted_rows",
    "player_functionals",
    "ridge_inverse",
    "shapley_covariance",
    "subset_product",
    "whitener",
]

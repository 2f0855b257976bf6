"""Solve for functions in the span of kernels: embeddings, covariances of Gaussian-process values, norms, functionals."""

from __future__ import annotations

from exactshap.solvers.rkhs._embedding import FeatureRidge as FeatureRidge
from exactshap.solvers.rkhs._embedding import check_eta as check_eta
from exactshap.solvers.rkhs._embedding import choose_eta as choose_eta
from exactshap.solvers.rkhs._embedding import embedding_weights as embedding_weights
from exactshap.solvers.rkhs._embedding import median_gaussian as median_gaussian
from exactshap.solvers.rkhs._embedding import pivoted_rows as pivoted_rows
from exactshap.solvers.rkhs._embedding import ridge_inverse as ridge_inverse
from exactshap.solvers.rkhs._embedding import subset_product as subset_product
from exactshap.solvers.rkhs._embedding import whitener as whitener
from exactshap.solvers.rkhs._functionals import player_functionals as player_functionals
from exactshap.solvers.rkhs._gp_covariance import BLOCK_VALUES as BLOCK_VALUES
from exactshap.solvers.rkhs._gp_covariance import KernelFactors as KernelFactors
from exactshap.solvers.rkhs._gp_covariance import MonomialFactors as MonomialFactors
from exactshap.solvers.rkhs._gp_covariance import Uncertainty as Uncertainty
from exactshap.solvers.rkhs._gp_covariance import component_seconds as component_seconds
from exactshap.solvers.rkhs._gp_covariance import covariance_seconds as covariance_seconds
from exactshap.solvers.rkhs._gp_covariance import interaction_variance as interaction_variance
from exactshap.solvers.rkhs._gp_covariance import shapley_covariance as shapley_covariance
from exactshap.solvers.rkhs._stability import Stability as Stability
from exactshap.solvers.rkhs._stability import conditional_stability as conditional_stability
from exactshap.solvers.rkhs._stability import functional_distance as functional_distance
from exactshap.solvers.rkhs._stability import machine_stability as machine_stability

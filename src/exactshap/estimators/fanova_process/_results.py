"""What a process knows of its components' Shapley values and effects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["FanovaEffects", "FanovaValues"]


@dataclass(frozen=True, eq=False)
class FanovaValues:
    """Shapley values of the functional components, as a distribution.

    Attributes
    ----------
    values : array of shape (n_rows, n_features)
        Posterior means, in units of the target.
    covariance : array of shape (n_rows, n_features, n_features)
        Exact posterior covariance, in squared units.
    baseline : float
        Posterior mean of the constant component; 0 where it is shared ("normalized").
    residual : array of shape (n_rows,)
        Posterior mean of f(x) - baseline - sum of values.
    covariance_residual : array of shape (n_rows,)
        Posterior variance of f(x) - f_empty (of f(x)), computed on its own, less the sum of the covariance.
    """

    values: np.ndarray
    covariance: np.ndarray
    baseline: float
    residual: np.ndarray
    covariance_residual: np.ndarray

    @property
    def std(self) -> np.ndarray:
        """Standard deviations, (n_rows, n_features)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2), 0.0))


@dataclass(frozen=True, eq=False)
class FanovaEffects:
    """Shapley effects: the variance of the function over its inputs, split over the columns.

    Attributes
    ----------
    of_mean, total_of_mean : array of shape (n_features,), float
        Of the posterior mean, and its variance over the product of the columns' distributions, computed on its own.
    expected, expected_total : array of shape (n_features,), float
        Posterior expectation of the effects and of the variance: not smaller, as what is not known varies as well.
    """

    of_mean: np.ndarray
    total_of_mean: float
    expected: np.ndarray
    expected_total: float

"""How fast this machine works out the covariances of a Gaussian process, measured on a small one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exactshap._runtime.calibration import seconds_per_unit
from exactshap.semivalues import find
from exactshap.solvers.rkhs._gp_covariance import interaction_variance, shapley_covariance
from exactshap.solvers.rkhs._gp_factors import KernelFactors

__all__ = ["covariance_seconds"]


def covariance_seconds(order: int) -> float:
    """Return the seconds of one multiplication of the covariances of values of this order, on this machine."""
    n_rows, n_background, n_train, n_players = 4, 8, 200, 8  # one row alone would be half steps of Python

    def sample() -> tuple[float, Callable[[], object]]:
        rng, shapley = np.random.default_rng(0), find("shapley" if order == 1 else "k-sii")
        shapes = ((n_rows, n_players), (n_rows, n_players, n_background), (n_background, n_players, n_background))
        shapes += ((n_rows, n_players, n_train), (n_background, n_players, n_train))  # type: ignore[assignment]
        factors = [KernelFactors(1.0, *(rng.random(shape) for shape in shapes))]
        weights, cholesky = np.full(n_background, 1.0 / n_background), np.eye(n_train)
        pairs = float(n_background * n_players // 2 * n_players)
        work = pairs**2 / 2.0 + n_train * pairs + n_train**2 * n_players
        if order == 1:
            return n_rows * work, lambda: shapley_covariance(factors, cholesky, weights, semivalue=shapley, order=1)
        work += pairs**2 / 2.0 + n_train * pairs * n_players + n_train**2 * n_players**2 / 2.0

        def run() -> None:
            shapley_covariance(factors, cholesky, weights, semivalue=shapley, order=2)
            interaction_variance(factors, cholesky, weights, semivalue=shapley)

        return n_rows * work, run

    return seconds_per_unit(f"posterior covariance, order {order}", sample)

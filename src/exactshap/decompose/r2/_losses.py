"""Losses of a margin: what R2 becomes where the error is not squared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

__all__ = ["LOSSES", "Loss"]

Pointwise = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Loss:
    r"""One loss l(y, m) of a target and a margin, with what its skill score and its Chebyshev bound need.

    Attributes
    ----------
    statistic : str
        Name of :math:`1 - (L - L_{sat}) / (L_0 - L_{sat})`.
    value : callable
        l(y, m), of broadcast arrays.
    response : callable
        The prediction that a margin stands for.
    best : callable
        Loss (n_rows,) of the best constant prediction, whose response is the mean of y.
    saturated : callable
        Loss of a perfect prediction.
    third : callable
        ``third(y, low, high)``, a bound on the magnitude of the third derivative of l in the margin within [low, high].
    valid : callable
        Whether each y is one that the loss knows.
    needs : str
        What y must be, for messages.
    """

    statistic: str
    value: Pointwise
    response: Callable[[np.ndarray], np.ndarray]
    best: Pointwise
    saturated: Callable[[np.ndarray], np.ndarray]
    third: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    valid: Callable[[np.ndarray], np.ndarray]
    needs: str


def _brier_third() -> float:
    r"""Return the largest \|d^3 (y - s)^2 / dm^3\| for y in {0, 1} and s the logistic function of m: a polynomial in s, at its extrema.

    For y = 0 it is :math:`8 s^2 - 38 s^3 + 54 s^4 - 24 s^5` by s' = s (1 - s); y = 1 is its mirror image.
    """
    polynomial = np.polynomial.Polynomial([0.0, 0.0, 8.0, -38.0, 54.0, -24.0])
    extrema = polynomial.deriv().roots()
    inside = np.real(extrema[(np.abs(np.imag(extrema)) < 1e-9) & (np.real(extrema) >= 0) & (np.real(extrema) <= 1)])
    return float(np.abs(polynomial(inside)).max()) * (1.0 + 1e-9)


_BRIER_THIRD = _brier_third()
_LOGISTIC_THIRD = 1.0 / (6.0 * np.sqrt(3.0))  # of s (1 - s), whose derivative is largest at s = 1/2 +- 1 / sqrt(12)


def _log_of_mean(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return -xlogy(y, mean) - xlogy(1.0 - y, 1.0 - mean)


LOSSES = {
    "log_loss": Loss(
        "McFadden R2",
        lambda y, m: np.logaddexp(0.0, m) - y * m,
        expit,
        _log_of_mean,
        lambda y: np.zeros_like(y),
        lambda y, low, high: np.full_like(low, _LOGISTIC_THIRD),
        lambda y: (y == 0) | (y == 1),
        "0 or 1",
    ),
    "brier": Loss(
        "Brier skill score",
        lambda y, m: (y - expit(m)) ** 2,
        expit,
        lambda y, mean: (y - mean) ** 2,
        lambda y: np.zeros_like(y),
        lambda y, low, high: np.full_like(low, _BRIER_THIRD),
        lambda y: (y == 0) | (y == 1),
        "0 or 1",
    ),
    "poisson": Loss(
        "Poisson D2",
        lambda y, m: np.exp(m) - y * m,
        np.exp,
        lambda y, mean: mean - xlogy(y, mean),
        lambda y: y - xlogy(y, y),
        lambda y, low, high: np.exp(high),
        lambda y: y >= 0,
        "0 or more",
    ),
    "gamma": Loss(
        "gamma D2",
        lambda y, m: y * np.exp(-m) + m,
        np.exp,
        lambda y, mean: y / mean + np.log(mean),
        lambda y: 1.0 + np.log(y),
        lambda y, low, high: y * np.exp(-low),
        lambda y: y > 0,
        "positive",
    ),
}

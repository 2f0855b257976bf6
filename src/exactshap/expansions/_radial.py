r"""Expand radial kernels as mixtures of Gaussians, with a uniform bound that is checked when they are made.

By Schoenberg's theorem every isotropic kernel that is valid in all dimensions is a mixture of Gaussians of the distance r:

.. math:: k_{\mathrm{Matern}} = \frac{1}{\Gamma(\nu)} \int e^{\nu u - e^u} e^{-(\nu / 2) e^{-u} r^2}\, du, \qquad
    k_{\mathrm{RQ}} = \frac{1}{\Gamma(\alpha)} \int e^{\alpha u - e^u} e^{-e^u r^2 / (2 \alpha)}\, du

The trapezoidal rule in u converges exponentially. In the algebraic tail weights fall as :math:`e^{a u}` and need
fewer digits: the step grows there with the distance from the peak, which halves the number of terms.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from exactshap.errors import BudgetError

# Natural logarithms of the error of the rule with a growing step (3e-14), with an even one (2e-15), and of what both are held against (2e-18)
_GRADED_DIGITS, _EVEN_DIGITS, _REFERENCE_DIGITS = 31.0, 34.0, 41.0
_DROPPED = 1e-14  # mass left out at either end
# Growth of the step with the shape, and the largest shape for it
_GRADING, _LARGEST_GROWTH = 0.014, 8.0
# Largest shape with a tail long enough for a growing step
_LARGEST_GRADED = 10.0
_MOST_TERMS = 2000  # terms of one mixture: a shape of 0.035
_DEGREE = 22  # points of interpolation on a panel
# Parameter of the Bernstein ellipse that reaches pi / 2 from the middle of a panel of length 1
_ELLIPSE = math.pi + math.sqrt(1.0 + math.pi**2)
_EPS = float(np.finfo(float).eps)

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    r"""Approximate a radial kernel by a sum of Gaussians.

    .. math:: \Bigl| k(r) - \sum_l w_l\, e^{-\rho_l r^2} \Bigr| \le \mathrm{error} \quad \text{for all } r \ge 0

    Attributes
    ----------
    weights, rates : arrays of shape (n_terms,)
        :math:`w_l`, positive with sum 1, and :math:`\rho_l`, positive.
    error : float
        The bound, including the rounding of weights and rates.
    """

    weights: np.ndarray
    rates: np.ndarray
    error: float

    def __call__(self, squared_distance: np.ndarray) -> np.ndarray:
        """Return the sum, elementwise."""
        return np.asarray(np.exp(-np.multiply.outer(np.asarray(squared_distance, float), self.rates)) @ self.weights)


@functools.lru_cache(maxsize=64)
def matern(nu: float) -> GaussianMixture:
    r"""Return the Matern kernel of smoothness nu as a mixture, for length scale 1.

    .. math:: k(r) = \frac{2^{1 - \nu}}{\Gamma(\nu)} (\sqrt{2 \nu}\, r)^\nu K_\nu(\sqrt{2 \nu}\, r)

    >>> mixture = matern(0.5)  # exp(-r)
    >>> bool(abs(mixture(4.0) - np.exp(-2.0)) < mixture.error), mixture.error < 1e-13
    (True, True)
    """
    u, weights = _nodes(nu, "nu")
    fine_u, fine_weights = _trapezoid(nu, _step(nu, _REFERENCE_DIGITS), 0.0, 1e-19)
    reference = GaussianMixture(fine_weights, _matern_rates(nu, fine_u), 0.0)
    return _checked(weights, _matern_rates(nu, u), reference)


def _matern_rates(nu: float, u: np.ndarray) -> np.ndarray:
    """Return nu / 2 e^-u, at most 1e292 so that its product with a squared distance is finite."""
    return np.asarray(nu / 2.0 * np.exp(np.minimum(-u, math.log(1e292))))


@functools.lru_cache(maxsize=64)
def rational_quadratic(alpha: float) -> GaussianMixture:
    r"""Return the rational quadratic kernel as a mixture, for length scale 1.

    .. math:: k(r) = \Bigl(1 + \frac{r^2}{2 \alpha}\Bigr)^{-\alpha}

    >>> mixture = rational_quadratic(1.0)
    >>> bool(abs(mixture(6.0) - 0.25) < mixture.error), mixture.error < 1e-13
    (True, True)
    """
    u, weights = _nodes(alpha, "alpha")
    return _checked(weights, np.exp(u) / (2.0 * alpha), lambda s: np.exp(-alpha * np.log1p(s / (2.0 * alpha))))


def _nodes(shape: float, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes u and weights of the graded rule."""
    needed = 25.0 + 60.0 / shape
    if needed > _MOST_TERMS:
        number = f"{needed:,.0f}" if needed < 1e9 else f"{needed:.1e}"
        got = f"Got {name}={shape:g}, which takes some {number}; the limit is {_MOST_TERMS:,}"
        raise BudgetError(
            "The mixture of Gaussians has too many terms", got, f"Use a larger {name}, or Explainer(model.predict, background)"
        )
    if shape > _LARGEST_GRADED:
        return _trapezoid(shape, _step(shape, _EVEN_DIGITS), 0.0, _DROPPED)
    return _trapezoid(shape, _step(shape, _GRADED_DIGITS), _GRADING * min(shape, _LARGEST_GROWTH) ** 2, _DROPPED)


def _step(shape: float, digits: float) -> float:
    r"""Return the step h of the trapezoidal rule with a relative error below exp(-digits), whatever r.

    On the line Im u = theta < pi / 2 the integrand is at most that of cos(theta) e^u with the integral Gamma(a) cos(theta)^-a, so that
    the Fourier transform at :math:`\omega = 2 \pi / h` is at most :math:`\Gamma(a) \cos(\theta)^{-a} e^{-\omega \theta}`; the best
    theta has tan(theta) = omega / a. The nearest images, one on either side, dominate.
    """

    def image(omega: float) -> float:
        theta = math.atan2(omega, shape)
        return math.log(2.0) - shape * math.log(math.cos(theta)) - omega * theta

    # Halved in the logarithm of omega: after 60 steps of a factor 1e6 only rounding is left
    low, high = 1.0, 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if image(middle) < -digits else (middle, high)
    return 2.0 * math.pi / high


def _trapezoid(shape: float, h: float, grading: float, dropped: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Return nodes and weights of the trapezoidal rule for the density of u, in x with a step h.

    .. math:: u = x - \frac{g}{6} q(x)^3, \qquad q(x) = \log(1 + e^{x_0 - x}), \qquad x_0 = \log \max(a, 1)
    """
    start = max(math.log(shape), 0.0)
    reach = 60.0 / min(shape, 1.0) + 30.0 / math.sqrt(shape)
    x = start + h * np.arange(math.floor(-reach / h), math.ceil(8.0 / h))
    # slope = -dq / dx; exp(700) is still a float
    q, slope = np.logaddexp(0.0, start - x), 1.0 / (1.0 + np.exp(np.minimum(x - start, 700.0)))
    u = x - grading / 6.0 * q**3
    # The density e^(a u - e^u) up to a factor, without cancellation of large numbers, times du / dx
    v = u - math.log(shape)
    weights = np.exp(shape * (v - np.expm1(v))) * (1.0 + grading / 2.0 * q * q * slope)
    weights /= weights.sum()
    kept = (np.cumsum(weights) > dropped) & (np.cumsum(weights[::-1])[::-1] > dropped)
    u, weights = u[kept], weights[kept]
    return u, weights / weights.sum()


def _checked(weights: np.ndarray, rates: np.ndarray, reference: Function) -> GaussianMixture:
    r"""Return the mixture with its bound.

    In v = log(r^2) both it and the kernel are at most 1 in magnitude where \|Im v\| <= pi / 2, as mixtures of exp(-rho e^v) are. Their
    difference is interpolated at the Chebyshev points of panels of length 1, off by at most 8 R^-n / (R - 1) for the ellipse R
    that fits into that strip (Trefethen, Approximation Theory, Theorem 8.2); between the points it is at most the Lebesgue constant
    times its largest value at them. Left and right of the panels both functions are 1 or 0 up to rounding.
    """
    mixture = GaussianMixture(weights, rates, 0.0)
    first = _first(lambda s: max(1.0 - float(reference(np.array(s))), float(-np.expm1(-rates * s) @ weights)), -1)
    last = _first(lambda s: max(float(reference(np.array(s))), float(mixture(np.array(s)))), 1)
    points = 0.5 + 0.5 * np.cos(np.pi * np.arange(_DEGREE + 1) / _DEGREE)
    largest = 0.0
    for start in range(first, last, 16):
        s = np.exp(np.arange(start, min(start + 16, last))[:, None] + points)
        largest = max(largest, float(np.abs(mixture(s) - reference(s)).max()))
    lebesgue = 2.0 / math.pi * math.log(_DEGREE + 1.0) + 1.0
    between = 8.0 * _ELLIPSE**-_DEGREE / (_ELLIPSE - 1.0)
    return GaussianMixture(weights, rates, lebesgue * largest + between + 8.0 * _EPS)


def _first(difference: Callable[[float], float], step: int) -> int:
    """Return the first of v = 0, step, 2 step, ... where the difference at e^v is below two rounding units."""
    v = 0
    while difference(math.exp(v)) > 2.0 * _EPS and abs(v) < 700:
        v += step
    return v

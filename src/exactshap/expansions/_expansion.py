"""Expand inverse links of additive scores as sums of exponentials with proven uniform bounds."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from exactshap.errors import BudgetError, UnknownNameError, did_you_mean

# The truncation is as small as the rounding of weights, exp(-35) = 6.3e-16; two more would take a tenth more terms.
_DIGITS = 35.0
# Phi(-8.5) = 9.5e-18, and exp(-8.6^2 / 2) = 8.7e-17.
_NORMAL_TAIL, _NORMAL_WIDTH = 8.5, 8.6
# Terms of one expansion: only scores beyond 2,000 need more, where every probability is 0 or 1 in float64
_MOST_TERMS = 4000


@dataclass(frozen=True, eq=False)
class Expansion:
    r"""Approximate a function of one number by a sum of exponentials.

    .. math:: \Bigl| g(t) - g_0 - \mathrm{Re} \sum_l c_l\, e^{r_l t} \Bigr| \le \mathrm{error}
        \quad \text{for } |t| \le \mathrm{limit}

    Attributes
    ----------
    function : callable
        g itself, elementwise.
    constant : float
        :math:`g_0`.
    coefficients, rates : arrays of shape (n_terms,)
        :math:`c_l` and :math:`r_l`, complex or real.
    limit : float
        The bound holds for :math:`|t|` up to this number.
    error : float
        The bound: truncation, images, and the rounding of coefficients and rates; it does not include the rounding of the sum itself.
    """

    function: Callable[[np.ndarray], np.ndarray]
    constant: float
    coefficients: np.ndarray
    rates: np.ndarray
    limit: float
    error: float

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Return the sum, elementwise."""
        waves = np.exp(np.multiply.outer(np.asarray(t, float), self.rates))
        return np.asarray(self.constant + np.real(waves @ self.coefficients))


def links() -> tuple[str, ...]:
    """Return the names of the inverse links that :func:`expand` knows.

    >>> links()
    ('exponential', 'logistic', 'normal', 'complementary log-log', 'log-log')
    """
    return ("exponential", *_LINKS)


def expand(name: str, limit: float) -> Expansion:
    r"""Return an inverse link's expansion for magnitudes up to ``limit``.

    The links are ``1 / (1 + exp(-t))``, ``exp(t)``, the normal distribution function, ``1 - exp(-exp(t))`` and ``exp(-exp(-t))``. Limits
    are rounded up to one of a few steps, so that similar ones share an expansion.

    Fourier integrals are approximated by the midpoint rule with step h,

    .. math:: \sigma(t) - \tfrac12 = \int_0^\infty \frac{\sin \omega t}{\sinh \pi \omega}\, d\omega, \qquad
        \Phi(t) - \tfrac12 = \frac1\pi \int_0^\infty \frac{\sin \omega t}{\omega} e^{-\omega^2 / 2}\, d\omega , \qquad
        e^{-e^{-t}} - \tfrac12 = \frac1\pi \mathrm{Re} \int_0^\infty \Gamma(i \omega)\, e^{i \omega t}\, d\omega .

    By Poisson's summation formula the sum is the function plus its images at distances of multiples of 2 pi / h with alternating
    signs. The nearest one dominates: an error of exp(limit - 2 pi / h), or of the normal tail at 2 pi / h - limit.

    >>> expansion = expand("logistic", 10.0)
    >>> bool(abs(expansion(3.0) - 1.0 / (1.0 + np.exp(-3.0))) < 1e-15)
    True
    """
    if name not in links():
        raise UnknownNameError(f"Unknown link {name!r}", do=did_you_mean(name, links()))
    return _EXPONENTIAL if name == "exponential" else _LINKS[name](_step(limit))


def _step(limit: float) -> float:
    """Return the next of 8, 12, 16, 24, 32, ... An expansion has at most half too many terms."""
    power = 2.0 ** max(3, math.floor(math.log2(max(limit, 1.0))))
    return next(step for step in (power, 1.5 * power, 2.0 * power) if step >= min(limit, 2.0 * power))


@functools.lru_cache(maxsize=32)
def _logistic(limit: float) -> Expansion:
    from scipy.special import expit

    h = _short(2.0 * math.pi / (limit + _DIGITS))
    # the tail: sum of 2 h exp(-pi omega) / (1 - exp(-2 pi omega)) beyond omega = _DIGITS / pi
    omega = _midpoints(h, _DIGITS / math.pi)
    images = 2.0 * math.exp(-_DIGITS) / -math.expm1(-2.0 * math.pi / h)
    tail = 2.0 / math.pi * math.exp(-_DIGITS) * 1.01
    # sinh amplifies the rounding of its argument x by x coth(x) <= 1 + x
    return _bounded(expit, h / np.sinh(math.pi * omega), omega, 2.0 + math.pi * omega, limit, images + tail)


@functools.lru_cache(maxsize=32)
def _normal(limit: float) -> Expansion:
    from scipy.special import ndtr

    h = _short(2.0 * math.pi / (limit + _NORMAL_TAIL))
    omega = _midpoints(h, _NORMAL_WIDTH)
    weights = h / math.pi * np.exp(-(omega**2) / 2.0) / omega
    images = 4.0 * float(ndtr(-_NORMAL_TAIL))
    tail = math.exp(-(_NORMAL_WIDTH**2) / 2.0) / (math.pi * _NORMAL_WIDTH**2) * (1.0 + h * _NORMAL_WIDTH)
    return _bounded(ndtr, weights, omega, 2.0 + omega**2 / 2.0, limit, images + tail)


@functools.lru_cache(maxsize=32)
def _log_log(limit: float) -> Expansion:
    from scipy.special import gamma

    h = _short(2.0 * math.pi / (limit + _DIGITS))
    end = 2.0 * _DIGITS / math.pi
    omega = _midpoints(h, end)
    weights = h / math.pi * gamma(1j * omega)
    # 1 - exp(-e^(limit - period)) on one side, exp(-e^(period - limit)) on the other
    images = math.exp(-_DIGITS) / -math.expm1(-2.0 * math.pi / h)
    # |Gamma(i omega)| = sqrt(pi / (omega sinh(pi omega))) is convex: the midpoint rule is below the integral
    tail = math.sqrt(2.0 * math.pi / end) * 2.0 / math.pi**2 * math.exp(-_DIGITS) * 1.01
    # the imaginary part of log Gamma(i omega) is about omega log(omega), and rounded
    size = np.abs(weights)
    rounding = 2.0 * np.finfo(float).eps * float(size @ (2.0 + omega * (1.0 + np.log1p(omega))))
    return Expansion(_double_exponential, 0.5, weights, 1j * omega, limit, images + tail + rounding)


def _double_exponential(t: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-np.exp(-t)))


@functools.lru_cache(maxsize=32)
def _complementary_log_log(limit: float) -> Expansion:
    """Return 1 - exp(-e^t), which is 1 minus the log-log link at -t."""
    other = _log_log(limit)
    return Expansion(_complement, 0.5, -other.coefficients, -other.rates, limit, other.error)


def _complement(t: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(-np.expm1(-np.exp(t)))


def _bounded(
    function: Callable[[np.ndarray], np.ndarray],
    weights: np.ndarray,
    omega: np.ndarray,
    units: np.ndarray,
    limit: float,
    error: float,
) -> Expansion:
    """Return 1/2 + sum of weights times sines; weights have errors of 2 ``units`` of rounding, frequencies are exact."""
    rounding = 2.0 * np.finfo(float).eps * float(weights @ units)
    # Re(-i w exp(i omega t)) = w sin(omega t)
    return Expansion(function, 0.5, -1j * weights, 1j * omega, limit, error + rounding)


def _short(h: float) -> float:
    """Return a step of 40 bits, at most h: its odd multiples up to 2^13 are exact, so frequencies are not rounded."""
    mantissa, exponent = math.frexp(h)
    return math.ldexp(math.floor(math.ldexp(mantissa, 40)), exponent - 40)


def _midpoints(h: float, end: float) -> np.ndarray:
    n = math.ceil(end / h) + 1
    if n > _MOST_TERMS:
        got = f"Got {float(n):.3g} terms, more than {_MOST_TERMS:,}: scores are too far from zero"
        # The method alone is read, and ends here again
        do = "Explain the score itself, of a classifier output='auto', or call the model: "
        do += "explain(model.predict_proba, X, background, exact_owner=False)"
        raise BudgetError("The expansion is too long", got, do)
    return (np.arange(n) + 0.5) * h


_EXPONENTIAL = Expansion(np.exp, 0.0, np.ones(1), np.ones(1), math.inf, 0.0)
_LINKS: dict[str, Callable[[float], Expansion]] = {
    "logistic": _logistic,
    "normal": _normal,
    "complementary log-log": _complementary_log_log,
    "log-log": _log_log,
}

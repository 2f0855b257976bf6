"""Define losses of a margin, for skill scores that generalise R2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from exactshap.errors import InputError

Pointwise = Callable[[np.ndarray, np.ndarray], np.ndarray]
Bound = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Loss:
    r"""Define a loss l(y, m) of a target and a margin."""

    statistic: str  # name of :math:`1 - (L - L_{sat}) / (L_0 - L_{sat})`
    value: Pointwise  # l(y, m), of broadcast arrays
    response: Callable[[np.ndarray], np.ndarray]  # the prediction that a margin stands for
    best: Pointwise  # loss (n_rows,) of the best constant prediction, which is ``constant(y, weights)``
    saturated: Callable[[np.ndarray], np.ndarray]  # loss of a perfect prediction
    # ``missed(y, low, high)``, how far the parabola through the three Chebyshev points of [low, high] can be off l within
    missed: Bound
    valid: Callable[[np.ndarray], np.ndarray]  # whether each y is one that the loss knows
    needs: str  # what y must be, for messages
    # the best constant prediction for weighted rows: the mean but for quantiles
    constant: Callable[[np.ndarray, np.ndarray], float] = lambda y, weights: float(np.average(y, weights=weights))


def _brier_third() -> float:
    r"""Return the largest \|d^3 (y - s)^2 / dm^3\| for y in {0, 1} and s = expit(m), from the extrema of a polynomial in s.

    For y = 0 it is :math:`8 s^2 - 38 s^3 + 54 s^4 - 24 s^5` by s' = s (1 - s); y = 1 is its mirror image.
    """
    polynomial = np.polynomial.Polynomial([0.0, 0.0, 8.0, -38.0, 54.0, -24.0])
    extrema = polynomial.deriv().roots()
    inside = np.real(extrema[(np.abs(np.imag(extrema)) < 1e-9) & (np.real(extrema) >= 0) & (np.real(extrema) <= 1)])
    return float(np.abs(polynomial(inside)).max()) * (1.0 + 1e-9)


_BRIER_THIRD = _brier_third()
# The largest derivative of s (1 - s), where s = 1/2 +- 1 / sqrt(12).
_LOGISTIC_THIRD = 1.0 / (6.0 * np.sqrt(3.0))


def _log_of_mean(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return -xlogy(y, mean) - xlogy(1.0 - y, 1.0 - mean)


def _smooth(third: Bound) -> Bound:
    """Return the bound max |l_3| h^3 / 24 from ``third(y, low, high)``, a bound on the third derivative in the margin."""
    return lambda y, low, high: third(y, low, high) * ((high - low) / 2.0) ** 3 / 24.0


def _kinked(y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    r"""Bound the parabola's error for a function with a kink at y.

    Up to a straight line it is :math:`h\, (x - t)_+` for x in [-1, 1]. The difference to the parabola p is a parabola on both sides of t, and
    largest at -1, t, 1 or where p' = 0 (left of t) or p' = 1 (right of it). The error is 0 where the kink is outside.
    """
    half = (high - low) / 2.0
    t = np.clip((y - (high + low) / 2.0) / half, -1.0, 1.0)
    c = np.sqrt(0.75)
    left, middle, right = (np.maximum(x - t, 0.0) for x in (-c, 0.0, c))
    slope, curvature = (right - left) / (2.0 * c), (right - 2.0 * middle + left) / (2.0 * c**2)
    bent = np.where(curvature > 0.0, curvature, 1.0)
    flat, steep = np.clip(-slope / (2.0 * bent), -1.0, t), np.clip((1.0 - slope) / (2.0 * bent), t, 1.0)
    error = lambda x: np.abs(np.maximum(x - t, 0.0) - middle - slope * x - curvature * x**2)  # noqa: E731
    return half * np.max([error(x) for x in (-1.0, t, 1.0, flat, steep)], axis=0)


def _pinball(level: float) -> Loss:
    def value(y: np.ndarray, m: np.ndarray) -> np.ndarray:
        return np.maximum(level * (y - m), (level - 1.0) * (y - m))

    def quantile(y: np.ndarray, weights: np.ndarray) -> float:
        order = np.argsort(y, kind="stable")
        cumulated = np.cumsum(weights[order])
        # The weighted quantile minimises the pinball loss among constants.
        return float(y[order][np.searchsorted(cumulated, level * cumulated[-1])])

    anything = lambda y: np.ones(len(y), bool)  # noqa: E731
    name = f"pinball D2 at {level:g}"
    return Loss(name, value, lambda m: m, value, np.zeros_like, _kinked, anything, "a number", quantile)


def _tweedie(power: float) -> Loss:
    a, b = power - 1.0, 2.0 - power

    def value(y: np.ndarray, m: np.ndarray) -> np.ndarray:
        return y * np.exp(-a * m) / a + np.exp(b * m) / b

    def third(y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        # The larger of two terms, which have opposite signs.
        return np.maximum(y * a**2 * np.exp(-a * low), b**2 * np.exp(b * high))

    return Loss(
        f"Tweedie D2 of power {power:g}",
        value,
        np.exp,
        lambda y, mean: y * mean**-a / a + mean**b / b,
        lambda y: y**b * (1.0 / a + 1.0 / b),
        _smooth(third),
        lambda y: y >= 0,
        "0 or more",
    )


def loss_form(name: str, level: float | None, power: float | None) -> Loss:
    """Return a loss by name; only quantiles take ``level``, only Tweedie's deviance takes ``power``."""
    for given, word, owner in ((level, "level", "pinball"), (power, "power", "tweedie")):
        if given is not None and name != owner:
            raise InputError(f"`{word}` belongs to loss={owner!r}", f"Got {word}={given!r} with loss={name!r}")
    if name == "pinball":
        return _pinball(_between(0.0, 0.5 if level is None else level, 1.0, "level"))
    if name == "tweedie":
        return _tweedie(_between(1.0, 1.5 if power is None else power, 2.0, "power"))
    return LOSSES[name]


def _between(least: float, value: float, most: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not least < value < most:
        raise InputError(f"`{name}` must be a number in ({least:g}, {most:g})", f"Got {value!r}")
    return float(value)


LOSSES = {
    "log_loss": Loss(
        "McFadden R2",
        lambda y, m: np.logaddexp(0.0, m) - y * m,
        expit,
        _log_of_mean,
        lambda y: np.zeros_like(y),
        _smooth(lambda y, low, high: np.full_like(low, _LOGISTIC_THIRD)),
        lambda y: (y == 0) | (y == 1),
        "0 or 1",
    ),
    "brier": Loss(
        "Brier skill score",
        lambda y, m: (y - expit(m)) ** 2,
        expit,
        lambda y, mean: (y - mean) ** 2,
        lambda y: np.zeros_like(y),
        _smooth(lambda y, low, high: np.full_like(low, _BRIER_THIRD)),
        lambda y: (y == 0) | (y == 1),
        "0 or 1",
    ),
    "poisson": Loss(
        "Poisson D2",
        lambda y, m: np.exp(m) - y * m,
        np.exp,
        lambda y, mean: mean - xlogy(y, mean),
        lambda y: y - xlogy(y, y),
        _smooth(lambda y, low, high: np.exp(high)),
        lambda y: y >= 0,
        "0 or more",
    ),
    "gamma": Loss(
        "gamma D2",
        lambda y, m: y * np.exp(-m) + m,
        np.exp,
        lambda y, mean: y / mean + np.log(mean),
        lambda y: 1.0 + np.log(y),
        _smooth(lambda y, low, high: y * np.exp(-low)),
        lambda y: y > 0,
        "positive",
    ),
}

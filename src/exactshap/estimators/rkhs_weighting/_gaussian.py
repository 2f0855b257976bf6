"""Define base predictors with Gaussian parameters in closed form: rectified linear units and signs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exactshap._native import kernel
from exactshap._runtime.checks import is_number
from exactshap.errors import InputError
from exactshap.estimators.rkhs_weighting._instantiation import Instantiation, check_widths

# Below this S, 1 + erf S loses more than 5 bits to cancellation, and the scaled function is used.
SCALED_BELOW = -4.0

fill_inner = kernel("rkhs_weighting.fill_inner(X, W, out)")


class _Directions(Instantiation):
    """Share parameters w ~ N(0, sigma^2 I)."""

    sigma: float

    def sample(self, rng: np.random.Generator, size: int, n: int) -> np.ndarray:
        return rng.normal(scale=self.sigma, size=(n, size))


class SignPredictor(_Directions):
    degree = 0

    def predictor(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        return np.where(X @ W.T >= 0, 1.0, -1.0)


@dataclass(frozen=True)
class _Gaussian(_Directions):
    """Share the Gaussian kernel of width gamma, for "relu" and "sign"."""

    sigma: float = 1.0
    gamma: float | None = None
    max_theta: float = 0.5

    def __post_init__(self) -> None:
        check_widths(self.sigma, self.gamma)
        # Its fourth power divides.
        if not (is_number(self.max_theta, 1e-50) and self.max_theta < 1):
            raise InputError("`max_theta` must be in [1e-50, 1)", f"Got {self.max_theta!r}")

    def width(self, size: int) -> float:
        r"""Return gamma: as given, or calibrated so that (1 + 2 sigma^2 / gamma^2)^(-k/4) is ``max_theta``.

        .. math:: \gamma^2 = 2 \sigma^2 / (c^{-4/k} - 1)

        (Eq. 65 of the paper, with sigma^2 in the numerator: as printed it holds only for sigma = 1.)
        """
        if self.gamma is not None:
            return self.gamma
        return math.sqrt(2.0) * self.sigma / math.sqrt(self.max_theta ** (-4.0 / size) - 1.0)

    def kernel(self, U: np.ndarray, W: np.ndarray, size: int) -> np.ndarray:
        squares = (U**2).sum(axis=1)[:, None] + (W**2).sum(axis=1) - 2.0 * U @ W.T
        return np.exp(-np.maximum(squares, 0.0) / (2.0 * self.width(size) ** 2))

    def correlation(self, size: int) -> float:
        r"""Return the correlation :math:`\rho = \sigma^2 / (\sigma^2 + \gamma^2)` of u and w under :math:`K(u, w) p(u) p(w)`."""
        return self.sigma**2 / (self.sigma**2 + self.width(size) ** 2)

    def largest_tilt(self, size: int) -> float:
        r"""Return :math:`1 / \rho`.

        For real unit rows q, q' the evaluations have the inner product :math:`J(\rho\, q \cdot q')`, J a power series without
        negative coefficients on [-1, 1] (arcsine for sign, arc-cosine kernel for relu). So :math:`q \mapsto (\sqrt{J_n \rho^n}\,
        q^{\otimes n})_n` is the evaluation up to an isometry, it is holomorphic in complex q with :math:`q \cdot q = 1`, and its
        squared norm is :math:`J(\rho |q|^2)` as long as :math:`\rho |q|^2 \le 1`.
        """
        return 1.0 / self.correlation(size)

    def _standardised(self, W: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
        r"""Return S = <u', x> / (sqrt(2) zeta |x|), |x|, zeta and weights C(u), for Gaussian K. S is 0 where x = 0.

        .. math:: K(u, w)\, p(w) = C(u)\, N(w; u', \zeta^2 I), \quad u' = \frac{\sigma^2 u}{\sigma^2 + \gamma^2}, \quad
                  \frac{1}{\zeta^2} = \frac{1}{\sigma^2} + \frac{1}{\gamma^2}, \quad
                  C(u) = (1 + \sigma^2/\gamma^2)^{-k/2} e^{-|u|^2 / 2(\sigma^2 + \gamma^2)}
        """
        size, gamma = W.shape[1], self.width(W.shape[1])
        total = self.sigma**2 + gamma**2
        zeta = self.sigma * gamma / math.sqrt(total)
        weights = (1.0 + (self.sigma / gamma) ** 2) ** (-size / 2.0) * np.exp(-(W**2).sum(axis=1) / (2.0 * total))
        unit, lengths = directions(X)
        return inner_products(unit, W * (self.sigma**2 / total) / (math.sqrt(2.0) * zeta)), lengths, zeta, weights


def directions(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x / |x| (0 where x = 0) and |x|."""
    largest = np.abs(X).max(axis=1, initial=0.0)
    # Scaled, so that squares neither overflow nor vanish
    scaled = X / np.where(largest > 0, largest, 1.0)[:, None]
    lengths = np.sqrt((scaled**2).sum(axis=1))
    return scaled / np.where(lengths > 0, lengths, 1.0)[:, None], lengths * largest


def inner_products(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return X W', added up column by column. The bits of a row depend on no other row."""
    out = np.zeros((len(X), len(W)))
    fill_inner(np.ascontiguousarray(X), np.ascontiguousarray(W.T), out)
    return out


@dataclass(frozen=True)
class Relu(_Gaussian):
    r"""Provide the base predictor max(0, <w, x>) with Gaussian parameters and kernel.

    .. math:: E = C(u)\, \frac{\zeta |x|}{\sqrt{2\pi}} \bigl(e^{-S^2} + \sqrt{\pi}\, S\, (1 + \mathrm{erf}\, S)\bigr), \quad
              S = \frac{\langle u', x \rangle}{\sqrt{2}\, \zeta |x|}

    Eq. 25 of the paper, with the factor |x| that it lacks as printed.
    """

    degree = 1

    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        S, norms, zeta, weights = self._standardised(W, X)
        values = _relu_bracket(S)
        values *= weights
        values *= (norms * (zeta / math.sqrt(2.0 * math.pi)))[:, None]
        return values

    def predictor(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        return np.maximum(X @ W.T, 0.0)

    def kappa(self, size: int, radius: float) -> float:
        r"""Return :math:`\sigma r / \sqrt 2`: half of the second moment of <w, x>."""
        return self.sigma * radius / math.sqrt(2.0)

    def theta(self, size: int, radius: float, tilt: float = 1.0) -> float:
        r"""Return the exact theta; ``tilt`` |q|^2 of complex rows (see :meth:`largest_tilt`) enters the angle only.

        .. math:: \theta^2 = r^2 (1 + 2\sigma^2/\gamma^2)^{-k/2} \frac{A}{A^2 - B^2}
                  \frac{\sqrt{1 - s^2} + s (\pi - \arccos s)}{2 \pi}, \quad
                  A = \sigma^{-2} + \gamma^{-2},\; B = \gamma^{-2},\; s = \rho\, |q|^2,\; \rho = B / A
        """
        gamma = self.width(size)
        A, B = self.sigma**-2 + gamma**-2, gamma**-2
        s = min(1.0, self.correlation(size) * tilt)
        angle = (math.sqrt(1.0 - s**2) + s * (math.pi - math.acos(s))) / (2.0 * math.pi)
        return math.sqrt(radius**2 * (1.0 + 2.0 * self.sigma**2 / gamma**2) ** (-size / 2.0) * A / (A**2 - B**2) * angle)


def _relu_bracket(S: np.ndarray) -> np.ndarray:
    r"""Return exp(-S^2) + sqrt(pi) S (1 + erf S), accurate for all S.

    For negative S the two summands cancel: there it is :math:`e^{-S^2} (1 - \sqrt{\pi}\, |S|\, \mathrm{erfcx} |S|)`.
    """
    from scipy.special import erfc, erfcx

    result = erfc(-S)
    result *= S
    result *= math.sqrt(math.pi)
    with np.errstate(over="ignore"):
        gauss = np.exp(-S * S)
    result += gauss
    far = S < SCALED_BELOW
    if far.any():
        size = -S[far]
        result[far] = gauss[far] * (1.0 - math.sqrt(math.pi) * size * erfcx(size))
    return np.maximum(result, 0.0, out=result)


@dataclass(frozen=True)
class Sign(SignPredictor, _Gaussian):
    r"""Provide sign(<w, x>) with Gaussian parameters and kernel: :math:`E = C(u)\, \mathrm{erf}(S)`; 0 at x = 0."""

    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        from scipy.special import erf

        S, _, _, weights = self._standardised(W, X)
        return erf(S) * weights

    def kappa(self, size: int, radius: float = math.inf) -> float:
        """Return 1: the predictor is 1 or -1."""
        return 1.0

    def theta(self, size: int, radius: float = math.inf, tilt: float = 1.0) -> float:
        r"""Return the exact theta: :math:`\theta^2 = (1 + 2\sigma^2/\gamma^2)^{-k/2}\, \frac{2}{\pi} \arcsin (\rho\, |q|^2)`."""
        s = min(1.0, self.correlation(size) * tilt)
        return math.sqrt((1.0 + 2.0 * self.sigma**2 / self.width(size) ** 2) ** (-size / 2.0) * 2.0 / math.pi * math.asin(s))


@dataclass(frozen=True)
class ExponentialSign(SignPredictor):
    r"""Provide sign(<w, x>) with the kernel exp(<u, w> / 2 gamma^2), base="exponential-sign".

    .. math:: E = e^{\sigma^2 |u|^2 / 8 \gamma^4}\, \mathrm{erf}\Bigl(\frac{\sigma \langle u, x \rangle}{2 \sqrt2\, \gamma^2 |x|}\Bigr)

    ``gamma``, sqrt(2) ``sigma`` by default, is above ``sigma``: the constants of the weighting are infinite below.
    """

    sigma: float = 1.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        check_widths(self.sigma, self.gamma)
        if self.gamma is not None and self.gamma <= self.sigma:
            raise InputError("`gamma` must be above `sigma` for the exponential kernel", f"Got {self.gamma!r}")

    def _rate(self) -> float:
        """Return 1 / 2 gamma^2."""
        return 0.25 / self.sigma**2 if self.gamma is None else 0.5 / self.gamma**2

    def kernel(self, U: np.ndarray, W: np.ndarray, size: int) -> np.ndarray:
        return np.exp(self._rate() * (U @ W.T))

    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        from scipy.special import erf

        tilt = self._rate() * self.sigma
        weights = np.exp(0.5 * tilt**2 * (W**2).sum(axis=1))
        return erf(inner_products(directions(X)[0], W * (tilt / math.sqrt(2.0)))) * weights

    def kappa(self, size: int, radius: float = math.inf) -> float:
        r"""Return kappa in closed form.

        It is the root of :math:`E e^{|w|^2 / 2 \gamma^2} = (1 - 2 c)^{-k/2}`, :math:`c = \sigma^2 / 2 \gamma^2`.
        """
        return (1.0 - 2.0 * self._rate() * self.sigma**2) ** (-size / 4.0)

    def theta(self, size: int, radius: float = math.inf, tilt: float = 1.0) -> float:
        r"""Return the exact theta. :math:`\theta^2 = (1 - c^2)^{-k/2}\, \frac2\pi \arcsin c`, tilted to correlation c."""
        c = self._rate() * self.sigma**2
        return math.sqrt((1.0 - c**2) ** (-size / 2.0) * 2.0 / math.pi * math.asin(c))


def moment(i: int) -> float:
    """Return E|g|^i of a standard Gaussian."""
    return 2.0 ** (i / 2.0) * math.gamma((i + 1) / 2.0) / math.sqrt(math.pi)


def norm_moment(size: int, half: int) -> float:
    """Return E|g|^(2 half) of a standard Gaussian vector of ``size`` entries."""
    return float(math.prod(size + 2 * l for l in range(half)))

r"""Provide instantiations with closed forms: base predictor, kernel and distribution of parameters.

An RKHS weighting is :math:`\Lambda\alpha(x) = \sum_t a_t\, E_{w \sim p}[K(w_t, w)\, \phi(w, x)]`. Files of fitted
weightings hold the names of these classes and of this module: both stay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from exactshap._native import kernel
from exactshap._runtime.checks import is_number
from exactshap.errors import InputError
from exactshap.estimators.rkhs_weighting._interface import Instantiation, check_widths

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


class _Stumps(Instantiation):
    """Provide sign(x_j - w) with a column j drawn uniformly."""

    one_column = True

    def _width(self) -> float:
        raise NotImplementedError

    def _thresholds(self, rng: np.random.Generator, n: int) -> np.ndarray:
        raise NotImplementedError

    def sample(self, rng: np.random.Generator, size: int, n: int) -> np.ndarray:
        return np.column_stack([rng.integers(size, size=n), self._thresholds(rng, n)])

    def kernel(self, U: np.ndarray, W: np.ndarray, size: int) -> np.ndarray:
        same = U[:, None, 0] == W[None, :, 0]
        return np.where(same, np.exp(-((U[:, None, 1] - W[None, :, 1]) ** 2) / (2.0 * self._width() ** 2)), 0.0)

    def predictor(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        return np.where(X[:, W[:, 0].astype(int)] >= W[:, 1], 1.0, -1.0)

    def kappa(self, size: int, radius: float = math.inf) -> float:
        """Return 1: the predictor is 1 or -1."""
        return 1.0


def _chosen(W: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the column of each parameter, in C order. Sums do not depend on the number of rows."""
    return np.take(X, W[:, 0].astype(int), axis=1)


@dataclass(frozen=True)
class Stump(_Stumps):
    r"""Provide stumps with thresholds w ~ N(0, sigma^2).

    .. math:: E = \frac{\zeta}{k \sigma} e^{-u^2 / 2(\sigma^2 + \gamma^2)}\,
              \mathrm{erf}\Bigl(\frac{x_j - u \sigma^2 / (\sigma^2 + \gamma^2)}{\sqrt{2}\, \zeta}\Bigr)
    """

    sigma: float = 1.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        check_widths(self.sigma, self.gamma)

    def _width(self) -> float:
        return self.sigma if self.gamma is None else self.gamma

    def _thresholds(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.normal(scale=self.sigma, size=n)

    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        from scipy.special import erf

        total = self.sigma**2 + self._width() ** 2
        zeta = self.sigma * self._width() / math.sqrt(total)
        weights = zeta / (X.shape[1] * self.sigma) * np.exp(-(W[:, 1] ** 2) / (2.0 * total))
        return weights * erf((_chosen(W, X) - W[:, 1] * self.sigma**2 / total) / (math.sqrt(2.0) * zeta))

    def theta(self, size: int, radius: float = math.inf, tilt: float = 1.0) -> float:
        r"""Return the exact theta: :math:`(1 + 2\sigma^2/\gamma^2)^{-1/4} / \sqrt{k}`, the limit of large |x_j|."""
        return (1.0 + 2.0 * self.sigma**2 / self._width() ** 2) ** -0.25 / math.sqrt(size)


@dataclass(frozen=True)
class UniformStump(_Stumps):
    r"""Provide stumps with uniform thresholds on [low, high], base="uniform-stump".

    .. math:: E = \frac{\gamma \sqrt{\pi / 2}}{k (\mathrm{high} - \mathrm{low})} \bigl(2\, e(x_j) - e(\mathrm{low}) - e(\mathrm{high})\bigr),
              \qquad e(s) = \mathrm{erf}\Bigl(\frac{\min(\max(s, \mathrm{low}), \mathrm{high}) - u}{\sqrt2\, \gamma}\Bigr)

    Parameters
    ----------
    low, high : float, default=-sqrt(3), sqrt(3)
        Of deviation 1. By name ``sigma`` is the deviation.
    gamma : float, default=None
        Width of the kernel; None is the deviation.

    Raises
    ------
    InputError
        If ``low`` is not below ``high``, or ``gamma`` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap.estimators import UniformStump
    >>> UniformStump(-2.0, 2.0).expectation(np.array([[0, 0.5]]), np.array([[-9.0], [9.0]])).round(4)
    array([[-0.6424],
           [ 0.6424]])
    """

    low: float = -math.sqrt(3.0)
    high: float = math.sqrt(3.0)
    gamma: float | None = None

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise InputError("`low` must be below `high`, both finite", f"Got {self.low!r} and {self.high!r}")
        check_widths(1.0, self.gamma)

    def _width(self) -> float:
        return (self.high - self.low) / math.sqrt(12.0) if self.gamma is None else self.gamma

    def _thresholds(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.uniform(self.low, self.high, n)

    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        from scipy.special import erf

        low, here, high = (
            erf((s - W[:, 1]) / (math.sqrt(2.0) * self._width()))
            for s in (self.low, np.clip(_chosen(W, X), self.low, self.high), self.high)
        )
        return self._width() * math.sqrt(math.pi / 2.0) / (X.shape[1] * (self.high - self.low)) * (2.0 * here - low - high)

    def theta(self, size: int, radius: float = math.inf, tilt: float = 1.0) -> float:
        r"""Return the exact theta, the root of :math:`E[K(w, w')] / k`.

        .. math:: E[K(w, w')] = 2 \bigl(s \sqrt{\pi/2}\, \mathrm{erf}(1 / \sqrt2 s) - s^2 (1 - e^{-1 / 2 s^2})\bigr),
                  \quad s = \gamma / (\mathrm{high} - \mathrm{low})
        """
        s = self._width() / (self.high - self.low)
        mean = 2.0 * (s * math.sqrt(math.pi / 2.0) * math.erf(1.0 / (math.sqrt(2.0) * s)) + s**2 * math.expm1(-0.5 / s**2))
        return math.sqrt(mean / size)


@dataclass(frozen=True)
class PolynomialSign(SignPredictor):
    r"""Provide sign(<w, x>) with the kernel (1 + <u, w>)^q, base="polynomial-sign".

    .. math:: E = \sum_{i\ \mathrm{odd},\, j\ \mathrm{even}} \frac{q!}{i!\, j!\, (q - i - j)!}\, \sigma^{i + j} a^i b^j\, E|g|^i\, E[g^j],
              \quad a = \langle u, x / |x| \rangle,\; a^2 + b^2 = |u|^2,\; g \sim N(0, 1)

    Parameters
    ----------
    sigma : float, default=1.0
        Deviation of w.
    power : int, default=3
        q, at least 1.

    Raises
    ------
    InputError
        If one of them is no such number.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap.estimators import PolynomialSign
    >>> PolynomialSign(power=1).expectation(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0]])).round(4)  # 3 E|g|
    array([[2.3937]])
    """

    sigma: float = 1.0
    power: int = 3

    def __post_init__(self) -> None:
        check_widths(self.sigma, None)
        if isinstance(self.power, bool) or not isinstance(self.power, (int, np.integer)) or self.power < 1:
            raise InputError("`power` must be an int >= 1", f"Got {self.power!r}")

    def kernel(self, U: np.ndarray, W: np.ndarray, size: int) -> np.ndarray:
        return (1.0 + U @ W.T) ** self.power

    def _terms(self) -> list[tuple[int, int, float]]:
        """Return the nonzero summands as i, j and q! / (i! j! (q - i - j)!) sigma^(i + j) E[g^j]."""
        q = int(self.power)
        pairs = [(i, j) for i in range(1, q + 1, 2) for j in range(0, q - i + 1, 2)]
        return [(i, j, math.comb(q, i) * math.comb(q - i, j) * self.sigma ** (i + j) * moment(j)) for i, j in pairs]

    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        along = inner_products(directions(X)[0], W)
        across = np.maximum((W**2).sum(axis=1) - along**2, 0.0)
        values = np.zeros(along.shape)
        for i, j, weight in self._terms():
            values += weight * moment(i) * along**i * across ** (j // 2)
        return values

    def kappa(self, size: int, radius: float = math.inf) -> float:
        r"""Return the root of :math:`E (1 + |w|^2)^q`."""
        moments = (math.comb(self.power, i) * self.sigma ** (2 * i) * norm_moment(size, i) for i in range(self.power + 1))
        return math.sqrt(sum(moments))

    def theta(self, size: int, radius: float = math.inf, tilt: float = 1.0) -> float:
        r"""Return the exact theta. It follows from <w, w'> = sigma^2 (g g' + r), with r a product of k - 1 directions."""
        others = [norm_moment(size - 1, j // 2) * self.sigma ** (i + j) for i, j, _ in self._terms()]
        return math.sqrt(sum(w * moment(i) ** 2 * r for (i, _, w), r in zip(self._terms(), others, strict=True)))


_NAMED: dict[str, type[Instantiation]] = {
    "relu": Relu,
    "sign": Sign,
    "polynomial-sign": PolynomialSign,
    "exponential-sign": ExponentialSign,
    "stump": Stump,
    "uniform-stump": UniformStump,
}


def instantiation(base: str | Instantiation, **parameters: Any) -> Instantiation:
    """Return a named instantiation with ``sigma``, ``gamma`` and ``max_theta``, or the object itself."""
    if isinstance(base, Instantiation):
        return base
    kind = _NAMED.get(base) if isinstance(base, str) else None
    if kind is None:
        names = ", ".join(map(repr, _NAMED))
        text = f"The 'base' parameter of RKHSWeightingRegressor must be {names} or an Instantiation"
        raise InputError(text, f"Got {base!r}")
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if parameters["gamma"] is not None and "gamma" not in known:
        raise InputError(f"base={base!r} has no `gamma`", f"Got {parameters['gamma']!r}")
    if kind is UniformStump:
        check_widths(parameters["sigma"], None)
        parameters |= {"low": -math.sqrt(3.0) * parameters["sigma"], "high": math.sqrt(3.0) * parameters["sigma"]}
    return kind(**{name: value for name, value in parameters.items() if name in known})

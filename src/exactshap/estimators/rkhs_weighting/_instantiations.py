r"""Instantiations of RKHS weightings: a base predictor, a kernel and a distribution over its parameters.

An RKHS weighting is :math:`\Lambda\alpha(x) = \sum_t a_t\, E_{w \sim p}[K(w_t, w)\, \phi(w, x)]`. All it needs to know of an
instantiation is in :class:`Instantiation`; users can write their own, with a Monte Carlo expectation where there is no closed
form.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.errors import InputError, message

__all__ = ["Instantiation", "MonteCarlo", "Relu", "Sign", "Stump"]

ROW_BLOCK = 2**21  # values of one block of expectations: 16 MiB
CANCELLING = -4.0  # below, 1 + erf S loses more than 5 bits and the scaled function takes over


class Instantiation(ABC):
    """A base predictor phi(w, x), a kernel K(u, w) and a distribution p of parameters, for inputs of ``size`` columns."""

    degree: int | None = None  # phi(w, s x) = s ** degree phi(w, x) for s > 0, where the base predictor is homogeneous

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int, n: int) -> np.ndarray:
        """Return ``n`` parameters drawn from p, of shape (n, n_parameters)."""

    @abstractmethod
    def kernel(self, U: np.ndarray, W: np.ndarray, size: int) -> np.ndarray:
        """Return K(u, w), of shape (len(U), len(W))."""

    @abstractmethod
    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return E_w[K(w_t, w) phi(w, x)], of shape (n_rows, n_terms), for X of shape (n_rows, size)."""

    @abstractmethod
    def predictor(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return phi(w, x), of shape (n_rows, n_parameters)."""

    def theta(self, size: int, radius: float, tilt: float = 1.0) -> float:
        r"""Return sup over \|x\| <= radius of the norm of x's evaluation: \|f(x)\| <= theta \|alpha\|.

        With ``tilt`` > 1, where :meth:`largest_tilt` allows it, the supremum is over complex x with
        :math:`|x^\top x| \le radius^2` and :math:`|x|^2 \le tilt\, |x^\top x|`, to which f is continued.
        """
        raise NotImplementedError(f"{type(self).__name__} has no closed form for theta")

    def kappa(self, size: int, radius: float) -> float:
        r"""Return sup over \|x\| <= radius of :math:`\sqrt{E_w[K(w, w)\, \phi(w, x)^2]}`."""
        raise NotImplementedError(f"{type(self).__name__} has no closed form for kappa")

    def largest_tilt(self, size: int) -> float:
        """Return how far theta is known for complex rows; 1 where it is known for real ones only."""
        return 1.0


def _is_positive(value: Any) -> bool:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return number and bool(0 < value < math.inf)


def _check_widths(sigma: Any, gamma: Any) -> None:
    if not _is_positive(sigma) or not (gamma is None or _is_positive(gamma)):
        raise InputError(message("`sigma` and `gamma` must be > 0 and finite", f"Got {sigma!r} and {gamma!r}"))


def _tilted(sigma: float, gamma: float, W: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    r"""Return centres u', deviation zeta and weights of the Gaussian K(u, w) p(w).

    .. math:: K(u, w)\, p(w) = C(u)\, N(w; u', \zeta^2 I), \quad u' = \frac{\sigma^2 u}{\sigma^2 + \gamma^2}, \quad
              \frac{1}{\zeta^2} = \frac{1}{\sigma^2} + \frac{1}{\gamma^2}, \quad
              C(u) = (1 + \sigma^2/\gamma^2)^{-k/2} e^{-|u|^2 / 2(\sigma^2 + \gamma^2)}
    """
    total = sigma**2 + gamma**2
    zeta = sigma * gamma / math.sqrt(total)
    weights = (1.0 + (sigma / gamma) ** 2) ** (-W.shape[1] / 2.0) * np.exp(-(W**2).sum(axis=1) / (2.0 * total))
    return W * (sigma**2 / total), zeta, weights


@dataclass(frozen=True)
class _Gaussian(Instantiation):
    """What "relu" and "sign" share: w ~ N(0, sigma^2 I) and the Gaussian kernel of width gamma."""

    sigma: float = 1.0
    gamma: float | None = None
    max_theta: float = 0.5

    def __post_init__(self) -> None:
        _check_widths(self.sigma, self.gamma)
        if not (_is_positive(self.max_theta) and self.max_theta < 1):
            raise InputError(message("`max_theta` must be in (0, 1)", f"Got {self.max_theta!r}"))

    def width(self, size: int) -> float:
        r"""Return gamma: as given, or calibrated so that (1 + 2 sigma^2 / gamma^2)^(-k/4) is ``max_theta``.

        .. math:: \gamma^2 = 2 \sigma^2 / (c^{-4/k} - 1)

        (Eq. 65 of the paper, with sigma^2 in the numerator: as printed it holds only for sigma = 1.)
        """
        if self.gamma is not None:
            return self.gamma
        return math.sqrt(2.0) * self.sigma / math.sqrt(self.max_theta ** (-4.0 / size) - 1.0)

    def sample(self, rng: np.random.Generator, size: int, n: int) -> np.ndarray:
        return rng.normal(scale=self.sigma, size=(n, size))

    def kernel(self, U: np.ndarray, W: np.ndarray, size: int) -> np.ndarray:
        squares = (U**2).sum(axis=1)[:, None] + (W**2).sum(axis=1) - 2.0 * U @ W.T
        return np.exp(-np.maximum(squares, 0.0) / (2.0 * self.width(size) ** 2))

    def correlation(self, size: int) -> float:
        r"""Return :math:`\rho = \sigma^2 / (\sigma^2 + \gamma^2)` between two parameters under :math:`K(u, w) p(u) p(w)`."""
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
        """Return S = <u', x> / (sqrt(2) zeta |x|) (0 where x = 0), |x|, zeta and the weights C(u)."""
        centres, zeta, weights = _tilted(self.sigma, self.width(W.shape[1]), W)
        largest = np.abs(X).max(axis=1, initial=0.0)
        scaled = X / np.where(largest > 0, largest, 1.0)[:, None]  # squares of huge and tiny values stay in range
        lengths = np.sqrt((scaled**2).sum(axis=1))
        unit = scaled / np.where(lengths > 0, lengths, 1.0)[:, None]
        return _inner(unit, centres / (math.sqrt(2.0) * zeta)), lengths * largest, zeta, weights


def _inner(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return X W', added up column by column, so that a row gives the same bits alone and in company."""
    from exactshap.estimators.rkhs_weighting._inner_kernels import fill_inner

    out = np.zeros((len(X), len(W)))
    fill_inner(np.ascontiguousarray(X), np.ascontiguousarray(W.T), out)
    return out


@dataclass(frozen=True)
class Relu(_Gaussian):
    r"""The base predictor max(0, <w, x>) with Gaussian parameters and kernel.

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
        r"""Return the exact theta; ``tilt`` |q|^2 of complex rows (see :meth:`largest_tilt`) goes into the angle only.

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
    r"""Return exp(-S^2) + sqrt(pi) S (1 + erf S), accurate for every sign and size of S.

    For negative S the two summands cancel: there it is :math:`e^{-S^2} (1 - \sqrt{\pi}\, |S|\, \mathrm{erfcx} |S|)`.
    """
    from scipy.special import erfc, erfcx

    result = erfc(-S)
    result *= S
    result *= math.sqrt(math.pi)
    with np.errstate(over="ignore"):
        gauss = np.exp(-S * S)
    result += gauss
    far = S < CANCELLING
    if far.any():
        size = -S[far]
        result[far] = gauss[far] * (1.0 - math.sqrt(math.pi) * size * erfcx(size))
    return np.maximum(result, 0.0, out=result)


@dataclass(frozen=True)
class Sign(_Gaussian):
    r"""The base predictor sign(<w, x>) with Gaussian parameters and kernel: :math:`E = C(u)\, \mathrm{erf}(S)`; 0 at x = 0."""

    degree = 0

    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        from scipy.special import erf

        S, _, _, weights = self._standardised(W, X)
        return erf(S) * weights

    def predictor(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        return np.where(X @ W.T >= 0, 1.0, -1.0)

    def kappa(self, size: int, radius: float = math.inf) -> float:
        """Return 1: the predictor is 1 or -1."""
        return 1.0

    def theta(self, size: int, radius: float = math.inf, tilt: float = 1.0) -> float:
        r"""Return the exact theta: :math:`\theta^2 = (1 + 2\sigma^2/\gamma^2)^{-k/2}\, \frac{2}{\pi} \arcsin (\rho\, |q|^2)`."""
        s = min(1.0, self.correlation(size) * tilt)
        return math.sqrt((1.0 + 2.0 * self.sigma**2 / self.width(size) ** 2) ** (-size / 2.0) * 2.0 / math.pi * math.asin(s))


@dataclass(frozen=True)
class Stump(Instantiation):
    r"""The base predictor sign(x_j - w): a column j drawn uniformly, a threshold w ~ N(0, sigma^2), a Gaussian kernel within a column.

    .. math:: E = \frac{\zeta}{k \sigma} e^{-u^2 / 2(\sigma^2 + \gamma^2)}\,
              \mathrm{erf}\Bigl(\frac{x_j - u \sigma^2 / (\sigma^2 + \gamma^2)}{\sqrt{2}\, \zeta}\Bigr)
    """

    sigma: float = 1.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        _check_widths(self.sigma, self.gamma)

    def _width(self) -> float:
        return self.sigma if self.gamma is None else self.gamma

    def sample(self, rng: np.random.Generator, size: int, n: int) -> np.ndarray:
        return np.column_stack([rng.integers(size, size=n), rng.normal(scale=self.sigma, size=n)])

    def kernel(self, U: np.ndarray, W: np.ndarray, size: int) -> np.ndarray:
        same = U[:, None, 0] == W[None, :, 0]
        return np.where(same, np.exp(-((U[:, None, 1] - W[None, :, 1]) ** 2) / (2.0 * self._width() ** 2)), 0.0)

    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        from scipy.special import erf

        total = self.sigma**2 + self._width() ** 2
        zeta = self.sigma * self._width() / math.sqrt(total)
        weights = zeta / (X.shape[1] * self.sigma) * np.exp(-(W[:, 1] ** 2) / (2.0 * total))
        columns = np.take(X, W[:, 0].astype(int), axis=1)  # in C order: sums over terms do not depend on the number of rows
        return weights * erf((columns - W[:, 1] * self.sigma**2 / total) / (math.sqrt(2.0) * zeta))

    def predictor(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        return np.where(X[:, W[:, 0].astype(int)] >= W[:, 1], 1.0, -1.0)

    def kappa(self, size: int, radius: float = math.inf) -> float:
        """Return 1: the predictor is 1 or -1."""
        return 1.0

    def theta(self, size: int, radius: float = math.inf, tilt: float = 1.0) -> float:
        r"""Return the exact theta: :math:`(1 + 2\sigma^2/\gamma^2)^{-1/4} / \sqrt{k}`, reached as every |x_j| grows."""
        return (1.0 + 2.0 * self.sigma**2 / self._width() ** 2) ** -0.25 / math.sqrt(size)


@dataclass(frozen=True)
class MonteCarlo(Instantiation):
    """Any base predictor, kernel and distribution, with the expectation by a seeded average; :meth:`error` reports it.

    Parameters
    ----------
    phi : callable
        ``phi(W, X) -> (n_rows, n_parameters)``.
    similarity : callable
        ``similarity(U, W) -> (len(U), len(W))``, the kernel.
    draw : callable
        ``draw(rng, size, n) -> (n, n_parameters)``, parameters from p.
    n_draws : int, default=2000
        Parameters in the average.
    seed : int, default=0
        The same parameters are used for every row and every call, so that predictions are one fixed function.
    """

    phi: Callable[[np.ndarray, np.ndarray], np.ndarray]
    similarity: Callable[[np.ndarray, np.ndarray], np.ndarray]
    draw: Callable[[np.random.Generator, int, int], np.ndarray]
    n_draws: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.n_draws, (int, np.integer)) or self.n_draws < 2:
            raise InputError(message("`n_draws` of MonteCarlo must be an int >= 2", f"Got {self.n_draws!r}"))

    def sample(self, rng: np.random.Generator, size: int, n: int) -> np.ndarray:
        draws = np.asarray(self.draw(rng, size, n), float)
        return checked(self, "draw", draws, (n, draws.shape[1] if draws.ndim == 2 else None))

    def kernel(self, U: np.ndarray, W: np.ndarray, size: int) -> np.ndarray:
        return checked(self, "similarity", np.asarray(self.similarity(U, W), float), (len(U), len(W)))

    def _average(self, W: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        draws = self.sample(np.random.default_rng(self.seed), X.shape[1], self.n_draws)
        return self.predictor(draws, X), self.kernel(W, draws, X.shape[1]), draws

    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        phi, kernel, _ = self._average(W, X)
        return phi @ kernel.T / self.n_draws

    def error(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return the standard error of every expectation, of shape (n_rows, n_terms)."""
        phi, kernel, _ = self._average(W, X)
        mean = phi @ kernel.T / self.n_draws
        squares = phi**2 @ (kernel**2).T / self.n_draws
        return np.sqrt(np.maximum(squares - mean**2, 0.0) / (self.n_draws - 1))

    def contributions(self, W: np.ndarray, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        r"""Return :math:`\phi(w, x) \sum_t c_t K(w_t, w)` for every draw w, of shape (n_rows, n_draws): f is their mean."""
        phi, kernel, _ = self._average(W, X)
        return phi * (coefficients @ kernel)

    def predictor(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        return checked(self, "phi", np.asarray(self.phi(W, X), float), (len(X), len(W)))


def checked(owner: Instantiation, name: str, values: np.ndarray, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return what a user's function or method gave, or say what is wrong with it: other shapes would broadcast."""
    what = f"`{name}` of {type(owner).__name__}"
    if values.shape != shape:
        wanted = tuple("n_parameters" if n is None else n for n in shape)
        raise InputError(message(f"{what} returned shape {values.shape}", f"It must return {wanted}"))
    if not np.isfinite(values).all():
        raise InputError(message(f"{what} returned NaN or infinity", "Its values must be finite"))
    return values


def instantiation(base: Any, **parameters: Any) -> Instantiation:
    """Return the instantiation behind a name ("relu", "sign", "stump") or the object itself."""
    if isinstance(base, Instantiation):
        return base
    known = {"relu": Relu, "sign": Sign, "stump": Stump}
    if base not in known:
        raise InputError(
            message(
                "The 'base' parameter of RKHSWeightingRegressor must be 'relu', 'sign', 'stump' or an Instantiation",
                f"Got {base!r}",
            )
        )
    if base == "stump":
        parameters.pop("max_theta", None)
    return known[base](**parameters)

r"""Instantiations of RKHS weightings: a base predictor, a kernel and a distribution over its parameters.

An RKHS weighting is :math:`\Lambda\alpha(x) = \sum_t a_t\, E_{w \sim p}[K(w_t, w)\, \phi(w, x)]`. All it needs to know of an
instantiation is in :class:`Instantiation`; users can write their own, with a Monte Carlo expectation where there is no closed
form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.errors import InputError, message
from exactshap.estimators.rkhs_weighting._gaussian import Relu, Sign
from exactshap.estimators.rkhs_weighting._instantiation import ROW_BLOCK, Instantiation, check_widths, checked

__all__ = ["ROW_BLOCK", "Instantiation", "MonteCarlo", "Relu", "Sign", "Stump", "checked", "instantiation"]


@dataclass(frozen=True)
class Stump(Instantiation):
    r"""The base predictor sign(x_j - w): a column j drawn uniformly, a threshold w ~ N(0, sigma^2), a Gaussian kernel within a column.

    .. math:: E = \frac{\zeta}{k \sigma} e^{-u^2 / 2(\sigma^2 + \gamma^2)}\,
              \mathrm{erf}\Bigl(\frac{x_j - u \sigma^2 / (\sigma^2 + \gamma^2)}{\sqrt{2}\, \zeta}\Bigr)
    """

    sigma: float = 1.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        check_widths(self.sigma, self.gamma)

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
    r"""Average any base predictor over seeded draws, where the expectation has no closed form.

    .. math:: E_{w \sim p}[K(u, w)\, \phi(w, x)] \approx \frac1N \sum_{i=1}^N K(u, w_i)\, \phi(w_i, x)

    ``error`` reports the standard error of each average.

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

    Raises
    ------
    InputError
        If ``n_draws`` is below 2; from ``fit``, if one of the functions returns another shape.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap.estimators import MonteCarlo, RKHSWeightingRegressor
    >>> waves = MonteCarlo(
    ...     phi=lambda W, X: np.cos(X @ W.T),
    ...     similarity=lambda U, W: np.exp(-((U[:, None] - W) ** 2).sum(axis=2) / 2),
    ...     draw=lambda rng, size, n: rng.normal(size=(n, size)),
    ...     n_draws=100,
    ... )
    >>> X = np.linspace(-1, 1, 20).reshape(10, 2)
    >>> RKHSWeightingRegressor(waves, n_terms=10, random_state=0).fit(X, np.cos(X[:, 0])).predict(X).shape
    (10,)
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

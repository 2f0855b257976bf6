"""Define the interface of instantiations, for a user's own, with or without a closed form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.checks import is_width
from exactshap.errors import InputError


class Instantiation(ABC):
    r"""Define base predictor phi(w, x), kernel K(u, w) and distribution p.

    Subclasses write ``sample``, ``kernel``, ``expectation`` and ``predictor`` for inputs of ``size`` columns; ``theta`` and ``kappa`` where
    they have a closed form, which the bounds of the regressor need.

    Attributes
    ----------
    degree : int or None
        :math:`\phi(w, s x) = s^\mathrm{degree} \phi(w, x)` for s > 0, where the base predictor is homogeneous.
    one_column : bool
        Whether the base predictor looks at one column only; its first parameter is the column's number.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap.estimators import Instantiation, RKHSWeightingRegressor
    >>> class Cosine(Instantiation):
    ...     def sample(self, rng, size, n):
    ...         return rng.normal(size=(n, size))
    ...     def kernel(self, U, W, size):
    ...         return (U[:, None] == W).all(axis=2).astype(float)  # parameters that are not alike do not meet
    ...     def expectation(self, W, X):
    ...         return self.predictor(W, X) / len(W)
    ...     def predictor(self, W, X):
    ...         return np.cos(X @ W.T)
    >>> X = np.linspace(-1, 1, 20).reshape(10, 2)
    >>> RKHSWeightingRegressor(Cosine(), n_terms=10, random_state=0).fit(X, X[:, 0] ** 2).predict(X).shape
    (10,)
    """

    degree: int | None = None
    one_column: bool = False

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int, n: int) -> np.ndarray:
        """Return ``n`` parameters drawn from p, of shape (n, n_parameters)."""

    @abstractmethod
    def kernel(self, U: np.ndarray, W: np.ndarray, size: int) -> np.ndarray:
        """Return K(u, w), of shape (len(U), len(W))."""

    @abstractmethod
    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return E_w[K(w_t, w) phi(w, x)] (n_rows, n_terms) for X (n_rows, size)."""

    @abstractmethod
    def predictor(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return phi(w, x), of shape (n_rows, n_parameters)."""

    def theta(self, size: int, radius: float, tilt: float = 1.0) -> float:
        r"""Bound evaluations: \|f(x)\| <= theta \|alpha\| for \|x\| <= radius.

        With ``tilt`` > 1, where :meth:`largest_tilt` allows it, the supremum is over complex x with
        :math:`|x^\top x| \le radius^2` and :math:`|x|^2 \le tilt\, |x^\top x|`, to which f is continued.
        """
        raise NotImplementedError(f"{type(self).__name__} has no closed form for theta")

    def kappa(self, size: int, radius: float) -> float:
        r"""Return sup over \|x\| <= radius of :math:`\sqrt{E_w[K(w, w)\, \phi(w, x)^2]}`."""
        raise NotImplementedError(f"{type(self).__name__} has no closed form for kappa")

    def largest_tilt(self, size: int) -> float:
        """Return the largest ``tilt`` for which theta is known."""
        return 1.0


def check_widths(sigma: Any, gamma: Any) -> None:
    """Refuse a ``sigma`` or ``gamma`` that is not positive, or without a square; ``gamma`` may be None."""
    if not is_width(sigma) or not (gamma is None or is_width(gamma)):
        what = "`sigma` and `gamma` must be > 0 and finite, with squares that neither overflow nor vanish"
        raise InputError(what, f"Got {sigma!r} and {gamma!r}")


def checked(owner: Instantiation, name: str, values: np.ndarray, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return a user's result, or refuse its shape or values. Other shapes would broadcast."""
    what = f"`{name}` of {type(owner).__name__}"
    if values.shape != shape:
        wanted = tuple("n_parameters" if n is None else n for n in shape)
        raise InputError(f"{what} returned shape {values.shape}", f"It must return {wanted}")
    if not np.isfinite(values).all():
        raise InputError(f"{what} returned NaN or infinity", "Its values must be finite")
    return values


@dataclass(frozen=True)
class MonteCarlo(Instantiation):
    r"""Average any base predictor over seeded draws, without a closed form.

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
            raise InputError("`n_draws` of MonteCarlo must be an int >= 2", f"Got {self.n_draws!r}")

    def sample(self, rng: np.random.Generator, size: int, n: int) -> np.ndarray:
        draws = np.asarray(self.draw(rng, size, n), float)
        return checked(self, "draw", draws, (n, draws.shape[1] if draws.ndim == 2 else None))

    def kernel(self, U: np.ndarray, W: np.ndarray, size: int) -> np.ndarray:
        return checked(self, "similarity", np.asarray(self.similarity(U, W), float), (len(U), len(W)))

    def _average(self, W: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        draws = self.sample(np.random.default_rng(self.seed), X.shape[1], self.n_draws)
        return self.predictor(draws, X), self.kernel(W, draws, X.shape[1])

    def expectation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        phi, kernel = self._average(W, X)
        return phi @ kernel.T / self.n_draws

    def error(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return the standard error of every expectation, of shape (n_rows, n_terms)."""
        phi, kernel = self._average(W, X)
        mean = phi @ kernel.T / self.n_draws
        squares = phi**2 @ (kernel**2).T / self.n_draws
        return np.sqrt(np.maximum(squares - mean**2, 0.0) / (self.n_draws - 1))

    def contributions(self, W: np.ndarray, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        r"""Return the summand (n_rows, n_draws) of every draw.

        It is :math:`\phi(w, x) \sum_t c_t K(w_t, w)` for the draw w; f is the mean.
        """
        phi, kernel = self._average(W, X)
        return phi * (coefficients @ kernel)

    def predictor(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        return checked(self, "phi", np.asarray(self.phi(W, X), float), (len(X), len(W)))

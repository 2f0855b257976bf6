"""Define one product of one-column factors."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np

from exactshap.expansions import GaussianMixture

ColumnFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class ScaledMixture:
    """Define a mixture of Gaussians of the distance in units of sigma, one per column; infinity switches a column off.

    ``profile`` is its closed form as a function of the squared distance.
    """

    mixture: GaussianMixture
    sigma: np.ndarray
    profile: Callable[[np.ndarray], np.ndarray]

    def distances(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return the squared distances (n, n_features, m) in each column of X (n, n_features) and Y (n_features, m)."""
        difference: np.ndarray = X[:, :, None] - Y
        with np.errstate(over="ignore", under="ignore"):
            difference /= self.sigma[:, None]
            difference *= difference
        return difference


@dataclass(frozen=True, eq=False)
class Component:
    r"""Define a product of one-column factors times an amplitude.

    .. math:: s \prod_j \exp\Bigl(-\gamma_j u_j^2 - \lambda_j |u_j| - \kappa_j \tfrac{u_j^2}{x_j + x'_j}\Bigr)
              \prod_{c} \frac{1}{1 + u_j^2 / \sigma_{cj}^2}\; (x_j x'_j)^{e_j}\; h_j(x_j, x'_j), \qquad u_j = x_j - x'_j

    Attributes
    ----------
    amplitude : float
        s; it multiplies coefficients and is never attributed.
    squared, absolute, chi2 : arrays of shape (n_features,) or None
        gamma, lambda and kappa; None means zero.
    cauchy : tuple of arrays of shape (n_features,)
        One array of scales sigma for each Cauchy kernel in the product.
    powers : int array of shape (n_features,) or None
        Exponents e; None means zero.
    functions : tuple of (column, function)
        Further factors ``h(x (n, 1), y (1, m)) -> (n, m)``; ``is_normalised`` of one says that it is 1 at x = y.
    relative_error : float
        Error of the sum of all components due to this one (of a mixture), relative to s and its powers and functions.
    rounding : float
        Rounding units of error of a library's own closed form of the kernel, relative to s; powers multiply those of their base.
    member_of : ScaledMixture or None
        The mixture of which this component is one Gaussian and nothing else; all of them are one radial kernel times a constant.

    Examples
    --------
    >>> part = Component(amplitude=2.0, squared=np.array([0.5, 0.5]))
    >>> part.matrix(np.zeros((1, 2)), np.zeros((1, 2)))
    array([[2.]])
    """

    amplitude: float = 1.0
    squared: np.ndarray | None = None
    absolute: np.ndarray | None = None
    chi2: np.ndarray | None = None
    cauchy: tuple[np.ndarray, ...] = ()
    powers: np.ndarray | None = None
    functions: tuple[tuple[int, ColumnFunction], ...] = ()
    relative_error: float = 0.0
    rounding: float = 0.0
    member_of: ScaledMixture | None = None

    def __mul__(self, other: Component) -> Component:
        if self._is_constant or other._is_constant:
            # A constant only scales: the other component keeps its kind, such as one Gaussian of a mixture
            constant, one = (self, other) if self._is_constant else (other, self)
            return one.scaled(constant.amplitude)
        return Component(
            amplitude=self.amplitude * other.amplitude,
            squared=_add(self.squared, other.squared),
            absolute=_add(self.absolute, other.absolute),
            chi2=_add(self.chi2, other.chi2),
            cauchy=self.cauchy + other.cauchy,
            powers=_add(self.powers, other.powers),
            functions=self.functions + other.functions,
            rounding=self.rounding + other.rounding,
            # (1 + e) (1 + f) - 1 = e + f + e f
            relative_error=self.relative_error + other.relative_error + self.relative_error * other.relative_error,
        )

    @property
    def is_normalised(self) -> bool:
        """Say whether every factor is 1 at x = x'.

        Only then "set to 1" is invariant to rescaling.
        """
        return self.powers is None and all(getattr(function, "is_normalised", False) for _, function in self.functions)

    @property
    def is_monomial(self) -> bool:
        """Say whether k(x, x') = s psi(x) psi(x') with one monomial.

        Training rows then add up to one term.
        """
        others = (self.squared, self.absolute, self.chi2)
        return all(part is None for part in others) and not self.cauchy and not self.functions

    def exponential_rates(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return gamma and lambda per column, None for other factors."""
        others = self.chi2 is not None or self.cauchy or self.powers is not None or self.functions
        rates = [rate for rate in (self.squared, self.absolute) if rate is not None]
        if others or not rates or not all(np.isfinite(rate).all() and (rate >= 0.0).all() for rate in rates):
            return None
        return tuple(
            np.zeros_like(rates[0]) if rate is None else np.asarray(rate, float) for rate in (self.squared, self.absolute)
        )  # type: ignore[return-value]

    def unbounded(self) -> Component | None:
        """Return the powers and functions alone, None without any."""
        return Component(powers=self.powers, functions=self.functions) if self.powers is not None or self.functions else None

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Return a key that distinguishes powers and functions."""
        powers = None if self.powers is None else self.powers.tobytes()
        return powers, *((column, id(function)) for column, function in self.functions)

    @property
    def _is_constant(self) -> bool:
        return self.is_monomial and self.powers is None

    def scaled(self, factor: float) -> Component:
        return replace(self, amplitude=self.amplitude * factor)

    def factors(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return all one-column factors of two sets of rows.

        Parameters
        ----------
        X : array of shape (n, n_features)
        Y : array of shape (n_features, m)
            The second set with columns first, so that the result is contiguous in it.

        Returns
        -------
        factors : array of shape (n, n_features, m)
            C-contiguous, without the amplitude. NumPy's vectorised exponential does the heavy part.
        """
        # Rows of frames are stored by column, and NumPy keeps that order
        X, Y = np.ascontiguousarray(X), np.ascontiguousarray(Y)
        exponent = self._exponent(X, Y)
        result = np.ones((X.shape[0], *Y.shape)) if exponent is None else np.exp(exponent, out=exponent)
        for scales in self.cauchy:
            difference = X[:, :, None] - Y
            difference /= scales[:, None]
            result /= 1.0 + difference * difference
        if self.powers is not None:
            for column in np.flatnonzero(self.powers):
                result[:, column] *= (X[:, column, None] * Y[column]) ** int(self.powers[column])
        for j, function in self.functions:
            result[:, j] *= np.asarray(function(X[:, j, None], Y[j][None, :]), float)
        return result

    def _exponent(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray | None:
        total = None
        if self.squared is not None:
            total = X[:, :, None] - Y
            total *= total
            total *= -self.squared[:, None]
        if self.absolute is not None:
            total = _plus(total, -self.absolute[:, None] * np.abs(X[:, :, None] - Y))
        if self.chi2 is not None:
            sums = X[:, :, None] + Y
            squares = (X[:, :, None] - Y) ** 2
            # Where both cells are 0 the ratio has the limit 0
            ratio = np.divide(squares, sums, out=np.zeros_like(sums), where=sums != 0)
            total = _plus(total, -self.chi2[:, None] * ratio)
        return total

    def monomial(self, X: np.ndarray) -> np.ndarray:
        """Return the factors (n, n_features) of psi(x): x_j to the power e_j."""
        return np.ones_like(X) if self.powers is None else np.power(X, self.powers)

    def matrix(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return the kernel matrix (n, m), amplitude included: by its definition."""
        if self._is_constant:  # without factors of all columns
            return np.full((len(X), len(Y)), self.amplitude)
        X, columns = np.ascontiguousarray(X), np.ascontiguousarray(Y.T)
        exponent = None if self.exponential_rates() is None else self._exponent(X, columns)
        # One exponential serves all columns
        products: np.ndarray = self.factors(X, columns).prod(axis=1) if exponent is None else np.exp(exponent.sum(axis=1))
        products *= self.amplitude
        return products


def _add(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    if first is None or second is None:
        return first if second is None else second
    total: np.ndarray = first + second
    return total


def _plus(first: np.ndarray | None, second: np.ndarray) -> np.ndarray:
    return second if first is None else np.add(first, second, out=first)

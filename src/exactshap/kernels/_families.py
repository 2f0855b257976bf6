"""Define kernels of distances in columns, of dot products, and radial ones."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from exactshap.errors import InputError
from exactshap.expansions import GaussianMixture, matern, rational_quadratic
from exactshap.kernels._algebra import (
    LARGEST_RATE,
    Kernel,
    check_finite,
    check_positive,
    check_size,
    inverse_squares,
    per_column,
)
from exactshap.kernels._component import Component, ScaledMixture

# Shape / 16 rounding units, as tolerances allow for each unit more than 16 times
_UNITS_OF_SHAPE = 16.0
# Smoothness above which the mixture is more accurate than logarithms of Bessel functions
_LARGEST_BESSEL = 10.0


@dataclass(frozen=True, eq=False)
class OfBandwidth(Kernel):
    """Define a kernel with one bandwidth, or one for each column."""

    bandwidth: ArrayLike = 1.0

    def __post_init__(self) -> None:
        check_positive(self.bandwidth, "bandwidth", type(self).__name__)

    def widths(self, n_features: int) -> np.ndarray:
        """Return the bandwidth of each column."""
        return per_column(self.bandwidth, n_features, "bandwidth", type(self).__name__)


@dataclass(frozen=True, eq=False)
class RBF(OfBandwidth):
    r"""Define the Gaussian kernel.

    .. math:: k(x, x') = \exp\Bigl(-\sum_j u_j^2 / (2 \sigma_j^2)\Bigr), \qquad u_j = x_j - x'_j

    Parameters
    ----------
    bandwidth : float or array of shape (n_features,), default=1.0
        sigma, in the unit of the columns; infinity switches a column off.

    Raises
    ------
    InputError, InputTypeError
        If a bandwidth is not > 0; on use, if there is not one for each column.

    Examples
    --------
    >>> RBF(bandwidth=2.0)([[1.0, 0.0]], [[0.0, 2.0]]).round(4)  # exp(-5/8)
    array([[0.5353]])
    """

    def expand(self, n_features: int) -> tuple[Component, ...]:
        sigma = self.widths(n_features)
        return (Component(squared=0.5 * inverse_squares(sigma)),)


@dataclass(frozen=True, eq=False)
class Laplacian(OfBandwidth):
    r"""Define the Laplacian kernel.

    .. math:: k(x, x') = \exp\Bigl(-\sum_j |u_j| / \sigma_j\Bigr), \qquad u_j = x_j - x'_j

    Parameters
    ----------
    bandwidth : float or array of shape (n_features,), default=1.0
        sigma, in the unit of the columns; infinity switches a column off.

    Raises
    ------
    InputError, InputTypeError
        If a bandwidth is not > 0; on use, if there is not one for each column.

    Examples
    --------
    >>> Laplacian(bandwidth=[1.0, 4.0])([[1.0, 0.0]], [[0.0, 2.0]]).round(4)  # exp(-3/2)
    array([[0.2231]])
    """

    def expand(self, n_features: int) -> tuple[Component, ...]:
        with np.errstate(over="ignore"):
            rates = 1.0 / self.widths(n_features)
        # Finite, so that equal cells have distance 0 at any bandwidth, not 0 times infinity
        return (Component(absolute=np.minimum(rates, LARGEST_RATE)),)


@dataclass(frozen=True, eq=False)
class Cauchy(OfBandwidth):
    r"""Define the Cauchy kernel, a product over columns.

    .. math:: k(x, x') = \prod_j \frac{1}{1 + u_j^2 / \sigma_j^2}, \qquad u_j = x_j - x'_j

    Parameters
    ----------
    bandwidth : float or array of shape (n_features,), default=1.0
        sigma, in the unit of the columns; infinity switches a column off.

    Raises
    ------
    InputError, InputTypeError
        If a bandwidth is not > 0; on use, if there is not one for each column.

    Examples
    --------
    >>> Cauchy(bandwidth=1.0)([[1.0, 0.0]], [[0.0, 2.0]])  # 1/2 times 1/5
    array([[0.1]])
    """

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return (Component(cauchy=(self.widths(n_features),)),)


@dataclass(frozen=True, eq=False)
class Chi2(Kernel):
    r"""Define the exponential chi-squared kernel, for non-negative columns.

    .. math:: k(x, x') = \exp\Bigl(-\sum_j \gamma_j \frac{(x_j - x'_j)^2}{x_j + x'_j}\Bigr), \qquad 0 / 0 = 0

    Parameters
    ----------
    gamma : float or array of shape (n_features,), default=1.0

    Raises
    ------
    InputError, InputTypeError
        If gamma is not > 0; on use, if there is not one for each column.

    Examples
    --------
    >>> Chi2(gamma=0.5)([[1.0, 0.0]], [[3.0, 0.0]]).round(4)  # exp(-1/2)
    array([[0.6065]])
    """

    gamma: ArrayLike = 1.0

    def __post_init__(self) -> None:
        check_positive(self.gamma, "gamma", "Chi2")

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return (Component(chi2=per_column(self.gamma, n_features, "gamma", "Chi2")),)


@dataclass(frozen=True, eq=False)
class Linear(Kernel):
    r"""Define the dot product kernel.

    .. math:: k(x, x') = c_0 + \gamma \sum_j x_j x'_j

    Parameters
    ----------
    offset : float, default=0.0
        c_0 (scikit-learn's ``sigma_0 ** 2``).
    gamma : float, default=1.0

    Raises
    ------
    InputError, InputTypeError
        If a parameter is not a finite number.

    Examples
    --------
    >>> Linear(offset=1.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[12.]])
    """

    offset: float = 0.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        check_finite(self.offset, "offset", "Linear")
        check_finite(self.gamma, "gamma", "Linear")

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return Polynomial(degree=1, gamma=self.gamma, offset=self.offset).expand(n_features)


@dataclass(frozen=True, eq=False)
class Polynomial(Kernel):
    r"""Define a polynomial kernel, which expands into C(d + p, p) monomials.

    .. math:: k(x, x') = \Bigl(\gamma \sum_j x_j x'_j + c_0\Bigr)^p

    Parameters
    ----------
    degree : int, default=3
        p.
    gamma : float, default=1.0
    offset : float, default=0.0
        c_0.

    Raises
    ------
    InputError, InputTypeError
        If the degree is no integer >= 0 or another parameter no finite number.
    BudgetError
        On use, if there are more than 200,000 monomials.

    Examples
    --------
    >>> kernel = Polynomial(degree=2, offset=1.0)
    >>> kernel([[1.0, 2.0]], [[3.0, 4.0]]), len(kernel.expand(2))
    (array([[144.]]), 6)
    """

    degree: int = 3
    gamma: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        for name in ("gamma", "offset", "degree"):
            check_finite(getattr(self, name), name, "Polynomial")
        if self.degree != int(self.degree) or self.degree < 0:
            raise InputError("The 'degree' parameter of Polynomial must be a non-negative integer", f"Got {self.degree!r}")

    def expand(self, n_features: int) -> tuple[Component, ...]:
        degree = int(self.degree)
        check_size(math.comb(n_features + degree, degree), f"(x . x' + c)^{degree} in {n_features} columns")
        # Monomials of a lower degree have powers of the offset: without one they vanish
        sizes = range(degree + 1) if self.offset != 0 else (degree,)
        return tuple(
            self._monomial(columns, n_features)
            for size in sizes
            for columns in itertools.combinations_with_replacement(range(n_features), size)
        )

    def _monomial(self, columns: tuple[int, ...], n_features: int) -> Component:
        powers = np.bincount(np.asarray(columns, int), minlength=n_features)
        rest = int(self.degree) - len(columns)
        # Multinomial coefficient p! / (rest! prod_j e_j!), in whole numbers
        ways = math.factorial(int(self.degree)) // math.factorial(rest)
        for power in powers:
            ways //= math.factorial(int(power))
        amplitude = ways * self.gamma ** len(columns) * self.offset**rest
        return Component(amplitude=float(amplitude), powers=powers if len(columns) else None)


@dataclass(frozen=True, eq=False)
class Radial(OfBandwidth):
    """Define a function of the scaled distance of two rows, 1 at distance 0."""

    @property
    @abstractmethod
    def shape(self) -> float:
        """Return nu or alpha."""

    @abstractmethod
    def profile(self, squared_distance: np.ndarray) -> np.ndarray:
        """Return the kernel at squared distances in units of the bandwidth."""

    @abstractmethod
    def mixture(self) -> GaussianMixture:
        """Return the mixture of Gaussians, for bandwidth 1."""

    def expand(self, n_features: int) -> tuple[Component, ...]:
        sigma = self.widths(n_features)
        if n_features == 1:  # a product without expansion
            return (Component(functions=((0, _OneColumn(self, float(sigma[0]))),)),)
        mixture = self.mixture()
        # A Gaussian of the whole distance is a product over columns: exp(-rho r^2) = prod_j exp(-rho u_j^2 / sigma_j^2)
        rates = inverse_squares(sigma, mixture.rates[:, None])
        member_of = ScaledMixture(mixture, sigma, self.profile)
        return tuple(
            Component(
                amplitude=weight,
                squared=rate,
                relative_error=mixture.error,
                rounding=self.shape / _UNITS_OF_SHAPE,
                member_of=member_of,
            )
            for weight, rate in zip(mixture.weights.tolist(), rates, strict=True)
        )

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
        """Return the kernel matrix (n, m) of two sets of rows, by the closed form."""
        from scipy.spatial.distance import cdist

        X = np.asarray(X, float)
        sigma = self.widths(X.shape[1])
        scaled = [np.asarray(rows, float) / sigma for rows in (X, X if Y is None else Y)]
        return self.profile(cdist(*scaled, "sqeuclidean"))


@dataclass(frozen=True)
class _OneColumn:
    """Restrict a radial kernel to one column; a class, so that readers can be pickled."""

    kernel: Radial
    sigma: float
    is_normalised = True

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.kernel.profile(((x - y) / self.sigma) ** 2)


@dataclass(frozen=True, eq=False)
class Matern(Radial):
    r"""Define the Matern kernel of smoothness nu.

    .. math:: k(x, x') = \frac{2^{1 - \nu}}{\Gamma(\nu)} s^\nu K_\nu(s), \qquad
              s = \sqrt{2 \nu}\, r, \quad r^2 = \sum_j (x_j - x'_j)^2 / \sigma_j^2

    Parameters
    ----------
    bandwidth : float or array of shape (n_features,), default=1.0
        sigma, in the unit of the columns; infinity switches a column off.
    nu : float, default=1.5
        0.5 is the exponential kernel exp(-r); 1.5 and 2.5 are once and twice differentiable.

    Raises
    ------
    InputError, InputTypeError
        If a parameter is not > 0; on use, if there is not one bandwidth for each column.
    BudgetError
        On use, for nu below 0.035.

    Notes
    -----
    A mixture of 20 to 140 Gaussians (42 for nu = 2.5, 59 for 1.5, 138 for 0.5), with an error of at most 1e-13 at any distance.

    Examples
    --------
    >>> Matern(bandwidth=2.0, nu=0.5)([[0.0, 0.0]], [[0.0, 0.0], [6.0, 8.0]]).round(4)  # exp(-10 / 2)
    array([[1.    , 0.0067]])
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_shape(self.nu, "nu", "Matern")

    @property
    def shape(self) -> float:
        return float(self.nu)

    def mixture(self) -> GaussianMixture:
        return matern(float(self.nu))

    def profile(self, squared_distance: np.ndarray) -> np.ndarray:
        s = np.minimum(np.sqrt(2.0 * self.nu * squared_distance), 1e3)  # exp(-1000) is 0, which infinity times it is not
        # Half-integer orders are polynomials times exp(-s)
        if self.nu in (0.5, 1.5, 2.5):
            polynomial = {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s * s / 3.0}[float(self.nu)]
            return np.asarray(polynomial * np.exp(-s))
        if self.nu > _LARGEST_BESSEL:
            return self.mixture()(squared_distance)
        return _bessel(float(self.nu), s)


def _bessel(nu: float, s: np.ndarray) -> np.ndarray:
    """Return the general form, in logarithms, as powers and Bessel functions may leave the range of float64."""
    from scipy.special import gammaln, kve

    # At 0 the power vanishes and the Bessel function is infinite: the series begins with
    near = s < (1e-8 if nu >= 1.0 else 1e-300)  # 1 - s^2 / (4 nu - 4), or 1 - O(s^(2 nu))
    inside = np.where(near, 1.0, s)
    # kve(nu, s) = K_nu(s) e^s has a finite logarithm where K_nu underflows, hence the -s at the end
    value = np.exp((1.0 - nu) * math.log(2.0) - gammaln(nu) + nu * np.log(inside) + np.log(kve(nu, inside)) - inside)
    return np.where(near, 1.0, np.minimum(value, 1.0))


@dataclass(frozen=True, eq=False)
class RationalQuadratic(Radial):
    r"""Define the rational quadratic kernel, a gamma mixture of Gaussians.

    .. math:: k(x, x') = \Bigl(1 + \frac{r^2}{2 \alpha}\Bigr)^{-\alpha}, \qquad r^2 = \sum_j (x_j - x'_j)^2 / \sigma_j^2

    Parameters
    ----------
    bandwidth : float or array of shape (n_features,), default=1.0
        sigma, in the unit of the columns; infinity switches a column off.
    alpha : float, default=1.0
        Smaller values give heavier tails; the limit at infinity is the Gaussian.

    Raises
    ------
    InputError, InputTypeError
        If a parameter is not > 0; on use, if there is not one bandwidth for each column.
    BudgetError
        On use, for alpha below 0.035.

    Notes
    -----
    A mixture of 20 to 140 Gaussians (79 for alpha = 1) for alpha of 0.5 and more, with an error of at most 1e-13 at any distance.

    Examples
    --------
    >>> RationalQuadratic(bandwidth=2.0, alpha=1.0)([[0.0, 0.0]], [[6.0, 8.0]]).round(4)  # 1 / (1 + 25 / 2)
    array([[0.0741]])
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_shape(self.alpha, "alpha", "RationalQuadratic")

    @property
    def shape(self) -> float:
        return float(self.alpha)

    def mixture(self) -> GaussianMixture:
        return rational_quadratic(float(self.alpha))

    def profile(self, squared_distance: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-self.alpha * np.log1p(squared_distance / (2.0 * self.alpha))))


def _check_shape(value: float, name: str, owner: str) -> None:
    check_finite(value, name, owner)
    if value <= 0.0:
        raise InputError(f"The {name!r} parameter of {owner} must be > 0", f"Got {value!r}")

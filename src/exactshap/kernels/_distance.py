"""Define kernels of the distance in each column: Gaussian, Laplacian, Cauchy, chi-squared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from exactshap.kernels._algebra import Kernel
from exactshap.kernels._component import Component
from exactshap.kernels._parameters import LARGEST_RATE, check_positive, inverse_squares, per_column


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

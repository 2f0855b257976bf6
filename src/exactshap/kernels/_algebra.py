"""A small algebra of kernels: each knows its formula and how it expands."""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.errors import InputError, message
from exactshap.kernels._component import Component
from exactshap.kernels._parameters import check_finite, check_positive, check_size, per_column

__all__ = [
    "RBF",
    "Cauchy",
    "Chi2",
    "Constant",
    "Custom",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Product",
    "Sum",
    "White",
]


class Kernel(ABC):
    r"""A kernel that is a sum of products of one-column factors; ``+`` and ``*`` of kernels (or numbers) are kernels.

    .. math:: k(x, x') = \sum_p s_p \prod_j k_{pj}(x_j, x'_j)

    Subclasses define ``expand(n_features)``; calling a kernel gives its matrix.

    Examples
    --------
    >>> kernel = 2.0 * RBF(bandwidth=1.0) + Laplacian(bandwidth=3.0)
    >>> len(kernel.expand(n_features=4))
    2
    >>> kernel([[0.0, 0.0]], [[0.0, 0.0], [1.0, 2.0]]).round(2)
    array([[3.  , 0.53]])
    """

    @abstractmethod
    def expand(self, n_features: int) -> tuple[Component, ...]:
        """Return the components for inputs of ``n_features`` columns."""

    def __add__(self, other: Kernel | float) -> Kernel:
        return Sum((self, _as_kernel(other)))

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product((self, _as_kernel(other)))

    __radd__ = __add__
    __rmul__ = __mul__

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the kernel matrix (n, m) of two sets of rows, by the definition."""
        X = np.asarray(X, float)
        Y = X if Y is None else np.asarray(Y, float)
        return sum((part.matrix(X, Y) for part in self.expand(X.shape[1])), np.zeros((len(X), len(Y))))


def _as_kernel(value: Kernel | float) -> Kernel:
    return value if isinstance(value, Kernel) else Constant(float(value))


@dataclass(frozen=True, eq=False)
class RBF(Kernel):
    r"""The Gaussian kernel.

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

    bandwidth: Any = 1.0

    def __post_init__(self) -> None:
        check_positive(self.bandwidth, "bandwidth", "RBF")

    def expand(self, n_features: int) -> tuple[Component, ...]:
        sigma = per_column(self.bandwidth, n_features, "bandwidth", "RBF")
        return (Component(squared=0.5 / sigma**2),)


@dataclass(frozen=True, eq=False)
class Laplacian(Kernel):
    r"""The Laplacian kernel.

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

    bandwidth: Any = 1.0

    def __post_init__(self) -> None:
        check_positive(self.bandwidth, "bandwidth", "Laplacian")

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return (Component(absolute=1.0 / per_column(self.bandwidth, n_features, "bandwidth", "Laplacian")),)


@dataclass(frozen=True, eq=False)
class Cauchy(Kernel):
    r"""The Cauchy kernel, a product over columns.

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

    bandwidth: Any = 1.0

    def __post_init__(self) -> None:
        check_positive(self.bandwidth, "bandwidth", "Cauchy")

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return (Component(cauchy=(per_column(self.bandwidth, n_features, "bandwidth", "Cauchy"),)),)


@dataclass(frozen=True, eq=False)
class Chi2(Kernel):
    r"""The exponential chi-squared kernel, for columns that are not negative.

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

    gamma: Any = 1.0

    def __post_init__(self) -> None:
        check_positive(self.gamma, "gamma", "Chi2")

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return (Component(chi2=per_column(self.gamma, n_features, "gamma", "Chi2")),)


@dataclass(frozen=True, eq=False)
class Constant(Kernel):
    """A constant kernel k(x, x') = value, not negative; numbers that are added to or multiplied with kernels become one.

    Parameters
    ----------
    value : float, default=1.0

    Raises
    ------
    InputError, InputTypeError
        If the value is not a finite number >= 0.

    Examples
    --------
    >>> (Constant(2.0) * RBF())([[0.0]], [[0.0]])
    array([[2.]])
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        check_finite(self.value, "value", "Constant", low=0.0)

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return (Component(amplitude=float(self.value)),) if self.value != 0 else ()


@dataclass(frozen=True, eq=False)
class White(Kernel):
    """Noise on the training rows only: it is zero between different sets of rows, so it expands to nothing.

    Parameters
    ----------
    noise : float, default=1.0
        Variance, in squared units of the output.

    Raises
    ------
    InputError, InputTypeError
        If the variance is not a finite number >= 0.

    Examples
    --------
    >>> White(0.1).expand(n_features=3)
    ()
    """

    noise: float = 1.0

    def __post_init__(self) -> None:
        check_finite(self.noise, "noise", "White", low=0.0)

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class Linear(Kernel):
    r"""The dot product.

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
    r"""The polynomial kernel, expanded into its C(d + p, p) monomials (C(d + p - 1, p) without offset).

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
            raise InputError(
                message("The 'degree' parameter of Polynomial must be a non-negative integer", f"Got {self.degree!r}")
            )

    def expand(self, n_features: int) -> tuple[Component, ...]:
        degree = int(self.degree)
        check_size(math.comb(n_features + degree, degree), f"(x . x' + c)^{degree} in {n_features} columns")
        sizes = range(degree + 1) if self.offset != 0 else (degree,)
        return tuple(
            self._monomial(columns, n_features)
            for size in sizes
            for columns in itertools.combinations_with_replacement(range(n_features), size)
        )

    def _monomial(self, columns: tuple[int, ...], n_features: int) -> Component:
        powers = np.bincount(np.asarray(columns, int), minlength=n_features)
        rest = int(self.degree) - len(columns)
        ways = math.factorial(int(self.degree)) // math.factorial(rest)
        for power in powers:
            ways //= math.factorial(int(power))
        amplitude = ways * self.gamma ** len(columns) * self.offset**rest
        return Component(amplitude=float(amplitude), powers=powers if len(columns) else None)


@dataclass(frozen=True, eq=False)
class Custom(Kernel):
    """A product of user-given one-column kernels.

    Parameters
    ----------
    functions : sequence of callable or None
        One for each column, ``functions[j](x (n, 1), y (1, m)) -> (n, m)``; None means 1. For models that are pickled,
        functions of a module, not lambdas.

    Raises
    ------
    InputError
        On use, if there is not one entry for each column.

    Examples
    --------
    >>> kernel = Custom([lambda x, y: 1.0 + x * y, None])
    >>> kernel([[2.0, 5.0]], [[3.0, 7.0]])
    array([[7.]])
    """

    functions: Sequence[Callable[[np.ndarray, np.ndarray], np.ndarray] | None]

    def expand(self, n_features: int) -> tuple[Component, ...]:
        if len(self.functions) != n_features:
            raise InputError(
                message(f"Custom needs one function (or None) for each of {n_features} columns", f"Got {len(self.functions)}")
            )
        return (Component(functions=tuple((j, f) for j, f in enumerate(self.functions) if f is not None)),)


@dataclass(frozen=True, eq=False)
class Sum(Kernel):
    """The sum of kernels."""

    parts: tuple[Kernel, ...]

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return tuple(itertools.chain.from_iterable(part.expand(n_features) for part in self.parts))


@dataclass(frozen=True, eq=False)
class Product(Kernel):
    """The product of kernels: every component of one times every component of the other."""

    parts: tuple[Kernel, ...]

    def expand(self, n_features: int) -> tuple[Component, ...]:
        expansions = [part.expand(n_features) for part in self.parts]
        check_size(math.prod(len(expansion) for expansion in expansions), f"a product of {len(self.parts)} kernels")
        return tuple(functools.reduce(Component.__mul__, factors) for factors in itertools.product(*expansions))

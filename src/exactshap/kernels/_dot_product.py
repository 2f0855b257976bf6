"""Define kernels of the dot product: linear and polynomial."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from exactshap.errors import InputError
from exactshap.kernels._algebra import Kernel
from exactshap.kernels._component import Component
from exactshap.kernels._parameters import check_finite, check_size


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

"""Define an algebra of kernels with formulas and expansions; check their parameters."""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from exactshap.errors import BudgetError, InputError, InputTypeError
from exactshap.kernels._component import Component

# Products of one-column factors: this many take seconds for each row.
MAX_COMPONENTS = 200_000
# Times 0 it is 0; times the square of any distance above 1e-149 the exponential of its negative is 0.
LARGEST_RATE = 1e300


def check_positive(value: ArrayLike, name: str, owner: str) -> None:
    """Refuse all but a positive number or one per column; infinity switches a column off."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputTypeError(f"The {name!r} parameter of {owner} must be > 0", f"Got {value!r}") from None
    if array.ndim > 1 or array.size == 0:
        raise InputError(f"The {name!r} parameter of {owner} must be a number or one per column", f"Got shape {array.shape}")
    if not np.all(array > 0):
        raise InputError(f"The {name!r} parameter of {owner} must be > 0", f"Got {value!r}")


def check_finite(value: object, name: str, owner: str, *, low: float = -math.inf) -> None:
    """Refuse all but a finite number of at least ``low``."""
    if not isinstance(value, (int, float, np.number)):
        raise InputTypeError(f"The {name!r} parameter of {owner} must be a number", f"Got {value!r}")
    if not math.isfinite(value) or value < low:
        limit = "" if low == -math.inf else f" >= {low:g}"
        raise InputError(f"The {name!r} parameter of {owner} must be finite{limit and ' and' + limit}", f"Got {value!r}")


def per_column(value: ArrayLike, n_features: int, name: str, owner: str) -> np.ndarray:
    """Return a parameter as one number for each column, shape (n_features,)."""
    array = np.asarray(value, float)
    if array.size not in (1, n_features):
        raise InputError(
            f"The {name!r} parameter of {owner} must be a number or one per column ({n_features})", f"Got shape {array.shape}"
        )
    return np.broadcast_to(array, (n_features,)).copy()


def inverse_squares(sigma: np.ndarray, numerators: ArrayLike = 1.0) -> np.ndarray:
    """Return numerators / sigma^2, finite for any sigma > 0. Equal cells have distance 0."""
    with np.errstate(over="ignore", under="ignore"):
        # The root first: the square of a small sigma would underflow to 0 and divide by it
        return np.asarray(np.minimum((np.sqrt(numerators) / sigma) ** 2, LARGEST_RATE))


def check_size(n_components: int, what: str) -> None:
    """Refuse expansions of too many components."""
    if n_components > MAX_COMPONENTS:
        raise BudgetError(
            f"The expansion of {what} is too large",
            f"It has {n_components:.3g} terms; the limit is {MAX_COMPONENTS:.3g}",
            "Use Explainer(model.predict, background) for sampled values",
        )


class Kernel(ABC):
    r"""Define a kernel as a sum of products of one-column factors.

    .. math:: k(x, x') = \sum_p s_p \prod_j k_{pj}(x_j, x'_j)

    ``+`` and ``*`` of kernels (or numbers) are kernels. Subclasses define ``expand(n_features)``; calling a kernel gives its matrix.

    Examples
    --------
    >>> from exactshap.kernels import RBF, Laplacian
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

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
        """Return the kernel matrix (n, m) of two sets of rows by the definition."""
        X = np.asarray(X, float)
        Y = X if Y is None else np.asarray(Y, float)
        return sum((part.matrix(X, Y) for part in self.expand(X.shape[1])), np.zeros((len(X), len(Y))))


def _as_kernel(value: Kernel | float) -> Kernel:
    return value if isinstance(value, Kernel) else Constant(float(value))


@dataclass(frozen=True, eq=False)
class Constant(Kernel):
    """Define a constant kernel k(x, x') = value >= 0.

    Parameters
    ----------
    value : float, default=1.0

    Raises
    ------
    InputError, InputTypeError
        If the value is not a finite number >= 0.

    Examples
    --------
    >>> from exactshap.kernels import RBF
    >>> (Constant(2.0) * RBF())([[0.0]], [[0.0]])
    array([[2.]])
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        check_finite(self.value, "value", "Constant", low=0.0)

    def expand(self, n_features: int) -> tuple[Component, ...]:
        # Zero times any kernel has no terms at all
        return (Component(amplitude=float(self.value)),) if self.value != 0 else ()


@dataclass(frozen=True, eq=False)
class White(Kernel):
    """Define noise on the training rows only, zero between different rows.

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
class Custom(Kernel):
    """Define a product of the user's one-column kernels.

    Parameters
    ----------
    functions : sequence of callable or None
        One for each column, ``functions[j](x (n, 1), y (1, m)) -> (n, m)``; None means 1. Only functions of a module can be
        pickled, not lambdas.

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
                f"Custom needs one function (or None) for each of {n_features} columns", f"Got {len(self.functions)}"
            )
        return (Component(functions=tuple((j, f) for j, f in enumerate(self.functions) if f is not None)),)


@dataclass(frozen=True, eq=False)
class Sum(Kernel):
    """Add up kernels."""

    parts: tuple[Kernel, ...]

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return tuple(itertools.chain.from_iterable(part.expand(n_features) for part in self.parts))

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
        # By the closed forms of the parts, which for radial kernels are not their expansions
        return functools.reduce(np.add, (part(X, Y) for part in self.parts))


@dataclass(frozen=True, eq=False)
class Product(Kernel):
    """Multiply kernels: every component of one times every component of the other."""

    parts: tuple[Kernel, ...]

    def expand(self, n_features: int) -> tuple[Component, ...]:
        expansions = [part.expand(n_features) for part in self.parts]
        # Checked first, as the numbers of components multiply
        check_size(math.prod(len(expansion) for expansion in expansions), f"a product of {len(self.parts)} kernels")
        return tuple(functools.reduce(Component.__mul__, factors) for factors in itertools.product(*expansions))

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
        return functools.reduce(np.multiply, (part(X, Y) for part in self.parts))

"""Read scikit-learn's kernels: kernel objects (Gaussian processes) and pairwise names."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Foreign
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.kernels._algebra import Constant, Kernel, Product, Sum, White
from exactshap.kernels._component import Component
from exactshap.kernels._families import RBF, Chi2, Laplacian, Linear, Matern, Polynomial, RationalQuadratic

ROUTE = "Use Explainer(model.predict, background), of a classifier its decision_function or predict_proba, for sampled values with standard errors, or a kernel made of RBF, Matern, RationalQuadratic, ConstantKernel, WhiteKernel, DotProduct, +, * and integer powers"


def from_sklearn(kernel: Any, n_features: int, *, gamma: float | None = None, coef0: float = 1.0, degree: float = 3) -> Kernel:
    """Read a kernel of scikit-learn: an object, a name or a function.

    Objects are those of ``sklearn.gaussian_process.kernels``; ``KernelRidge``, ``Nystroem`` and ``SVC`` use names or functions of
    ``sklearn.metrics.pairwise``.

    Parameters
    ----------
    kernel : object, str, callable or Kernel
        "rbf", "laplacian", "linear", "poly", "chi2", ..., scikit-learn's function of that name, or its kernel of a Gaussian process.
    n_features : int
    gamma : float, default=None
        None means 1 / n_features, as in scikit-learn.
    coef0 : float, default=1.0
    degree : float, default=3
        Both for "poly" only.

    Returns
    -------
    kernel : Kernel

    Raises
    ------
    InputError
        If ``gamma`` is negative.
    UnsupportedStructureError
        If the kernel mixes columns in another way (ExpSineSquared, sigmoid, cosine, precomputed, functions of one's own).

    Examples
    --------
    >>> from_sklearn("rbf", 2, gamma=0.5)
    RBF(bandwidth=1.0)
    >>> from sklearn.gaussian_process import kernels as gp
    >>> from_sklearn(2.0 * gp.RBF(1.0) + gp.WhiteKernel(), 2)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.7358]])
    """
    if isinstance(kernel, Kernel):
        return kernel
    # Kernels of Gaussian processes, of scikit-learn or in its form
    if hasattr(kernel, "is_stationary"):
        return _from_object(kernel, n_features)
    name = kernel
    # A function of the same name elsewhere may compute anything
    if callable(kernel) and str(getattr(kernel, "__module__", "")).startswith("sklearn."):
        short = getattr(kernel, "__name__", "").removesuffix("_kernel")
        name = short if short in ("rbf", "laplacian", "linear", "chi2") else kernel
        # scikit-learn's function has another default than the same kernel by name
        gamma = 1.0 if name == "chi2" and gamma is None else gamma
    rate = 1.0 / n_features if gamma is None else float(gamma)
    if name in ("rbf", "laplacian") and not rate >= 0.0:
        raise InputError(f"`gamma` of the kernel {name!r} must be at least 0", f"Got {gamma}", "Pass a positive rate")
    if name == "rbf":
        # gamma = 1 / (2 sigma^2); gamma 0 makes all rows equal
        return RBF(bandwidth=math.sqrt(0.5 / rate)) if rate > 0 else Constant(1.0)
    if name == "laplacian":
        return Laplacian(bandwidth=1.0 / rate) if rate > 0 else Constant(1.0)
    if name == "chi2":
        return Chi2(gamma=1.0 if gamma is None else rate)
    if name == "additive_chi2":
        return _AdditiveChi2()
    if name == "linear":
        return Linear()
    if name in ("poly", "polynomial"):
        if degree != int(degree):
            what = "Only whole degrees of polynomial kernels expand into products"
            raise UnsupportedStructureError(what, f"Got {degree!r}", ROUTE)
        return Polynomial(degree=int(degree), gamma=rate, offset=float(coef0))
    if name == "precomputed":
        what = "The columns of a machine with a precomputed kernel are training rows, and no features"
        do = "Pass its formula with the kernel itself: exactshap.readers.KernelMachine(points, coefficients, kernel, intercept)"
        raise UnsupportedStructureError(what, "Got kernel='precomputed'", do)
    shown = name if isinstance(name, str) else getattr(name, "__name__", repr(name))
    raise UnsupportedStructureError(
        f"The kernel {shown!r} is not a product over features that can be read",
        "Readable: rbf, laplacian, chi2, additive_chi2, linear, poly",
        ROUTE,
    )


def takes_differences(kernel: Foreign) -> bool:
    """Say whether a kernel takes distances as differences; ``rbf_kernel`` takes |x|^2 + |y|^2 - 2 x.y, in which digits cancel."""
    of_processes = hasattr(kernel, "k1") or type(kernel).__module__.startswith("sklearn.gaussian_process")
    return isinstance(kernel, Kernel) or of_processes


def _from_object(kernel: Foreign, n_features: int) -> Kernel:
    """Read a kernel of ``sklearn.gaussian_process.kernels``."""
    name = type(kernel).__name__
    reader = _OBJECTS.get(name)
    # A class of the same name elsewhere may compute anything
    if reader is None or not type(kernel).__module__.startswith("sklearn."):
        what = f"The kernel {kernel} is not a product over features"
        raise UnsupportedStructureError(what, f"{name} mixes the columns", ROUTE)
    return reader(kernel, n_features)


def _power(kernel: Foreign, n_features: int) -> Kernel:
    exponent = float(kernel.exponent)
    if exponent != int(exponent) or exponent < 1:
        raise UnsupportedStructureError("Only whole powers of kernels expand into products", f"Got {kernel}", ROUTE)
    base = _from_object(kernel.kernel, n_features)
    # An integer power is a product with itself, which expands
    return Product((base,) * int(exponent))


_OBJECTS: dict[str, Callable[[Any, int], Kernel]] = {
    "RBF": lambda kernel, n: RBF(bandwidth=kernel.length_scale),
    # The limit of infinite smoothness is the Gaussian
    "Matern": lambda kernel, n: (
        RBF(kernel.length_scale) if kernel.nu == math.inf else Matern(kernel.length_scale, nu=float(kernel.nu))
    ),
    "RationalQuadratic": lambda kernel, n: RationalQuadratic(bandwidth=kernel.length_scale, alpha=float(kernel.alpha)),
    "ConstantKernel": lambda kernel, n: Constant(float(kernel.constant_value)),
    "WhiteKernel": lambda kernel, n: White(float(kernel.noise_level)),
    "DotProduct": lambda kernel, n: Linear(offset=float(kernel.sigma_0) ** 2),
    "Sum": lambda kernel, n: Sum((_from_object(kernel.k1, n), _from_object(kernel.k2, n))),
    "Product": lambda kernel, n: Product((_from_object(kernel.k1, n), _from_object(kernel.k2, n))),
    "Exponentiation": _power,
    "PairwiseKernel": lambda kernel, n: from_sklearn(
        kernel.metric, n, **{"gamma": kernel.gamma, **(kernel.pairwise_kernels_kwargs or {})}
    ),
}


@dataclass(frozen=True, eq=False)
class _AdditiveChi2(Kernel):
    r"""Define the additive chi-squared kernel, for non-negative columns, as a sum of one-column functions.

    .. math:: k(x, x') = -\sum_j \frac{(x_j - x'_j)^2}{x_j + x'_j}, \qquad 0 / 0 = 0
    """

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return tuple(Component(functions=((j, _minus_chi2),)) for j in range(n_features))


def _minus_chi2(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    total = x + y
    ratio: np.ndarray = np.divide((x - y) ** 2, total, out=np.zeros_like(total), where=total != 0.0)
    return -ratio

"""Exact Gaussian processes of gpytorch: the posterior mean, from the model's own cached coefficients where it has them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap.errors import UnsupportedStructureError, message
from exactshap.frames import Table
from exactshap.kernels import RBF, Component, Constant, Kernel, Linear, Product, Sum
from exactshap.readers import Reader, Request, select_outputs
from exactshap.readers.kernel_machines._gaussian_posterior import Process, attach
from exactshap.readers.kernel_machines._kernel_machine import KernelReader
from exactshap.readers.kernel_machines.machine import Expansion, Monomials, expand

__all__ = ["read"]


def read(model: Any, request: Request) -> Reader:
    """Read f(x) = m + sum_i alpha_i k(x, X_i) with alpha the mean cache of the model's own prediction strategy."""
    if model.train_inputs is None or len(model.train_inputs) != 1:
        raise UnsupportedStructureError(
            message("An ExactGP with one training input is needed", f"Got {model.train_inputs and len(model.train_inputs)}")
        )
    select_outputs(("posterior mean",), request.output, owner=type(model).__name__)
    points = model.train_inputs[0].detach().cpu().numpy()
    if points.ndim != 2 or model.train_targets.ndim != 1:
        raise UnsupportedStructureError(
            message("Batched or multi-task Gaussian processes cannot be read", f"Got inputs of shape {points.shape}")
        )
    slopes, constant = _mean_function(model, points.shape[1])
    kernel = _read_kernel(model.covar_module, points.shape[1])
    factor = _cholesky(model, kernel, points)
    alpha = _alpha(model, factor, points @ slopes + constant)
    posterior, request = attach(request, [Process.of(kernel, points, factor)])
    return KernelReader(
        model,
        request,
        _with_mean(expand(kernel, points, alpha[:, None], constant, cancels=True), slopes),
        functools.partial(_predict, model),
        posterior=posterior,
        unit="posterior mean",
        output_names=("posterior mean",),
        epsilon=float(np.finfo(points.dtype).eps),
    )


def _cholesky(model: Any, kernel: Kernel, points: np.ndarray) -> np.ndarray:
    """Return the factor of K + noise in float64, with the noise of the model's own likelihood."""
    noise = np.broadcast_to(_numbers(model.likelihood.noise), (len(points),))
    return np.linalg.cholesky(kernel(points.astype(float)) + np.diag(noise))


def _alpha(model: Any, factor: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the coefficients of the training rows: the model's own, or those it has no need of.

    For a kernel of low rank (LinearKernel) gpytorch's strategy caches coefficients of columns instead.
    """
    from scipy.linalg import cho_solve

    model.eval()
    _predict_array(model, model.train_inputs[0][:1])  # fills the cache
    if type(model.prediction_strategy).__name__ == "DefaultPredictionStrategy":
        return _numbers(model.prediction_strategy.mean_cache)
    return np.asarray(cho_solve((factor, True), _numbers(model.train_targets) - mean))


def _predict_array(model: Any, inputs: Any) -> np.ndarray:
    import gpytorch
    import torch

    model.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        return model(inputs).mean.detach().cpu().numpy().astype(float)


def _predict(model: Any, X: Table) -> np.ndarray:
    import torch

    reference = model.train_inputs[0]
    return _predict_array(model, torch.as_tensor(X.numeric(), dtype=reference.dtype, device=reference.device))


def _mean_function(model: Any, n_features: int) -> tuple[np.ndarray, float]:
    """Return slopes (n_features,) and constant of the prior mean."""
    name, mean = type(model.mean_module).__name__, model.mean_module
    if name == "ZeroMean":
        return np.zeros(n_features), 0.0
    if name == "ConstantMean":
        return np.zeros(n_features), float(mean.constant.detach())
    if name == "LinearMean":
        return _numbers(mean.weights), 0.0 if mean.bias is None else float(mean.bias.detach())
    raise UnsupportedStructureError(
        message(
            f"The mean function {name} cannot be read",
            "ConstantMean, LinearMean and ZeroMean can",
            "Use Explainer(predict, background)",
        )
    )


def _with_mean(expansion: Expansion, slopes: np.ndarray) -> Expansion:
    """Add a linear prior mean, whose terms are monomials."""
    used = np.flatnonzero(slopes)
    if not used.size:
        return expansion
    powers, coefficients = np.eye(len(slopes), dtype=int)[:, used], slopes[None, used]
    parts = [Monomials(powers, coefficients, np.abs(slopes[used]))]
    if expansion.monomials is not None:
        parts.insert(0, expansion.monomials)
    joined = Monomials(
        np.concatenate([part.powers for part in parts], axis=1),
        np.concatenate([part.coefficients for part in parts], axis=1),
        np.concatenate([part.magnitudes for part in parts]),
    )
    return replace(expansion, monomials=joined)


def _read_kernel(kernel: Any, n_features: int) -> Kernel:
    if kernel.active_dims is None:
        return _read_form(kernel, n_features)
    columns = tuple(int(j) for j in kernel.active_dims)
    return _Columns(_read_form(kernel, len(columns)), columns)


def _read_form(kernel: Any, n_features: int) -> Kernel:
    """Read a kernel on the columns it is given: a ScaleKernel takes over the active columns of the kernel inside it."""
    name = type(kernel).__name__
    if name not in _KERNELS:
        raise UnsupportedStructureError(
            message(
                f"The gpytorch kernel {name} is not a product over features that can be read",
                f"Readable: {', '.join(_KERNELS)}",
                "Use Explainer(predict, background) for sampled values with standard errors",
            )
        )
    return _KERNELS[name](kernel, n_features)


def _numbers(tensor: Any) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(float).ravel()


_KERNELS: dict[str, Callable[[Any, int], Kernel]] = {
    "MaternKernel": lambda kernel, n: _matern(kernel, n),
    "RBFKernel": lambda kernel, n: RBF(bandwidth=_numbers(kernel.lengthscale)),
    "ScaleKernel": lambda kernel, n: Constant(_numbers(kernel.outputscale)[0]) * _read_form(kernel.base_kernel, n),
    "ConstantKernel": lambda kernel, n: Constant(_numbers(kernel.constant)[0]),
    "LinearKernel": lambda kernel, n: _linear(kernel),
    "AdditiveKernel": lambda kernel, n: Sum(tuple(_read_kernel(part, n) for part in kernel.kernels)),
    "ProductKernel": lambda kernel, n: Product(tuple(_read_kernel(part, n) for part in kernel.kernels)),
}


def _linear(kernel: Any) -> Kernel:
    variance = _numbers(kernel.variance)
    if variance.size != 1:
        raise UnsupportedStructureError(
            message("A LinearKernel with one variance is readable", f"Got {variance.size} variances")
        )
    return Linear(gamma=variance[0])


def _matern(kernel: Any, n_features: int) -> Kernel:
    if n_features != 1:
        raise UnsupportedStructureError(
            message(
                "A MaternKernel of several columns is not a product over features",
                f"Got {n_features} columns",
                "Multiply kernels of one column each: MaternKernel(active_dims=(0,)) * MaternKernel(active_dims=(1,))",
            )
        )
    return _Matern(float(kernel.nu), float(_numbers(kernel.lengthscale)[0]))


@dataclass(frozen=True)
class _MaternFactor:
    r"""The Matern kernel of one column.

    .. math:: e^{-s},\ (1 + s)\, e^{-s},\ (1 + s + s^2 / 3)\, e^{-s}, \qquad s = \sqrt{2 \nu}\, |x - y| / \ell

    for nu = 1/2, 3/2 and 5/2.
    """

    nu: float
    lengthscale: float
    is_normalised = True

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        s = np.sqrt(2.0 * self.nu) / self.lengthscale * np.abs(x - y)
        polynomial = {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s * s / 3.0}[self.nu]
        return np.asarray(polynomial * np.exp(-s))


class _Matern(Kernel):
    """A Matern kernel on one column."""

    def __init__(self, nu: float, lengthscale: float) -> None:
        self.factor = _MaternFactor(nu, lengthscale)

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return (Component(functions=((0, self.factor),)),)


class _Columns(Kernel):
    """A kernel on some of the columns: factors of the others are 1."""

    def __init__(self, inner: Kernel, columns: tuple[int, ...]) -> None:
        self.inner, self.columns = inner, columns

    def expand(self, n_features: int) -> tuple[Component, ...]:
        return tuple(self._spread(part, n_features) for part in self.inner.expand(len(self.columns)))

    def _spread(self, part: Component, n_features: int) -> Component:
        def widen(values: np.ndarray | None) -> np.ndarray | None:
            if values is None:
                return None
            wide = np.zeros(n_features, values.dtype)
            wide[list(self.columns)] = values
            return wide

        functions = tuple((self.columns[j], function) for j, function in part.functions)
        powers = widen(part.powers)
        return Component(part.amplitude, widen(part.squared), widen(part.absolute), widen(part.chi2), (), powers, functions)

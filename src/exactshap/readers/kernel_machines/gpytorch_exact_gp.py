"""Read exact Gaussian processes of gpytorch and BoTorch, from the model's own cached coefficients if it has them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactshap._runtime.types import Foreign, Model, TableLike
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import Table
from exactshap.kernels import RBF, Component, Constant, Kernel, Linear, Matern, Product, RationalQuadratic, ScaledMixture, Sum
from exactshap.readers import Outputs, Reader, Request
from exactshap.readers.kernel_machines._expansion import Expansion, Monomials, expand
from exactshap.readers.kernel_machines._gaussian_posterior import Process, attach
from exactshap.readers.kernel_machines._kernel_machine import KernelReader

_AS_FUNCTION = "Use explain(lambda rows: model.posterior(torch.tensor(rows)).mean.detach().numpy()[:, 0], X, background)"


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = m + sum_i alpha_i k(x, X_i). alpha is the mean cache of the model's own prediction strategy."""
    if model.train_inputs is None or len(model.train_inputs) != 1:
        raise UnsupportedStructureError(
            "An ExactGP with one training input is needed", f"Got {model.train_inputs and len(model.train_inputs)}"
        )
    outputs = Outputs.of(("posterior mean",), request.output, owner=type(model).__name__)
    points = model.train_inputs[0].detach().cpu().numpy()
    if points.ndim != 2 or model.train_targets.ndim != 1:
        raise UnsupportedStructureError(
            "Batched or multi-task Gaussian processes cannot be read", f"Got inputs of shape {points.shape}"
        )
    units = _units(model, points.shape[1])
    slopes, constant = _mean_function(model, points.shape[1])
    # In the user's units from here on: lengthscales take the columns' widths, the kernel the square of the target's scale.
    kernel = Constant(units.target_scale**2) * _read_kernel(model.covar_module, points.shape[1], units.widths)
    # The kernel has t^2, the prediction needs t: one of them is divided out of the coefficients.
    alpha = _alpha(model, points @ slopes + constant) / units.target_scale
    points, slopes, constant = units.points(points), *units.mean(slopes, constant)
    posterior, request = attach(request, [Process.of(kernel, points, _cholesky(model, kernel, points, units.target_scale))])
    return KernelReader(
        model,
        request,
        _with_mean(expand(kernel, points, alpha[:, None], constant, cancels=True), slopes),
        outputs,
        unit="posterior mean",
        predict=functools.partial(_predict, model),
        posterior=posterior,
        epsilon=float(np.finfo(points.dtype).eps),
    )


@dataclass(frozen=True)
class _Units:
    r"""Convert to the user's units where a model scales inputs and targets.

    .. math:: f(x) = s + t\, g\bigl((x - o) / w\bigr)

    for the process :math:`g` that was fitted: offsets and widths of the columns, shift and scale of the target.
    """

    offsets: np.ndarray
    widths: np.ndarray
    target_shift: float = 0.0
    target_scale: float = 1.0

    def points(self, inputs: np.ndarray) -> np.ndarray:
        return inputs if not self.offsets.any() and (self.widths == 1.0).all() else inputs * self.widths + self.offsets

    def mean(self, slopes: np.ndarray, constant: float) -> tuple[np.ndarray, float]:
        # s + t (slopes (x - o) / w + constant), written as slopes and a constant of x itself.
        inner = slopes / self.widths
        return self.target_scale * inner, self.target_shift + self.target_scale * (constant - float(inner @ self.offsets))


def _units(model: Model, n_features: int) -> _Units:
    """Return the units of a model: only scalings and shifts of columns, and of the target, keep the kernel a product."""
    offsets, widths, shift, scale = np.zeros(n_features), np.ones(n_features), 0.0, 1.0
    inputs, outcome = getattr(model, "input_transform", None), getattr(model, "outcome_transform", None)
    if inputs is not None:
        if type(inputs).__name__ not in ("Normalize", "InputStandardize", "AffineInputTransform") or getattr(
            inputs, "reverse", False
        ):
            raise _no_units("input", inputs, "Normalize and InputStandardize")
        offsets = np.broadcast_to(_numbers(inputs.offset), (n_features,))
        widths = np.broadcast_to(_numbers(inputs.coefficient), (n_features,))
    if outcome is not None:
        if type(outcome).__name__ != "Standardize":
            raise _no_units("outcome", outcome, "Standardize")
        shift, scale = float(_numbers(outcome.means)[0]), float(_numbers(outcome.stdvs)[0])
    return _Units(offsets, widths, shift, scale)


def _no_units(what: str, transform: Foreign, known: str) -> UnsupportedStructureError:
    name = type(transform).__name__
    return UnsupportedStructureError(f"The {what} transform {name} cannot be read", f"{known} can", _AS_FUNCTION)


def _cholesky(model: Model, kernel: Kernel, points: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Return the float64 factor of K + noise. The noise is that of the model's own likelihood, in the units of the kernel."""
    noise = scale**2 * np.broadcast_to(_numbers(model.likelihood.noise), (len(points),))
    return np.linalg.cholesky(kernel(points.astype(float)) + np.diag(noise))


def _alpha(model: Model, mean: np.ndarray) -> np.ndarray:
    """Return the coefficients of the training rows, computed if the model has none.

    For a kernel of low rank (LinearKernel) gpytorch's strategy caches coefficients of columns instead.
    """
    from scipy.linalg import cho_solve

    model.eval()
    # A prediction fills the cache.
    _predict_array(model, model.train_inputs[0][:1])
    if type(model.prediction_strategy).__name__ == "DefaultPredictionStrategy":
        return _numbers(model.prediction_strategy.mean_cache)
    points = model.train_inputs[0].detach().cpu().numpy()
    factor = _cholesky(model, _read_kernel(model.covar_module, points.shape[1], np.ones(points.shape[1])), points)
    return np.asarray(cho_solve((factor, True), _numbers(model.train_targets) - mean))


def _predict_array(model: Model, inputs: TableLike) -> np.ndarray:
    import gpytorch
    import torch

    model.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        return model(inputs).mean.detach().cpu().numpy().astype(float)


def _predict(model: Model, X: Table) -> np.ndarray:
    import torch

    reference = model.train_inputs[0]
    inputs = torch.as_tensor(X.numeric(), dtype=reference.dtype, device=reference.device)
    if not callable(getattr(model, "posterior", None)):
        return _predict_array(model, inputs)
    # BoTorch's documented call is in the user's units
    with torch.no_grad():
        return model.posterior(inputs).mean[:, 0].detach().cpu().numpy().astype(float)  # type: ignore[no-any-return]


def _mean_function(model: Model, n_features: int) -> tuple[np.ndarray, float]:
    """Return slopes (n_features,) and constant of the prior mean."""
    name, mean = type(model.mean_module).__name__, model.mean_module
    if name == "ZeroMean":
        return np.zeros(n_features), 0.0
    if name == "ConstantMean":
        return np.zeros(n_features), float(mean.constant.detach())
    if name == "LinearMean":
        return _numbers(mean.weights), 0.0 if mean.bias is None else float(mean.bias.detach())
    raise UnsupportedStructureError(
        f"The mean function {name} cannot be read",
        "ConstantMean, LinearMean and ZeroMean can",
        "Use Explainer(predict, background)",
    )


def _with_mean(expansion: Expansion, slopes: np.ndarray) -> Expansion:
    """Add a linear prior mean as monomials."""
    used = np.flatnonzero(slopes)
    if not used.size:
        return expansion
    # C-contiguous: the kernels take factors in the layout of the powers
    powers, coefficients = np.ascontiguousarray(np.eye(len(slopes), dtype=int)[:, used]), slopes[None, used]
    own = Monomials(powers, coefficients, np.abs(slopes[used]))
    joined = Monomials.join([own] if expansion.monomials is None else [expansion.monomials, own])
    return replace(expansion, monomials=joined)


def _read_kernel(kernel: Foreign, n_features: int, widths: np.ndarray) -> Kernel:
    if kernel.active_dims is None:
        return _read_form(kernel, n_features, widths)
    columns = tuple(int(j) for j in kernel.active_dims)
    return _Columns(_read_form(kernel, len(columns), widths[list(columns)]), columns)


def _read_form(kernel: Foreign, n_features: int, widths: np.ndarray) -> Kernel:
    """Read a kernel on the columns it is given: a ScaleKernel takes over the active columns of the kernel inside it.

    ``widths`` are the columns' units: a distance in them is that many of the user's.
    """
    name = type(kernel).__name__
    if name not in _KERNELS:
        raise UnsupportedStructureError(
            f"The gpytorch kernel {name} is not a product over features that can be read",
            f"Readable: {', '.join(_KERNELS)}",
            "Use Explainer(predict, background) for sampled values with standard errors",
        )
    return _KERNELS[name](kernel, n_features, widths)


def _numbers(tensor: Foreign) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(float).ravel()


_KERNELS: dict[str, Callable[[Any, int, np.ndarray], Kernel]] = {
    "MaternKernel": lambda kernel, n, widths: Matern(bandwidth=_numbers(kernel.lengthscale) * widths, nu=float(kernel.nu)),
    "RQKernel": lambda kernel, n, widths: RationalQuadratic(
        bandwidth=_numbers(kernel.lengthscale) * widths, alpha=float(_numbers(kernel.alpha)[0])
    ),
    "RBFKernel": lambda kernel, n, widths: RBF(bandwidth=_numbers(kernel.lengthscale) * widths),
    "ScaleKernel": lambda kernel, n, widths: (
        Constant(_numbers(kernel.outputscale)[0]) * _read_form(kernel.base_kernel, n, widths)
    ),
    "ConstantKernel": lambda kernel, n, widths: Constant(_numbers(kernel.constant)[0]),
    "LinearKernel": lambda kernel, n, widths: _linear(kernel, widths),
    "AdditiveKernel": lambda kernel, n, widths: Sum(tuple(_read_kernel(part, n, widths) for part in kernel.kernels)),
    "ProductKernel": lambda kernel, n, widths: Product(tuple(_read_kernel(part, n, widths) for part in kernel.kernels)),
}


def _linear(kernel: Foreign, widths: np.ndarray) -> Kernel:
    variance = _numbers(kernel.variance)
    if variance.size != 1:
        raise UnsupportedStructureError("A LinearKernel with one variance is readable", f"Got {variance.size} variances")
    if not (widths == 1.0).all():
        raise UnsupportedStructureError(
            "A LinearKernel behind an input transform cannot be read", "Its origin moves with the inputs", _AS_FUNCTION
        )
    return Linear(gamma=variance[0])


class _Columns(Kernel):
    """Apply a kernel to some of the columns; factors of the others are 1."""

    def __init__(self, inner: Kernel, columns: tuple[int, ...]) -> None:
        self.inner, self.columns = inner, columns

    def expand(self, n_features: int) -> tuple[Component, ...]:
        # By identity: parts of one mixture must still share one object when they are spread to more columns.
        wide: dict[int, ScaledMixture | None] = {id(None): None}
        parts = self.inner.expand(len(self.columns))
        for one in (part.member_of for part in parts):
            if one is not None and id(one) not in wide:
                # An infinite bandwidth makes a factor 1: columns of other kernels do not count here.
                sigma = np.full(n_features, np.inf)
                sigma[list(self.columns)] = one.sigma
                wide[id(one)] = ScaledMixture(one.mixture, sigma, one.profile)
        return tuple(replace(self._spread(part, n_features), member_of=wide[id(part.member_of)]) for part in parts)

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
        columns = list(self.columns)
        return self.inner(np.asarray(X)[:, columns], None if Y is None else np.asarray(Y)[:, columns])

    def _spread(self, part: Component, n_features: int) -> Component:
        def widen(values: np.ndarray | None) -> np.ndarray | None:
            if values is None:
                return None
            wide = np.zeros(n_features, values.dtype)
            wide[list(self.columns)] = values
            return wide

        return replace(
            part,
            squared=widen(part.squared),
            absolute=widen(part.absolute),
            chi2=widen(part.chi2),
            powers=widen(part.powers),
            functions=tuple((self.columns[j], function) for j, function in part.functions),
        )

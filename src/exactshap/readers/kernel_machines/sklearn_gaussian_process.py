"""Read Gaussian processes of scikit-learn: the posterior mean of regressors, the latent mean of classifiers."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

from exactshap._runtime.types import Foreign, Model
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import Table
from exactshap.kernels import Component, Kernel, Matern, Product, Sum, from_sklearn
from exactshap.readers import Outputs, Reader, Request, require_fitted, target_names
from exactshap.readers.kernel_machines._expansion import Expansion, expand, merge
from exactshap.readers.kernel_machines._gaussian_posterior import Process, attach
from exactshap.readers.kernel_machines._kernel_machine import KernelReader, with_outer_response

# Smoothness from which on scikit-learn's Matern kernel is 1 at distance 0 to a few rounding units
SMOOTH = 0.5


def read(model: Model, request: Request) -> Reader:
    """Read a Gaussian process with a kernel made of products over columns."""
    return _classifier(model, request) if hasattr(model, "predict_proba") else _regressor(model, request)


@with_outer_response
def _regressor(model: Model, request: Request) -> Reader:
    """Read f(x) = y_mean + y_std sum_i alpha_i k(x, X_i): ``normalize_y=True`` scales the expansion."""
    require_fitted(model, "alpha_")  # scikit-learn lets it predict its prior
    points = np.asarray(model.X_train_, float)
    alpha = np.asarray(model.alpha_, float)
    multiple = alpha.ndim == 2
    alpha = alpha if multiple else alpha[:, None]
    # what normalize_y=True took off the targets has no public name
    scale, shift = np.broadcast_to(model._y_train_std, alpha.shape[1:]), np.broadcast_to(model._y_train_mean, alpha.shape[1:])
    names = target_names(alpha.shape[1])
    outputs = Outputs.of(names, request.output, owner="GaussianProcessRegressor", multiple=multiple)
    kernel = from_sklearn(model.kernel_, points.shape[1])
    chosen, call = outputs.numbers, outputs.call("predict")
    posterior, request = attach(request, [Process.of(kernel, points, model.L_, scale[chosen] ** 2)])
    return KernelReader(
        model,
        request,
        expand(_as_predicted(kernel), points, (alpha * scale)[:, chosen], shift[chosen]),
        outputs,
        unit="target",
        own_call=call,
        predict=functools.partial(call.in_double, model),
        posterior=posterior,
    )


def _classifier(model: Model, request: Request) -> Reader:
    """Read the latent mean f(x) = sum_i (y_i - pi_i) k(x, X_i) of the Laplace approximation, per binary problem."""
    parts = _binary_problems(model)
    names = _latent_names(model)
    if len(names) != len(parts):
        raise UnsupportedStructureError(
            "This GaussianProcessClassifier has an unknown layout", f"Got {len(parts)} binary problems"
        )
    expansion = merge([_latent_expansion(part) for part in parts])
    outputs = Outputs.of(names, request.output, owner="GaussianProcessClassifier")
    posterior, request = attach(request, [_latent_process(parts[k]) for k in outputs.numbers])
    of_class = f" of class {names[0]}" if len(names) == 1 else ""
    return KernelReader(
        model,
        request,
        expansion.outputs(outputs.numbers),
        outputs,
        unit=f"latent mean{of_class} (before the link and the averaging over the posterior)",
        predict=functools.partial(_latent, model, outputs),
        posterior=posterior,
    )


def _binary_problems(model: Model) -> list[Any]:
    return list(getattr(model.base_estimator_, "estimators_", [model.base_estimator_]))


def _latent_names(model: Model) -> tuple[str, ...]:
    classes = [str(c) for c in model.classes_]
    if len(classes) == 2:
        return (classes[1],)
    if model.multi_class == "one_vs_one":
        return tuple(f"{first} vs {second}" for first, second in itertools.combinations(classes, 2))
    return tuple(classes)


def _latent_expansion(part: Foreign) -> Expansion:
    points = np.asarray(part.X_train_, float)
    return expand(_as_predicted(from_sklearn(part.kernel_, points.shape[1])), points, (part.y_train_ - part.pi_)[:, None])


def _as_predicted(kernel: Kernel) -> Kernel:
    """Return a kernel with scikit-learn's own value between equal rows.

    That is below 1 for a Matern of small nu, as scikit-learn puts a rounding unit in place of distance 0: with nu = 0.1 the value is 0.9993, so that rows of the training set are predicted off
    their neighbours. The covariance of the process has none of it.
    """
    if isinstance(kernel, Sum | Product):
        return replace(kernel, parts=tuple(map(_as_predicted, kernel.parts)))
    if not isinstance(kernel, Matern) or kernel.nu >= SMOOTH:
        return kernel
    gap = float(SklearnMatern(nu=float(kernel.nu))(np.zeros((1, 1)), np.zeros((1, 1)))[0, 0]) - 1.0
    return Sum((kernel, _EqualRows(kernel.bandwidth, gap)))


@dataclass(frozen=True, eq=False)
class _EqualRows(Kernel):
    """Represent a kernel that is constant between equal rows, else 0."""

    bandwidth: ArrayLike
    value: float

    def expand(self, n_features: int) -> tuple[Component, ...]:
        sigma = np.broadcast_to(np.asarray(self.bandwidth, float), (n_features,))
        functions = tuple((j, _EqualCells(float(scale))) for j, scale in enumerate(sigma))
        return (Component(amplitude=self.value, functions=functions),)


@dataclass(frozen=True)
class _EqualCells:
    """Return 1 if the squared distance of two cells is 0; a class of this module, so that readers pickle."""

    sigma: float
    is_normalised = True

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with np.errstate(under="ignore"):
            return ((x / self.sigma - y / self.sigma) ** 2 == 0.0).astype(float)


def _latent_process(part: Foreign) -> Process:
    """Read the Laplace approximation: W^-1 is the noise, and its B = I + W^1/2 K W^1/2 = L L' gives K + W^-1 = L' L'^T."""
    points = np.asarray(part.X_train_, float)
    # A saturated probability has W = 0: infinite noise, no information
    roots = np.maximum(part.W_sr_, 1e-100)
    return Process.of(from_sklearn(part.kernel_, points.shape[1]), points, part.L_ / roots[:, None])


def _latent(model: Model, outputs: Outputs, X: Table) -> np.ndarray:
    """Return the latent mean from the model's kernels and modes. scikit-learn has no call for it."""
    values, parts = X.numeric(), _binary_problems(model)
    modes = (parts[k] for k in outputs.numbers)
    columns = [part.kernel_(values, part.X_train_) @ (part.y_train_ - part.pi_) for part in modes]
    return columns[0] if outputs.single else np.stack(columns, axis=1)

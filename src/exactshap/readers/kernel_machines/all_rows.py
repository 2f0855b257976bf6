"""Read machines that keep every training row: kernel ridge regression, survival machines of scikit-survival, densities."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.kernels import RBF, from_sklearn, takes_differences
from exactshap.readers import Reader, Request, require_fitted, target_names
from exactshap.readers.kernel_machines._kernel_machine import read_arrays, with_outer_response

# Settings of a density that is a sum of products.
_READ = {"kernel": "gaussian", "metric": "euclidean", "atol": 0, "rtol": 0}


@with_outer_response
def read_kernel_ridge(model: Model, request: Request) -> Reader:
    """Read f(x) = sum_i dual_coef_i k(x, X_i), without intercept."""
    dual = np.asarray(model.dual_coef_, float)
    names = target_names(1 if dual.ndim == 1 else dual.shape[1])
    precision = np.float32 if model.X_fit_.dtype == np.float32 else float  # float32 rows meet in float32
    return _read(model, request, model.X_fit_, dual, names=names, unit="target", epsilon=float(np.finfo(precision).eps))


def read_survival(model: Model, request: Request) -> Reader:
    """Read a score of ranks, or the log of a time. Ranks have -sum_i coef_i k(x, X_i)."""
    require_fitted(model, "coef_", "n_features_in_")
    timed = getattr(model, "rank_ratio", 1) < 1
    sign = 1.0 if timed else -1.0
    points = np.asarray(model.fit_X_ if hasattr(model, "fit_X_") else model.X_fit_, float)
    intercept = sign * np.ravel(np.asarray(getattr(model, "intercept_", 0.0), float))
    unit = "log of the survival time" if timed else "risk score: high is early"
    dual, link = sign * np.ravel(model.coef_), np.log if timed else None
    return _read(model, request, points, dual, intercept, names=("output",), unit=unit, link=link)


def _read(model: Model, request: Request, points: np.ndarray, dual: np.ndarray, *intercept: np.ndarray, **facts: Any) -> Reader:
    """Read a machine with scikit-learn's settings of its kernel."""
    # Before the kernel, which may have no product form
    request.refuse_outputs(facts["names"], owner=type(model).__name__)
    named = {"gamma": model.gamma, "coef0": model.coef0, "degree": model.degree}
    # As scikit-learn passes them on
    parameters = (model.kernel_params or {}) if callable(model.kernel) else named
    kernel = from_sklearn(model.kernel, points.shape[1], **parameters)
    cancels = not takes_differences(model.kernel)
    return read_arrays(model, request, kernel, points, dual, *intercept, cancels=cancels, **facts)


def read_density(model: Model, request: Request) -> Reader:
    r"""Read the density; the model returns its logarithm.

    .. math:: p(x) = \sum_i \frac{w_i}{\sum_l w_l}\, (2 \pi h^2)^{-d/2} \exp\left(-\frac{\lVert x - x_i \rVert^2}{2 h^2}\right)
    """
    settings = {name: getattr(model, name) for name in _READ}
    if settings != _READ:
        name = next(name for name in _READ if settings[name] != _READ[name])
        do = "Explain its logarithm as a function: explain(model.score_samples, X, background), exact up to 13 players"
        what = "KernelDensity can be read only where its kernel is a product and nothing is cut off"
        raise UnsupportedStructureError(what, f"Got {name}={settings[name]!r}", do)
    rows, bandwidth = np.asarray(model.tree_.data, float), float(model.bandwidth_)
    weights = np.ones(len(rows)) if model.tree_.sample_weight is None else np.asarray(model.tree_.sample_weight, float)
    height = (2.0 * np.pi * bandwidth**2) ** (-0.5 * rows.shape[1])
    dual, names = weights / weights.sum() * height, ("density",)
    return read_arrays(
        model, request, RBF(bandwidth=bandwidth), rows, dual, names=names, unit="density", method="score_samples", link=np.exp
    )

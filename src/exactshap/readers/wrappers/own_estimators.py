"""The estimators of this package, read by the name of their class."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap.errors import UnsupportedModelError, message
from exactshap.frames import Table
from exactshap.readers import Reader, Request, fitted_names, require_fitted, select_outputs
from exactshap.readers.kernel_machines import KernelReader, expand

__all__ = ["read"]


def read(model: Any, request: Request) -> Reader:
    """Read an estimator of ``exactshap.estimators``."""
    for cls in type(model).__mro__:
        if cls.__name__ in _READERS:
            return _READERS[cls.__name__](model, request)
    raise UnsupportedModelError(
        message(
            f"No exact reader for `{type(model).__module__}.{type(model).__qualname__}`",
            f"Known: {', '.join(sorted(_READERS))}",
            "Use Explainer(model.predict, background) for sampled values with standard errors",
        )
    )


def _shapley_ridge(model: Any, request: Request) -> Reader:
    """Read f(x) = sum_i a_i k(X_i, x)."""
    require_fitted(model, "dual_coef_")
    names = tuple(f"target {k}" for k in range(model.dual_coef_.shape[1])) if model.dual_coef_.ndim == 2 else ("target",)
    return _machine(model, request, names, "target", model.predict)


def _shapley_classifier(model: Any, request: Request) -> Reader:
    """Read the decision function: the log-odds of the second class, or one softmax score for each class."""
    require_fitted(model, "dual_coef_")
    classes = tuple(str(c) for c in model.classes_)
    if model.dual_coef_.ndim == 1:
        return _machine(model, request, classes[1:], "log-odds", model.decision_function)
    return _machine(model, request, classes, "softmax score", model.decision_function)


def _machine(model: Any, request: Request, names: tuple[str, ...], unit: str, predict: Callable[[Any], Any]) -> Reader:
    multiple = model.dual_coef_.ndim == 2
    dual = model.dual_coef_ if multiple else model.dual_coef_[:, None]
    chosen, single = select_outputs(names, request.output, owner=type(model).__name__)
    single = single or not multiple
    return KernelReader(
        model,
        request,
        expand(model.kernel_, model.X_fit_, dual[:, chosen]),
        functools.partial(_predict, predict, chosen, single),
        feature_names=fitted_names(model),
        output_names=tuple(names[k] for k in chosen),
        unit=unit,
        single_output=single,
    )


def _predict(predict: Callable[[Any], Any], chosen: list[int], single: bool, X: Table) -> np.ndarray:
    values = np.asarray(predict(X.native), float).reshape(X.n_rows, -1)[:, chosen]
    return values[:, 0] if single else values


def _elsewhere(module: str) -> Callable[[Any, Request], Reader]:
    """Return a reader that lives in its own module, imported on first sight."""
    return lambda model, request: importlib.import_module(module).read(model, request)


_READERS: dict[str, Callable[[Any, Request], Reader]] = {
    "ShapleyKernelClassifier": _shapley_classifier,
    "ShapleyKernelRidge": _shapley_ridge,
    "RKHSWeightingCV": _elsewhere("exactshap.readers.additive.rkhs_weighting"),
    "RKHSWeightingRegressor": _elsewhere("exactshap.readers.additive.rkhs_weighting"),
}

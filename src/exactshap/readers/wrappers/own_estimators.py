"""Read the estimators of this package, by the name of their class."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedModelError
from exactshap.frames import Table
from exactshap.games import ProductGame
from exactshap.readers import (
    Reader,
    Request,
    Rounding,
    Traits,
    fitted_names,
    outputs_of,
    select_outputs,
)
from exactshap.readers.kernel_machines import KernelReader, expand
from exactshap.semivalues import Semivalue
from exactshap.solvers import Posterior, Solution


def read(model: Model, request: Request) -> Reader:
    """Read an estimator of ``exactshap.estimators``."""
    # By name along the MRO, so that subclasses are read and no estimator is imported before it is needed.
    for cls in type(model).__mro__:
        if cls.__name__ in _READERS:
            return _READERS[cls.__name__](model, request)
    raise UnsupportedModelError(
        f"No exact reader for `{type(model).__module__}.{type(model).__qualname__}`",
        f"Known: {', '.join(sorted(_READERS))}",
        "Use Explainer(model.predict, background) for sampled values with standard errors",
    )


def _shapley_ridge(model: Model, request: Request) -> Reader:
    """Read f(x) = sum_i a_i k(X_i, x)."""
    names = tuple(f"target {k}" for k in range(model.dual_coef_.shape[1])) if model.dual_coef_.ndim == 2 else ("target",)
    return _machine(model, request, names, "target", model.predict)


def _shapley_classifier(model: Model, request: Request) -> Reader:
    """Read the decision function: the log-odds of the second class, or one score before the softmax for each class."""
    classes = tuple(str(c) for c in model.classes_)
    if model.dual_coef_.ndim == 1:
        return _machine(model, request, classes[1:], "log-odds", model.decision_function)
    return _machine(model, request, classes, "score before the softmax", model.decision_function)


def _machine(model: Model, request: Request, names: tuple[str, ...], unit: str, predict: Callable[[Any], Any]) -> Reader:
    multiple = model.dual_coef_.ndim == 2
    dual = model.dual_coef_ if multiple else model.dual_coef_[:, None]
    chosen, single = select_outputs(names, request.output, owner=type(model).__name__)
    single = single or not multiple
    return KernelReader(
        model,
        request,
        expand(model.kernel_, model.X_fit_, dual[:, chosen], getattr(model, "intercept_", 0.0)),
        functools.partial(_predict, predict, chosen, single),
        feature_names=fitted_names(model),
        output_names=tuple(names[k] for k in chosen),
        unit=unit,
        single_output=single,
    )


def _predict(predict: Callable[[Any], Any], chosen: list[int], single: bool, X: Table) -> np.ndarray:
    return outputs_of(chosen, single, np.asarray(predict(X.native), float))


def _fanova(model: Model, request: Request) -> Reader:
    """Read f(x) = b + sum_i a_i prod_j (1 + c k~_j(X_ij, x_j)).

    By default its components are read, with a background the kernel machine.
    """
    if request.background is None and request.value_function in ("auto", "functional"):
        return FanovaReader(model, request)
    return _machine(model, request, ("target",), "target", model.predict)


class FanovaReader(Reader):
    """Explain v(S), the sum of all components of columns in S."""

    def __init__(self, model: Model, request: Request) -> None:
        request.refuse_options(owner=type(model).__name__)
        self.traits = Traits.of(
            model,
            request,
            fitted_names=fitted_names(model),
            n_columns=model.X_fit_.shape[1],
            value_functions=("functional",),
            default="functional",
            output_names=("target",),
            unit="target",
            rounding=Rounding(float(len(model.dual_coef_))),
        )

    def predict(self, X: Table) -> np.ndarray:
        return np.asarray(self.traits.model.predict(X.native), float)

    def game(self, X: Table) -> ProductGame:
        factors = self.traits.model.factors(X.numeric())
        inside = np.stack([factors[list(columns)].prod(axis=0) for columns in self.traits.players], axis=2)
        return ProductGame(self.traits.model.dual_coef_, inside, constant=self.traits.model.intercept_)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        solution = super().solve(X, semivalue, order)
        # The estimator's covariance is of Shapley values of single columns.
        if semivalue.name != "shapley" or order != 1 or any(len(columns) != 1 for columns in self.traits.players):
            return solution
        own = self.traits.model.shapley_values(X.numeric())
        return replace(solution, posterior=Posterior(own.covariance, own.covariance_residual))

    def memory(self, n_rows: int, order: int) -> float:
        return 8.0 * 6 * n_rows * len(self.traits.model.dual_coef_) * self.traits.n_features + super().memory(n_rows, order)


def _elsewhere(module: str) -> Callable[[Any, Request], Reader]:
    """Return a reader that is imported on first use."""
    return lambda model, request: importlib.import_module(module).read(model, request)


_READERS: dict[str, Callable[[Any, Request], Reader]] = {
    "FanovaGaussianProcess": _fanova,
    "ShapleyKernelClassifier": _shapley_classifier,
    "ShapleyKernelRidge": _shapley_ridge,
    "RKHSWeightingCV": _elsewhere("exactshap.readers.additive.rkhs_weighting"),
    "RKHSWeightingClassifier": _elsewhere("exactshap.readers.additive.rkhs_weighting"),
    "RKHSWeightingRegressor": _elsewhere("exactshap.readers.additive.rkhs_weighting"),
}

"""Read kernel machines of this package's own estimators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.frames import Table
from exactshap.games import ProductGame
from exactshap.readers import OwnCall, Reader, Request, Rounding, Traits, fitted_names, score_names, target_names
from exactshap.readers.kernel_machines import read_arrays
from exactshap.semivalues import Semivalue
from exactshap.solvers import Posterior, Solution


def read_shapley_ridge(model: Model, request: Request) -> Reader:
    """Read f(x) = sum_i a_i k(X_i, x): the target, the log-odds of the second class, or one score before the softmax for each class."""
    multiple = model.dual_coef_.ndim == 2
    if not hasattr(model, "classes_"):
        names = target_names(model.dual_coef_.shape[1] if multiple else 1)
        return _machine(model, request, names, "target", "predict")
    names = score_names(model.classes_)
    unit = "score before the softmax" if multiple else f"log-odds of class {names[0]}"
    return _machine(model, request, names, unit, "decision_function")


def _machine(model: Model, request: Request, names: tuple[str, ...], unit: str, method: str) -> Reader:
    arrays = model.kernel_, model.X_fit_, model.dual_coef_, getattr(model, "intercept_", 0.0)
    return read_arrays(model, request, *arrays, names=names, unit=unit, method=method)


def read_fanova(model: Model, request: Request) -> Reader:
    """Read f(x) = b + sum_i a_i prod_j (1 + c k~_j(X_ij, x_j)): its components, with a background the kernel machine."""
    if request.background is None and request.value_function in ("auto", "functional"):
        return FanovaReader(model, request)
    return _machine(model, request, ("target",), "target", "predict")


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
            own_call=OwnCall("predict"),
        )

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

"""Least squares of RKHS weightings from tables in parts: the normal equations add up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, validate_data

from exactshap.estimators.rkhs_weighting._instantiation import evaluation_constant, largest_norms
from exactshap.estimators.rkhs_weighting._problem import WeightingProblem, moments_of

__all__ = ["PartialFit"]


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Phi' W Phi, Phi' W y and Phi' W 1, the sums of w and of w y, and the largest norms of any k columns of a row."""

    left: np.ndarray
    right: np.ndarray
    sums: np.ndarray
    total: float
    target: float
    largest: np.ndarray

    @classmethod
    def of(cls, problem: WeightingProblem) -> NormalEquations:
        target = float(problem.weights @ problem.y)
        return cls(*moments_of(problem), problem.total, target, largest_norms(problem.X))

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            left=self.left + other.left,
            right=self.right + other.right,
            sums=self.sums + other.sums,
            total=self.total + other.total,
            target=self.target + other.target,
            largest=np.maximum(self.largest, other.largest),
        )

    def solve(self, problem: WeightingProblem, *, centred: bool) -> tuple[np.ndarray, float]:
        """Return the coefficients and the intercept: the mean of y, and then of what is left, where that is asked for."""
        center = self.target / self.total if centred else 0.0
        a = problem.solve(self.left, self.right - center * self.sums, self.total)
        rest = (self.target - center * self.total - self.sums @ a) / self.total if centred else 0.0
        return a, center + float(rest)


def _adds_up(model: Any) -> bool:
    if model.solver == "least_squares" and not hasattr(model, "cv"):
        return True
    raise AttributeError("partial_fit is for solver='least_squares' and a penalty that is given: its normal equations add up")


class PartialFit:
    """What gives a weighting ``partial_fit``."""

    @available_if(_adds_up)
    def partial_fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Add rows to those of earlier calls, and fit to all of them; ``fit`` starts anew.

        The first call draws parameters and subsets as ``fit`` does with the same ``random_state``. The model is that of ``fit`` on all
        rows up to rounding, whatever the cuts; no row is kept, T^2 numbers are.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), default=None
        """
        begins = not hasattr(self, "_equations")
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64, reset=begins)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if begins:
            self._check_parameters()
            self._drawn = self._drawn_anew()
        base, distribution, groups, rng = self._drawn
        problem = WeightingProblem(groups, X, y, weights, self._first_alpha(), self.ridge, rng)
        part = NormalEquations.of(problem)
        self._equations = part if begins else self._equations + part
        coefficients, self.intercept_ = self._equations.solve(replace(problem, X=X[:0]), centred=self.fit_intercept)
        self._keep(groups, coefficients)
        largest, d = self._equations.largest, self.n_features_in_
        self.theta_ = evaluation_constant(base.theta, distribution.squared_masses(d), largest)
        self.kappa_ = evaluation_constant(base.kappa, distribution.masses(d), largest)
        return self

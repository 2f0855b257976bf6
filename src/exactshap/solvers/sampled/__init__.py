"""Games that can only be called: designs of coalitions, regression, standard errors."""

from __future__ import annotations

from exactshap.solvers.sampled._regression import solve_regression

__all__ = [
    "solve_regression",
]

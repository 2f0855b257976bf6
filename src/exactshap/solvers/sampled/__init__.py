"""Games that can only be called: designs of coalitions, regression, standard errors."""

from __future__ import annotations

from exactshap.solvers.sampled._regression import most_calls, solve_regression
from exactshap.solvers.sampled.process import MAX_ROWS

__all__ = [
    "MAX_ROWS",
    "most_calls",
    "solve_regression",
]

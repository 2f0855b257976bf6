"""Games that can only be called: designs of coalitions, regression, standard errors."""

from __future__ import annotations

from exactshap.solvers.sampled._regression import most_calls as most_calls
from exactshap.solvers.sampled._regression import solve_regression as solve_regression
from exactshap.solvers.sampled.process import MAX_ROWS as MAX_ROWS

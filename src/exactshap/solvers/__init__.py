"""Solve games for their values: quadrature for products, enumeration for small ones, regression for oracles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use
from exactshap.solvers._solve import bytes_besides_calls as bytes_besides_calls
from exactshap.solvers._solve import choose
from exactshap.solvers._solve import n_calls as n_calls
from exactshap.solvers._solve import seconds_besides_calls as seconds_besides_calls
from exactshap.solvers._solve import seconds_pooled as seconds_pooled
from exactshap.solvers._solve import solve as solve
from exactshap.solvers.core import Cost, Part, Solution
from exactshap.solvers.core import Posterior as Posterior
from exactshap.solvers.core import Rows as Rows
from exactshap.solvers.core import count_sets as count_sets
from exactshap.solvers.core import player_sets as player_sets
from exactshap.solvers.core import sets_by_size as sets_by_size

__all__ = [
    "Cost",
    "Part",
    "Solution",
    "choose",
    "functional_distance",
    "interaction_variance",
    "shapley_covariance",
]

if TYPE_CHECKING:
    from exactshap.solvers.rkhs import functional_distance, interaction_variance, shapley_covariance
    from exactshap.solvers.sampled import solve_pooled as solve_pooled

# Imported on first use, as no explanation of a model needs them
__getattr__ = on_first_use(
    __name__,
    {"rkhs": "functional_distance interaction_variance shapley_covariance", "sampled": "solve_pooled"},
)

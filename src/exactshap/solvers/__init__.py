"""Games in, values out: quadrature for products, enumeration for small ones, regression for oracles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exactshap.solvers._choose import Plan, choose
from exactshap.solvers._choose import bytes_besides_calls as bytes_besides_calls
from exactshap.solvers._choose import n_calls as n_calls
from exactshap.solvers._choose import seconds_besides_calls as seconds_besides_calls
from exactshap.solvers._solve import solve
from exactshap.solvers.core import Cost, Part, Solution
from exactshap.solvers.core import Posterior as Posterior
from exactshap.solvers.core import Rows as Rows
from exactshap.solvers.core import player_sets as player_sets

__all__ = [
    "Cost",
    "Part",
    "Plan",
    "Solution",
    "choose",
    "functional_distance",
    "interaction_variance",
    "shapley_covariance",
    "solve",
]

_ON_FIRST_USE = {  # function-level tools, not needed to explain a model
    "functional_distance": "exactshap.solvers.rkhs._stability",
    "interaction_variance": "exactshap.solvers.rkhs._gp_covariance",
    "shapley_covariance": "exactshap.solvers.rkhs._gp_covariance",
}

if TYPE_CHECKING:
    from exactshap.solvers.rkhs import functional_distance, interaction_variance, shapley_covariance


def __getattr__(name: str) -> Any:
    """Import the rarer tools on first use."""
    import importlib

    if name in _ON_FIRST_USE:
        return getattr(importlib.import_module(_ON_FIRST_USE[name]), name)
    raise AttributeError(f"module 'exactshap.solvers' has no attribute {name!r}")

"""Additive games: each term is solved on the coalitions of its own few players."""

from __future__ import annotations

from exactshap.solvers.additive._kernels import Bins, Lookups, fill_cells, fill_fold
from exactshap.solvers.additive._singles import Scaled, Singles
from exactshap.solvers.additive._stacks import LookedUp, Stack, solve_additive, solve_scaled, solve_stacks, stacks_cost

__all__ = [
    "Bins",
    "LookedUp",
    "Lookups",
    "Scaled",
    "Singles",
    "Stack",
    "fill_cells",
    "fill_fold",
    "solve_additive",
    "solve_scaled",
    "solve_stacks",
    "stacks_cost",
]

"""Additive games: each term is solved on the coalitions of its own few players."""

from __future__ import annotations

from exactshap.solvers.additive._kernels import Bins, Factors, Lookups, Tables, fill_cells, fill_fold
from exactshap.solvers.additive._linear import Linear, solve_linear, solve_linear_precisely
from exactshap.solvers.additive._stacks import (
    LookedUp,
    Monomials,
    Searched,
    Stack,
    solve_additive,
    solve_searched,
    solve_stacks,
    stacks_cost,
)

__all__ = [
    "Bins",
    "Factors",
    "Linear",
    "LookedUp",
    "Lookups",
    "Monomials",
    "Searched",
    "Stack",
    "Tables",
    "fill_cells",
    "fill_fold",
    "solve_additive",
    "solve_linear",
    "solve_linear_precisely",
    "solve_searched",
    "solve_stacks",
    "stacks_cost",
]

"""Additive games: each term is solved on the coalitions of its own few players."""

from __future__ import annotations

from exactshap.solvers.additive._buckets import buckets_of
from exactshap.solvers.additive._densities import Normals, add_sizes, fill_densities
from exactshap.solvers.additive._features import Splines, fill_products_of_columns, fill_splines
from exactshap.solvers.additive._kernels import Bins, Lookups, Tables, fill_cells, fill_fold
from exactshap.solvers.additive._linear import Linear, LinearOutputs, LinearPlayers, answer_linear
from exactshap.solvers.additive._monomials import Factors, Monomials
from exactshap.solvers.additive._singles import Evaluated, Scaled, Singles
from exactshap.solvers.additive._stacks import (
    LookedUp,
    Searched,
    Stack,
    solve_additive,
    solve_scaled,
    solve_searched,
    solve_stacks,
    stacks_cost,
)

__all__ = [
    "Bins",
    "Evaluated",
    "Factors",
    "Linear",
    "LinearOutputs",
    "LinearPlayers",
    "LookedUp",
    "Lookups",
    "Monomials",
    "Normals",
    "Scaled",
    "Searched",
    "Singles",
    "Splines",
    "Stack",
    "Tables",
    "add_sizes",
    "answer_linear",
    "buckets_of",
    "fill_cells",
    "fill_densities",
    "fill_fold",
    "fill_products_of_columns",
    "fill_splines",
    "solve_additive",
    "solve_scaled",
    "solve_searched",
    "solve_stacks",
    "stacks_cost",
]

"""Product games: Gauss-Legendre quadrature over terms, and enumeration with a background summed once."""

from __future__ import annotations

from exactshap.solvers.product._cost import (
    MAX_FOLDED_PLAYERS,
    folded_cost,
    folding_pays,
    quadrature_cost,
    quadrature_units,
)
from exactshap.solvers.product._folding import CoalitionTable, Folded, fold, folded_method, solve_folded
from exactshap.solvers.product._functional import ExponentialTerms, functional_rules, solve_functional
from exactshap.solvers.product._quadrature import fill_interactions, set_sums, solve_product, solve_terms

__all__ = [
    "MAX_FOLDED_PLAYERS",
    "CoalitionTable",
    "ExponentialTerms",
    "Folded",
    "fill_interactions",
    "fold",
    "folded_cost",
    "folded_method",
    "folding_pays",
    "functional_rules",
    "quadrature_cost",
    "quadrature_units",
    "set_sums",
    "solve_folded",
    "solve_functional",
    "solve_product",
    "solve_terms",
]

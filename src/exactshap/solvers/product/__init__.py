"""Product games: Gauss-Legendre quadrature over terms, and enumeration with a background summed once."""

from __future__ import annotations

from exactshap.solvers.product._folding import CoalitionTable, Folded, fold, solve_folded
from exactshap.solvers.product._kernels import fill_interactions
from exactshap.solvers.product._quadrature import solve_product, solve_terms

__all__ = [
    "CoalitionTable",
    "Folded",
    "fill_interactions",
    "fold",
    "solve_folded",
    "solve_product",
    "solve_terms",
]

"""Product games: Gauss-Legendre quadrature over terms, and enumeration with a background summed once."""

from __future__ import annotations

from exactshap.solvers.product._folding import Folded, Tally, fold, solve_folded
from exactshap.solvers.product._kernels import fill_interactions
from exactshap.solvers.product._quadrature import Sums, solve_product, solve_terms

__all__ = [
    "Folded",
    "Sums",
    "Tally",
    "fill_interactions",
    "fold",
    "solve_folded",
    "solve_product",
    "solve_terms",
]

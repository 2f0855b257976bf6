"""Games in, values out: quadrature for products, enumeration for small ones, regression for oracles."""

from exactshap.solvers._choose import Plan, choose
from exactshap.solvers._solution import Solution, player_sets
from exactshap.solvers._solve import solve

__all__ = ["Plan", "Solution", "choose", "player_sets", "solve"]

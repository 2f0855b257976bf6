"""What all solvers share: the question, the choice of a method, the result, nodes of quadrature rules, enumeration."""

from __future__ import annotations

from exactshap.solvers.core._calls import Calls, checked_calls, keys_of, positive
from exactshap.solvers.core._choose import MAX_FOLDED_PLAYERS, Plan, choose, folded_method, folding_pays
from exactshap.solvers.core._enumeration import set_values, solve_enumerated
from exactshap.solvers.core._nodes import RELATIVE_TRUNCATION, bound, coarse_bound, enough_nodes
from exactshap.solvers.core._solution import Solution, player_sets, set_sizes

__all__ = [
    "MAX_FOLDED_PLAYERS",
    "RELATIVE_TRUNCATION",
    "Calls",
    "Plan",
    "Solution",
    "bound",
    "checked_calls",
    "choose",
    "coarse_bound",
    "enough_nodes",
    "folded_method",
    "folding_pays",
    "keys_of",
    "player_sets",
    "positive",
    "set_sizes",
    "set_values",
    "solve_enumerated",
]

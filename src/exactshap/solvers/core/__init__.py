"""What all solvers share: the question, the result, its cost, nodes of quadrature rules, enumeration."""

from __future__ import annotations

from exactshap.solvers.core._calls import Calls, checked_calls, keys_of, positive
from exactshap.solvers.core._cost import Cost
from exactshap.solvers.core._enumeration import set_values, solve_enumerated
from exactshap.solvers.core._nodes import RELATIVE_TRUNCATION, bound, coarse_bound, enough_nodes
from exactshap.solvers.core._rules import RuleArrays
from exactshap.solvers.core._sets import player_sets, set_sizes, sets_by_size
from exactshap.solvers.core._solution import Rows, Solution

__all__ = [
    "RELATIVE_TRUNCATION",
    "Calls",
    "Cost",
    "Rows",
    "RuleArrays",
    "Solution",
    "bound",
    "checked_calls",
    "coarse_bound",
    "enough_nodes",
    "keys_of",
    "player_sets",
    "positive",
    "set_sizes",
    "set_values",
    "sets_by_size",
    "solve_enumerated",
]

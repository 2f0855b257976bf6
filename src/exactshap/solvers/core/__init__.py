"""Provide what all solvers share: sets of players, results, costs, numbers of nodes, enumeration."""

from __future__ import annotations

from exactshap.solvers.core._enumeration import Calls as Calls
from exactshap.solvers.core._enumeration import checked_calls as checked_calls
from exactshap.solvers.core._enumeration import keys_of as keys_of
from exactshap.solvers.core._enumeration import set_values as set_values
from exactshap.solvers.core._enumeration import solve_enumerated as solve_enumerated
from exactshap.solvers.core._nodes import RELATIVE_TRUNCATION as RELATIVE_TRUNCATION
from exactshap.solvers.core._nodes import RuleArrays as RuleArrays
from exactshap.solvers.core._nodes import bound as bound
from exactshap.solvers.core._nodes import coarse_bound as coarse_bound
from exactshap.solvers.core._nodes import enough_nodes as enough_nodes
from exactshap.solvers.core._nodes import log_errors as log_errors
from exactshap.solvers.core._sets import count_sets as count_sets
from exactshap.solvers.core._sets import player_sets as player_sets
from exactshap.solvers.core._sets import set_sizes as set_sizes
from exactshap.solvers.core._sets import sets_by_size as sets_by_size
from exactshap.solvers.core._solution import Cost as Cost
from exactshap.solvers.core._solution import Part as Part
from exactshap.solvers.core._solution import Posterior as Posterior
from exactshap.solvers.core._solution import Rows as Rows
from exactshap.solvers.core._solution import Solution as Solution

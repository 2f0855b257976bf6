"""Solve additive games, each term on the coalitions of its own few players."""

from __future__ import annotations

from exactshap.solvers.additive._stacks import Bins as Bins
from exactshap.solvers.additive._stacks import Factors as Factors
from exactshap.solvers.additive._stacks import Linear as Linear
from exactshap.solvers.additive._stacks import Lookups as Lookups
from exactshap.solvers.additive._stacks import Monomials as Monomials
from exactshap.solvers.additive._stacks import Stack as Stack
from exactshap.solvers.additive._stacks import fill_cells as fill_cells
from exactshap.solvers.additive._stacks import fill_fold as fill_fold
from exactshap.solvers.additive._stacks import fill_lookups as fill_lookups
from exactshap.solvers.additive._stacks import solve_additive as solve_additive
from exactshap.solvers.additive._stacks import solve_linear as solve_linear
from exactshap.solvers.additive._stacks import solve_linear_precisely as solve_linear_precisely
from exactshap.solvers.additive._stacks import solve_stacks as solve_stacks
from exactshap.solvers.additive._stacks import stacks_cost as stacks_cost

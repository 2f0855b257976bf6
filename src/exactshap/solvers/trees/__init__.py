"""Games of trees: tables per tree, paths or single leaves, whichever costs least."""

from __future__ import annotations

from exactshap.solvers.trees._solve import prepare_trees as prepare_trees
from exactshap.solvers.trees._solve import solve_trees as solve_trees

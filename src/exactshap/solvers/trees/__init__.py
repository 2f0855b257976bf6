"""Solve games of trees by tables, paths or single leaves, whichever costs least."""

from __future__ import annotations

from exactshap.solvers.trees._linear_engine import check_cells as check_cells
from exactshap.solvers.trees._solve import no_path_dependent as no_path_dependent
from exactshap.solvers.trees._solve import prepare_trees as prepare_trees
from exactshap.solvers.trees._solve import solve_trees as solve_trees

"""Games of trees: tables per tree, paths or single leaves, whichever costs least."""

from __future__ import annotations

from exactshap.solvers.trees._solve import prepare_trees, solve_trees

__all__ = [
    "prepare_trees",
    "solve_trees",
]

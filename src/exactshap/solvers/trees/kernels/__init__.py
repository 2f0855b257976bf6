"""Compiled loops of the tree solvers."""

from __future__ import annotations

from exactshap.solvers.trees.kernels._cells import fill_single_tables, sweep_few
from exactshap.solvers.trees.kernels._layout import (
    Groups,
    Leaves,
    count_below,
    fill_columns,
    fill_groups,
    mark_groups,
    multiply_down,
    sum_forecast,
)
from exactshap.solvers.trees.kernels._leaf_rows import sweep_leaves_of_row
from exactshap.solvers.trees.kernels._leaves import LANES, WIDTH, Work, sweep_leaves
from exactshap.solvers.trees.kernels._paths import fill_coefficients, sweep_leaf_sets, sweep_paths
from exactshap.solvers.trees.kernels._rows import sweep_row
from exactshap.solvers.trees.kernels._steps import Steps, fill_steps
from exactshap.solvers.trees.kernels._tables import add_failures, fill_tables, sum_survival, sweep
from exactshap.solvers.trees.kernels._walks import walk_sets, walk_singles

__all__ = [
    "LANES",
    "WIDTH",
    "Groups",
    "Leaves",
    "Steps",
    "Work",
    "add_failures",
    "count_below",
    "fill_coefficients",
    "fill_columns",
    "fill_groups",
    "fill_single_tables",
    "fill_steps",
    "fill_tables",
    "mark_groups",
    "multiply_down",
    "sum_forecast",
    "sum_survival",
    "sweep",
    "sweep_few",
    "sweep_leaf_sets",
    "sweep_leaves",
    "sweep_leaves_of_row",
    "sweep_paths",
    "sweep_row",
    "walk_sets",
    "walk_singles",
]

"""Compiled order of nodes: breadth first, tree by tree (``src/native/trees/layout.cpp``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel

__all__ = ["REACHED_TWICE", "TOO_DEEP", "Links", "fill_breadth_first", "sum_covers"]

REACHED_TWICE, TOO_DEEP = 1, 2


class Links(NamedTuple):
    """Children by their numbers within each tree, the trees' first nodes, and where the order of nodes is written."""

    left: np.ndarray
    right: np.ndarray
    offset: np.ndarray
    max_depth: int
    seen: np.ndarray
    order: np.ndarray
    new_left: np.ndarray


fill_breadth_first = kernel("trees.fill_breadth_first(roots, links)")
sum_covers = kernel("trees.sum_covers(left, cover)")

"""Compiled list of the splits of deep trees in depth-first order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from exactshap.trees.ensemble import Nodes

__all__ = ["Steps", "fill_steps"]


class Steps(NamedTuple):
    """The splits of all trees, each tree's in depth-first order, with what their children need. Sides: 0 left, 1 right."""

    tree_start: np.ndarray
    nodes: Nodes  # what routing reads, split by split; without children
    level: np.ndarray  # splits above
    is_right: np.ndarray  # whether this split is the right child of the one above
    above: np.ndarray  # level + 1 of the nearest split above on the same player, 0 if there is none
    end: np.ndarray  # the split after this one's subtree
    is_leaf: np.ndarray  # (n_splits, 2): whether the child on a side is a leaf
    share: np.ndarray  # (n_splits, 2): cover ratios of the children
    value: np.ndarray  # (n_splits, 2, n_outputs): those of leaf children, 0 for others


@njit(nogil=True, cache=True, error_model="numpy")
def fill_steps(tree_start, left, right, player, share_of, value_of, internal, n_levels, node, level, is_right, above, end, is_leaf,
               share, value):  # fmt: skip
    """Fill the arrays of :class:`Steps` and the node of each split."""
    stack, on_path = np.empty((n_levels + 1, 2), np.int64), np.empty(n_levels, np.int64)
    i = 0
    for k in range(tree_start.shape[0] - 1):
        stack[0, 0], stack[0, 1] = tree_start[k], 0
        size = 1 if player[tree_start[k]] >= 0 else 0
        while size > 0:
            size -= 1
            q, depth = stack[size, 0], stack[size, 1]
            node[i], level[i], end[i] = q, depth, i + internal[q]
            is_right[i] = depth > 0 and right[on_path[depth - 1]] == q
            on_path[depth] = q
            a = depth
            while a > 0 and player[on_path[a - 1]] != player[q]:
                a -= 1
            above[i] = a
            for side in (1, 0):
                child = right[q] if side else left[q]
                is_leaf[i, side], share[i, side] = player[child] < 0, share_of[child]
                for o in range(value.shape[2]):
                    value[i, side, o] = value_of[child, o] if is_leaf[i, side] else 0.0
                if not is_leaf[i, side]:
                    stack[size, 0], stack[size, 1] = child, depth + 1
                    size += 1
            i += 1

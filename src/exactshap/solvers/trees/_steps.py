"""The splits of deep trees in depth-first order: a walk down and up a tree reads them one after the other."""

from __future__ import annotations

import numpy as np

from exactshap.solvers.trees._kernels import EmptySteps, Steps, Structure, fill_steps, forest_of
from exactshap.trees import FlatTrees, cover_shares
from exactshap.trees.ensemble import NodeArrays

__all__ = ["Steps", "make_steps", "steps_bytes"]


def steps_bytes(trees: FlatTrees) -> float:
    """Return the memory of :func:`make_steps`; a tree has one split for every two nodes."""
    return 0.5 * trees.n_nodes * (57.0 + 16.0 * trees.n_outputs)


def make_steps(trees: FlatTrees, shape: Structure) -> Steps:
    """List the splits of each tree in depth-first order."""
    is_split = trees.feature >= 0
    n, before = int(is_split.sum()), np.concatenate([[0], np.cumsum(is_split)]).astype(np.int64)
    node, level, above, end = (np.empty(n, np.int32) for _ in range(4))
    is_right, is_leaf = np.empty(n, bool), np.empty((n, 2), bool)
    tree_start = before[trees.tree_start]
    share, value = np.empty((n, 2)), np.empty((n, 2, trees.n_outputs))
    out = EmptySteps(node, level, is_right, above, end, is_leaf, share, value)
    fill_steps(forest_of(trees), shape, cover_shares(trees), out)
    return Steps(tree_start, _nodes_of(trees, node), level, is_right, above, end, is_leaf, share, value)


def _nodes_of(trees: FlatTrees, node: np.ndarray) -> NodeArrays:
    nodes, none = trees.nodes, np.empty(0, np.int32)
    names = ("feature", "threshold", "missing", "zero_is_missing", "category_start", "category_count")
    taken = {name: getattr(nodes, name)[node] for name in names}
    return nodes._replace(left=none, right=none, **taken)

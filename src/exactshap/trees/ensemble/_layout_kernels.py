"""Compiled check and layout of trees: breadth first, tree by tree (``src/native/trees/layout.cpp``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel

__all__ = ["FAULTS", "Forest", "Laid", "lay_out"]

FAULTS = (  # as in layout.cpp: what can be wrong with a node, and the array that it stands in
    ("", ""),
    ("left child", "left"),
    ("right child", "right"),
    ("reached twice. The nodes form a cycle or share a child", ""),
    ("deeper than {} levels", ""),
    ("feature", "feature"),
    ("threshold", "threshold"),
    ("leaf value", "value"),
    ("cover", "cover"),
    ("missing direction", "missing"),
)


class Forest(NamedTuple):
    """Trees as a library stores them; children are numbers within each tree, roots are counted over all trees."""

    offset: np.ndarray  # int64 (n_trees + 1,): the trees' first nodes
    root: np.ndarray  # int64 (n_trees,)
    feature: np.ndarray  # int64 (n_nodes,); left and right likewise
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray  # float64 (n_nodes,)
    cover: np.ndarray  # float64 (n_nodes,), read at leaves
    missing: np.ndarray  # int8 (n_nodes,)
    zero_is_missing: np.ndarray  # bool (n_nodes,)
    value: np.ndarray  # float64 (n_nodes, n_outputs), read at leaves


class Laid(NamedTuple):
    """The nodes that roots reach, as :class:`~exactshap.trees.FlatTrees` holds them; ``order`` is each one's number in the forest."""

    tree_start: np.ndarray
    order: np.ndarray  # int64 (n_nodes,)
    feature: np.ndarray
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray
    cover: np.ndarray
    missing: np.ndarray
    zero_is_missing: np.ndarray
    value: np.ndarray


lay_out = kernel("trees.lay_out(forest, laid, n_features, max_depth)")

"""An ensemble beside its library's own dump: the same nodes, and the same path-dependent v(S) by a walk over the dump."""

from __future__ import annotations

import numpy as np

from exactshap.readers.trees._dump import Node
from exactshap.trees import FlatTrees
from exactshap.trees.ensemble import MISSING_NEVER

__all__ = ["dump_difference", "walked_values"]


def dump_difference(trees: FlatTrees, own: list[Node], outputs: np.ndarray) -> float:
    """Return the largest difference of leaf values and covers, relative to the largest of the ensemble; infinity for another split.

    ``outputs`` (n_trees,) is the output that a tree adds to; -1: to all.
    """
    if len(own) != trees.n_trees:
        return float("inf")
    largest = np.abs(trees.value).max(initial=0.0) or 1.0
    worst = 0.0
    for root, node, output in zip(trees.tree_start[:-1], own, outputs, strict=True):
        stack, whole = [(int(root), node)], max(node.cover, 1e-300)
        alone = node if node.below is None else None
        while stack:
            q, node = stack.pop()
            if trees.feature[q] != node.feature:
                return float("inf")
            if node.below is None or node.above is None:
                value = trees.value[q] if len(node.value) == trees.n_outputs else trees.value[q, max(int(output), 0)]
                worst = max(worst, float(np.abs(value - node.value).max()) / largest)
                if trees.cover.any() and node is not alone:  # libraries count nothing at a tree that is one leaf
                    worst = max(worst, abs(float(trees.cover[q]) - node.cover) / whole)
                continue
            if not _same_split(trees, q, node):
                return float("inf")
            stack += [(int(trees.left[q]), node.below), (int(trees.right[q]), node.above)]
    return worst


def _same_split(trees: FlatTrees, q: int, node: Node) -> bool:
    missing = int(MISSING_NEVER) if node.missing_below is None else int(node.missing_below)
    return (
        trees.threshold[q] == node.threshold
        and int(trees.missing[q]) == missing
        and bool(trees.zero_is_missing[q]) == node.zero_is_missing
        and trees.less_equal is not node.strict
        and trees.category_start[q] < 0
    )


def walked_values(own: list[Node], rows: np.ndarray, present: np.ndarray, n_outputs: int, outputs: np.ndarray) -> np.ndarray:
    """Return the path-dependent sum of trees (n_rows, n_masks, n_outputs): absent columns split by cover.

    ``present`` (n_masks, n_features) tells which columns a coalition knows; ``rows`` are numbers as the library compares them.
    """
    total = np.zeros((len(rows), len(present), n_outputs))
    for m, known in enumerate(present):
        for node, output in zip(own, outputs, strict=True):
            stack = [(node, np.ones(len(rows)))]
            while stack:
                node, weight = stack.pop()
                if node.below is None or node.above is None:
                    part = weight[:, None] * node.value
                    total[:, m, :] += part if part.shape[1] == n_outputs else 0.0
                    if part.shape[1] != n_outputs:
                        total[:, m, int(output)] += part[:, 0]
                    continue
                if known[node.feature]:
                    share = _goes_below(node, rows[:, node.feature]).astype(float)
                else:
                    both = node.below.cover + node.above.cover
                    share = np.full(len(rows), node.below.cover / both if both else 0.5)
                stack += [(node.below, weight * share), (node.above, weight * (1.0 - share))]
    return total


def _goes_below(node: Node, x: np.ndarray) -> np.ndarray:
    """Return which rows a split sends below its threshold, by the library's own rules."""
    x = np.where(np.isnan(x), 0.0, x) if node.missing_below is None else x
    missing = np.isnan(x) | (node.zero_is_missing & (np.abs(x) <= np.float32(1e-35)))
    below = x < node.threshold if node.strict else x <= node.threshold
    return np.where(missing, bool(node.missing_below), below)

"""Compiled routing: the one definition of "goes left", and what follows from it row by row.

``nodes`` is a :class:`Nodes` tuple (``FlatTrees.nodes``). Values must have been rounded to the precision of the model before
(:func:`exactshap.trees.prepared`): the kernels compare float64 with float64.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from exactshap.trees.ensemble._flat import MISSING_LEFT, MISSING_NEVER, ZERO

__all__ = [
    "compare",
    "decide",
    "fill_decisions",
    "fill_inside",
    "fill_leaves",
    "fill_parents",
    "fill_paths",
    "fill_shares",
    "goes_left",
    "sum_leaf_values",
]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _in_category_set(x, start, count, words):
    """Whether the bit of category ``int(x)`` is set; outside the set (negative, too large, infinite) it is not."""
    if not (-1.0 < x < 32.0 * count):
        return False
    code = np.int64(x)
    return (words[start + (code >> 5)] >> np.uint32(code & 31)) & np.uint32(1) == np.uint32(1)


@njit(nogil=True, cache=True, error_model="numpy")
def goes_left(x, q, nodes):
    r"""Whether a value ``x`` of the column that node ``q`` splits on goes to its left child.

    .. math:: x \text{ is missing} \;?\; \mathrm{missing}_q : x \in C_q \text{ or } x \le \theta_q \text{ or } x < \theta_q
    """
    if np.isnan(x):
        if nodes.missing[q] != MISSING_NEVER:
            return nodes.missing[q] == MISSING_LEFT
        x = 0.0
    elif nodes.zero_is_missing[q] and abs(x) <= ZERO:
        return nodes.missing[q] == MISSING_LEFT
    if nodes.category_start[q] >= 0:
        return _in_category_set(x, nodes.category_start[q], nodes.category_count[q], nodes.category_words)
    if nodes.less_equal:
        return x <= nodes.threshold[q]
    return x < nodes.threshold[q]


@njit(nogil=True, cache=True, error_model="numpy")
def compare(values, theta, less_equal, missing_left, out):
    """Write 1 where a row goes left at a numerical split, 0 where right, to ``out`` (n_rows,) uint8.

    ``values`` (n_rows,) of the split's column are contiguous, so that a plain comparison runs on many rows at once.
    """
    if less_equal and missing_left:
        for i in range(out.shape[0]):
            out[i] = not (values[i] > theta)
    elif less_equal:
        for i in range(out.shape[0]):
            out[i] = values[i] <= theta
    elif missing_left:
        for i in range(out.shape[0]):
            out[i] = not (values[i] >= theta)
    else:
        for i in range(out.shape[0]):
            out[i] = values[i] < theta


@njit(nogil=True, cache=True, error_model="numpy")
def decide(values, q, nodes, out):
    """Write 1 where a row goes left at node ``q``, 0 where right, to ``out`` (n_rows,) uint8; ``values`` as in :func:`compare`."""
    if nodes.category_start[q] >= 0 or nodes.zero_is_missing[q]:
        for i in range(out.shape[0]):
            out[i] = goes_left(values[i], q, nodes)
    else:
        compare(values, nodes.threshold[q], nodes.less_equal, goes_left(np.nan, q, nodes), out)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_decisions(columns, nodes, out):
    """Write 1 where a row goes left, node by node, to ``out`` (n_nodes, n_rows) uint8; leaves are left alone.

    ``columns`` (n_features, n_rows) is contiguous. Handing ``nodes`` over to :func:`decide` would cost as much as 300 comparisons.
    """
    for q in range(out.shape[0]):
        j = nodes.feature[q]
        if j < 0:
            continue
        if nodes.category_start[q] >= 0 or nodes.zero_is_missing[q]:
            for i in range(out.shape[1]):
                out[q, i] = goes_left(columns[j, i], q, nodes)
        else:
            compare(columns[j], nodes.threshold[q], nodes.less_equal, goes_left(np.nan, q, nodes), out[q])


@njit(nogil=True, cache=True, error_model="numpy")
def fill_leaves(X, tree_start, nodes, out):
    """Write the global number of the leaf that each row reaches in each tree to ``out`` (n_rows, n_trees)."""
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            q = tree_start[k]
            while nodes.feature[q] >= 0:
                q = nodes.left[q] if goes_left(X[i, nodes.feature[q]], q, nodes) else nodes.right[q]
            out[i, k] = q


@njit(nogil=True, cache=True, error_model="numpy")
def sum_leaf_values(X, tree_start, nodes, value, out):
    """Add the values of the reached leaves, tree after tree, to ``out`` (n_rows, n_outputs)."""
    for i in range(out.shape[0]):
        for k in range(tree_start.shape[0] - 1):
            q = tree_start[k]
            while nodes.feature[q] >= 0:
                q = nodes.left[q] if goes_left(X[i, nodes.feature[q]], q, nodes) else nodes.right[q]
            for o in range(out.shape[1]):
                out[i, o] += value[q, o]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_parents(left, right, parent, is_left):
    """Write the parent of each node, and whether it is a left child."""
    for q in range(left.shape[0]):
        if left[q] >= 0:
            parent[left[q]] = parent[right[q]] = q
            is_left[left[q]] = True


@njit(nogil=True, cache=True, error_model="numpy")
def fill_shares(left, right, cover, out):
    """Write cover(node) / cover(parent) of all nodes but roots; 1/2 below an empty parent."""
    for q in range(left.shape[0]):
        if left[q] >= 0:
            is_empty = not cover[q] > 0.0
            out[left[q]] = 0.5 if is_empty else cover[left[q]] / cover[q]
            out[right[q]] = 0.5 if is_empty else cover[right[q]] / cover[q]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_paths(
    leaves,
    edge_start,
    parent,
    is_left,
    player_of_node,
    n_players,
    share,
    counts,
    edge_node,
    edge_left,
    edge_slot,
    player,
    ratio,
):
    r"""Walk from each leaf to its root; write its edges from the root down, and its distinct players with their ratios.

    .. math:: b_{lj} = \prod_{q \to c \text{ on the path},\, j_q = j} \mathrm{cover}(c) / \mathrm{cover}(q)

    ``player`` and ``ratio`` are filled at the offsets of the edges; ``counts[l]`` tells how many of them leaf l uses.
    """
    slot_of = np.empty(n_players, np.int32)
    slot_of[:] = -1
    for l in range(leaves.shape[0]):
        first, e, q = edge_start[l], edge_start[l + 1], leaves[l]
        while parent[q] >= 0:
            e -= 1
            edge_node[e], edge_left[e] = parent[q], is_left[q]
            ratio_of_edge = share[q]
            edge_slot[e] = 0
            ratio[e] = ratio_of_edge
            q = parent[q]
        used = 0
        for e in range(first, edge_start[l + 1]):
            j = player_of_node[edge_node[e]]
            edge_ratio = ratio[e]
            if slot_of[j] < 0:
                slot_of[j] = used
                player[first + used] = j
                ratio[first + used] = edge_ratio
                used += 1
            else:
                ratio[first + slot_of[j]] *= edge_ratio
            edge_slot[e] = slot_of[j]
        for s in range(first, first + used):
            slot_of[player[s]] = -1
        counts[l] = used


@njit(nogil=True, cache=True, error_model="numpy")
def fill_inside(decisions, start, edge_start, edge_node, edge_left, edge_slot, player, out):
    """Clear ``out`` (n_rows, n_leaves, n_players), full of ones, where a row fails a split on the player on the path."""
    for i in range(out.shape[0]):
        for l in range(out.shape[1]):
            for e in range(edge_start[l], edge_start[l + 1]):
                if (decisions[edge_node[e], i] != 0) != edge_left[e]:
                    out[i, l, player[start[l] + edge_slot[e]]] = 0.0

r"""Units: the terms of a tree's game, half as many as its leaves, and the bits by which rows enter them.

A *unit* is an internal node with two leaf children, or a leaf whose sibling is internal. With prefix players F_u (the splits
above it), cover ratios b_uk and, for a node, its own split on player j with leaf values v_left, v_right:

.. math:: f_S(x) = \sum_u \prod_{k \in S} \alpha_{uk}(x) \prod_{k \notin S} \beta_{uk}

with alpha_uk = 1 if x passes every split on k above u (else 0), beta_uk = b_uk, and on the unit's own player j additionally
alpha_uj times v_left or v_right (the side x takes), beta_uj times their cover-weighted mean. Adding two leaves that differ in
their last split only is what makes a unit one product again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["CODE_BITS", "Units", "count_units", "fill_alphas", "fill_codes", "fill_predictions", "fill_units", "split_bits"]


CODE_BITS = 16


class Units(NamedTuple):
    """All units of an ensemble; slots are a unit's axes: prefix players in path order, then its own player if it is new."""

    tree_start: np.ndarray  # (n_trees + 1,) int64: tree k owns units tree_start[k]:tree_start[k + 1]
    tree: np.ndarray  # (n_units,) int32
    node: np.ndarray  # (n_units,) int32: global node number
    size: np.ndarray  # (n_units, 3) int32: prefix players, players, slot of the unit's own player (-1 for leaves)
    player: np.ndarray  # (n_units, width) int32
    beta: np.ndarray  # (n_units, width) float64
    value: np.ndarray  # (n_units, 3) float64: left and right value of a node (else 1), the value of a leaf (else 1)
    depth: np.ndarray  # (n_units,) int32: number of edges above
    path_node: np.ndarray  # (n_units, n_edges) int32, from the root down
    path_left: np.ndarray  # (n_units, n_edges) uint8
    path_slot: np.ndarray  # (n_units, n_edges) int32


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _is_unit(q, parent, left, right):
    """Whether node ``q`` is a unit: two leaf children, or a leaf whose sibling is internal, or a lone root."""
    if left[q] >= 0:
        return left[left[q]] < 0 and left[right[q]] < 0
    if parent[q] < 0:
        return True
    sibling = left[parent[q]] + right[parent[q]] - q
    return left[sibling] >= 0


@njit(nogil=True, cache=True, error_model="numpy")
def count_units(tree_start, parent, left, right, depths, start):
    """Write the first unit of every tree to ``start`` (n_trees + 1,) and node depths to ``depths``; return the largest depth."""
    deepest = 0
    start[0] = 0
    for k in range(tree_start.shape[0] - 1):
        found = 0
        for q in range(tree_start[k], tree_start[k + 1]):
            depths[q] = 0 if parent[q] < 0 else depths[parent[q]] + 1
            if _is_unit(q, parent, left, right):
                found += 1
                deepest = max(deepest, depths[q])
        start[k + 1] = start[k] + found
    return deepest


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _fill_path(u, parent, left, player_of_node, share, units):
    """Write the edges above unit ``u`` from the root down, its prefix players and their cover ratios; return their number."""
    q = units.node[u]
    for e in range(units.depth[u] - 1, -1, -1):
        above = parent[q]
        units.path_node[u, e] = above
        units.path_left[u, e] = left[above] == q
        q = above
    used = np.int64(0)
    for e in range(units.depth[u]):
        child = units.node[u] if e + 1 == units.depth[u] else units.path_node[u, e + 1]
        slot = _slot_of(u, player_of_node[units.path_node[u, e]], used, units.player)
        if slot == used:
            units.player[u, slot] = player_of_node[units.path_node[u, e]]
            units.beta[u, slot] = 1.0
            used += 1
        units.beta[u, slot] *= share[child]
        units.path_slot[u, e] = slot
    return used


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _slot_of(u, p, used, player):
    """Return the slot of player ``p`` among the first ``used``, or ``used`` if it has none."""
    for slot in range(used):
        if player[u, slot] == p:
            return slot
    return used


@njit(nogil=True, cache=True, error_model="numpy")
def fill_units(tree_start, parent, left, right, depths, player_of_node, share, value, units):
    """Fill every array of ``units`` but ``tree_start``; ``share`` is cover(node) / cover(parent), ``value`` (n_nodes,)."""
    u = np.int64(0)  # for a literal 0 numba compiles what is called with it once more
    for k in range(tree_start.shape[0] - 1):
        for q in range(tree_start[k], tree_start[k + 1]):
            if not _is_unit(q, parent, left, right):
                continue
            units.tree[u], units.node[u], units.depth[u] = k, q, depths[q]
            used = _fill_path(u, parent, left, player_of_node, share, units)
            units.size[u, 0], units.size[u, 1], units.size[u, 2] = used, used, -1
            units.value[u, 0], units.value[u, 1], units.value[u, 2] = 1.0, 1.0, value[q]
            if left[q] >= 0:
                slot = _slot_of(u, player_of_node[q], used, units.player)
                if slot == used:
                    units.player[u, slot], units.beta[u, slot], units.size[u, 1] = player_of_node[q], 1.0, used + 1
                units.beta[u, slot] *= share[left[q]] * value[left[q]] + share[right[q]] * value[right[q]]
                units.value[u, 0], units.value[u, 1], units.value[u, 2] = value[left[q]], value[right[q]], 1.0
                units.size[u, 2] = slot
            u += 1


@njit(nogil=True, cache=True, error_model="numpy")
def fill_codes(first, last, units, decisions, node_offset, codes):
    """Write the codes of units ``first:last`` to ``codes`` (n_units, n_patterns), one bit per slot.

    Bit k: the row passes every split on prefix player k; the bit after them: it goes left at the unit's own split.
    ``decisions`` (n_nodes, n_patterns) uint8 starts at node ``node_offset``. Units with more players than a code has bits
    are left alone: they go by quadrature.
    """
    one = codes.dtype.type(1)
    for u in range(first, last):
        if units.size[u, 0] >= CODE_BITS:
            continue
        code = codes[u - first]
        code[:] = (1 << units.size[u, 0]) - 1
        for e in range(units.depth[u]):
            went_left = decisions[units.path_node[u, e] - node_offset]
            clear = ~(one << codes.dtype.type(units.path_slot[u, e]))
            wanted = units.path_left[u, e]
            for i in range(code.shape[0]):
                if went_left[i] != wanted:
                    code[i] &= clear
        if units.size[u, 2] >= 0:
            went_left = decisions[units.node[u] - node_offset]
            bit = one << codes.dtype.type(units.size[u, 0])
            for i in range(code.shape[0]):
                if went_left[i]:
                    code[i] |= bit


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def fill_predictions(first, last, units, codes, out):
    """Write what units ``first:last`` predict for each pattern, from their codes, to ``out`` (n_patterns,)."""
    out[:] = 0.0
    for u in range(first, last):
        code = codes[u - first]
        full = codes.dtype.type((1 << units.size[u, 0]) - 1)
        leaf_left = units.value[u, 2] * units.value[u, 0]
        leaf_right = units.value[u, 2] * units.value[u, 1]
        for i in range(out.shape[0]):
            reached = leaf_left if code[i] > full else leaf_right
            out[i] += reached if (code[i] & full) == full else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def fill_alphas(first, last, units, decisions, node_offset, alphas):
    """Write alpha_uk of units ``first:last`` to ``alphas`` (n_units, width, n_rows): bits, times the leaf value at the bottom."""
    for u in range(first, last):
        alpha = alphas[u - first]
        for k in range(units.size[u, 1]):
            alpha[k, :] = 1.0
        for e in range(units.depth[u]):
            went_left = decisions[units.path_node[u, e] - node_offset]
            wanted = units.path_left[u, e]
            row = alpha[units.path_slot[u, e]]
            for i in range(row.shape[0]):
                row[i] = row[i] if went_left[i] == wanted else 0.0
        if units.size[u, 2] >= 0:
            went_left = decisions[units.node[u] - node_offset]
            row = alpha[units.size[u, 2]]
            for i in range(row.shape[0]):
                row[i] *= units.value[u, 0] if went_left[i] else units.value[u, 1]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def split_bits(feature, bit):
    """Write 0, 1, ... for the internal nodes of one tree (-1 for leaves) to ``bit``; return how many there are."""
    used = 0
    for q in range(feature.shape[0]):
        bit[q] = -1
        if feature[q] >= 0:
            bit[q] = used
            used += 1
    return used

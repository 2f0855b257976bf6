"""Compiled layout of an ensemble: which subtrees share one table, and which bits a row's code in it is made of."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = [
    "TOUCH",
    "Groups",
    "Leaves",
    "count_below",
    "fill_columns",
    "fill_groups",
    "mark_groups",
    "multiply_down",
    "next_mask",
    "set_rank",
]

TOUCH = 3.0  # what a group costs a row besides its players, in table look-ups: its code, its full value and its scale


class Leaves(NamedTuple):
    """Leaf l's distinct players, ascending, and its edges from the root down, in compressed rows."""

    node: np.ndarray  # global node number
    start: np.ndarray  # slots of leaf l are start[l]:start[l + 1]
    player: np.ndarray
    ratio: np.ndarray  # product of the cover ratios of the player's splits on the path
    edge_start: np.ndarray
    edge_node: np.ndarray
    edge_left: np.ndarray
    edge_slot: np.ndarray  # which of the leaf's own slots (bits) the edge belongs to


class Groups(NamedTuple):
    """Subtrees that share one table. A row's code has one bit per player above the subtree and one per split inside."""

    root: np.ndarray
    tree: np.ndarray
    n_above: np.ndarray  # edges above the root
    n_bits: np.ndarray
    leaf_start: np.ndarray
    leaf: np.ndarray
    condition_start: np.ndarray  # a row that fails a condition loses the condition's bit
    condition_node: np.ndarray
    condition_left: np.ndarray
    condition_bit: np.ndarray
    first_output: np.ndarray  # outputs in which some leaf of the group is not zero: first:last
    last_output: np.ndarray


@njit(nogil=True, cache=True, error_model="numpy")
def count_below(parent, player, depth, distinct, internal, leaves):
    """Write how many edges and distinct players are above each node, how many splits and leaves below; parents come first."""
    for q in range(parent.shape[0]):
        internal[q] = 1 if player[q] >= 0 else 0
        leaves[q] = 1 - internal[q]
        p = parent[q]
        if p < 0:
            depth[q], distinct[q] = 0, 0
            continue
        depth[q], distinct[q] = depth[p] + 1, distinct[p] + 1
        above = parent[p]
        while above >= 0:
            if player[above] == player[p]:
                distinct[q] -= 1
                break
            above = parent[above]
    for q in range(parent.shape[0] - 1, -1, -1):
        if parent[q] >= 0:
            internal[parent[q]] += internal[q]
            leaves[parent[q]] += leaves[q]


@njit(nogil=True, cache=True, error_model="numpy")
def multiply_down(parent, factors, out):
    """Replace the ones of ``out`` by the products of the factors of all edges above each node; parents come first."""
    for q in range(parent.shape[0]):
        if parent[q] >= 0:
            out[q] = out[parent[q]] * factors[q]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _count_players(q, parent, player, left, right, stamp, stack):
    """Count the distinct players above and below a node; ``stamp`` remembers which were seen for ``q``."""
    count = 0
    p = parent[q]
    while p >= 0:
        if stamp[player[p]] != q:
            stamp[player[p]] = q
            count += 1
        p = parent[p]
    size = 1
    stack[0] = q
    while size > 0:
        size -= 1
        p = stack[size]
        if player[p] >= 0:
            if stamp[player[p]] != q:
                stamp[player[p]] = q
                count += 1
            stack[size], stack[size + 1] = right[p], left[p]
            size += 2
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def _none_of(player):
    """Return -1 for each player that nodes split on, and for none (the last one)."""
    largest = -1
    for q in range(player.shape[0]):
        largest = max(largest, player[q])
    out = np.empty(largest + 2, np.int64)
    out[:] = -1
    return out


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _group_cost(n_players, bits, n_leaves, n_rows):
    """Return what a group of leaves costs, see ``mark_groups``."""
    return n_rows * (n_players + TOUCH) + float(1 << bits) * n_players * n_leaves


@njit(nogil=True, cache=True, error_model="numpy")
def mark_groups(parent, player, left, right, distinct, internal, leaves, max_bits, n_rows, cost, n_players, is_root):
    r"""Cut each tree into subtrees of least cost; set ``is_root``, ``n_players`` and ``cost``, infinite where nothing fits.

    .. math:: \mathrm{cost} = n_\mathrm{rows} (n_\mathrm{players} + 3) + 2^{\mathrm{bits}}\, n_\mathrm{players}\, n_\mathrm{leaves}

    One large table needs fewer look-ups, many small ones are filled faster; ``n_rows`` balances the two.
    """
    stamp = _none_of(player)
    stack = np.empty(parent.shape[0] + 1, np.int64)
    for q in range(parent.shape[0] - 1, -1, -1):
        apart = np.inf if player[q] < 0 else cost[left[q]] + cost[right[q]]
        together = np.inf
        bits = distinct[q] + internal[q]
        if bits <= max_bits and _group_cost(distinct[q], bits, leaves[q], n_rows) <= apart:  # it has at least the players above
            n_players[q] = _count_players(q, parent, player, left, right, stamp, stack) if player[q] >= 0 else distinct[q]
            together = _group_cost(n_players[q], bits, leaves[q], n_rows)
        cost[q] = min(together, apart)
        is_root[q] = together <= apart
    for q in range(parent.shape[0]):
        p = parent[q]
        if p >= 0 and (is_root[p] or cost[p] < 0.0):
            is_root[q] = False
            cost[q] = -1.0  # below a root


@njit(nogil=True, cache=True, error_model="numpy")
def sum_forecast(tree_start, player, distinct, internal, leaves, is_root, n_players, leaf_cell, out):
    """Add the look-ups, the filling, the cells of tables and those of leaves of each tree to ``out`` (4, n_trees)."""
    for k in range(tree_start.shape[0] - 1):
        for q in range(tree_start[k], tree_start[k + 1]):
            if player[q] < 0:
                cells = math.ldexp(1.0, min(distinct[q], 60))  # more are out of reach anyway
                out[1, k] += leaf_cell * cells * distinct[q] * (distinct[q] + 1.0)
                out[3, k] += cells
            if is_root[q]:
                cells = math.ldexp(1.0, min(distinct[q] + internal[q], 60))
                out[0, k] += n_players[q] + TOUCH
                out[1, k] += cells * n_players[q] * leaves[q]
                out[2, k] += cells * (n_players[q] + 2.0)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_groups(groups, parent, player, left, right, leaf_of_node, value):
    """Fill conditions, leaves and outputs of ``groups`` whose roots and offsets are set."""
    bit_of = _none_of(player)
    stack = np.empty(parent.shape[0] + 1, np.int64)
    for g in range(groups.root.shape[0]):
        c = groups.condition_start[g] + groups.n_above[g]
        below, p = groups.root[g], parent[groups.root[g]]
        while p >= 0:
            c -= 1
            groups.condition_node[c] = p
            groups.condition_left[c] = left[p] == below
            below, p = p, parent[p]
        bits = 0
        for c in range(groups.condition_start[g], groups.condition_start[g] + groups.n_above[g]):
            j = player[groups.condition_node[c]]
            if bit_of[j] < 0:
                bit_of[j] = bits
                bits += 1
            groups.condition_bit[c] = bit_of[j]
        for c in range(groups.condition_start[g], groups.condition_start[g] + groups.n_above[g]):
            bit_of[player[groups.condition_node[c]]] = -1
        _fill_subtree(g, groups, bits, player, left, right, leaf_of_node, value, stack)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _fill_subtree(g, groups, bits, player, left, right, leaf_of_node, value, stack):
    """List the splits below the root of group ``g`` as bits from ``bits`` on, and its leaves; bound its outputs."""
    c = groups.condition_start[g] + groups.n_above[g]
    slot = groups.leaf_start[g]
    first, last = value.shape[1], 0
    size = 1
    stack[0] = groups.root[g]
    while size > 0:
        size -= 1
        p = stack[size]
        if player[p] >= 0:
            groups.condition_node[c], groups.condition_left[c], groups.condition_bit[c] = p, True, bits
            c, bits = c + 1, bits + 1
            stack[size], stack[size + 1] = right[p], left[p]
            size += 2
            continue
        groups.leaf[slot] = leaf_of_node[p]
        slot += 1
        for o in range(value.shape[1]):
            if value[p, o] != 0.0:
                first, last = min(first, o), max(last, o + 1)
    groups.n_bits[g] = bits
    groups.first_output[g], groups.last_output[g] = min(first, last), last


@njit(nogil=True, cache=True, error_model="numpy")
def next_mask(mask):
    """Return the next larger mask with as many bits (Gosper's hack)."""
    lowest = mask & -mask
    carried = mask + lowest
    return (((carried ^ mask) >> 2) // lowest) | carried


@njit(nogil=True, cache=True, error_model="numpy")
def set_rank(mask, size, players, first, binomials, offsets):
    r"""Return the position of a set among all sets, by size and then lexicographically (Knuth, TAOCP 7.2.1.3).

    .. math:: \mathrm{offset}_k + \binom{d}{k} - 1 - \sum_{i=0}^{k-1} \binom{d - 1 - T_i}{k - i}

    ``mask`` holds bits of the ascending ``players[first:]``.
    """
    d = binomials.shape[0] - 1
    rank = offsets[size] + binomials[d, size] - 1
    i, bit = 0, 0
    while mask >> bit:
        if (mask >> bit) & 1:
            rank -= binomials[d - 1 - players[first + bit], size - i]
            i += 1
        bit += 1
    return rank


@njit(nogil=True, cache=True, error_model="numpy")
def fill_columns(groups, leaves, order, binomials, offsets, n_outputs, write, column_start, columns):
    """Write which column of the result each table row of each group adds to; with ``write`` False only the offsets.

    The rows are the sets met on the group's leaves, each with the group's outputs, then v(D) of the outputs, then the scale.
    """
    n_sets = offsets[order + 1]
    stamp = np.empty(n_sets, np.int64)
    stamp[:] = -1
    for g in range(groups.root.shape[0]):
        at = column_start[g]
        first, last = groups.first_output[g], groups.last_output[g]
        for i in range(groups.leaf_start[g], groups.leaf_start[g + 1]):
            l = groups.leaf[i]
            m = leaves.start[l + 1] - leaves.start[l]
            for size in range(1, min(order, m) + 1):
                mask = (1 << size) - 1
                while mask < 1 << m:
                    rank = set_rank(mask, size, leaves.player, leaves.start[l], binomials, offsets)
                    if stamp[rank] != g:
                        stamp[rank] = g
                        if write:
                            for o in range(first, last):
                                columns[at + o - first] = rank * n_outputs + o
                        at += last - first
                    mask = next_mask(mask)
        if write:
            for o in range(first, last):
                columns[at + o - first] = n_sets * n_outputs + o
            columns[at + last - first] = (n_sets + 1) * n_outputs
        else:
            column_start[g + 1] = at - column_start[g] + last - first + 1

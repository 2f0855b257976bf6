"""The joint axes of a pair of units, and the joint index by which a row is counted.

A joint index has one bit for each *normal* axis (a prefix player of either unit; of both: passed in both), and above them the
*top* bits: prefix bits of the at most two *bottom* axes (the units' own players) and the sides that the row takes at the units'
own splits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["count_axes", "fill_layout", "join", "parting_player"]


@njit(nogil=True, cache=True, error_model="numpy")
def parting_player(u, w, units, player_of_node):
    """Return the player of the node at which two units of one tree part."""
    e = 0
    while units.path_left[u, e] == units.path_left[w, e]:
        e += 1
    return player_of_node[units.path_node[u, e]]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _own_player(bottom, players, apart):
    """Return the player of a unit's own split, -1 if it has none or cannot be in any S that matters."""
    if bottom < 0:
        return -1
    p = players[bottom]
    return -1 if p == apart else p


@njit(nogil=True, cache=True, error_model="numpy")
def _place_slots(n_prefix, n_axes, players, betas, apart, own, known, n, place, axis_player, axis_beta, bottom_beta):
    """Give each slot of a unit its axis: normal ones up from ``n`` (shared ones found among ``known``), -2 and -3 at the bottoms.

    ``own`` are the players of the bottom axes. Return the number of normal axes, the product of the betas that are always
    outside S, and which bottom axes (bits 0 and 1) have a prefix bit.
    """
    constant, has_bit = 1.0, 0
    for k in range(n_axes):
        p, b = players[k], betas[k]
        place[k] = -1
        if p == apart:
            constant *= b
        elif p == own[0] or p == own[1]:
            axis = 0 if p == own[0] else 1
            bottom_beta[axis] *= b
            if k < n_prefix:
                has_bit |= 1 << axis
                place[k] = -2 - axis
        else:
            a = 0
            while a < known and axis_player[a] != p:
                a += 1
            if a == known:
                a = n
                axis_player[n], axis_beta[n] = p, 1.0
                n += 1
            axis_beta[a] *= b
            place[k] = a
    return n, constant, has_bit


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_lookup(n_prefix, has_side, side, marks, n_bits, place, lookup):
    """Write the joint index bits of every code of a unit to ``lookup``; bits that the unit does not own are set.

    ``side`` is the bit of its own split (-1 if dropped), ``marks`` the bits of the two bottom axes.
    """
    owned = 1 << side if side >= 0 else 0
    for k in range(n_prefix):
        if place[k] < -1:
            place[k] = marks[-2 - place[k]]
        owned |= 1 << place[k] if place[k] >= 0 else 0
    lookup[0] = np.uint32(((1 << n_bits) - 1) & ~owned)
    size = 1
    for k in range(n_prefix + has_side):
        where = place[k] if k < n_prefix else side
        bit = np.uint32(1 << where if where >= 0 else 0)
        for x in range(size):
            lookup[size + x] = lookup[x] | bit
        size *= 2


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _fill_mix(own, value_u, value_w, n_top, marks, sides, bottom_beta, mix):
    """Write, for each top pattern, the factor of the bottom axes with their players out of S and in S."""
    same = own[0] >= 0 and own[0] == own[1]
    for t in range(1 << n_top):
        in_u = 1.0 if marks[0] < 0 or (t >> marks[0]) & 1 else 0.0
        in_w = 1.0 if marks[1] < 0 or (t >> marks[1]) & 1 else 0.0
        if own[0] >= 0:
            in_u *= value_u[0] if (t >> sides[0]) & 1 else value_u[1]
        if own[1] >= 0:
            value = value_w[0] if (t >> sides[1]) & 1 else value_w[1]
            in_u, in_w = (in_u * value, in_w) if same else (in_u, in_w * value)
        if own[0] >= 0 and own[1] >= 0 and not same:
            mix[0, t], mix[1, t] = bottom_beta[0] * bottom_beta[1], in_u * bottom_beta[1]
            mix[2, t], mix[3, t] = bottom_beta[0] * in_w, in_u * in_w
        elif own[0] >= 0:
            mix[0, t], mix[1, t] = bottom_beta[0], in_u
        elif own[1] >= 0:
            mix[0, t], mix[1, t] = bottom_beta[1], in_w
        else:
            mix[0, t] = 1.0


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def fill_layout(n, bits, own, size_u, size_w, value_u, value_w, bottom_beta, place, lookups, mix):
    """Give the top bits of a joint index their numbers, then write the mix of the bottom axes and the lookups of both units."""
    top = 0
    first, second, side_u, side_w = -1, -1, -1, -1
    if bits & 1:
        first, top = top, top + 1
    if bits & 2:
        second, top = top, top + 1
    if own[0] >= 0:
        side_u, top = top, top + 1
    if own[1] >= 0:
        side_w, top = top, top + 1
    _fill_mix(own, value_u, value_w, top, (first, second), (side_u, side_w), bottom_beta, mix)
    marks = (n + first, n + second)
    above_u, above_w = n + side_u if side_u >= 0 else -1, n + side_w if side_w >= 0 else -1
    _fill_lookup(size_u[0], 1 if size_u[2] >= 0 else 0, above_u, marks, n + top, place[0], lookups[0])
    _fill_lookup(size_w[0], 1 if size_w[2] >= 0 else 0, above_w, marks, n + top, place[1], lookups[1])


@njit(nogil=True, cache=True, error_model="numpy")
def join(u, w, apart, size, player, beta, place, axis_player, axis_beta, bottom_beta):
    """Find the joint axes of a pair: return (normal axes, bottom players, prefix bits of the bottoms, constant)."""
    own = _own_player(size[u, 2], player[u], apart), _own_player(size[w, 2], player[w], apart)
    bottom_beta[0] = bottom_beta[1] = 1.0
    none = np.int64(0)  # for a literal 0 numba compiles what is called with it once more
    n, c_u, bits_u = _place_slots(size[u, 0], size[u, 1], player[u], beta[u], apart, own, none, none, place[0], axis_player, axis_beta,
                                  bottom_beta)  # fmt: skip
    n, c_w, bits_w = _place_slots(size[w, 0], size[w, 1], player[w], beta[w], apart, own, n, n, place[1], axis_player, axis_beta,
                                  bottom_beta)  # fmt: skip
    return n, own, bits_u | bits_w, c_u * c_w


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def count_axes(own, bits):
    """Return the number of bottom axes and of top bits of a pair."""
    bottoms = (1 if own[0] >= 0 else 0) + (1 if own[1] >= 0 and own[1] != own[0] else 0)
    top = (bits & 1) + (bits >> 1) + (1 if own[0] >= 0 else 0) + (1 if own[1] >= 0 else 0)
    return bottoms, top

"""Compiled walks of a row and a background row together: interventional values of trees too deep for tables.

A leaf is reached by a hybrid of the two rows if the players on its path that only the row satisfies are inside the coalition
and those that only the background row satisfies are outside; all others are dummies.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["walk_sets", "walk_singles"]

FREE, INSIDE, OUTSIDE = 0, 1, 2  # a player on the current path: both rows agree so far, only x passes, only z passes


@njit(nogil=True, cache=True, error_model="numpy")
def walk_singles(of_rows, of_background, background_weights, offset, left, right, player, value, weights, n_levels, out, scale):
    r"""Add the values of single players in one tree to ``out`` (n_rows, n_players).

    .. math:: \phi_j = \sum_m w_m \Bigl(\sum_{l:\, j \in I_l} c_l\, p(|I_l| - 1) - \sum_{l:\, j \in O_l} c_l\, p(|I_l|)\Bigr)

    ``I`` and ``O`` are the players inside and outside, p(s) is ``weights[|I| + |O|, s]``. Sums come back up the walk, so that
    a pair of rows costs O(visited nodes). ``of_rows`` (n_rows, n_nodes) holds the decisions, node by node.
    """
    role = np.zeros(out.shape[1], np.int8)
    other, owner = np.empty(n_levels + 1, np.int64), np.empty(n_levels + 1, np.int64)
    is_second = np.empty(n_levels + 1, np.bool_)
    gains, losses = np.empty(n_levels + 1), np.empty(n_levels + 1)
    for i in range(out.shape[0]):
        for m in range(background_weights.shape[0]):
            weight = background_weights[m]
            q, level, n_inside, n_outside = offset, 0, 0, 0
            walking = True
            while walking:
                while player[q] >= 0:
                    j = player[q]
                    by_x, by_z = of_rows[i, q - offset], of_background[m, q - offset]
                    if by_x != by_z and role[j] == FREE:
                        role[j] = INSIDE
                        n_inside += 1
                        owner[level], is_second[level] = j, False
                        other[level] = left[q] if by_z else right[q]
                        level += 1
                    goes_left = by_z if role[j] == OUTSIDE else by_x
                    q = left[q] if goes_left else right[q]
                n_active = n_inside + n_outside
                gain = value[q] * weights[n_active, n_inside - 1] if n_inside > 0 else 0.0
                loss = value[q] * weights[n_active, n_inside] if n_outside > 0 else 0.0
                scale[i] += weight * abs(value[q])
                walking = False
                while level > 0:
                    j = owner[level - 1]
                    if not is_second[level - 1]:
                        out[i, j] += weight * gain
                        gains[level - 1], losses[level - 1], is_second[level - 1] = gain, loss, True
                        role[j] = OUTSIDE
                        n_inside, n_outside = n_inside - 1, n_outside + 1
                        q = other[level - 1]
                        walking = True
                        break
                    out[i, j] -= weight * loss
                    gain, loss = gain + gains[level - 1], loss + losses[level - 1]
                    role[j] = FREE
                    n_outside -= 1
                    level -= 1


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _add_leaf_sets(active, is_inside, n_active, n_inside, order, weights, coefficient, binomials, offsets, chosen, out):
    r"""Add the values of all sets of active players at one leaf to ``out`` (n_sets,): p(s) up to the sign.

    .. math:: \phi_T = (-1)^{|T \cap O|}\, c\, p_{|T|}(|I \setminus T|)
    """
    d = binomials.shape[0] - 1
    for size in range(1, min(order, n_active) + 1):
        for i in range(size):
            chosen[i] = i
        while True:
            rank = offsets[size] + binomials[d, size] - 1
            inside, sign = 0, coefficient
            for i in range(size):
                rank -= binomials[d - 1 - active[chosen[i]], size - i]
                if is_inside[chosen[i]]:
                    inside += 1
                else:
                    sign = -sign
            out[rank] += sign * weights[size, n_active, n_inside - inside]
            i = size - 1
            while i >= 0 and chosen[i] == n_active - size + i:
                i -= 1
            if i < 0:
                break
            chosen[i] += 1
            for k in range(i + 1, size):
                chosen[k] = chosen[k - 1] + 1


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _insert(active, is_inside, n_active, j, inside):
    """Insert a player into the ascending list of active ones."""
    k = n_active
    while k > 0 and active[k - 1] > j:
        active[k], is_inside[k] = active[k - 1], is_inside[k - 1]
        k -= 1
    active[k], is_inside[k] = j, inside


@njit(nogil=True, cache=True, error_model="numpy")
def walk_sets(of_rows, of_background, background_weights, offset, left, right, player, value, weights, n_levels,
              binomials, offsets, out, scale):  # fmt: skip
    """Add the values of all sets of 1..order players in one tree to ``out`` (n_rows, n_sets): as ``walk_singles``, at the leaves.

    ``weights[size, m, s]`` is p(s) for sets of ``size`` among m active players.
    """
    order = weights.shape[0] - 1
    role = np.zeros(binomials.shape[0], np.int8)
    other, owner = np.empty(n_levels + 1, np.int64), np.empty(n_levels + 1, np.int64)
    active, is_inside = np.empty(n_levels + 1, np.int64), np.empty(n_levels + 1, np.bool_)
    chosen = np.empty(order, np.int64)
    for i in range(out.shape[0]):
        for m in range(background_weights.shape[0]):
            q, level, n_inside = offset, 0, 0
            walking = True
            while walking:
                while player[q] >= 0:
                    j = player[q]
                    by_x, by_z = of_rows[i, q - offset], of_background[m, q - offset]
                    if by_x != by_z and role[j] == FREE:
                        role[j] = INSIDE
                        n_inside += 1
                        owner[level] = j
                        other[level] = left[q] if by_z else right[q]
                        level += 1
                    goes_left = by_z if role[j] == OUTSIDE else by_x
                    q = left[q] if goes_left else right[q]
                for k in range(level):
                    _insert(active, is_inside, k, owner[k], role[owner[k]] == INSIDE)
                coefficient = background_weights[m] * value[q]
                scale[i] += abs(coefficient)
                _add_leaf_sets(
                    active, is_inside, level, n_inside, order, weights, coefficient, binomials, offsets, chosen, out[i]
                )
                walking = False
                while level > 0:
                    j = owner[level - 1]
                    if role[j] == INSIDE:
                        role[j] = OUTSIDE
                        n_inside -= 1
                        q = other[level - 1]
                        walking = True
                        break
                    role[j] = FREE
                    level -= 1

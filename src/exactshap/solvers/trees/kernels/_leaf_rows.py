"""Compiled values leaf by leaf for one row at a time: the bits of ``sweep_leaves`` without mass_of for all rows.

Only splits that some hybrid of the row and a background row reaches are looked at, with the background rows that are still there:
the pairs of disjoint patterns (see ``_tree_leaf_kernels``) are found on the way down.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from exactshap.solvers.trees.kernels._leaves import WIDTH, count, ends, merge
from exactshap.trees.ensemble import goes_left

__all__ = ["sweep_leaves_of_row"]

CODE, INDEX, WENT = 0, 1, 2  # of a background row that is still there: players failed, its number, whether it goes left


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _filter(level, side, bit, E, n, rows):
    """Copy the background rows that are disjoint from the row on one side of a split to the next level; return their number."""
    kept = 0
    for i in range(n):
        code = rows[level, CODE, i] if rows[level, WENT, i] != side else rows[level, CODE, i] | bit
        rows[level + 1, CODE, kept], rows[level + 1, INDEX, kept] = code, rows[level, INDEX, i]
        kept += 1 if code & E == 0 else 0
    return kept


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _gather(level, side, bit, E, n, rows, background_weights, patterns, mass):
    """Do the same where that side is a leaf: write patterns and weights."""
    kept = 0
    for i in range(n):
        code = rows[level, CODE, i] if rows[level, WENT, i] != side else rows[level, CODE, i] | bit
        patterns[kept], mass[kept] = code, background_weights[rows[level, INDEX, i]]
        kept += 1 if code & E == 0 else 0
    return kept


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_dense(E, m, n, weights, popcount, patterns, mass, mass_of, values):
    """Write the values of a dense leaf's players for value 1 to ``values`` (m,); return the mass of the pairs."""
    everyone = ~np.uint32(0) >> np.uint32(WIDTH - m)
    A = everyone & ~E
    a = np.int64(count(A, popcount))
    gain = lost = total = 0.0
    values[:m] = 0.0
    n = merge(patterns, mass, n, mass_of)
    for i in range(n):
        F = patterns[i]
        f = np.int64(count(F, popcount))
        with_all, both = ends(f, a, m, weights)
        gain, lost, total = gain + mass[i] * with_all, lost + mass[i] * both, total + mass[i]
        both = 0.0
        if f < a:
            _, both = ends(f, a - 1, m, weights)
        both *= mass[i]
        for s in range(m):
            values[s] += 0.0 if (F >> np.uint32(s)) & np.uint32(1) else both
    for s in range(m):
        values[s] = gain - (values[s] if (A >> np.uint32(s)) & np.uint32(1) else lost)
    return total


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _sort(patterns, mass, n, n_low):
    """Sort the patterns by their ``n_low`` lowest bits, the largest first, stably: the order of the buckets."""
    low = np.uint32((1 << n_low) - 1)
    for i in range(1, n):
        F, weight, k = patterns[i], mass[i], i
        while k > 0 and patterns[k - 1] & low < F & low:
            patterns[k], mass[k] = patterns[k - 1], mass[k - 1]
            k -= 1
        patterns[k], mass[k] = F, weight


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_sparse(E, m, n, n_low, weights, popcount, patterns, mass, values):
    """Write the values of a sparse leaf's players for value 1 to ``values`` (m,); return the mass of the pairs."""
    _sort(patterns, mass, n, n_low)
    loss = total = 0.0
    e = np.int64(count(E, popcount))
    values[:m] = 0.0
    for i in range(n):
        F = patterns[i]
        f = np.int64(count(F, popcount))
        gain = mass[i] * weights[e + f, f - 1] if f > 0 else 0.0
        loss += mass[i] * weights[e + f, f] if e > 0 else 0.0
        total += mass[i]
        for s in range(m):
            values[s] += gain * np.float64((F >> np.uint32(s)) & np.uint32(1))
    for s in range(m):
        values[s] = -loss if (E >> np.uint32(s)) & np.uint32(1) else values[s]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_leaves_of_row(
    x, background, steps, player_of, background_weights, weights, sizes, popcount, rows, mass_of, out, scale
):
    """Add the values of single players of all trees to ``out`` (n_outputs, n_players); return ``scale`` with the magnitudes.

    ``sizes`` as in ``sweep_leaves``. ``rows`` (n_levels, 3, n_background) and ``mass_of`` (2^m,), which is 0.0, are scratch.
    """
    n_background, n_levels = background_weights.shape[0], rows.shape[0]
    patterns, mass, values = np.empty(n_background, np.uint32), np.empty(n_background), np.zeros(WIDTH)
    failed, left, n_rows = np.zeros(n_levels, np.uint32), np.zeros(n_levels, np.bool_), np.zeros(n_levels, np.int64)
    slots, n_players, players = np.zeros(n_levels, np.int64), np.zeros(n_levels, np.int64), np.zeros(WIDTH, np.int64)
    nodes, level_of, above_of, is_right, end = steps.nodes, steps.level, steps.above, steps.is_right, steps.end
    is_leaf, value, feature = steps.is_leaf, steps.value, steps.nodes.feature
    n_rows[0], step = n_background, 0
    n_dense, n_low = sizes
    for i in range(n_background):
        rows[0, CODE, i], rows[0, INDEX, i] = 0, i
    while step < end.shape[0]:
        level, above, column = np.int64(level_of[step]), above_of[step], feature[step]
        if level > 0:
            side, bit = 1 if is_right[step] else 0, np.uint32(1) << np.uint32(slots[level - 1])
            failed[level] = failed[level - 1] | (bit if left[level - 1] == is_right[step] else np.uint32(0))
            n_rows[level] = _filter(level - 1, side, bit, failed[level], n_rows[level - 1], rows)
        slot, n = slots[above - 1] if above > 0 else n_players[level], n_rows[level]
        if n == 0 or slot >= WIDTH:
            step = end[step]
            continue
        m = n_players[level] + (1 if above == 0 else 0)
        slots[level], n_players[level + 1], players[slot] = slot, m, player_of[column]
        left[level] = goes_left(x[column], step, nodes)
        for i in range(n):
            rows[level, WENT, i] = goes_left(background[column, rows[level, INDEX, i]], step, nodes)
        for side in range(2):
            if not is_leaf[step, side]:
                continue
            bit = np.uint32(1) << np.uint32(slot)
            E = failed[level] | (bit if left[level] == (side == 1) else np.uint32(0))
            n_leaf = _gather(level, side, bit, E, n, rows, background_weights, patterns, mass)
            if n_leaf == 0:
                continue
            if m <= n_dense:
                total = _fill_dense(E, m, n_leaf, weights, popcount, patterns, mass, mass_of, values)
            else:
                total = _fill_sparse(E, m, n_leaf, n_low, weights, popcount, patterns, mass, values)
            magnitude = 0.0
            for o in range(value.shape[2]):
                c = value[step, side, o]
                magnitude = max(magnitude, abs(c))
                for s in range(m):
                    out[o, players[s]] += c * values[s]
            scale += magnitude * total
        step += 1
    return scale

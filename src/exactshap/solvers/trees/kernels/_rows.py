"""Compiled quadrature along the paths for one row at a time: the bits of ``sweep_paths`` without its coefficients.

Coefficients for three states at every split pay off for many rows. One row has one state, and its factors are made as it walks.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from exactshap.solvers.trees.kernels._paths import FAILED, LEFT, LOST, NODES, REST, RIGHT, WEIGHTS, gain, loss, passed
from exactshap.trees.ensemble import goes_left

__all__ = ["sweep_row"]

PRODUCT, SUM, INVERSE, ROWS = 0, 2, 4, 5  # at each level: the products and sums of both sides, 1 / F below the edge taken


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _enter(h, before, down, n, taken, b_taken, b_other, c_taken, c_other, rule, work):
    """Write the products of both sides of an open split, and their sums where they are leaves (``c`` 0.0 elsewhere)."""
    to, fro = down + np.uint64(taken) * n, down + np.uint64(1 - taken) * n
    sum_to, sum_fro, inverse = to + n + n, fro + n + n, down + np.uint64(INVERSE) * n
    for k in range(n):
        rest, product, above = rule[REST, k], work[h + k], work[before + k]
        factor = passed(rule[NODES, k], rest, b_taken)
        ratio, other = factor * above, rest * b_other * above
        work[to + k] = product * ratio
        work[fro + k] = product * other
        work[sum_to + k] = product * (ratio * c_taken)
        work[sum_fro + k] = product * (other * c_other)
        work[inverse + k] = 1.0 / factor


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _pass_on(h, down, n, left, right, c_left, c_right, work):
    """Do the same at a split on a player that the row failed above."""
    of_left, of_right = left * c_left, right * c_right
    for i in range(n):
        k = down + i
        product = work[h + i]
        work[k] = product * left
        work[k + n] = product * right
        work[k + n + n] = product * of_left
        work[k + n + n + n] = product * of_right


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _leave(down, before, up, n, taken, outside, b_taken, total, rule, work):
    """Add the sums of both sides of a finished open split to ``up``; return ``total`` with their gain."""
    to, fro = down + np.uint64(SUM + taken) * n, down + np.uint64(SUM + 1 - taken) * n
    inverse = down + np.uint64(INVERSE) * n
    for k in range(n):
        above, of_taken, of_other = work[before + k], work[to + k], work[fro + k]
        work[up + k] = of_taken + of_other
        total += of_taken * gain(b_taken, work[inverse + k], outside, above) + of_other * loss(rule[LOST, k], outside, above)
    return total


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _enter_magnitudes(product, left, right, step, value, level, magnitudes):
    """Write the products of the largest factors of both sides, times the magnitudes of leaves, to ``magnitudes[level]`` (2, 2)."""
    of_left = of_right = 0.0
    for o in range(value.shape[2]):
        of_left, of_right = max(of_left, abs(value[step, 0, o])), max(of_right, abs(value[step, 1, o]))
    magnitudes[level, 0, 0], magnitudes[level, 0, 1] = product * left, product * right
    magnitudes[level, 1, 0], magnitudes[level, 1, 1] = product * (left * of_left), product * (right * of_right)


@njit(nogil=True, cache=True, error_model="numpy")
def _sweep_tree(
    x, first, last, steps, player_of, output, rule, work, levels, state, side_at, player_at, edges, magnitudes, total
):
    """Walk one tree down and up for the row ``x``; ``total`` (n_players,) gets the values. Return the sum of magnitudes.

    ``levels`` (n_levels + 1,) tells where the inverse factors above a split are; ``edges`` (n_levels + 1, 2) its products of cover
    ratios: above it and on the side taken. Index 0 is above the root.
    """
    n = np.uint64(rule.shape[1])
    row = np.uint64(ROWS) * n
    nodes, share, value = steps.nodes, steps.share, steps.value
    level_of, above_of, is_right, feature = steps.level, steps.above, steps.is_right, steps.nodes.feature
    for step in range(first, last):
        level, above, column = np.int64(level_of[step]) + 1, np.int64(above_of[step]), feature[step]
        side = 1 if is_right[step] else 0
        side_at[level - 1] = side
        taken = LEFT if goes_left(x[column], step, nodes) else RIGHT
        is_failed = above > 0 and state[above] != side_at[above]
        state[level], player_at[level] = FAILED if is_failed else taken, player_of[column]
        down = np.uint64(level) * row
        h = down - row + np.uint64(side) * n
        left, right = share[step, 0], share[step, 1]
        if is_failed:
            _pass_on(h, down, n, left, right, value[step, 0, output], value[step, 1, output], work)
        else:
            outside = edges[above, 1]
            b_taken, b_other = outside * share[step, taken], outside * share[step, 1 - taken]
            edges[level, 0], edges[level, 1] = outside, b_taken
            levels[level] = np.uint64(above) * row + np.uint64(INVERSE) * n
            _enter(h, levels[level], down, n, taken, b_taken, b_other, value[step, taken, output], value[step, 1 - taken, output],
                   rule, work)  # fmt: skip
            left, right = (1.0, b_other) if taken == LEFT else (b_other, 1.0)
        _enter_magnitudes(magnitudes[level - 1, 0, side], left, right, step, value, level, magnitudes)
        for done in range(level, level_of[step + 1] if step + 1 < last else 0, -1):
            down = np.uint64(done) * row
            up = down - row + np.uint64(SUM + side_at[done - 1]) * n
            if state[done] == FAILED:
                of_left = down + np.uint64(SUM) * n
                for k in range(n):
                    work[up + k] = work[of_left + k] + work[of_left + n + k]
            else:
                j = player_at[done]
                total[j] = _leave(down, levels[done], up, n, state[done], edges[done, 0], edges[done, 1], total[j], rule, work)
            magnitudes[done - 1, 1, side_at[done - 1]] = magnitudes[done, 1, 0] + magnitudes[done, 1, 1]
    return magnitudes[0, 1, 0]


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_row(x, n_levels, steps, player_of, output, rule, out):
    """Add the values of single players of all trees to ``out`` (n_players,); return the sum of magnitudes."""
    n, total, scale = rule.shape[1], np.empty(out.shape[0]), 0.0
    work = np.ones((n_levels + 1) * ROWS * n)
    for k in range(n):
        work[k] = rule[WEIGHTS, k]
    levels, player_at = np.zeros(n_levels + 1, np.uint64), np.zeros(n_levels + 1, np.int64)
    state, side_at = np.zeros(n_levels + 1, np.int64), np.zeros(n_levels + 1, np.int64)
    edges, magnitudes = np.ones((n_levels + 1, 2)), np.ones((n_levels + 1, 2, 2))
    for tree in range(steps.tree_start.shape[0] - 1):
        first, last = steps.tree_start[tree], steps.tree_start[tree + 1]
        if first == last:
            continue
        total[:] = 0.0
        scale += _sweep_tree(x, first, last, steps, player_of, output, rule, work, levels, state, side_at, player_at, edges,
                             magnitudes, total)  # fmt: skip
        for j in range(out.shape[0]):
            out[j] += total[j]
    return scale

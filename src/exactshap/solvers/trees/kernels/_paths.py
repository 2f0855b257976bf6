r"""Compiled quadrature along the paths of deep trees with cover ratios: memory linear in the depth, any number of players.

A leaf is the product of the factors :math:`F_j(t) = a_j t + (1 - t) b_j` over the distinct players of its path: ``a`` says whether
the row satisfies all splits on j, ``b`` is the product of their cover ratios. Nodes lie inside (0, 1), where a factor is zero
only if ``a = b = 0``, and then nothing is ever divided by it.

Below an edge on player j, in one tree, let S be the sum over leaves of :math:`c_l \prod_k F_{lk}`. Then

.. math:: \phi_j = \sum_q \omega_q \sum_{e \text{ on } j} \Bigl(\frac{a - b}{F_j} \Big|_e - \frac{a - b}{F_j} \Big|_{\text{above } e}\Bigr) S_e(t_q)

Down the tree products are multiplied, up the tree sums are added: O(n_splits n_nodes) per row. Many rows go together here, and one
at a time in ``_tree_row_kernels``: the same operations in the same order, so the same bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from exactshap.trees.ensemble import decide

__all__ = ["fill_coefficients", "gain", "largest", "loss", "passed", "sweep_leaf_sets", "sweep_paths"]

LEFT, RIGHT, FAILED = 0, 1, 2  # a row at a split: the side that it takes, or it failed an earlier split on the player
NODES, REST, LOST, WEIGHTS = 0, 1, 2, 3  # rows of a rule: t, 1 - t, -1 / (1 - t), weights


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def passed(t, rest, b):
    """Return the player's factor F where the row passes all splits so far."""
    return t + rest * b


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def gain(b, inverse, outside, before):
    """Return the change of (a - b) / F along the edge that a row takes; ``inverse`` and ``before`` are 1 / F below and above."""
    return (1.0 - b) * inverse - (1.0 - outside) * before


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def loss(lost, outside, before):
    """Return the same along the edge that it does not take: there (a - b) / F = -1 / (1 - t) whatever b is."""
    return lost - (1.0 - outside) * before


@njit(nogil=True, cache=True, error_model="numpy")
def fill_coefficients(first, n_steps, n_levels, steps, output, rule, out):
    """Fill ``out`` (n_steps, 4, 3, n_nodes + 1): what a split does to a row of each of the three states, node by node.

    Kinds: 0 and 1 the ratio of the player's factor below the left and right edge to that above, times the value of a leaf; 2 and 3
    their gains. The extra node carries magnitudes: the ratio of the largest factors, without gains.
    """
    n = rule.shape[1]
    side_at, outside_at, before = np.empty(n_levels, np.int64), np.ones((n_levels + 1, 2)), np.empty(n)
    for i in range(n_steps):
        step = first + i
        level, above = steps.level[step], steps.above[step]
        if level > 0:
            side_at[level - 1] = 1 if steps.is_right[step] else 0
        outside = outside_at[above, side_at[above - 1]] if above > 0 else 1.0
        for k in range(n):
            before[k] = 1.0 / passed(rule[NODES, k], rule[REST, k], outside)
        for side in range(2):
            share, value, magnitude = steps.share[step, side], 1.0, 1.0
            b = outside * share
            outside_at[level + 1, side] = b
            if steps.is_leaf[step, side]:
                value, magnitude = steps.value[step, side, output], largest(steps.value[step, side])
            edge, gains = out[i, side], out[i, 2 + side]
            for k in range(n):
                rest = rule[REST, k]
                below = passed(rule[NODES, k], rest, b)
                edge[side, k] = below * before[k] * value
                edge[1 - side, k] = rest * b * before[k] * value
                edge[FAILED, k] = share * value
                gains[side, k] = gain(b, 1.0 / below, outside, before[k])
                gains[1 - side, k] = loss(rule[LOST, k], outside, before[k])
            edge[side, n], edge[1 - side, n], edge[FAILED, n] = magnitude, b * magnitude, share * magnitude
            gains[:, n] = 0.0


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def largest(values):
    """Return the largest magnitude of a leaf's values."""
    out = 0.0
    for o in range(values.shape[0]):
        out = max(out, abs(values[o]))
    return out


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _fill_state(values, step, steps, side_at, went, states):
    """Write the states at a split of the rows with ``values`` on its column to ``states[level + 1]``."""
    here, above = states[steps.level[step] + 1], steps.above[step]
    decide(values, step, steps.nodes, went)
    for r in range(here.shape[0]):
        here[r] = LEFT if went[r] else RIGHT
    if above > 0:
        side = side_at[above - 1]
        for r in range(here.shape[0]):
            here[r] = here[r] if states[above, r] == side else FAILED


@njit(nogil=True, cache=True, error_model="numpy")
def _multiply(ratios, state, above, here):
    """Multiply the products of the split above by the ratios of an edge: products below it, or the sum of a leaf."""
    for k in range(here.shape[0]):
        failed, left, right = ratios[FAILED, k], ratios[LEFT, k], ratios[RIGHT, k]
        for r in range(here.shape[1]):
            ratio = left if state[r] == LEFT else right
            here[k, r] = above[k, r] * (failed if state[r] == FAILED else ratio)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _finish(left_gains, right_gains, state, left, right, out, total):
    """Add the sums of both sides of a split to ``out``, and give their gain to the split's player."""
    for k in range(left.shape[0]):
        l_left, l_right, r_left, r_right = (
            left_gains[LEFT, k],
            left_gains[RIGHT, k],
            right_gains[LEFT, k],
            right_gains[RIGHT, k],
        )
        for r in range(left.shape[1]):
            left_gain = l_left if state[r] == LEFT else l_right
            right_gain = r_left if state[r] == LEFT else r_right
            change = left[k, r] * left_gain + right[k, r] * right_gain
            total[r] += 0.0 if state[r] == FAILED else change
            out[k, r] = left[k, r] + right[k, r]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _sweep_block(columns, start, first, last, steps, player_of, coefficients, went, states, products, sums, total):
    """Walk one tree down and up for one block of rows; ``total`` (n_players, n_lanes) gets the values."""
    width = went.shape[0]
    side_at, position = np.empty(products.shape[0], np.int64), np.empty(products.shape[0], np.int64)
    for step in range(first, last):
        i, level = step - first, steps.level[step]
        position[level] = i
        if level > 0:
            side = side_at[level - 1] = 1 if steps.is_right[step] else 0
            _multiply(coefficients[position[level - 1], side], states[level], products[level - 1], products[level])
        _fill_state(columns[steps.nodes.feature[step], start : start + width], step, steps, side_at, went, states)
        for side in range(2):
            if steps.is_leaf[step, side]:
                _multiply(coefficients[i, side], states[level + 1], products[level], sums[level + 1, side])
        for done in range(level, (steps.level[step + 1] if step + 1 < last else 0) - 1, -1):
            p, at = position[done], done + 1
            _finish(coefficients[p, 2], coefficients[p, 3], states[at], sums[at, 0], sums[at, 1],
                    sums[done, side_at[done - 1] if done > 0 else 0], total[player_of[steps.nodes.feature[first + p]]])  # fmt: skip


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_paths(columns, first, last, n_levels, n_lanes, steps, player_of, rule, coefficients, out, scale):
    """Add the values of single players in one tree to ``out`` (n_players, n_rows), the sum of magnitudes to ``scale``.

    ``columns`` (n_features, n_rows) go ``n_lanes`` rows at a time; each keeps its own order of operations.
    """
    n_rows, n = columns.shape[1], rule.shape[1]
    for start in range(0, n_rows, n_lanes):
        width = min(n_lanes, n_rows - start)
        went, states = np.empty(width, np.uint8), np.empty((n_levels + 1, width), np.int64)
        products, sums = np.empty((n_levels, n + 1, width)), np.empty((n_levels + 1, 2, n + 1, width))
        total = np.zeros((out.shape[0], width))
        for k in range(n):
            products[0, k] = rule[WEIGHTS, k]
        products[0, n] = 1.0
        _sweep_block(columns, start, first, last, steps, player_of, coefficients, went, states, products, sums, total)
        for r in range(width):
            scale[start + r] += sums[0, 0, n, r]
            for j in range(out.shape[0]):
                out[j, start + r] += total[j, r]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _fill_factors(decisions, offset, l, leaves, start, inside, slopes):
    """Write a (as ``inside``) and a - b of the leaf's players for the rows from ``start`` on, both (n_slots, n_lanes)."""
    inside[:] = 1.0
    for e in range(leaves.edge_start[l], leaves.edge_start[l + 1]):
        decided = decisions[leaves.edge_node[e] - offset]
        passed = 1 if leaves.edge_left[e] else 0
        for r in range(inside.shape[1]):
            if decided[start + r] != passed:
                inside[leaves.edge_slot[e], r] = 0.0
    for k in range(inside.shape[0]):
        b = leaves.ratio[leaves.start[l] + k]
        for r in range(inside.shape[1]):
            slopes[k, r] = inside[k, r] - b


@njit(nogil=True, cache=True, error_model="numpy")
def _add_sets(size, slopes, factors, suffix, running, position, shares):
    """Add the products of all sets of ``size`` slots, in lexicographic order, to ``shares`` (n_sets, n_lanes).

    A stack of running products, one per member, visits each set with one multiplication per step. ``running[0]`` is set.
    """
    m, width = slopes.shape
    level, s = 0, 0
    position[0] = 0
    while level >= 0:
        k = position[level]
        if k > m - (size - level):
            level -= 1
            if level >= 0:
                j = position[level]
                for r in range(width):
                    running[level, r] *= factors[j, r]
                position[level] = j + 1
        elif level == size - 1:
            for r in range(width):
                shares[s, r] += running[level, r] * slopes[k, r] * suffix[k + 1, r]
                running[level, r] *= factors[k, r]
            position[level] = k + 1
            s += 1
        else:
            for r in range(width):
                running[level + 1, r] = running[level, r] * slopes[k, r]
            position[level + 1] = k + 1
            level += 1


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _next_set(chosen, m):
    """Move ``chosen`` (ascending positions below m) to the lexicographically next set."""
    size = chosen.shape[0]
    i = size - 1
    while i >= 0 and chosen[i] == m - size + i:
        i -= 1
    if i >= 0:
        chosen[i] += 1
        for k in range(i + 1, size):
            chosen[k] = chosen[k - 1] + 1


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_leaf_sets(decisions, offset, first_leaf, last_leaf, n_lanes, leaves, value, size, nodes, node_weights,
                    binomials, offsets, out):  # fmt: skip
    r"""Add the values of all sets of ``size`` players in one tree to ``out`` (n_sets, n_outputs, n_rows), leaf by leaf.

    .. math:: \phi_T = \sum_l c_l \sum_q \omega_q \prod_{j \in T} (a_{lj} - b_{lj}) \prod_{k \notin T} F_{lk}(t_q)

    No division, so that nodes may be 0 or 1. Cost O(sum over leaves of n_nodes C(m, size)) per row.
    """
    n_rows, d = decisions.shape[1], binomials.shape[0] - 1
    chosen = np.empty(size, np.int64)
    position = np.empty(size + 1, np.int64)
    for l in range(first_leaf, last_leaf):
        m = leaves.start[l + 1] - leaves.start[l]
        if m < size:
            continue
        n_sets = 1
        for i in range(size):
            n_sets = n_sets * (m - i) // (i + 1)
        for start in range(0, n_rows, n_lanes):
            width = min(n_lanes, n_rows - start)
            inside, slopes, factors = np.empty((m, width)), np.empty((m, width)), np.empty((m, width))
            suffix, running = np.empty((m + 1, width)), np.empty((size + 1, width))
            shares = np.zeros((n_sets, width))
            _fill_factors(decisions, offset, l, leaves, start, inside, slopes)
            for q in range(nodes.shape[0]):
                suffix[m] = 1.0
                for k in range(m - 1, -1, -1):
                    b = (1.0 - nodes[q]) * leaves.ratio[leaves.start[l] + k]
                    for r in range(width):
                        factors[k, r] = nodes[q] * inside[k, r] + b
                        suffix[k, r] = suffix[k + 1, r] * factors[k, r]
                running[0] = node_weights[q]
                _add_sets(size, slopes, factors, suffix, running, position, shares)
            for i in range(size):
                chosen[i] = i
            for s in range(n_sets):
                rank = offsets[size] + binomials[d, size] - 1
                for i in range(size):
                    rank -= binomials[d - 1 - leaves.player[leaves.start[l] + chosen[i]], size - i]
                for o in range(value.shape[1]):
                    for r in range(width):
                        out[rank, o, start + r] += value[leaves.node[l], o] * shares[s, r]
                _next_set(chosen, m)

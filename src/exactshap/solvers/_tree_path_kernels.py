"""Compiled quadrature along the paths of deep trees with cover ratios: memory linear in the depth, any number of players.

A leaf is the product of the factors :math:`F_j(t) = a_j t + (1 - t) b_j` over the distinct players of its path: ``a`` says whether
the row satisfies all splits on j, ``b`` is the product of their cover ratios. Nodes lie inside (0, 1), where a factor is zero
only if ``a = b = 0``, and then nothing is ever divided by it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["Steps", "fill_coefficients", "fill_steps", "mark_states", "sweep_leaf_sets", "sweep_paths"]

LANES = 128  # rows at a time: four 256-bit registers of float64

FAILED, LEFT, RIGHT = 0, 1, 2  # a row at a split: failed an earlier split on the player, else the side that it takes


class Steps(NamedTuple):
    """The splits of all trees, each tree's in depth-first order; positions are relative to the tree's first split."""

    tree_start: np.ndarray
    node: np.ndarray
    parent: np.ndarray  # position of the split above, -1 at the root
    from_left: np.ndarray  # whether this split is the left child of its parent
    depth: np.ndarray
    above: np.ndarray  # position of the nearest split above on the same player, -1 without
    above_left: np.ndarray  # whether the path went left there
    outside: np.ndarray  # product of the cover ratios of the player's splits above
    n_children: np.ndarray  # children that are splits
    is_last: np.ndarray  # whether no other split child of the parent comes later


@njit(nogil=True, cache=True, error_model="numpy")
def fill_steps(tree_start, left, right, player, share, steps):
    """Fill ``steps``, whose ``tree_start`` is set."""
    stack = np.empty((player.shape[0] + 1, 2), np.int64)
    for k in range(tree_start.shape[0] - 1):
        first = steps.tree_start[k]
        i = first
        size = 1 if player[tree_start[k]] >= 0 else 0
        stack[0, 0], stack[0, 1] = tree_start[k], -1
        while size > 0:
            size -= 1
            q, p = stack[size, 0], stack[size, 1]
            steps.node[i], steps.parent[i] = q, p
            steps.from_left[i] = p >= 0 and left[steps.node[first + p]] == q
            steps.depth[i] = 0 if p < 0 else steps.depth[first + p] + 1
            _find_above(i, first, steps, player, left, right, share)
            steps.n_children[i] = 0
            steps.is_last[i] = p < 0 or not steps.from_left[i] or player[right[steps.node[first + p]]] < 0
            for child in (right[q], left[q]):
                if player[child] >= 0:
                    steps.n_children[i] += 1
                    stack[size, 0], stack[size, 1] = child, i - first
                    size += 1
            i += 1


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _find_above(i, first, steps, player, left, right, share):
    """Set the nearest split above position ``i`` on the same player, and the cover ratios of all of them."""
    steps.above[i] = -1
    steps.outside[i] = 1.0
    below, p = i, steps.parent[i]
    while p >= 0:
        if player[steps.node[first + p]] == player[steps.node[i]]:
            goes_left = steps.from_left[below]
            child = left[steps.node[first + p]] if goes_left else right[steps.node[first + p]]
            steps.above[i], steps.above_left[i] = p, goes_left
            steps.outside[i] = steps.outside[first + p] * share[child]
            return
        below, p = first + p, steps.parent[first + p]


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_edge(state, is_left, outside, share, nodes, ratios, gains):
    r"""Write the ratios of the player's factor below an edge to that above, and the changes of (a - b) / F, node by node.

    With a row that fails, :math:`(a - b) / F = -1 / (1 - t)` whatever b is.
    """
    b = outside * share
    taken = is_left == (state == LEFT)
    for k in range(nodes.shape[0]):
        t = nodes[k]
        if state == FAILED:
            ratios[k], gains[k] = share, 0.0
        elif taken:
            after = t + (1.0 - t) * b
            ratios[k], gains[k] = after, (1.0 - b) / after
        else:
            ratios[k], gains[k] = (1.0 - t) * b, -1.0 / (1.0 - t)
    if state == FAILED or outside == 1.0:  # the player's first split on the path, as a rule
        return
    for k in range(nodes.shape[0]):
        before = nodes[k] + (1.0 - nodes[k]) * outside
        ratios[k] /= before
        gains[k] -= (1.0 - outside) / before


@njit(nogil=True, cache=True, error_model="numpy")
def _magnitude(state, is_left, outside, share):
    """Return the ratio of the player's largest factors: 1 where the row passes, else b."""
    if state == FAILED:
        return share
    return 1.0 if is_left == (state == LEFT) else outside * share


@njit(nogil=True, cache=True, error_model="numpy")
def mark_states(decisions, offset, first, steps, out):
    """Mark which states some row has at each split in ``out`` (n_steps, 3)."""
    states = np.empty((out.shape[0], decisions.shape[1]), np.int64)
    _fill_states(decisions, offset, 0, first, steps, states)
    out[:] = False
    for i in range(out.shape[0]):
        for r in range(states.shape[1]):
            out[i, states[i, r]] = True


@njit(nogil=True, cache=True, error_model="numpy")
def fill_coefficients(first, n_steps, steps, left, right, player, share, value, magnitude, nodes, node_weights, needed, out):
    """Fill ``out`` (n_steps, 4, 3, n_nodes + 1): what a split does to a row of each of the three states, node by node.

    Kinds: 0 ratio of the edge into the split, 1 gain of the parent's player from it, 2 value and 3 gain of its leaf children.
    States of kinds 0 and 1 are those at the parent. The extra node carries the sum of magnitudes. Only the states that are
    ``needed`` (n_steps, 3) are filled: each on its own, so that the bits do not depend on the others.
    """
    n = nodes.shape[0]
    ratios, gains = np.empty(n), np.empty(n)
    for i in range(n_steps):
        q, p = steps.node[first + i], steps.parent[first + i]
        for state in range(3):
            if needed[i, state]:
                for k in range(n + 1):
                    out[i, 2, state, k] = out[i, 3, state, k] = 0.0
            if p >= 0 and needed[p, state]:
                is_left, outside = steps.from_left[first + i], steps.outside[first + p]
                _fill_edge(state, is_left, outside, share[q], nodes, ratios, gains)
                for k in range(n):
                    out[i, 0, state, k], out[i, 1, state, k] = ratios[k], gains[k] * node_weights[k]
                out[i, 0, state, n], out[i, 1, state, n] = _magnitude(state, is_left, outside, share[q]), 0.0
            for child in (left[q], right[q]):
                if player[child] >= 0 or not needed[i, state]:
                    continue
                is_left, outside = child == left[q], steps.outside[first + i]
                _fill_edge(state, is_left, outside, share[child], nodes, ratios, gains)
                for k in range(n):
                    out[i, 2, state, k] += ratios[k] * value[child]
                    out[i, 3, state, k] += ratios[k] * value[child] * gains[k] * node_weights[k]
                out[i, 2, state, n] += _magnitude(state, is_left, outside, share[child]) * magnitude[child]


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_states(decisions, offset, start, first, steps, states):
    """Write the state of the rows from ``start`` on at each split to ``states`` (n_steps, n_lanes)."""
    for i in range(states.shape[0]):
        decided = decisions[steps.node[first + i] - offset]
        above = steps.above[first + i]
        for r in range(states.shape[1]):
            states[i, r] = LEFT if decided[start + r] else RIGHT
        if above >= 0:
            passed = LEFT if steps.above_left[first + i] else RIGHT
            for r in range(states.shape[1]):
                states[i, r] = states[i, r] if states[above, r] == passed else FAILED


@njit(nogil=True, cache=True, error_model="numpy")
def _descend(ratios, state, above, here):
    """Multiply the products of the split above by the ratios of the edge."""
    for k in range(here.shape[0]):
        failed, left, right = ratios[FAILED, k], ratios[LEFT, k], ratios[RIGHT, k]
        for r in range(here.shape[1]):
            ratio = left if state[r] == LEFT else right
            here[k, r] = above[k, r] * (failed if state[r] == FAILED else ratio)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _add_leaves(values, gains, state, here, sums, total):
    """Start the sums of a split with its leaf children, and give their gain to its player."""
    for k in range(here.shape[0]):
        failed, left, right = values[FAILED, k], values[LEFT, k], values[RIGHT, k]
        failed_gain, left_gain, right_gain = gains[FAILED, k], gains[LEFT, k], gains[RIGHT, k]
        for r in range(here.shape[1]):
            value = left if state[r] == LEFT else right
            gain = left_gain if state[r] == LEFT else right_gain
            sums[k, r] = here[k, r] * (failed if state[r] == FAILED else value)
            total[r] += here[k, r] * (failed_gain if state[r] == FAILED else gain)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _ascend(gains, state, below, sums, total):
    """Add the sums of a finished split to its parent's, and give their gain to the parent's player."""
    for k in range(sums.shape[0]):
        failed_gain, left_gain, right_gain = gains[FAILED, k], gains[LEFT, k], gains[RIGHT, k]
        for r in range(sums.shape[1]):
            gain = left_gain if state[r] == LEFT else right_gain
            sums[k, r] += below[k, r]
            total[r] += below[k, r] * (failed_gain if state[r] == FAILED else gain)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _sweep_block(first, steps, player, coefficients, states, products, sums, total):
    """Walk one tree down and up for one block of rows; ``total`` (n_players, n_lanes) gets the values."""
    for i in range(states.shape[0]):
        step = first + i
        here, here_sums = products[steps.depth[step]], sums[steps.depth[step]]
        if steps.parent[step] < 0:
            here[:] = 1.0
        else:
            _descend(coefficients[i, 0], states[steps.parent[step]], products[steps.depth[step] - 1], here)
        if steps.n_children[step] < 2:
            _add_leaves(coefficients[i, 2], coefficients[i, 3], states[i], here, here_sums, total[player[steps.node[step]]])
        else:
            here_sums[:] = 0.0
        done, finished = i, steps.n_children[step] == 0
        while finished and done > 0:
            p, level = steps.parent[first + done], steps.depth[first + done]
            _ascend(coefficients[done, 1], states[p], sums[level], sums[level - 1], total[player[steps.node[first + p]]])
            done, finished = p, steps.is_last[first + done]


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_paths(decisions, offset, first, n_steps, n_levels, n_lanes, steps, player, coefficients, out, scale):
    r"""Add the values of single players in one tree to ``out`` (n_players, n_rows), the sum of magnitudes to ``scale``.

    .. math:: \phi_j = \sum_q \omega_q \sum_{e \text{ on } j} \Bigl(\frac{a - b}{F_j} \Big|_e - \frac{a - b}{F_j} \Big|_{\text{above } e}\Bigr)
              \sum_{l \text{ below } e} c_l \prod_k F_{lk}(t_q)

    Down the tree products are multiplied, up the tree sums over leaves are added: O(n_splits n_nodes) per row. ``n_lanes``
    rows go together; each keeps its own order of operations, so that the bits do not depend on it.
    """
    n_rows, n_nodes = decisions.shape[1], coefficients.shape[3]
    for start in range(0, n_rows, n_lanes):
        width = min(n_lanes, n_rows - start)
        states = np.empty((n_steps, width), np.int64)
        products, sums = np.empty((n_levels, n_nodes, width)), np.empty((n_levels, n_nodes, width))
        total = np.zeros((out.shape[0], width))
        _fill_states(decisions, offset, start, first, steps, states)
        _sweep_block(first, steps, player, coefficients, states, products, sums, total)
        for r in range(width):
            scale[start + r] += sums[0, n_nodes - 1, r]
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

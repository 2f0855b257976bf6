r"""Compiled values of single players in tables of trees: all cells of a leaf at once, or one cell alone with the same bits.

A leaf's cell A are the players whose splits the row satisfies. With cover ratios b and the rule's nodes t and weights w

.. math:: \phi_j(A) = ([j \in A] - b_j) \sum_q w_q \prod_{k \ne j} (t_q [k \in A] + (1 - t_q) b_k),

with a background, g of which is known for all sets of players,

.. math:: \phi_j(A) = P(A) - (P + Y)(A \setminus j), \qquad Y(A) = \sum_{S \subseteq A} p(|S|)\, g(S), \qquad
          P(A) = \sum_{S \subseteq A} p(|S| - 1)\, g(S).

A few rows need a few cells only: they are not worth whole tables. Every operation of a cell is the same, in the same order, either way.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from exactshap._runtime.lanes import U1, U2, U3, U4, U5, U6, U7, add_range
from exactshap.solvers.trees.kernels._tables import add_ends, fill_cover_survival, fill_leaf_codes, largest_size
from exactshap.trees.ensemble import Nodes, fill_decisions

__all__ = ["fill_single_tables", "sweep_few"]


@njit(nogil=True, cache=True, error_model="numpy")
def sum_subsets(table, m):
    """Replace ``table[S]`` (2^m,) by the sum over the subsets of S, one player after another.

    A cell meets the same additions in the same order whichever players outside it the table has.
    """
    size = 1 << m
    if m < 3:
        for k in range(m):
            half = 1 << k
            for block in range(0, size, 2 * half):
                for S in range(block, block + half):
                    table[S + half] += table[S]
        return
    for start in range(0, size, 8):
        i = np.uint64(start)
        a0, a1, a2, a3 = table[i], table[i + U1], table[i + U2], table[i + U3]
        a4, a5, a6, a7 = table[i + U4], table[i + U5], table[i + U6], table[i + U7]
        a1, a3, a5, a7 = a1 + a0, a3 + a2, a5 + a4, a7 + a6
        a2, a3, a6, a7 = a2 + a0, a3 + a1, a6 + a4, a7 + a5
        table[i], table[i + U1], table[i + U2], table[i + U3] = a0, a1, a2, a3
        table[i + U4], table[i + U5], table[i + U6], table[i + U7] = a4 + a0, a5 + a1, a6 + a2, a7 + a3
    for k in range(3, m):
        half = 1 << k
        for block in range(0, size, 2 * half):
            add_range(table, block + half, block, half)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _fill_cover_values(ratio, first, m, nodes, node_weights, below, above, out):
    """Write the values of all players of a leaf in all cells to ``out`` (m, 2^m): products of those below and above each player.

    ``below[2^j + x]`` is the product over the players below j, those in x satisfied, ``above[2^(m - 1 - j) + x]`` over those above.
    """
    size = 1 << m
    out[:m, :size] = 0.0
    for q in range(nodes.shape[0]):
        below[1], above[1] = node_weights[q], 1.0
        for j in range(m - 1):
            half, outside = 1 << j, (1.0 - nodes[q]) * ratio[first + j]
            for x in range(half):
                below[2 * half + x] = below[half + x] * outside
                below[3 * half + x] = below[half + x] * (nodes[q] + outside)
        for j in range(m - 1, 0, -1):
            n_above, outside = 1 << (m - 1 - j), (1.0 - nodes[q]) * ratio[first + j]
            for x in range(n_above):
                above[2 * n_above + 2 * x] = above[n_above + x] * outside
                above[2 * n_above + 2 * x + 1] = above[n_above + x] * (nodes[q] + outside)
        for j in range(m):
            half, n_above, total = 1 << j, 1 << (m - 1 - j), out[j]
            for y in range(n_above):
                for x in range(half):
                    total[2 * half * y + x] += below[half + x] * above[n_above + y]
    for j in range(m):
        half, b, total = 1 << j, ratio[first + j], out[j]
        for block in range(0, size, 2 * half):
            for x in range(block, block + half):
                total[x + half] = total[x] * (1.0 - b)
                total[x] *= -b


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _cover_values_of(A, ratio, first, m, nodes, node_weights, below, out):
    """Write the values of all players of a leaf in the cell ``A`` to ``out`` (m,)."""
    out[:m] = 0.0
    for q in range(nodes.shape[0]):
        product = node_weights[q]
        for j in range(m):
            outside = (1.0 - nodes[q]) * ratio[first + j]
            below[j] = product
            product *= nodes[q] + outside if (A >> j) & 1 else outside
        product = 1.0
        for j in range(m - 1, -1, -1):
            outside = (1.0 - nodes[q]) * ratio[first + j]
            out[j] += below[j] * product
            product *= nodes[q] + outside if (A >> j) & 1 else outside
    for j in range(m):
        out[j] *= 1.0 - ratio[first + j] if (A >> j) & 1 else -ratio[first + j]


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_sums(m, weights, popcount, P, both):
    """Replace g in ``P`` by P, and write P + Y to ``both``, on the subsets of m players."""
    for S in range(1 << m):
        s = popcount[S]
        both[S] = P[S] * weights[s]
        P[S] *= weights[s - 1] if s > 0 else 0.0
    sum_subsets(P, m)
    sum_subsets(both, m)
    for S in range(1 << m):
        both[S] += P[S]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _fill_background_values(survival, m, weights, popcount, P, both, out):
    """Write the values of all players of a leaf in all cells to ``out`` (m, 2^m)."""
    for S in range(1 << m):
        P[S] = survival[S]
    _fill_sums(m, weights, popcount, P, both)
    for j in range(m):
        half, total = 1 << j, out[j]
        for block in range(0, 1 << m, 2 * half):
            for S in range(block, block + half):
                total[S], total[S + half] = P[S] - both[S], P[S + half] - both[S]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _background_values_of(A, survival, m, weights, popcount, P, both, inside, out):
    """Write the values of all players of a leaf in the cell ``A`` to ``out`` (m,): sums over the subsets of A only."""
    size = 1
    inside[0] = 0
    for j in range(m):
        if (A >> j) & 1:
            for x in range(size):
                inside[size + x] = inside[x] | (1 << j)
            size *= 2
    for x in range(size):
        P[x] = survival[inside[x]]
    _fill_sums(popcount[size - 1], weights, popcount, P, both)
    bit = 1
    for j in range(m):
        if (A >> j) & 1:
            out[j] = P[size - 1] - both[size - 1 - bit]
            bit *= 2
        else:
            out[j] = P[size - 1] - both[size - 1]


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_positions(g, groups, column_start, columns, n_outputs, position):
    """Write which row of the group's table each of its players' first output has; return how many rows are players'."""
    n_group_outputs = groups.last_output[g] - groups.first_output[g]
    n_rows = column_start[g + 1] - column_start[g] - 1 - n_group_outputs
    for row in range(0, n_rows, max(n_group_outputs, 1)):
        position[columns[column_start[g] + row] // n_outputs] = row
    return n_rows


@njit(nogil=True, cache=True, error_model="numpy")
def fill_single_tables(groups, leaves, value, survival_start, survival, rule, weights, popcount, first_group, last_group,
                       n_players, column_start, columns, table_start, out):  # fmt: skip
    """Add the leaves' values of all players, v(D) and the scale of every code of groups ``first:last`` to ``out``.

    As ``fill_tables`` for order 1. ``rule`` are the nodes and weights for cover ratios, where ``survival`` is empty;
    ``weights[m, s]`` is p(s) on m players. Cost O(sum over leaves of m (2^m + 2^bits n_outputs)), for cover ratios times the nodes.
    """
    n_cells, nodes, node_weights = popcount.shape[0], rule[0], rule[1]
    every_code, one, two = np.empty(n_cells, np.int64), np.empty(2 * n_cells), np.empty(2 * n_cells)
    values = np.empty((weights.shape[0], n_cells))
    bit_of_node = np.zeros(value.shape[0], np.int16)
    position = np.zeros(n_players, np.int64)
    for g in range(first_group, last_group):
        codes = every_code[: 1 << groups.n_bits[g]]
        first, last = groups.first_output[g], groups.last_output[g]
        for c in range(groups.condition_start[g] + groups.n_above[g], groups.condition_start[g + 1]):
            bit_of_node[groups.condition_node[c]] = groups.condition_bit[c]
        base = table_start[g] - table_start[first_group]
        n_set_rows = _fill_positions(g, groups, column_start, columns, value.shape[1], position)
        for i in range(groups.leaf_start[g], groups.leaf_start[g + 1]):
            l = groups.leaf[i]
            m, c_l = leaves.start[l + 1] - leaves.start[l], value[leaves.node[l]]
            fill_leaf_codes(g, l, groups, leaves, bit_of_node, codes)
            if survival.shape[0] > 0:
                survival_l = survival[survival_start[l] : survival_start[l + 1]]
                _fill_background_values(survival_l, m, weights[m], popcount, one, two, values)
            else:
                _fill_cover_values(leaves.ratio, leaves.start[l], m, nodes, node_weights, one, two, values)
                survival_l = one[: 1 << m]
                fill_cover_survival(leaves.ratio, leaves.start[l], m, survival_l)
            for j in range(m):
                at, of_j = base + position[leaves.player[leaves.start[l] + j]] * codes.shape[0], values[j]
                for o in range(first, last):
                    for code in range(codes.shape[0]):
                        out[at + code] += c_l[o] * of_j[codes[code]]
                    at += codes.shape[0]
            add_ends(codes, survival_l, m, c_l, first, last, base + n_set_rows * codes.shape[0], out)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _cell_of(l, r, leaves, decisions, offset, m):
    """Return which players of leaf ``l`` row ``r`` satisfies, as a mask."""
    A = (1 << m) - 1
    for e in range(leaves.edge_start[l], leaves.edge_start[l + 1]):
        if (decisions[leaves.edge_node[e] - offset, r] != 0) != leaves.edge_left[e]:
            A &= ~(1 << leaves.edge_slot[e])
    return A


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _survival_of(A, ratio, first, m):
    """Return the product of the cover ratios of the players outside ``A``."""
    product = 1.0
    for k in range(m):
        if not (A >> k) & 1:
            product *= ratio[first + k]
    return product


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_few(columns_of_X, tree_start, nodes_of_trees, groups, leaves, value, survival_start, survival, rule, weights, popcount,
              first_group, last_group, n_players, column_start, columns, out):  # fmt: skip
    """Add what ``fill_single_tables`` and ``sweep`` would add to ``out`` (n_columns, n_rows), without tables: cell by cell."""
    n_rows = columns_of_X.shape[1]
    nodes, node_weights = rule[0], rule[1]
    one, two, inside = np.empty(popcount.shape[0]), np.empty(popcount.shape[0]), np.empty(popcount.shape[0], np.int64)
    values, position = np.empty(weights.shape[0]), np.zeros(n_players, np.int64)
    total, tree = np.zeros((n_players + 1) * value.shape[1] + 1), -1
    for g in range(first_group, last_group):
        if groups.tree[g] != tree:
            tree = groups.tree[g]
            a, b = tree_start[tree], tree_start[tree + 1]
            decisions, nodes_of = np.empty((b - a, n_rows), np.uint8), nodes_of_trees
            part = Nodes(nodes_of.feature[a:b], nodes_of.threshold[a:b], nodes_of.left[a:b], nodes_of.right[a:b],
                         nodes_of.missing[a:b], nodes_of.zero_is_missing[a:b], nodes_of.category_start[a:b],
                         nodes_of.category_count[a:b], nodes_of.category_words, nodes_of.less_equal)  # fmt: skip
            fill_decisions(columns_of_X, part, decisions)
        first, last = groups.first_output[g], groups.last_output[g]
        n_set_rows = _fill_positions(g, groups, column_start, columns, value.shape[1], position)
        n_columns = column_start[g + 1] - column_start[g]
        for r in range(n_rows):
            total[:n_columns] = 0.0
            for i in range(groups.leaf_start[g], groups.leaf_start[g + 1]):
                l = groups.leaf[i]
                m, c_l = leaves.start[l + 1] - leaves.start[l], value[leaves.node[l]]
                A = _cell_of(l, r, leaves, decisions, tree_start[tree], m)
                if survival.shape[0] > 0:
                    survival_l = survival[survival_start[l] : survival_start[l + 1]]
                    passing = survival_l[A]
                    _background_values_of(A, survival_l, m, weights[m], popcount, one, two, inside, values)
                else:
                    passing = _survival_of(A, leaves.ratio, leaves.start[l], m)
                    _cover_values_of(A, leaves.ratio, leaves.start[l], m, nodes, node_weights, one, values)
                for j in range(m):
                    at = position[leaves.player[leaves.start[l] + j]]
                    for o in range(first, last):
                        total[at + o - first] += c_l[o] * values[j]
                if (1 << m) - 1 == A:
                    for o in range(first, last):
                        total[n_set_rows + o - first] += c_l[o]
                total[n_columns - 1] += largest_size(c_l) * passing
            for c in range(n_columns):
                out[columns[column_start[g] + c], r] += total[c]

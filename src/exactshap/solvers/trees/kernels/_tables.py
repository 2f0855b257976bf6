r"""Compiled tables of trees: fill them from the leaves, and sweep rows through them.

A leaf is the game :math:`v_A(S) = c\, [S \subseteq A]\, g(S)`: ``A`` are the players on its path whose splits the row satisfies,
``g`` is how much of the background passes the splits of the others. The row enters through ``A`` only.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from exactshap.solvers.trees.kernels._layout import next_mask, set_rank
from exactshap.trees.ensemble import Nodes, fill_decisions

__all__ = [
    "add_ends",
    "add_failures",
    "fill_cover_survival",
    "fill_leaf_codes",
    "fill_set_values",
    "fill_tables",
    "sum_survival",
    "sweep",
]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_cover_survival(ratio, first, m, out):
    r"""Write :math:`g(S) = \prod_{k \notin S} b_k` for all S of m players to ``out`` (2^m,)."""
    out[0] = 1.0
    for k in range(m):
        half = 1 << k
        b = ratio[first + k]
        for S in range(half):
            out[half + S] = out[S]
            out[S] *= b


@njit(nogil=True, cache=True, error_model="numpy")
def add_failures(decisions, offset, first_leaf, last_leaf, leaves, weights, start, out):
    """Add the weights of background rows to the cell of the set of players that they fail, at each leaf of one tree."""
    n_background = weights.shape[0]
    failed = np.empty(n_background, np.int64)
    for l in range(first_leaf, last_leaf):
        failed[:] = 0
        for e in range(leaves.edge_start[l], leaves.edge_start[l + 1]):
            decided = decisions[leaves.edge_node[e] - offset]
            bit = leaves.edge_slot[e]
            passes = 1 if leaves.edge_left[e] else 0
            for i in range(n_background):
                failed[i] |= np.int64(decided[i] ^ passes) << bit
        cells = out[start[l] : start[l + 1]]
        for i in range(n_background):
            cells[failed[i]] += weights[i]


@njit(nogil=True, cache=True, error_model="numpy")
def sum_survival(leaves, start, out):
    r"""Replace the weights of failures :math:`N_l(F)` by those of the rows that pass all players outside S.

    .. math:: g_l(S) = \sum_{F \subseteq S} N_l(F)
    """
    for l in range(start.shape[0] - 1):
        sum_subsets(out[start[l] : start[l + 1]], leaves.start[l + 1] - leaves.start[l], 0)


@njit(nogil=True, cache=True, error_model="numpy")
def sum_subsets(table, m, skip):
    """Replace ``table[S]`` (2^m,) by the sum over subsets that agree with S on the players of the mask ``skip``."""
    for k in range(m):
        if (skip >> k) & 1:
            continue
        half = 1 << k
        for block in range(0, 1 << m, 2 * half):
            for S in range(block, block + half):
                table[S + half] += table[S]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def fill_set_values(survival, m, T, weights, popcount, out):
    r"""Write the value of the set T in the game :math:`[S \subseteq A] g(S)` for every A of m players to ``out`` (2^m,).

    .. math:: \phi_T(A) = (-1)^{|T \setminus A|} \sum_{S \subseteq A \setminus T} p(|S|)\, \Delta_{T \cap A}\, g(S)

    One pass per player: players of T are differenced, :math:`(g_0, g_1) \to (-g_0, g_1 - g_0)`, the others are summed over subsets.
    """
    size = 1 << m
    for S in range(size):
        out[S] = survival[S]
    for k in range(m):
        if (T >> k) & 1:
            half = 1 << k
            for block in range(0, size, 2 * half):
                for S in range(block, block + half):
                    out[S + half] -= out[S]
                    out[S] = -out[S]
    for S in range(size):
        out[S] *= weights[popcount[S & ~T]]
    sum_subsets(out, m, T)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_leaf_codes(g, l, groups, leaves, bit_of_node, codes):
    """Write which players of leaf ``l`` a row of each code of group ``g`` satisfies, as a mask, to ``codes`` (2^bits,)."""
    codes[:] = (1 << (leaves.start[l + 1] - leaves.start[l])) - 1
    first = leaves.edge_start[l]
    for e in range(first, leaves.edge_start[l + 1]):
        above = e - first < groups.n_above[g]
        bit = groups.condition_bit[groups.condition_start[g] + e - first] if above else bit_of_node[leaves.edge_node[e]]
        passes = 1 if above or leaves.edge_left[e] else 0
        lost = 1 << leaves.edge_slot[e]
        for code in range(codes.shape[0]):
            if ((code >> bit) & 1) != passes:
                codes[code] &= ~lost


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def largest_size(values):
    """Return the largest magnitude: a loop, as NumPy's words for it take numba a second to compile."""
    largest = 0.0
    for o in range(values.shape[0]):
        largest = max(largest, abs(values[o]))
    return largest


@njit(nogil=True, cache=True, error_model="numpy")
def add_ends(codes, survival, m, c_l, first, last, at, out):
    """Add v(D) of the outputs and the scale of one leaf: the full coalition survives where all its players are satisfied."""
    everyone = (1 << m) - 1
    for o in range(first, last):
        for code in range(codes.shape[0]):
            if codes[code] == everyone:
                out[at + code] += c_l[o]
        at += codes.shape[0]
    magnitude = largest_size(c_l)
    for code in range(codes.shape[0]):
        out[at + code] += magnitude * survival[codes[code]]


@njit(nogil=True, cache=True, error_model="numpy")
def _add_sets(codes, survival, m, c_l, first, last, players, first_slot, weights, binomials, offsets, popcount, position,
              values, out):  # fmt: skip
    """Add the values of all sets of players of one leaf to the rows of its group's table."""
    for size in range(1, min(weights.shape[0] - 1, m) + 1):
        T = (1 << size) - 1
        while (1 << m) > T:
            fill_set_values(survival, m, T, weights[size, m], popcount, values)
            at = position[set_rank(T, size, players, first_slot, binomials, offsets)]
            for o in range(first, last):
                for code in range(codes.shape[0]):
                    out[at + code] += c_l[o] * values[codes[code]]
                at += codes.shape[0]
            T = next_mask(T)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_tables(groups, leaves, value, survival_start, survival, weights, binomials, offsets, popcount,
                first_group, last_group, column_start, columns, table_start, out):  # fmt: skip
    """Add the leaves' values of all sets, v(D) and the scale of every code of groups ``first:last`` to ``out``.

    ``weights[size, m, s]`` is p(s) for sets of ``size`` on a leaf of m players. ``survival`` is empty for cover ratios.
    Cost O(sum over leaves of n_sets (m 2^m + 2^bits n_outputs)).
    """
    every_code = np.empty(popcount.shape[0], np.int64)
    passing, values = np.empty(popcount.shape[0]), np.empty(popcount.shape[0])
    bit_of_node = np.zeros(value.shape[0], np.int16)
    position = np.zeros(offsets[weights.shape[0]] + 1, np.int64)  # where each set's rows start in the group's table
    for g in range(first_group, last_group):
        codes = every_code[: 1 << groups.n_bits[g]]
        first, last = groups.first_output[g], groups.last_output[g]
        for c in range(groups.condition_start[g] + groups.n_above[g], groups.condition_start[g + 1]):
            bit_of_node[groups.condition_node[c]] = groups.condition_bit[c]
        base = table_start[g] - table_start[first_group]
        n_set_rows = column_start[g + 1] - column_start[g] - 1 - (last - first)
        for row in range(0, n_set_rows, max(last - first, 1)):
            position[columns[column_start[g] + row] // value.shape[1]] = base + row * codes.shape[0]
        for i in range(groups.leaf_start[g], groups.leaf_start[g + 1]):
            l = groups.leaf[i]
            m = leaves.start[l + 1] - leaves.start[l]
            if survival.shape[0] > 0:
                survival_l = survival[survival_start[l] : survival_start[l + 1]]
            else:
                survival_l = passing[: 1 << m]
                fill_cover_survival(leaves.ratio, leaves.start[l], m, survival_l)
            fill_leaf_codes(g, l, groups, leaves, bit_of_node, codes)
            _add_sets(codes, survival_l, m, value[leaves.node[l]], first, last, leaves.player, leaves.start[l], weights,
                      binomials, offsets, popcount, position, values, out)  # fmt: skip
            add_ends(codes, survival_l, m, value[leaves.node[l]], first, last, base + n_set_rows * codes.shape[0], out)


@njit(nogil=True, cache=True, error_model="numpy")
def sweep(columns_of_X, tree_start, nodes, groups, first_group, last_group, column_start, columns, table_start, tables, out):
    """Add the table entries of each row's codes to ``out`` (n_columns, n_rows), group after group.

    ``columns_of_X`` (n_features, n_rows) is contiguous. A row costs one look-up per set of players of each group.
    """
    n_rows = columns_of_X.shape[1]
    code = np.empty(n_rows, np.uint16)
    decisions = np.empty((0, n_rows), np.uint8)
    tree = -1
    for g in range(first_group, last_group):
        if groups.tree[g] != tree:
            tree = groups.tree[g]
            a, b = tree_start[tree], tree_start[tree + 1]
            if decisions.shape[0] < b - a:
                decisions = np.empty((b - a, n_rows), np.uint8)
            part = Nodes(nodes.feature[a:b], nodes.threshold[a:b], nodes.left[a:b], nodes.right[a:b], nodes.missing[a:b],
                         nodes.zero_is_missing[a:b], nodes.category_start[a:b], nodes.category_count[a:b],
                         nodes.category_words, nodes.less_equal)  # fmt: skip
            fill_decisions(columns_of_X, part, decisions[: b - a])
        code[:] = (1 << groups.n_bits[g]) - 1
        for c in range(groups.condition_start[g], groups.condition_start[g + 1]):
            decided = decisions[groups.condition_node[c] - tree_start[tree]]
            fails = np.uint8(0 if groups.condition_left[c] else 1)
            bit = np.uint16(1 << groups.condition_bit[c])
            keep = np.uint16(~bit)
            for r in range(n_rows):
                code[r] &= keep | (np.uint16(decided[r] ^ fails) * bit)
        at = table_start[g] - table_start[first_group]
        size = 1 << groups.n_bits[g]
        for c in range(column_start[g], column_start[g + 1]):
            table = tables[at : at + size]
            total = out[columns[c]]
            for r in range(n_rows):
                total[r] += table[code[r]]
            at += size

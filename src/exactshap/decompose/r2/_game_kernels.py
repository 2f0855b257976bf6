"""The two games of R2 as sums over unit pairs: which pairs, which rows, which residuals."""

from __future__ import annotations

import numpy as np
from numba import njit

from exactshap.decompose.r2._join_kernels import parting_player
from exactshap.decompose.r2._kernels import add_pair, table_wins
from exactshap.decompose.r2._quadrature_kernels import add_pair_rows
from exactshap.decompose.r2._unit_kernels import CODE_BITS, fill_alphas, fill_codes, fill_predictions, split_bits

__all__ = ["add_ensemble_trees", "add_residual_trees", "add_rows", "add_tree_rows", "walk_predictions"]

PATTERN_BITS = 15  # trees with at most so many splits are reduced to their distinct decision vectors, if that pays
DENSE_BITS = 7  # with at most so many, all decision vectors are taken, whether they occur or not


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _fill_cells(decisions, bit, out):
    """Write the decision vector of each row in one tree, as a number, to ``out`` (n_rows,) uint16."""
    out[:] = 0
    for q in range(bit.shape[0]):
        if bit[q] >= 0:
            went_left = decisions[q]
            shift = np.uint16(bit[q])
            for i in range(out.shape[0]):
                out[i] |= np.uint16(went_left[i]) << shift


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _number_cells(cells, n_cells):
    """Return the distinct cells in ascending order; replace each row's cell by its number among them."""
    rank = np.zeros(n_cells, np.uint16)
    n_distinct = 0
    for i in range(cells.shape[0]):
        n_distinct += 1 - rank[cells[i]]
        rank[cells[i]] = 1
    distinct = np.empty(n_distinct, np.uint16)
    found = 0
    for c in range(n_cells):
        if rank[c]:
            distinct[found] = c
            rank[c] = found
            found += 1
    for i in range(cells.shape[0]):
        cells[i] = rank[cells[i]]
    return distinct


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _all_cells(n_cells):
    cells = np.empty(n_cells, np.uint16)
    for c in range(n_cells):
        cells[c] = c
    return cells


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _patterns(decisions, feature):
    """Reduce the rows of one tree to patterns: all its decision vectors if they are few, else those that occur.

    Return (decisions per pattern (n_nodes, n_patterns), pattern of each row uint16); where the tree has too many splits, the
    rows themselves and an empty array.
    """
    n_nodes, n_rows = decisions.shape
    bit = np.empty(n_nodes, np.int32)
    n_splits = split_bits(feature, bit)
    if n_splits > PATTERN_BITS or (1 << n_splits) > 2 * n_rows:
        return decisions, np.empty(0, np.uint16)
    pattern = np.empty(n_rows, np.uint16)
    _fill_cells(decisions, bit, pattern)
    dense = n_splits <= DENSE_BITS
    cells = _all_cells(1 << n_splits) if dense else _number_cells(pattern, 1 << n_splits)
    reduced = np.zeros((n_nodes, cells.shape[0]), np.uint8)
    for q in range(n_nodes):
        if bit[q] >= 0:
            for x in range(cells.shape[0]):
                reduced[q, x] = (cells[x] >> bit[q]) & 1
    return reduced, pattern


@njit(nogil=True, cache=True, error_model="numpy")
def walk_predictions(root, feature, left, right, value, decisions, node_offset, out):
    """Write the value of the leaf that each pattern reaches to ``out`` (n_patterns,); for trees too deep for codes."""
    for i in range(out.shape[0]):
        q = root
        while feature[q] >= 0:
            q = left[q] if decisions[q - node_offset, i] else right[q]
        out[i] = value[q]


@njit(nogil=True, cache=True, error_model="numpy")
def _advance_rows(predictions, weights, residual, averaged, empty, linear):
    r"""Write the linear weights -2 r_k w of one tree's rows to ``linear`` and move ``residual`` on.

    Boosted: r_k is the residual, which then loses the tree's prediction. Averaged: ``residual`` is the base
    :math:`y - M - G / 2` of all trees and :math:`r_k = y - M - (G - g_k) / 2 + m_k` with g = f - m the centred tree: the mean
    over all orders of the trees.
    """
    for i in range(linear.shape[0]):
        met = residual[i]
        if averaged:
            met += 0.5 * (predictions[i] + empty)
        else:
            residual[i] = met - predictions[i]
        linear[i] = -2.0 * met * weights[i]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _advance_patterns(predictions, pattern, weights, residual, averaged, empty, linear, counts):
    """Sum the linear weights and the row weights by pattern; as :func:`_advance_rows`, in four lanes that do not wait."""
    n = linear.shape[0]
    lanes = np.zeros((4, n))
    lane_counts = np.zeros((4, n))
    for i in range(pattern.shape[0]):
        x, lane = pattern[i], i & 3
        met = residual[i]
        if averaged:
            met += 0.5 * (predictions[x] + empty)
        else:
            residual[i] = met - predictions[x]
        lanes[lane, x] += -2.0 * met * weights[i]
        lane_counts[lane, x] += weights[i]
    for x in range(n):
        linear[x] = (lanes[0, x] + lanes[1, x]) + (lanes[2, x] + lanes[3, x])
        counts[x] = (lane_counts[0, x] + lane_counts[1, x]) + (lane_counts[2, x] + lane_counts[3, x])


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _add_tables(first, last, codes, weights, ones, n_rows, linear, units, player_of_node, half_weights, table, work, out):
    """Add the pairs of one tree's units that go by table; return how many pairs are left for quadrature."""
    left_over = 0
    constant = units.node.shape[0] - 1
    blank = np.zeros(weights.shape[0], codes.dtype)
    for u in range(first, last):
        for v in range(u - 1, last):  # first the linear term. One call of add_pair: each one more is compiled anew
            is_linear = v < u
            w = constant if is_linear else v
            apart = parting_player(u, w, units, player_of_node) if v > u else -1
            factor = 2.0 if v > u else 1.0
            code_w = blank if is_linear else codes[v - first]
            mass = linear if is_linear else weights
            done = add_pair(u, w, apart, factor, codes[u - first], code_w, mass, ones and not is_linear, n_rows, units, half_weights,
                            table, work, out)  # fmt: skip
            left_over += 0 if done else 1
    return left_over


@njit(nogil=True, cache=True, error_model="numpy")
def add_rows(first, last, losers_of, alphas, weights, linear, units, player_of_node, rules, sweep, work, out):
    """Add each row's shares of all pairs among units ``first:last`` and of their linear terms to ``out`` (n_players, n_rows).

    With ``losers_of`` = n > 0 only those pairs that a table of n rows does not win. ``alphas`` starts at unit ``first``.
    """
    constant = units.node.shape[0] - 1
    nodes, node_weights = rules
    for u in range(first, last):
        for v in range(u - 1, last):  # first the linear term
            is_linear = v < u
            if losers_of > 0:
                apart = -1
                if v > u and units.tree[u] == units.tree[v]:
                    apart = parting_player(u, v, units, player_of_node)
                if table_wins(u, constant if is_linear else v, apart, losers_of, units, work):
                    continue
            w = -1 if is_linear else v
            factor = 2.0 if v > u else 1.0
            alpha_w = alphas[max(v, u) - first]
            mass = linear if is_linear else weights
            add_pair_rows(u, w, factor, alphas[u - first], alpha_w, mass, units, nodes, node_weights, sweep, out)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _have_codes(first, last, units):
    have = True
    for u in range(first, last):
        have &= units.size[u, 0] < CODE_BITS
    return have


@njit(nogil=True, cache=True, error_model="numpy")
def add_residual_trees(
    chosen, shape, value, player_of_node, units, decisions, weights, ones, residual, averaged, empty, advance_only,
    half_weights, table, work, met, out,
):  # fmt: skip
    r"""Add the tree-by-tree game of trees ``chosen[0]:chosen[1]`` to ``out`` (n_players,), moving ``residual`` on.

    .. math:: \mathrm{out}_j = \sum_k \mathrm{Shapley}_j\Bigl(\sum_i \omega_i (f_{k,S}(x_i)^2 - 2 r_{ki} f_{k,S}(x_i))\Bigr)

    ``shape`` = (tree_start, feature, left, right); ``decisions`` (n_nodes, n_rows) starts at the first chosen tree; ``ones``
    says that all ``weights`` are 1. Pairs that lose by table are left to :func:`add_tree_rows`: return their number.
    ``met`` (n_trees,) gets sum_i w_i r_ki, for the certificate.
    """
    tree_start, feature, left, right = shape
    offset = tree_start[chosen[0]]
    left_over = 0
    for k in range(chosen[0], chosen[1]):
        first, last = units.tree_start[k], units.tree_start[k + 1]
        start, stop = tree_start[k], tree_start[k + 1]
        reduced, pattern = _patterns(decisions[start - offset : stop - offset], feature[start:stop])
        n = reduced.shape[1]
        predictions, linear = np.empty(n), np.empty(n)
        codes = np.empty((last - first, n), np.uint16)
        fill_codes(first, last, units, reduced, start, codes)
        if _have_codes(first, last, units):
            fill_predictions(first, last, units, codes, predictions)
        else:
            walk_predictions(start, feature, left, right, value, reduced, start, predictions)
        by_row = pattern.shape[0] == 0
        counts = weights if by_row else np.empty(n)
        if by_row:
            _advance_rows(predictions, weights, residual, averaged, empty[k], linear)
        else:
            _advance_patterns(predictions, pattern, weights, residual, averaged, empty[k], linear, counts)
        if not advance_only:
            total = 0.0
            for x in range(n):
                total += linear[x]
            met[k] = -0.5 * total
            left_over += _add_tables(first, last, codes, counts, ones and by_row, residual.shape[0], linear, units, player_of_node, half_weights,
                                     table, work, out)  # fmt: skip
    return left_over


@njit(nogil=True, cache=True, error_model="numpy")
def add_tree_rows(
    chosen, shape, value, player_of_node, units, decisions, weights, residual, averaged, empty, losers_of, rules, sweep, work, out
):  # fmt: skip
    """Add each row's shares of the tree-by-tree game of some trees to ``out`` (n_players, n_rows), for one block of rows.

    With ``losers_of`` = n > 0 only those pairs that a table of n rows does not win.
    """
    tree_start, feature, left, right = shape
    offset = tree_start[chosen[0]]
    n = residual.shape[0]
    predictions, linear = np.empty(n), np.empty(n)
    most = 0
    for k in range(chosen[0], chosen[1]):
        most = max(most, units.tree_start[k + 1] - units.tree_start[k])
    alphas = np.empty((most, units.player.shape[1], n))
    for k in range(chosen[0], chosen[1]):
        first, last = units.tree_start[k], units.tree_start[k + 1]
        walk_predictions(tree_start[k], feature, left, right, value, decisions, offset, predictions)
        _advance_rows(predictions, weights, residual, averaged, empty[k], linear)
        fill_alphas(first, last, units, decisions, offset, alphas)
        add_rows(first, last, losers_of, alphas, weights, linear, units, player_of_node, rules, sweep, work, out)


@njit(nogil=True, cache=True, error_model="numpy")
def add_ensemble_trees(chosen, codes, weights, ones, linear, units, player_of_node, half_weights, table, work, out):
    """Add to ``out`` (n_players,) the table pairs of units of trees ``chosen[0]:chosen[1]`` with all units not before them.

    ``codes`` (n_units, n_rows) of the whole ensemble. Return the number of pairs left for quadrature.
    """
    left_over = 0
    constant = units.node.shape[0] - 1
    n = weights.shape[0]
    blank = np.zeros(n, codes.dtype)
    for k in range(chosen[0], chosen[1]):
        for h in range(k - 1, units.tree_start.shape[0] - 1):  # first the linear terms
            is_linear = h < k
            for u in range(units.tree_start[k], units.tree_start[k + 1]):
                begin = constant if is_linear else max(u, units.tree_start[h])
                end = constant + 1 if is_linear else units.tree_start[h + 1]
                for w in range(begin, end):
                    apart = parting_player(u, w, units, player_of_node) if h == k and u != w else -1
                    factor = 1.0 if u == w or is_linear else 2.0
                    code_w = blank if is_linear else codes[w]
                    mass = linear if is_linear else weights
                    done = add_pair(u, w, apart, factor, codes[u], code_w, mass, ones and not is_linear, n, units, half_weights,
                                    table, work, out)  # fmt: skip
                    left_over += 0 if done else 1
    return left_over

"""The two games of R2 as sums over unit pairs: which pairs, which rows, which residuals."""

from __future__ import annotations

import numpy as np
from numba import njit

from exactshap.decompose._r2_kernels import add_pair, parting_player, table_wins
from exactshap.decompose._r2_quadrature_kernels import add_pair_rows
from exactshap.decompose._r2_unit_kernels import CODE_BITS, fill_alphas, fill_codes, fill_predictions, split_bits

__all__ = ["add_ensemble_trees", "add_residual_trees", "add_rows", "add_tree_rows", "walk_predictions"]

PATTERN_BITS = 15  # trees with at most so many splits are reduced to their distinct decision vectors, if that pays


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_cells(decisions, first, bit, out):
    """Write the decision vector of each row in one tree, as a number, to ``out`` (n_rows,) uint16."""
    out[:] = 0
    for q in range(bit.shape[0]):
        if bit[q] >= 0:
            went_left = decisions[first + q]
            shift = np.uint16(bit[q])
            for i in range(out.shape[0]):
                out[i] |= np.uint16(went_left[i]) << shift


@njit(nogil=True, cache=True, error_model="numpy")
def _number_cells(cells, n_cells):
    """Return the distinct cells in ascending order and the number of each row's cell among them."""
    rank = np.full(n_cells, -1, np.int32)
    for i in range(cells.shape[0]):
        rank[cells[i]] = 0
    found = 0
    for c in range(n_cells):
        if rank[c] == 0:
            rank[c] = found
            found += 1
    distinct = np.empty(found, np.uint16)
    for c in range(n_cells):
        if rank[c] >= 0:
            distinct[rank[c]] = c
    return distinct, rank


@njit(nogil=True, cache=True, error_model="numpy")
def _patterns(decisions, first, last, feature):
    """Reduce the rows of one tree to its distinct decision vectors.

    Return (decisions per pattern (n_nodes, n_patterns), pattern of each row); where that does not pay, the rows themselves
    and an empty array.
    """
    n_rows = decisions.shape[1]
    bit = np.empty(last - first, np.int32)
    n_splits = split_bits(0, last - first, feature[first:last], bit)
    none = np.empty(0, np.int32)
    if n_splits > PATTERN_BITS or (1 << n_splits) > 2 * n_rows:
        return decisions[first:last], none
    cells = np.empty(n_rows, np.uint16)
    _fill_cells(decisions[first:last], 0, bit, cells)
    distinct, rank = _number_cells(cells, 1 << n_splits)
    reduced = np.zeros((last - first, distinct.shape[0]), np.uint8)
    for q in range(last - first):
        if bit[q] >= 0:
            for x in range(distinct.shape[0]):
                reduced[q, x] = (distinct[x] >> bit[q]) & 1
    pattern = np.empty(n_rows, np.int32)
    for i in range(n_rows):
        pattern[i] = rank[cells[i]]
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
def _advance(predictions, pattern, residual, averaged, empty, out):
    r"""Write the residual that one tree's linear term meets to ``out`` (n_rows,) and move ``residual`` on.

    Boosted: r, then r - f. Averaged: ``residual`` is the base :math:`y - M - G / 2` and the tree's own half is added:
    :math:`r_k = y - M - (G - g_k) / 2 + m_k` with g = f - m centred, the mean over all orders of the trees.
    """
    for i in range(out.shape[0]):
        prediction = predictions[pattern[i]] if pattern.shape[0] > 0 else predictions[i]
        out[i] = residual[i]
        if averaged:
            out[i] += 0.5 * (prediction + empty)
        else:
            residual[i] -= prediction


@njit(nogil=True, cache=True, error_model="numpy")
def _sum_by_pattern(pattern, values, factor, weights, out):
    """Add ``factor * values * weights`` of the rows of each pattern to ``out`` (n_patterns,)."""
    if pattern.shape[0] == 0:
        for i in range(out.shape[0]):
            out[i] = factor * values[i] * weights[i]
    else:
        out[:] = 0.0
        for i in range(pattern.shape[0]):
            out[pattern[i]] += factor * values[i] * weights[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _pattern_weights(pattern, n_patterns, weights):
    """Return the total weight of the rows of each pattern, in the type of ``weights``."""
    if pattern.shape[0] == 0:
        return weights
    out = np.zeros(n_patterns, weights.dtype)
    for i in range(pattern.shape[0]):
        out[pattern[i]] += weights[i]
    return out


@njit(nogil=True, cache=True, error_model="numpy")
def _add_tables(first, last, codes, weights, linear, units, player_of_node, half_weights, tables, work, out):
    """Add the pairs of one tree's units that go by table; return how many pairs are left for quadrature."""
    left_over = 0
    constant = units.node.shape[0] - 1
    n = weights.shape[0]
    blank = np.zeros(n, codes.dtype)
    for u in range(first, last):
        code_u = codes[u - first]
        if table_wins(u, constant, -1, n, units, work):
            add_pair(u, constant, -1, 1.0, code_u, blank, linear, units, half_weights, tables[1], work, out)
        else:
            left_over += 1
        for w in range(u, last):
            apart = -1 if u == w else parting_player(u, w, units, player_of_node)
            if table_wins(u, w, apart, n, units, work):
                factor = 1.0 if u == w else 2.0
                add_pair(u, w, apart, factor, code_u, codes[w - first], weights, units, half_weights, tables[0], work, out)
            else:
                left_over += 1
    return left_over


@njit(nogil=True, cache=True, error_model="numpy")
def add_rows(first, last, losers_of, alphas, weights, linear, units, player_of_node, rules, sweep, work, out):
    """Add each row's shares of all pairs among units ``first:last`` and of their linear terms to ``out`` (n_players, n_rows).

    With ``losers_of`` = n > 0 only those pairs that a table of n rows does not win. ``alphas`` starts at unit ``first``.
    """
    constant = units.node.shape[0] - 1
    nodes, node_weights = rules
    for u in range(first, last):
        alpha_u = alphas[u - first]
        if losers_of == 0 or not table_wins(u, constant, -1, losers_of, units, work):
            add_pair_rows(u, -1, 1.0, alpha_u, alpha_u, linear, units, nodes, node_weights, sweep, out)
        for w in range(u, last):
            if losers_of > 0:
                apart = -1
                if u != w and units.tree[u] == units.tree[w]:
                    apart = parting_player(u, w, units, player_of_node)
                if table_wins(u, w, apart, losers_of, units, work):
                    continue
            factor = 1.0 if u == w else 2.0
            add_pair_rows(u, w, factor, alpha_u, alphas[w - first], weights, units, nodes, node_weights, sweep, out)


@njit(nogil=True, cache=True, error_model="numpy")
def _add_left_over(first, last, decisions, node_offset, weights, linear, units, player_of_node, rules, sweep, work, out):
    """Add one tree's pairs that lose by table, pattern block by pattern block."""
    n, n_block = weights.shape[0], sweep.suffix.shape[0]
    alphas = np.empty((last - first, units.player.shape[1], n_block))
    block_out = np.empty((out.shape[0], n_block))
    for start in range(0, n, n_block):
        stop = min(n, start + n_block)
        size = stop - start
        block = np.ascontiguousarray(decisions[:, start:stop])
        fill_alphas(first, last, units, block, node_offset, alphas[:, :, :size])
        block_out[:, :] = 0.0
        block_weights = weights[start:stop].astype(np.float64)
        add_rows(first, last, n, alphas[:, :, :size], block_weights, linear[start:stop], units, player_of_node, rules, sweep,
                 work, block_out[:, :size])  # fmt: skip
        for p in range(out.shape[0]):
            for i in range(size):
                out[p] += block_out[p, i]


@njit(nogil=True, cache=True, error_model="numpy")
def add_residual_trees(
    chosen, shape, value, player_of_node, units, decisions, weights, residual, averaged, empty, advance_only,
    half_weights, tables, rules, work, sweep, out,
):  # fmt: skip
    r"""Add the tree-by-tree game of trees ``chosen[0]:chosen[1]`` to ``out`` (n_players,), moving ``residual`` on.

    .. math:: \mathrm{out}_j = \sum_k \mathrm{Shapley}_j\Bigl(\sum_i \omega_i (f_{k,S}(x_i)^2 - 2 r_{ki} f_{k,S}(x_i))\Bigr)

    ``shape`` = (tree_start, feature, left, right); ``decisions`` (n_nodes, n_rows) starts at the first chosen tree.
    """
    tree_start, feature, left, right = shape
    offset = tree_start[chosen[0]]
    met = np.empty(residual.shape[0])
    for k in range(chosen[0], chosen[1]):
        first, last = units.tree_start[k], units.tree_start[k + 1]
        start, stop = tree_start[k] - offset, tree_start[k + 1] - offset
        reduced, pattern = _patterns(decisions, start, stop, feature[offset:])
        n = reduced.shape[1]
        predictions = np.empty(n)
        codes = np.empty((last - first, n), np.uint16)
        fill_codes(first, last, units, reduced, tree_start[k], codes)
        if np.max(units.n_prefix[first:last]) < CODE_BITS:
            fill_predictions(first, last, units, codes, predictions)
        else:
            walk_predictions(tree_start[k], feature, left, right, value, reduced, tree_start[k], predictions)
        _advance(predictions, pattern, residual, averaged, empty[k], met)
        if advance_only:
            continue
        linear = np.empty(n)
        _sum_by_pattern(pattern, met, -2.0, weights, linear)
        counts = _pattern_weights(pattern, n, weights)
        left_over = _add_tables(first, last, codes, counts, linear, units, player_of_node, half_weights, tables, work, out)
        if left_over > 0:
            _add_left_over(first, last, reduced, tree_start[k], counts, linear, units, player_of_node, rules, sweep, work, out)


@njit(nogil=True, cache=True, error_model="numpy")
def add_tree_rows(
    shape, value, player_of_node, units, decisions, weights, residual, averaged, empty, rules, sweep, work, out
):  # fmt: skip
    """Add each row's shares of the tree-by-tree game of all trees to ``out`` (n_players, n_rows), for one block of rows."""
    tree_start, feature, left, right = shape
    n = residual.shape[0]
    predictions, met, linear = np.empty(n), np.empty(n), np.empty(n)
    none = np.empty(0, np.int32)
    alphas = np.empty((np.max(np.diff(units.tree_start)), units.player.shape[1], n))
    for k in range(tree_start.shape[0] - 1):
        first, last = units.tree_start[k], units.tree_start[k + 1]
        walk_predictions(tree_start[k], feature, left, right, value, decisions, 0, predictions)
        _advance(predictions, none, residual, averaged, empty[k], met)
        _sum_by_pattern(none, met, -2.0, weights, linear)
        fill_alphas(first, last, units, decisions, 0, alphas)
        add_rows(first, last, 0, alphas, weights, linear, units, player_of_node, rules, sweep, work, out)


@njit(nogil=True, cache=True, error_model="numpy")
def add_ensemble_trees(chosen, codes, weights, linear, units, player_of_node, half_weights, tables, work, out):
    """Add to ``out`` (n_players,) the table pairs of units of trees ``chosen[0]:chosen[1]`` with all units not before them.

    ``codes`` (n_units, n_rows) of the whole ensemble. Return the number of pairs left for quadrature.
    """
    left_over = 0
    constant = units.node.shape[0] - 1
    n = weights.shape[0]
    blank = np.zeros(n, codes.dtype)
    for k in range(chosen[0], chosen[1]):
        for u in range(units.tree_start[k], units.tree_start[k + 1]):
            if table_wins(u, constant, -1, n, units, work):
                add_pair(u, constant, -1, 1.0, codes[u], blank, linear, units, half_weights, tables[1], work, out)
            else:
                left_over += 1
        for h in range(k, units.tree_start.shape[0] - 1):
            for u in range(units.tree_start[k], units.tree_start[k + 1]):
                for w in range(max(u, units.tree_start[h]), units.tree_start[h + 1]):
                    apart = parting_player(u, w, units, player_of_node) if h == k and u != w else -1
                    if not table_wins(u, w, apart, n, units, work):
                        left_over += 1
                        continue
                    factor = 1.0 if u == w else 2.0
                    add_pair(u, w, apart, factor, codes[u], codes[w], weights, units, half_weights, tables[0], work, out)
    return left_over

r"""The tree-by-tree game of R2 for trees of depth at most 3: all coalitions of a tree at once, from its two halves.

Each tree is filled up to seven splits (root; the left child and its two children; the right child and its two), which give a
row a *cell* of seven bits: 3 for the left half, 3 for the right half, 1 for the root. Rows are counted per cell once; with
F_L[s, c] the value of the left half in cell c when the splits of bit set s are known (F_R likewise), b_L + b_R = 1 the root's
cover shares, N the row weights and R the linear weights -2 w r,

.. math:: g(S) = \sum_{\text{left}} N F_L^2 + R F_L + \sum_{\text{right}} N F_R^2 + R F_R \quad \text{if the root's player is in } S,

.. math:: g(S) = b_L^2 \sum N F_L^2 + b_L \sum R F_L + b_R^2 \sum N F_R^2 + b_R \sum R F_R + 2 b_L b_R\, (F_L N F_R^\top)[s_L, s_R]

otherwise: two products of 8 x 8 matrices instead of pairs of leaves. A player that splits more than once owns several bits of s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["DEEPEST", "SHALLOW_PLAYERS", "Halves", "add_shallow_trees", "fill_columns", "fill_shares"]

DEEPEST = 3
SHALLOW_PLAYERS = 7  # splits of a full tree of depth 3
SPLITS, HALF, CELLS = SHALLOW_PLAYERS, 8, 128
ROOT_BIT = 6
U1, U3 = np.uint64(1), np.uint64(3)
# Heap position of each bit of a cell, and back: bits 0-2 the left half, 3-5 the right half, 6 the root.
BIT_OF = (6, 0, 3, 1, 2, 4, 5)


class Halves(NamedTuple):
    """Scratch of one thread: one tree, filled up to seven splits."""

    node: np.ndarray  # int32 (15,): heap position -> node, repeated below leaves
    share: np.ndarray  # float64 (7,): cover share of the left child of the split at a bit, 1 below leaves
    mask: np.ndarray  # int64 (7,): bits of the splits of each player
    player: np.ndarray  # int32 (7,): players of the tree
    bit: np.ndarray  # int32 (15,): bit of each node of the tree, -1 for leaves
    known: np.ndarray  # float64 (2, 8, 8): value of either half, [side, splits known, cell]
    across: np.ndarray  # float64 (8, 8): value of the right half, [cell, splits known]
    sums: np.ndarray  # float64 (2, 4, 8): N and R of a half's cells among its own rows, then among all rows
    counts: np.ndarray  # float64 (8, 8): N, [left cell, right cell]
    product: np.ndarray  # float64 (2, 8, 8): F_L N and F_L N F_R^T
    part: np.ndarray  # float64 (2, 2, 8): g of either half, [side, root's player in S or out of it, splits known]
    image: np.ndarray  # int64 (128,): coalition of players -> splits known
    game: np.ndarray  # float64 (128,)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_columns(X, used, single_precision, out):
    """Write columns ``used`` of ``X`` (n_rows, n_features) to ``out`` (n_used, n_rows), rounded to float32 if asked for.

    Sixteen rows at a time: both sides stay in cache.
    """
    for start in range(0, X.shape[0], 16):
        stop = min(start + 16, X.shape[0])
        for k in range(used.shape[0]):
            j = used[k]
            if single_precision:
                for i in range(start, stop):
                    out[k, i] = np.float64(np.float32(X[i, j]))
            else:
                for i in range(start, stop):
                    out[k, i] = X[i, j]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_shares(tree_start, left, right, cover, value, depths, share, empty):
    """Write depths, cover(node) / cover(parent), and every tree's value when nothing is known; return the largest depth.

    ``empty`` (n_trees,). Parents come before their children; both children of an empty parent get 1/2.
    """
    deepest = 0
    mean = value.copy()
    for k in range(tree_start.shape[0] - 1):
        root, stop = tree_start[k], tree_start[k + 1]
        depths[root], share[root] = 0, 1.0
        for q in range(root, stop):
            deepest = max(deepest, depths[q])
            if left[q] >= 0:
                for child in (left[q], right[q]):
                    depths[child] = depths[q] + 1
                    share[child] = cover[child] / cover[q] if cover[q] > 0.0 else 0.5
        for q in range(stop - 1, root - 1, -1):
            if left[q] >= 0:
                mean[q] = share[left[q]] * mean[left[q]] + share[right[q]] * mean[right[q]]
        empty[k] = mean[root]
    return deepest


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_tree(root, left, right, player_of_node, share, halves):
    """Fill the tree up to seven splits; list its players with the bits of their splits and return their number."""
    m = 0
    halves.node[0] = root
    for place in range(SPLITS):
        q = halves.node[place]
        bit = BIT_OF[place]
        if (place > 0 and q == halves.node[(place - 1) // 2]) or left[q] < 0:
            halves.node[2 * place + 1] = halves.node[2 * place + 2] = q
            halves.share[bit] = 1.0
            if left[q] < 0:
                halves.bit[q - root] = -1
            continue
        halves.node[2 * place + 1], halves.node[2 * place + 2] = left[q], right[q]
        halves.share[bit] = share[left[q]]
        halves.bit[q - root], halves.bit[left[q] - root], halves.bit[right[q] - root] = bit, -1, -1
        a = 0
        while a < m and halves.player[a] != player_of_node[q]:
            a += 1
        if a == m:
            halves.player[a], halves.mask[a] = player_of_node[q], 0
            m += 1
        halves.mask[a] |= 1 << bit
    return m


@njit(nogil=True, cache=True, error_model="numpy")
def _mixed(known, went_left, share, if_left, if_right):
    if known:
        return if_left if went_left else if_right
    return share * if_left + (1.0 - share) * if_right


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_half(side, value, halves):
    """Write the value of one half for all sets of known splits and all cells; bit 0 is its top split, 1 and 2 those below."""
    first = 3 * side
    leaf = 7 + 4 * side
    a, b = value[halves.node[leaf]], value[halves.node[leaf + 1]]
    c, d = value[halves.node[leaf + 2]], value[halves.node[leaf + 3]]
    top, one, two = halves.share[first], halves.share[first + 1], halves.share[first + 2]
    known = halves.known[side]
    for s in range(HALF):
        for x in range(HALF):
            if_left = _mixed(s & 2, x & 2, one, a, b)
            if_right = _mixed(s & 4, x & 4, two, c, d)
            known[s, x] = _mixed(s & 1, x & 1, top, if_left, if_right)


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_predictions(halves, out):
    """Write the tree's prediction in each cell."""
    for r in range(HALF):
        for l in range(HALF):
            out[r * HALF + l] = halves.known[1, HALF - 1, r]
            out[(1 << ROOT_BIT) + r * HALF + l] = halves.known[0, HALF - 1, l]


@njit(nogil=True, cache=True, error_model="numpy")
def _sum_cells(counts, linear, halves):
    """Sum N and R over what either half does not see; keep N of both halves together."""
    sums = halves.sums
    sums[:] = 0.0
    for r in range(HALF):
        for l in range(HALF):
            right, left = r * HALF + l, (1 << ROOT_BIT) + r * HALF + l
            both, both_linear = counts[left] + counts[right], linear[left] + linear[right]
            halves.counts[l, r] = both
            sums[0, 0, l] += counts[left]
            sums[0, 1, l] += linear[left]
            sums[0, 2, l] += both
            sums[0, 3, l] += both_linear
            sums[1, 0, r] += counts[right]
            sums[1, 1, r] += linear[right]
            sums[1, 2, r] += both
            sums[1, 3, r] += both_linear


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_parts(side, share, halves):
    """Write g of one half alone: with the root's player known (own rows), and without (all rows, ``share`` of them)."""
    sums, known = halves.sums[side], halves.known[side]
    for s in range(HALF):
        routed = averaged = 0.0
        for x in range(HALF):
            f = known[s, x]
            routed += f * (sums[0, x] * f + sums[1, x])
            averaged += share * f * (sums[2, x] * share * f + sums[3, x])
        halves.part[side, 0, s], halves.part[side, 1, s] = routed, averaged


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_product(factor, halves):
    """Write ``factor`` F_L N F_R^T to ``halves.product[1]``, [splits known on the left, on the right]."""
    known, across, counts = halves.known, halves.across, halves.counts
    half_way, product = halves.product[0], halves.product[1]
    for s in range(HALF):
        for r in range(HALF):
            across[r, s] = known[1, s, r]
    for s in range(HALF):
        for r in range(HALF):
            half_way[s, r] = product[s, r] = 0.0
        for l in range(HALF):
            for r in range(HALF):
                half_way[s, r] += factor * known[0, s, l] * counts[l, r]
        for r in range(HALF):
            for t in range(HALF):
                product[s, t] += half_way[s, r] * across[r, t]


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_game(m, halves):
    """Write g(S) for all coalitions of the tree's ``m`` players."""
    image, part, product = halves.image, halves.part, halves.product[1]
    image[0] = 0
    for k in range(m):
        for x in range(1 << k):
            image[(1 << k) + x] = image[x] | halves.mask[k]
    for x in range(1 << m):
        s, t = image[x] & (HALF - 1), (image[x] >> 3) & (HALF - 1)
        if image[x] >> ROOT_BIT:
            halves.game[x] = part[0, 0, s] + part[1, 0, t]
        else:
            halves.game[x] = part[0, 1, s] + part[1, 1, t] + product[s, t]


@njit(nogil=True, cache=True, error_model="numpy")
def _add_shapley(m, half_weights, halves, out):
    r"""Add :math:`\sum_{S \ni k} h(|S|) g(S) - T` to ``out``; ``halves.game`` is used up. See ``_r2_kernels`` for h and T."""
    game = halves.game
    cells = 1 << m
    common = (game[0] - game[cells - 1]) / m
    for x in range(cells):
        game[x] *= half_weights[cells + x]
    for k in range(m - 1, -1, -1):
        step = 1 << k
        total = 0.0
        for x in range(step):
            total += game[step + x]
            game[x] += game[step + x]
        out[halves.player[k]] += total
        common += total / m
    for k in range(m):
        out[halves.player[k]] -= common


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_cells(decisions, bit, cells):
    """Write the cell of each row to ``cells`` (n_rows,) uint8."""
    cells[:] = 0
    for q in range(bit.shape[0]):
        if bit[q] >= 0:
            went_left, one = decisions[q], np.uint8(1 << bit[q])
            for i in range(cells.shape[0]):
                cells[i] |= went_left[i] * one


@njit(nogil=True, cache=True, error_model="numpy")
def _advance(predictions, cells, weights, residual, averaged, empty, lanes, counts, linear):
    """Sum row weights and linear weights by cell, and move ``residual`` on, as ``advance_patterns``.

    ``lanes`` (n_cells, 4, 2) keeps neighbouring rows of one cell from waiting for each other.
    """
    lanes[:] = 0.0
    flat, kept = lanes.reshape(-1), 0.0 if averaged else 1.0
    for i in range(cells.shape[0]):
        x = np.uint64(cells[i])
        at = (x << U3) | ((np.uint64(i) & U3) << U1)
        met, weight = residual[i], weights[i]
        residual[i] = met - kept * predictions[x]
        flat[at] += weight
        flat[at | U1] += met * weight
    for x in range(CELLS):
        lane = lanes[x]
        counts[x] = (lane[0, 0] + lane[1, 0]) + (lane[2, 0] + lane[3, 0])
        total = (lane[0, 1] + lane[1, 1]) + (lane[2, 1] + lane[3, 1])
        if averaged:
            total += 0.5 * (predictions[x] + empty) * counts[x]
        linear[x] = -2.0 * total


@njit(nogil=True, cache=True, error_model="numpy")
def add_shallow_trees(
    chosen, shape, value, player_of_node, share, decisions, weights, residual, averaged, empty, advance_only, half_weights,
    halves, met, out,
):  # fmt: skip
    """Add the tree-by-tree game of trees ``chosen[0]:chosen[1]``, as ``add_residual_trees``, for trees of depth at most 3.

    ``share`` (n_nodes,) is cover(node) / cover(parent); everything else as there.
    """
    tree_start, _, left, right = shape
    offset = tree_start[chosen[0]]
    cells = np.empty(residual.shape[0], np.uint8)
    lanes = np.empty((CELLS, 4, 2))
    predictions, linear, counts = np.empty(CELLS), np.empty(CELLS), np.empty(CELLS)
    for k in range(chosen[0], chosen[1]):
        start, stop = tree_start[k], tree_start[k + 1]
        m = _fill_tree(start, left, right, player_of_node, share, halves)
        _fill_half(0, value, halves)
        _fill_half(1, value, halves)
        _fill_predictions(halves, predictions)
        _fill_cells(decisions[start - offset : stop - offset], halves.bit[: stop - start], cells)
        _advance(predictions, cells, weights, residual, averaged, empty[k], lanes, counts, linear)
        if advance_only:
            continue
        met[k] = -0.5 * np.sum(linear)
        if m > 0:
            root_share = halves.share[ROOT_BIT]
            _sum_cells(counts, linear, halves)
            _fill_parts(0, root_share, halves)
            _fill_parts(1, 1.0 - root_share, halves)
            _fill_product(2.0 * root_share * (1.0 - root_share), halves)
            _fill_game(m, halves)
            _add_shapley(m, half_weights, halves, out)

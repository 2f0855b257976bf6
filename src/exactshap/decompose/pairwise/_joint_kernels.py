# mypy: disable-error-code="no-untyped-def"
"""Compiled blocks of the joint HSIC game, whose players are the variables of both sides."""

from __future__ import annotations

import numpy as np
from numba import njit

from exactshap.decompose.pairwise._kernels import LANES, _fill_tile, _load_lanes

__all__ = ["fill_joint_contributions", "fill_node_products"]


@njit(nogil=True, cache=True, error_model="numpy")
def _multiply(gap, n_players, t, out):
    """Set ``out`` (LANES,) to the product of 1 - t gap over the players."""
    for i in range(LANES):
        out[i] = 1.0
    for j in range(n_players):
        for i in range(LANES):
            out[i] *= 1.0 - t * gap[j, i]


@njit(nogil=True, cache=True, error_model="numpy")
def _add_without_one(gap, n_players, t, start, suffix, prefix, share):
    """Add ``start`` times the product of 1 - t gap over all players but j to ``share[j]``, for every j."""
    for i in range(LANES):
        suffix[n_players - 1, i] = start[i]
        prefix[i] = 1.0
    for j in range(n_players - 1, 0, -1):
        for i in range(LANES):
            suffix[j - 1, i] = suffix[j, i] * (1.0 - t * gap[j, i])
    for j in range(n_players):
        for i in range(LANES):
            share[j, i] += prefix[i] * suffix[j, i]
            prefix[i] *= 1.0 - t * gap[j, i]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_node_products(columns, kinds, scales, starts, row_start, row_stop, first, last, nodes, out):
    r"""Set ``out`` (n_nodes, n_rows, n_padded) to :math:`\prod_k (1 - t_q + t_q k_k[i, i'])` for i' > i, else 0."""
    n_players = starts.shape[0] - 1
    lanes = np.empty((columns.shape[0], LANES))
    exponent, power = np.empty(LANES), np.empty(LANES)
    bits = power.view(np.int64)
    gap = np.empty((n_players, LANES))
    product = np.empty(LANES)
    for tile in range(0, last - first, LANES):
        width = min(LANES, last - first - tile)
        _load_lanes(columns, first + tile, width, lanes)
        for row in range(row_start, row_stop):
            _fill_tile(columns, row, first + tile, width, kinds, scales, starts, lanes, exponent, power, bits, gap)
            out[:, row - row_start, tile : tile + LANES] = 0.0
            for q in range(nodes.shape[0]):
                _multiply(gap, n_players, nodes[q], product)
                for i in range(max(0, row + 1 - first - tile), width):
                    out[q, row - row_start, tile + i] = product[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _centre(product, offset, row, first, width, out):
    """Set ``out`` to product - offset[row] - offset[lane]; 0 in the padding."""
    for i in range(width):
        out[i] = product[i] - offset[row] - offset[first + i]
    for i in range(width, LANES):
        out[i] = 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def fill_joint_contributions(x_columns, x_kinds, x_scales, x_starts, x_offsets, y_columns, y_kinds, y_scales, y_starts,
                             y_offsets, row_start, row_stop, first, last, nodes, weights, out):  # fmt: skip
    r"""Add to ``out`` (n_x + n_y + 1,) the sums over the block's pairs i' > i.

    .. math:: \sum_{i, i'} (k_j - 1) \sum_q \omega_q \prod_{k \ne j} (1 - t_q + t_q k_k)\, R_c(t_q)[i, i']

    with R the product over the other side, centred by its ``offsets (n_nodes, n_rows)`` at each node; likewise for the
    players of Y. The last node is t = 1 with weight 0: it gives the statistic itself, :math:`\sum (\prod k - 1) L_c`.
    """
    n_x, n_y, last_node = x_starts.shape[0] - 1, y_starts.shape[0] - 1, nodes.shape[0] - 1
    x_lanes, y_lanes = np.empty((x_columns.shape[0], LANES)), np.empty((y_columns.shape[0], LANES))
    exponent, power = np.empty(LANES), np.empty(LANES)
    bits = power.view(np.int64)
    x_gap, y_gap = np.empty((n_x, LANES)), np.empty((n_y, LANES))
    x_share, y_share = np.empty((n_x, LANES)), np.empty((n_y, LANES))
    suffix, prefix = np.empty((max(n_x, n_y), LANES)), np.empty(LANES)
    x_product, y_product, x_centred, y_centred = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for tile in range(0, last - first, LANES):
        left, width = first + tile, min(LANES, last - first - tile)
        _load_lanes(x_columns, left, width, x_lanes)
        _load_lanes(y_columns, left, width, y_lanes)
        for row in range(row_start, min(row_stop, left + width - 1)):
            _fill_tile(x_columns, row, left, width, x_kinds, x_scales, x_starts, x_lanes, exponent, power, bits, x_gap)
            _fill_tile(y_columns, row, left, width, y_kinds, y_scales, y_starts, y_lanes, exponent, power, bits, y_gap)
            x_share[:] = 0.0
            y_share[:] = 0.0
            for q in range(nodes.shape[0]):
                t = nodes[q]
                _multiply(x_gap, n_x, t, x_product)
                _multiply(y_gap, n_y, t, y_product)
                _centre(x_product, x_offsets[q], row, left, width, x_centred)
                _centre(y_product, y_offsets[q], row, left, width, y_centred)
                if q == last_node:
                    for i in range(LANES):
                        out[n_x + n_y] += (x_product[i] - 1.0) * y_centred[i]
                for i in range(LANES):
                    x_centred[i] *= weights[q]
                    y_centred[i] *= weights[q]
                _add_without_one(x_gap, n_x, t, y_centred, suffix, prefix, x_share)
                _add_without_one(y_gap, n_y, t, x_centred, suffix, prefix, y_share)
            for j in range(n_x):
                out[j] -= (x_gap[j] * x_share[j]).sum()
            for j in range(n_y):
                out[n_x + j] -= (y_gap[j] * y_share[j]).sum()

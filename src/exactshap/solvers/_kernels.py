"""Compiled sweeps over product games.

Conductors validate, allocate and cut; these kernels fill ``out``. Arrays are C-contiguous with the terms last, so that one
instruction works on several terms: ``a (n_rows, n_players, n_terms)``, ``b (n_background, n_players, n_terms)``,
``c (n_outputs, n_terms)``, background ``weights (n_background,)``. No divisions, no expansions, no fastmath: with factors in
[0, 1] nothing can overflow or cancel.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["fill_ends", "fill_interactions", "fill_singles"]

TILE = 32  # terms per sweep: four 512-bit or eight 256-bit registers of float64, and small enough to stay in cache


@njit(nogil=True, cache=True, error_model="numpy")
def _load_tile(a, b, c, start, base, slope, coefficient):
    """Copy one tile: base = b, slope = a - b; pad the last tile with terms of coefficient 0."""
    n_players, n_terms = a.shape
    width = min(TILE, n_terms - start)
    for k in range(n_players):
        for i in range(width):
            base[k, i] = b[k, start + i]
            slope[k, i] = a[k, start + i] - b[k, start + i]
        for i in range(width, TILE):
            base[k, i] = 0.0
            slope[k, i] = 0.0
    for o in range(c.shape[0]):
        for i in range(width):
            coefficient[o, i] = c[o, start + i]
        for i in range(width, TILE):
            coefficient[o, i] = 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def fill_singles(a, b, c, weights, nodes, node_weights, out):
    r"""Add the values of single players, one per row, player and output, to ``out`` (n_rows, n_players, n_outputs).

    .. math:: \phi_j = \sum_m w_m \sum_l c_l (a_{lj} - b_{mlj}) \sum_q \omega_q \prod_{k \ne j} F_{mlk}(t_q),
              \qquad F = b + t (a - b)

    The product without player j is a prefix times a suffix, so no factor is ever divided out.
    """
    n_rows, n_players, n_terms = a.shape
    n_outputs = c.shape[0]
    base = np.empty((n_players, TILE), a.dtype)
    slope = np.empty((n_players, TILE), a.dtype)
    suffix = np.empty((n_players, TILE), a.dtype)
    share = np.empty((n_players, TILE), a.dtype)
    total = np.empty((n_players, TILE), a.dtype)
    prefix = np.empty(TILE, a.dtype)
    coefficient = np.empty((n_outputs, TILE), c.dtype)
    for r in range(n_rows):
        for start in range(0, n_terms, TILE):
            total[:, :] = 0.0
            for m in range(weights.shape[0]):
                _load_tile(a[r], b[m], c, start, base, slope, coefficient)
                share[:, :] = 0.0
                for q in range(nodes.shape[0]):
                    t = nodes[q]
                    weight = node_weights[q]
                    for i in range(TILE):
                        suffix[n_players - 1, i] = weight
                        prefix[i] = 1.0
                    for k in range(n_players - 1, 0, -1):
                        for i in range(TILE):
                            suffix[k - 1, i] = suffix[k, i] * (base[k, i] + t * slope[k, i])
                    for k in range(n_players):
                        for i in range(TILE):
                            share[k, i] += prefix[i] * suffix[k, i]
                            prefix[i] *= base[k, i] + t * slope[k, i]
                weight = weights[m]
                for k in range(n_players):
                    for i in range(TILE):
                        total[k, i] += weight * (slope[k, i] * share[k, i])
            for k in range(n_players):
                for o in range(n_outputs):
                    value = total[k, 0] * coefficient[o, 0]
                    for i in range(1, TILE):
                        value += total[k, i] * coefficient[o, i]
                    out[r, k, o] += value.real


@njit(nogil=True, cache=True, error_model="numpy")
def fill_interactions(a, b, c, weights, size, nodes, node_weights, out):
    r"""Add the values of all sets of ``size`` players, in lexicographic order, to ``out`` (n_rows, n_sets, n_outputs).

    .. math:: \phi_T = \sum_m w_m \sum_l c_l \sum_q \omega_q \prod_{j \in T} (a_{lj} - b_{mlj}) \prod_{k \notin T} F_{mlk}(t_q)

    A stack of running products, one per member of T, visits each set with one multiplication per step.
    """
    n_rows, n_players, n_terms = a.shape
    n_outputs = c.shape[0]
    n_sets = out.shape[1]
    base = np.empty((n_players, TILE), a.dtype)
    slope = np.empty((n_players, TILE), a.dtype)
    factor = np.empty((n_players, TILE), a.dtype)
    suffix = np.empty((n_players + 1, TILE), a.dtype)
    running = np.empty((size + 1, TILE), a.dtype)
    position = np.empty(size + 1, np.int64)
    share = np.empty((n_sets, TILE), a.dtype)
    coefficient = np.empty((n_outputs, TILE), c.dtype)
    for r in range(n_rows):
        for start in range(0, n_terms, TILE):
            share[:, :] = 0.0
            for m in range(weights.shape[0]):
                _load_tile(a[r], b[m], c, start, base, slope, coefficient)
                for q in range(nodes.shape[0]):
                    t = nodes[q]
                    for i in range(TILE):
                        suffix[n_players, i] = 1.0
                        running[0, i] = node_weights[q] * weights[m]
                    for k in range(n_players - 1, -1, -1):
                        for i in range(TILE):
                            value = base[k, i] + t * slope[k, i]
                            factor[k, i] = value
                            suffix[k, i] = suffix[k + 1, i] * value
                    level = 0
                    position[0] = 0
                    s = 0
                    while level >= 0:
                        k = position[level]
                        if k > n_players - (size - level):
                            level -= 1
                            if level >= 0:
                                j = position[level]
                                for i in range(TILE):
                                    running[level, i] *= factor[j, i]
                                position[level] = j + 1
                        elif level == size - 1:
                            for i in range(TILE):
                                share[s, i] += running[level, i] * slope[k, i] * suffix[k + 1, i]
                                running[level, i] *= factor[k, i]
                            s += 1
                            position[level] = k + 1
                        else:
                            for i in range(TILE):
                                running[level + 1, i] = running[level, i] * slope[k, i]
                            position[level + 1] = k + 1
                            level += 1
            for s in range(n_sets):
                for o in range(n_outputs):
                    value = share[s, 0] * coefficient[o, 0]
                    for i in range(1, TILE):
                        value += share[s, i] * coefficient[o, i]
                    out[r, s, o] += value.real


@njit(nogil=True, cache=True, error_model="numpy")
def fill_ends(a, b, c, weights, empty, full, scale, spread):
    r"""Add v(empty) and v(D) (n_rows, n_outputs); set the size and the spread of the factors (n_rows,).

    With :math:`H = |a + b| / 2 + |a - b| / 2`, an upper bound of every factor on [0, 1]:
    ``scale`` is :math:`\sum_m w_m \sum_l \max_o |c_{lo}| \prod_k H_{mlk}` and ``spread`` the largest
    :math:`\sum_k |a_{lk} - b_{mlk}| / (2 H_{mlk})`, which bounds the quadrature error (see ``_nodes``).
    """
    n_rows, n_players, n_terms = a.shape
    n_outputs = c.shape[0]
    inside = np.empty(TILE, a.dtype)
    outside = np.empty(TILE, a.dtype)
    height = np.empty(TILE)
    width_sum = np.empty(TILE)
    base = np.empty((n_players, TILE), a.dtype)
    slope = np.empty((n_players, TILE), a.dtype)
    coefficient = np.empty((n_outputs, TILE), c.dtype)
    for r in range(n_rows):
        spread[r] = 0.0
        scale[r] = 0.0
        for start in range(0, n_terms, TILE):
            for m in range(weights.shape[0]):
                _load_tile(a[r], b[m], c, start, base, slope, coefficient)
                for i in range(TILE):
                    inside[i] = 1.0
                    outside[i] = 1.0
                    height[i] = 1.0
                    width_sum[i] = 0.0
                for k in range(n_players):
                    for i in range(TILE):
                        half = 0.5 * abs(slope[k, i])
                        top = abs(base[k, i] + 0.5 * slope[k, i]) + half
                        inside[i] *= base[k, i] + slope[k, i]
                        outside[i] *= base[k, i]
                        height[i] *= top
                        width_sum[i] += half / top if top > 0.0 else 0.0
                weight = weights[m]
                for i in range(TILE):
                    spread[r] = max(spread[r], width_sum[i])
                    largest = 0.0
                    for o in range(n_outputs):
                        largest = max(largest, abs(coefficient[o, i]))
                        full[r, o] += weight * (coefficient[o, i] * inside[i]).real
                        empty[r, o] += weight * (coefficient[o, i] * outside[i]).real
                    scale[r] += weight * largest * height[i]

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
STRIP = 128  # terms per sweep that keeps nothing for each player
TINY = 1e-300  # stands in for a factor that is 0 throughout: half / top is 0 / TINY then


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
    for start in range(0, n_terms, TILE):  # all rows of a tile while its background is in cache
        for r in range(n_rows):
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
    for start in range(0, n_terms, TILE):
        for r in range(n_rows):
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
    inside = np.empty(STRIP, a.dtype)
    outside = np.empty(STRIP, a.dtype)
    height = np.empty(STRIP)
    width_sum = np.empty(STRIP)
    spread[:] = 0.0
    scale[:] = 0.0
    for start in range(0, n_terms, STRIP):
        width = min(STRIP, n_terms - start)
        for r in range(n_rows):
            for m in range(weights.shape[0]):
                inside[:] = 1.0
                outside[:] = 1.0
                height[:] = 1.0
                width_sum[:] = 0.0
                for k in range(n_players):
                    present = a[r, k, start : start + width]
                    absent = b[m, k, start : start + width]
                    for i in range(width):
                        inside[i] *= present[i]
                        outside[i] *= absent[i]
                    for i in range(width):
                        half = 0.5 * abs(present[i] - absent[i])
                        top = abs(0.5 * (present[i] + absent[i])) + half
                        height[i] *= top
                        width_sum[i] += half / (top + TINY)
                weight = weights[m]
                for i in range(width):
                    spread[r] = max(spread[r], width_sum[i])
                    largest = 0.0
                    for o in range(n_outputs):
                        coefficient = c[o, start + i]
                        largest = max(largest, abs(coefficient))
                        full[r, o] += weight * (coefficient * inside[i]).real
                        empty[r, o] += weight * (coefficient * outside[i]).real
                    scale[r] += weight * largest * height[i]

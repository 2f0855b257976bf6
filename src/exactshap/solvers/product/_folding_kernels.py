"""Compiled sweeps over all coalitions of product games whose background is summed up beforehand.

A coalition is a pair S = (S_2, S_1) of the high and the low players; its number has the low players in the low bits. No
divisions and no fastmath; every sum runs in a fixed order, so that a row has the same bits alone and in company.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["SLICE", "fill_coalitions", "fill_folded", "fill_set_values"]

TERMS = 32  # terms of one tile: with SLICE coalitions each, their tables fill half of a core's second cache
SLICE = 4096  # coalitions of one slice: what a row has in its first cache
LANES = 4  # terms, or background rows, added in one pass over a slice
ROWS = 128  # background rows of one pass


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_present(factors, start, table):
    """Set ``table`` (2^n_players,) to the products over the members of every coalition, times ``start``."""
    table[0] = start
    size = 1
    for j in range(factors.shape[0]):
        for s in range(size):
            table[size + s] = table[s] * factors[j]
        size *= 2


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_absent(factors, start, table):
    """Set ``table`` (2^n_players,) to the products over the players outside every coalition, times ``start``."""
    table[0] = start
    size = 1
    for j in range(factors.shape[0]):
        for s in range(size):
            table[size + s] = table[s]
            table[s] *= factors[j]
        size *= 2


@njit(nogil=True, cache=True, error_model="numpy")
def _add_outer(left, right, out):
    r"""Add :math:`\sum_z L_{zu} R_{zv}` to ``out`` (n_left, n_right); both even, the number of z a multiple of LANES."""
    for z in range(0, left.shape[0], LANES):
        for u in range(0, left.shape[1], 2):
            a0, a1, a2, a3 = left[z, u], left[z + 1, u], left[z + 2, u], left[z + 3, u]
            b0, b1, b2, b3 = left[z, u + 1], left[z + 1, u + 1], left[z + 2, u + 1], left[z + 3, u + 1]
            for v in range(right.shape[1]):
                r0, r1, r2, r3 = right[z, v], right[z + 1, v], right[z + 2, v], right[z + 3, v]
                out[u, v] += (a0 * r0 + a1 * r1) + (a2 * r2 + a3 * r3)
                out[u + 1, v] += (b0 * r0 + b1 * r1) + (b2 * r2 + b3 * r3)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_folded(b, weights, n_low, out):
    r"""Add the background of every term to ``out`` (n_terms, 2^n_high, 2^n_low).

    .. math:: M_l(S) = \sum_z w_z \prod_{j \notin S} b_{zlj}

    ``b (n_terms, n_background, n_players)``. Cost: 2^d multiplications for each term and background row.
    """
    n_background = weights.shape[0]
    low = np.zeros((ROWS, out.shape[2]))
    high = np.zeros((ROWS, out.shape[1]))
    for term in range(b.shape[0]):
        for start in range(0, n_background, ROWS):
            stop = min(start + ROWS, n_background)
            for z in range(start, stop):
                _fill_absent(b[term, z, :n_low], 1.0, low[z - start])
                _fill_absent(b[term, z, n_low:], weights[z], high[z - start])
            high[stop - start :] = 0.0
            _add_outer(high, low, out[term])


@njit(nogil=True, cache=True, error_model="numpy")
def _add_slice(high, low, folded, first, out):
    r"""Add :math:`\sum_l H_l(S_2) L_l(S_1) M_l(S_2, S_1)` for the S_2 from ``first`` on to ``out`` (n_high, n_low)."""
    for u in range(out.shape[0]):
        for t in range(0, high.shape[0], LANES):
            h0, h1, h2, h3 = high[t, first + u], high[t + 1, first + u], high[t + 2, first + u], high[t + 3, first + u]
            if h0 == 0.0 and h1 == 0.0 and h2 == 0.0 and h3 == 0.0:
                continue
            m0, m1, m2, m3 = folded[t, first + u], folded[t + 1, first + u], folded[t + 2, first + u], folded[t + 3, first + u]
            l0, l1, l2, l3 = low[t], low[t + 1], low[t + 2], low[t + 3]
            for v in range(out.shape[1]):
                out[u, v] += (h0 * (l0[v] * m0[v]) + h1 * (l1[v] * m1[v])) + (h2 * (l2[v] * m2[v]) + h3 * (l3[v] * m3[v]))


@njit(nogil=True, cache=True, error_model="numpy")
def fill_coalitions(a, folded, c, out):
    r"""Add the values of all coalitions to ``out`` (n_rows, n_outputs, 2^n_high, 2^n_low).

    .. math:: v_o(S) = \sum_l c_{ol} M_l(S) \prod_{j \in S} a_{lj}

    ``a (n_rows, n_terms, n_players)``; ``folded`` as :func:`fill_folded` leaves it, with zeros for further terms up to a
    multiple of LANES. Cost: 3 operations for each row, term, output and coalition.
    """
    n_rows, n_terms = a.shape[:2]
    n_outputs, n_high, n_low = c.shape[0], out.shape[2], out.shape[3]
    n_first = 0
    while 2**n_first < n_low:
        n_first += 1
    step = max(1, SLICE // n_low)
    low = np.zeros((TERMS, n_low))
    high = np.zeros((TERMS, n_high))
    for start in range(0, n_terms, TERMS):
        width = min(TERMS, n_terms - start)
        padded = (width + LANES - 1) // LANES * LANES
        part = folded[start : start + padded]
        for first in range(0, n_high, step):
            for r in range(n_rows):
                for t in range(width):
                    _fill_present(a[r, start + t, :n_first], 1.0, low[t])
                for o in range(n_outputs):
                    for t in range(width):
                        _fill_present(a[r, start + t, n_first:], c[o, start + t], high[t])
                    high[width:padded] = 0.0
                    _add_slice(high[:padded], low[:padded], part, first, out[r, o, first : first + step])


@njit(nogil=True, cache=True, error_model="numpy")
def fill_set_values(table, sets, weights, out):
    r"""Set ``out`` (n_rows, n_outputs, n_sets) to the values of sets of one size, from v (n_rows, n_outputs, 2^d).

    .. math:: \phi_T = \sum_{S \subseteq D \setminus T} p(|S|) \sum_{L \subseteq T} (-1)^{|T| - |L|} v(S \cup L)

    ``sets (n_sets,)`` and coalitions are bit masks, ``weights`` p.
    """
    n_rows, n_outputs, n_coalitions = table.shape
    sizes = np.zeros(n_coalitions, np.int64)
    for s in range(1, n_coalitions):
        sizes[s] = sizes[s >> 1] + (s & 1)
    for r in range(n_rows):
        for o in range(n_outputs):
            value = table[r, o]
            for t in range(sets.shape[0]):
                inside = sets[t]
                size = sizes[inside]
                total = 0.0
                for s in range(n_coalitions):
                    if s & inside == 0:
                        change = 0.0
                        part = inside
                        while True:
                            change += value[s | part] if (size - sizes[part]) % 2 == 0 else -value[s | part]
                            if part == 0:
                                break
                            part = (part - 1) & inside
                        total += weights[sizes[s]] * change
                out[r, o, t] = total

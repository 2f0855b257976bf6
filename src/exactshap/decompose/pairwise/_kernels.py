"""Compiled blocks of pairwise statistics (MMD, HSIC).

A block holds the pairs of some rows i with some rows i' > i. Its last axis is padded to whole tiles of :data:`LANES` pairs, so
that every inner loop has a constant length and becomes vector instructions; pairs outside the triangle and the padding have
kernel value 1 and contribute exactly 0. Columns come as ``columns (n_columns, n_rows)``, in the order of the players:
``starts (n_players + 1,)`` says which columns a player holds.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

__all__ = [
    "CATEGORICAL",
    "CAUCHY",
    "LANES",
    "LAPLACIAN",
    "RBF",
    "add_sides",
    "fill_contributions",
    "fill_gaps",
    "fill_permuted_weights",
    "fill_products",
]

RBF, LAPLACIAN, CAUCHY, CATEGORICAL = 0, 1, 2, 3
LANES = 64

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer and leaves that integer in the low bits
_ONE_BITS = np.int64(1023 << 52)
_LOWEST = -708.0  # exp of anything below is taken as that of this, 3e-308: below, the exponent bits run out
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(2, 14))


@intrinsic
def _fma(typing_context, a, b, c):
    """Return a * b + c with one rounding, as one instruction (plain code is never contracted: that would be fastmath)."""

    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@njit(nogil=True, cache=True, error_model="numpy")
def _exponentiate(values, power, bits):
    r"""Replace ``values`` (LANES,), all <= 0, by their exponentials, within two units in the last place.

    .. math:: e^x = 2^k e^r, \qquad k = \mathrm{round}(x / \ln 2), \qquad |r| \le \tfrac12 \ln 2

    A call of the C library costs several times more, as it works on one number at a time. ``bits`` is ``power`` seen as
    integers; each loop touches only one of the two views, so that the compiler may vectorise it.
    """
    for i in range(LANES):
        x = max(values[i], _LOWEST)
        shifted = _fma(x, _LOG2_E, _ROUNDER)
        power[i] = shifted
        k = shifted - _ROUNDER
        r = _fma(-k, _LN2_LOW, _fma(-k, _LN2_HIGH, x))
        p = _fma(r, _fma(r, _C13, _C12), _C11)
        p = _fma(r, _fma(r, _fma(r, p, _C10), _C9), _C8)
        p = _fma(r, _fma(r, _fma(r, p, _C7), _C6), _C5)
        p = _fma(r, _fma(r, _fma(r, p, _C4), _C3), _C2)
        values[i] = _fma(r, _fma(r, p, 1.0), 1.0)
    for i in range(LANES):
        bits[i] = (bits[i] << 52) + _ONE_BITS
    for i in range(LANES):
        values[i] *= power[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _load_lanes(columns, first, width, lanes):
    """Copy ``width`` rows from ``first`` on; repeat the last one as padding."""
    for k in range(columns.shape[0]):
        for i in range(width):
            lanes[k, i] = columns[k, first + i]
        for i in range(width, LANES):
            lanes[k, i] = columns[k, first + width - 1]


@njit(nogil=True, cache=True, error_model="numpy")
def _load_permuted_lanes(columns, permutation, first, width, lanes):
    """Copy the rows ``permutation[first], ...``; repeat the last one as padding."""
    for k in range(columns.shape[0]):
        for i in range(width):
            lanes[k, i] = columns[k, permutation[first + i]]
        for i in range(width, LANES):
            lanes[k, i] = columns[k, permutation[first + width - 1]]


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_factor(columns, row, kinds, scales, start, stop, lanes, exponent, power, bits, out):
    r"""Set ``out`` (LANES,) to the kernel of one player between ``row`` and the lanes.

    .. math:: \prod_{k} \kappa_k(u_k), \quad u = s (x - x'): \quad
              e^{-u^2},\ e^{-|u|},\ \frac{1}{1 + u^2},\ [x = x']

    Exponents add up over the player's columns, so that a group costs one exponential.
    """
    has_exponent = False
    for i in range(LANES):
        exponent[i] = 0.0
        out[i] = 1.0
    for k in range(start, stop):
        x = columns[k, row]
        s = scales[k]
        if kinds[k] == RBF:
            has_exponent = True
            for i in range(LANES):
                u = (x - lanes[k, i]) * s
                exponent[i] -= u * u
        elif kinds[k] == LAPLACIAN:
            has_exponent = True
            for i in range(LANES):
                exponent[i] -= abs(x - lanes[k, i]) * s
        elif kinds[k] == CAUCHY:
            for i in range(LANES):
                u = (x - lanes[k, i]) * s
                out[i] /= 1.0 + u * u
        else:
            for i in range(LANES):
                out[i] = out[i] if x == lanes[k, i] else 0.0
    if has_exponent:
        _exponentiate(exponent, power, bits)
        for i in range(LANES):
            out[i] *= exponent[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_tile(columns, row, first, width, kinds, scales, starts, lanes, exponent, power, bits, gap):
    """Set ``gap`` (n_players, LANES) to 1 - kernel, 0 where the lane is not a row after ``row``."""
    low = row + 1 - first
    for j in range(starts.shape[0] - 1):
        _fill_factor(columns, row, kinds, scales, starts[j], starts[j + 1], lanes, exponent, power, bits, gap[j])
        for i in range(LANES):
            gap[j, i] = 1.0 - gap[j, i]
        for i in range(min(low, LANES)):
            gap[j, i] = 0.0
        for i in range(width, LANES):
            gap[j, i] = 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def _integrate(gap, nodes, weights, suffix, prefix, share):
    r"""Set ``share`` (n_even, LANES) to the integrals of the products without one player.

    .. math:: \sum_q \omega_q \prod_{k \ne j} (1 - t_q g_k)

    A prefix times a suffix: no division. Memory traffic is the limit, so nodes and players come in pairs: the product
    without j is (prefix * suffix of the pair of j) * the other factor of the pair. An odd last player has gap 0.
    """
    n_even = gap.shape[0]
    for j in range(n_even):
        for i in range(LANES):
            share[j, i] = 0.0
    for q in range(0, nodes.shape[0], 2):
        t, u = nodes[q], nodes[q + 1]
        for i in range(LANES):
            suffix[0, n_even - 1, i] = weights[q]
            suffix[1, n_even - 1, i] = weights[q + 1]
            prefix[0, i] = 1.0
            prefix[1, i] = 1.0
        for j in range(n_even - 1, 1, -2):
            for i in range(LANES):
                g, h = gap[j, i], gap[j - 1, i]
                suffix[0, j - 2, i] = suffix[0, j, i] * (_fma(-t, g, 1.0) * _fma(-t, h, 1.0))
                suffix[1, j - 2, i] = suffix[1, j, i] * (_fma(-u, g, 1.0) * _fma(-u, h, 1.0))
        for j in range(0, n_even, 2):
            for i in range(LANES):
                g, h = gap[j, i], gap[j + 1, i]
                at_j, at_k = _fma(-t, g, 1.0), _fma(-t, h, 1.0)
                rest = prefix[0, i] * suffix[0, j + 1, i]
                share_j, share_k = _fma(rest, at_k, share[j, i]), _fma(rest, at_j, share[j + 1, i])
                prefix[0, i] *= at_j * at_k
                at_j, at_k = _fma(-u, g, 1.0), _fma(-u, h, 1.0)
                rest = prefix[1, i] * suffix[1, j + 1, i]
                share[j, i] = _fma(rest, at_k, share_j)
                share[j + 1, i] = _fma(rest, at_j, share_k)
                prefix[1, i] *= at_j * at_k


@njit(nogil=True, cache=True, error_model="numpy")
def fill_contributions(columns, kinds, scales, starts, row_start, row_stop, first, last, limits, offsets, nodes, weights, out):
    r"""Set ``out`` (n_players + 1, n_rows, n_padded) to what each pair gives to each share, and to the total.

    .. math:: G_j[i, i'] = (k_j - 1) \int_0^1 \prod_{k \ne j} (1 - t + t\, k_k)\, \mathrm{d}\mu(t), \qquad
              G_d[i, i'] = \prod_k k_k - 1

    for rows ``row_start <= i < row_stop`` and ``first <= i' < last`` with i' > i, else 0. A statistic
    sum w[i,i'] k(i,i') has the shares sum w[i,i'] G_j[i,i'], whatever its weights. Each row of a tile takes the smallest
    rule whose ``limits`` entry is not below its largest sum of gaps / 2.
    """
    n_players = starts.shape[0] - 1
    lanes = np.empty((columns.shape[0], LANES))
    exponent, power = np.empty(LANES), np.empty(LANES)
    bits = power.view(np.int64)
    n_pairs = (n_players + 1) // 2
    gap = np.zeros((2 * n_pairs, LANES))
    share = np.empty((2 * n_pairs, LANES))
    suffix = np.empty((2, 2 * n_pairs, LANES))
    prefix = np.empty((2, LANES))
    for tile in range(0, last - first, LANES):
        width = min(LANES, last - first - tile)
        _load_lanes(columns, first + tile, width, lanes)
        for row in range(row_start, row_stop):
            r = row - row_start
            if first + tile + width <= row + 1:
                out[:, r, tile : tile + LANES] = 0.0
                continue
            _fill_tile(columns, row, first + tile, width, kinds, scales, starts, lanes, exponent, power, bits, gap)
            for i in range(LANES):
                prefix[0, i] = 0.0
                prefix[1, i] = 1.0
            for j in range(n_players):
                for i in range(LANES):
                    prefix[0, i] += 0.5 * gap[j, i]
                    prefix[1, i] *= 1.0 - gap[j, i]
            for i in range(LANES):
                out[n_players, r, tile + i] = prefix[1, i] - 1.0
            spread = prefix[0].max()
            rule = 0
            while limits[rule] < spread:
                rule += 1
            begin, end = offsets[rule], offsets[rule + 1]
            _integrate(gap, nodes[begin:end], weights[begin:end], suffix, prefix, share)
            for j in range(n_players):
                for i in range(LANES):
                    out[j, r, tile + i] = -gap[j, i] * share[j, i]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_gaps(columns, kinds, scales, starts, row_start, row_stop, first, last, out):
    """Set ``out`` (n_players, n_rows, n_padded) to 1 - kernel, 0 outside the triangle i' > i."""
    lanes = np.empty((columns.shape[0], LANES))
    exponent, power = np.empty(LANES), np.empty(LANES)
    bits = power.view(np.int64)
    gap = np.empty((starts.shape[0] - 1, LANES))
    for tile in range(0, last - first, LANES):
        width = min(LANES, last - first - tile)
        _load_lanes(columns, first + tile, width, lanes)
        for row in range(row_start, row_stop):
            _fill_tile(columns, row, first + tile, width, kinds, scales, starts, lanes, exponent, power, bits, gap)
            out[:, row - row_start, tile : tile + LANES] = gap


@njit(nogil=True, cache=True, error_model="numpy")
def fill_products(columns, kinds, scales, offset, row_start, row_stop, first, last, out):
    r"""Set ``out`` (n_rows, n_padded) to k[i, i'] - offset[i] - offset[i'] for i' > i, else 0.

    With suitable offsets this is the doubly centred kernel matrix of HSIC, made where it is needed and never stored.
    """
    lanes = np.empty((columns.shape[0], LANES))
    exponent, power = np.empty(LANES), np.empty(LANES)
    bits = power.view(np.int64)
    product = np.empty(LANES)
    for tile in range(0, last - first, LANES):
        width = min(LANES, last - first - tile)
        _load_lanes(columns, first + tile, width, lanes)
        for row in range(row_start, row_stop):
            r = row - row_start
            _fill_factor(columns, row, kinds, scales, 0, columns.shape[0], lanes, exponent, power, bits, product)
            out[r, tile : tile + LANES] = 0.0
            for i in range(max(0, row + 1 - first - tile), width):
                out[r, tile + i] = product[i] - offset[row] - offset[first + tile + i]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_permuted_weights(columns, kinds, scales, offset, permutations, row_start, row_stop, first, last, out):
    """Set ``out`` (n_permutations, n_rows, n_padded) to what :func:`fill_products` gives for permuted rows."""
    lanes = np.empty((columns.shape[0], LANES))
    exponent, power = np.empty(LANES), np.empty(LANES)
    bits = power.view(np.int64)
    product = np.empty(LANES)
    shift = np.empty(LANES)
    for b in range(permutations.shape[0]):
        permutation = permutations[b]
        for tile in range(0, last - first, LANES):
            width = min(LANES, last - first - tile)
            _load_permuted_lanes(columns, permutation, first + tile, width, lanes)
            for i in range(width):
                shift[i] = offset[permutation[first + tile + i]]
            for i in range(width, LANES):
                shift[i] = 0.0
            for row in range(row_start, row_stop):
                r, source = row - row_start, permutation[row]
                _fill_factor(columns, source, kinds, scales, 0, columns.shape[0], lanes, exponent, power, bits, product)
                here = offset[source]
                for i in range(LANES):
                    out[b, r, tile + i] = product[i] - here - shift[i]


@njit(nogil=True, cache=True, error_model="numpy")
def add_sides(values, weights, rows, columns):
    """Add the weighted sums of ``values`` (n_players, n_rows, n_padded) over either side to ``rows`` and ``columns``.

    ``weights (n_rows, n_padded)``, ``rows (n_players, n_rows)``, ``columns (n_players, n_padded)``.
    """
    n_players, n_rows, n_padded = values.shape
    lane = np.empty(LANES)
    for j in range(n_players):
        for r in range(n_rows):
            for i in range(LANES):
                lane[i] = 0.0
            for tile in range(0, n_padded, LANES):
                for i in range(LANES):
                    value = values[j, r, tile + i] * weights[r, tile + i]
                    columns[j, tile + i] += value
                    lane[i] += value
            total = 0.0
            for i in range(LANES):
                total += lane[i]
            rows[j, r] += total

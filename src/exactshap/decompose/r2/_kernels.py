r"""Unit pairs by histograms over joint patterns and a coalition-space transform.

For two units u, w (or one and itself, or one and the constant 1) and weighted rows i

.. math:: g(S) = \sum_i \omega_i \prod_{k \in S} \alpha_{uk}(x_i) \alpha_{wk}(x_i) \prod_{k \notin S} \beta_{uk} \beta_{wk}

is a game on the m players of the pair. A row enters by its two codes only, so rows are counted per joint code first; the
counts become g(S) for all S at once by superset sums, and the Shapley values of g follow from one folding pass:

.. math:: \phi_k = \sum_{S \ni k} h(|S|)\, g(S) - T, \quad T = \frac1m \Bigl(\sum_k \sum_{S \ni k} h(|S|)\, g(S) - g(D) + g(\emptyset)\Bigr),
          \quad h(s) = \frac{(s-1)!\,(m-1-s)!}{(m-1)!}

Two units of one tree part at a node; no row passes both its sides, so g(S) = 0 for every S with that node's player ("apart"),
which leaves the table. Cost: one increment per row plus m 2^m additions, never a product of the two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from exactshap._runtime.lanes import U1, U2, U3, U4, U5, U6, U7, add_range
from exactshap.decompose.r2._join_kernels import count_axes, fill_layout, join
from exactshap.decompose.r2._unit_kernels import CODE_BITS

__all__ = ["MAX_BITS", "Work", "add_pair", "fill_half_weights", "table_wins"]

SMALL_BITS = 6  # 64 cells: what quadrature costs for some ten rows
MAX_BITS = 16  # largest table: 2^16 cells, 512 KiB: what fits into a second-level cache


class Work(NamedTuple):
    """Scratch of one thread."""

    lookups: np.ndarray  # uint32 (2, n_codes): code of either unit -> bits of the joint index
    place: np.ndarray  # int32 (2, 64): slot of either unit -> bit of the joint index, -1 if dropped
    axis_player: np.ndarray  # int32 (64,): players of the normal axes, then of the bottom axes
    axis_beta: np.ndarray  # float64 (64,): beta of the normal axes
    bottom_beta: np.ndarray  # float64 (2,): beta of the bottom axes
    mix: np.ndarray  # float64 (4, 16): top patterns -> in or out of S on the bottom axes
    planes: np.ndarray  # float64 (5, n_cells): see _share_out
    sums: np.ndarray  # float64 (64,): sum over S with k of h g


@njit(nogil=True, cache=True, error_model="numpy")
def fill_half_weights(largest, out):
    """Write h_m(|y|) for all bit sets y of m <= ``largest`` players to ``out[2^m + y]``; h(0) = h(m) = 1/m by definition."""
    h = np.empty(largest + 1)
    size = np.zeros(1 << largest, np.uint8)
    for y in range(1, 1 << largest):
        size[y] = size[y >> 1] + (y & 1)
    for m in range(1, largest + 1):
        h[0] = h[m] = 1.0 / m
        if m > 1:
            h[1] = 1.0 / (m - 1)
        for s in range(2, m):
            h[s] = h[s - 1] * (s - 1) / (m - s)
        for y in range(1 << m):
            out[(1 << m) + y] = h[size[y]]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _count(code_u, code_w, weights, ones, lookup_u, lookup_w, table):
    """Add up the weights of the rows of each joint index; with ``ones`` they are 1 and are not read."""
    if ones:
        for i in range(code_u.shape[0]):
            table[lookup_u[code_u[i]] & lookup_w[code_w[i]]] += 1.0
    else:
        for i in range(code_u.shape[0]):
            table[lookup_u[code_u[i]] & lookup_w[code_w[i]]] += weights[i]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _superset_sums(table, n_axes, size):
    r"""Replace N[A] by the sum of N[B] over all B that contain A, on the lowest ``n_axes`` bits; in place."""
    done = 0
    if n_axes >= 3:
        done = 3
        for start in range(0, size, 8):
            x = np.uint64(start)
            a0, a1, a2, a3 = table[x], table[x + U1], table[x + U2], table[x + U3]
            a4, a5, a6, a7 = table[x + U4], table[x + U5], table[x + U6], table[x + U7]
            a0, a1, a2, a3 = a0 + a4, a1 + a5, a2 + a6, a3 + a7
            a0, a1, a4, a5 = a0 + a2, a1 + a3, a4 + a6, a5 + a7
            table[x], table[x + U1], table[x + U2], table[x + U3] = a0 + a1, a1, a2 + a3, a3
            table[x + U4], table[x + U5], table[x + U6], table[x + U7] = a4 + a5, a5, a6 + a7, a7
    for k in range(done, n_axes):
        step = 1 << k
        for x in range(0, size, 2 * step):
            add_range(table, x, x + step, step)


@njit(nogil=True, cache=True, error_model="numpy")
def _sum(values, start, stop):
    """Return the sum of ``values[start:stop]`` in eight interleaved partial sums, which the processor adds side by side."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    x = start
    while x + 8 <= stop:
        i = np.uint64(x)
        s0 += values[i]
        s1 += values[i + U1]
        s2 += values[i + U2]
        s3 += values[i + U3]
        s4 += values[i + U4]
        s5 += values[i + U5]
        s6 += values[i + U6]
        s7 += values[i + U7]
        x += 8
    total = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
    while x < stop:
        total += values[x]
        x += 1
    return total


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _fill_outside(constant, n, axis_beta, outside):
    """Write constant times the product of beta over the normal axes outside S, for all S, by doubling."""
    outside[0] = constant
    for k in range(n):
        beta = axis_beta[k]
        step = 1 << k
        for row in range(step):
            x = np.uint64(row)
            outside[x + np.uint64(step)] = outside[x]
            outside[x] *= beta


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _weigh_two(table, size, start, half, mix, planes):
    """Weigh the common case, two bottom axes with a bit each: h(|S|) g(S) summed over the bottoms to ``fold``.

    ``one`` and ``other`` get the parts with the first and the second bottom player in S. Return the terms of S = {} and D.
    """
    outside, fold, one, other = planes[0], planes[1], planes[2], planes[3]
    e0, e1, e2, e3 = mix[0, 0], mix[0, 1], mix[0, 2], mix[0, 3]
    u0, u1, u2, u3 = mix[1, 0], mix[1, 1], mix[1, 2], mix[1, 3]
    w0, w1, w2, w3 = mix[2, 0], mix[2, 1], mix[2, 2], mix[2, 3]
    b0, b1, b2, b3 = mix[3, 0], mix[3, 1], mix[3, 2], mix[3, 3]
    second, third, fourth = np.uint64(size), np.uint64(2 * size), np.uint64(3 * size)
    start = np.uint64(start)
    for row in range(size):
        x = np.uint64(row)
        n0, n1, n2, n3 = table[x], table[second + x], table[third + x], table[fourth + x]
        scale = outside[x]
        h1 = scale * half[start + second + x]
        both = (b0 * n0 + b1 * n1 + b2 * n2 + b3 * n3) * (scale * half[start + fourth + x])
        one[x] = (u0 * n0 + u1 * n1 + u2 * n2 + u3 * n3) * h1 + both
        other[x] = (w0 * n0 + w1 * n1 + w2 * n2 + w3 * n3) * h1
        fold[x] = (e0 * n0 + e1 * n1 + e2 * n2 + e3 * n3) * (scale * half[start + x]) + one[x] + other[x]
        other[x] += both
    last = np.uint64(size - 1)
    none = (e0 * table[0] + e1 * table[second] + e2 * table[third] + e3 * table[fourth]) * outside[0] * half[start]
    every = b0 * table[last] + b1 * table[second + last] + b2 * table[third + last] + b3 * table[fourth + last]
    return none, every * outside[last] * half[start + fourth + last]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _weigh_any(table, size, bottoms, top, start, half, mix, planes):
    """Weigh any number of bottom axes and top bits; as :func:`_weigh_two`, one bottom pattern after another."""
    outside, fold, one, other, term = planes[0], planes[1], planes[2], planes[3], planes[4]
    none = every = 0.0
    for o in range(1 << bottoms):
        h = np.uint64(start + ((1 << ((o & 1) + (o >> 1))) - 1) * size)
        for row in range(size):
            term[row] = 0.0
        for t in range(1 << top):
            factor, block = mix[o, t], np.uint64(t * size)
            if factor != 0.0:
                for row in range(size):
                    term[row] += factor * table[block + np.uint64(row)]
        for row in range(size):
            x = np.uint64(row)
            value = term[x] * outside[x] * half[h + x]
            term[x] = value
            fold[x] = value if o == 0 else fold[x] + value
            if o == 1:
                one[x] = value
            elif o == 2:
                other[x] = value
            elif o == 3:
                one[x] += value
                other[x] += value
        if o == 0:
            none = term[0]
        every = term[size - 1]
    return none, every


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _share_out(n, bottoms, top, apart, table, half, mix, planes, sums, axis_player, out):
    """Turn superset sums into Shapley values of the pair's game and add them to ``out`` (n_players,).

    ``planes``: the product of beta outside S (filled), h(|S|) g(S) summed over the bottom axes, its parts with the first and
    the second bottom player in S, and one bottom pattern.
    """
    m = n + bottoms + (1 if apart >= 0 else 0)
    size = 1 << n
    if bottoms == 2 and top == 2:
        none, every = _weigh_two(table, size, 1 << m, half, mix, planes)
    else:
        none, every = _weigh_any(table, size, bottoms, top, 1 << m, half, mix, planes)
    fold, origin = planes[1], np.int64(0)  # for a literal 0 numba compiles what is called with it once more
    common = 0.0
    for k in range(n - 1, -1, -1):
        step = 1 << k
        sums[k] = _sum(fold, step, 2 * step)
        common += sums[k]
        add_range(fold, origin, step, step)
    for k in range(bottoms):
        sums[n + k] = _sum(planes[2 + k], origin, size)
        common += sums[n + k]
    common = common / m + none - (every if apart < 0 else 0.0)
    for k in range(n + bottoms):
        out[axis_player[k]] += sums[k] - common
    if apart >= 0:
        out[apart] -= common


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _rows_are_cheaper(n, bottoms, top, n_rows):
    """Whether quadrature row by row costs less than a table (or the table does not fit).

    Small tables always win: with them alone, shallow models need no quadrature, and it is not compiled.
    """
    m = n + bottoms + 1
    by_table = n_rows + 0.25 * (n + 6) * (1 << (n + top))
    by_rows = 1.0 * n_rows * m * ((m + 1) // 2)
    return n + top > MAX_BITS or (n + top > SMALL_BITS and by_table > by_rows)


@njit(nogil=True, cache=True, error_model="numpy")
def table_wins(u, w, apart, n_rows, units, work):
    """Whether :func:`add_pair` takes the pair."""
    if units.size[u, 0] >= CODE_BITS or units.size[w, 0] >= CODE_BITS:
        return False
    n, own, bits, _ = join(u, w, apart, units.size, units.player, units.beta, work.place, work.axis_player, work.axis_beta,
                           work.bottom_beta)  # fmt: skip
    bottoms, top = count_axes(own, bits)
    return not _rows_are_cheaper(n, bottoms, top, n_rows)


@njit(nogil=True, cache=True, error_model="numpy")
def add_pair(u, w, apart, factor, code_u, code_w, weights, ones, n_rows, units, half, table, work, out):
    """Add ``factor`` times the Shapley values of the pair's game to ``out`` (n_players,), unless quadrature is cheaper.

    ``ones`` says that all ``weights`` are 1; ``n_rows`` is what quadrature would have to go through. Return whether the pair
    is done.
    """
    size, player, value = units.size, units.player, units.value
    axis_player, planes = work.axis_player, work.planes
    if size[u, 0] >= CODE_BITS or size[w, 0] >= CODE_BITS:
        return False
    n, own, bits, constant = join(
        u, w, apart, size, player, units.beta, work.place, axis_player, work.axis_beta, work.bottom_beta
    )
    bottoms, top = count_axes(own, bits)
    if _rows_are_cheaper(n, bottoms, top, n_rows):
        return False
    if n + bottoms == 0 and apart < 0:
        return True
    if own[0] >= 0:
        axis_player[n] = own[0]
    if own[1] >= 0:
        axis_player[n + bottoms - 1] = own[1]
    fill_layout(n, bits, own, size[u], size[w], value[u], value[w], work.bottom_beta, work.place, work.lookups, work.mix)
    cells = 1 << (n + top)
    for x in range(cells):
        table[x] = 0.0
    _count(code_u, code_w, weights, ones, work.lookups[0], work.lookups[1], table)
    _superset_sums(table, n, cells)
    _fill_outside(factor * constant * value[u, 2] * value[w, 2], n, work.axis_beta, planes[0])
    _share_out(n, bottoms, top, apart, table, half, work.mix, planes, work.sums, axis_player, out)
    return True

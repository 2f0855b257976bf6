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

from exactshap.decompose._r2_unit_kernels import CODE_BITS

__all__ = ["MAX_BITS", "Work", "add_pair", "fill_half_weights", "join", "parting_player", "table_wins"]

MAX_BITS = 16  # largest table: 2^16 cells, 512 KiB: what fits into a second-level cache


class Work(NamedTuple):
    """Scratch of one thread."""

    lookup_u: np.ndarray  # uint32 (2^16,): code of u -> bits of the joint index
    lookup_w: np.ndarray
    place_u: np.ndarray  # int32 (64,): slot -> bit of the joint index, -1 if dropped
    place_w: np.ndarray
    axis_player: np.ndarray  # int32 (64,): players of the normal axes, then of the bottom axes
    axis_beta: np.ndarray  # float64 (64,)
    mix: np.ndarray  # float64 (4, 16): top patterns -> in or out of S on the bottom axes
    outside: np.ndarray  # float64 (2^MAX_BITS,): prod of beta over the normal axes not in S
    term: np.ndarray  # float64 (2^MAX_BITS,)
    fold: np.ndarray  # float64 (2^MAX_BITS,)
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


@njit(nogil=True, cache=True, error_model="numpy")
def parting_player(u, w, units, player_of_node):
    """Return the player of the node at which two units of one tree part."""
    e = 0
    while units.path_left[u, e] == units.path_left[w, e]:
        e += 1
    return player_of_node[units.path_node[u, e]]


@njit(nogil=True, cache=True, error_model="numpy")
def _own_player(u, apart, units):
    """Return the player of the unit's own split, -1 if it has none or cannot be in any S that matters."""
    if units.bottom[u] < 0:
        return -1
    p = units.player[u, units.bottom[u]]
    return -1 if p == apart else p


@njit(nogil=True, cache=True, error_model="numpy")
def _place_slots(u, apart, own_u, own_w, known, n, units, place, work, bottom_beta, bottom_bit):
    """Give each slot of a unit its bit: normal axes from ``n`` up (shared ones found among ``known``), -2, -3 at the bottoms."""
    constant = units.scale[u]
    for k in range(units.n_axes[u]):
        p, b = units.player[u, k], units.beta[u, k]
        place[k] = -1
        if p == apart:
            constant *= b
        elif p == own_u or p == own_w:
            axis = 0 if p == own_u else 1
            bottom_beta[axis] *= b
            if k < units.n_prefix[u]:
                bottom_bit[axis] = 1
                place[k] = -2 - axis
        else:
            a = 0
            while a < known and work.axis_player[a] != p:
                a += 1
            if a == known:
                a = n
                work.axis_player[n], work.axis_beta[n] = p, 1.0
                n += 1
            work.axis_beta[a] *= b
            place[k] = a
    return n, constant


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_lookup(u, side, owned, n_bits, units, place, lookup):
    """Write the joint index bits of every code of unit ``u``; bits that the unit does not own are set."""
    lookup[0] = np.uint32(((1 << n_bits) - 1) & ~owned)
    size = 1
    n_code_bits = units.n_prefix[u] + (1 if units.bottom[u] >= 0 else 0)
    for k in range(n_code_bits):
        where = place[k] if k < units.n_prefix[u] else side
        bit = np.uint32(1 << where) if where >= 0 else np.uint32(0)
        for x in range(size):
            lookup[size + x] = lookup[x] | bit
        size *= 2


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_mix(u, w, own_u, own_w, n_top, prefix, side_u, side_w, bottom_beta, units, mix):
    """Write, for each top pattern, the factor of the bottom axes with their players out of S and in S."""
    same = own_u >= 0 and own_u == own_w
    two = own_u >= 0 and own_w >= 0 and not same
    for t in range(1 << n_top):
        in_u = 1.0 if prefix[0] < 0 or (t >> prefix[0]) & 1 else 0.0
        in_w = 1.0 if prefix[1] < 0 or (t >> prefix[1]) & 1 else 0.0
        if own_u >= 0:
            in_u *= units.left_value[u] if (t >> side_u) & 1 else units.right_value[u]
        if own_w >= 0:
            value = units.left_value[w] if (t >> side_w) & 1 else units.right_value[w]
            if same:
                in_u *= value
            else:
                in_w *= value
        if two:
            mix[0, t], mix[1, t] = bottom_beta[0] * bottom_beta[1], in_u * bottom_beta[1]
            mix[2, t], mix[3, t] = bottom_beta[0] * in_w, in_u * in_w
        elif own_u >= 0:
            mix[0, t], mix[1, t] = bottom_beta[0], in_u
        elif own_w >= 0:
            mix[0, t], mix[1, t] = bottom_beta[1], in_w
        else:
            mix[0, t] = 1.0


@njit(nogil=True, cache=True, error_model="numpy")
def join(u, w, apart, units, work, fill):
    """Lay out the joint table of a pair: return (normal axes, bottom axes, top bits, constant); fill lookups if asked."""
    own_u, own_w = _own_player(u, apart, units), _own_player(w, apart, units)
    bottom_beta, bottom_bit = work.sums[:2], work.sums[2:4]
    bottom_beta[0] = bottom_beta[1] = 1.0
    bottom_bit[0] = bottom_bit[1] = 0.0
    n, c_u = _place_slots(u, apart, own_u, own_w, 0, 0, units, work.place_u, work, bottom_beta, bottom_bit)
    n, c_w = _place_slots(w, apart, own_u, own_w, n, n, units, work.place_w, work, bottom_beta, bottom_bit)
    top = 0
    first, second = -1, -1
    if bottom_bit[0] > 0.0:
        first = top
        top += 1
    if bottom_bit[1] > 0.0:
        second = top
        top += 1
    side_u, side_w = -1, -1
    if own_u >= 0:
        side_u = top
        top += 1
    if own_w >= 0:
        side_w = top
        top += 1
    bottoms = 0
    if own_u >= 0:
        work.axis_player[n] = own_u
        bottoms = 1
    if own_w >= 0 and own_w != own_u:
        work.axis_player[n + bottoms] = own_w
        bottoms += 1
    if fill:
        _fill_mix(u, w, own_u, own_w, top, (first, second), side_u, side_w, bottom_beta, units, work.mix)
        _fill_bits(u, n, first, second, side_u, n + top, units, work.place_u, work.lookup_u)
        _fill_bits(w, n, first, second, side_w, n + top, units, work.place_w, work.lookup_w)
    return n, bottoms, top, c_u * c_w


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_bits(u, n, first, second, side, n_bits, units, place, lookup):
    """Turn the marks of the bottom axes into bits above the normal ones, then write the lookup."""
    owned = 0
    for k in range(units.n_prefix[u]):
        if place[k] == -2:
            place[k] = n + first
        elif place[k] == -3:
            place[k] = n + second
        if place[k] >= 0:
            owned |= 1 << place[k]
    above = n + side if side >= 0 else -1
    if above >= 0:
        owned |= 1 << above
    _fill_lookup(u, above, owned, n_bits, units, place, lookup)


@njit(nogil=True, cache=True, error_model="numpy")
def _count(code_u, code_w, weights, lookup_u, lookup_w, table):
    """Add up the weights of the rows of each joint index."""
    for i in range(code_u.shape[0]):
        table[lookup_u[code_u[i]] & lookup_w[code_w[i]]] += weights[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _superset_sums(table, n_axes, size):
    r"""Replace N[A] by the sum of N[B] over all B that contain A, on the lowest ``n_axes`` bits; in place."""
    done = 0
    if n_axes >= 3:
        done = 3
        for x in range(0, size, 8):
            a0, a1, a2, a3 = table[x], table[x + 1], table[x + 2], table[x + 3]
            a4, a5, a6, a7 = table[x + 4], table[x + 5], table[x + 6], table[x + 7]
            a0, a1, a2, a3 = a0 + a4, a1 + a5, a2 + a6, a3 + a7
            a0, a1, a4, a5 = a0 + a2, a1 + a3, a4 + a6, a5 + a7
            table[x], table[x + 1], table[x + 2], table[x + 3] = a0 + a1, a1, a2 + a3, a3
            table[x + 4], table[x + 5], table[x + 6], table[x + 7] = a4 + a5, a5, a6 + a7, a7
    for k in range(done, n_axes):
        step = 1 << k
        for x in range(0, size, 2 * step):
            low, high = table[x : x + step], table[x + step : x + 2 * step]
            for y in range(step):
                low[y] += high[y]


@njit(nogil=True, cache=True, error_model="numpy")
def _sum(values, size):
    """Return the sum of the first ``size`` (a power of two) values in eight interleaved partial sums."""
    if size < 8:
        total = 0.0
        for x in range(size):
            total += values[x]
        return total
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for x in range(0, size, 8):
        s0 += values[x]
        s1 += values[x + 1]
        s2 += values[x + 2]
        s3 += values[x + 3]
        s4 += values[x + 4]
        s5 += values[x + 5]
        s6 += values[x + 6]
        s7 += values[x + 7]
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_outside(constant, n, work):
    """Write constant times the product of beta over the normal axes outside S, for all S, by doubling."""
    outside = work.outside
    outside[0] = constant
    for k in range(n):
        beta = work.axis_beta[k]
        step = 1 << k
        low, high = outside[:step], outside[step : 2 * step]
        for x in range(step):
            high[x] = low[x]
            low[x] *= beta


@njit(nogil=True, cache=True, error_model="numpy")
def _weigh(table, o, n, top, half, work):
    """Write h(|S|) g(S) for the S of bottom pattern ``o`` to ``work.term``."""
    size = 1 << n
    term, outside = work.term[:size], work.outside[:size]
    factor = work.mix[o, 0]
    row = table[:size]
    for x in range(size):
        term[x] = factor * row[x]
    for t in range(1, 1 << top):
        factor = work.mix[o, t]
        if factor != 0.0:
            row = table[t * size : (t + 1) * size]
            for x in range(size):
                term[x] += factor * row[x]
    for x in range(size):
        term[x] *= outside[x] * half[x]


@njit(nogil=True, cache=True, error_model="numpy")
def _fold(n, work):
    """Add sum_{S with k} of the folded terms to ``work.sums[k]`` for the normal axes, halving the table axis by axis."""
    for k in range(n - 1, -1, -1):
        step = 1 << k
        low, high = work.fold[:step], work.fold[step : 2 * step]
        work.sums[k] = _sum(high, step)
        for x in range(step):
            low[x] += high[x]


@njit(nogil=True, cache=True, error_model="numpy")
def _share_out(n, bottoms, top, apart, table, half_weights, work, out):
    """Turn superset sums into Shapley values of the pair's game and add them to ``out`` (n_players,)."""
    m = n + bottoms + (1 if apart >= 0 else 0)
    size = 1 << n
    fold = work.fold[:size]
    fold[:] = 0.0
    work.sums[n] = work.sums[n + 1] = 0.0
    empty = full = 0.0
    for o in range(1 << bottoms):
        above = (1 << ((o & 1) + (o >> 1))) - 1  # bits of the bottom players in S
        start = (1 << m) + above * size
        _weigh(table, o, n, top, half_weights[start : start + size], work)
        term = work.term[:size]
        for x in range(size):
            fold[x] += term[x]
        if o == 0:
            empty = term[0]
        if o == (1 << bottoms) - 1 and apart < 0:
            full = term[size - 1]
        if o > 0:
            total = _sum(term, size)
            work.sums[n] += total if o & 1 else 0.0
            work.sums[n + 1] += total if o & 2 else 0.0
    _fold(n, work)
    common = 0.0
    for k in range(n + bottoms):
        common += work.sums[k]
    common = common / m + empty - full
    for k in range(n + bottoms):
        out[work.axis_player[k]] += work.sums[k] - common
    if apart >= 0:
        out[apart] -= common


@njit(nogil=True, cache=True, error_model="numpy")
def add_pair(u, w, apart, factor, code_u, code_w, weights, units, half_weights, table, work, out):
    """Add ``factor`` times the Shapley values of the pair's game to ``out`` (n_players,); ``table`` sets the type of the counts."""
    n, bottoms, top, constant = join(u, w, apart, units, work, True)
    if n + bottoms == 0 and apart < 0:
        return
    size = 1 << (n + top)
    cells = table[:size]
    cells[:] = 0
    _count(code_u, code_w, weights, work.lookup_u, work.lookup_w, cells)
    _superset_sums(cells, n, size)
    _fill_outside(factor * constant, n, work)
    _share_out(n, bottoms, top, apart, cells, half_weights, work, out)


@njit(nogil=True, cache=True, error_model="numpy")
def table_wins(u, w, apart, n_rows, units, work):
    """Whether counting a pair's rows into a table is cheaper than quadrature row by row (and the table fits)."""
    if units.n_prefix[u] >= CODE_BITS or units.n_prefix[w] >= CODE_BITS:
        return False
    n, bottoms, top, _ = join(u, w, apart, units, work, False)
    bits = n + top
    if bits > MAX_BITS:
        return False
    m = n + bottoms + 1
    by_table = n_rows + 0.25 * (n + 6) * (1 << bits)
    by_rows = 1.0 * n_rows * m * ((m + 1) // 2)
    return by_table <= by_rows

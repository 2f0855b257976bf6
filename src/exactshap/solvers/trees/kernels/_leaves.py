r"""Compiled values leaf by leaf with a background: patterns of failed players instead of pairs of rows.

A row and a background row enter a leaf of m players only through the sets E and F of players whose splits they fail. With N(F) the
weight of the background rows that fail F, A the complement of E, e = \|E\|, f = \|F\|, and p_n(s) the semivalue's weights for n players,

.. math:: \phi_j(A) = P(A) - (P + Y)(A \setminus j) \qquad (\text{which is } -Y(A) \text{ for } j \notin A),

.. math:: Y(A) = \sum_{F \subseteq A} N(F)\, p_{e + f}(f), \qquad P(A) = \sum_{F \subseteq A} N(F)\, p_{e + f}(f - 1)

(of the empty F, P holds the sum of :math:`p_{m - i}(0)` over i below \|A\|, which cancels). Tables of all A answer all rows and players at
once, one row needs one A (``_tree_leaf_row_kernels``): *dense* leaves. Where 2^m is too large, the pairs of disjoint E and F are
summed (*sparse* leaves): players in F gain N(F) p_{e+f}(f - 1), players in E lose N(F) p_{e+f}(f). Which way a leaf goes depends on its
players and on the size of the background, not on the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from exactshap.solvers.trees.kernels._paths import largest
from exactshap.trees.ensemble import decide, goes_left

__all__ = ["WIDTH", "Work", "count", "ends", "merge", "sweep_leaves"]

WIDTH = 32  # bits of a pattern
MANY = 4  # where more than one in so many background rows are left, a split sends all of them on at once
LANES = 512  # rows that are looked up together: what belongs to them stays in the first-level cache


class Work(NamedTuple):
    """Scratch of one thread for blocks of ``n_rows`` rows."""

    row_codes: np.ndarray  # uint32 (n_levels, n_rows): players failed on the way to the node of each level
    went: np.ndarray  # uint8 (n_levels, n_rows): whether the row goes left at the split of each level
    codes: np.ndarray  # uint32 (n_levels, n_background): players failed by the background rows that are still there
    background_went: np.ndarray  # uint8 (n_levels, n_background)
    index: np.ndarray  # type: ignore[assignment]  # int32 (n_levels, n_background): which background rows those are
    n_codes: np.ndarray  # int64 (n_levels,)
    patterns: np.ndarray  # uint32 (n_background,): at one leaf
    mass: np.ndarray  # float64 (n_background,)
    bucket: np.ndarray  # int64 (2^h + 1,): where the patterns with the same h lowest bits start
    tables: np.ndarray  # float64 (4, 2^m): g, P, P + Y, masses of patterns
    cells: np.ndarray  # uint32 (LANES,): A of some rows
    ends: np.ndarray  # float64 (2, LANES): P(A), and the values of one player
    players: np.ndarray  # int64 (WIDTH,): those of the bits
    slots: np.ndarray  # int64 (n_levels,): bit of the player of the split at each level
    n_players: np.ndarray  # int64 (n_levels,): distinct players above it


@njit(nogil=True, cache=True, error_model="numpy")
def count(code, popcount):
    """Return the number of set bits of a uint32."""
    return popcount[code & np.uint32(0xFFFF)] + popcount[code >> np.uint32(16)]


@njit(nogil=True, cache=True, error_model="numpy")
def _compress(code, inside, n_players):
    """Return the bits of ``code`` at the set bits of ``inside``, moved together."""
    out, k = np.uint32(0), np.uint32(0)
    for s in range(n_players):
        if (inside >> np.uint32(s)) & np.uint32(1):
            out |= ((code >> np.uint32(s)) & np.uint32(1)) << k
            k += np.uint32(1)
    return out


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def merge(patterns, mass, n, mass_of):
    """Add up the masses of equal patterns, in order of first appearance; return their number. ``mass_of`` is 0.0 before and after."""
    k = 0
    for i in range(n):
        F = patterns[i]
        if mass_of[F] == 0.0:
            patterns[k] = F
            k += 1 if mass[i] > 0.0 else 0
        mass_of[F] += mass[i]
    for i in range(k):
        mass[i] = mass_of[patterns[i]]
        mass_of[patterns[i]] = 0.0
    return k


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def ends(f, a, m, weights):
    """Return the weights of a pattern of ``f`` players in P and P + Y of a cell of ``a`` of ``m`` players."""
    gain = weights[m - a + f, f - 1] if f > 0 else 0.0
    for i in range(a if f == 0 else 0):  # P leaves out the empty set
        gain += weights[m - i, 0]
    return gain, gain + weights[m - a + f, f]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _fill_tables(patterns, mass, n, inside, n_players, weights, popcount, tables):
    """Fill g(A), the sum of N(F), P and P + Y for the sets A of the players of the mask ``inside``; return their number.

    Each pattern adds to the sets that hold it.
    """
    m = count(inside, popcount)
    g, P, both = tables[0], tables[1], tables[2]
    for S in range(1 << m):
        g[S] = P[S] = both[S] = 0.0
    n = merge(patterns, mass, n, tables[3])
    gains, sums = np.empty(m + 1), np.empty(m + 1)
    for i in range(n):
        if patterns[i] & ~inside != 0:
            continue
        F = np.int64(patterns[i] if m == n_players else _compress(patterns[i], inside, n_players))
        f = np.int64(popcount[F])
        for a in range(f, m + 1):
            gain, both_ends = ends(f, a, n_players, weights)
            gains[a], sums[a] = mass[i] * gain, mass[i] * both_ends
        others = ((1 << m) - 1) & ~F
        more = others
        while more >= 0:
            A = F | more
            a = np.int64(popcount[A])
            g[A] += mass[i]
            P[A] += gains[a]
            both[A] += sums[a]
            more = (more - 1) & others if more > 0 else -1
    return m


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _look_up(row_codes, inside, n_players, m, c, magnitude, work, first, out, scale):
    """Add the values of one block of rows of a dense leaf, whose players of the mask ``inside`` have tables, from row ``first`` on."""
    g, P, both = work.tables[0], work.tables[1], work.tables[2]
    n_rows = row_codes.shape[0]
    cells, gain, value = work.cells[:n_rows], work.ends[0, :n_rows], work.ends[1, :n_rows]
    for r in range(n_rows):
        cell = ~row_codes[r] & inside
        cells[r] = cell if m == n_players else _compress(cell, inside, n_players)
    for r in range(n_rows):
        cell = np.uint64(cells[r])
        gain[r] = P[cell]
        scale[first + r] += magnitude * g[cell]
    k = np.uint32(0)
    for s in range(n_players):
        has_table = (inside >> np.uint32(s)) & np.uint32(1)
        bit = np.uint32(1) << k if has_table else np.uint32(0)
        k += has_table
        for r in range(n_rows):
            value[r] = gain[r] - both[np.uint64(cells[r] & ~bit)]
        for o in range(c.shape[0]):
            c_o, total = c[o], out[o, work.players[s], first : first + n_rows]
            if c_o != 0.0:
                for r in range(n_rows):
                    total[r] += c_o * value[r]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _solve_dense(row_codes, missed, n_players, n, c, magnitude, weights, popcount, work, out, scale):
    """Solve a dense leaf for all rows by one table of what some row satisfies."""
    everyone = ~np.uint32(0) >> np.uint32(WIDTH - n_players) if n_players > 0 else np.uint32(0)
    inside, n_rows = everyone & ~missed, row_codes.shape[0]
    m = _fill_tables(work.patterns, work.mass, n, inside, n_players, weights, popcount, work.tables)
    for r in range(0, n_rows, LANES):
        _look_up(row_codes[r : min(r + LANES, n_rows)], inside, n_players, m, c, magnitude, work, r, out, scale)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _sort_patterns(codes, index, weights, n_low, work):
    """Sort the background's patterns at a leaf by their ``n_low`` lowest bits, stably, into ``work.bucket``."""
    bucket, low = work.bucket, np.uint32((1 << n_low) - 1)
    bucket[: (1 << n_low) + 1] = 0
    for i in range(codes.shape[0]):
        bucket[np.int64(codes[i] & low) + 1] += 1
    for b in range(1 << n_low):
        bucket[b + 1] += bucket[b]
    for i in range(codes.shape[0]):
        b = np.int64(codes[i] & low)
        work.patterns[bucket[b]], work.mass[bucket[b]] = codes[i], weights[index[i]]
        bucket[b] += 1
    for b in range(1 << n_low, 0, -1):
        bucket[b] = bucket[b - 1]
    bucket[0] = 0


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _solve_sparse(row_codes, n_players, n_low, c, magnitude, weights, popcount, work, out, scale):
    """Solve a sparse leaf for all rows: only buckets whose lowest bits are disjoint from the row's are looked at."""
    gains, found = np.empty(WIDTH), np.empty(work.patterns.shape[0], np.uint32)
    masses = np.empty(work.patterns.shape[0])
    for r in range(row_codes.shape[0]):
        E = row_codes[r]
        n = 0
        free = np.int64(~E & np.uint32((1 << n_low) - 1))
        low = free
        while low >= 0:
            for i in range(work.bucket[low], work.bucket[low + 1]):
                found[n], masses[n] = work.patterns[i], work.mass[i]
                n += 1 if work.patterns[i] & E == 0 else 0
            low = (low - 1) & free if low > 0 else -1
        gains[:] = 0.0
        loss = total = 0.0
        e = np.int64(count(E, popcount))
        for i in range(n):
            F, mass = found[i], masses[i]
            f = np.int64(count(F, popcount))
            gain = mass * weights[e + f, f - 1] if f > 0 else 0.0
            loss += mass * weights[e + f, f] if e > 0 else 0.0
            total += mass
            for s in range(WIDTH):
                gains[s] += gain * np.float64((F >> np.uint32(s)) & np.uint32(1))
        scale[r] += magnitude * total
        for s in range(n_players):
            value = -loss if (E >> np.uint32(s)) & np.uint32(1) else gains[s]
            for o in range(c.shape[0]):
                out[o, work.players[s], r] += c[o] * value


@njit(nogil=True, cache=True, error_model="numpy")
def _descend(level, side, n_rows, work):
    """Write the patterns below one side of the split at ``level`` to ``level + 1``; return what all rows fail.

    Background rows that no row is disjoint from are left out.
    """
    bit, wanted = np.uint32(1) << np.uint32(work.slots[level]), np.uint8(1 - side)
    above, here, went = work.row_codes[level], work.row_codes[level + 1], work.went[level]
    missed = np.uint32(0xFFFFFFFF)
    for r in range(n_rows):
        code = above[r] if went[r] == wanted else above[r] | bit
        here[r] = code
        missed &= code
    n = 0
    codes, index, background_went = work.codes[level], work.index[level], work.background_went[level]
    codes_below, index_below = work.codes[level + 1], work.index[level + 1]
    for i in range(work.n_codes[level]):
        z, code = index[i], codes[i]
        code = code if background_went[z] == wanted else code | bit
        codes_below[n], index_below[n] = code, z
        n += 1 if code & missed == 0 else 0
    work.n_codes[level + 1] = n
    return missed


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _start(n_rows, work):
    """Begin at a root: nobody has failed anything."""
    work.row_codes[0, :n_rows] = 0
    work.n_codes[0] = work.patterns.shape[0]
    work.n_players[0] = 0
    for i in range(work.patterns.shape[0]):
        work.codes[0, i], work.index[0, i] = 0, i


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _decide(step, level, steps, columns, background, work):
    """Send all rows, and the background rows that are still there, through a split."""
    column, n = steps.nodes.feature[step], work.n_codes[level]
    decide(columns[column], step, steps.nodes, work.went[level, : columns.shape[1]])
    if n * MANY > background.shape[1]:
        decide(background[column], step, steps.nodes, work.background_went[level])
    else:
        for i in range(n):
            z = work.index[level, i]
            work.background_went[level, z] = goes_left(background[column, z], step, steps.nodes)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _solve_leaf(level, m, missed, c, background_weights, weights, n_rows, sizes, popcount, work, out, scale):
    """Solve a leaf of ``m`` players below ``level - 1``."""
    n, magnitude = work.n_codes[level], largest(c)
    n_dense, n_low = sizes
    row_codes, codes, index = work.row_codes[level, :n_rows], work.codes[level, :n], work.index[level, :n]
    if m <= n_dense:
        for k in range(n):
            work.patterns[k], work.mass[k] = codes[k], background_weights[index[k]]
        _solve_dense(row_codes, missed, m, n, c, magnitude, weights, popcount, work, out, scale)
    else:
        _sort_patterns(codes, index, background_weights, n_low, work)
        _solve_sparse(row_codes, m, n_low, c, magnitude, weights, popcount, work, out, scale)


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_leaves(columns, background, first, last, steps, player_of, background_weights, weights, sizes, popcount, work,
                 out, scale):  # fmt: skip
    """Add the values of single players in the tree of the splits ``first:last`` to ``out`` (n_outputs, n_players, n_rows).

    ``columns`` (n_features, n_rows), ``background`` (n_features, n_background); ``weights[m, s]`` is p(s) on m players. Leaves of at most
    ``sizes[0]`` players are dense, ``sizes[1]`` bits sort the patterns of the others; those of more than ``WIDTH`` are left out. Only
    splits that some hybrid of a row and a background row reaches are looked at. Cost O(n_splits (n_rows + n_background)) and, for
    each dense leaf, O(sum of 2^(m - f) over its patterns + m n_rows), for each sparse one its disjoint pairs and the others in their
    buckets.
    """
    n_rows, step = columns.shape[1], first
    while step < last:
        level, above = np.int64(steps.level[step]), steps.above[step]
        if level == 0:
            _start(n_rows, work)
        else:
            _descend(level - 1, 1 if steps.is_right[step] else 0, n_rows, work)
        slot = work.slots[above - 1] if above > 0 else work.n_players[level]
        if work.n_codes[level] == 0 or slot >= WIDTH:
            step = steps.end[step]
            continue
        m = work.n_players[level] + (1 if above == 0 else 0)
        work.slots[level], work.n_players[level + 1], work.players[slot] = slot, m, player_of[steps.nodes.feature[step]]
        _decide(step, level, steps, columns, background, work)
        for side in range(2):
            if steps.is_leaf[step, side] and largest(steps.value[step, side]) > 0.0:
                missed = _descend(level, side, n_rows, work)
                if work.n_codes[level + 1] > 0:
                    _solve_leaf(level + 1, m, missed, steps.value[step, side], background_weights, weights, n_rows, sizes,
                                popcount, work, out, scale)  # fmt: skip
        step += 1

r"""Compiled values leaf by leaf with a background: patterns of failed players instead of pairs of rows.

A row and a background row enter a leaf of m players only through the sets E and F of players whose splits they fail. With N(F) the
weight of the background rows that fail F, A the complement of E, g(S) the sum of N(F) over F inside S, and p(s) the semivalue's
weights for m players,

.. math:: \phi_j(A) = P(A) - (P + Y)(A \setminus j) \qquad (\text{which is } -Y(A) \text{ for } j \notin A),

.. math:: Y(A) = \sum_{S \subseteq A} p(|S|)\, g(S), \qquad P(A) = \sum_{S \subseteq A} p(|S| - 1)\, g(S):

three subset sums answer all rows and players at once (*dense* leaves). Where 2^m is too large, the pairs of disjoint E and F
are summed (*sparse* leaves): with f = \|F\| and e = \|E\|, players in F gain N(F) p_{e+f}(f - 1), players in E lose N(F) p_{e+f}(f).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from exactshap.solvers._lanes import U1, U2, U3, U4, U5, U6, U7, add_range

__all__ = ["Order", "Work", "fill_order", "sum_subsets", "sweep_leaves"]

WIDTH = 32  # bits of a pattern
LANES = 512  # rows that are looked up together: what belongs to them stays in the first-level cache


class Order(NamedTuple):
    """The nodes of all trees, each tree's in depth-first order."""

    node: np.ndarray
    end: np.ndarray  # position after the node's subtree
    depth: np.ndarray
    n_players: np.ndarray  # distinct players above
    slot: np.ndarray  # by node: bit of the player of its split in the patterns below, -1 at leaves


class Work(NamedTuple):
    """Scratch of one thread for blocks of ``n_rows`` rows."""

    row_codes: np.ndarray  # uint32 (n_levels, n_rows): players failed on the way to the node of each level
    codes: np.ndarray  # uint32 (n_levels, n_background): the same of the background rows that are still there
    index: np.ndarray  # type: ignore[assignment]  # int32 (n_levels, n_background): which background rows those are
    n_codes: np.ndarray  # int64 (n_levels,)
    patterns: np.ndarray  # uint32 (n_background,): at one leaf
    mass: np.ndarray  # float64 (n_background,)
    bucket: np.ndarray  # int64 (2^h + 1,): where the patterns with the same h lowest bits start
    tables: np.ndarray  # float64 (4, 2^m): g, Y, P, P + Y
    cells: np.ndarray  # uint32 (LANES,): A of some rows
    ends: np.ndarray  # float64 (2, LANES): P(A), and the values of one player
    players: np.ndarray  # int64 (WIDTH,): those of the bits at one leaf


@njit(nogil=True, cache=True, error_model="numpy")
def fill_order(tree_start, left, right, parent, player, distinct, order):
    """Fill ``order``; children come after their parents in ``tree_start[k]:tree_start[k + 1]``."""
    stack = np.empty(player.shape[0] + 1, np.int64)
    below = np.ones(player.shape[0], np.int64)
    for q in range(player.shape[0] - 1, -1, -1):
        if parent[q] >= 0:
            below[parent[q]] += below[q]
    for q in range(player.shape[0]):
        p = parent[q]
        while p >= 0 and player[p] != player[q]:
            p = parent[p]
        order.slot[q] = -1 if player[q] < 0 else (order.slot[p] if p >= 0 else distinct[q])
    for k in range(tree_start.shape[0] - 1):
        i = tree_start[k]
        stack[0] = i
        size = 1
        while size > 0:
            size -= 1
            q = stack[size]
            order.node[i], order.end[i], order.n_players[i] = q, i + below[q], distinct[q]
            order.depth[q] = order.depth[parent[q]] + 1 if parent[q] >= 0 else 0
            if player[q] >= 0:
                stack[size], stack[size + 1] = right[q], left[q]
                size += 2
            i += 1


@njit(nogil=True, cache=True, error_model="numpy")
def sum_subsets(table, m):
    """Replace ``table[S]`` (2^m,) by the sum over the subsets of S, one player after another.

    A cell meets the same additions in the same order whichever players outside it the table has.
    """
    size = 1 << m
    if m < 3:
        for k in range(m):
            half = 1 << k
            for block in range(0, size, 2 * half):
                for S in range(block, block + half):
                    table[S + half] += table[S]
        return
    for start in range(0, size, 8):
        i = np.uint64(start)
        a0, a1, a2, a3 = table[i], table[i + U1], table[i + U2], table[i + U3]
        a4, a5, a6, a7 = table[i + U4], table[i + U5], table[i + U6], table[i + U7]
        a1, a3, a5, a7 = a1 + a0, a3 + a2, a5 + a4, a7 + a6
        a2, a3, a6, a7 = a2 + a0, a3 + a1, a6 + a4, a7 + a5
        table[i], table[i + U1], table[i + U2], table[i + U3] = a0, a1, a2, a3
        table[i + U4], table[i + U5], table[i + U6], table[i + U7] = a4 + a0, a5 + a1, a6 + a2, a7 + a3
    for k in range(3, m):
        half = 1 << k
        for block in range(0, size, 2 * half):
            add_range(table, block + half, block, half)


@njit(nogil=True, cache=True, error_model="numpy")
def _count(code, popcount):
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
def _fill_tables(patterns, mass, inside, n_players, weights, popcount, tables):
    """Fill g, Y, P and P + Y for the sets of the players of the mask ``inside``; return their number."""
    m = _count(inside, popcount)
    size = 1 << m
    g, Y, P, both = tables[0], tables[1], tables[2], tables[3]
    for S in range(size):
        g[S] = 0.0
    for i in range(patterns.shape[0]):
        if patterns[i] & ~inside == 0:
            g[patterns[i] if m == n_players else _compress(patterns[i], inside, n_players)] += mass[i]
    sum_subsets(g, m)
    for S in range(size):
        s = popcount[S]
        Y[S] = g[S] * weights[s]
        P[S] = g[S] * (weights[s - 1] if s > 0 else 0.0)
    sum_subsets(Y, m)
    sum_subsets(P, m)
    for S in range(size):
        both[S] = P[S] + Y[S]
    return m


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _look_up(row_codes, inside, n_players, m, c, magnitude, work, first, out, scale):
    """Add the values of one block of rows of a dense leaf, whose players of the mask ``inside`` have tables, from row ``first`` on."""
    g, P, both = work.tables[0], work.tables[2], work.tables[3]
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
    """Solve a dense leaf for all rows: by one table of what some row satisfies, or row by row where that is less."""
    everyone = ~np.uint32(0) >> np.uint32(WIDTH - n_players) if n_players > 0 else np.uint32(0)
    n_rows = row_codes.shape[0]
    together, apart = np.int64(0), np.int64(1)
    if n_rows <= WIDTH:
        union = np.int64(_count(everyone & ~missed, popcount))
        together, apart = (union + 4) << union, np.int64(0)
        for r in range(n_rows):
            m = np.int64(_count(everyone & ~row_codes[r], popcount))
            apart += (m + 4) << m
    by_row = apart < together
    m = np.int64(0)
    step = 1 if by_row else LANES
    for r in range(0, n_rows, step):
        inside = everyone & ~(row_codes[r] if by_row else missed)
        if by_row or r == 0:
            m = _fill_tables(work.patterns[:n], work.mass[:n], inside, n_players, weights, popcount, work.tables)
        _look_up(row_codes[r : min(r + step, n_rows)], inside, n_players, m, c, magnitude, work, r, out, scale)


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
        e = np.int64(_count(E, popcount))
        for i in range(n):
            F, mass = found[i], masses[i]
            f = np.int64(_count(F, popcount))
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
def _descend(i, q, p, order, is_left, decided, decided_by_background, work, n_rows):
    """Write the patterns at node ``q`` of all rows and of the background rows that some row can be disjoint from.

    Return what all rows fail.
    """
    level = order.depth[q]
    bit = np.uint32(1) << np.uint32(order.slot[p])
    wanted = np.uint8(1 if is_left else 0)
    above, here = work.row_codes[level - 1], work.row_codes[level]
    missed = np.uint32(0xFFFFFFFF)
    for r in range(n_rows):
        code = above[r] if decided[r] == wanted else above[r] | bit
        here[r] = code
        missed &= code
    n = 0
    for i in range(work.n_codes[level - 1]):
        z = work.index[level - 1, i]
        code = work.codes[level - 1, i]
        code = code if decided_by_background[z] == wanted else code | bit
        work.codes[level, n], work.index[level, n] = code, z
        n += 1 if code & missed == 0 else 0
    work.n_codes[level] = n
    return missed


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _start(n_rows, work):
    """Begin at a root: nobody has failed anything."""
    work.row_codes[0, :n_rows] = 0
    work.n_codes[0] = work.patterns.shape[0]
    for i in range(work.patterns.shape[0]):
        work.codes[0, i], work.index[0, i] = 0, i


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_leaves(first, last, order, parent, left, player, value, magnitude, decisions, by_background, background_weights, weights,
                 n_dense, n_low, popcount, work, out, scale):  # fmt: skip
    """Add the values of single players in the tree at positions ``first:last`` to ``out`` (n_outputs, n_players, n_rows).

    ``decisions`` (n_nodes, n_rows) and ``by_background`` (n_nodes, n_background) start at the tree's root; ``weights[m, s]`` is p(s)
    on m players; leaves of at most ``n_dense`` players are dense, those of more than ``WIDTH`` are left out.
    Cost O(n_nodes (n_rows + n_background)) and, for each dense leaf, O(m 2^m + m n_rows), for each sparse one its disjoint
    pairs and the others in their buckets.
    """
    n_rows = decisions.shape[1]
    skip_to = first
    for i in range(first, last):
        if i < skip_to:
            continue
        q, m = order.node[i], order.n_players[i]
        p = parent[q]
        level = order.depth[q]
        if m > WIDTH:
            skip_to = order.end[i]
            continue
        missed = np.uint32(0)
        if p < 0:
            _start(n_rows, work)
        else:
            missed = _descend(i, q, p, order, left[p] == q, decisions[p - first], by_background[p - first], work, n_rows)
        n = work.n_codes[level]
        if n == 0:
            skip_to = order.end[i]
        if n == 0 or player[q] >= 0:
            continue
        if magnitude[q] == 0.0:
            continue
        while p >= 0:
            work.players[order.slot[p]] = player[p]
            p = parent[p]
        row_codes, codes, index = work.row_codes[level, :n_rows], work.codes[level, :n], work.index[level, :n]
        if m <= n_dense:
            for k in range(n):
                work.patterns[k], work.mass[k] = codes[k], background_weights[index[k]]
            _solve_dense(row_codes, missed, m, n, value[q], magnitude[q], weights[m], popcount, work, out, scale)
        else:
            _sort_patterns(codes, index, background_weights, n_low, work)
            _solve_sparse(row_codes, m, n_low, value[q], magnitude[q], weights, popcount, work, out, scale)

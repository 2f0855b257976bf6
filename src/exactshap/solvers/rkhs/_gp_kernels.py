"""Compiled sweeps for the covariance of Shapley values under a Gaussian process.

Arrays are C-contiguous with the dimension that is summed or listed last, so that one instruction works on several entries.
No divisions, no expansions, no fastmath; conductors in ``_gp_covariance`` validate and allocate, kernels fill ``out``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["fill_functionals", "fill_pair_functionals", "fill_prior", "fill_spread"]

TILE = 16  # background rows (or training rows) per sweep


@njit(nogil=True, cache=True, error_model="numpy")
def fill_prior(corner, left, right, between, weights, nodes, node_weights, interactions, out):
    r"""Add the prior covariance of pairs of players, in lexicographic order with j = j', to ``out`` (n_rows, n_pairs).

    With ``corner`` k(x, x') (n_rows, n_players), ``left`` k(x, z') and ``right`` k(z, x') (n_rows, n_players, n_background),
    ``between`` k(z, z') (n_background, n_players, n_background), all for one column or player at a time,

    .. math:: F_k(t, s) = ts\, k(x, x') + t(1-s)\, k(x, z') + (1-t)s\, k(z, x') + (1-t)(1-s)\, k(z, z')

    .. math:: P_{jj'} = \sum_{z, z'} w_z w_{z'} \iint \partial_t F_j\, \partial_s F_{j'} \prod_{k \ne j, j'} F_k, \qquad
              P_{jj} = \sum_{z, z'} w_z w_{z'} \iint \partial_t \partial_s F_j \prod_{k \ne j} F_k

    for j < j'. With ``interactions`` every factor of j and j' is :math:`\partial_t \partial_s F`: the prior variance of the
    interaction {j, j'}; the entries j = j' are then meaningless.
    """
    n_rows, n_players = corner.shape
    n_background = weights.shape[0]
    n_pairs = out.shape[1]
    # per player: derivative in t at s = 0, derivative in t and s, F(t, 0), derivative in s
    slope = np.empty((n_players, TILE))
    mixed = np.empty((n_players, TILE))
    low = np.empty((n_players, TILE))
    rise = np.empty((n_players, TILE))
    share = np.empty((n_pairs, TILE))
    work = np.empty((4, n_players, TILE))
    for r in range(n_rows):
        for start in range(0, n_background, TILE):
            width = min(TILE, n_background - start)
            share[:, :] = 0.0
            for m in range(n_background):
                _load_slopes(corner[r], left[r], right[r], between[m], m, start, width, slope, mixed)
                for q in range(nodes.shape[0]):
                    t = nodes[q]
                    for k in range(n_players):
                        top = right[r, k, m] + t * (corner[r, k] - right[r, k, m])
                        for i in range(width):
                            low[k, i] = between[m, k, start + i] + t * slope[k, i]
                            rise[k, i] = top - low[k, i]
                        for i in range(width, TILE):
                            low[k, i] = 0.0
                            rise[k, i] = 0.0
                    for p in range(nodes.shape[0]):
                        weight = weights[m] * node_weights[q] * node_weights[p]
                        _add_pairs(weight, nodes[p], slope, mixed, low, rise, interactions, work, share)
            for pair in range(n_pairs):
                value = 0.0
                for i in range(width):
                    value += weights[start + i] * share[pair, i]
                out[r, pair] += value


@njit(nogil=True, cache=True, error_model="numpy")
def _load_slopes(corner, left, right, between, m, start, width, slope, mixed):
    """Set the derivative of F in t at s = 0 and its mixed derivative for one row, one z and one tile of z'; pad with zeros."""
    for k in range(corner.shape[0]):
        high = corner[k] - right[k, m]
        for i in range(TILE):
            slope[k, i] = 0.0
            mixed[k, i] = 0.0
        for i in range(width):
            slope[k, i] = left[k, start + i] - between[k, start + i]
            mixed[k, i] = high - slope[k, i]


@njit(nogil=True, cache=True, error_model="numpy")
def _add_pairs(weight, s, slope, mixed, low, rise, interactions, work, share):
    """Add the integrand at one pair of nodes to ``share`` (n_pairs, TILE); no factor is ever divided out.

    A prefix over the players before j, a running product between j and j', and a suffix behind j' make every pair.
    """
    n_players = slope.shape[0]
    first, second, factor, suffix = work[0], work[1], work[2], work[3]
    prefix = np.full(TILE, weight)
    running = np.empty(TILE)
    suffix[n_players - 1] = 1.0
    for k in range(n_players - 1, -1, -1):
        for i in range(TILE):
            factor[k, i] = low[k, i] + s * rise[k, i]
            if interactions:
                first[k, i] = mixed[k, i]
                second[k, i] = mixed[k, i] * suffix[k, i]
            else:
                first[k, i] = slope[k, i] + s * mixed[k, i]
                second[k, i] = rise[k, i] * suffix[k, i]
            if k > 0:
                suffix[k - 1, i] = suffix[k, i] * factor[k, i]
    pair = 0
    for j in range(n_players):
        for i in range(TILE):
            share[pair, i] += prefix[i] * mixed[j, i] * suffix[j, i]
            running[i] = prefix[i] * first[j, i]
            prefix[i] *= factor[j, i]
        pair += 1
        for k in range(j + 1, n_players):
            for i in range(TILE):
                share[pair, i] += running[i] * second[k, i]
                running[i] *= factor[k, i]
            pair += 1


@njit(nogil=True, cache=True, error_model="numpy")
def fill_functionals(a, b, weights, nodes, node_weights, out):
    r"""Add the values of single players of each term's own game to ``out`` (n_rows, n_players, n_terms).

    .. math:: \Phi_j(x)_i = \sum_z w_z (a_{ij} - b_{zij}) \sum_q \omega_q \prod_{k \ne j} \bigl(t_q a_{ik} + (1 - t_q) b_{zik}\bigr)

    for ``a (n_rows, n_players, n_terms)`` and ``b (n_background, n_players, n_terms)``: the linear functional of f that the
    value is, evaluated at kernel sections.
    """
    n_rows, n_players, n_terms = a.shape
    slope = np.empty((n_players, TILE))
    factor = np.empty((n_players, TILE))
    suffix = np.empty((n_players, TILE))
    share = np.empty((n_players, TILE))
    prefix = np.empty(TILE)
    for r in range(n_rows):
        for start in range(0, n_terms, TILE):
            width = min(TILE, n_terms - start)
            for m in range(weights.shape[0]):
                share[:, :] = 0.0
                slope[:, :] = 0.0
                factor[:, :] = 0.0
                for k in range(n_players):
                    for i in range(width):
                        slope[k, i] = a[r, k, start + i] - b[m, k, start + i]
                for q in range(nodes.shape[0]):
                    t = nodes[q]
                    for i in range(TILE):
                        prefix[i] = node_weights[q]
                        suffix[n_players - 1, i] = weights[m]
                    for k in range(n_players - 1, -1, -1):
                        for i in range(width):
                            factor[k, i] = b[m, k, start + i] + t * slope[k, i]
                        if k > 0:
                            for i in range(TILE):
                                suffix[k - 1, i] = suffix[k, i] * factor[k, i]
                    for k in range(n_players):
                        for i in range(TILE):
                            share[k, i] += prefix[i] * suffix[k, i]
                            prefix[i] *= factor[k, i]
                for k in range(n_players):
                    for i in range(width):
                        out[r, k, start + i] += slope[k, i] * share[k, i]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_pair_functionals(a, b, weights, nodes, node_weights, out):
    r"""Add the interactions of all pairs, in lexicographic order, of each term's own game to ``out`` (n_rows, n_pairs, n_terms).

    .. math:: \Phi_{jk}(x)_i = \sum_z w_z (a_{ij} - b_{zij})(a_{ik} - b_{zik}) \sum_q \omega_q \prod_{l \ne j, k} F_{zil}(t_q)
    """
    n_rows, n_players, n_terms = a.shape
    slope = np.empty(n_players)
    factor = np.empty(n_players)
    suffix = np.empty(n_players)
    for r in range(n_rows):
        for i in range(n_terms):
            for m in range(weights.shape[0]):
                for k in range(n_players):
                    slope[k] = a[r, k, i] - b[m, k, i]
                for q in range(nodes.shape[0]):
                    suffix[n_players - 1] = weights[m] * node_weights[q]
                    for k in range(n_players - 1, -1, -1):
                        factor[k] = b[m, k, i] + nodes[q] * slope[k]
                        if k > 0:
                            suffix[k - 1] = suffix[k] * factor[k]
                    prefix = 1.0
                    pair = 0
                    for j in range(n_players):
                        running = prefix * slope[j]
                        for k in range(j + 1, n_players):
                            out[r, pair, i] += running * slope[k] * suffix[k]
                            running *= factor[k]
                            pair += 1
                        prefix *= factor[j]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_spread(corner, cross, between, spread):
    r"""Set ``spread`` (n_rows,) to the largest sum over players of the relative widths of F in one of its two arguments.

    For factors that are nowhere negative, F(1, s) / F(0, s) is monotone in s, so the width at fixed s is at most the larger
    of the widths at s = 0 and s = 1 (see ``_nodes`` for what the spread bounds). A negative factor gives infinity: then only
    the exact number of nodes will do.
    """
    n_rows, n_players = corner.shape
    n_background = cross.shape[2]
    for r in range(n_rows):
        spread[r] = 0.0
        for m in range(n_background):
            for z in range(n_background):
                total = 0.0
                for k in range(n_players):
                    xx, zx, xz, zz = corner[r, k], cross[r, k, m], cross[r, k, z], between[m, k, z]
                    if min(min(xx, zx), min(xz, zz)) < 0.0:
                        total = np.inf
                    else:
                        total += max(_width(xx, zx), _width(xz, zz))
                spread[r] = max(spread[r], total)


@njit(nogil=True, cache=True, error_model="numpy")
def _width(a, b):
    top = max(a, b)
    return 0.5 * abs(a - b) / top if top > 0.0 else 0.0

r"""Unit pairs by quadrature, row by row: linear memory at any depth, each row's own share, and the twin of the table kernels.

.. math:: \phi_j = \sum_i \omega_i (a_{ij} - b_j) \int_0^1 \prod_{k \ne j} (t a_{ik} + (1 - t) b_k)\, dt,
          \quad a_{ik} = \alpha_{uk}(x_i) \alpha_{wk}(x_i), \quad b_k = \beta_{uk} \beta_{wk}

The integrand has degree m - 1: ceil(m / 2) Gauss-Legendre nodes are exact. Nothing is divided by a factor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["Sweep", "add_pair_rows"]


class Sweep(NamedTuple):
    """Scratch of one thread for blocks of ``n_block`` rows and pairs of at most ``n_axes`` players."""

    player: np.ndarray  # int32 (n_axes,)
    slot_u: np.ndarray  # int32 (n_axes,): the axis' slot in unit u, -1 if it has none
    slot_w: np.ndarray
    beta: np.ndarray  # float64 (n_axes,)
    alpha: np.ndarray  # float64 (n_axes, n_block)
    factor: np.ndarray  # float64 (n_axes, n_block)
    prefix: np.ndarray  # float64 (n_axes, n_block)
    suffix: np.ndarray  # float64 (n_block,)
    share: np.ndarray  # float64 (n_axes, n_block)


@njit(nogil=True, cache=True, error_model="numpy")
def _join_axes(u, w, units, sweep):
    """List the players of a pair (``w`` = -1: of unit u alone) with their slots and betas; return their number."""
    m = units.size[u, 1]
    for k in range(m):
        sweep.player[k], sweep.beta[k] = units.player[u, k], units.beta[u, k]
        sweep.slot_u[k], sweep.slot_w[k] = k, -1
    if w < 0:
        return m
    n_u = m
    for k in range(units.size[w, 1]):
        a = 0
        while a < n_u and sweep.player[a] != units.player[w, k]:
            a += 1
        if a == n_u:
            a = m
            sweep.player[m], sweep.beta[m], sweep.slot_u[m] = units.player[w, k], 1.0, -1
            m += 1
        sweep.beta[a] *= units.beta[w, k]
        sweep.slot_w[a] = k
    return m


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_alpha(m, alpha_u, alpha_w, n_rows, sweep):
    for a in range(m):
        row = sweep.alpha[a]
        if sweep.slot_u[a] < 0:
            other = alpha_w[sweep.slot_w[a]]
            for i in range(n_rows):
                row[i] = other[i]
        else:
            mine = alpha_u[sweep.slot_u[a]]
            for i in range(n_rows):
                row[i] = mine[i]
            if sweep.slot_w[a] >= 0:
                other = alpha_w[sweep.slot_w[a]]
                for i in range(n_rows):
                    row[i] *= other[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _add_node(t, node_weight, m, n_rows, sweep):
    """Add one quadrature node's part of every axis' share of every row of the block."""
    suffix = sweep.suffix
    for i in range(n_rows):
        suffix[i] = node_weight
    for a in range(m):
        alpha, factor, prefix = sweep.alpha[a], sweep.factor[a], sweep.prefix[a]
        outside = (1.0 - t) * sweep.beta[a]
        for i in range(n_rows):
            factor[i] = t * alpha[i] + outside
            prefix[i] = suffix[i]
            suffix[i] *= factor[i]
    for i in range(n_rows):
        suffix[i] = 1.0
    for a in range(m - 1, -1, -1):
        alpha, factor, prefix, share = sweep.alpha[a], sweep.factor[a], sweep.prefix[a], sweep.share[a]
        beta = sweep.beta[a]
        for i in range(n_rows):
            share[i] += (alpha[i] - beta) * prefix[i] * suffix[i]
            suffix[i] *= factor[i]


@njit(nogil=True, cache=True, error_model="numpy")
def add_pair_rows(u, w, factor, alpha_u, alpha_w, weights, units, nodes, node_weights, sweep, out):
    """Add ``factor`` times each row's Shapley values of the pair's game to ``out`` (n_players, n_rows).

    ``weights`` (n_rows,) multiplies the rows; ``nodes[q, :q]`` is the Gauss-Legendre rule of q nodes on [0, 1]. ``w`` = -1
    means the constant 1.
    """
    n_rows = weights.shape[0]
    m = _join_axes(u, w, units, sweep)
    _fill_alpha(m, alpha_u, alpha_w, n_rows, sweep)
    constant = factor * units.value[u, 2] * (units.value[w, 2] if w >= 0 else 1.0)
    sweep.share[:m, :n_rows] = 0.0
    n_nodes = (m + 1) // 2
    for q in range(n_nodes):
        _add_node(nodes[n_nodes, q], node_weights[n_nodes, q], m, n_rows, sweep)
    for a in range(m):
        share, p = sweep.share[a], sweep.player[a]
        total = out[p]
        for i in range(n_rows):
            total[i] += constant * weights[i] * share[i]

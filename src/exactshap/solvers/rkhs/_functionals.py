r"""Compute Shapley values as linear functionals of a kernel machine.

For f = sum_i alpha_i k(X_i, .) the value of player A at x_q is :math:`\phi_A(x_q) = \sum_i \alpha_i \Gamma_A[i, q]` for any
alpha: Gamma depends on the kernel, the rows and the value function only. There are two exact methods.

*Quadrature* (``fill_functionals``): O(n_terms n_rows n_background n_nodes d), for any number of players.

*Splitting*: the players fall into two halves, S = (S_1, S_2). With tables of all partial products of a half,

.. math:: v_q(S)_i = A^1_{q S_1} A^2_{q S_2} M_{S_1 S_2}, \qquad M_{S_1 S_2} = \sum_z w_z B^1_{z S_1} B^2_{z S_2},

so the background is summed once for all rows and the rest is three matrix products for each term, whatever the number of
players, because the weight of v(S) in the value of A is :math:`h(|S|)\, [A \in S] - p(|S|)` with h(s) = p(s - 1) + p(s):
O(n_terms 2^d (n_background + n_rows)), without the product of rows and background that quadrature pays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactshap._runtime.process_settings import single_threaded_blas
from exactshap._runtime.slices import slices
from exactshap.games import all_masks, coalition_products
from exactshap.semivalues import Semivalue, find
from exactshap.solvers.rkhs._gp_covariance import fill_functionals

# Players: two tables of 2^12 products for each term.
MAX_SPLIT_PLAYERS = 24
# Functionals of all players in memory at once in the quadrature: 128 MiB.
BLOCK_VALUES = 2**24


def player_functionals(
    inside: np.ndarray,
    outside: np.ndarray,
    weights: np.ndarray,
    players: Sequence[int],
) -> np.ndarray:
    """Return Gamma (n_chosen, n_terms, n_rows) of some players, by the cheaper method.

    ``inside`` (n_players, n_terms, n_rows) are k_j(X_ij, x_qj), ``outside`` (n_players, n_terms, n_background) k_j(X_ij, z_j); weights sum to one.
    """
    way = by_splitting if splitting_pays(len(inside), outside.shape[2], inside.shape[2]) else by_quadrature
    return way(inside, outside, weights, players, find("shapley"))


def by_quadrature(
    inside: np.ndarray, outside: np.ndarray, weights: np.ndarray, players: Sequence[int], semivalue: Semivalue
) -> np.ndarray:
    """Sweep over rows and background, for all players at once."""
    d, n_terms, n_rows = inside.shape
    nodes, node_weights = (np.array(part) for part in semivalue.rule(degree=max(0, d - 1)))
    background = np.ascontiguousarray(outside.transpose(2, 0, 1))
    result = np.empty((len(players), n_terms, n_rows))
    for block in slices(n_rows, BLOCK_VALUES // (d * n_terms)):
        rows = np.ascontiguousarray(inside[:, :, block].transpose(2, 0, 1))
        out = np.zeros(rows.shape)
        fill_functionals(rows, background, weights, nodes, node_weights, out)
        result[:, :, block] = out[:, list(players)].transpose(1, 2, 0)
    return result


def by_splitting(
    inside: np.ndarray, outside: np.ndarray, weights: np.ndarray, players: Sequence[int], semivalue: Semivalue
) -> np.ndarray:
    """Enumerate both halves of the players, term by term. BLAS threads would cost more than they save."""
    d, n_terms, n_rows = inside.shape
    half, chosen = d // 2, list(players)
    first_masks, second_masks = all_masks(half), all_masks(d - half)
    sizes = second_masks.sum(axis=1)[:, None] + first_masks.sum(axis=1)
    p = np.concatenate([semivalue.weights(d), [0.0]])
    joining = p[sizes] + np.where(sizes > 0, p[sizes - 1], 0.0)
    members = [masks.T.astype(float) for masks in (first_masks, second_masks)]
    result = np.empty((len(players), n_terms, n_rows))
    with single_threaded_blas():
        for i in range(n_terms):
            first, second = coalition_products(inside[:half, i]), coalition_products(inside[half:, i])
            before, behind = (coalition_products(part[:, i], absent=True) for part in (outside[:half], outside[half:]))
            mean = (behind * weights) @ before.T
            joined = joining * mean
            base = (((p[sizes] * mean).T @ second) * first).sum(axis=0)
            low = members[0] @ ((joined.T @ second) * first)
            high = members[1] @ ((joined @ first) * second)
            # sum_S (h(|S|) [A in S] - p(|S|)) v(S): the second part is the same for all players
            result[:, i] = (np.concatenate([low, high]) - base)[chosen]
    return result


def splitting_pays(n_players: int, n_background: int, n_rows: int) -> bool:
    """Say whether splitting is faster than quadrature for some rows."""
    if n_players > MAX_SPLIT_PLAYERS:
        return False
    split = 1e-4 + 1e-10 * 2.0**n_players * (n_background + 3.0 * n_rows)
    sweep = 1e-9 * n_rows * n_background * ((n_players + 1) // 2) * n_players
    return split < sweep

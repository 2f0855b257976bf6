r"""Shapley values as linear functionals of a kernel machine, at many rows at once.

For f = sum_i alpha_i k(X_i, .) the value of player A at x_q is :math:`\phi_A(x_q) = \sum_i \alpha_i \Gamma_A[i, q]`, whatever
alpha is: Gamma depends on the kernel, the rows and the value function only. Two exact ways lead to it.

*Quadrature* (``_gp_kernels.fill_functionals``): O(n_terms n_rows n_background n_nodes d), for any number of players.

*Splitting*: the players fall into two halves, S = (S_1, S_2). With tables of all partial products of a half,

.. math:: v_q(S)_i = A^1_{q S_1} A^2_{q S_2} M_{S_1 S_2}, \qquad M_{S_1 S_2} = \sum_z w_z B^1_{z S_1} B^2_{z S_2},

so the background is summed once for all rows and the rest is two matrix products for each term: O(n_terms 2^d (n_background +
n_rows)), without the product of rows and background that quadrature pays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactshap.semivalues import Semivalue, find

__all__ = ["by_quadrature", "by_splitting", "player_functionals", "splitting_is_cheaper"]

MAX_SPLIT_PLAYERS = 24
BLOCK_VALUES = 2**24  # functionals of all players held at once by the quadrature: 128 MiB


def player_functionals(
    inside: np.ndarray,
    outside: np.ndarray,
    weights: np.ndarray,
    players: Sequence[int],
    semivalue: str | Semivalue = "shapley",
) -> np.ndarray:
    """Return Gamma (n_chosen, n_terms, n_rows), exact up to rounding, by the cheaper of the two ways.

    Parameters
    ----------
    inside : array of shape (n_players, n_terms, n_rows)
        One-player factors k_j(X_ij, x_qj).
    outside : array of shape (n_players, n_terms, n_background)
        k_j(X_ij, z_j).
    weights : array of shape (n_background,)
        Summing to one.
    players : sequence of int
        Which players A.
    """
    rule = find(semivalue)
    way = by_splitting if splitting_is_cheaper(inside.shape, outside.shape[2], len(players)) else by_quadrature
    return way(inside, outside, weights, players, rule)


def splitting_is_cheaper(shape: tuple[int, ...], n_background: int, n_chosen: int) -> bool:
    """Compare the forecasts: matrix products run about 15 times faster per operation than the sweep of the quadrature."""
    d, _, n_rows = shape
    split = 2.0**d * (n_background + n_chosen * n_rows)
    sweep = 15.0 * n_rows * n_background * ((d + 1) // 2) * d
    return d <= MAX_SPLIT_PLAYERS and split < sweep


def by_quadrature(
    inside: np.ndarray, outside: np.ndarray, weights: np.ndarray, players: Sequence[int], semivalue: Semivalue
) -> np.ndarray:
    """Sweep over rows and background, for all players at once."""
    from exactshap.solvers._gp_kernels import fill_functionals

    d, n_terms, n_rows = inside.shape
    nodes, node_weights = (np.array(part) for part in semivalue.rule(degree=max(0, d - 1)))
    background = np.ascontiguousarray(outside.transpose(2, 0, 1))
    result = np.empty((len(players), n_terms, n_rows))
    step = max(1, BLOCK_VALUES // (d * n_terms))
    for start in range(0, n_rows, step):
        rows = np.ascontiguousarray(inside[:, :, start : start + step].transpose(2, 0, 1))
        out = np.zeros(rows.shape)
        fill_functionals(rows, background, weights, nodes, node_weights, out)
        result[:, :, start : start + step] = out[:, list(players)].transpose(1, 2, 0)
    return result


def by_splitting(
    inside: np.ndarray, outside: np.ndarray, weights: np.ndarray, players: Sequence[int], semivalue: Semivalue
) -> np.ndarray:
    """Enumerate both halves of the players, term by term."""
    d, n_terms, n_rows = inside.shape
    half = d // 2
    coefficients = _coefficients(d, players, semivalue).reshape(len(players), 2 ** (d - half), 2**half)
    result = np.empty((len(players), n_terms, n_rows))
    for i in range(n_terms):
        mean = (_absent(outside[half:, i]) * weights) @ _absent(outside[:half, i]).T
        first, second = _present(inside[:half, i]), _present(inside[half:, i])
        for row, coefficient in enumerate(coefficients):
            result[row, i] = (((coefficient * mean).T @ second) * first).sum(axis=0)
    return result


def _coefficients(d: int, players: Sequence[int], semivalue: Semivalue) -> np.ndarray:
    """Return the weight of v(S) in the value of each player, (n_chosen, 2^d); bit j of the column number is player j."""
    codes = np.arange(2**d)
    sizes = np.zeros(2**d, int)
    for j in range(d):
        sizes += codes >> j & 1
    p = semivalue.weights(d)
    result = np.empty((len(players), 2**d))
    for row, player in enumerate(players):
        member = (codes >> player & 1).astype(bool)
        result[row] = np.where(member, p[np.maximum(sizes - 1, 0)], -p[np.minimum(sizes, d - 1)])
    return result


def _present(factors: np.ndarray) -> np.ndarray:
    """Return the products over the members of every coalition of (n_players, n) factors, (2^n_players, n)."""
    table = np.ones((1, factors.shape[1]))
    for factor in factors:
        table = np.concatenate([table, table * factor])
    return table


def _absent(factors: np.ndarray) -> np.ndarray:
    """Return the products over the players outside every coalition, (2^n_players, n)."""
    table = np.ones((1, factors.shape[1]))
    for factor in factors:
        table = np.concatenate([table * factor, table])
    return table

"""Pairwise statistics by their definitions, coalition by coalition: the reference implementation of exactshap.decompose."""

import numpy as np

from exactshap.games import OracleGame
from exactshap.solvers import solve

KERNELS = {
    "rbf": lambda u, sigma: np.exp(-(u**2) / (2 * sigma**2)),
    "laplacian": lambda u, sigma: np.exp(-np.abs(u) / sigma),
    "cauchy": lambda u, sigma: 1 / (1 + u**2 / sigma**2),
    "categorical": lambda u, sigma: (u == 0) * 1.0,
}


def matrices(columns, kernels, sigmas):
    """Kernel matrix of each column: (n_columns, n, n)."""
    return np.stack([KERNELS[k](c[:, None] - c[None, :], s) for c, k, s in zip(columns.T, kernels, sigmas, strict=True)])


def mmd(K, n, estimator="unbiased"):
    """Squared MMD of the first n rows and the rest from the kernel matrix, by the definition."""
    pp, qq, pq = K[:n, :n], K[n:, n:], K[:n, n:]
    m = len(K) - n
    if estimator == "biased":
        return pp.mean() + qq.mean() - 2 * pq.mean()
    return (pp.sum() - np.trace(pp)) / (n * (n - 1)) + (qq.sum() - np.trace(qq)) / (m * (m - 1)) - 2 * pq.mean()


def hsic(K, L, estimator="biased"):
    """HSIC from two kernel matrices, by the definition."""
    n = len(K)
    if estimator == "biased":
        H = np.eye(n) - 1 / n
        return np.trace(K @ H @ L @ H) / (n - 1) ** 2
    K, L, one = K - np.diag(np.diag(K)), L - np.diag(np.diag(L)), np.ones(n)
    middle = (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2)) - 2 * (one @ K @ L @ one) / (n - 2)
    return (np.trace(K @ L) + middle) / (n * (n - 3))


def values(function, players, index="shapley", order=1):
    """Values of all sets for the game S -> function(product of the players' matrices in S), by visiting all coalitions."""

    def game(masks):
        return np.array([function(np.prod(players[mask], axis=0)) for mask in masks])

    return solve(OracleGame(game, len(players)), index, order, method="enumeration").values


def joint_values(function, first, second, index="shapley"):
    """The same for a game over the players of both sides."""
    d = len(first)

    def game(masks):
        return np.array([function(np.prod(first[m[:d]], axis=0), np.prod(second[m[d:]], axis=0)) for m in masks])

    return solve(OracleGame(game, d + len(second)), index, method="enumeration").values


def radial_values(function, profile, columns, sigmas, index="shapley", order=1):
    """Values of all sets for the game S -> function(profile of the squared distance in the columns of S)."""
    squares = ((columns[:, None, :] - columns[None, :, :]) / sigmas) ** 2

    def game(masks):
        return np.array([function(profile(squares[:, :, mask].sum(axis=2))) for mask in masks])

    return solve(OracleGame(game, columns.shape[1]), index, order, method="enumeration").values

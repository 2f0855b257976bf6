"""Small samples placed one by one: each pair where it lowers the variance of the Shapley values most."""

from __future__ import annotations

import numpy as np

from exactshap.semivalues import find
from exactshap.solvers._hypercube import covariance, functionals

__all__ = ["place_pairs"]

WHITE = 1e-3


def place_pairs(candidates: np.ndarray, n_pairs: int) -> np.ndarray:
    r"""Return the rows of ``candidates`` (n_candidates, n_players) to call, greedily, before anything is known of the game.

    Under the process with one relevance 2/d for all players, calling x lowers the summed variance of the Shapley values by

    .. math:: \sum_i \mathrm{cov}(\phi_i, g(x))^2 / \mathrm{var}(g(x)),

    given what was called before; the largest is called next. Cost O(n_pairs^2 n_candidates). Nothing here depends on the
    game, so that one design serves every row.
    """
    n_players = candidates.shape[1]
    points = 2.0 * np.vstack([np.ones((1, n_players)), candidates]) - 1.0  # row 0: the full and the empty coalition
    theta = np.full(n_players, 2.0 / n_players)
    nodes, weights = find("shapley").rule(degree=min(n_players - 1, 31))
    players = np.arange(n_players)[:, None]
    gain = functionals(points, np.tanh(theta / 2.0), players, nodes, weights)
    variance = np.full(len(points), covariance(points[:1], points[:1], theta, -1)[0, 0] + WHITE)
    n_steps = min(n_pairs, len(candidates)) + 1
    explained, chosen = np.empty((n_steps, len(points))), np.zeros(n_steps, int)
    open_ = np.ones(len(points), bool)
    for step in range(n_steps):
        score = np.where(open_, (gain**2).sum(axis=1) / variance, -1.0)
        row = int(score.argmax()) if step else 0
        chosen[step], open_[row] = row, False
        column = covariance(points, points[row : row + 1], theta, -1)[:, 0]
        column[row] += WHITE
        column -= explained[:step].T @ explained[:step, row]
        column /= np.sqrt(variance[row])
        explained[step] = column
        gain = gain - np.outer(column, gain[row] / np.sqrt(variance[row]))
        variance = np.maximum(variance - column**2, 1e-12)
    return chosen[1:] - 1

"""Small samples placed one by one: each pair where it lowers the variance of the Shapley values most."""

from __future__ import annotations

import numpy as np

from exactshap.semivalues import find
from exactshap.solvers.sampled.process import functionals, white_functionals


def place_pairs(
    known: np.ndarray,
    candidates: np.ndarray,
    n_pairs: int,
    theta: np.ndarray,
    white: float,
    sign: int = -1,
    of_each_size: int = 0,
) -> np.ndarray:
    r"""Return the rows of ``candidates`` (n_candidates, n_players) to call next, greedily.

    Under the process with relevances ``theta``, calling x lowers the summed variance of the Shapley values by

    .. math:: \sum_i \mathrm{cov}(\phi_i, g(x))^2 / \mathrm{var}(g(x)),

    where g holds the white part of pairs too, given the pairs (``sign`` -1) or coalitions (0) ``known`` (n_known, n_players) and
    those placed before; the largest is called next. The last places are kept for sizes (of the smaller of two complements) that have
    less than ``of_each_size`` pairs by then, where there are as many candidates. Cost O((n_known + n_pairs)^2 n_candidates).
    """
    n_known = len(known)
    points = 2.0 * np.concatenate([known, candidates]) - 1.0
    gain = _value_covariances(points, theta, white, sign)
    variance = np.full(len(points), _covariances_with(points[:1], 0, theta, sign)[0] + white)
    n_steps = n_known + min(n_pairs, len(candidates))
    explained, chosen = np.empty((n_steps, len(points))), np.arange(n_steps)
    work = np.empty_like(gain)  # with many players these passes wait for memory, the more so for fresh memory
    is_open = np.arange(len(points)) >= n_known
    sizes = _smaller_sides(np.concatenate([known, candidates]))
    owed = np.minimum(np.bincount(sizes[n_known:]), of_each_size)  # pairs of each size that are to be placed yet
    for step in range(n_steps):
        if step >= n_known:
            reductions = np.square(gain, out=work).sum(axis=1) / variance
            free = is_open & (owed[sizes] > 0) if owed.sum() >= n_steps - step else is_open
            chosen[step] = np.where(free, reductions, -1.0).argmax()
            owed[sizes[chosen[step]]] -= owed[sizes[chosen[step]]] > 0
        row = chosen[step]
        is_open[row] = False
        column = _covariances_with(points, row, theta, sign)
        column[row] += white
        column -= explained[:step].T @ explained[:step, row]
        column /= np.sqrt(variance[row])
        explained[step] = column
        gain -= np.outer(column, gain[row] / np.sqrt(variance[row]), out=work)
        variance = np.maximum(variance - column**2, 1e-12)
    return chosen[n_known:] - n_known


def _smaller_sides(masks: np.ndarray) -> np.ndarray:
    """Return the size (n_masks,) of each coalition or, if that is smaller, of its complement."""
    inside = masks.sum(axis=1)
    return np.asarray(np.minimum(inside, masks.shape[1] - inside))


def _covariances_with(points: np.ndarray, row: int, theta: np.ndarray, sign: int) -> np.ndarray:
    """Return the covariances (n_points,) with one row, by two exponentials.

    Coalitions that tell as much are many where relevances are equal, and rounding decides between them: a formula that rounds otherwise,
    as that of ``covariance`` does, would place others.
    """
    gram, total = ((points * theta) @ points[row : row + 1].T)[:, 0], theta.sum()
    column = np.exp(0.5 * (gram - total))
    if sign:
        column = (column + sign * np.exp(-0.5 * (gram + total))) * 0.5
    return column + 1.0 if sign >= 0 else column


def _value_covariances(points: np.ndarray, theta: np.ndarray, white: float, sign: int) -> np.ndarray:
    """Return the covariances (n_points, n_players) of pairs (``sign`` -1) or coalitions (0) with the Shapley values."""
    n_players = points.shape[1]
    nodes, weights = find("shapley").rule(degree=min(n_players - 1, 31))
    players = np.arange(n_players)[:, None]
    covariances = functionals(points, np.tanh(theta / 2.0), players, nodes, weights)
    if sign:  # single coalitions are too few to learn a white part: it would put all of them on the border
        exact = find("shapley").weights(n_players)
        covariances += white * white_functionals(points, players, exact, sign)
    return covariances

"""Relevances of players: the most probable hyperparameters of a process over coalitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["JITTER", "Half", "covariance", "find_relevances"]

JITTER = 1e-10  # relative to the kernel's variance of 1: far below any white part worth having
RELEVANCE = (-12.0, 3.0)  # bounds of log theta: from invisible to rho = 1 - 4e-9
WHITE = (-18.0, 2.0)  # bounds of log tau
# weak priors, which decide when there are few rows: log theta around its mean, that mean around log(1 / (2 d)), log tau
SPREAD, LEVEL_SPREAD, WHITE_SPREAD, TYPICAL_WHITE = 1.0, 1.0, 3.0, 3e-3
COARSE_ROWS = 80  # rows of the first search, which only has to come near
FINE_ITERATIONS = 6  # of the search on all rows, which starts near
MAX_SCALED = 128  # players up to which a dense inverse Hessian is cheap
FLAT = 1e-4  # relative change of the evidence below which a search stops: no value feels the difference


@dataclass(frozen=True, eq=False)
class Half:
    """What is regressed: ``sign`` -1 is (v(S) - v(D - S)) / 2, +1 the same with a plus, 0 the game itself at single coalitions."""

    sign: int
    target: np.ndarray  # (n_pairs, n_outputs), scaled
    scale: np.ndarray  # (n_outputs,)
    offset: np.ndarray  # (n_outputs,), subtracted from the even half

    @classmethod
    def of(cls, inside: np.ndarray, outside: np.ndarray | None, sign: int) -> Half:
        target = inside if outside is None else (inside + sign * outside) / 2.0
        offset = target.mean(axis=0) if sign >= 0 else np.zeros(target.shape[1])
        target = target - offset
        scale = np.sqrt(np.mean(target**2, axis=0))
        scale = np.where(scale > 0, scale, 1.0)
        return cls(sign, target / scale, scale, offset)


def covariance(points: np.ndarray, others: np.ndarray, theta: np.ndarray, sign: int) -> np.ndarray:
    """Return (k(x, x') + sign k(x, -x')) / 2 for rows of -1 and 1, or k itself; all but the odd half get a free constant."""
    total = theta.sum()
    gram = (points * theta) @ others.T
    matrix = np.exp(0.5 * (gram - total))
    if sign:
        mirrored = np.exp(-0.5 * (gram + total), out=gram)
        mirrored *= sign
        matrix += mirrored
        matrix *= 0.5
    if sign >= 0:
        matrix += 1.0
    return matrix


def _half_evidence(points: np.ndarray, half: Half, theta: np.ndarray, white: float) -> tuple[float, np.ndarray, float]:
    r"""Return the negative log marginal likelihood, its gradient in log theta and in log tau; scales profiled out.

    .. math:: \tfrac12 \sum_k \bigl(m \log \hat\sigma_k^2 + \log |K|\bigr), \qquad \hat\sigma_k^2 = y_k^\top K^{-1} y_k / m
    """
    from scipy.linalg import lapack

    from exactshap.solvers._relevance_kernels import fill_lower, fill_weighted

    m, n_outputs = half.target.shape
    same, mirrored = _two_sides(points, theta, half.sign)
    matrix = np.empty((m, m))
    fill_lower(same, mirrored, float(half.sign >= 0), white + JITTER, matrix)
    factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)  # the transpose is in LAPACK's order
    if failed:
        return 1e25, np.zeros(points.shape[1]), 0.0
    log_determinant = 2.0 * np.log(np.diag(factor)).sum()
    dual = lapack.dpotrs(factor, half.target, lower=0)[0]
    inverse = lapack.dpotri(factor, lower=0, overwrite_c=1)[0].T
    variance = np.maximum((half.target * dual).sum(axis=0) / m, 1e-300)
    value = 0.5 * (m * np.log(variance).sum() + n_outputs * log_determinant)
    weighted = np.zeros((m, m))
    dual = np.ascontiguousarray(dual)
    total, trace = fill_weighted(inverse, dual, dual / variance, same, mirrored, weighted)
    sums = np.einsum("aj,aj->j", points, weighted @ points)
    return float(value), 0.5 * theta * (sums - total), trace * white


def _two_sides(points: np.ndarray, theta: np.ndarray, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Return k(x, x') and sign k(x, -x'), halved where both count."""
    total, share = theta.sum(), 0.5 if sign else 1.0
    same = (points * (0.5 * theta)) @ points.T
    if total < 600.0:  # k(x, -x') = exp(-total) / k(x, x'): nothing underflows
        same -= 0.5 * total - np.log(share)
        np.exp(same, out=same)
        return same, (sign * share**2 * np.exp(-total)) / same
    return share * np.exp(same - 0.5 * total), sign * share * np.exp(-same - 0.5 * total)


def _evidence(logs: np.ndarray, points: np.ndarray, halves: list[Half]) -> tuple[float, np.ndarray]:
    theta, white = np.exp(logs[:-1]), float(np.exp(logs[-1]))
    value, gradient = 0.0, np.zeros(len(logs))
    for half in halves:
        part, slope, white_slope = _half_evidence(points, half, theta, white)
        value += part
        gradient[:-1] += slope
        gradient[-1] += white_slope
    return value, gradient


def _penalised(logs: np.ndarray, points: np.ndarray, halves: list[Half]) -> tuple[float, np.ndarray]:
    """Return the negative log posterior of log theta and log tau, and its gradient."""
    value, gradient = _evidence(logs, points, halves)
    d = len(logs) - 1
    mean = logs[:-1].mean()
    deviation = (logs[:-1] - mean) / SPREAD
    level = (mean - np.log(0.5 / d)) / LEVEL_SPREAD
    white = (logs[-1] - np.log(TYPICAL_WHITE)) / WHITE_SPREAD
    gradient[:-1] += deviation / SPREAD + level / LEVEL_SPREAD / d
    gradient[-1] += white / WHITE_SPREAD
    return value + 0.5 * float(deviation @ deviation + level**2 + white**2), gradient


def find_relevances(points: np.ndarray, halves: list[Half], max_iterations: int) -> np.ndarray:
    """Return log theta (d,) and log tau, the posterior's maximum.

    From coarse to fine: few rows start from one relevance for all players, many rows from the relevances that some of them give,
    whose curvature then makes the search on all rows short.
    """
    start = np.log(np.append(np.full(points.shape[1], 0.5 / points.shape[1]), TYPICAL_WHITE))
    if len(points) <= 1.5 * COARSE_ROWS:
        return _separate(_shared(start, points, halves), points, halves, max_iterations).x
    coarse = _separate(start, *_some(points, halves, COARSE_ROWS), max_iterations)
    scale = _widths(coarse)
    return _separate(coarse.x, points, halves, FINE_ITERATIONS, scale).x * scale


def _shared(start: np.ndarray, points: np.ndarray, halves: list[Half]) -> np.ndarray:
    """Return the maximum with one relevance for all players."""
    d = len(start) - 1

    def function(logs: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _penalised(np.append(np.full(d, logs[0]), logs[1]), points, halves)
        return value, np.array([gradient[:-1].sum(), gradient[-1]])

    level, white = _search(function, start[-2:], [RELEVANCE, WHITE], 15).x
    return np.append(np.full(d, level), white)


def _separate(start: np.ndarray, points: np.ndarray, halves: list[Half], steps: int, scale: Any = 1.0) -> Any:
    """Search the maximum with one relevance for each player, in units of ``scale``."""
    low, high = np.array([RELEVANCE] * (len(start) - 1) + [WHITE]).T

    def function(logs: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _penalised(logs * scale, points, halves)
        return value, gradient * scale

    return _search(function, start / scale, np.stack([low / scale, high / scale], axis=1), steps)


def _widths(found: Any) -> np.ndarray:
    """Return the square roots of the diagonal of the inverse Hessian that a search has built up."""
    if len(found.x) > MAX_SCALED:
        return np.ones(len(found.x))
    return np.sqrt(np.maximum(np.diag(found.hess_inv.todense()), 1e-4))


def _some(points: np.ndarray, halves: list[Half], n_rows: int) -> tuple[np.ndarray, list[Half]]:
    """Return at most ``n_rows`` rows, evenly spaced, the first (the full coalition) among them."""
    rows = np.unique(np.linspace(0, len(points) - 1, min(n_rows, len(points))).round().astype(int))
    return points[rows], [replace(half, target=half.target[rows]) for half in halves]


def _search(function: Callable[..., Any], start: np.ndarray, bounds: Any, steps: int) -> Any:
    from scipy.optimize import minimize

    options = {"maxiter": steps, "ftol": FLAT, "gtol": 1e-3}
    return minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

"""Relevances of players: the most probable hyperparameters of a process over coalitions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from exactshap.solvers._descent import Search, search

__all__ = ["JITTER", "Half", "covariance", "factorise", "find_relevances", "invert_triangle", "two_sides"]

JITTER = 1e-10  # relative to the kernel's variance of 1: far below any white part worth having
RELEVANCE = (-12.0, 3.0)  # bounds of log theta: from invisible to rho = 1 - 4e-9
WHITE = (-18.0, 2.0)  # bounds of log tau
# weak priors, which decide when there are few rows: log theta around its mean, that mean around log(1 / (2 d)), log tau
SPREAD, LEVEL_SPREAD, WHITE_SPREAD, TYPICAL_WHITE = 1.0, 1.0, 3.0, 3e-3
COARSE_ROWS = 80  # rows of the first search, which only has to come near
GROWTH = 1.55  # rows of each search over those of the one before
SMALL = 64  # rows of a triangle that is inverted at once
ABOVE = np.tri(SMALL, dtype=bool).T
ROUGH, NEAR = 0.5, 0.05  # nats of the posterior that a next step must promise: no value feels the difference


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
        peak = np.abs(target).max(axis=0, initial=0.0)
        peak = np.where(peak > 0, peak, 1.0)
        scale = peak * np.sqrt(np.mean((target / peak) ** 2, axis=0))  # squares of the numbers themselves might overflow
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


def two_sides(
    points: np.ndarray, theta: np.ndarray, sign: int, work: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return k(x, x') and sign k(x, -x'), halved where both count, in ``work`` (2, n, n) if there is any."""
    same, mirrored = np.empty((2, len(points), len(points))) if work is None else work
    total, share = theta.sum(), 0.5 if sign else 1.0
    np.matmul(points * (0.5 * theta), points.T, out=same)
    if total < 600.0:  # k(x, -x') = exp(-total) / k(x, x'): nothing underflows
        same -= 0.5 * total - np.log(share)
        np.exp(same, out=same)
        np.divide(sign * share**2 * np.exp(-total), same, out=mirrored)
    else:
        np.exp(-same - 0.5 * total, out=mirrored)
        mirrored *= sign * share
        np.exp(same - 0.5 * total, out=same)
        same *= share
    return same, mirrored


def factorise(same: np.ndarray, mirrored: np.ndarray, sign: int, white: float, out: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the upper Cholesky factor U, K = U^T U, of a covariance from its two sides, in ``out``; below its diagonal is no zero."""
    from scipy.linalg import lapack

    from exactshap.solvers._relevance_kernels import fill_lower

    fill_lower(same, mirrored, float(sign >= 0), white + JITTER, out)
    factor, failed = lapack.dpotrf(out.T, lower=0, clean=0, overwrite_a=1)  # the transpose is in LAPACK's order
    return factor, bool(failed)


def invert_triangle(upper: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Set the upper triangle of ``out``, zero below it, to the inverse of ``upper``; halves first, so that most are matrix products."""
    from scipy.linalg import lapack

    n = len(upper)
    if n <= SMALL:
        np.copyto(out, lapack.dtrtri(upper)[0], where=ABOVE[:n, :n])
        return out
    first, last = slice(0, n // 2), slice(n // 2, n)
    invert_triangle(upper[first, first], out[first, first])
    invert_triangle(upper[last, last], out[last, last])
    np.matmul(out[first, first], upper[first, last] @ out[last, last], out=out[first, last])
    out[first, last] *= -1.0
    return out


def _half_evidence(
    points: np.ndarray, half: Half, theta: np.ndarray, white: float, work: np.ndarray
) -> tuple[float, np.ndarray, float]:
    r"""Return the negative log marginal likelihood, its gradient in log theta and in log tau; scales profiled out.

    .. math:: \tfrac12 \sum_k \bigl(m \log \hat\sigma_k^2 + \log |K|\bigr), \qquad \hat\sigma_k^2 = y_k^\top K^{-1} y_k / m
    """
    from scipy.linalg import lapack

    from exactshap.solvers._relevance_kernels import fill_weighted

    m, n_outputs = half.target.shape
    same, mirrored = two_sides(points, theta, half.sign, work[:2])
    factor, failed = factorise(same, mirrored, half.sign, white, work[2])
    if failed:
        return 1e25, np.zeros(points.shape[1]), 0.0
    log_determinant = 2.0 * np.log(np.diag(factor)).sum()
    dual = np.ascontiguousarray(lapack.dpotrs(factor, half.target, lower=0)[0])
    inverse = lapack.dlauum(invert_triangle(factor, work[3].T), lower=0, overwrite_c=1)[0].T
    variance = np.maximum((half.target * dual).sum(axis=0) / m, 1e-300)
    value = 0.5 * (m * np.log(variance).sum() + n_outputs * log_determinant)
    total, trace = fill_weighted(inverse, dual, dual / variance, same, mirrored)
    sums = np.einsum("aj,aj->j", points, same @ points)
    return float(value), 0.5 * theta * (sums - total), trace * white


def _evidence(
    logs: np.ndarray, points: np.ndarray, halves: list[Half], work: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    theta, white = np.exp(logs[:-1]), float(np.exp(logs[-1]))
    work = _workspace(points) if work is None else work
    value, gradient = 0.0, np.zeros(len(logs))
    for half in halves:
        part, slope, white_slope = _half_evidence(points, half, theta, white, work)
        value += part
        gradient[:-1] += slope
        gradient[-1] += white_slope
    return value, gradient


def _workspace(points: np.ndarray) -> np.ndarray:
    """Return room for one evaluation of the evidence: a search that reuses it spares half of the time of small ones."""
    return np.zeros((4, len(points), len(points)))


def _penalised(
    logs: np.ndarray, points: np.ndarray, halves: list[Half], work: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Return the negative log posterior of log theta and log tau, and its gradient."""
    value, gradient = _evidence(logs, points, halves, work)
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

    From coarse to fine: few rows start from one relevance for all players, more rows from the relevances and the curvature that some
    of them give, which makes the search on all rows short.
    """
    here = Search.at(np.log(np.append(np.full(points.shape[1], 0.5 / points.shape[1]), TYPICAL_WHITE)))
    sizes = _sizes(len(points))
    if len(sizes) == 1:
        here = _shared(here, points, halves)
    for size, next_size in zip(sizes, [*sizes[1:], None], strict=True):
        here = _separate(here, *_some(points, halves, size), max_iterations, NEAR if next_size is None else ROUGH)
        if next_size is not None:
            here = Search(here.point, here.steps, here.turns * (next_size / size))
    return here.point


def _sizes(n_rows: int) -> list[int]:
    """Return the numbers of rows of ever finer searches."""
    sizes = [n_rows]
    while sizes[0] > GROWTH * COARSE_ROWS:
        sizes.insert(0, max(COARSE_ROWS, round(sizes[0] / GROWTH)))
    return sizes


def _shared(start: Search, points: np.ndarray, halves: list[Half]) -> Search:
    """Return the maximum with one relevance for all players."""
    d, work = len(start.point) - 1, _workspace(points)

    def function(logs: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _penalised(np.append(np.full(d, logs[0]), logs[1]), points, halves, work)
        return value, np.array([gradient[:-1].sum(), gradient[-1]])

    level, white = search(function, Search.at(start.point[-2:]), np.array([RELEVANCE, WHITE]).T, 15, NEAR).point
    return Search.at(np.append(np.full(d, level), white))


def _separate(start: Search, points: np.ndarray, halves: list[Half], max_steps: int, enough: float) -> Search:
    """Search the maximum with one relevance for each player."""
    bounds, work = np.array([RELEVANCE] * points.shape[1] + [WHITE]).T, _workspace(points)
    return search(lambda logs: _penalised(logs, points, halves, work), start, bounds, max_steps, enough)


def _some(points: np.ndarray, halves: list[Half], n_rows: int) -> tuple[np.ndarray, list[Half]]:
    """Return at most ``n_rows`` rows, evenly spaced, the first (the full coalition) among them."""
    rows = np.unique(np.linspace(0, len(points) - 1, min(n_rows, len(points))).round().astype(int))
    return points[rows], [replace(half, target=half.target[rows]) for half in halves]

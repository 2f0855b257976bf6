"""Find the relevances of players, the most probable hyperparameters of a process over coalitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exactshap.solvers.sampled.process._evidence import Half, Posterior, Slopes, typical_logs

# Bounds of log theta: from invisible to rho = 1 - 4e-9
RELEVANCE = (-12.0, 3.0)
# Bounds of log tau
WHITE = (-18.0, 2.0)
# Rows of the first, coarse search
COARSE_ROWS = 80
# Rows of each search over those of the one before
GROWTH = 1.7
# Nats of the posterior that a step must promise to be evaluated: in one of several searches, and in the only one, of few rows
ENOUGH, ENOUGH_ALONE = 4.0, 0.5
# tau at the start of searches that are given one relevance for all players
LEVEL_WHITE = 1.5e-3
# Longest step in any coordinate
LONGEST = 2.0
# Fraction of its slope that a step must gain (Armijo)
SUFFICIENT = 1e-4
# Trials of a step, each shorter than the one before
MAX_TRIALS = 12
# Newton steps of a search, on few rows and on more than so many: further steps there follow what games that jump show by chance (values of
# 82 cells of 14 players and more have 0.97 +- 0.02 of the squared errors of 25 steps, and cover more)
MAX_STEPS, LARGE, MAX_STEPS_IF_LARGE = 25, 400, 5
# Least fraction of the assumed curvature along a step (Powell)
CONVEX = 0.2

Function = Callable[[np.ndarray], tuple[float, Slopes]]


def find_relevances(points: np.ndarray, halves: list[Half], start: np.ndarray | None = None) -> np.ndarray:
    """Return log theta (d,) and log tau, the posterior's maximum, or near it if there are many rows.

    From coarse to fine: few rows start from equal relevances, more rows from those that some of them give, which makes the search on all
    rows short. ``start`` is the result of fewer rows, from which all rows continue.
    """
    bounds = np.array([RELEVANCE] * points.shape[1] + [WHITE]).T
    sizes = _sizes(len(points)) if start is None else [len(points)]
    enough = ENOUGH_ALONE if start is None and len(sizes) == 1 else ENOUGH
    here = typical_logs(points.shape[1]) if start is None else start
    for size in sizes:
        rows = evenly_spaced(len(points), size)  # the full coalition is always among them
        posterior = Posterior.of(points[rows], [half.rows(rows) for half in halves])
        most = MAX_STEPS_IF_LARGE if size > LARGE else MAX_STEPS
        here = search(posterior, here, bounds, most, enough)
    return here


def level_start(n_players: int, total: float) -> np.ndarray:
    """Return the start of a search for a given sum of relevances: the same theta for all players."""
    return np.log(np.append(np.full(n_players, total / n_players), LEVEL_WHITE))


def _sizes(n_rows: int) -> list[int]:
    """Return the numbers of rows of finer and finer searches."""
    sizes = [n_rows]
    while sizes[0] > 1.5 * COARSE_ROWS:
        sizes.insert(0, max(COARSE_ROWS, round(sizes[0] / GROWTH)))
    return sizes


def evenly_spaced(n_rows: int, wanted: int) -> np.ndarray:
    """Return at most ``wanted`` of the rows 0..n_rows - 1, the first and the last among them."""
    n = min(n_rows, wanted)
    return np.rint(np.arange(n) * ((n_rows - 1) / max(n - 1, 1))).astype(int)


def search(function: Function, start: np.ndarray, bounds: np.ndarray, max_steps: int, enough: float) -> np.ndarray:
    """Minimise ``function(x) -> (value, slopes)`` within ``bounds`` (2, n); return the point (n,).

    ``slopes() -> (gradient, curvature)``, (n,) and (n, n), is called at accepted points only, before the next is tried. Newton steps
    with backtracking; the curvature is corrected by all steps so far. A step that promises to gain less than ``enough`` is the
    last one and is not evaluated. Coordinates at a bound that the gradient pushes against rest.
    """
    point = _within(start, bounds)
    value, slopes = function(point)
    gradient, curvature = slopes()
    steps, turns = np.empty((2, max_steps, len(point)))
    for n_steps in range(max_steps):
        free = ~((point <= bounds[0]) & (gradient > 0) | (point >= bounds[1]) & (gradient < 0))
        direction = _newton_step(corrected_curvature(curvature, steps[:n_steps], turns[:n_steps]), gradient, free)
        # A Newton step gains half of its slope in the quadratic model
        if -0.5 * (direction @ gradient) < enough:
            return _within(point + direction, bounds)
        accepted = _walk(function, point, value, gradient, direction, bounds)
        if accepted is None:
            return point
        new_point, value, slopes = accepted
        new_gradient, curvature = slopes()
        steps[n_steps], turns[n_steps] = new_point - point, new_gradient - gradient
        point, gradient = new_point, new_gradient
    return point


def corrected_curvature(curvature: np.ndarray, steps: np.ndarray, turns: np.ndarray) -> np.ndarray:
    r"""Return the curvature B (n, n) corrected by each step s and turn y of the gradient on it, both (n_steps, n).

    Damped BFGS (Nocedal & Wright 2006, 18.2) with the largest t in [0, 1] that leaves :math:`s^\top r \ge c\, s^\top B s`: B stays positive
    definite.

    .. math:: B \leftarrow B - \frac{B s s^\top B}{s^\top B s} + \frac{r r^\top}{s^\top r}, \qquad r = t y + (1 - t) B s
    """
    for step, turn in zip(steps, turns, strict=True):
        old = curvature @ step
        supposed, seen = step @ old, step @ turn
        t = 1.0 if seen >= CONVEX * supposed else (1.0 - CONVEX) * supposed / (supposed - seen)
        mixed = t * turn + (1.0 - t) * old
        curvature = curvature - np.outer(old, old) / supposed + np.outer(mixed, mixed) / (step @ mixed)
    return curvature


def _within(point: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(point, bounds[0]), bounds[1])


def _newton_step(curvature: np.ndarray, gradient: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return the Newton step of the free coordinates, shortened if it is too long for any of them."""
    from scipy.linalg import lapack

    if not free.all():
        # Fixed coordinates have no slope, and no curvature in common with free ones
        curvature = np.where(free[:, None] & free, curvature, np.diag(curvature.diagonal()))
        gradient = np.where(free, gradient, 0.0)
    _, step, failed = lapack.dposv(curvature, gradient)
    if failed:  # rounding has made it indefinite
        step = gradient / curvature.diagonal()
    return step * -min(1.0, LONGEST / max(np.abs(step).max(), 1e-300))


def _walk(
    function: Function, point: np.ndarray, value: float, gradient: np.ndarray, direction: np.ndarray, bounds: np.ndarray
) -> tuple[np.ndarray, float, Slopes] | None:
    """Return the first of ever shorter steps that gains enough, with its value and slopes, or None."""
    length = 1.0
    for _ in range(MAX_TRIALS):
        new_point = _within(point + length * direction, bounds)
        slope = float(gradient @ (new_point - point))
        if not slope < 0.0:  # bounds turned the step uphill
            return None
        new_value, slopes = function(new_point)
        if new_value <= value + SUFFICIENT * slope:
            return new_point, new_value, slopes
        # The minimum of the parabola through the value, its slope and the new value, kept between a tenth and a half
        length *= min(max(-slope / (2.0 * (new_value - value - slope)), 0.1), 0.5)
    return None

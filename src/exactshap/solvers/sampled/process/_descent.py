"""A minimiser within bounds for functions that know roughly how they curve."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exactshap.solvers.sampled.process._relevance_kernels import correct_curvature

LONGEST = 2.0  # of a step, in any coordinate
SUFFICIENT = 1e-4  # share of its slope that a step must gain (Armijo)
MAX_TRIALS = 12
CONVEX = 0.2  # share of the supposed curvature that a step must at least have met (Powell)

Slopes = Callable[[], tuple[np.ndarray, np.ndarray]]
Function = Callable[[np.ndarray], tuple[float, Slopes]]


def search(function: Function, start: np.ndarray, bounds: np.ndarray, max_steps: int, enough: float) -> np.ndarray:
    """Minimise ``function(x) -> (value, slopes)`` within ``bounds`` (2, n); return the point (n,).

    ``slopes() -> (gradient, curvature)``, (n,) and (n, n), is asked for at accepted points only, before the next is tried. Newton steps
    with backtracking, the curvature corrected by what all steps so far met. A step that promises to gain less than ``enough`` is the
    last one and is not evaluated. Coordinates at a bound that the gradient pushes against rest.
    """
    point = _within(start, bounds)
    value, slopes = function(point)
    gradient, curvature = slopes()
    steps, turns = np.empty((2, max_steps, len(point)))
    for n_steps in range(max_steps):
        free = ~((point <= bounds[0]) & (gradient > 0) | (point >= bounds[1]) & (gradient < 0))
        if n_steps:
            curvature = np.ascontiguousarray(curvature)
            correct_curvature(curvature, steps[:n_steps], turns[:n_steps], CONVEX)
        direction = _newton_step(curvature, gradient, free)
        if -0.5 * (direction @ gradient) < enough:
            return _within(point + direction, bounds)
        found = _walk(function, point, value, gradient, direction, bounds)
        if found is None:
            return point
        new_point, value, slopes = found
        new_gradient, curvature = slopes()
        steps[n_steps], turns[n_steps] = new_point - point, new_gradient - gradient
        point, gradient = new_point, new_gradient
    return point


def _within(point: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(point, bounds[0]), bounds[1])


def _newton_step(curvature: np.ndarray, gradient: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return the Newton step of the free coordinates, shortened if it is too long for any of them."""
    from scipy.linalg import lapack

    if not free.all():
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
        if not slope < 0.0:  # bounds have turned the step uphill
            return None
        new_value, slopes = function(new_point)
        if new_value <= value + SUFFICIENT * slope:
            return new_point, new_value, slopes
        length *= min(max(-slope / (2.0 * (new_value - value - slope)), 0.1), 0.5)
    return None

"""A minimiser within bounds that hands the curvature it met to the next search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Search", "search"]

MEMORY = 30  # steps that are remembered
SUFFICIENT = 1e-4  # share of its slope that a step must gain (Armijo)
MAX_TRIALS = 12

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Search:
    """Where a search is: its point (n,), its last ``steps`` (n_steps, n), and by how much the gradient turned on each of them."""

    point: np.ndarray
    steps: np.ndarray
    turns: np.ndarray

    @classmethod
    def at(cls, point: np.ndarray) -> Search:
        return cls(point, np.empty((0, len(point))), np.empty((0, len(point))))

    def moved(self, point: np.ndarray, turn: np.ndarray) -> Search:
        """Return the search at another point; steps without positive curvature are not remembered."""
        step = point - self.point
        if step @ turn <= 1e-10 * (turn @ turn):
            return Search(point, self.steps, self.turns)
        return Search(point, np.vstack([self.steps[1 - MEMORY :], step]), np.vstack([self.turns[1 - MEMORY :], turn]))


def search(function: Function, start: Search, bounds: np.ndarray, max_steps: int, enough: float) -> Search:
    """Minimise ``function(x) -> (value, gradient)`` within ``bounds`` (2, n), until a step promises to gain less than ``enough``.

    Limited-memory BFGS steps with backtracking (Nocedal & Wright 2006, Numerical Optimization, Algorithm 7.4); coordinates at a bound
    that the gradient pushes against rest. ``start`` may be another search's end, its turns scaled to the new function.
    """
    from exactshap.solvers._relevance_kernels import fill_descent

    now = Search(np.clip(start.point, *bounds), start.steps, start.turns)
    value, gradient = function(now.point)
    direction = np.empty_like(gradient)
    for _ in range(max_steps):
        free = np.where((now.point <= bounds[0]) & (gradient > 0) | (now.point >= bounds[1]) & (gradient < 0), 0.0, 1.0)
        fill_descent(now.steps, now.turns, free * gradient, direction)
        direction *= free
        if -0.5 * (direction @ gradient) < enough:
            break
        found = _walk(function, now.point, value, gradient, direction, bounds)
        if found is None:
            break
        point, value, new_gradient = found
        now = now.moved(point, new_gradient - gradient)
        gradient = new_gradient
    return now


def _walk(
    function: Function, point: np.ndarray, value: float, gradient: np.ndarray, direction: np.ndarray, bounds: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Return the first of ever shorter steps that gains enough, with its value and gradient, or None."""
    length = 1.0
    for _ in range(MAX_TRIALS):
        new_point = np.clip(point + length * direction, *bounds)
        slope = float(gradient @ (new_point - point))
        new_value, new_gradient = function(new_point)
        if new_value <= value + SUFFICIENT * slope:
            return new_point, new_value, new_gradient
        curvature = 2.0 * (new_value - value - slope)
        length *= min(max(-slope / curvature, 0.1), 0.5)
    return None

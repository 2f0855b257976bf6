"""By how much coalitions miss the model's own predictions: few numbers, whose every step of arrays would cost a call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exactshap.solvers import Solution

__all__ = ["FEW", "MaskCheck", "ends", "farthest", "largest", "magnitude_of", "sums", "together", "worst_within"]

FEW = 10  # numbers up to which they are looked at one by one


class MaskCheck(NamedTuple):
    """The largest difference of coalitions to the model's own predictions.

    Attributes
    ----------
    difference, tolerance : float
        Of the coalition that is worst for its tolerance.
    n_masks : int
        How many coalitions were compared.
    rows : tuple of int
        The explained rows that they belong to; none where other rows were checked before.
    """

    difference: float
    tolerance: float
    n_masks: int
    rows: tuple[int, ...] = ()

    @property
    def passed(self) -> bool:
        return self.difference <= self.tolerance

    def __or__(self, other: MaskCheck | None) -> MaskCheck:
        """Return both checks as one."""
        if other is None:
            return self
        return together([self, other])


def sums(residual: np.ndarray, tolerance: np.ndarray, rows: tuple[int, ...] = ()) -> MaskCheck:
    """Return the row whose sum misses the model's prediction most for its tolerance."""
    sizes = residual if residual.ndim == 1 else np.abs(residual).reshape(len(residual), -1).max(axis=1)
    if len(sizes) > FEW:
        with np.errstate(invalid="ignore"):
            over = np.abs(sizes) - tolerance
        place = int(np.argmax(over))  # what is no number is the largest
        if over[place] == over[place]:
            return MaskCheck(abs(float(sizes[place])), float(tolerance[place]), len(sizes), rows)
    both = zip(map(magnitude_of, sizes.tolist()), tolerance.tolist(), strict=True)  # of few each step of arrays costs a call
    found, limit = max(both, key=excess)
    return MaskCheck(found, limit, len(sizes), rows)


def together(checks: Sequence[MaskCheck]) -> MaskCheck:
    """Return some checks as one, of which the first knows most often whose rows it is of."""
    worst, n_masks, rows = checks[0], 0, checks[0].rows
    for check in checks:
        n_masks += check.n_masks
        if check.rows is not rows and check.rows:
            rows = tuple(sorted({*rows, *check.rows}))
        if excess(check) > excess(worst):
            worst = check
    return MaskCheck(worst.difference, worst.tolerance, n_masks, rows)


def worst_within(
    solution: Solution, rows: tuple[int, ...], before: MaskCheck, mean: float, rounding: float
) -> MaskCheck | None:
    """Return what :func:`together` makes of hybrids, earlier checks and v(empty), if all of it is within its tolerance.

    None where it may not be, and of several outputs. Nearly all explanations come by here, and few rows feel each step.
    """
    empty, allowed, compared = solution.empty, solution.tolerance, solution.comparison
    if empty.ndim > 1 or not len(empty) or allowed is None:
        return None
    found: list[tuple[float, float]] = []
    if compared is not None:
        found += zip(map(abs, compared.residual.tolist()), compared.tolerance.tolist(), strict=True)
    n_masks = len(found) + before.n_masks + 1
    found += (before.difference, before.tolerance), (farthest(empty, mean), largest(allowed) + rounding)
    difference, tolerance = max(found, key=excess)
    if not difference <= tolerance < math.inf:
        return None
    return MaskCheck(difference, tolerance, n_masks, rows)


def farthest(values: np.ndarray, mean: float) -> float:
    """Return the largest distance of some numbers to their mean."""
    lowest, highest = ends(values)
    return max(highest - mean, mean - lowest)


def ends(values: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest of some numbers: of a few, or of one for all rows, without an array's reductions."""
    values = values[:1] if values.strides == (0,) else values
    if len(values) > FEW:
        return float(np.minimum.reduce(values)), float(np.maximum.reduce(values))
    known = values.tolist()
    return min(known), max(known)


def largest(values: np.ndarray) -> float:
    """Return the largest of some numbers, in the same way."""
    return float(np.maximum.reduce(values)) if len(values) > FEW else max(values.tolist())


def excess(check: tuple) -> tuple[int, float, float]:
    """Return the place of a difference and its tolerance, the first two of a :class:`MaskCheck`, among others: the worst one is the largest.

    What is above its tolerance is worse than what overflows together with it, and that worse than what is within.
    """
    difference = check[0]
    over = difference - check[1]
    return (2, over, difference) if over > 0.0 else (0, over, difference) if over <= 0.0 else (1, 0.0, difference)


def magnitude_of(value: float) -> float:
    return abs(value) if value == value else math.inf

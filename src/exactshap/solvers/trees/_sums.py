"""Sum over background rows, with rounding that does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

# Background rows that are added one after the other: rounding grows with their number.
ROWS_IN_TURN = 4096


def whole_weights(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return w' and a unit with w = unit * w': ones and 1/n for equal weights, so that sums are exact counts.

    >>> whole_weights(np.array([0.25, 0.25, 0.25, 0.25]))
    (array([1., 1., 1., 1.]), 0.25)
    """
    return (np.ones(len(weights)), float(weights[0])) if np.all(weights == weights[0]) else (weights, 1.0)


def pairwise_sum(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Add arrays two by two: rounding grows with the logarithm of their number (Higham 2002, section 4.2).

    >>> pairwise_sum(np.array([value]) for value in (1.0, 2.0, 3.0))
    array([6.])
    """
    waiting: list[np.ndarray] = []
    for number, part in enumerate(parts, 1):
        # As in a binary counter: whenever two sums of equally many parts are there, they become one
        while number % 2 == 0:
            part, number = waiting.pop() + part, number // 2
        waiting.append(part)
    total = waiting.pop()
    while waiting:
        total = waiting.pop() + total
    return total


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted mean (n_outputs,) of ``values`` (n_rows, n_outputs); NumPy adds contiguous numbers pairwise."""
    whole, unit = whole_weights(weights)
    # Transposed, so that each output is contiguous: along the other axis NumPy adds one by one
    return unit * np.ascontiguousarray((whole[:, None] * values).T).sum(axis=1)

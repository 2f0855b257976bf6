"""Compare residuals with what rounding explains of them."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["all_within", "largest_of_rows", "within", "without_noise"]

# Rows: up to so many, plain Python is quicker than steps of arrays.
MAX_ROWS_ONE_BY_ONE = 10
# The residuals and tolerances of so many rows stay in a core's caches while they are compared.
CACHED_ROWS = 2**14


def largest_of_rows(residual: np.ndarray) -> np.ndarray:
    """Return the largest magnitude (n_rows,) of each row's residuals (n_rows[, n_outputs])."""
    size = np.abs(residual)
    # A maximum along contiguous rows takes a tenth of the time.
    return size if size.ndim == 1 else np.ascontiguousarray(size.T).max(axis=0, initial=0.0)


def within(residual: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """Return which rows have all residuals within the tolerance (n_rows,): an infinite one, where numbers overflow, allows nothing."""
    return (largest_of_rows(residual) <= tolerance) & (tolerance < np.inf)


def all_within(residual: np.ndarray, tolerance: np.ndarray) -> bool:
    """Return whether :func:`within` holds for all rows."""
    n_rows = len(residual)
    if residual.ndim > 1 or n_rows > MAX_ROWS_ONE_BY_ONE:
        parts = (slice(start, start + CACHED_ROWS) for start in range(0, n_rows, CACHED_ROWS))
        return all(within(residual[rows], tolerance[rows]).all() for rows in parts)
    rows = zip(residual.tolist(), tolerance.tolist(), strict=True)
    return all(abs(missing) <= allowed < math.inf for missing, allowed in rows)


def without_noise(numbers: np.ndarray | float, tolerance: float | np.ndarray) -> np.ndarray:
    """Return numbers for people: 0 where rounding could have made them.

    Parameters
    ----------
    tolerance : float or array
        What rounding explains, of the certificate; an infinite one explains nothing.

    Examples
    --------
    >>> without_noise(np.array([0.25, -8.9e-16]), 1e-12)
    array([0.25, 0.  ])
    """
    noise = (np.abs(numbers) <= tolerance) & np.isfinite(tolerance)
    return np.where(noise, 0.0, numbers)

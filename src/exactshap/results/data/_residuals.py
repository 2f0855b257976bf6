"""What is missing to predictions, held against what rounding explains of it."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["all_within", "largest_of_rows", "within"]

FEW = 10  # rows up to which numbers are looked at one by one
CACHED = 2**14  # rows whose residuals and tolerances stay in a core's caches while they are compared


def largest_of_rows(residual: np.ndarray) -> np.ndarray:
    """Return the largest magnitude (n_rows,) of each row's residuals (n_rows[, n_outputs])."""
    size = np.abs(residual)
    return size if size.ndim == 1 else np.ascontiguousarray(size.T).max(axis=0, initial=0.0)  # along rows: a tenth of the time


def within(residual: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """Say of which rows all residuals are within the tolerance (n_rows,): an infinite one, where numbers overflow, allows nothing."""
    return (largest_of_rows(residual) <= tolerance) & (tolerance < np.inf)


def all_within(residual: np.ndarray, tolerance: np.ndarray) -> bool:
    """Say whether that holds of all rows."""
    n_rows = len(residual)
    if residual.ndim > 1 or n_rows > FEW:
        parts = (slice(start, start + CACHED) for start in range(0, n_rows, CACHED))
        return all(within(residual[rows], tolerance[rows]).all() for rows in parts)
    rows = zip(residual.tolist(), tolerance.tolist(), strict=True)  # few: any step of arrays takes longer
    return all(abs(missing) <= allowed < math.inf for missing, allowed in rows)

"""Columns as the page needs them: numbers with fewer digits."""

from __future__ import annotations

import numpy as np

__all__ = ["is_rounded", "rounded"]

_FULL_BITS = 23  # of a float32's mantissa


def rounded(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Round numbers to ``bits`` bits of mantissa, unless float32 holds all exactly.

    Columns that float32 holds exactly (counts, codes, prices in cents) stay as they are: they compress well.

    >>> rounded(np.array([1234567.0, 3.0]), 9).tolist(), rounded(np.array([0.123456789]), 9).tolist()
    ([1234567.0, 3.0], [0.1234130859375])
    """
    # Beyond float32: infinite in the page, and drawn nowhere
    with np.errstate(over="ignore", under="ignore"):
        single = np.asarray(numbers).astype(np.float32)
    if np.array_equal(single.astype(float), numbers, equal_nan=True):
        return single
    drop = np.uint32(_FULL_BITS - bits)
    words = single.view(np.uint32)
    half = np.uint32(1) << (drop - np.uint32(1))
    kept = ((words + half) >> drop) << drop
    return np.where(np.isfinite(single), kept.view(np.float32), single)


def is_rounded(numbers: np.ndarray) -> bool:
    """Return whether :func:`rounded` changes a column, so that a filter's bound must be rounded as well."""
    with np.errstate(over="ignore", under="ignore"):
        single = np.asarray(numbers).astype(np.float32)
    return not np.array_equal(single.astype(float), numbers, equal_nan=True)

"""Columns as the page needs them: dates as days, numbers with fewer digits."""

from __future__ import annotations

import numpy as np

__all__ = ["as_days", "rounded"]

_FULL_BITS = 23  # of a float32's mantissa


def rounded(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Round float32 numbers to ``bits`` bits of mantissa where that changes any number in the column that needs more than 23.

    Columns that float32 holds exactly (counts, codes, prices in cents) stay as they are: they compress well.

    >>> rounded(np.array([1234567.0, 3.0]), 9), rounded(np.array([0.123456789]), 9)
    (array([1234567.,       3.], dtype=float32), array([0.12353516], dtype=float32))
    """
    with np.errstate(over="ignore", under="ignore"):  # beyond float32: infinite in the page, and drawn nowhere
        single = np.asarray(numbers).astype(np.float32)
    if np.array_equal(single.astype(float), numbers, equal_nan=True):
        return single
    drop = np.uint32(_FULL_BITS - bits)
    words = single.view(np.uint32)
    half = np.uint32(1) << (drop - np.uint32(1))
    kept = ((words + half) >> drop) << drop
    return np.where(np.isfinite(single), kept.view(np.float32), single)


def as_days(texts: np.ndarray) -> np.ndarray | None:
    """Return days since 1970 for a column of ISO dates (NaN where empty), or None if any text is no date.

    >>> as_days(np.array(["1970-01-02", ""], object)), as_days(np.array(["1", "x"], object))
    (array([ 1., nan]), None)
    """
    known = texts != ""
    if not known.any() or any(not isinstance(text, str) or len(text) < 10 or text[4:5] != "-" for text in texts[known]):
        return None
    days = np.full(len(texts), np.nan)
    try:
        moments = np.array([text.replace(" ", "T")[:23] for text in texts[known]], dtype="datetime64[ms]")
    except ValueError:
        return None
    days[known] = moments.astype(np.int64) / 86_400_000
    return days

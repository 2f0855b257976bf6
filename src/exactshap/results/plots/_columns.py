"""Columns as pictures need them: dates as days, categories as words that fit under an axis."""

from __future__ import annotations

import numpy as np

__all__ = ["as_days", "shortened"]


def as_days(texts: np.ndarray) -> np.ndarray | None:
    """Return days since 1970 for a column of ISO dates, or None. Empty cells are NaN; None if any text is no date.

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


def shortened(text: str, length: int) -> str:
    """Cut a long text in the middle.

    >>> shortened("Passenger, Mr. number 17", 16)
    'Passenge… ber 17'
    """
    return text if len(text) <= length else f"{text[: length // 2]}… {text[len(text) - length // 2 + 2 :]}"

"""Columns as pictures need them: categories as words that fit under an axis."""

from __future__ import annotations

__all__ = ["shortened"]


def shortened(text: str, length: int) -> str:
    """Cut a long text in the middle.

    >>> shortened("Passenger, Mr. number 17", 16)
    'Passenge… ber 17'
    """
    return text if len(text) <= length else f"{text[: length // 2]}… {text[len(text) - length // 2 + 2 :]}"

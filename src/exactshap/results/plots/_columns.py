"""Columns as pictures need them: the strongest of them, cells as words, numbers as short as the picture can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap.results.data import as_days, cells

if TYPE_CHECKING:
    from exactshap.results.data import ExplanationData


def shortened(text: str, length: int) -> str:
    """Cut a long text in the middle.

    >>> shortened("Passenger, Mr. number 17", 16)
    'Passenge… ber 17'
    """
    return text if len(text) <= length else f"{text[: length // 2]}… {text[len(text) - length // 2 + 2 :]}"


def strongest(strength: np.ndarray, max_display: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the players by decreasing strength, and those that are shown as one.

    >>> strongest(np.array([1.0, 3.0, 2.0]), 2)
    (array([1]), array([2, 0]))
    """
    order = np.argsort(-strength, kind="stable")
    n_single = len(order) if len(order) <= max_display else max_display - 1
    return order[:n_single], order[n_single:]


def player_labels(row: ExplanationData, players: np.ndarray) -> list[str]:
    """Return names of players with their cells in an explanation of one row, "age = 22"."""
    shown = cells(row)
    if shown is None:
        return [row.feature_names[j] for j in players]
    return [f"{row.feature_names[j]} = {cell_words(shown.display[0, j])}" for j in players]


def cell_words(cell: Any) -> str:
    """Return a cell as words: whole numbers in full, others with four digits, days without their midnight.

    >>> cell_words(1e6), cell_words(0.123456), cell_words(float("nan")), cell_words(""), cell_words("2020-02-01 00:00:00")
    ('1,000,000', '0.1235', 'missing', 'missing', '2020-02-01')
    """
    if isinstance(cell, str):
        is_midnight = as_days(np.array([cell], object)) is not None and cell[10:].strip("T0:. ") == ""
        return shortened(cell[:10] if is_midnight else cell, 30) or "missing"
    number = float(cell)
    if np.isnan(number):
        return "missing"
    return f"{number:,.0f}" if abs(number) < 1e15 and number == round(number) else f"{number:.4g}"


def signed(value: float, width: float) -> str:
    """Return a value with the digits that the picture's width can show. A zero has none.

    >>> signed(-0.5, 2.0), signed(1e-9, 2.0), signed(0.0, 2.0)
    ('−0.5', '+1.0e−09', '0')
    """
    shown = f"{value:+.3g}" if abs(value) >= 1e-3 * width else f"{value:+.1e}" if value else "0"
    return shown.replace("-", "\N{MINUS SIGN}")

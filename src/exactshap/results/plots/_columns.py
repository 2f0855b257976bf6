"""Prepare columns for pictures: the strongest ones, cells as text, numbers with as many digits as can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.words import in_words
from exactshap.results.data import ExplanationData, as_days, cells, counted
from exactshap.results.plots._pyplot import shortened


@dataclass(frozen=True, eq=False)
class Shown:
    """Choose the players of a picture: the strongest one by one, and all others merged as the last."""

    single: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, strength: np.ndarray, max_display: int) -> Shown:
        """Choose players by decreasing strength (n_players,), at most ``max_display`` with the rest.

        >>> shown = Shown.of(np.array([1.0, 3.0, 2.0]), 2)
        >>> shown.single, shown.rest, shown.labels(["a", "b", "c"])
        (array([1]), array([2, 0]), ('b', '2 other features'))
        """
        order, most = np.argsort(-strength, kind="stable"), check_count("max_display", max_display)
        n_single = len(order) if len(order) <= most else most - 1
        return cls(order[:n_single], order[n_single:])

    def labels(self, names: Sequence[str], noun: str = "other feature") -> tuple[str, ...]:
        return (*(str(names[j]) for j in self.single), *self.name_of_rest(noun))

    def name_of_rest(self, noun: str = "other feature") -> tuple[str, ...]:
        return (counted(len(self.rest), noun),) if len(self.rest) else ()

    def values(self, values: np.ndarray) -> np.ndarray:
        """Return values (..., n_shown), with those of the rest added up."""
        return self._joined(values, values[..., self.rest].sum(axis=-1, keepdims=True))

    def known(self, values: np.ndarray) -> np.ndarray:
        """Return values (..., n_shown) that cannot be added up, with NaN for the rest."""
        return self._joined(values, np.full((*values.shape[:-1], 1), np.nan))

    def _joined(self, values: np.ndarray, of_rest: np.ndarray) -> np.ndarray:
        own = values[..., self.single]
        return np.concatenate([own, of_rest], axis=-1) if len(self.rest) else own


def player_labels(row: ExplanationData, players: np.ndarray) -> list[str]:
    shown = cells(row)
    if shown is None:
        return [row.feature_names[j] for j in players]
    return [f"{row.feature_names[j]} = {cell_words(shown.display[0, j])}" for j in players]


def cell_words(cell: Any, length: int = 30) -> str:
    """Return a cell as text: whole numbers in full, others with four digits, dates without midnight, long texts cut.

    >>> cell_words(1e6), cell_words(0.123456), cell_words(float("nan")), cell_words(""), cell_words("2020-02-01 00:00:00")
    ('1,000,000', '0.1235', 'missing', 'missing', '2020-02-01')
    >>> cell_words(41183.27)
    '41,183'
    """
    if isinstance(cell, str):
        is_midnight = as_days(np.array([cell], object)) is not None and cell[10:].strip("T0:. ") == ""
        return shortened(cell[:10] if is_midnight else cell, length) or "missing"
    number = float(cell)
    if np.isnan(number):
        return "missing"
    return f"{number:,.0f}" if abs(number) < 1e15 and number == round(number) else in_words(number)


def signed(value: float, width: float) -> str:
    """Return a signed value with as many digits as the picture's width can show; zero has no sign.

    >>> signed(-0.5, 2.0), signed(1e-9, 2.0), signed(0.0, 2.0), signed(113684.2, 2e5)
    ('−0.5', '+1.0e−09', '0', '+113,684')
    """
    if abs(value) >= min(1e-3 * width, 1.0):
        return in_words(value, sign="+", digits=3)
    return f"{value:+.1e}".replace("-", "\N{MINUS SIGN}") if value else "0"

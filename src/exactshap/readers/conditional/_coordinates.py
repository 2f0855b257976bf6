"""Columns of any kind as points in space: numbers in units of their deviation, categories as corners of a simplex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.errors import ExactshapError
from exactshap.frames import Table

__all__ = ["Coordinates"]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Euclidean coordinates of each player's columns, in which two background rows are 2 apart on average, squared, per column.

    A number that is missing is the mean, with a coordinate of its own that says so; a level that the background lacks is the
    origin, as far from every level; a column of one value says nothing.
    """

    columns: tuple[Any, ...]
    players: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, background: Table, weights: np.ndarray, players: Sequence[Sequence[int]]) -> Coordinates:
        return cls(tuple(_column(background, j, weights) for j in range(background.n_columns)), tuple(map(tuple, players)))

    def __call__(self, X: Table) -> list[np.ndarray]:
        """Return one array (n_rows, n_coordinates) for each player."""
        columns = [np.empty((X.n_rows, 0)), *(column(X, j) for j, column in enumerate(self.columns))]
        return [np.concatenate([columns[0], *(columns[1 + j] for j in members)], axis=1) for members in self.players]


def _numbers(X: Table, j: int) -> np.ndarray | None:
    try:
        return X.select([j]).numeric()[:, 0]
    except ExactshapError:  # text, dates
        return None


def _column(background: Table, j: int, weights: np.ndarray) -> _Number | _Category:
    values = _numbers(background, j)
    if values is None:
        levels, places = np.unique(_words(background.column(j)), return_inverse=True)
        together = float(np.sum(np.bincount(places, weights) ** 2))  # the chance that two rows have one level
        return _Category(tuple(levels), 1.0 / np.sqrt(1.0 - together) if len(levels) > 1 else 0.0)
    missing = np.isnan(values)
    if missing.all():
        return _Number(0.0, 0.0, 0.0)
    share = weights * ~missing
    mean = float(np.nansum(share * values) / share.sum())
    deviation = float(np.sqrt(np.nansum(share * (values - mean) ** 2) / share.sum()))
    return _Number(mean, 1.0 / deviation if deviation > 0.0 else 0.0, 1.0)


@dataclass(frozen=True)
class _Number:
    mean: float
    per_unit: float
    gap: float

    def __call__(self, X: Table, j: int) -> np.ndarray:
        values = X.select([j]).numeric()[:, 0]
        missing = np.isnan(values)
        return np.stack([np.where(missing, 0.0, (values - self.mean) * self.per_unit), self.gap * missing], axis=1)


@dataclass(frozen=True)
class _Category:
    levels: tuple[str, ...]
    edge: float

    def __call__(self, X: Table, j: int) -> np.ndarray:
        return self.edge * (_words(X.column(j))[:, None] == np.array(self.levels)[None, :])


def _words(column: np.ndarray) -> np.ndarray:
    return np.array([repr(cell) for cell in column])

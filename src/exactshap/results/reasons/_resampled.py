"""Reasons with other background rows: the bootstrap over values by background row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from exactshap.results.data import checked_background_values

if TYPE_CHECKING:
    from exactshap.results.data import ExplanationData

__all__ = ["Resampled", "resampled"]


@dataclass(frozen=True, eq=False)
class Resampled:
    """Intervals (n_rows, k, 2) of the reasons' values, and the share of resamples (n_rows, k) that keep them."""

    intervals: np.ndarray | None
    kept: np.ndarray | None

    @classmethod
    def none(cls) -> Resampled:
        """Return what is known without values by background row."""
        return cls(None, None)


def resampled(
    rows: ExplanationData,
    by_background: np.ndarray,
    players: np.ndarray,
    sign: float,
    *,
    n_bootstrap: int,
    level: float,
    random_state: int,
) -> Resampled:
    r"""Draw the background again, with replacement; the values are means over it.

    .. math:: \phi^{(b)}_j = \frac1m \sum_z n^{(b)}_z\, \phi_j(x; z)
    """
    by_background = checked_background_values(rows, by_background)
    m, (n, k) = len(by_background), players.shape
    counts = np.random.default_rng(random_state).multinomial(m, np.full(m, 1.0 / m), size=n_bootstrap) / m
    intervals, kept = np.full((n, k, 2), np.nan), np.full((n, k), np.nan)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    for i in range(n):
        found = players[i][players[i] >= 0]
        values = counts @ by_background[:, i]
        adverse = sign * values
        kth = np.partition(adverse, -min(k, adverse.shape[1]), axis=1)[:, -min(k, adverse.shape[1])]
        intervals[i, : len(found)] = np.quantile(values[:, found], tails, axis=0).T
        kept[i, : len(found)] = np.mean(adverse[:, found] >= np.maximum(kth, 0.0)[:, None], axis=0)
    return Resampled(intervals, kept)

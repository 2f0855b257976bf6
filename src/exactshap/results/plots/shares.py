"""Draw shares of one number as sorted bars, the rest as one, with the cumulative sum as a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap.results.plots._columns import Shown
from exactshap.results.plots._palette import current_palette
from exactshap.results.plots._pyplot import name_lines, new_axes


@dataclass(frozen=True, eq=False)
class ShareBars:
    """Hold what a bar plot of shares shows, from top to bottom."""

    labels: tuple[str, ...]  # feature names; the last one reads "12 others" where features were put together
    values: np.ndarray  # (n_bars,)
    cumulative: np.ndarray  # (n_bars,): running sum of ``values``
    error: np.ndarray | None  # (2, n_bars): distances down and up to the ends of the error bars; NaN for the bar of the rest
    total: float  # the number that is split; drawn as a vertical line
    statistic: str  # its name, for the axis


def prepare_shares(
    values: np.ndarray,
    names: Sequence[str],
    *,
    total: float,
    statistic: str,
    error: np.ndarray | None = None,
    max_display: int = 10,
) -> ShareBars:
    """Sort shares of a total by magnitude; merge those beyond ``max_display - 1``.

    ``statistic`` is the name of the total; ``error`` (2, n_features) are distances down and up to the ends of the error bars.
    """
    values = np.asarray(values, float)
    shown = Shown.of(np.abs(values), max_display)
    heights = shown.values(values)
    return ShareBars(
        labels=shown.labels(names, "other"),
        values=heights,
        cumulative=np.cumsum(heights),
        error=None if error is None else shown.known(np.asarray(error, float)),
        total=float(total),
        statistic=statistic,
    )


def draw_shares(bars: ShareBars, ax: Axes = None) -> Any:
    """Draw prepared shares as bars, with the cumulative sum as a line."""
    ax = new_axes(6.0, 1.2 + 0.35 * len(bars.labels)) if ax is None else ax
    position, colours = np.arange(len(bars.labels)), current_palette()
    ax.barh(position, bars.values, color=colours.neutral, zorder=2, label="contribution")
    if bars.error is not None:
        ax.errorbar(bars.values, position, xerr=bars.error, fmt="none", ecolor="black", capsize=3, zorder=4)
    ax.plot(bars.cumulative, position, color=colours.accent, marker="o", markersize=3, zorder=3, label="cumulative")
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.axvline(bars.total, color="gray", linewidth=0.8, linestyle="--", label=f"{bars.statistic} = {bars.total:.4g}")
    name_lines(ax, bars.labels)
    ax.set_xlabel(f"contribution to {bars.statistic}")
    ax.legend(loc="best", frameon=False)
    return ax

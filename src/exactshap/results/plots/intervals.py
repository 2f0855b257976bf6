"""Draw values with intervals: credible ones of Gaussian processes, confidence intervals of sampled values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_level
from exactshap._runtime.types import Axes
from exactshap.errors import InputError
from exactshap.results.data import ExplanationData, game_title, index_title, near_one, normal_reach
from exactshap.results.plots._columns import Shown
from exactshap.results.plots._palette import current_palette
from exactshap.results.plots._pyplot import escape, name_lines, new_axes

# Largest number of rows with one whisker each.
MAX_WHISKERS = 40


@dataclass(frozen=True, eq=False)
class Intervals:
    """Hold what the plot shows, features from top to bottom."""

    labels: tuple[str, ...]  # feature names; the last one reads "12 others" where features were put together
    values: np.ndarray  # (n_rows, n_labels)
    # (n_rows, n_labels): the interval is value +- half_width; NaN where it is not known (the rest of sampled values)
    half_width: np.ndarray
    level: float  # probability of the interval
    kind: str  # "credible" or "confidence"
    title: str
    unit: str

    @property
    def decided(self) -> np.ndarray:
        """Say whether each interval excludes zero, (n_rows, n_labels)."""
        return np.abs(self.values) > self.half_width


def prepare_intervals(
    explanation: ExplanationData, i: int | None = None, *, level: float = 0.95, max_display: int = 10
) -> Intervals:
    r"""Sort features by mean magnitude and compute normal intervals of row ``i``, or of every row.

    .. math:: \phi_j \pm z_{(1 + \mathrm{level}) / 2}\, \mathrm{std}(\phi_j)

    The interval of "others" adds up entries of the covariance. For sampled values, ``std_error`` replaces ``std``.
    """
    check_level(level)
    rows = explanation if i is None else explanation[i]
    shown = Shown.of(np.abs(rows.values).mean(axis=0), max_display)
    covariance, exponent, kind = _covariance(rows)
    mixing = shown.values(np.eye(rows.n_players)).T  # players that each line adds up
    variance = np.einsum("lj,rjk,lk->rl", mixing, np.nan_to_num(covariance), mixing)
    # The covariance of sampled values is not known
    if kind == "confidence" and len(shown.rest) > 1:
        variance[:, -1] = np.nan
    return Intervals(
        labels=shown.labels(rows.feature_names, "other"),
        values=rows.values @ mixing.T,
        half_width=normal_reach(level) * np.ldexp(np.sqrt(np.maximum(variance, 0.0)), exponent),
        level=level,
        kind=kind,
        title=f"{index_title(rows.index)} of {rows.model_name or 'the model'}, {game_title(rows)}",
        unit=rows.unit,
    )


def _covariance(rows: ExplanationData) -> tuple[np.ndarray, int, str]:
    """Return covariances in a unit of a power of two, the power, and the kind of intervals."""
    if rows.covariances is not None:
        return rows.covariances, 0, "credible"
    if rows.std_error is not None:
        errors, exponent = near_one(np.asarray(rows.std_error))
        return np.einsum("rj,jk->rjk", errors**2, np.eye(rows.n_players)), exponent, "confidence"
    raise InputError(
        "Intervals need a standard deviation or a standard error",
        "These values are exact for a deterministic model",
        "Explain a Gaussian process with a background, or use explanation.plot.bar()",
    )


def draw_intervals(prepared: Intervals, ax: Axes = None) -> Any:
    """Draw prepared intervals, grey where they contain zero."""
    (n_rows, n_labels), colours = prepared.values.shape, current_palette()
    ax = new_axes(7.0, 0.5 * n_labels + 1.6) if ax is None else ax
    ax.axvline(0.0, color="black", linewidth=0.8, zorder=1)
    for line in range(n_labels):
        order = np.argsort(prepared.values[:, line], kind="stable")
        height = line + (np.linspace(0.35, -0.35, n_rows) if n_rows > 1 else np.zeros(1))
        if n_rows > MAX_WHISKERS:
            values, widths = prepared.values[order, line], np.nan_to_num(prepared.half_width[order, line])
            ax.fill_betweenx(
                height, values - widths, values + widths, color=colours.undecided, alpha=0.35, linewidth=0, zorder=2
            )
            shades = np.where(prepared.decided[order, line], colours.neutral, colours.undecided)
            ax.scatter(values, height, s=3, color=shades.tolist(), linewidths=0, zorder=3)
            continue
        for decided, colour in ((True, colours.neutral), (False, colours.undecided)):
            chosen = prepared.decided[order, line] == decided
            shown, places = prepared.values[order, line][chosen], height[chosen]
            widths = np.nan_to_num(prepared.half_width[order, line][chosen])
            if n_rows == 1:
                ax.barh(places, shown, height=0.6, color=colour, alpha=0.6, zorder=2)
            marker = "none" if n_rows == 1 else "."
            ax.errorbar(
                shown, places, xerr=widths, fmt=marker, color=colour if n_rows > 1 else "black", elinewidth=1.2, zorder=3
            )
    name_lines(ax, prepared.labels)
    ax.set_xlabel(escape(f"value ({prepared.unit}) with {100 * prepared.level:g} % {prepared.kind} interval"))
    ax.set_title(escape(prepared.title), fontsize=11)
    return ax

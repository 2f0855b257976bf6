"""Draw the strongest features: bars of mean magnitudes or of one row, and a dot for each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap.results.data import ExplanationData, cells, counted, importance, index_title, row_name
from exactshap.results.plots._columns import Shown, player_labels, signed
from exactshap.results.plots._palette import current_palette
from exactshap.results.plots._pyplot import draw_rings, name_lines, new_axes, room_at_tips, without_frame, write_at_tip

# Rows drawn as dots; more are slow and show nothing new.
MAX_DOTS = 2_000


@dataclass(frozen=True, eq=False)
class Bars:
    """Hold what the bars show, from top to bottom."""

    # features by decreasing magnitude, with the cell of one row; the last one reads "12 others" where features were put
    # together
    labels: tuple[str, ...]
    values: np.ndarray  # (n_bars,)
    ends: np.ndarray | None  # (2, n_bars): lower and upper ends of the intervals; NaN for the bar of the rest
    what: str  # the label of the axis
    has_sign: bool  # whether the bars are values of one row


def prepare_bars(
    explanation: ExplanationData,
    i: int | None = None,
    *,
    max_display: int = 10,
    interval: float | None = None,
    **settings: Any,
) -> Bars:
    """Sort features by mean magnitude over all rows, or by the magnitude of row ``i``.

    ``interval`` is the probability of intervals of the means over rows; with ``settings`` as of :meth:`exactshap.Explanation.importance`.
    """
    title, found = index_title(explanation.index), None
    if i is not None:
        row = explanation[i]
        values, what = row.values[0], row_name(explanation, i)
    elif interval is None:
        values = np.abs(explanation.values).mean(axis=0)
        what = f"mean magnitude of {title} over {counted(explanation.n_rows, 'row')}"
    else:
        found = importance(explanation, interval, **settings)
        values = found.values
        what = f"mean magnitude of {title} with {100 * interval:g} % intervals, {counted(explanation.n_rows, 'row')}"
    shown = Shown.of(np.abs(values), max_display)
    names = shown.labels(explanation.feature_names) if i is None else player_labels(row, shown.single)
    ends = None
    if found is not None and found.lower is not None and found.upper is not None:
        ends = shown.known(np.stack([found.lower, found.upper]))
    labels = tuple(names) if i is None else (*names, *shown.name_of_rest())
    return Bars(labels, shown.values(values), ends, what, i is not None)


def draw_bars(prepared: Bars, ax: Axes = None) -> Any:
    """Draw prepared bars with their numbers, and whiskers where there are intervals."""
    n, colours = len(prepared.labels), current_palette()
    ax = new_axes(8.0, 0.4 * n + 1.7) if ax is None else ax
    shade = [colours.of_sign(value) for value in prepared.values] if prepared.has_sign else colours.neutral
    ax.barh(range(n), prepared.values, height=0.68, color=shade, zorder=2)
    tips = prepared.values.copy()
    if prepared.ends is not None:
        known = np.isfinite(prepared.ends[0])
        reach = np.abs(prepared.ends - prepared.values)[:, known]
        ax.errorbar(prepared.values[known], np.flatnonzero(known), xerr=reach, fmt="none", ecolor="black", capsize=3, zorder=4)
        tips[known] = prepared.ends[1][known]
    width = float(np.ptp([*tips, 0.0])) or 1.0
    texts = [signed(value, width) if prepared.has_sign else signed(value, width).removeprefix("+") for value in prepared.values]
    for place, (text, tip) in enumerate(zip(texts, tips, strict=True)):
        write_at_tip(ax, text, tip, place, is_left=tip < 0)
    ax.axvline(0.0, color="gray", linewidth=0.8, zorder=3)
    low, high = min(0.0, float(tips.min())), max(0.0, float(tips.max()))
    space = room_at_tips(texts) * width
    ax.set_xlim(low - space * (low < 0), high + space)
    name_lines(ax, prepared.labels, room=0.6)
    return without_frame(ax)


@dataclass(frozen=True, eq=False)
class Swarm:
    """Hold what the dots show, features from top to bottom."""

    # features by decreasing mean magnitude; the last one reads "12 other features" where features were put together
    labels: tuple[str, ...]
    values: np.ndarray  # (n_dots, n_labels)
    # (n_dots, n_labels): place of the row's cell among those of the feature, from 0 to 1; NaN for missing cells,
    # text, and the rest
    places: np.ndarray


def prepare_swarm(explanation: ExplanationData, *, max_display: int = 10) -> Swarm:
    """Sort features by mean magnitude, and place each row's cells."""
    n = explanation.n_rows
    drawn = np.arange(n) if n <= MAX_DOTS else np.sort(np.random.default_rng(0).choice(n, MAX_DOTS, replace=False))
    shown = Shown.of(np.abs(explanation.values).mean(axis=0), max_display)
    places, content = np.full((len(drawn), explanation.n_players), np.nan), cells(explanation)
    if content is not None:
        for j in shown.single[content.numeric[shown.single]]:
            places[:, j] = places_of(content.numbers[:, j])[drawn]
    values = shown.values(explanation.values[drawn])
    return Swarm(shown.labels(explanation.feature_names), values, shown.known(places))


def places_of(numbers: np.ndarray) -> np.ndarray:
    """Scale numbers to [0, 1] between their 5th and 95th percentile; missing ones stay NaN.

    >>> places_of(np.array([0.0, 5.0, 10.0, np.nan]))
    array([0. , 0.5, 1. , nan])
    """
    finite = numbers[np.isfinite(numbers)]
    if finite.size == 0:
        return np.full(numbers.shape, np.nan)
    low, high = np.percentile(finite, [5, 95])
    if low == high:
        low, high = finite.min(), finite.max()
    if low == high:
        return np.where(np.isfinite(numbers), 0.5, np.nan)
    return np.where(np.isfinite(numbers), np.clip((numbers - low) / (high - low), 0.0, 1.0), np.nan)


def swarm_offsets(x: np.ndarray, width: float, room: float, *, bins: int = 120) -> np.ndarray:
    """Return vertical offsets that separate dots of the same bin: 0, +1, -1, +2, ... steps within ``room``."""
    if x.size == 0:
        return np.zeros(0)
    low, high = float(x.min()), float(x.max())
    place = np.zeros(x.size, int) if low == high else np.rint((x - low) / (high - low) * bins).astype(int)
    order = np.argsort(place, kind="stable")
    first = np.searchsorted(place[order], place[order], side="left")
    layer = np.arange(x.size) - first
    steps = np.empty(x.size)
    steps[order] = np.ceil(layer / 2) * np.where(layer % 2, 1.0, -1.0)
    return steps * min(2 * width, room / max(float(np.abs(steps).max()), 1.0))


def draw_swarm(prepared: Swarm, ax: Axes = None) -> Any:
    """Draw prepared dots: blue for low cells, orange for high ones, rings for text and missing cells."""
    n, colours = len(prepared.labels), current_palette()
    ax = new_axes(8.0, 0.4 * n + 2.0) if ax is None else ax
    ax.axvline(0.0, color="gray", linewidth=0.8, zorder=1)
    dots = None
    for line, (values, places) in enumerate(zip(prepared.values.T, prepared.places.T, strict=True)):
        ax.axhline(line, color="#d8dee4", linewidth=0.6, zorder=0)
        y = line + swarm_offsets(values, 0.03, 0.4)
        known = np.isfinite(places)
        if not known.all():
            draw_rings(ax, values[~known], y[~known], 9, colours.missing)
        if known.any():
            shown = {"cmap": colours.cells(), "vmin": 0.0, "vmax": 1.0, "linewidths": 0}
            dots = ax.scatter(values[known], y[known], s=9, c=places[known], zorder=3, **shown)
    name_lines(ax, prepared.labels, room=0.6)
    if dots is not None:
        bar = ax.figure.colorbar(dots, ax=ax, ticks=[0.0, 1.0], aspect=40, pad=0.02)
        bar.ax.set_yticklabels(["low", "high"])
        # Between its ends where it fits, else to the right of their words
        what, pad = (
            ("value of the feature (rings: text or missing)", -8)
            if n > 5
            else ("value of the feature\n(rings: text, missing)", 2)
        )
        bar.set_label(what, fontsize=9, labelpad=pad)
        bar.outline.set_visible(False)
    return without_frame(ax)

"""Draw all rows at once: bars, dots, a heatmap, distributions or paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap._runtime.words import in_words
from exactshap.errors import InputError
from exactshap.results.data import (
    ExplanationData,
    cells,
    counted,
    importance,
    index_title,
    near_one,
    picture,
    readable,
    row_name,
)
from exactshap.results.plots._drawing import (
    Plotted,
    Shown,
    current_palette,
    draw_bars,
    draw_rings,
    fitted,
    game_words,
    in_lines,
    name_lines,
    new_axes,
    player_labels,
    room_at_tips,
    unit_words,
    without_frame,
    write_at_tip,
)

# Rows drawn as dots; more are slow and show nothing new.
MAX_DOTS = 2_000
# Largest number of rows ordered by similarity, which costs the number squared.
_MAX_ORDERED = 2000
# Lines of one picture; more cannot be distinguished.
MAX_LINES = 200


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
    if i is None:
        labels = shown.labels(explanation.feature_names)
    else:
        labels = (*player_labels(row, shown.single), *shown.name_of_rest())
    ends = None
    if found is not None and found.lower is not None and found.upper is not None:
        ends = shown.known(np.stack([found.lower, found.upper]))
    return Bars(labels, shown.values(values), ends, what, i is not None)


@picture
def bar(
    plot: Plotted,
    i: int | None = None,
    *,
    interval: float | None = None,
    background_values: np.ndarray | None = None,
    max_display: int = 10,
    output: int | str | None = None,
    ax: Axes = None,
) -> Any:
    """Draw each feature's mean magnitude, or the values of row ``i``.

    ``interval=0.95`` adds whiskers to the means, as of :meth:`exactshap.Explanation.importance`.
    """
    rows = plot.one(output)
    if i is not None and interval is not None:
        do = "Draw plot.bar(interval=0.95) of all rows, or plot.intervals(i)"
        raise InputError("Intervals are of means over rows", f"Got row {i!r}", do)
    settings = {} if background_values is None else {"background_values": background_values}
    # Intervals are estimated for the values themselves
    shown = readable(rows) if interval is None else rows
    prepared = prepare_bars(shown, i, max_display=max_display, interval=interval, **settings)
    n, colours = len(prepared.labels), current_palette()
    ax = new_axes(8.0, 0.4 * n + 1.7) if ax is None else ax
    shade = [colours.of_sign(value) for value in prepared.values] if prepared.has_sign else colours.neutral
    draw_bars(ax, prepared.values, prepared.ends, height=0.68, color=shade)
    tips = prepared.values
    if prepared.ends is not None:
        tips = np.where(np.isfinite(prepared.ends[1]), prepared.ends[1], tips)
    largest, sign = float(np.abs(prepared.values).max()), "+" if prepared.has_sign else ""
    texts = [in_words(value, sign=sign, digits=3, largest=largest) for value in prepared.values]
    for place, (text, tip) in enumerate(zip(texts, tips, strict=True)):
        write_at_tip(ax, text, tip, place, is_left=tip < 0)
    ax.axvline(0.0, color="gray", linewidth=0.8, zorder=3)
    low, high = min(0.0, float(tips.min())), max(0.0, float(tips.max()))
    space = room_at_tips(texts) * (float(np.ptp([*tips, 0.0])) or 1.0)
    ax.set_xlim(low - space * (low < 0), high + space)
    name_lines(ax, prepared.labels, room=0.6)
    return fitted(without_frame(ax), xlabel=f"{prepared.what} ({unit_words(rows)})\n{game_words(rows)}")


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
    """Scale numbers to [0, 1] between their 5th and 95th percentile. Missing ones stay NaN.

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


@picture
def beeswarm(plot: Plotted, *, max_display: int = 10, output: int | str | None = None, ax: Axes = None) -> Any:
    """Draw a dot per row and feature, coloured by cell. Text and missing cells are grey."""
    rows = plot.one(output)
    prepared = prepare_swarm(readable(rows), max_display=max_display)
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
        scale = ax.figure.colorbar(dots, ax=ax, ticks=[0.0, 1.0], aspect=40, pad=0.02)
        scale.ax.set_yticklabels(["low", "high"])
        # Between its ends where it fits, else to the right of their words
        what, pad = (
            ("value of the feature (rings: text or missing)", -8)
            if n > 5
            else ("value of the feature\n(rings: text, missing)", 2)
        )
        scale.set_label(what, fontsize=9, labelpad=pad)
        scale.outline.set_visible(False)
    sample = f"; {MAX_DOTS:,} of {rows.n_rows:,} rows drawn" if rows.n_rows > MAX_DOTS else ""
    xlabel = f"{index_title(rows.index)} ({unit_words(rows)}{sample})\n{game_words(rows)}"
    return fitted(without_frame(ax), xlabel=xlabel)


def _similar_rows(values: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    if not 2 < len(values) <= _MAX_ORDERED:
        return np.argsort(prediction, kind="stable")
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist

    # Distances, as linkage may take a square table of values for a matrix of them, with a warning
    order = leaves_list(linkage(pdist(near_one(values)[0]), method="ward", optimal_ordering=len(values) <= 500))
    return order if prediction[order[0]] <= prediction[order[-1]] else order[::-1]


@picture
def heatmap(plot: Plotted, *, max_display: int = 10, output: int | str | None = None, ax: Axes = None) -> Any:
    """Draw every row as a column of colours, similar rows together."""
    rows = plot.one(output)
    explanation = readable(rows)
    shown = Shown.of(np.abs(explanation.values).mean(axis=0), max_display)
    labels, values = shown.labels(explanation.feature_names, "other"), shown.values(explanation.values)
    order = _similar_rows(values, explanation.prediction)
    values, prediction, n = values[order].T, explanation.prediction[order], len(labels)
    ax = new_axes(8.0, 0.38 * n + 2.2) if ax is None else ax
    limit = float(np.percentile(np.abs(values), 99.0)) or float(np.abs(values).max()) or 1.0
    colours = {"cmap": current_palette().values(), "vmin": -limit, "vmax": limit}
    image = ax.imshow(values, aspect="auto", interpolation="nearest", resample=False, **colours)
    width = float(np.ptp(prediction)) or 1.0
    ax.plot(-0.75 - 1.2 * (prediction - prediction.min()) / width, color="black", linewidth=1.0)
    ax.set_ylim(n - 0.5, -2.2)
    ax.set_yticks([-1.35, *range(n)], ["prediction", *map(in_lines, labels)])
    ax.set_xlabel("rows, similar values side by side")
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    letters = int(9.0 * ax.figure.bbox.height / ax.figure.dpi)  # of 10 points, along three quarters of the height
    ax.figure.colorbar(image, ax=ax, label=in_lines(f"value ({explanation.unit})", letters), extend="both")
    return fitted(ax, title=game_words(rows))


@picture
def violin(plot: Plotted, *, max_display: int = 10, output: int | str | None = None, ax: Axes = None) -> Any:
    """Draw the distributions of the strongest features' values over rows."""
    rows = plot.one(output)
    explanation = readable(rows)
    shown, colours = Shown.of(np.abs(explanation.values).mean(axis=0), max_display), current_palette()
    labels = shown.labels(explanation.feature_names, "other")
    ax = new_axes(7.0, 0.5 * len(labels) + 1.7) if ax is None else ax
    ax.axvline(0.0, color="gray", linewidth=0.8, zorder=1)
    for place, column in enumerate(shown.values(explanation.values).T):
        low, middle, high = np.percentile(column, [25, 50, 75])
        if np.ptp(column) > 1e-12 * np.abs(column).max():
            grid, half_width = _outline(column)
            ax.fill_between(
                grid, place - half_width, place + half_width, color=colours.neutral, alpha=0.45, linewidth=0, zorder=2
            )
        ax.plot([low, high], [place, place], color="#222222", linewidth=3, solid_capstyle="butt", zorder=3)
        ax.plot(middle, place, marker="o", markersize=4, color="white", markeredgecolor="#222222", zorder=4)
    name_lines(ax, labels)
    xlabel = f"{index_title(explanation.index)} ({unit_words(explanation)})\n{game_words(rows)}"
    return fitted(ax, xlabel=xlabel)


def _outline(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return grid and values of a kernel density estimate, scaled to at most 0.4."""
    from scipy.stats import gaussian_kde

    scaled, exponent = near_one(column)
    grid = np.linspace(scaled.min(), scaled.max(), 200)
    density = gaussian_kde(scaled)(grid)
    return np.ldexp(grid, exponent), 0.4 * density / density.max()


@picture
def decision(plot: Plotted, *, max_display: int = 10, output: int | str | None = None, ax: Axes = None) -> Any:
    r"""Draw each row's path from baseline to prediction, weakest feature first.

    .. math:: s_{ik} = \mathrm{baseline}_i + \sum_{j \le k} \phi_{ij}
    """
    rows = plot.one(output)
    explanation = readable(rows)
    if not explanation.additive:
        got = f"Got index={explanation.index!r} of order {explanation.order}"
        raise InputError("Paths need values that add up to the prediction", got, "Use plot.heatmap()")
    spread = np.linspace(0, explanation.n_rows - 1, min(explanation.n_rows, MAX_LINES)).astype(int)
    drawn = np.sort(np.argsort(explanation.prediction, kind="stable")[spread])
    shown = Shown.of(np.abs(explanation.values).mean(axis=0), max_display)
    steps = np.column_stack([explanation.baseline[drawn], shown.values(explanation.values[drawn])[:, ::-1]])
    labels, paths = shown.labels(explanation.feature_names)[::-1], np.cumsum(steps, axis=1)
    n = len(labels)
    ax = new_axes(8.0, 0.4 * n + 2.0) if ax is None else ax
    colours = current_palette().cells()
    shades = places_of(paths[:, -1])
    alpha = max(0.35, 1.0 - 0.01 * len(paths))
    for path, shade in zip(paths, shades, strict=True):
        ax.plot(path, np.arange(n + 1), color=colours(shade), alpha=alpha, linewidth=1.0, zorder=2)
    ax.axvline(float(paths[:, 0].mean()), color="gray", linestyle=":", linewidth=0.9, zorder=1)
    for line in range(n + 1):
        ax.axhline(line, color="#d8dee4", linewidth=0.6, zorder=0)
    ax.set_yticks(range(n + 1), ["baseline", *map(in_lines, labels)])
    ax.set_ylim(-0.2, n + 0.2)
    drawn_rows = (
        counted(len(drawn), "row") if len(drawn) == explanation.n_rows else f"{len(drawn)} of {explanation.n_rows:,} rows"
    )
    return fitted(without_frame(ax), xlabel=f"{unit_words(explanation)}, {drawn_rows}\n{game_words(rows)}")

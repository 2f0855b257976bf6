"""Draw one row: waterfall, intervals, pairs, patches of an image, words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count, check_level
from exactshap._runtime.optional import require
from exactshap._runtime.types import Axes
from exactshap._runtime.words import in_words
from exactshap.errors import InputError, InputTypeError
from exactshap.results.data import (
    ExplanationData,
    counted,
    game_title,
    index_title,
    near_one,
    normal_reach,
    picture,
    readable,
    row_name,
)
from exactshap.results.plots._drawing import (
    CATEGORY_WIDTH,
    Plotted,
    Shown,
    current_palette,
    escape,
    fitted,
    game_words,
    in_lines,
    name_lines,
    new_axes,
    player_labels,
    room_at_tips,
    shortened_apart,
    unit_words,
    without_frame,
    write_at_tip,
)

# Length of an arrow's head, as a fraction of the axis.
_HEAD = 0.012
# Room under the last bar for the name of the baseline, in bars.
_FOOT = 0.45
# Largest number of rows with one whisker each.
MAX_WHISKERS = 40
# Letters per line of text.
LINE_WIDTH = 72


@dataclass(frozen=True, eq=False)
class Waterfall:
    """Hold what a waterfall shows, from top to bottom."""

    # "name = cell" by decreasing magnitude; the last one reads "12 other features" where features were put together
    labels: tuple[str, ...]
    starts: np.ndarray  # (n_bars,): where each bar begins; the path goes from the bottom to the top
    values: np.ndarray  # (n_bars,): how far each goes, in the unit of the model output
    baseline: float
    prediction: float
    row: str  # the name of the row
    unit: str  # of the values


def prepare_waterfall(explanation: ExplanationData, i: int = 0, *, max_display: int = 10) -> Waterfall:
    r"""Arrange one row's values on the path from baseline to prediction.

    .. math:: \mathrm{starts}_j = v(\emptyset) + \sum_{k \text{ below } j} \phi_k
    """
    row = explanation[i]
    if not row.additive:
        raise InputError(
            "A waterfall needs values that add up to the prediction",
            f"Got index={row.index!r} of order {row.order}",
            "Explain with index='shapley' and order=1, or use plot.bar(i)",
        )
    values = row.values[0]
    shown = Shown.of(np.abs(values), max_display)
    lengths = shown.values(values)
    ends = float(row.baseline[0]) + np.cumsum(lengths[::-1])[::-1]
    return Waterfall(
        labels=(*player_labels(row, shown.single), *shown.name_of_rest()),
        starts=np.append(ends[1:], float(row.baseline[0])),
        values=lengths,
        baseline=float(row.baseline[0]),
        prediction=float(row.prediction[0]),
        row=row_name(explanation, i),
        unit=row.unit,
    )


@picture
def waterfall(plot: Plotted, i: int = 0, *, max_display: int = 10, output: int | str | None = None, ax: Axes = None) -> Any:
    """Draw the path from the baseline to row ``i``'s prediction."""
    rows = plot.one(output)
    prepared = prepare_waterfall(readable(rows), i, max_display=max_display)
    n, colours = len(prepared.labels), current_palette()
    ax = new_axes(8.0, 0.42 * (n + _FOOT) + 1.9) if ax is None else ax
    ends = prepared.starts + prepared.values
    low, high = min(prepared.starts.min(), ends.min()), max(prepared.starts.max(), ends.max())
    largest = max(abs(prepared.baseline), abs(prepared.prediction), float(np.abs(prepared.values).max()))
    texts = [in_words(value, sign="+", digits=3, largest=largest) for value in prepared.values]
    space = room_at_tips(texts) * (high - low) or 0.05 * abs(high) or 1.0
    ax.set_xlim(low - space, high + space)
    head = _HEAD * (high - low + 2 * space)
    for place, (start, value, text) in enumerate(zip(prepared.starts, prepared.values, texts, strict=True)):
        colour = colours.of_sign(value)
        if value:  # zero has no bar
            end = start + value
            neck = end - np.sign(value) * min(head, abs(value))
            heights = [place - 0.36, place - 0.36, place, place + 0.36, place + 0.36]
            ax.fill([start, neck, end, neck, start], heights, color=colour, linewidth=0, zorder=2)
        write_at_tip(ax, text, start + value, place, is_left=value < 0, color=colour if value else "gray")
        ax.plot(
            [start] * 2, [place - 0.4, place + 1.4 if place < n - 1 else place + 0.6], color="#bbbbbb", linewidth=0.7, zorder=1
        )
    name_lines(ax, prepared.labels)
    ax.set_ylim(n - 0.4 + _FOOT, -0.6)
    _name_ends(prepared, ax, largest)
    ax.set_xlabel(escape(f"{prepared.row} (model output: {prepared.unit})"), fontsize=11)
    return fitted(without_frame(ax), title=game_words(rows))


def _name_ends(prepared: Waterfall, ax: Axes, largest: float) -> None:
    bottom = len(prepared.labels) - 0.4 + _FOOT
    for x in (prepared.prediction, prepared.baseline):
        ax.plot([x, x], [-0.6, bottom], color="gray", linestyle=":", linewidth=0.8, zorder=0)
    # Titles set later leave room for labels of an axis, not for texts
    over = ax.secondary_xaxis("top")
    over.set_xticks([prepared.prediction], [f"$f(x)$ = {in_words(prepared.prediction, largest=largest)}"], fontsize=10)
    over.tick_params(length=0, pad=3)
    over.spines["top"].set_visible(False)
    named = rf"$v(\emptyset)$ = {in_words(prepared.baseline, largest=largest)}"
    ax.annotate(
        named, (prepared.baseline, bottom), xytext=(0, 4), textcoords="offset points", ha="center", va="bottom", fontsize=10
    )


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


@picture
def intervals(
    plot: Plotted,
    i: int | None = None,
    *,
    level: float = 0.95,
    max_display: int = 10,
    output: int | str | None = None,
    ax: Axes = None,
) -> Any:
    """Draw values with credible intervals (Gaussian processes) or confidence intervals (sampled values)."""
    prepared = prepare_intervals(readable(plot.one(output)), i, level=level, max_display=max_display)
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
    return fitted(ax)


@picture
def interactions(
    plot: Plotted, i: int | None = None, *, max_display: int = 12, output: int | str | None = None, ax: Axes = None
) -> Any:
    """Draw row ``i``'s matrix of pairs, or all rows' mean magnitudes."""
    explanation = readable(plot.one(output))
    pairs = explanation.interactions if i is None else explanation[i].interactions
    matrix = np.abs(pairs).mean(axis=0) if i is None else pairs[0]
    order = np.argsort(-np.abs(matrix).sum(axis=1), kind="stable")[: check_count("max_display", max_display)]
    matrix, n, n_left_out = matrix[np.ix_(order, order)], len(order), explanation.n_players - len(order)
    players = [explanation.feature_names[j] for j in order]
    names = [in_lines(name) for name in players]
    letters = max((len(line) for name in names for line in name.split("\n")), default=0)
    ax = new_axes(2.0 + 0.085 * letters + 0.6 * n, 1.4 + 0.06 * letters + 0.55 * n) if ax is None else ax
    # Values of single players are mostly larger: the colour scale is that of the pairs
    size = np.abs(matrix)
    largest = float(size.max(initial=0.0))
    limit = float((size - np.diag(np.diag(size))).max(initial=0.0)) or largest or 1.0
    extend = "both" if largest > limit else "neither"
    cells = ax.imshow(matrix, cmap=current_palette().values(), vmin=-limit, vmax=limit)
    for row, column in np.ndindex(n, n):
        value = matrix[row, column]
        colour = "white" if abs(value) > 0.7 * limit else "black"
        ax.text(
            column, row, in_words(float(value), digits=2, largest=largest), ha="center", va="center", fontsize=8, color=colour
        )
    # Turned names of several lines would cross their neighbours
    below = [escape(name) for name in shortened_apart(players, CATEGORY_WIDTH)]
    ax.set_xticks(range(n), below, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(n), names)
    rows = f"mean magnitude over {counted(explanation.n_rows, 'row')}" if i is None else row_name(explanation, i)
    what = f"{explanation.index} of order {explanation.order}, {rows}\n{game_title(explanation)}"
    ax.set_title(escape(what), fontsize=10)
    if n_left_out:
        ax.set_xlabel(f"{counted(n_left_out, 'player')} with smaller values not shown")
    ax.figure.colorbar(cells, ax=ax, extend=extend, label=escape(f"{explanation.unit} (diagonal: order-1 values)"))
    return fitted(ax)


@picture
def image(
    plot: Plotted,
    i: int = 0,
    shape: tuple[int, int] | None = None,
    *,
    image: np.ndarray | None = None,
    output: int | str | None = None,
    ax: Axes = None,
) -> Any:
    """Draw row ``i``'s values as patches of a picture. ``shape`` is (lines, columns); None for a square."""
    rows = plot.one(output)
    explanation = readable(rows)
    side = int(np.sqrt(explanation.n_players))
    shape = (side, side) if shape is None else shape
    if np.ndim(shape) != 1 or len(shape) != 2 or int(np.prod(shape)) != explanation.n_players:
        got = f"Got shape={shape} for {explanation.n_players} players"
        raise InputError("A picture needs one player for each patch", got, "Pass (lines, columns) of the patches")
    grid = explanation[i].values[0].reshape(shape)
    ax = new_axes(5.2, 4.4) if ax is None else ax
    limit = float(np.abs(grid).max()) or 1.0
    extent = (0.0, float(shape[1]), float(shape[0]), 0.0)
    if image is not None:
        pixels = np.asarray(image, float)
        ax.imshow(pixels if pixels.ndim == 2 else pixels.mean(axis=2), cmap="gray", extent=extent)
    alpha = 1.0 if image is None else 0.25 + 0.65 * np.abs(grid) / limit
    shown = ax.imshow(
        grid, cmap=current_palette().values(), vmin=-limit, vmax=limit, extent=extent, alpha=alpha, interpolation="nearest"
    )
    ax.set_xticks([])
    ax.set_yticks([])
    ax.figure.colorbar(shown, ax=ax, label=escape(f"value ({explanation.unit})"))
    return fitted(ax, title=f"{row_name(explanation, i)}\n{game_words(rows)}", size=10)


@picture
def text(
    plot: Plotted, i: int = 0, words: Sequence[str] | None = None, *, output: int | str | None = None, ax: Axes = None
) -> Any:
    """Draw row ``i``'s values as colours behind words, one word per player."""
    rows = plot.one(output)
    explanation = readable(rows)
    if words is not None and not isinstance(words, Iterable):
        raise InputTypeError("`words` must be a list of texts", f"Got {type(words).__name__}")
    words = list(explanation.feature_names if words is None else words)
    if len(words) != explanation.n_players:
        got = f"Got {len(words)} words for {explanation.n_players} players"
        raise InputError("A text needs one word for each player", got)
    values = explanation[i].values[0]
    places = _set_in_lines([len(word) for word in words])
    n_lines = places[-1][0] + 1
    ax = new_axes(8.0, 0.34 * n_lines + 1.3) if ax is None else ax
    limit = float(np.abs(values).max()) or 1.0
    colours = current_palette().values()
    for word, value, (line, column) in zip(words, values, places, strict=True):
        back = colours(0.5 + 0.5 * value / limit)
        ink = "white" if np.dot(back[:3], (0.299, 0.587, 0.114)) < 0.5 else "black"
        box = {"facecolor": back, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
        ax.text(column, line, escape(word), family="monospace", fontsize=9, va="center", color=ink, bbox=box)
    ax.set_xlim(-1.0, LINE_WIDTH + 1.0)
    ax.set_ylim(n_lines - 0.4, -0.6)
    ax.set_axis_off()
    cm, norms = (require(f"matplotlib.{name}", "plots", purpose="Plotting") for name in ("cm", "colors"))
    shades = cm.ScalarMappable(norms.Normalize(-limit, limit), colours)
    scale = ax.figure.colorbar(shades, ax=ax, orientation="horizontal", aspect=50, shrink=0.6)
    scale.set_label(escape(f"value ({explanation.unit})"), fontsize=9)
    title = f"{row_name(explanation, i)}, {unit_words(explanation)}\n{game_words(rows)}"
    return fitted(ax, title=title, size=10)


def _set_in_lines(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the line and column of each word of a text.

    >>> _set_in_lines([40, 40, 3])
    [(0, 0), (1, 0), (1, 42)]
    """
    places, line, column = [], 0, 0
    for length in lengths:
        if column and column + length > LINE_WIDTH:
            line, column = line + 1, 0
        places.append((line, column))
        column += length + 2
    return places

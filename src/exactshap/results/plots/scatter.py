"""Draw values of one feature against its own cells: numbers, dates or categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap.errors import InputError
from exactshap.results.data import Cells, ExplanationData, axis_name, cells, near_one
from exactshap.results.plots._palette import current_palette
from exactshap.results.plots._pyplot import date_axis, draw_rings, escape, new_axes, shortened

_NAMES_SHOWN, _LETTERS, _JITTER = 30, 18, 0.25
# Rows used to choose a colour, and rows of one bin.
_ROWS_OF_CHOICE, _ROWS_OF_BIN = 5_000, 25


@dataclass(frozen=True, eq=False)
class Axis:
    """Hold the cells of one player as numbers."""

    name: str
    numbers: np.ndarray  # (n_rows,): NaN where missing; days since 1970 for dates; 0, 1, ... for categories
    kind: str  # {"number", "date", "text"}
    categories: tuple[str, ...] = ()  # what 0, 1, ... mean for text


@dataclass(frozen=True, eq=False)
class Scatter:
    """Hold what the picture shows; ``colour`` is None for one colour."""

    x: Axis
    colour: Axis | None
    values: np.ndarray
    feature: str
    unit: str


def prepare_scatter(explanation: ExplanationData, j: int, colour: int | None = None) -> Scatter:
    """Return player ``j``'s cells and values, and the cells of player ``colour`` for the colours."""
    shown = cells(explanation)
    if shown is None:
        raise InputError("A scatter plot needs the data", "This explanation has data=None", "Use plot.bar()")
    return Scatter(
        x=_axis(explanation, shown, j),
        colour=None if colour is None else _axis(explanation, shown, colour),
        values=np.asarray(explanation.values[:, j]),
        feature=explanation.feature_names[j],
        unit=explanation.unit,
    )


def _axis(explanation: ExplanationData, shown: Cells, j: int) -> Axis:
    name = axis_name(explanation, j)
    days = shown.days(j)
    if days is not None:
        return Axis(name, days, "date")
    categories = shown.categories(j)
    return Axis(name, shown.numbers[:, j], "text" if categories or not shown.numeric[j] else "number", categories)


def draw_scatter(prepared: Scatter, ax: Axes = None) -> Any:
    """Draw prepared values as dots, with rows of missing cells left of all others."""
    ax, colours = new_axes(6.5, 4.5) if ax is None else ax, current_palette()
    x, colour = prepared.x, prepared.colour
    known = np.isfinite(x.numbers)
    left = missing_place(x.numbers, is_text=x.kind == "text")
    places = np.where(known, x.numbers + _jitter(x), left + _missing_jitter(x))
    shown = np.ones(len(places), bool) if colour is None else np.isfinite(colour.numbers)
    shade: dict[str, Any] = (
        {"color": colours.neutral} if colour is None else {"c": colour.numbers[shown], "cmap": colours.cells()}
    )
    if not shown.all():
        draw_rings(ax, places[~shown], prepared.values[~shown], 14, colours.missing)
    dots = ax.scatter(places[shown], prepared.values[shown], s=14, alpha=0.8, linewidths=0, zorder=3, **shade)
    ax.axhline(0.0, color="gray", linewidth=0.7, zorder=1)
    _name_axis(ax.xaxis, x, letters=_LETTERS, turned=True)
    if colour is not None and shown.any():
        bar = ax.figure.colorbar(dots, ax=ax)
        bar.outline.set_visible(False)
        _name_axis(bar.ax.yaxis, colour, letters=_LETTERS, turned=False)
        bar.set_label(escape(shortened(colour.name, 40)))
    if not known.all():
        _name_missing(ax, x, left)
    missing = int((~known).sum())
    ax.set_xlabel(escape(f"{x.name}{f' (missing in {missing:,})' if missing else ''}"), fontsize=12)
    ax.set_ylabel(escape(f"value of {prepared.feature}\n(model output: {prepared.unit})"), fontsize=11)
    return ax


def missing_place(numbers: np.ndarray, *, is_text: bool) -> float:
    """Return a place left of all cells for missing ones."""
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return 0.0
    return float(known.min()) - (1.0 if is_text else 0.12 * (float(np.ptp(known)) or 1.0))


def _missing_jitter(axis: Axis) -> np.ndarray:
    known = axis.numbers[np.isfinite(axis.numbers)]
    width = _JITTER if axis.kind == "text" or not len(known) else 0.025 * (float(np.ptp(known)) or 1.0)
    return np.random.default_rng(1).uniform(-width, width, len(axis.numbers))


def _name_missing(ax: Axes, content: Axis, left: float) -> None:
    """Label the place of missing cells, and keep the labels of the others."""
    cells = content.numbers[np.isfinite(content.numbers)]
    if content.kind == "text":
        names = dict(zip(ax.get_xticks().tolist(), [label.get_text() for label in ax.get_xticklabels()], strict=True))
        ax.set_xticks([left, *names], ["missing", *names.values()])
        return
    ax.axvline(0.5 * (left + cells.min()) if len(cells) else 0.5, color="#d8dee4", linewidth=0.8, zorder=0)
    ax.annotate(
        "missing",
        (left, 0.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        fontsize=9,
    )


def strongest_colour(explanation: ExplanationData, j: int) -> int | None:
    r"""Return the player that explains ``j``'s values best at similar cells.

    Pairs of order 2 decide where the explanation has them: the largest mean magnitude. Otherwise rows are cut into bins along the
    cells of ``j``, and the squared correlations of values and cells within the bins are added up. It is no measure of interaction,
    but a player without any value of its own, such as an identifier, has none and is left out.
    """
    n, d = explanation.n_rows, explanation.n_players
    if d == 1:
        return None
    if explanation.order >= 2 and explanation.set_values is not None:
        strength = np.abs(explanation.interactions[:, j]).mean(axis=0)
        strength[j] = 0.0
        return int(strength.argmax()) if strength.any() else None
    # Evenly spaced rows are enough to choose a colour, and give the same one in every drawing.
    rows = np.arange(n) if n <= _ROWS_OF_CHOICE else np.linspace(0, n - 1, _ROWS_OF_CHOICE).astype(int)
    shown = cells(explanation, rows)
    if shown is None or len(rows) < 2:
        return None
    values, _ = near_one(explanation.values[rows, j])
    numbers = [near_one(column)[0] for column in shown.numbers.T]
    order = np.argsort(shown.numbers[:, j], kind="stable")
    candidates = np.flatnonzero(explanation.values.any(axis=0))
    strength = np.zeros(d)
    for part in np.array_split(order, max(1, len(rows) // _ROWS_OF_BIN)):
        for k in candidates[candidates != j]:
            strength[k] += len(part) * _squared_correlation(values[part], numbers[k][part])
    return int(strength.argmax()) if strength.any() else None


def _squared_correlation(values: np.ndarray, numbers: np.ndarray) -> float:
    known = np.isfinite(numbers)
    # Missing cells at the mean neither add to the correlation nor take away from it.
    filled = np.where(known, numbers, numbers[known].mean() if known.any() else 0.0)
    largest, centred = 0.0, values - values.mean()
    for column in (filled, known.astype(float)):
        other = column - column.mean()
        scale = (centred @ centred) * (other @ other)
        largest = max(largest, float((centred @ other) ** 2 / scale) if scale > 0 else 0.0)
    return largest


def _jitter(axis: Axis) -> np.ndarray | float:
    if axis.kind != "text" or len(axis.categories) > _NAMES_SHOWN:
        return 0.0
    return np.random.default_rng(0).uniform(-_JITTER, _JITTER, len(axis.numbers))


def _name_axis(axis: Axes, content: Axis, *, letters: int, turned: bool) -> None:
    """Label dates concisely and categories by some letters, of many every k-th."""
    if content.kind == "date":
        date_axis(axis)
    if content.kind == "text":
        codes = range(0, len(content.categories), -(-len(content.categories) // _NAMES_SHOWN) or 1)
        names = [escape(shortened(content.categories[code], letters)) for code in codes]
        crowded = turned and sum(map(len, names)) > 60
        axis.set_ticks(list(codes), names, **({"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}))

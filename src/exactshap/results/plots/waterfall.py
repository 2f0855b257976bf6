"""Draw the path from the baseline to the prediction of one row, the largest bar on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap._runtime.words import in_words
from exactshap.errors import InputError
from exactshap.results.data import ExplanationData, row_name
from exactshap.results.plots._columns import Shown, player_labels, signed
from exactshap.results.plots._palette import current_palette
from exactshap.results.plots._pyplot import escape, new_axes, room_at_tips, without_frame, write_at_tip

# Length of an arrow's head, as a fraction of the axis.
_HEAD = 0.012
# Room under the last bar for the name of the baseline, in bars.
_FOOT = 0.45


@dataclass(frozen=True, eq=False)
class Waterfall:
    """Hold what a waterfall shows, from top to bottom."""

    # "name = cell" by decreasing magnitude; the last one reads "12 other features" where features were put together
    labels: tuple[str, ...]
    # starts, values: (n_bars,): where each bar begins and how far it goes, in the unit of the model output. The path goes
    # from the bottom to the top.
    starts: np.ndarray
    values: np.ndarray
    baseline: float
    prediction: float
    # row, unit: the name of the row, and the unit of the values
    row: str
    unit: str


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


def draw_waterfall(prepared: Waterfall, ax: Axes = None) -> Any:
    """Draw a prepared waterfall; a value of zero has no bar."""
    n, colours = len(prepared.labels), current_palette()
    ax = new_axes(8.0, 0.42 * (n + _FOOT) + 1.9) if ax is None else ax
    ends = prepared.starts + prepared.values
    low, high = min(prepared.starts.min(), ends.min()), max(prepared.starts.max(), ends.max())
    texts = [signed(value, high - low) for value in prepared.values]
    space = room_at_tips(texts) * (high - low) or 0.05 * abs(high) or 1.0
    ax.set_xlim(low - space, high + space)
    head = _HEAD * (high - low + 2 * space)
    for place, (start, value, text) in enumerate(zip(prepared.starts, prepared.values, texts, strict=True)):
        colour = colours.of_sign(value)
        if value:
            ax.fill(*_arrow(start, value, place, head), color=colour, linewidth=0, zorder=2)
        write_at_tip(ax, text, start + value, place, is_left=value < 0, color=colour if value else "gray")
        ax.plot(
            [start] * 2, [place - 0.4, place + 1.4 if place < n - 1 else place + 0.6], color="#bbbbbb", linewidth=0.7, zorder=1
        )
    ax.set_yticks(range(n), [escape(label) for label in prepared.labels])
    ax.set_ylim(n - 0.4 + _FOOT, -0.6)
    _name_ends(prepared, ax)
    ax.set_xlabel(escape(f"{prepared.row} (model output: {prepared.unit})"), fontsize=11)
    return without_frame(ax)


def _arrow(start: float, value: float, place: int, head: float) -> tuple[list[float], list[float]]:
    end = start + value
    neck = end - np.sign(value) * min(head, abs(value))
    return [start, neck, end, neck, start], [place - 0.36, place - 0.36, place, place + 0.36, place + 0.36]


def _name_ends(prepared: Waterfall, ax: Axes) -> None:
    bottom = len(prepared.labels) - 0.4 + _FOOT
    for x in (prepared.prediction, prepared.baseline):
        ax.plot([x, x], [-0.6, bottom], color="gray", linestyle=":", linewidth=0.8, zorder=0)
    # Titles set later leave room for labels of an axis, not for texts
    over = ax.secondary_xaxis("top")
    over.set_xticks([prepared.prediction], [_named("f(x)", prepared.prediction)], fontsize=10)
    over.tick_params(length=0, pad=3)
    over.spines["top"].set_visible(False)
    named = _named(r"v(\emptyset)", prepared.baseline)
    ax.annotate(
        named, (prepared.baseline, bottom), xytext=(0, 4), textcoords="offset points", ha="center", va="bottom", fontsize=10
    )


def _named(name: str, value: float) -> str:
    return f"${name}$ = {in_words(value)}"

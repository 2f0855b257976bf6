"""Values of one feature against its own cells: numbers, dates or categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.types import Axes
from exactshap.errors import InputError, message
from exactshap.results.data import Cells, as_days, axis_name, cells
from exactshap.results.plots._columns import shortened
from exactshap.results.plots._pyplot import escape, new_axes

if TYPE_CHECKING:
    from exactshap.results.data import ExplanationData

__all__ = ["Axis", "Scatter", "draw_scatter", "prepare_scatter"]

_NAMES_SHOWN, _LETTERS, _JITTER = 30, 18, 0.25


@dataclass(frozen=True, eq=False)
class Axis:
    """The cells of one player as numbers.

    Attributes
    ----------
    name : str
    numbers : array of shape (n_rows,)
        NaN where missing; days since 1970 for dates; 0, 1, ... for categories.
    kind : {"number", "date", "text"}
    categories : tuple of str
        What 0, 1, ... mean for text.
    """

    name: str
    numbers: np.ndarray
    kind: str
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Scatter:
    """What the picture shows; ``colour`` is None for one colour."""

    x: Axis
    colour: Axis | None
    values: np.ndarray
    feature: str
    unit: str


def prepare_scatter(explanation: ExplanationData, j: int, colour: int | None = None) -> Scatter:
    """Return player ``j``'s cells and values, and the cells that colour them.

    Parameters
    ----------
    explanation : Explanation
        Of one output, with data.
    j : int
        A player.
    colour : int, optional
        Another player.

    Returns
    -------
    scatter : Scatter

    Raises
    ------
    InputError
        If the explanation holds no data.

    Examples
    --------
    >>> from exactshap import Explanation
    >>> explanation = Explanation(
    ...     values=[[1.0], [2.0]], baseline=[0.0] * 2, prediction=[1.0, 2.0], residual=[0.0] * 2, tolerance=1e-12,
    ...     feature_names=["city"], value_function="baseline", data=[["b"], ["a"]],
    ... )
    >>> prepare_scatter(explanation, 0).x
    Axis(name='city', numbers=array([1., 0.]), kind='text', categories=('a', 'b'))
    """
    shown = cells(explanation)
    if shown is None:
        raise InputError(message("A scatter plot needs the data", "This explanation has data=None", "Use plot.bar()"))
    return Scatter(
        x=_axis(explanation, shown, j),
        colour=None if colour is None else _axis(explanation, shown, colour),
        values=np.asarray(explanation.values[:, j]),
        feature=explanation.feature_names[j],
        unit=explanation.unit,
    )


def _axis(explanation: ExplanationData, shown: Cells, j: int) -> Axis:
    name = axis_name(explanation, j)
    if shown.numeric[j]:
        return Axis(name, shown.numbers[:, j], "number")
    days = as_days(shown.display[:, j])
    if days is not None:
        return Axis(name, days, "date")
    return Axis(name, shown.numbers[:, j], "text", tuple(sorted({text for text in shown.display[:, j] if text})))


def draw_scatter(prepared: Scatter, ax: Axes = None) -> Any:
    """Draw prepared values as dots; rows without a cell are left out, and counted under the axis.

    Parameters
    ----------
    prepared : Scatter
        Of :func:`prepare_scatter`.
    ax : matplotlib Axes, default=None
        None makes a new figure; nothing is shown.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from exactshap import Explanation
    >>> explanation = Explanation(
    ...     values=[[1.0, 2.0], [0.5, -1.0]], baseline=[0.5, 0.5], prediction=[3.5, 0.0], residual=[0.0, 0.0], tolerance=1e-12,
    ...     feature_names=["age", "bmi"], value_function="baseline", data=[[40.0, 21.0], [50.0, 30.0]],
    ... )
    >>> draw_scatter(prepare_scatter(explanation, 0)).get_xlabel()
    'age'
    """
    ax = new_axes(6.5, 4.5) if ax is None else ax
    x, colour = prepared.x, prepared.colour
    known = np.isfinite(x.numbers)
    places = x.numbers + _jitter(x)
    shade: dict[str, Any] = {"color": "#0b6bb3"} if colour is None else {"c": colour.numbers[known], "cmap": "viridis"}
    if colour is not None and not np.isfinite(shade["c"]).any():
        shade = {"color": "gray"}
    if colour is not None:
        gaps = known & ~np.isfinite(colour.numbers)
        ax.scatter(places[gaps], prepared.values[gaps], s=14, color="#bbbbbb", linewidths=0, zorder=2)
    dots = ax.scatter(places[known], prepared.values[known], s=14, alpha=0.8, linewidths=0, zorder=3, **shade)
    ax.axhline(0.0, color="gray", linewidth=0.7, zorder=1)
    _name_axis(ax.xaxis, x, letters=_LETTERS, turned=True)
    if colour is not None and "c" in shade:
        bar = ax.figure.colorbar(dots, ax=ax)
        bar.outline.set_visible(False)
        _name_axis(bar.ax.yaxis, colour, letters=_LETTERS, turned=False)
        bar.set_label(escape(shortened(colour.name, 40)))
    missing = int((~known).sum())
    ax.set_xlabel(escape(f"{x.name}{f' (missing in {missing}, not drawn)' if missing else ''}"), fontsize=12)
    ax.set_ylabel(escape(f"value of {prepared.feature}\n(model output: {prepared.unit})"), fontsize=11)
    return ax


def _jitter(axis: Axis) -> np.ndarray | float:
    """Return offsets that separate a category's dots, the same in every drawing."""
    if axis.kind != "text" or len(axis.categories) > _NAMES_SHOWN:
        return 0.0
    return np.random.default_rng(0).uniform(-_JITTER, _JITTER, len(axis.numbers))


def _name_axis(axis: Axes, content: Axis, *, letters: int, turned: bool) -> None:
    """Label dates as short as they can be, and shorten categories.

    Categories are cut to some letters; of many every k-th is labelled.
    """
    if content.kind == "date":
        dates = require("matplotlib.dates", "plots", purpose="Plotting")
        locator = dates.AutoDateLocator(maxticks=8)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))
    if content.kind == "text":
        codes = range(0, len(content.categories), -(-len(content.categories) // _NAMES_SHOWN) or 1)
        names = [escape(shortened(content.categories[code], letters)) for code in codes]
        crowded = turned and sum(map(len, names)) > 60
        axis.set_ticks(list(codes), names, **({"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}))

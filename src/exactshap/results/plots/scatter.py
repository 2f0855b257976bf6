"""Draw values of one feature against its cells, or over a curve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap.errors import InputError, InputTypeError
from exactshap.frames import as_table
from exactshap.results.data import (
    Axis,
    ExplanationData,
    axis,
    cells,
    game_title,
    in_order,
    index_title,
    near_one,
    picture,
    place_of,
    player_columns,
    readable,
)
from exactshap.results.plots._drawing import (
    Plotted,
    current_palette,
    date_axis,
    draw_rings,
    escape,
    fitted,
    game_words,
    in_lines,
    new_axes,
    shortened,
)

# Categories named on an axis, letters of each, and how far dots of one category are spread, as a fraction of their distance.
_NAMES_SHOWN, _LETTERS, _JITTER = 30, 18, 0.25
# Rows used to choose a colour, and rows of one bin.
_ROWS_OF_CHOICE, _ROWS_OF_BIN = 5_000, 25


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
        x=axis(explanation, shown, j),
        colour=None if colour is None else axis(explanation, shown, colour),
        values=np.asarray(explanation.values[:, j]),
        feature=explanation.feature_names[j],
        unit=explanation.unit,
    )


@picture
def scatter(
    plot: Plotted, feature: int | str, *, color: int | str | None = None, output: int | str | None = None, ax: Axes = None
) -> Any:
    """Draw a feature's values against its own numbers. Another feature may colour them.

    ``color="auto"`` takes the feature with values of its own that correlates most with the values at similar cells of ``feature``.
    """
    rows, do = plot.one(output), "Pass a name or a number: plot.scatter('age', color='sex')"
    player = place_of(feature, rows.feature_names, "feature", do)
    is_auto = color == "auto" and "auto" not in rows.feature_names
    other = None if color is None or is_auto else place_of(color, rows.feature_names, "feature", do)
    prepared = prepare_scatter(readable(rows), player, strongest_colour(rows, player) if is_auto else other)
    ax, colours = new_axes(6.5, 4.5) if ax is None else ax, current_palette()
    x, colour = prepared.x, prepared.colour
    known = np.isfinite(x.numbers)
    left = missing_place(x.numbers, is_text=x.kind == "text")
    random, aside = np.random.default_rng(0), np.random.default_rng(1)
    is_named = x.categories is not None and len(x.categories) <= _NAMES_SHOWN
    width = _JITTER if x.kind == "text" or not known.any() else 0.025 * (float(np.ptp(x.numbers[known])) or 1.0)
    jitter = random.uniform(-_JITTER, _JITTER, len(known)) if is_named else 0.0
    places = np.where(known, x.numbers + jitter, left + aside.uniform(-width, width, len(known)))
    shown = np.ones(len(places), bool) if colour is None else np.isfinite(colour.numbers)
    shade: dict[str, Any] = (
        {"color": colours.neutral} if colour is None else {"c": colour.numbers[shown], "cmap": colours.cells()}
    )
    if not shown.all():
        draw_rings(ax, places[~shown], prepared.values[~shown], 14, colours.missing)
    dots = ax.scatter(places[shown], prepared.values[shown], s=14, alpha=0.8, linewidths=0, zorder=3, **shade)
    ax.axhline(0.0, color="gray", linewidth=0.7, zorder=1)
    _name_axis(ax.xaxis, x, turned=True)
    if colour is not None and shown.any():
        bar = ax.figure.colorbar(dots, ax=ax)
        bar.outline.set_visible(False)
        _name_axis(bar.ax.yaxis, colour, turned=False)
        bar.set_label(escape(shortened(colour.name, 40)))
    if not known.all():
        _name_missing(ax, x, left)
    missing = int((~known).sum())
    ax.set_xlabel(escape(f"{x.name}{f' (missing in {missing:,})' if missing else ''}"), fontsize=12)
    ax.set_ylabel(escape(f"value of {prepared.feature}\n(model output: {prepared.unit})"), fontsize=11)
    return fitted(ax, title=game_words(rows))


def missing_place(numbers: np.ndarray, *, is_text: bool) -> float:
    """Return a place left of all cells for missing ones."""
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return 0.0
    return float(known.min()) - (1.0 if is_text else 0.12 * (float(np.ptp(known)) or 1.0))


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


def _name_axis(axis: Axes, content: Axis, *, turned: bool) -> None:
    """Label dates concisely and categories by some letters, of many every k-th."""
    if content.kind == "date":
        date_axis(axis)
    if content.categories is not None:
        codes = range(0, len(content.categories), -(-len(content.categories) // _NAMES_SHOWN) or 1)
        names = [escape(shortened(content.categories[code], _LETTERS)) for code in codes]
        crowded = turned and sum(map(len, names)) > 60
        axis.set_ticks(list(codes), names, **({"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}))


@dataclass(frozen=True, eq=False)
class Shape:
    """Hold what the picture of one feature shows."""

    axis: Axis  # the cells of the explained rows, then those of the curve's
    x: np.ndarray  # (n_points,): where each explained row lies
    values: np.ndarray  # (n_points,): its value
    curve_x: np.ndarray  # (n_curve,): the distinct places, ascending
    curve: np.ndarray  # (n_curve,): the shape function v({j}) - v(empty) there
    missing: float | None  # where rows without a value are drawn
    what: str
    unit: str
    game: str


def prepare_shape(explanation: ExplanationData, main_effects: ExplanationData, feature: int | str) -> Shape:
    r"""Put the values of one feature, of one column, over its shape function.

    .. math:: \text{curve}(x_j) = v_x(\{j\}) - v(\emptyset)
    """
    check_main_effects(main_effects)
    _check_pair(explanation, main_effects)
    j = _player(explanation, feature)
    both = _joint_axis(explanation, main_effects, j)
    missing = missing_place(both.numbers, is_text=both.kind == "text") if np.isnan(both.numbers).any() else None
    places, curve_places = np.split(np.where(np.isnan(both.numbers), missing or 0.0, both.numbers), [explanation.n_rows])
    curve_x, first = np.unique(curve_places, return_index=True)
    return Shape(
        axis=both,
        x=places,
        values=np.asarray(explanation.values[:, j]),
        curve_x=curve_x,
        curve=np.asarray(main_effects.values[first, j]),
        missing=missing,
        what=index_title(explanation.index),
        unit=explanation.unit,
        game=game_title(explanation),
    )


def _joint_axis(explanation: ExplanationData, other: ExplanationData, j: int) -> Axis:
    """Return a player's cells in both explanations, with the categories of both."""
    one, two = (axis(rows, shown, j) for rows in (explanation, other) if (shown := cells(rows)) is not None)
    if one.kind != "text" and two.kind != "text":
        return replace(one, numbers=np.concatenate([one.numbers, two.numbers]))
    table = as_table(explanation.data, allow_empty=True)
    texts = {*(one.categories or ()), *(two.categories or ())}
    categories = tuple(in_order(texts, table, player_columns(explanation, table)[j]))
    # Their own codes count their own categories only
    codes = [
        categories.index(part.categories[int(number)]) if np.isfinite(number) and part.categories else np.nan
        for part in (one, two)
        for number in part.numbers
    ]
    return replace(one, kind="text", numbers=np.array(codes, float), categories=categories)


def check_main_effects(main_effects: object) -> None:
    """Refuse what is no explanation of main effects."""
    what, do = "`main_effects` must hold v({j}) - v(empty)", 'Pass explainer(X, index="moebius")'
    if not isinstance(main_effects, ExplanationData):
        raise InputTypeError(what, f"Got {type(main_effects).__name__}", do)
    if main_effects.index != "moebius":
        raise InputError(what, f"Got index={main_effects.index!r}", do)


def _check_pair(explanation: ExplanationData, main_effects: ExplanationData) -> None:
    for item, name in ((explanation, "explanation"), (main_effects, "main_effects")):
        if item.n_outputs > 1 or item.output_names is not None:
            raise InputError(f"`{name}` must have one output", do=f"Choose one with {name}.output(name)")
        if item.data is None:
            raise InputError(f"`{name}` must hold its data", "Got data=None")
    for field in ("feature_names", "value_function", "unit"):
        ours, theirs = getattr(explanation, field), getattr(main_effects, field)
        if ours != theirs:
            raise InputError("`explanation` and `main_effects` must be of one model", f"Got {field} {ours!r} and {theirs!r}")


def _player(explanation: ExplanationData, feature: int | str) -> int:
    names = explanation.feature_names
    j = place_of(feature, names, "feature")
    if len((explanation.groups or {}).get(names[j], (0,))) != 1:
        raise InputError(f"A shape function needs one column, and {names[j]!r} is a group of several")
    return j


@picture
def shape(
    plot: Plotted, feature: int | str, main_effects: ExplanationData, *, output: int | str | None = None, ax: Axes = None
) -> Any:
    r"""Draw a feature's values over its shape function.

    .. math:: \text{curve}(x_j) = v_x(\{j\}) - v(\emptyset)

    ``main_effects`` are of the same model with ``index="moebius"``, on the same rows or on a grid of them. For an additive model
    without interactions the points lie on the curve; with interactions their distance is the feature's share of those.
    """
    rows = plot.one(output)
    check_main_effects(main_effects)
    shape = prepare_shape(rows, main_effects if output is None else main_effects.output(output), feature)
    ax, colours = new_axes(5.0, 3.6) if ax is None else ax, current_palette()
    alone = np.ones(len(shape.curve_x), bool) if shape.axis.kind == "text" else shape.curve_x == shape.missing
    ax.plot(shape.curve_x[~alone], shape.curve[~alone], color=colours.accent, zorder=2)
    ax.plot(shape.curve_x[alone], shape.curve[alone], color=colours.accent, linestyle="", marker="_", markersize=24, zorder=2)
    ax.scatter(shape.x, shape.values, s=12, color=colours.neutral, alpha=0.6, linewidths=0, zorder=3, label=shape.what)
    ax.plot([], [], color=colours.accent, label=r"alone: v({j}) - v(empty)")
    ax.axhline(0.0, color="gray", linewidth=0.7, zorder=1)
    _name_axis(ax.xaxis, shape.axis, turned=True)
    if shape.missing is not None:
        _name_missing(ax, shape.axis, shape.missing)
    ax.set_xlabel(in_lines(shape.axis.name))
    ax.set_ylabel(escape(f"{shape.what}\n({shape.unit})"))
    ax.set_title(escape(shape.game), fontsize=9)
    ax.legend(frameon=False, fontsize=8)
    return ax

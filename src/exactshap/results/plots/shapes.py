"""Draw shape functions, a column's main effect, with Shapley values over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap.errors import InputError, InputTypeError
from exactshap.frames import as_table
from exactshap.results.data import ExplanationData, cells, game_title, in_order, index_title, place_of, player_columns
from exactshap.results.plots._palette import current_palette
from exactshap.results.plots._pyplot import CATEGORY_WIDTH, escape, in_lines, new_axes, shortened
from exactshap.results.plots.scatter import missing_place


@dataclass(frozen=True, eq=False)
class Shape:
    """Hold what the picture of one feature shows."""

    name: str
    # x, values: (n_points,): where each explained row lies, and its value
    x: np.ndarray
    values: np.ndarray
    # curve_x, curve: (n_curve,): the shape function v({j}) - v(empty) at the distinct places, ascending
    curve_x: np.ndarray
    curve: np.ndarray
    categories: tuple[str, ...] | None  # the texts of x = 0, 1, 2, ...
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
    places, curve_places = _places(explanation, j), _places(main_effects, j)
    categories = None
    if places.dtype == object or curve_places.dtype == object:
        table = as_table(explanation.data, allow_empty=True)
        categories = tuple(in_order(map(str, (*places, *curve_places)), table, player_columns(explanation, table)[j]))
        places, curve_places = (_codes(texts, categories) for texts in (places, curve_places))
    both = np.concatenate([places, curve_places])
    missing = missing_place(both, is_text=categories is not None) if np.isnan(both).any() else None
    places, curve_places = (np.where(np.isnan(x), missing or 0.0, x) for x in (places, curve_places))
    curve_x, first = np.unique(curve_places, return_index=True)
    return Shape(
        name=explanation.feature_names[j],
        x=places,
        values=np.asarray(explanation.values[:, j]),
        curve_x=curve_x,
        curve=np.asarray(main_effects.values[first, j]),
        categories=categories,
        missing=missing,
        what=index_title(explanation.index),
        unit=explanation.unit,
        game=game_title(explanation),
    )


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


def _places(explanation: ExplanationData, j: int) -> np.ndarray:
    """Return the feature's numbers, or its texts as objects ("" where missing)."""
    content = cells(explanation)
    assert content is not None
    return content.numbers[:, j] if content.numeric[j] else content.display[:, j]


def _codes(texts: np.ndarray, categories: tuple[str, ...]) -> np.ndarray:
    return np.array([categories.index(str(text)) if text != "" else np.nan for text in texts], float)


def draw_shape(shape: Shape, ax: Axes = None) -> Any:
    """Draw a shape: one feature's values over its shape function."""
    ax, colours = new_axes(5.0, 3.6) if ax is None else ax, current_palette()
    alone = shape.curve_x == shape.missing if shape.categories is None else np.ones(len(shape.curve_x), bool)
    ax.plot(shape.curve_x[~alone], shape.curve[~alone], color=colours.accent, zorder=2)
    ax.plot(shape.curve_x[alone], shape.curve[alone], color=colours.accent, linestyle="", marker="_", markersize=24, zorder=2)
    ax.scatter(shape.x, shape.values, s=12, color=colours.neutral, alpha=0.6, linewidths=0, zorder=3, label=shape.what)
    ax.plot([], [], color=colours.accent, label=r"alone: v({j}) - v(empty)")
    ax.axhline(0.0, color="gray", linewidth=0.7, zorder=1)
    _name_places(shape, ax)
    ax.set_xlabel(in_lines(escape(shape.name)))
    ax.set_ylabel(escape(f"{shape.what}\n({shape.unit})"))
    ax.set_title(escape(shape.game), fontsize=9)
    ax.legend(frameon=False, fontsize=8)
    return ax


def _name_places(shape: Shape, ax: Axes) -> None:
    """Label categories under the axis, and "missing" where such rows are."""
    if shape.categories is None and shape.missing is None:
        return
    if shape.categories is not None:
        names = {float(code): name for code, name in enumerate(shape.categories)}
    else:
        apart = shape.missing + 0.1 * np.ptp(shape.curve_x)
        names = {float(x): f"{x:g}" for x in ax.get_xticks() if apart < x <= ax.get_xlim()[1]}
    if shape.missing is not None:
        names[shape.missing] = "missing"
    ax.set_xticks(list(names), [escape(shortened(name, CATEGORY_WIDTH)) for name in names.values()])

"""Prepare what the static page shows, and draw its pictures as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.words import in_words
from exactshap.results.data import Axis, ExplanationData, Observed, axis, cells, readable, row_name
from exactshap.results.plots import Shown, cell_words, places_of, player_labels, shortened, shortened_apart, swarm_offsets
from exactshap.results.report import _svg as svg
from exactshap.results.report._words import N_SHADES

_DEPENDENCES = 6  # features of an output that are drawn against their cells
_PLACES = {0.0: "lowest", 0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile", 1.0: "highest"}
# Pixels: height of a line of a beeswarm or of its bars, radius of a dot, height of a line of other bars.
_ROW, _DOT, STEP = 34.0, 2.2, 27.0
# Letters of a name next to a picture.
_LETTERS = 30


@dataclass(frozen=True, eq=False)
class Row:
    title: str
    caption: str
    labels: tuple[str, ...]  # "name = cell" by decreasing magnitude; the last one may stand for the rest
    values: np.ndarray  # (n_bars,): length of each bar, in the unit of the model output
    starts: np.ndarray  # (n_bars,): where it begins
    # (n_bars,): standard errors of sampled values, or standard deviations under a probabilistic model; NaN for the rest
    errors: np.ndarray | None
    baseline: float  # v(empty)
    total: float  # the model's prediction
    additive: bool  # whether baseline + values is the prediction
    response: str = ""  # the prediction in a readable unit, such as "probability 0.8"; "" if it has one already


@dataclass(frozen=True, eq=False)
class Pairs:
    """Hold mean magnitudes over all rows: a matrix of the strongest players, and the strongest pairs."""

    names: tuple[str, ...]
    matrix: np.ndarray
    strongest: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True, eq=False)
class Content:
    names: tuple[str, ...]
    n_left_out: int
    strength: np.ndarray
    error: np.ndarray | None
    mean: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    values: np.ndarray
    numbers: np.ndarray | None
    dependences: tuple[tuple[Axis, np.ndarray], ...]  # cells and values of a player on the drawn rows
    rows: tuple[Row, ...]
    pairs: Pairs | None
    errors: dict[str, Any] | None  # summaries, and the rows with the largest: (row, observed, predicted, error)


def content(
    explanation: ExplanationData,
    *,
    drawn: np.ndarray,
    max_display: int,
    n_rows: int,
    observed: Observed | None = None,
    response: tuple[str, np.ndarray] | None = None,
) -> Content:
    """Prepare a single-output explanation; ``drawn`` are the rows that beeswarms and dependence plots show.

    ``response`` has a name and one number per row: the predictions in a readable unit.
    """
    explanation = readable(explanation)
    strength = np.abs(explanation.values).mean(axis=0)
    order = np.argsort(-strength, kind="stable")[:max_display]
    shown = cells(explanation, drawn)
    values = explanation.values[drawn]
    numbers = None if shown is None else np.where(shown.numeric, shown.numbers, np.nan)[:, order]
    rows = explanation.values[:, order]
    return Content(
        names=tuple(explanation.feature_names[j] for j in order),
        n_left_out=explanation.n_players - len(order),
        strength=strength[order],
        error=None if explanation.std_error is None else explanation.std_error.mean(axis=0)[order],
        mean=rows.mean(axis=0),
        lowest=rows.min(axis=0),
        highest=rows.max(axis=0),
        values=values[:, order],
        numbers=numbers,
        dependences=tuple((axis(explanation, shown, int(j)), values[:, j]) for j in order[:_DEPENDENCES]) if shown else (),
        rows=tuple(
            _row(explanation, i, caption, max_display, response) for i, caption in _chosen(explanation, n_rows, observed)
        ),
        pairs=_pairs(explanation),
        errors=None if observed is None else _errors(explanation, observed),
    )


def choose_rows(prediction: np.ndarray, wanted: int = 5) -> list[tuple[int, str]]:
    """Return rows at the quantiles 0, 1/4, 1/2, 3/4 and 1 of the predictions, with their names.

    >>> import numpy as np
    >>> choose_rows(np.array([3.0, 1.0, 2.0]), wanted=3)
    [(1, 'lowest'), (2, 'median'), (0, 'highest')]
    """
    order = np.argsort(prediction, kind="stable")
    if not len(order) or wanted < 1:
        return []
    shares = np.linspace(0.0, 1.0, wanted) if wanted > 1 else np.array([0.5])
    chosen: dict[int, str] = {}
    for share in shares.tolist():
        chosen.setdefault(int(order[round(share * (len(order) - 1))]), _PLACES.get(share, f"{share:.0%} quantile"))
    return list(chosen.items())


def _chosen(explanation: ExplanationData, n_rows: int, observed: Observed | None) -> list[tuple[int, str]]:
    """Return the row with the largest known error, then rows spread over the predictions."""
    spread = {i: f"{place} prediction" for i, place in choose_rows(explanation.prediction, n_rows)}
    if observed is None or not spread or np.isnan(observed.error).all():
        return list(spread.items())
    worst = int(np.nanargmax(np.abs(observed.error)))
    words = f"largest error, {in_words(observed.error[worst])}"
    caption = f"{words}; {spread.pop(worst)}" if worst in spread else words
    return [(worst, caption), *spread.items()]


def _errors(explanation: ExplanationData, observed: Observed, shown: int = 5) -> dict[str, Any] | None:
    size = np.abs(observed.error)
    if np.isnan(size).all():
        return None
    predicted = explanation.prediction if observed.response is None else observed.response
    largest = [int(i) for i in np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")[:shown] if not np.isnan(size[i])]
    return {
        "sentence": observed.sentence,
        "predicted": observed.response_name,
        "mean": float(np.nanmean(size)),
        "largest": [(row_name(explanation, i), observed.target[i], predicted[i], observed.error[i]) for i in largest],
    }


def _row(
    explanation: ExplanationData, i: int, caption: str, max_display: int, response: tuple[str, np.ndarray] | None = None
) -> Row:
    row = explanation[i]
    values, errors = row.values[0], row.std_error if row.std_error is not None else row.std
    shown = Shown.of(np.abs(values), max_display)
    lengths = shown.values(values)
    additive, baseline = explanation.additive, float(row.baseline[0])
    ends = baseline + np.cumsum(lengths)
    return Row(
        title=row_name(explanation, i),
        caption=caption,
        labels=(*player_labels(row, shown.single), *shown.name_of_rest()),
        values=lengths,
        starts=np.concatenate([[baseline], ends[:-1]]) if additive else np.zeros(len(lengths)),
        errors=None if errors is None else shown.known(errors[0]),
        baseline=baseline,
        total=float(row.prediction[0]),
        response="" if response is None else f"{response[0]} {in_words(float(response[1][i]))}",
        additive=additive,
    )


def _pairs(explanation: ExplanationData, shown: int = 10) -> Pairs | None:
    if explanation.set_values is None or explanation.sets is None:
        return None
    means = np.abs(explanation.set_values).mean(axis=0)
    matrix = np.diag(means[: explanation.n_players])
    sets = zip(explanation.sets, means.tolist(), strict=True)
    pairs = [(players[0], players[1], mean) for players, mean in sets if len(players) == 2]
    for j, k, mean in pairs:
        matrix[j, k] = matrix[k, j] = mean
    order: Sequence[int] = np.argsort(-matrix.sum(axis=1), kind="stable")[:shown].tolist()
    names = explanation.feature_names
    strongest = sorted(pairs, key=lambda pair: -pair[2])[:shown]
    return Pairs(
        names=tuple(names[j] for j in order),
        matrix=matrix[np.ix_(order, order)],
        strongest=tuple((names[j], names[k], mean) for j, k, mean in strongest),
    )


def shades(numbers: np.ndarray) -> np.ndarray:
    """Return each number's class 0..8 between the 5th and 95th percentile, -1 if missing.

    >>> import numpy as np
    >>> shades(np.array([0.0, 5.0, 10.0, np.nan]))
    array([ 0,  4,  8, -1])
    """
    places = places_of(numbers)
    return np.where(np.isfinite(places), np.rint(np.nan_to_num(places) * (N_SHADES - 1)), -1).astype(int)


def beeswarm(values: np.ndarray, numbers: np.ndarray | None, names: Sequence[str], *, label: str) -> str:
    """Draw one dot per row and feature, coloured by the cell."""
    left, width, top = label_room(names), 590.0, 8.0
    height = top + _ROW * len(names)
    scale = svg.Scale.over(values, left, width - 12, include=0.0)
    parts = [svg.axis(scale, height, label=label, top=top)]
    for j, (name, short) in enumerate(zip(names, shortened_apart(names, _LETTERS), strict=True)):
        middle = top + _ROW * (j + 0.5)
        parts += [
            svg.line(left, middle, width - 12, middle, "row"),
            svg.text(left - 10, middle + 4, short, anchor="end", title=name),
        ]
        x = scale(values[:, j])
        y = middle + swarm_offsets(x, _DOT, 0.46 * _ROW)
        shade = np.full(len(x), -1) if numbers is None else shades(numbers[:, j])
        parts += [svg.dots(x[shade == k], y[shade == k], f"q{k}" if k >= 0 else "qx") for k in range(-1, N_SHADES)]
    return svg.figure(width, height + 40, parts, label=f"Beeswarm of {label}")


def bars(strength: np.ndarray, names: Sequence[str], error: np.ndarray | None, *, label: str) -> str:
    """Draw mean magnitudes as bars, with whiskers where there is an error."""
    left, width, top = label_room(names), 480.0, 8.0
    height = top + _ROW * len(names)
    places = svg.decimals(strength)
    longest = strength if error is None else strength + error
    scale = svg.Scale(0.0, 1.18 * float(longest.max(initial=0.0)) or 1.0, left, width - 12)
    parts = [svg.axis(scale, height, label=label, top=top, wanted=4)]
    for j, (name, short) in enumerate(zip(names, shortened_apart(names, _LETTERS), strict=True)):
        y, end = top + _ROW * j, float(scale(strength[j]))
        tip = end
        parts += [
            svg.text(left - 10, y + _ROW / 2 + 4, short, anchor="end", title=name),
            svg.rectangle(left, y + 7, end - left, _ROW - 14, "bar", title=f"{name}: {svg.fixed(strength[j], places)}"),
        ]
        if error is not None:
            low, tip = float(scale(max(strength[j] - error[j], 0.0))), float(scale(strength[j] + error[j]))
            parts.append(svg.line(low, y + _ROW / 2, tip, y + _ROW / 2, "whisker"))
        parts.append(svg.text(tip + 6, y + _ROW / 2 + 4, svg.fixed(strength[j], places), style="value"))
    return svg.figure(width, height + 40, parts, label=f"Bars of {label}")


def difference_bars(
    values: np.ndarray, intervals: np.ndarray, limits: np.ndarray | None, names: Sequence[str], *, label: str
) -> str:
    """Draw values as bars around zero, with their intervals and, dashed, their thresholds."""
    left, width, top = label_room(names), 560.0, 4.0
    height = top + STEP * len(names)
    marks = [] if limits is None else [-limits, limits]
    scale = svg.Scale.over(np.concatenate([values, intervals.ravel(), *marks]), left, width - 12, include=0.0)
    parts = [svg.axis(scale, height, label=shortened(label, 70), top=top, wanted=4)]
    for j, name in enumerate(names):
        y, style = top + STEP * j, "bar" if limits is None else "positive" if values[j] > 0 else "negative"
        parts += bar_from_zero(name, values[j], intervals[j], y, scale, style)
        for mark in marks:
            x = float(scale(mark[j]))
            parts.append(svg.line(x, y + 2, x, y + STEP - 2, "total"))
    return svg.figure(width, height + 40, parts, label=f"Bars of {label}")


def bar_from_zero(name: str, value: float, interval: np.ndarray, y: float, scale: svg.Scale, style: str = "bar") -> list[str]:
    """Draw a name, a bar from zero to its value, and the interval where it is known."""
    zero, end, middle = float(scale(0.0)), float(scale(value)), y + STEP / 2
    parts = [
        svg.text(scale.start - 10, middle + 4, shortened(name, _LETTERS), anchor="end", title=name),
        svg.rectangle(zero, y + 5, end - zero, STEP - 10, style, title=f"{name}: {in_words(value)}"),
    ]
    if np.isfinite(interval).all():
        low, high = (float(x) for x in scale(interval))
        parts.append(svg.line(low, middle, high, middle, "whisker"))
    return parts


def dependence(
    x: np.ndarray, values: np.ndarray, name: str, categories: Sequence[str] | None, *, label: str, dates: bool = False
) -> str:
    """Draw one feature's values against its numbers, dates or categories."""
    width, height, left, top = 345.0, 215.0, 52.0, 10.0
    missing = ~np.isfinite(x)
    start = left + (40 if missing.any() else 0)  # a tick at the start stays clear of the word below
    across = svg.Scale.over(x, start, width - 10)
    n_categories = max(len(categories or ()), 1)  # empty where all cells are missing
    if categories is not None:
        across = svg.Scale(-0.5, n_categories - 0.5, start, width - 10)
    up = svg.Scale.over(values, height, top, include=0.0)
    parts = [_vertical_axis(up, left, width - 10)]
    depth = 40.0
    if categories is None:
        write = svg.date if dates else cell_words
        parts.append(svg.axis(across, height, label=shortened(name, 40), top=height - 4, wanted=4, write=write))
        spread = _category_offsets(x, values, 8.0) if len(np.unique(x)) <= 10 else np.zeros(len(x))
    else:
        words, depth = svg.category_axis(across, height, name, categories)
        parts.append(words)
        spread = _category_offsets(x, values, 0.4 * (across.stop - across.start) / n_categories)
    seen = ~missing
    parts.append(svg.dots(across(x[seen]) + spread[seen], up(values[seen]), "point"))
    if missing.any():
        parts.append(svg.dots(np.full(missing.sum(), left + 12), up(values[missing]), "qx"))
        parts.append(svg.text(left + 12, height + 15, "missing", anchor="middle", style="tick"))
    return svg.figure(width, height + depth, parts, label=f"{label} of {name} against {name}")


def _category_offsets(x: np.ndarray, values: np.ndarray, room: float) -> np.ndarray:
    offsets = np.zeros(len(x))
    for code in np.unique(x[np.isfinite(x)]):
        chosen = x == code
        offsets[chosen] = swarm_offsets(values[chosen], _DOT, room, bins=60)
    return offsets


def row_bars(row: Row, *, label: str) -> str:
    """Draw a row's path from baseline to prediction. Bars start at zero if the values do not add up."""
    words = _row_words(row)
    left, step, top, width = max(label_room(row.labels), 90.0), 23.0, 4.0, 500.0
    height = top + step * (len(row.labels) + 2 * row.additive) + 4
    points = np.concatenate([row.starts, row.starts + row.values])
    scale = svg.Scale.over(points, left, width - max(svg.text_width(words, 11.5), 40.0) - 12, margin=0.04)
    parts = [svg.axis(scale, height, label=label, top=top, wanted=4)]
    if row.additive:
        parts += _end_mark("baseline", row, row.baseline, top, step, scale, width)
        parts += _end_mark("prediction", row, row.total, height - 4 - step, step, scale, width)
    for j, (word, short) in enumerate(zip(words, shortened_apart(row.labels, _LETTERS), strict=True)):
        parts += _row_bar(row, j, short, word, top + step * (j + row.additive), step, scale, width)
    return svg.figure(width, height + 40, parts, label=f"Values of {row.title}")


def _places(row: Row) -> int:
    """Return decimals that suit the baseline, up to three more for much smaller values."""
    own = svg.decimals(row.values)
    if not row.additive:
        return own
    ends = svg.decimals([row.baseline, row.total])
    return min(max(own, ends), ends + 3) if min(own, ends) >= 0 else -1


def _row_words(row: Row) -> list[str]:
    words = [svg.fixed(value, _places(row), sign=True) for value in row.values]
    if row.errors is None:
        return words
    # An error of 0 is within rounding
    errors = [f" ± {in_words(float(f'{error:.2g}'))}" if np.isfinite(error) and error else "" for error in row.errors]
    return [word + error for word, error in zip(words, errors, strict=True)]


def _row_bar(row: Row, j: int, short: str, words: str, y: float, step: float, scale: svg.Scale, width: float) -> list[str]:
    start, end = float(scale(row.starts[j])), float(scale(row.starts[j] + row.values[j]))
    style = "positive" if row.values[j] >= 0 else "negative"
    parts = [
        svg.text(scale.start - 10, y + step / 2 + 4, short, anchor="end", title=row.labels[j]),
        svg.text(width - 2, y + step / 2 + 4, words, anchor="end", style="value"),
    ]
    if row.values[j]:  # a value of zero has no bar
        parts.append(svg.rectangle(start, y + 4, end - start, step - 8, style, title=f"{row.labels[j]}: {words}"))
    if row.additive:
        parts += [svg.line(start, y - 4, start, y + 4, "link"), svg.line(end, y + step - 4, end, y + step + 4, "link")]
    return parts


def _end_mark(name: str, row: Row, value: float, y: float, step: float, scale: svg.Scale, width: float) -> list[str]:
    x, middle = float(scale(value)), y + step / 2 + 4
    return [
        svg.text(scale.start - 10, middle, name, anchor="end", style="strong"),
        svg.line(x, y + 4, x, y + step - 4, "mark"),
        svg.text(width - 2, middle, svg.fixed(value, _places(row)), anchor="end", style="value strong"),
    ]


def matrix(cells: np.ndarray, names: Sequence[str], *, label: str) -> str:
    """Draw a symmetric matrix of magnitudes, with uncoloured values on the diagonal."""
    n, left = len(names), label_room(names, length=24)
    words = [in_words(float(f"{value:.2g}")) for value in cells.ravel()]
    size = max(46.0, svg.text_width(words, 11.0) + 6.0)
    top = left * 0.62 + 10
    limit = float(np.abs(cells - np.diag(np.diag(cells))).max(initial=0.0)) or 1.0
    parts = []
    for row, short in enumerate(shortened_apart(names, 24)):
        parts.append(svg.text(left - 8, top + size * (row + 0.5) + 4, short, anchor="end", title=names[row]))
        x, y = left + size * (row + 0.5), top - 8
        turned = svg.text(0, 0, short, title=names[row])
        parts.append(f'<g transform="translate({x:.1f} {y:.1f}) rotate(-38)">{turned}</g>')
        for column in range(n):
            strength = 0.0 if row == column else abs(float(cells[row, column])) / limit
            x, y, side = left + size * column, top + size * row, f"{size - 2:.0f}"
            kind, style = "cell own" if row == column else "cell", "value dark" if strength > 0.65 else "value"
            place = f'x="{x:.1f}" y="{y:.1f}" width="{side}" height="{side}"'
            parts.append(f'<rect {place} class="{kind}" fill-opacity="{strength:.2f}"/>')
            word = words[row * n + column]
            parts.append(svg.text(x + size / 2 - 1, y + size / 2 + 3, word, anchor="middle", style=style))
    width, height = left + size * n + left * 0.8, top + size * n
    return svg.figure(width, height + 8, parts, label=label)


def label_room(names: Sequence[str], *, length: int = _LETTERS) -> float:
    return min(svg.text_width(shortened_apart(names, length)) + 16, 260.0)


def _vertical_axis(scale: svg.Scale, left: float, right: float) -> str:
    parts = [svg.line(left, scale.start, left, scale.stop, "axis")]
    for tick in scale.ticks(4):
        y = float(scale(tick))
        parts += [svg.line(left, y, right, y, "zero" if tick == 0 else "grid")]
        parts += [svg.text(left - 5, y + 4, in_words(tick), anchor="end", style="tick")]
    return "".join(parts)

"""Write prediction and values of a row as HTML, before and after changes."""

from __future__ import annotations

from html import escape

import numpy as np

from exactshap._runtime.words import in_words
from exactshap.results.data import cells, counted, game_sentence, readable, response
from exactshap.results.explanation import Explanation
from exactshap.results.report import Scale, minus_signs

_OUTPUTS_SHOWN, _PLAYERS_SHOWN = 4, 30


def answer_html(
    explanation: Explanation, milliseconds: float, i: int, baseline_row: int | None, before: Explanation | None = None
) -> str:
    """Return prediction, values and certificate of row ``i`` as HTML. Names are escaped.

    ``milliseconds`` is the time of the explanation, ``baseline_row`` the row of comparison; ``before`` explains the row as it
    was, None if nothing was changed.
    """
    known = response(explanation)
    was_known = None if before is None else response(before)
    parts = []
    outputs, several = explanation.output_names or ("",), explanation.output_names is not None
    for k, name in enumerate(outputs[:_OUTPUTS_SHOWN]):
        view = explanation.output(k) if several else explanation
        was = before if before is None or not several else before.output(k)
        of = f" of {name}" if several else ""
        parts.append(_head(view, was, of, _response(known, k), _response(was_known, k)) + _waterfall(view, was))
    if more := outputs[_OUTPUTS_SHOWN:]:
        others = f"Not shown: {counted(len(more), 'output')} ({', '.join(more)}). Choose one with output= or --model-output."
        parts.append(f"<p class='fact' id='others'>{escape(others)}</p>")
    return "".join(parts) + _facts(explanation, milliseconds, i, baseline_row)


def _response(known: tuple[str, np.ndarray] | None, k: int) -> str:
    """Return the prediction in a readable unit, such as "probability 0.8". It is "" if the unit is readable already."""
    return "" if known is None else f"{known[0]} {np.ravel(known[1])[k]:.4g}"


def _facts(explanation: Explanation, milliseconds: float, i: int, baseline_row: int | None) -> str:
    certificate = explanation.certificate()
    verdict = "" if certificate.passed else " class='failed'"
    against = f"row {baseline_row}" if baseline_row is not None else f"{explanation.background_size or 'no'} background rows"
    sentence = game_sentence(explanation)
    return (
        f"<details class='fact' id='facts'><summary>row {i} against {against}; certificate "
        f"<span{verdict}>{'passed' if certificate.passed else 'FAILED'}</span></summary>"
        f"{escape(explanation.value_function)}: {escape(sentence)}<br><span{verdict}>{escape(str(certificate))}</span>"
        f"<br>computed in <span id='ms'>{milliseconds:.1f}</span> ms</details>"
    )


def _head(view: Explanation, was: Explanation | None, of: str, response: str, was_response: str) -> str:
    people = readable(view)
    prediction = f"<strong id='prediction' data-value='{float(view.prediction[0])!r}'>{_six(people.prediction[0])}</strong>"
    also = f", <strong>{response}</strong>" if response else ""
    line = f"Prediction{escape(of)}: {prediction}{also} <small>({escape(view.unit)})</small>"
    if was is not None:
        before = minus_signs(f"{_six(readable(was).prediction[0])}{', ' + was_response if was_response else ''}")
        line += f"<br><small id='was'>was {before}</small>"
    start = f"baseline <span id='baseline' data-value='{float(view.baseline[0])!r}'>{_six(people.baseline[0])}</span>"
    spread = "errors" if view.std_error is not None else "deviations under the model" if view.std is not None else ""
    return f"<h3>{line}</h3><p class='fact' style='margin:0'>{start}{'; ± are standard ' + spread if spread else ''}</p>"


def _waterfall(view: Explanation, was: Explanation | None) -> str:
    """Return a table with a bar per player. The smallest of many share the last one."""
    values, start = readable(view).values[0], float(readable(view).baseline[0])
    order = np.argsort(-np.abs(values), kind="stable")
    top, rest = np.split(order, [_PLAYERS_SHOWN - 1 if len(order) > _PLAYERS_SHOWN else len(order)])
    bars, lines = values[top], _lines(view, was, top)
    if rest.size:
        bars = np.append(bars, values[rest].sum())
        name = counted(len(rest), "other feature")
        lines.append(f"<tr><td class='n'>{name}</td><td class='v'>{in_words(bars[-1], sign='+')}</td>")
    ends = start + np.cumsum([0.0, *bars])
    scale = Scale.over(ends, 0.0, 100.0)
    places = [(in_words(tick), f"left:{float(scale(tick)):.2f}%") for tick in scale.ticks(4)]
    ticks = "".join(f"<i class='tick' style='{place}'></i>" for _, place in places)
    rows = []
    for k, line in enumerate(lines):
        first, last = sorted((float(scale(ends[k])), float(scale(ends[k + 1]))))
        where = f"left:{first:.2f}%;width:{max(0.3, last - first):.2f}%"
        bar = f"<div class='bar {'up' if bars[k] > 0 else 'down'}' style='{where}'></div>" if bars[k] else ""
        rows.append(f"{line}<td class='t'>{ticks}{bar}</td></tr>")
    marks = "".join(f"<i class='tick' style='{place}'></i><span style='{place}'>{text}</span>" for text, place in places)
    rows.append(f"<tr class='axis' aria-hidden='true'><td class='n'></td><td class='v'></td><td class='t'>{marks}</td></tr>")
    return f"<table class='waterfall'>{''.join(rows)}</table>"


def _lines(view: Explanation, was: Explanation | None, players: np.ndarray) -> list[str]:
    """Return the first cells of each player's row: its name, value and error, and what both were."""
    values, here, before = readable(view).values[0], _cells(view), [] if was is None else _cells(was)
    earlier = values if was is None else readable(was).values[0]
    spread = view.std if view.std_error is None else view.std_error
    lines = []
    for j in players:
        name = view.feature_names[j]
        label = escape(f"{name} = {here[j]}" if here else name)
        if here and before and before[j] != here[j]:
            label += f"<small>was {escape(before[j])}</small>"
        then = "" if earlier[j] == values[j] else f"<small>was {in_words(earlier[j], sign='+')}</small>"
        error = f"<small>± {in_words(float(f'{spread[0, j]:.2g}'))}</small>" if spread is not None and spread[0, j] else ""
        lines.append(
            f"<tr data-name='{escape(name)}'><td class='n'>{label}</td>"
            f"<td class='v' data-value='{float(view.values[0, j])!r}'>{in_words(values[j], sign='+')}{error}{then}</td>"
        )
    return lines


def _six(value: float) -> str:
    return in_words(value, digits=6)


def _cells(view: Explanation) -> list[str]:
    """Return a row's cells as text, nothing without data."""
    shown = cells(view)
    if shown is None:
        return []
    return [
        (text if isinstance(text, str) else "" if text != text else _six(float(text))) or "missing" for text in shown.display[0]
    ]

"""What is on the page, and what each move does."""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
from shiny import reactive, render, req, ui

from exactshap._runtime.types import Foreign
from exactshap.app._session import WhatIf
from exactshap.errors import ExactshapError
from exactshap.results.data import readable, value_function_sentence

__all__ = ["page", "server"]

_STYLE = """
.waterfall{border-collapse:collapse;width:100%} .waterfall td{padding:2px 6px} .waterfall .v{text-align:right;width:6em}
.waterfall .t{position:relative;width:60%;min-width:120px} .bar{position:absolute;height:60%;top:20%}
.up{background:#c44e52}.down{background:#4c72b0} .fact{color:var(--bs-secondary-color);font-size:.9em}
.failed{color:var(--bs-danger-text-emphasis);font-weight:bold}
@media(max-width:600px){.waterfall{table-layout:fixed} .waterfall td:first-child{width:42%;overflow-wrap:anywhere}
.waterfall .v{width:26%} .waterfall .t{width:32%;min-width:0}}
"""
_ROWS_SHOWN = 500


def page(what_if: WhatIf) -> Any:
    """Return the page: controls of the row at the left, prediction and values at the right, the data below."""
    controls = [
        _control(j, control, cell) for (j, control), cell in zip(enumerate(what_if.controls), what_if.cells(0), strict=True)
    ]
    background = what_if.background is not None
    filters = (
        [
            ui.input_text("where", "Background rows", placeholder="age > 40 and sex = F"),
            ui.input_action_button("apply", "Apply"),
            ui.output_ui("slip"),
        ]
        if background
        else []
    )
    choose = ui.input_radio_buttons("click", "A click on a row", {"row": "explains it", "baseline": "compares with it"})
    return ui.page_sidebar(
        ui.sidebar(
            ui.input_dark_mode(id=None),
            choose,
            ui.input_action_button("no_baseline", "Compare with the background" if background else "Compare with no row"),
            *filters,
            ui.hr(),
            *controls,
            width=340,
        ),
        ui.head_content(ui.tags.link(rel="icon", href="data:,")),
        ui.tags.style(_STYLE),
        ui.output_ui("answer"),
        ui.card(ui.card_header("Rows: click one"), ui.output_data_frame("rows"), height="320px"),
        title="exactshap: what if",
        lang="en",
    )


def _control(j: int, control: dict[str, Any], cell: Any) -> Any:
    if "choices" in control:
        choices = {str(k): str(choice) for k, choice in enumerate(control["choices"])}
        return ui.input_select(f"c{j}", control["name"], choices, selected=_held(control, cell))
    low, high, step = (control[name] for name in ("low", "high", "step"))
    return ui.input_slider(f"c{j}", _label(control, cell), low, high, _held(control, cell), step=step)


def _label(control: dict[str, Any], cell: Any) -> str:
    return f"{control['name']} (missing)" if cell is None else str(control["name"])


def _held(control: dict[str, Any], cell: Any) -> Any:
    """Return what a control holds that shows a cell: the number of a choice, or a place of the slider; its low end if missing."""
    if "choices" in control:
        return str(control["choices"].index(cell)) if cell in control["choices"] else ""
    return float(control["low"] if cell is None else cell)


def server(what_if: WhatIf) -> Callable[[Any, Any, Any], None]:
    """Return what runs for each visitor."""

    def run(input: Foreign, output: Foreign, session: Foreign) -> None:
        row, where, slipped = reactive.value(0), reactive.value(""), reactive.value("")
        baseline: reactive.Value[int | None] = reactive.value(None)
        unheard: dict[int, Any] = {}

        @reactive.effect
        @reactive.event(input.apply)
        def _filtered() -> None:
            wanted = input.where() or ""
            slipped.set(slip_of(what_if, wanted))
            if not slipped():
                where.set(wanted)

        @render.ui
        def slip() -> Any:
            return ui.p(f"{slipped()} The rows stay as they were.", class_="failed", role="alert") if slipped() else None

        @render.data_frame
        def rows() -> Any:
            return render.DataGrid(_shown(what_if), selection_mode="row", height="240px")

        @reactive.effect
        @reactive.event(lambda: rows.cell_selection())
        def _clicked() -> None:
            chosen = rows.cell_selection()["rows"]
            req(chosen)
            if input.click() == "baseline":
                baseline.set(int(chosen[0]))
                return
            unheard.clear()
            unheard.update(will_change(what_if, int(chosen[0]), _positions(what_if, input)))
            row.set(int(chosen[0]))

        @reactive.effect
        @reactive.event(input.no_baseline)
        def _without_baseline() -> None:
            baseline.set(None)

        @reactive.effect
        @reactive.event(row)
        def _moved_to_row() -> None:
            _move_controls(what_if, row())

        @render.ui
        def answer() -> Any:
            values = _positions(what_if, input)
            started = time.perf_counter()
            try:
                explanation = what_if.explain(row(), changes(what_if, row(), values, unheard), where(), baseline())
            except ExactshapError as error:
                return ui.p(str(error), class_="failed")
            return ui.HTML(answer_html(explanation, 1000.0 * (time.perf_counter() - started), row(), baseline()))

    return run


def slip_of(what_if: WhatIf, where: str) -> str:
    """Return why a filter of the background cannot be used; "" if it can."""
    try:
        what_if.explainer(where)
    except ExactshapError as error:
        return str(error)
    return ""


def _positions(what_if: WhatIf, input: Foreign) -> list[Any]:
    """Return where the controls stand."""
    return [input[f"c{j}"]() for j in range(len(what_if.controls))]


def _move_controls(what_if: WhatIf, i: int) -> None:
    """Put the controls where row i has them."""
    for (j, control), cell in zip(enumerate(what_if.controls), what_if.cells(i), strict=True):
        if "choices" in control:
            ui.update_select(f"c{j}", selected=_held(control, cell))
        else:
            ui.update_slider(f"c{j}", value=_held(control, cell), label=_label(control, cell))


def will_change(what_if: WhatIf, i: int, values: list[Any]) -> dict[int, Any]:
    """Return the values of the controls that must move to show row ``i``."""
    shown = [_held(control, cell) for control, cell in zip(what_if.controls, what_if.cells(i), strict=True)]
    return {j: value for j, value in enumerate(values) if value != shown[j]}


def changes(what_if: WhatIf, i: int, values: list[Any], unheard: dict[int, Any] | None = None) -> dict[str, Any]:
    """Return the cells that the controls hold and row ``i`` does not.

    A slider rounds: a step's half is no move. A control that still holds what it held before a click on row ``i`` (``unheard``)
    has not followed yet and says nothing; once it has, it leaves ``unheard``.
    """
    unheard = {} if unheard is None else unheard
    changed = {}
    for (j, control), value, here in zip(enumerate(what_if.controls), values, what_if.cells(i), strict=True):
        if j in unheard and unheard[j] == value:
            continue
        unheard.pop(j, None)
        if "choices" in control:
            if value and (chosen := control["choices"][int(value)]) != here:
                changed[control["name"]] = chosen
        elif abs(float(value) - _held(control, here)) > (0.501 if here is not None else 0.0) * control["step"]:
            changed[control["name"]] = float(value)
    return changed


def answer_html(explanation: Any, milliseconds: float, i: int, baseline_row: int | None) -> str:
    """Return prediction, values and certificate of one row; names are escaped."""
    views = [("", explanation)]
    if explanation.output_names is not None:
        views = [(f" of {name}", explanation.output(k)) for k, name in enumerate(explanation.output_names)]
    parts = [_waterfall(view, name) for name, view in views[:4]]
    certificate = explanation.certificate()
    verdict = "" if certificate.passed else " class='failed'"
    against = f"row {baseline_row}" if baseline_row is not None else f"{explanation.background_size or 'no'} background rows"
    sentence = value_function_sentence(explanation.value_function, has_background=explanation.background_size is not None)
    parts.append(
        f"<p class='fact' id='facts'>row {i} against {against}; {escape(explanation.value_function)}: "
        f"{escape(sentence)}<br><span{verdict}>{escape(str(certificate))}</span>"
        f"<br>computed in <span id='ms'>{milliseconds:.1f}</span> ms</p>"
    )
    return "".join(parts)


def _waterfall(view: Any, name: str) -> str:
    people = readable(view)
    values, start = people.values[0], float(people.baseline[0])
    order = np.argsort(-np.abs(values), kind="stable")[:30]
    ends = start + np.cumsum(values[order])
    low, high = min(start, float(ends.min(initial=start))), max(start, float(ends.max(initial=start)))
    width = (high - low) or 1.0
    rows, left = [], start
    for j, end in zip(order, ends, strict=True):
        first, last = min(left, end), max(left, end)
        place = f"left:{100 * (first - low) / width:.2f}%;width:{max(0.3, 100 * (last - first) / width):.2f}%"
        bar = f"<div class='bar {'up' if values[j] > 0 else 'down'}' style='{place}'></div>" if values[j] else ""
        text = f"{values[j]:+.4g}" if values[j] else "0"
        rows.append(
            f"<tr><td>{escape(view.feature_names[j])}</td><td class='v' data-value='{float(view.values[0, j])!r}'>{text}</td>"
            f"<td class='t'>{bar}</td></tr>"
        )
        left = end
    prediction = f"<strong id='prediction' data-value='{float(view.prediction[0])!r}'>{people.prediction[0]:.6g}</strong>"
    head = f"<h4>Prediction{escape(name)}: {prediction} ({escape(view.unit)})</h4>"
    return f"{head}<p>baseline <span id='baseline' data-value='{float(view.baseline[0])!r}'>{start:.6g}</span></p><table class='waterfall'>{''.join(rows)}</table>"


def _shown(what_if: WhatIf) -> Any:
    """Return the first rows as a pandas frame, numbered."""
    from exactshap._runtime.optional import require

    pandas = require("pandas", "frames", purpose="The table of rows")
    rows = what_if.data.take(slice(0, min(_ROWS_SHOWN, what_if.data.n_rows)))
    columns = {"row": np.arange(rows.n_rows)} | {name: rows.column(j) for j, name in enumerate(what_if.names)}
    return pandas.DataFrame(columns)

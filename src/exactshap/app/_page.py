"""What is on the page, and what each move does."""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
from shiny import reactive, render, req, ui

from exactshap.app._session import WhatIf
from exactshap.errors import ExactshapError
from exactshap.results.data import value_function_sentence

__all__ = ["page", "server"]

_STYLE = """
.waterfall{border-collapse:collapse;width:100%} .waterfall td{padding:2px 6px} .waterfall .v{text-align:right;width:6em}
.waterfall .t{position:relative;width:60%;min-width:120px} .bar{position:absolute;height:60%;top:20%}
.up{background:#c44e52}.down{background:#4c72b0} .fact{color:#555;font-size:.9em} .failed{color:#b00020;font-weight:bold}
"""
_ROWS_SHOWN = 500


def page(what_if: WhatIf) -> Any:
    """Return the page: controls of the row at the left, prediction and values at the right, the data below."""
    controls = [_control(what_if, j, control) for j, control in enumerate(what_if.controls)]
    background = what_if.background is not None
    filters = (
        [
            ui.input_text("where", "Background rows", placeholder="age > 40 and sex == F"),
            ui.input_action_button("apply", "Apply"),
        ]
        if background
        else []
    )
    choose = ui.input_radio_buttons("click", "A click on a row", {"row": "explains it", "baseline": "compares with it"})
    return ui.page_sidebar(
        ui.sidebar(
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


def _control(what_if: WhatIf, j: int, control: dict[str, Any]) -> Any:
    name, value = control["name"], what_if.cell(0, control["name"])
    if "choices" in control:
        choices = {str(k): str(choice) for k, choice in enumerate(control["choices"])}
        return ui.input_select(f"c{j}", name, choices, selected=_number_of(control, value))
    start = control["low"] if value is None else float(value)
    return ui.input_slider(f"c{j}", name, control["low"], control["high"], start, step=control["step"])


def _number_of(control: dict[str, Any], value: Any) -> str:
    return str(control["choices"].index(value)) if value in control["choices"] else ""


def server(what_if: WhatIf) -> Callable[[Any, Any, Any], None]:
    """Return what runs for each visitor."""

    def run(input: Any, output: Any, session: Any) -> None:
        row, where = reactive.value(0), reactive.value("")
        baseline: reactive.Value[int | None] = reactive.value(None)

        @reactive.effect
        @reactive.event(input.apply)
        def _filtered() -> None:
            where.set(input.where() or "")

        @render.data_frame
        def rows() -> Any:
            return render.DataGrid(_shown(what_if), selection_mode="row", height="240px")

        @reactive.effect
        @reactive.event(lambda: rows.cell_selection())
        def _clicked() -> None:
            chosen = rows.cell_selection()["rows"]
            req(chosen)
            (baseline if input.click() == "baseline" else row).set(int(chosen[0]))

        @reactive.effect
        @reactive.event(input.no_baseline)
        def _without_baseline() -> None:
            baseline.set(None)

        @reactive.effect
        @reactive.event(row)
        def _moved_to_row() -> None:
            for j, control in enumerate(what_if.controls):
                value = what_if.cell(row(), control["name"])
                if "choices" in control:
                    ui.update_select(f"c{j}", selected=_number_of(control, value))
                elif value is not None:
                    ui.update_slider(f"c{j}", value=float(value))

        @render.ui
        def answer() -> Any:
            values = [input[f"c{j}"]() for j in range(len(what_if.controls))]
            started = time.perf_counter()
            try:
                explanation = what_if.explain(row(), changes(what_if, row(), values), where(), baseline())
            except ExactshapError as error:
                return ui.p(str(error), class_="failed")
            return ui.HTML(answer_html(explanation, 1000.0 * (time.perf_counter() - started), row(), baseline()))

    return run


def changes(what_if: WhatIf, i: int, values: list[Any]) -> dict[str, Any]:
    """Return the cells that the controls hold and row ``i`` does not; a slider rounds, and a step's half is no move."""
    found = {}
    for control, value in zip(what_if.controls, values, strict=True):
        here = what_if.cell(i, control["name"])
        if "choices" in control:
            chosen = control["choices"][int(value)] if value else None
            if chosen is not None and chosen != here:
                found[control["name"]] = chosen
        elif (here is not None and abs(float(value) - float(here)) > 0.5 * control["step"]) or (
            here is None and float(value) != control["low"]
        ):
            found[control["name"]] = float(value)
    return found


def answer_html(explanation: Any, milliseconds: float, i: int, baseline_row: int | None) -> str:
    """Return prediction, values and certificate of one row; names are escaped."""
    views = [("", explanation)]
    if explanation.output_names is not None:
        views = [(f" of {name}", explanation.output(k)) for k, name in enumerate(explanation.output_names)]
    parts = [_waterfall(view, name) for name, view in views[:4]]
    certificate = explanation.certificate()
    verdict = "" if certificate.passed else " class='failed'"
    against = f"row {baseline_row}" if baseline_row is not None else f"{explanation.background_size or 'no'} background rows"
    parts.append(
        f"<p class='fact' id='facts'>row {i} against {against}; {escape(explanation.value_function)}: "
        f"{escape(value_function_sentence(explanation.value_function))}<br><span{verdict}>{escape(str(certificate))}</span>"
        f"<br>computed in <span id='ms'>{milliseconds:.1f}</span> ms</p>"
    )
    return "".join(parts)


def _waterfall(view: Any, name: str) -> str:
    values, start = view.values[0], float(view.baseline[0])
    order = np.argsort(-np.abs(values), kind="stable")[:30]
    ends = start + np.cumsum(values[order])
    low, high = min(start, float(ends.min(initial=start))), max(start, float(ends.max(initial=start)))
    width = (high - low) or 1.0
    rows, left = [], start
    for j, end in zip(order, ends, strict=True):
        first, last = min(left, end), max(left, end)
        place = f"left:{100 * (first - low) / width:.2f}%;width:{max(0.3, 100 * (last - first) / width):.2f}%"
        bar = f"<div class='bar {'up' if values[j] >= 0 else 'down'}' style='{place}'></div>"
        rows.append(
            f"<tr><td>{escape(view.feature_names[j])}</td><td class='v' data-value='{float(values[j])!r}'>{values[j]:+.4g}</td>"
            f"<td class='t'>{bar}</td></tr>"
        )
        left = end
    prediction = f"<strong id='prediction' data-value='{float(view.prediction[0])!r}'>{view.prediction[0]:.6g}</strong>"
    head = f"<h4>Prediction{escape(name)}: {prediction} ({escape(view.unit)})</h4>"
    return f"{head}<p>baseline <span id='baseline' data-value='{start!r}'>{start:.6g}</span></p><table class='waterfall'>{''.join(rows)}</table>"


def _shown(what_if: WhatIf) -> Any:
    """Return the first rows as a pandas frame, numbered."""
    from exactshap._runtime.optional import require

    pandas = require("pandas", "frames", purpose="The table of rows")
    few = what_if.data.take(slice(0, min(_ROWS_SHOWN, what_if.data.n_rows)))
    columns = {"row": np.arange(few.n_rows)} | {name: few.column(j) for j, name in enumerate(what_if.names)}
    return pandas.DataFrame(columns)

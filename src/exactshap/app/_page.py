"""What is on the page, and what each move does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from shiny import reactive, render, req, ui
from threadpoolctl import ThreadpoolController

from exactshap._runtime.types import Foreign
from exactshap.app._answer import answer_html
from exactshap.app._session import WhatIf
from exactshap.errors import ExactshapError
from exactshap.results.data import filtered_rows
from exactshap.results.report import colour_variables

__all__ = ["page", "server"]

_ROWS_SHOWN = 500
# Milliseconds. A model that answers as quickly is asked while a slider moves, and by one thread: threads that wait for each other cost
# more than one row does. Others are asked when the slider rests.
_QUICK, _BETWEEN_MOVES, _AT_REST = 100.0, 40, 250


def page(what_if: WhatIf) -> Any:
    """Return the page: controls of the row at the left, prediction and values at the right, the data below."""
    controls = [
        _control(j, control, cell) for (j, control), cell in zip(enumerate(what_if.controls), what_if.cells(0), strict=True)
    ]
    background = what_if.background is not None
    filters = [
        ui.input_text("where", "Background rows", placeholder="age > 40 and sex = F"),
        ui.input_action_button("apply", "Apply"),
        ui.output_ui("slip"),
    ]
    return ui.page_fluid(
        ui.head_content(ui.tags.link(rel="icon", href="data:,")),
        ui.tags.style(_style()),
        ui.div(ui.h1("What if?"), ui.input_dark_mode(id=None), class_="top"),
        ui.div(
            ui.div(ui.output_ui("answer"), class_="answer"),
            ui.div(
                ui.div(ui.h2("The row"), ui.input_action_button("reset", "Reset"), class_="top"),
                *controls,
                class_="moves",
            ),
            class_="whatif",
        ),
        ui.h2("Rows"),
        ui.div(
            ui.input_text("search", "Search", placeholder="age > 40 and sex = F, or a word"),
            ui.input_numeric("row", f"Row (0 to {what_if.data.n_rows - 1:,})", 0, min=0, max=what_if.data.n_rows - 1),
            ui.input_radio_buttons("click", "A click on a row", {"row": "explains it", "baseline": "compares with it"}),
            ui.input_action_button("no_baseline", "Compare with the background" if background else "Compare with no row"),
            class_="tools",
        ),
        ui.output_ui("found"),
        ui.output_data_frame("rows"),
        ui.div(*filters, class_="tools") if background else None,
        ui.tags.script(_rates(what_if)),
        title="exactshap: what if",
        lang="en",
    )


def _style() -> str:
    colours = f":root {{ {colour_variables()} }} [data-bs-theme=dark] {{ {colour_variables(dark=True)} }}"
    return f"{colours}\n{(Path(__file__).parent / 'page.css').read_text(encoding='utf-8')}"


def _rates(what_if: WhatIf) -> str:
    """Return the script that says how often sliders send, by what one answer takes."""
    policy, delay = ("throttle", _BETWEEN_MOVES) if is_quick(what_if) else ("debounce", _AT_REST)
    binding = 'Shiny.inputBindings.bindingNames["shiny.sliderInput"].binding'
    return f'{binding}.getRatePolicy = () => ({{policy: "{policy}", delay: {delay}}});'


def is_quick(what_if: WhatIf) -> bool:
    """Return whether the model answers while a slider moves. The first answer, which prepares, does not count unless it is slow."""
    for _ in range(3):
        started = time.perf_counter()
        what_if.explain(0)
        took = 1000.0 * (time.perf_counter() - started)
        if took < _QUICK or took > 10.0 * _QUICK:
            break
    return took < _QUICK


def _control(j: int, control: dict[str, Any], cell: Any) -> Any:
    if "choices" in control:
        choices = {str(k): str(choice) for k, choice in enumerate(control["choices"])}
        return ui.input_select(f"c{j}", control["name"], choices, selected=_held(control, cell))
    low, high, step = (control[name] for name in ("low", "high", "step"))
    return ui.input_slider(
        f"c{j}", _label(control, cell), low, high, _held(control, cell), step=step, ticks=False, width="100%"
    )


def _label(control: dict[str, Any], cell: Any) -> str:
    return f"{control['name']} (missing)" if cell is None else str(control["name"])


def _held(control: dict[str, Any], cell: Any) -> Any:
    """Return what a control holds that shows a cell: the number of a choice, or a place of the slider; its low end if missing."""
    if "choices" in control:
        return str(control["choices"].index(cell)) if cell in control["choices"] else ""
    return float(control["low"] if cell is None else cell)


def server(what_if: WhatIf) -> Callable[[Any, Any, Any], None]:
    """Return what runs for each visitor."""
    threads = ThreadpoolController()
    limits = {"limits": 1 if is_quick(what_if) else None}

    def run(input: Foreign, output: Foreign, session: Foreign) -> None:
        row, where, slipped = reactive.value(0), reactive.value(""), reactive.value("")
        baseline: reactive.Value[int | None] = reactive.value(None)
        listed: reactive.Value[np.ndarray] = reactive.value(np.arange(what_if.data.n_rows))
        searched = reactive.value("")
        unheard: dict[int, Any] = {}

        def show(i: int) -> None:
            unheard.clear()
            unheard.update(will_change(what_if, i, _positions(what_if, input)))
            row.set(i)
            ui.update_numeric("row", value=i)
            _move_controls(what_if, i)

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

        @reactive.effect
        @reactive.event(input.search, ignore_init=True)
        def _searched() -> None:
            try:
                listed.set(search(what_if, input.search() or ""))
                searched.set("")
            except ExactshapError as error:
                searched.set(f"{error} The rows stay as they were.")

        @render.ui
        def found() -> Any:
            n, total = len(listed()), what_if.data.n_rows
            first = f"; the first {_ROWS_SHOWN} are listed, type a number for any other" if n > _ROWS_SHOWN else ""
            count = ui.p(f"{n:,} of {total:,} rows{first}. A click explains one.", class_="fact", role="status")
            return ui.TagList(count, ui.p(searched(), class_="failed", role="alert") if searched() else None)

        @render.data_frame
        def rows() -> Any:
            return render.DataGrid(_shown(what_if, listed()), selection_mode="row", height="300px", width="100%")

        @reactive.effect
        @reactive.event(lambda: rows.cell_selection())
        def _clicked() -> None:
            chosen = rows.cell_selection()["rows"]
            req(chosen)
            i = int(listed()[int(chosen[0])])
            if input.click() == "baseline":
                baseline.set(i)
            else:
                show(i)

        @reactive.effect
        @reactive.event(input.row, ignore_init=True)
        def _numbered() -> None:
            i = input.row()
            req(isinstance(i, int) and 0 <= i < what_if.data.n_rows and i != row())
            show(i)

        @reactive.effect
        @reactive.event(input.reset, ignore_init=True)
        def _reset() -> None:
            _move_controls(what_if, row())

        @reactive.effect
        @reactive.event(input.no_baseline)
        def _without_baseline() -> None:
            baseline.set(None)

        @reactive.calc
        def as_it_was() -> Any:
            return what_if.explain(row(), None, where(), baseline())

        @render.ui
        def answer() -> Any:
            values = _positions(what_if, input)
            started = time.perf_counter()
            try:
                changed = changes(what_if, row(), values, unheard)
                with threads.limit(**limits):
                    explanation = what_if.explain(row(), changed, where(), baseline())
                    before = as_it_was() if changed else None
            except ExactshapError as error:
                return ui.p(str(error), class_="failed")
            took = 1000.0 * (time.perf_counter() - started)
            return ui.HTML(answer_html(explanation, took, row(), baseline(), before))

    return run


def slip_of(what_if: WhatIf, where: str) -> str:
    """Return why a filter of the background cannot be used; "" if it can."""
    try:
        what_if.explainer(where)
    except ExactshapError as error:
        return str(error)
    return ""


def search(what_if: WhatIf, text: str) -> np.ndarray:
    """Return the numbers of the rows that a filter keeps, or that hold a word; all for ""."""
    if not text.strip():
        return np.arange(what_if.data.n_rows)
    return np.flatnonzero(filtered_rows(what_if.data, what_if.names, text))


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


def _shown(what_if: WhatIf, numbers: np.ndarray) -> Any:
    """Return the first of some rows as a pandas frame, numbered."""
    from exactshap._runtime.optional import require

    pandas = require("pandas", "frames", purpose="The table of rows")
    numbers = numbers[:_ROWS_SHOWN]
    rows = what_if.data.take(numbers)
    return pandas.DataFrame({"row": numbers} | {name: rows.column(j) for j, name in enumerate(what_if.names)})

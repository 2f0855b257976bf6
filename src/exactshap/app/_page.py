"""Build the page, and answer each move of its controls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from shiny import reactive, render, req, ui
from threadpoolctl import ThreadpoolController

from exactshap._runtime.optional import require
from exactshap._runtime.types import Foreign
from exactshap.app._answer import answer_html
from exactshap.app._session import WhatIf
from exactshap.errors import ExactshapError
from exactshap.results.data import filtered_rows
from exactshap.results.report import colour_variables

# Rows that are listed, and rows that are tried for one that the model takes.
_ROWS_SHOWN, _ROWS_TRIED = 500, 50
# Milliseconds. A model that answers as quickly is called while a slider moves, on one thread, as waiting threads cost more than
# a row does. Slower ones are called when the slider rests.
_QUICK, _BETWEEN_MOVES, _AT_REST = 100.0, 40, 250
# The slider's library takes a focus for a click to the right of its handle, so that the Tab key alone would change the row. Here a
# focus moves nothing, and an arrow moves one step. Its class is reached through an instance only.
_KEYS = """{
  const any = $("<p><input></p>").find("input").ionRangeSlider(), Slider = Object.getPrototypeOf(any.data("ionRangeSlider"));
  any.data("ionRangeSlider").destroy();
  Slider.pointerFocus = function () { this.current_plugin = this.plugin_count; };
  Slider.moveByKey = function (right) {
    const { min, max, step } = this.options, { w_rs, p_single_real } = this.coords;
    const place = Math.min(Math.max(p_single_real + ((right ? 100 : -100) * step) / (max - min), 0), 100);
    Object.assign(this.coords, { p_gap: 0, x_pointer: (w_rs / 100) * this.convertToFakePercent(place) });
    Object.assign(this, { target: "single", is_key: true });
    this.calc();
  };
}"""


def page(what_if: WhatIf, quick: bool) -> Any:
    """Return the page: controls of the row at the left, prediction and values at the right, the data below."""
    controls = [
        _widget(j, control, cell) for (j, control), cell in zip(enumerate(what_if.controls), what_if.cells(0), strict=True)
    ]
    background = what_if.background is not None
    colours = f":root {{ {colour_variables()} }} [data-bs-theme=dark] {{ {colour_variables(dark=True)} }}"
    # How often sliders send, by the time of an answer
    policy, delay = ("throttle", _BETWEEN_MOVES) if quick else ("debounce", _AT_REST)
    slider = 'Shiny.inputBindings.bindingNames["shiny.sliderInput"].binding'
    filters = [
        ui.input_text("where", "Background rows", placeholder="age > 40 and sex = F"),
        ui.input_action_button("apply", "Apply"),
        ui.output_ui("slip"),
    ]
    return ui.page_fluid(
        ui.head_content(ui.tags.link(rel="icon", href="data:,")),
        ui.tags.style(f"{colours}\n{(Path(__file__).parent / 'page.css').read_text(encoding='utf-8')}"),
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
        ui.tags.script(f'{slider}.getRatePolicy = () => ({{policy: "{policy}", delay: {delay}}});' + _KEYS),
        title="exactshap: what if",
        lang="en",
    )


def is_quick(what_if: WhatIf) -> bool:
    """Say whether the model can answer while a slider moves. The first answer only counts if it is slow."""
    i = _first_explained(what_if)
    for _ in range(3):
        started = time.perf_counter()
        what_if.explain(i)
        took = 1000.0 * (time.perf_counter() - started)
        if took < _QUICK or took > 10.0 * _QUICK:
            break
    return took < _QUICK


def _first_explained(what_if: WhatIf) -> int:
    """Return the first row that the model takes. The page says of others why it does not; of all, nobody needs a page."""
    first: ExactshapError | None = None
    for i in range(min(what_if.data.n_rows, _ROWS_TRIED)):
        try:
            what_if.explain(i)
        except ExactshapError as error:
            first = first or error
        else:
            return i
    if first is not None:
        raise first
    return 0


def _widget(j: int, control: dict[str, Any], cell: Any) -> Any:
    if "choices" in control:
        choices = {str(k): "missing" if choice is None else str(choice) for k, choice in enumerate(control["choices"])}
        return ui.input_select(f"c{j}", control["name"], choices, selected=_held(control, cell))
    low, high, step = (control[name] for name in ("low", "high", "step"))
    if _typed(control):
        return ui.input_numeric(
            f"c{j}", _label(control, cell), _held(control, cell), min=low, max=high, step=step, width="100%"
        )
    return ui.input_slider(
        f"c{j}", _label(control, cell), low, high, _held(control, cell), step=step, ticks=False, width="100%"
    )


def _typed(control: dict[str, Any]) -> bool:
    """Say whether a number is typed: sliders do not read the decimals of steps that JavaScript writes as 1e-7."""
    return bool(control["step"] < 1e-6)


def _label(control: dict[str, Any], cell: Any) -> str:
    return f"{control['name']} (missing)" if cell is None else str(control["name"])


def _held(control: dict[str, Any], cell: Any) -> Any:
    """Return the state of a control for a cell: the number of a choice, or a slider's position (an end if missing or infinite)."""
    if "choices" in control:
        return str(control["choices"].index(cell)) if cell in control["choices"] else ""
    return float(control["low"] if cell is None else np.clip(cell, control["low"], control["high"]))


@dataclass
class _Visit:
    """Hold one visitor's row, filter of the background or baseline row, and listed rows."""

    what_if: WhatIf
    input: Any
    row: Any = field(default_factory=lambda: reactive.value(0))
    where: Any = field(default_factory=lambda: reactive.value(""))
    baseline: Any = field(default_factory=lambda: reactive.value(None))
    listed: Any = field(default_factory=lambda: reactive.value(None))
    unheard: dict[int, Any] = field(default_factory=dict)

    def show(self, i: int) -> None:
        """Explain row ``i``. The controls move there, and are ignored until they have."""
        self.unheard.clear()
        self.unheard.update(will_change(self.what_if, i, _positions(self.what_if, self.input)))
        self.row.set(i)
        ui.update_numeric("row", value=i)
        _move_controls(self.what_if, i)

    def explain(self, changed: dict[str, Any] | None) -> Any:
        return self.what_if.explain(self.row(), changed, self.where(), self.baseline())


def server(what_if: WhatIf, quick: bool) -> Callable[[Any, Any, Any], None]:
    limit = 1 if quick else None

    def run(input: Foreign, output: Foreign, session: Foreign) -> None:
        visit = _Visit(what_if, input)
        visit.listed.set(np.arange(what_if.data.n_rows))
        _serve_background(visit)
        _serve_rows(visit)
        _serve_answer(visit, limit)

    return run


def _serve_background(visit: _Visit) -> None:
    slipped = reactive.value("")

    @reactive.effect
    @reactive.event(visit.input.apply)
    def _filtered() -> None:
        wanted = visit.input.where() or ""
        try:
            visit.what_if.explainer(wanted)
        except ExactshapError as error:
            slipped.set(str(error))
        else:
            slipped.set("")
            visit.where.set(wanted)

    @render.ui
    def slip() -> Any:
        return _slip(slipped())

    @reactive.effect
    @reactive.event(visit.input.no_baseline)
    def _without_baseline() -> None:
        visit.baseline.set(None)


def _slip(text: str) -> Any:
    return ui.p(f"{text} The rows stay as they were.", class_="failed", role="alert") if text else None


def _serve_rows(visit: _Visit) -> None:
    slipped, input, n_rows = reactive.value(""), visit.input, visit.what_if.data.n_rows

    @reactive.effect
    @reactive.event(input.search, ignore_init=True)
    def _searched() -> None:
        try:
            visit.listed.set(np.flatnonzero(filtered_rows(visit.what_if.data, visit.what_if.names, input.search() or "")))
            slipped.set("")
        except ExactshapError as error:
            slipped.set(str(error))

    @render.ui
    def found() -> Any:
        n = len(visit.listed())
        first = f"; the first {_ROWS_SHOWN} are listed, type a number for any other" if n > _ROWS_SHOWN else ""
        count = ui.p(f"{n:,} of {n_rows:,} rows{first}. A click explains one.", class_="fact", role="status")
        return ui.TagList(count, _slip(slipped()))

    @render.data_frame
    def rows() -> Any:
        return render.DataGrid(_shown(visit.what_if, visit.listed()), selection_mode="row", height="300px", width="100%")

    @reactive.effect
    @reactive.event(lambda: rows.cell_selection())
    def _clicked() -> None:
        chosen = rows.cell_selection()["rows"]
        req(chosen)
        i = int(visit.listed()[int(chosen[0])])
        if input.click() == "baseline":
            visit.baseline.set(i)
        else:
            visit.show(i)

    @reactive.effect
    @reactive.event(input.row, ignore_init=True)
    def _numbered() -> None:
        i = input.row()
        req(i is not None)
        known = isinstance(i, int) and 0 <= i < n_rows
        slipped.set("" if known else f"There is no row {i}. They are numbered from 0 to {n_rows - 1:,}.")
        req(known and i != visit.row())
        visit.show(i)


def _serve_answer(visit: _Visit, limit: int | None) -> None:
    threads = ThreadpoolController()

    @reactive.effect
    @reactive.event(visit.input.reset, ignore_init=True)
    def _reset() -> None:
        _move_controls(visit.what_if, visit.row())

    @reactive.calc
    def as_it_was() -> Any:
        try:
            return visit.explain(None)
        except ExactshapError:  # a row that the model refuses, until a missing cell is set
            return None

    @render.ui
    def answer() -> Any:
        positions = _positions(visit.what_if, visit.input)
        started = time.perf_counter()
        try:
            changed = changes(visit.what_if, visit.row(), positions, visit.unheard)
            with threads.limit(limits=limit):
                explanation = visit.explain(changed)
                before = as_it_was() if changed else None
        except ExactshapError as error:
            return ui.p(str(error), class_="failed")
        took = 1000.0 * (time.perf_counter() - started)
        return ui.HTML(answer_html(explanation, took, visit.row(), visit.baseline(), before))


def _positions(what_if: WhatIf, input: Foreign) -> list[Any]:
    return [input[f"c{j}"]() for j in range(len(what_if.controls))]


def _move_controls(what_if: WhatIf, i: int) -> None:
    for (j, control), cell in zip(enumerate(what_if.controls), what_if.cells(i), strict=True):
        if "choices" in control:
            ui.update_select(f"c{j}", selected=_held(control, cell))
        else:
            move = ui.update_numeric if _typed(control) else ui.update_slider
            move(f"c{j}", value=_held(control, cell), label=_label(control, cell))


def will_change(what_if: WhatIf, i: int, values: list[Any]) -> dict[int, Any]:
    shown = [_held(control, cell) for control, cell in zip(what_if.controls, what_if.cells(i), strict=True)]
    return {j: value for j, value in enumerate(values) if value != shown[j]}


def changes(what_if: WhatIf, i: int, values: list[Any], unheard: dict[int, Any] | None = None) -> dict[str, Any]:
    """Return the cells in which the controls differ from row ``i``.

    A slider rounds: half a step is no move. A control that still has its state from before a click on row ``i`` (``unheard``)
    is ignored; once it has followed, it leaves ``unheard``.
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
        elif (
            value is not None
            and abs(float(value) - _held(control, here)) > (0.501 if here is not None else 0.0) * control["step"]
        ):
            changed[control["name"]] = float(value)
    return changed


def _shown(what_if: WhatIf, numbers: np.ndarray) -> Any:
    pandas = require("pandas", "frames", purpose="The table of rows")
    numbers = numbers[:_ROWS_SHOWN]
    rows = what_if.data.take(numbers)
    cells = {name: rows.column(j) for j, name in enumerate(what_if.names)}
    # Browsers would write truth values in lower case
    words = {name: column.astype(str) for name, column in cells.items() if column.dtype.kind == "b"}
    return pandas.DataFrame({"row": numbers} | cells | words)

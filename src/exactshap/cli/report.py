"""``exactshap report MODEL DATA`` or ``exactshap report EXPLANATION.npz``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactshap._runtime.types import Column
from exactshap.cli import _options as options
from exactshap.errors import InputError

if TYPE_CHECKING:
    from exactshap.cli._work import Task
    from exactshap.results.explanation import Explanation


@options.takes_task("offset", "jobs", "rows", instead=options.SAVED)
def command(
    task: Task,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    index: options.Index = "shapley",
    order: options.Order = 1,
    seed: options.Seed = 0,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Write a page that answers clicks, with scripts inside and no requests.")
    ] = False,
) -> None:
    """Write one HTML file about a model on some rows: static, or interactive; either works offline."""
    from exactshap.cli._io import check_target
    from exactshap.cli._screen import console
    from exactshap.cli._work import command_line
    from exactshap.results.explanation import Explanation
    from exactshap.results.report import check_report_path

    check_report_path(out)
    check_target(out, None)
    observed = None
    if task.is_saved:
        explanation = Explanation.load(task.model)
    else:
        explanation = task.explain(index, order)
        observed = None if task.target is None else comparable_target(explanation, task.column(task.target))
    explanation.report(
        out,
        data_name=(task.data or task.model).name,
        command=command_line(),
        target=observed,
        seed=seed,
        interactive=interactive,
    )
    console().print(f"{explanation.certificate()}\nreport written to {out}")


def comparable_target(explanation: Explanation, target: Column) -> Any:
    """Return the target if the output has its unit; else print why the report has no errors."""
    from exactshap.cli._screen import console
    from exactshap.results.data import observe

    try:
        observe(explanation, target)
    except InputError as error:
        console().print(f"The report has no errors of the prediction. {error}")
        return None
    return target

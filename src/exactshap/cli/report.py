"""``exactshap report MODEL DATA`` or ``exactshap report EXPLANATION.npz``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactshap._runtime.types import Column
from exactshap.cli import _options as options

if TYPE_CHECKING:
    from exactshap.results.explanation import Explanation


def command(
    model: Annotated[Path, typer.Argument(help="Fitted model, or an explanation saved as .npz.")],
    data: Annotated[Path | None, typer.Argument(help="Rows to explain: .csv or .parquet; not for a saved explanation.")] = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    background: options.Background = None,
    target: options.Target = None,
    drop: options.Drop = None,
    offset: options.Offset = None,
    index: options.Index = "shapley",
    order: options.Order = 1,
    value_function: options.ValueFunction = "auto",
    model_output: options.ModelOutput = "auto",
    allow_pickle: options.AllowPickle = False,
    trust: options.Trust = False,
    n_stages: options.Stages = None,
    align: options.Align = False,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Write a page that answers clicks, with scripts inside and no requests.")
    ] = False,
    groups: options.Groups = None,
    budget: options.Budget = None,
    rows: options.Rows = None,
) -> None:
    """Write one HTML file about a model on some rows: static, or interactive; either works offline."""
    from exactshap.cli._io import check_target
    from exactshap.cli._screen import console
    from exactshap.cli._work import Task, command_line
    from exactshap.errors import InputError, message
    from exactshap.results.explanation import Explanation
    from exactshap.results.report import check_report_path

    check_report_path(out)
    check_target(out, None)
    observed = None
    if model.suffix.lower() == ".npz":
        explanation = Explanation.load(model)
    elif data is None:
        raise InputError(
            message("A report of a model needs rows", "DATA is missing", "Pass a .csv or .parquet file after the model")
        )
    else:
        settings = options.explainer_settings(value_function, model_output, align, groups, budget, n_jobs=jobs)
        task = Task(
            model=model,
            data=data,
            background=background,
            drop=options.dropped(target, drop),
            allow_pickle=allow_pickle,
            trust=trust,
            n_stages=n_stages,
            settings=settings,
            rows=options.row_choice(rows),
            offset=offset,
        )
        explanation = task.explain(index, order)
        observed = None if target is None else comparable_target(explanation, task.column(target))
    explanation.report(
        out,
        data_name=(data or model).name,
        command=command_line(),
        target=observed,
        seed=seed,
        interactive=interactive,
    )
    console().print(f"{explanation.certificate()}\nreport written to {out}")


def comparable_target(explanation: Explanation, target: Column) -> Any:
    """Return the target if the output has its unit; else say why the report has no errors."""
    from exactshap.cli._screen import console
    from exactshap.errors import InputError
    from exactshap.results.data import observe

    try:
        observe(explanation, target)
    except InputError as error:
        console().print(f"The report has no errors of the prediction. {error}")
        return None
    return target

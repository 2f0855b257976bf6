"""``exactshap explain MODEL DATA``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exactshap.cli import _options as options

__all__ = ["command"]


def command(
    model: options.Model,
    data: options.Data,
    background: options.Background = None,
    target: options.Target = None,
    drop: options.Drop = None,
    index: options.Index = "shapley",
    order: options.Order = 1,
    value_function: options.ValueFunction = "auto",
    model_output: options.ModelOutput = "auto",
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="Write the values: .csv, .parquet, or .npz with everything.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report: .html.")] = None,
    allow_pickle: options.AllowPickle = False,
    trust: options.Trust = False,
    n_stages: options.Stages = None,
    align: options.Align = False,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
) -> None:
    """Explain the rows of a file and print what was found."""
    from exactshap.cli._io import check_target
    from exactshap.cli._screen import console, show_explanation
    from exactshap.cli._work import Task, command_line
    from exactshap.results.report import check_report_path

    task = Task(
        model=model,
        data=data,
        background=background,
        drop=options.dropped(target, drop),
        allow_pickle=allow_pickle,
        trust=trust,
        n_stages=n_stages,
        settings={
            "value_function": value_function,
            "output": options.output_choice(model_output),
            "align": align,
            "n_jobs": jobs,
        },
    )
    for path, suffixes in ((output, (".csv", ".parquet", ".npz")), (report, None)):
        check_target(path, suffixes)
    if report is not None:
        check_report_path(report)
    explanation = task.explain(index, order)
    show_explanation(explanation)
    screen = console()
    if output is not None:
        write_values(explanation, output)
        screen.print(f"\nvalues written to {output}")
    if report is not None:
        explanation.report(report, data_name=data.name, command=command_line(), seed=seed)
        screen.print(f"\nreport written to {report}")


def write_values(explanation: object, path: Path) -> None:
    """Write the values as a table, or the whole explanation as ``.npz``."""
    from exactshap.cli._io import write_table
    from exactshap.results.explanation import Explanation

    assert isinstance(explanation, Explanation)
    if path.suffix.lower() == ".npz":
        explanation.save(path)
    else:
        write_table(explanation.to_frame(), path)

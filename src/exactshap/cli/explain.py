"""``exactshap explain MODEL DATA``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactshap.cli import _options as options
from exactshap.errors import InputError

if TYPE_CHECKING:
    from exactshap.cli._work import Task
    from exactshap.results.explanation import Explanation


@options.takes_task("offset", "jobs", "rows", "keep", instead=options.FOLDER)
def command(
    task: Task,
    *,
    index: options.Index = "shapley",
    order: options.Order = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            "-o",
            help="Write the values: .csv, .parquet, .npz with everything, or a folder: files stream through, whatever their size.",
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report: .html.")] = None,
    seed: options.Seed = 0,
    batch_rows: Annotated[int | None, typer.Option(min=1, help="Rows of one file in a folder of results.")] = None,
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="Go on with a folder of results, or refuse it.")] = True,
    on_bad_rows: Annotated[
        str, typer.Option(help="Rows that the model refuses, for a folder of results: raise or mark.")
    ] = "raise",
    top_k: Annotated[int | None, typer.Option(min=1, help="Largest values of a row to write to a folder of results.")] = None,
    dtype: Annotated[str, typer.Option(help="Of the values in a folder of results: float64 or float32.")] = "float64",
) -> None:
    """Explain a table or a folder of tables; print the largest values."""
    from exactshap.cli._io import check_target
    from exactshap.cli._screen import console, show_explanation
    from exactshap.cli._work import command_line
    from exactshap.results.report import check_report_path

    of_folders = {"batch_rows": batch_rows, "resume": resume, "on_bad_rows": on_bad_rows, "top_k": top_k, "dtype": dtype}
    if task.file.is_dir() or (output is not None and not output.suffix):
        if task.rows is not None:
            raise InputError("--rows is for one file of results", f"Got --out {output}", "Name a file: --out values.csv")
        stream_files(task, output, report, index=index, order=order, **of_folders)
        return
    _refuse_settings_of_folders(of_folders, task.keep, output)
    for path, suffixes in ((output, (".csv", ".parquet", ".npz")), (report, None)):
        check_target(path, suffixes)
    if report is not None:
        check_report_path(report)
    explanation = task.explain(index, order)
    show_explanation(explanation)
    screen = console()
    if output is not None:
        write_values(task, explanation, output)
        screen.print(f"\nvalues written to {output}")
    if report is not None:
        explanation.report(report, data_name=task.file.name, command=command_line(), seed=seed)
        screen.print(f"\nreport written to {report}")


def _refuse_settings_of_folders(settings: dict[str, Any], keep: tuple[str, ...], output: Path | None) -> None:
    defaults = {"batch_rows": None, "resume": True, "on_bad_rows": "raise", "top_k": None, "dtype": "float64"}
    if settings != defaults or (keep and output is None):
        what = (
            "--batch-rows, --no-resume, --on-bad-rows, --top-k, --dtype (and, but for a table of values, --keep) "
            "are for a folder of results"
        )
        raise InputError(what, f"Got --out {output}" if output else "--out is missing", "Name a folder: --out results")


def stream_files(task: Task, output: Path | None, report: Path | None, **settings: Any) -> None:
    """Explain files into a folder of files, and print the importances."""
    from exactshap.cli._screen import console
    from exactshap.scale import explain_dataset

    if output is None or output.suffix:
        got = "--out is missing" if output is None else f"Got --out {output}"
        raise InputError("The results of a folder of files need a folder", got, "Name it: --out results")
    if report is not None:
        what = "A folder of files has no report"
        raise InputError(what, f"Got --report {report}", "Explain one file")
    settings |= {"keep": task.keep, "drop": task.drop, "offset": task.offset}
    console().print(repr(explain_dataset(task.without_data(), task.file, output, **settings)))


def write_values(task: Task, explanation: Explanation, path: Path) -> None:
    """Write values and explained rows as a table, or the whole explanation as ``.npz``."""
    from exactshap.cli._io import write_table

    if path.suffix.lower() == ".npz":
        explanation.save(path)
    else:
        write_table(explanation.to_frame() if explanation.order > 1 else task.labelled(explanation), path)

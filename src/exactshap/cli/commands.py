"""Run the commands about a model on rows, and ``demo`` and ``show-versions``."""

from __future__ import annotations

import glob
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import exactshap
from exactshap._runtime.files import open_regular
from exactshap._runtime.process_settings import without_collection
from exactshap._runtime.progress import duration, progress_text
from exactshap._runtime.types import Column
from exactshap._runtime.words import in_words, table_text
from exactshap.cli import _options as options
from exactshap.cli._io import TABLES, as_options, check_target, say, take_columns, write_table
from exactshap.cli._work import Task, command_line
from exactshap.errors import InputError

_SHOWN = 10  # features of a table
_OF_FOLDERS = {"batch_rows": None, "resume": True, "on_bad_rows": "raise", "top_k": None, "dtype": "float64"}


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The report to write.")] = Path("report.html"),
    background_rows: Annotated[int, typer.Option(min=0, max=442, help="Reference rows; 0 for the functional game.")] = 50,
) -> None:
    """Explain a support vector machine on scikit-learn's sample data and write report.html."""
    with without_collection:
        from sklearn.datasets import load_diabetes
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR

        from exactshap.explainer import Explainer
        from exactshap.results.report import check_report_path

    check_report_path(out)
    check_target(out, None)
    data = load_diabetes(scaled=False)
    model = make_pipeline(StandardScaler(), SVR(C=100.0)).fit(data.data, data.target)
    background = data.data[:background_rows] if background_rows else None
    explanation = Explainer(model, background, feature_names=data.feature_names, n_jobs=-1)(data.data)
    show_explanation(explanation)
    explanation.report(out, data_name="diabetes (scikit-learn)", command=command_line())
    say(f"\nreport written to {out}: open it in a browser\nyour own model: exactshap explain model.skops data.csv")


def versions() -> None:
    """Print the versions of Python, the system and all packages concerned."""
    exactshap.show_versions()


@options.takes_task("offset", "jobs", "rows", "keep", instead=options.FOLDER)
def explain(
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
    task = task.seeded(seed)
    of_folders = dict(zip(_OF_FOLDERS, (batch_rows, resume, on_bad_rows, top_k, dtype), strict=True))
    many = task.file.is_dir() or (not task.file.exists() and glob.has_magic(str(task.file)))
    if many or (output is not None and not output.suffix):
        if task.rows is not None:
            raise InputError("--rows is for one file of results", f"Got --out {output}", "Name a file: --out values.csv")
        _stream_files(task, output, report, index=index, order=order, **of_folders)
        return
    got = f"Got --out {output}" if output else "--out is missing"
    if of_folders != _OF_FOLDERS:
        what = "--batch-rows, --no-resume, --on-bad-rows, --top-k and --dtype are for a folder of results"
        raise InputError(what, got, "Name a folder: --out results")
    if task.keep and (output is None or output.suffix.lower() == ".npz"):
        raise InputError("--keep copies columns to a table of values", got, "Name a folder, or a .csv or .parquet file")
    for path, suffixes in ((output, (*TABLES, ".npz")), (report, None)):
        check_target(path, suffixes)
    if report is not None:
        from exactshap.results.report import check_report_path

        check_report_path(report)
    explanation = task.explain(index, order)
    show_explanation(explanation)
    if output is not None:
        if output.suffix.lower() == ".npz":
            explanation.save(output)
        else:
            from exactshap.scale import output_columns

            write_table(output_columns(explanation, task.kept_columns()), output)
        say(f"\nvalues written to {output}")
    if report is not None:
        explanation.report(report, data_name=task.file.name, command=command_line(), seed=seed)
        say(f"\nreport written to {report}")


def _stream_files(task: Task, output: Path | None, report: Path | None, **settings: Any) -> None:
    from exactshap.scale import explain_dataset

    if output is None or output.suffix:
        got = "--out is missing" if output is None else f"Got --out {output}"
        raise InputError("The results of a folder of files need a folder", got, "Name it: --out results")
    if report is not None:
        what = "A folder of files has no report"
        raise InputError(what, f"Got --report {report}", "Explain one file")
    settings |= {"keep": task.keep, "drop": task.drop, "offset": task.offset}
    say(repr(explain_dataset(task.without_data(), task.file, output, **settings)))


@options.takes_task("offset", "jobs", "rows", instead=options.SAVED)
def report(
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
    from exactshap.results.report import check_report_path

    check_report_path(out)
    check_target(out, None)
    observed = None
    if task.is_saved:
        explanation = task.saved(index=index != "shapley", order=order != 1)
    else:
        explanation = task.seeded(seed).explain(index, order)
        observed = None if task.target is None else _comparable_target(explanation, task.column(task.target))
    explanation.report(
        out,
        data_name=(task.data or task.model).name,
        command=command_line(),
        target=observed,
        seed=seed,
        interactive=interactive,
    )
    say(f"{explanation.certificate()}\nreport written to {out}")


def _comparable_target(explanation: exactshap.Explanation, target: Column) -> Any:
    """Return the target if the output has its unit; else print why the report has no errors."""
    from exactshap.results.data import observe

    try:
        observe(explanation, target)
    except InputError as error:
        say(f"The report has no errors of the prediction. {error}")
        return None
    return target


@options.takes_task("offset")
def check(
    task: Task,
    *,
    rows: Annotated[
        str, typer.Option(help="How many rows to check, drawn at random; or which, all of them: 0:20, 3,5,8, or a filter.")
    ] = "100",
    masks: Annotated[int, typer.Option(min=1, help="Random coalitions to compare with the model on hand-masked rows.")] = 8,
    seed: options.Seed = 0,
) -> None:
    """Check the reading of a model: residuals, and games against the model on rows masked by hand.

    Exit code 1 if the check fails.
    """
    import numpy as np

    from exactshap.frames import as_table

    most = options.row_count(rows)
    task = replace(task.seeded(seed), rows=options.row_choice(rows) if most is None else None)
    quiet = replace(task, settings=task.settings | {"progress": False})  # the whole check has one line of progress
    with progress_text(None, lambda _, seconds: f"checking {task.model.name} for {duration(seconds)}"):
        explainer, X = quiet.explainer()
        if most is not None and (table := as_table(X)).n_rows > most:
            X = table.take(np.sort(np.random.default_rng(seed).choice(table.n_rows, most, replace=False))).native
        verification = explainer.verify(X, n_masks=masks, random_state=seed, offset=task.offset)
    say(repr(explainer))
    say(str(verification))
    if not verification.passed:
        raise typer.Exit(1)


@options.takes_task("jobs", "rows", "keep", instead=options.SAVED)
def reasons(
    task: Task,
    *,
    adverse: Annotated[
        str, typer.Option(help="What speaks against a row: positive values (of a risk) or negative (of a score).")
    ],
    k: Annotated[int, typer.Option("-k", min=1, help="Reasons of a row at most.")] = 3,
    codes: Annotated[Path | None, typer.Option(help='Codes or texts of the columns, .toml: income = "R01: income".')] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the reasons: .csv or .parquet.")] = None,
    letter: Annotated[Path | None, typer.Option(help="Write the letter of one row (--rows 7): .html or .pdf.")] = None,
    resample: Annotated[int, typer.Option(min=0, help="Resamples of the background, for intervals of the reasons.")] = 0,
    seed: options.Seed = 0,
) -> None:
    """Name the strongest adverse reasons of each row, with the hash that repeats them."""
    from exactshap.results.data import frame_of

    check_target(out, TABLES)
    check_target(letter, (".html", ".htm", ".pdf"), "Letters")
    wrong, example = "The code of {} in {} is not text", 'income = "R01: income"'
    settings: dict[str, Any] = {
        "adverse": adverse,
        "codes": options.read_toml(codes, str, wrong, example),
        "random_state": seed,
    }
    if task.is_saved:
        if resample:
            do = "Pass the model, the rows and --background"
            raise InputError("A saved explanation holds no background rows to resample", f"Got --resample {resample}", do)
        found = task.saved().reasons(k, **settings)
    else:
        explainer, X = task.seeded(seed).explainer()
        if resample:
            settings |= {"background_values": explainer.background_values(X), "n_bootstrap": resample}
        with open_regular(task.model) as file:
            settings["model_digest"] = hashlib.file_digest(file, "sha256").hexdigest()
        found = explainer(X).reasons(k, **settings)
    say(repr(found))
    if out is not None:
        write_table(frame_of(found.explanation.data, {**task.kept_columns(), **found.columns()}, None), out)
        say(f"table written to {out}")
    if letter is not None:
        rows = found.explanation.n_rows
        which = f"letter of row {task.row_numbers[0]}, the first of {rows:,}," if rows > 1 else "letter"
        say(f"{which} written to {found.letter(letter)}")


@options.takes_task()
def app(
    task: Task,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of 127.0.0.1; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Open a local page that explains each change of a row. Sliders change the row; only this machine reaches the page."""
    from exactshap.app import WhatIf, run_app

    rows = take_columns(task.table.native, task.drop, what=task.file.name)
    model = task.read_model()
    what_if = WhatIf(model, rows, task.read_background(model), **task.settings)
    run_app(what_if, port=port, open_browser=browser, ready=lambda address: say(f"open {address}\nCtrl-C ends it"))


def show_explanation(explanation: exactshap.Explanation) -> None:
    """Print a summary and a table of the strongest features."""
    say(as_options(repr(explanation)))
    views = [("", explanation)]
    if explanation.output_names is not None:
        views = [(f", output {name!r}", explanation.output(k)) for k, name in enumerate(explanation.output_names)]
    for name, view in views if explanation.n_rows else ():
        say(f"\nvalues of {view.n_players} features{name}\n{_table(view)}")
        if view.n_players > _SHOWN:
            say(f"({view.n_players - _SHOWN} with smaller values not shown)")


def _table(view: exactshap.Explanation) -> str:
    import numpy as np

    from exactshap.results.data import readable, without_noise

    largest = view.tolerance.max()
    view = readable(view)
    strength, rows = np.abs(view.values).mean(axis=0), []
    for j in np.argsort(-strength, kind="stable")[:_SHOWN]:
        values = view.values[:, j]
        numbers = without_noise(np.array([strength[j], values.mean(), values.min(), values.max()]), largest)
        words = (in_words(number, largest=float(np.abs(view.values).max())) for number in numbers)
        rows.append([view.feature_names[j], *words])
    return table_text(["feature", "mean |value|", "mean", "lowest", "highest"], rows)

"""``exactshap reasons MODEL DATA --adverse positive``: the strongest adverse reasons of each row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from exactshap.cli import _options as options


def command(
    model: Annotated[Path, typer.Argument(help="Fitted model, or an explanation saved as .npz.")],
    data: Annotated[Path | None, typer.Argument(help="Rows: .csv or .parquet; not for a saved explanation.")] = None,
    *,
    adverse: Annotated[
        str, typer.Option(help="What speaks against a row: positive values (of a risk) or negative (of a score).")
    ],
    k: Annotated[int, typer.Option("-k", min=1, help="Reasons of a row at most.")] = 3,
    codes: Annotated[Path | None, typer.Option(help='Codes or texts of the columns, .toml: income = "R01: income".')] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the reasons: .csv or .parquet.")] = None,
    letter: Annotated[Path | None, typer.Option(help="Write the letter of one row (--rows 7): .html or .pdf.")] = None,
    resample: Annotated[int, typer.Option(min=0, help="Resamples of the background, for intervals of the reasons.")] = 0,
    background: options.Background = None,
    target: options.Target = None,
    drop: options.Drop = None,
    keep: Annotated[list[str] | None, typer.Option(help="Column to copy to the reasons; may be repeated.")] = None,
    value_function: options.ValueFunction = "auto",
    model_output: options.ModelOutput = "auto",
    allow_pickle: options.AllowPickle = False,
    trust: options.Trust = False,
    n_stages: options.Stages = None,
    align: options.Align = False,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    groups: options.Groups = None,
    budget: options.Budget = None,
    rows: options.Rows = None,
) -> None:
    """Name the strongest adverse reasons of each row, with the hash that repeats them."""
    from exactshap.cli._io import check_target, write_table
    from exactshap.cli._screen import console
    from exactshap.cli._work import Task
    from exactshap.results.data import frame_of
    from exactshap.results.explanation import Explanation

    check_target(out, (".csv", ".parquet"))
    check_target(letter, (".html", ".htm", ".pdf"))
    settings: dict[str, Any] = {"adverse": adverse, "codes": read_codes(codes), "random_state": seed}
    before: dict[str, Any] = {}
    if model.suffix.lower() == ".npz":
        _refuse_resampling(resample)
        reasons = Explanation.load(model).reasons(k, **settings)
    else:
        task = Task(
            model=model,
            data=_needed(data),
            background=background,
            drop=options.dropped(target, drop),
            allow_pickle=allow_pickle,
            trust=trust,
            n_stages=n_stages,
            settings=options.explainer_settings(value_function, model_output, align, groups, budget, n_jobs=jobs),
            rows=options.row_choice(rows),
            keep=tuple(keep or ()),
        )
        explainer, X = task.explainer()
        if resample:
            settings |= {"background_values": explainer.background_values(X), "n_bootstrap": resample}
        reasons = explainer(X).reasons(k, model_digest=file_digest(model), **settings)
        before = task.kept_columns()
    screen = console()
    screen.print(repr(reasons))
    if out is not None:
        write_table(frame_of(reasons.explanation.data, {**before, **reasons.columns()}, None), out)
        screen.print(f"table written to {out}")
    if letter is not None:
        screen.print(f"letter written to {reasons.letter(letter)}")


def read_codes(path: Path | None) -> dict[str, str] | None:
    """Return the codes of a TOML file: a text for each column."""
    if path is None:
        return None
    from exactshap.errors import InputError, message

    codes = options.read_toml(path)
    wrong = next((name for name, text in codes.items() if not isinstance(text, str)), None)
    if wrong is not None:
        raise InputError(message(f"The code of {wrong!r} in {path} is not text", do='Write it as income = "R01: income"'))
    return codes


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    import hashlib

    from exactshap._runtime.files import open_regular

    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _needed(data: Path | None) -> Path:
    from exactshap.errors import InputError, message

    if data is None:
        do = "Pass a .csv or .parquet file after the model"
        raise InputError(message("Reasons of a model need rows", "DATA is missing", do))
    return data


def _refuse_resampling(resample: int) -> None:
    from exactshap.errors import InputError, message

    if resample:
        do = "Pass the model, the rows and --background"
        raise InputError(message("A saved explanation holds no background rows to resample", f"Got --resample {resample}", do))

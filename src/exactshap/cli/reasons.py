"""``exactshap reasons MODEL DATA --adverse positive``: the strongest adverse reasons of each row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactshap.cli import _options as options
from exactshap.errors import InputError

if TYPE_CHECKING:
    from exactshap.cli._work import Task


@options.takes_task("jobs", "rows", "keep", instead=options.SAVED)
def command(
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
    from exactshap.cli._io import check_target, write_table
    from exactshap.cli._screen import console
    from exactshap.results.data import frame_of
    from exactshap.results.explanation import Explanation

    check_target(out, (".csv", ".parquet"))
    check_target(letter, (".html", ".htm", ".pdf"))
    settings: dict[str, Any] = {
        "adverse": adverse,
        "codes": options.read_toml(codes, str, "The code of {} in {} is not text", 'income = "R01: income"'),
        "random_state": seed,
    }
    before: dict[str, Any] = {}
    if task.is_saved:
        _refuse_resampling(resample)
        reasons = Explanation.load(task.model).reasons(k, **settings)
    else:
        explainer, X = task.explainer()
        if resample:
            settings |= {"background_values": explainer.background_values(X), "n_bootstrap": resample}
        reasons = explainer(X).reasons(k, model_digest=file_digest(task.model), **settings)
        before = task.kept_columns()
    screen = console()
    screen.print(repr(reasons))
    if out is not None:
        write_table(frame_of(reasons.explanation.data, {**before, **reasons.columns()}, None), out)
        screen.print(f"table written to {out}")
    if letter is not None:
        screen.print(f"letter written to {reasons.letter(letter)}")


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    import hashlib

    from exactshap._runtime.files import open_regular

    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_resampling(resample: int) -> None:
    if resample:
        do = "Pass the model, the rows and --background"
        raise InputError("A saved explanation holds no background rows to resample", f"Got --resample {resample}", do)

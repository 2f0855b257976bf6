"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

# Bytes: names of some million columns.
_MAX_TOML = 2**26

Model = Annotated[Path, typer.Argument(help="Fitted model: .skops, a booster's file, or a pickle with --allow-pickle.")]
Data = Annotated[Path, typer.Argument(help="Rows to explain: .csv or .parquet.")]
DataOrFolder = Annotated[Path, typer.Argument(help="Rows to explain: .csv or .parquet, or a folder or pattern of such files.")]
Background = Annotated[Path | None, typer.Option(help="Reference rows (.csv or .parquet); all of them are used.")]
Target = Annotated[str | None, typer.Option(help="Column of the data that is the target, not a feature.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column of the data that is not a feature; may be repeated.")]
Offset = Annotated[
    str | None, typer.Option(help="Column of the data with the offset of each row (log exposure), which is no feature.")
]
Index = Annotated[str, typer.Option(help="Which value: shapley, banzhaf, sii, k-sii, stii, fsii, ...")]
Order = Annotated[int, typer.Option(min=1, help="Largest size of the sets of features; 2 for interactions.")]
ValueFunction = Annotated[str, typer.Option(help="interventional, baseline, functional, path_dependent, ... or auto.")]
ModelOutput = Annotated[str, typer.Option(help="Output of a model with several: a name, a number, auto or all.")]
AllowPickle = Annotated[bool, typer.Option("--allow-pickle", help="Read pickles, which run whatever code is in them.")]
Trust = Annotated[bool, typer.Option("--trust", help="Read skops files with types that skops does not know.")]
Align = Annotated[bool, typer.Option("--align", help="Reorder the columns of the data by name.")]
Groups = Annotated[Path | None, typer.Option(help='Groups of columns as players, .toml: blood = ["s1", "s2"].')]
Budget = Annotated[
    int | None, typer.Option(min=1, help="Calls of a function, or of the game, that sampling may use for a row.")
]
Rows = Annotated[
    str | None, typer.Option(help="Which rows: 7, 0:100, 3,5,8, or a filter such as 'age > 40 and sex = F'; all by default.")
]
Jobs = Annotated[int | None, typer.Option(help="Threads; results are the same bits for every number.")]
Seed = Annotated[int, typer.Option(help="Seed of random choices.")]
Stages = Annotated[
    int | None,
    typer.Option(
        "--n-stages", min=0, help="Boosting rounds of a booster's file; XGBoost's stop at its best iteration by default."
    ),
]

# the examples below the help of each command
_LINES = {
    "demo": ("exactshap demo", "exactshap demo --background-rows 0 -o demo.html"),
    "explain": (
        "exactshap explain model.skops data.csv --background train.csv --target y",
        "exactshap explain booster.json data.csv -o values.csv --keep customer --rows 0:1000",
        "exactshap explain model.skops data.csv --background train.csv --groups groups.toml -o all.npz",
    ),
    "report": (
        "exactshap report model.skops data.csv --background train.csv --target y -o report.html",
        "exactshap report all.npz",
    ),
    "check": ("exactshap check model.skops data.csv --background train.csv --target y --rows 20",),
    "compare": ("exactshap compare may.npz june.npz --picture change.png", "exactshap compare all.npz --by sex -o groups.csv"),
    "reasons": (
        "exactshap reasons model.skops data.csv --background train.csv --target y --adverse positive --codes codes.toml -o reasons.csv",
        "exactshap reasons booster.json data.csv --background train.csv --adverse positive --rows 7 --letter letter.html --resample 1000",
    ),
    "app": ("exactshap app model.skops data.csv --background train.csv --target y",),
    "r2": ("exactshap r2 booster.json data.csv --target y -o shares.csv",),
    "mmd": ("exactshap mmd may.csv june.csv --picture drift.png",),
    "hsic": ("exactshap hsic data.csv --target y", "exactshap hsic data.csv --target y --method exact --permutations 999"),
}
EXAMPLES = {name: "\n\n".join(("Examples:", *lines)) for name, lines in _LINES.items()}


def explainer_settings(
    value_function: str, model_output: str, align: bool, groups: Path | None, budget: int | None, **others: Any
) -> dict[str, Any]:
    """Return the keyword arguments of ``Explainer``; readers refuse a budget that they have no use for, so that none is no keyword."""
    settings = {"value_function": value_function, "output": output_choice(model_output), "align": align}
    return {**settings, "groups": read_groups(groups), **({} if budget is None else {"budget": budget}), **others}


def dropped(target: str | None, drop: list[str] | None) -> tuple[str, ...]:
    """Return the columns that are not features."""
    return tuple(drop or ()) + (() if target is None else (target,))


def read_groups(path: Path | None) -> dict[str, list[str]] | None:
    """Return the groups of a TOML file: a list of columns for each name."""
    if path is None:
        return None
    from exactshap.errors import InputError, message

    groups = read_toml(path)
    wrong = next((name for name, columns in groups.items() if not isinstance(columns, list)), None)
    if wrong is not None:
        raise InputError(message(f"Group {wrong!r} of {path} is not a list", do='Write it as blood = ["s1", "s2"]'))
    return groups


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds."""
    import tomllib

    from exactshap._runtime.files import read_bounded
    from exactshap.errors import InputError, ModelFormatError, message

    try:
        return tomllib.loads(read_bounded(path, _MAX_TOML).decode())
    except ModelFormatError:  # too large, or no regular file
        raise
    except ValueError as error:  # of TOML and of text
        raise InputError(message(f"{path} cannot be read as TOML", f"{error}")) from None


def row_choice(text: str | None) -> slice | list[int] | str | None:
    """Return what ``--rows`` means: one row, a range without its end, a list, or a filter.

    >>> row_choice("0:100"), row_choice("3,5"), row_choice("7"), row_choice("age > 40")
    (slice(0, 100, None), [3, 5], [7], 'age > 40')
    """
    from exactshap.errors import InputError, message

    if text is None or any(sign not in "0123456789:,- " for sign in text):
        return text
    try:
        if ":" in text:
            start, stop = (int(part) if part.strip() else None for part in text.split(":"))
            return slice(start, stop)
        return [int(part) for part in text.split(",")]
    except ValueError:
        do = "Write --rows 7, --rows 0:100, --rows 3,5,8, or a filter: --rows 'age > 40'"
        raise InputError(message(f"--rows {text} does not choose rows", do=do)) from None


def output_choice(text: str) -> int | str:
    """Return a number for digits, else the name.

    >>> output_choice("2"), output_choice("all")
    (2, 'all')
    """
    return int(text) if text.lstrip("-").isdigit() else text

"""Define arguments and options that several commands share."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, get_type_hints

import typer

from exactshap._runtime.files import read_bounded
from exactshap.cli._work import Task
from exactshap.errors import InputError, ModelFormatError

# Bytes: names of some million columns.
_MAX_TOML = 2**26

Model = Annotated[Path, typer.Argument(help="Fitted model: .skops, a booster's file, or a pickle with --allow-pickle.")]
Data = Annotated[Path, typer.Argument(help="Rows to explain: .csv or .parquet.")]
DataOrFolder = Annotated[Path, typer.Argument(help="Rows to explain: .csv or .parquet, or a folder or pattern of such files.")]
ModelOrSaved = Annotated[Path, typer.Argument(help="Fitted model, or an explanation saved as .npz.")]
DataOfModel = Annotated[Path | None, typer.Argument(help="Rows: .csv or .parquet; not for a saved explanation.")]
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
Keep = Annotated[list[str] | None, typer.Option(help="Column to copy to what is written; may be repeated.")]
Seed = Annotated[int, typer.Option(help="Seed of random choices.")]
Stages = Annotated[
    int | None,
    typer.Option(
        "--n-stages", min=0, help="Boosting rounds of a booster's file; XGBoost's stop at its best iteration by default."
    ),
]

# examples in the help of each command
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


Shared = Mapping[str, tuple[Any, Any]]  # name of an option -> its type and default
Command = Callable[..., None]

# Options of every command about a model on rows
_OF_MODEL: Shared = {
    "model": (Model, Parameter.empty),
    "data": (Data, Parameter.empty),
    "background": (Background, None),
    "target": (Target, None),
    "drop": (Drop, None),
    "value_function": (ValueFunction, "auto"),
    "model_output": (ModelOutput, "auto"),
    "allow_pickle": (AllowPickle, False),
    "trust": (Trust, False),
    "n_stages": (Stages, None),
    "align": (Align, False),
    "groups": (Groups, None),
    "budget": (Budget, None),
}
# Options of some of them
_FURTHER: Shared = {"offset": (Offset, None), "jobs": (Jobs, None), "rows": (Rows, None), "keep": (Keep, None)}
# In place of model and data for commands that accept more
FOLDER: Shared = {"data": (DataOrFolder, Parameter.empty)}
SAVED: Shared = {"model": (ModelOrSaved, Parameter.empty), "data": (DataOfModel, None)}


def takes_task(*further: str, instead: Shared = MappingProxyType({})) -> Callable[[Command], Command]:
    """Give a command the options of a model on rows, as its argument ``task``.

    ``further`` are the names of options that not all such commands have; ``instead`` replaces some.
    """
    return takes("task", {**_OF_MODEL, **{name: _FURTHER[name] for name in further}, **instead}, _task)


def takes(argument: str, shared: Shared, make: Callable[..., Any]) -> Callable[[Command], Command]:
    """Give a command shared options; ``make`` turns them into its ``argument``."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**typed: Any) -> None:
            made = make(**{name: typed.pop(name) for name in shared})
            command(**typed, **{argument: made})

        # Typer reads the signature, and does not know the type of the argument itself
        types = get_type_hints(command, include_extras=True)
        own = [one.replace(annotation=types[name]) for name, one in Signature.from_callable(command).parameters.items()]
        others = [Parameter(name, Parameter.KEYWORD_ONLY, default=one[1], annotation=one[0]) for name, one in shared.items()]
        of_command = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in own if one.name != argument]
        run.__signature__ = Signature([*others, *of_command])  # type: ignore[attr-defined]
        run.__annotations__ = {}
        return run

    return decorate


def _task(
    *,
    value_function: str,
    model_output: str,
    align: bool,
    groups: Path | None,
    budget: int | None,
    target: str | None,
    drop: list[str] | None,
    jobs: int | None = None,
    rows: str | None = None,
    keep: list[str] | None = None,
    **others: Any,
) -> Task:
    settings: dict[str, Any] = {
        "value_function": value_function,
        "output": output_choice(model_output),
        "align": align,
        "n_jobs": jobs,
    }
    # Readers refuse a budget that they do not use
    settings |= {"groups": read_groups(groups)} | ({} if budget is None else {"budget": budget})
    choice: dict[str, Any] = {"drop": dropped(target, drop), "rows": row_choice(rows), "keep": tuple(keep or ())}
    return Task(settings=settings, target=target, **choice, **others)


def dropped(target: str | None, drop: list[str] | None) -> tuple[str, ...]:
    return tuple(drop or ()) + (() if target is None else (target,))


def read_groups(path: Path | None) -> dict[str, list[str]] | None:
    return read_toml(path, list, "Group {} of {} is not a list", 'blood = ["s1", "s2"]')


def read_toml(path: Path | None, kind: type, wrong: str, example: str) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        content = tomllib.loads(read_bounded(path, _MAX_TOML).decode())
    except ModelFormatError:  # too large, or no regular file
        raise
    except ValueError as error:  # of TOML and of text
        raise InputError(f"{path} cannot be read as TOML", f"{error}") from None
    for name, value in content.items():
        if not isinstance(value, kind):
            raise InputError(wrong.format(repr(name), path), do=f"Write it as {example}")
    return content


def row_choice(text: str | None) -> slice | list[int] | str | None:
    """Parse ``--rows``: one row, a half-open range, a list, or a filter.

    >>> row_choice("0:100"), row_choice("3,5"), row_choice("7"), row_choice("age > 40")
    (slice(0, 100, None), [3, 5], [7], 'age > 40')
    """
    if text is None or any(sign not in "0123456789:,- " for sign in text):
        return text
    try:
        if ":" in text:
            start, stop = (int(part) if part.strip() else None for part in text.split(":"))
            return slice(start, stop)
        return [int(part) for part in text.split(",")]
    except ValueError:
        do = "Write --rows 7, --rows 0:100, --rows 3,5,8, or a filter: --rows 'age > 40'"
        raise InputError(f"--rows {text} does not choose rows", do=do) from None


def row_count(text: str) -> int | None:
    """Parse ``--rows`` of ``check``: a number says how many rows, anything else which ones.

    >>> row_count("20"), row_count("0:20")
    (20, None)
    """
    try:
        count = int(text)
    except ValueError:
        return None
    if count < 1:
        do = "Write --rows 20 for twenty rows, --rows 0:20 for the first twenty"
        raise InputError("--rows must be at least one row", f"Got {count}", do)
    return count


def output_choice(text: str) -> int | str:
    """Return a number for digits, else the name.

    >>> output_choice("2"), output_choice("all")
    (2, 'all')
    """
    return int(text) if text.lstrip("-").isdigit() else text

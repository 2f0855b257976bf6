"""``exactshap check MODEL DATA``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from exactshap.cli import _options as options

if TYPE_CHECKING:
    from exactshap.cli._work import Task


@options.takes_task("offset")
def command(
    task: Task,
    *,
    rows: Annotated[int, typer.Option(min=1, help="Rows to check, drawn at random if there are more.")] = 100,
    masks: Annotated[int, typer.Option(min=1, help="Random coalitions to compare with the model on hand-masked rows.")] = 8,
    seed: options.Seed = 0,
) -> None:
    """Check the reading of a model: residuals, and games against the model on rows masked by hand.

    Exit code 1 if the check fails.
    """
    from exactshap._runtime.progress import duration, progress_text
    from exactshap.cli._screen import console

    quiet = replace(task, settings=task.settings | {"progress": False})  # the whole check has one line of progress
    with progress_text(None, lambda _, seconds: f"checking {task.model.name} for {duration(seconds)}"):
        explainer, X = quiet.explainer()
        verification = explainer.verify(_some_rows(X, rows, seed), n_masks=masks, random_state=seed, offset=task.offset)
    screen = console()
    screen.print(repr(explainer))
    screen.print(str(verification))
    if not verification.passed:
        raise typer.Exit(1)


def _some_rows(X: object, wanted: int, seed: int) -> object:
    import numpy as np

    from exactshap.frames import as_table

    table = as_table(X)
    if table.n_rows <= wanted:
        return X
    return table.take(np.sort(np.random.default_rng(seed).choice(table.n_rows, wanted, replace=False))).native

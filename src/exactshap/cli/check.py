"""``exactshap check MODEL DATA``."""

from __future__ import annotations

from typing import Annotated

import typer

from exactshap.cli import _options as options


def command(
    model: options.Model,
    data: options.Data,
    *,
    background: options.Background = None,
    target: options.Target = None,
    drop: options.Drop = None,
    offset: options.Offset = None,
    value_function: options.ValueFunction = "auto",
    model_output: options.ModelOutput = "auto",
    rows: Annotated[int, typer.Option(min=1, help="Rows to check, drawn at random if there are more.")] = 100,
    masks: Annotated[int, typer.Option(min=1, help="Random coalitions to compare with the model on hand-masked rows.")] = 8,
    allow_pickle: options.AllowPickle = False,
    trust: options.Trust = False,
    n_stages: options.Stages = None,
    align: options.Align = False,
    seed: options.Seed = 0,
    groups: options.Groups = None,
    budget: options.Budget = None,
) -> None:
    """Check that a model is read correctly: residuals, and games against the model on rows masked by hand.

    Exit code 1 if the check fails.
    """
    from exactshap._runtime.progress import duration, progress_text
    from exactshap.cli._screen import console
    from exactshap.cli._work import Task

    task = Task(
        model=model,
        data=data,
        background=background,
        drop=options.dropped(target, drop),
        allow_pickle=allow_pickle,
        trust=trust,
        n_stages=n_stages,
        settings=options.explainer_settings(value_function, model_output, align, groups, budget, progress=False),
        offset=offset,
    )
    with progress_text(None, lambda _, seconds: f"checking {model.name} for {duration(seconds)}"):
        explainer, X = task.explainer()
        verification = explainer.verify(_some_rows(X, rows, seed), n_masks=masks, random_state=seed, offset=offset)
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

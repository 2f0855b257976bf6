"""``exactshap app MODEL DATA``: a page of this machine on which a row can be changed."""

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
    value_function: options.ValueFunction = "auto",
    model_output: options.ModelOutput = "auto",
    allow_pickle: options.AllowPickle = False,
    trust: options.Trust = False,
    n_stages: options.Stages = None,
    align: options.Align = False,
    groups: options.Groups = None,
    budget: options.Budget = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of 127.0.0.1; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Open a local page that explains each change of a row. Sliders change the row; only this machine reaches the page."""
    from exactshap.app import WhatIf, run_app
    from exactshap.cli._io import load_model, take_columns
    from exactshap.cli._screen import console
    from exactshap.cli._work import Task

    settings = options.explainer_settings(value_function, model_output, align, groups, budget)
    task = Task(model=model, data=data, background=background, drop=options.dropped(target, drop), settings=settings)
    fitted = load_model(model, allow_pickle=allow_pickle, trust=trust, n_stages=n_stages)
    rows = take_columns(task.table(), task.drop, what=data.name)
    what_if = WhatIf(fitted, rows, None if background is None else task.read_background(), **settings)
    run_app(
        what_if,
        port=port,
        open_browser=browser,
        ready=lambda address: console().print(f"open {address}\nCtrl-C ends it"),
    )

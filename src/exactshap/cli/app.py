"""``exactshap app MODEL DATA``: a page of this machine on which a row can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from exactshap.cli import _options as options

if TYPE_CHECKING:
    from exactshap.cli._work import Task


@options.takes_task()
def command(
    task: Task,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of 127.0.0.1; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Open a local page that explains each change of a row. Sliders change the row; only this machine reaches the page."""
    from exactshap.app import WhatIf, run_app
    from exactshap.cli._io import take_columns
    from exactshap.cli._screen import console

    rows = take_columns(task.table(), task.drop, what=task.file.name)
    what_if = WhatIf(task.read_model(), rows, task.read_background(), **task.settings)

    def say(address: str) -> None:
        console().print(f"open {address}\nCtrl-C ends it")

    run_app(what_if, port=port, open_browser=browser, ready=say)

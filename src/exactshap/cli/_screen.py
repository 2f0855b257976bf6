"""Print tables to the screen or a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap.errors import printable
from exactshap.results.data import counted, readable, without_noise

if TYPE_CHECKING:
    from exactshap.results.explanation import Explanation

_SHOWN = 10  # features of a table


def console() -> Any:
    """Return a rich console that prints text literally. Names of columns may hold markup or escape characters."""
    from rich.console import Console

    class Screen(Console):
        def render(self, *arguments: Any, **settings: Any) -> Iterator[Any]:
            # Cleans text from files, not rich's own escapes
            for segment in super().render(*arguments, **settings):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

    return Screen(markup=False, highlight=False, soft_wrap=True)


def show_explanation(explanation: Explanation) -> None:
    """Print a summary and a table of the strongest features."""
    screen = console()
    screen.print(repr(explanation))
    views = [("", explanation)]
    if explanation.output_names is not None:
        views = [(f", output {name!r}", explanation.output(k)) for k, name in enumerate(explanation.output_names)]
    for name, view in views:
        if view.n_rows:
            screen.print()
            screen.print(_table(view, name))
        if view.n_players > _SHOWN:
            screen.print(f"{counted(view.n_players - _SHOWN, 'feature')} with smaller values not shown")


def _table(view: Explanation, name: str) -> Any:
    from rich.table import Table

    table = Table(title=f"values of {view.n_players} features{name}", title_justify="left")
    table.add_column("feature")
    for heading in ("mean |value|", "mean", "lowest", "highest"):
        table.add_column(heading, justify="right")
    largest = view.tolerance.max()
    view = readable(view)
    strength = np.abs(view.values).mean(axis=0)
    for j in np.argsort(-strength, kind="stable")[:_SHOWN]:
        values = view.values[:, j]
        numbers = without_noise(np.array([strength[j], values.mean(), values.min(), values.max()]), largest)
        table.add_row(view.feature_names[j], *(f"{number:.4g}" for number in numbers))
    return table

"""Shapley values against each background row alone: interventional values are their mean."""

from __future__ import annotations

import numpy as np

from exactshap._runtime.progress import Progress, progress_rows
from exactshap.errors import BudgetError, InputError, message
from exactshap.frames import Table
from exactshap.readers import Reader
from exactshap.semivalues import find

__all__ = ["values_by_background_row"]


def values_by_background_row(reader: Reader, table: Table, memory_limit: float, progress: Progress) -> np.ndarray:
    """Return values (n_background, n_rows, n_players[, n_outputs]) of the rows, one background row at a time."""
    background = reader.background
    if background is None or reader.value_function != "interventional":
        raise InputError(
            message(
                "Only interventional values are a mean over background rows",
                f"Got value_function={reader.value_function!r}",
                "Pass a background, and leave value_function= out",
            )
        )
    if reader.weights is not None and np.ptp(reader.weights) > 0:
        raise InputError(message("Background rows with weights are no sample to draw from again", "Got background_weights="))
    tail = (table.n_rows, reader.n_players, *(() if reader.single_output else (reader.n_outputs,)))
    size = 8.0 * background.n_rows * np.prod(tail)
    if size > memory_limit:
        raise BudgetError(
            message(
                "Values by background row do not fit in memory_limit",
                f"They take {size:.3g} bytes, memory_limit={memory_limit:.3g}",
                "Pass fewer rows at a time",
            )
        )
    values = np.empty((background.n_rows, *tail))
    with progress_rows(progress, background.n_rows) as report:
        for z in range(background.n_rows):
            values[z] = _of_one(reader, background.take([z]), table)
            report(z + 1)
    return values


def _of_one(reader: Reader, row: Table, table: Table) -> np.ndarray:
    bound = reader.bind(row)
    solution = None if bound is None else bound.solve(table, find("shapley"), 1)
    if solution is None or solution.std_error is not None:
        raise InputError(
            message(
                "Values by background row must be exact",
                f"{reader.model_name} is sampled, or cannot be bound to one background row",
                "Explain it with several backgrounds, Explainer(model, background[rows]), and compare their values",
            )
        )
    return solution.values

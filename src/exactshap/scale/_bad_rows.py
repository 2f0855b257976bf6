"""Separate rows that a model refuses from those that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from exactshap.frames import Table, is_missing

# InputError and InputTypeError derive from these, and models raise them, too.
REFUSALS = (ValueError, TypeError)
Solve = Callable[[np.ndarray], Any]  # row numbers -> result, or one of REFUSALS


def explain_what_is_possible(
    solve: Solve, table: Table, offsets: np.ndarray | None = None, *, has_types: bool
) -> list[tuple[np.ndarray, Any]]:
    """Return (row numbers, result) of the rows that ``solve`` accepts; ``offsets`` holds one number per row.

    Without types to compare its columns with (``has_types``), a table of refused rows is refused itself.
    """
    refused = _refused_for_gaps(solve, table, offsets)
    left = np.flatnonzero(~refused)
    results: list[tuple[np.ndarray, Any]] = []
    last: Exception | None = None
    for rows, outcome in _halved(solve, left) if left.size else ():
        if isinstance(outcome, Exception):
            last = outcome
        else:
            results.append((rows, outcome))
    if last is not None and not results and not has_types:
        raise last
    return results


def first_refused(
    solve: Solve, table: Table, error: Exception, offsets: np.ndarray | None = None
) -> tuple[int | None, Exception]:
    """Return the number and the error of the first refused row, or None if no single row is refused."""
    gaps = _refused_for_gaps(solve, table, offsets)
    refused, others = np.flatnonzero(gaps), np.flatnonzero(~gaps)
    # Where another row is refused, too, gaps may not be the reason
    if refused.size and not (others.size and _error_of(solve, others[:1])):
        return int(refused[0]), _error_of(solve, refused[:1]) or error
    outcomes = _halved(solve, np.arange(table.n_rows))
    row, reason = next(((rows[0], outcome) for rows, outcome in outcomes if isinstance(outcome, Exception)), (None, error))
    several = table.n_rows > 1 and row == 0 and _error_of(solve, np.array([table.n_rows - 1])) is not None
    return (None, error) if row is None or several else (int(row), reason)


def _halved(solve: Solve, rows: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
    """Yield rows with their result, in order; a refused row comes alone, with its error."""
    try:
        yield rows, solve(rows)
    except REFUSALS as error:
        if len(rows) == 1:
            yield rows, error
            return
        middle = len(rows) // 2
        yield from _halved(solve, rows[:middle])
        yield from _halved(solve, rows[middle:])


def _refused_for_gaps(solve: Solve, table: Table, offsets: np.ndarray | None) -> np.ndarray:
    """Return which rows are refused for missing or infinite cells, one trial per pattern."""
    columns = [_gaps(table, j) for j in range(table.n_columns)]
    gaps = np.stack(columns if offsets is None else [*columns, _kinds(offsets)], axis=1)
    refused = np.zeros(table.n_rows, bool)
    holed = np.flatnonzero(gaps.any(axis=1))
    patterns, group = np.unique(gaps[holed], axis=0, return_inverse=True)
    for number in range(len(patterns)):
        rows = holed[group.reshape(-1) == number]
        refused[rows] = _error_of(solve, rows[:1]) is not None
    return refused


def _error_of(solve: Solve, rows: np.ndarray) -> Exception | None:
    try:
        solve(rows)
    except REFUSALS as error:
        return error
    return None


def _gaps(table: Table, j: int) -> np.ndarray:
    """Return 0 for present cells, 1 for missing, 2 and 3 for infinities."""
    numbers = table.numbers([j])
    if numbers is None:
        return np.array([is_missing(cell) for cell in table.column(j).tolist()], np.int8)
    return _kinds(numbers[:, 0])


def _kinds(numbers: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(numbers), 1, np.where(np.isposinf(numbers), 2, 3 * np.isneginf(numbers))).astype(np.int8)

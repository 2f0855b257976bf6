"""Read the columns of samples as numbers: float64 where they are numeric, category codes where they are not."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from exactshap._runtime.types import PerColumn
from exactshap.errors import InputError, InputTypeError, message
from exactshap.frames import Table, is_missing
from exactshap.frames.stored import StoredTable, pieces_of, scratch_array

_TEXT_TYPES = ("String", "Categorical", "Enum", "Boolean")


def pooled_names(tables: Sequence[Table | StoredTable], owners: Sequence[str], fallback: str = "x") -> tuple[str, ...]:
    """Return the common column names of some tables, or refuse them."""
    first = tables[0]
    for table, owner in zip(tables[1:], owners[1:], strict=True):
        if table.n_columns != first.n_columns:
            raise InputError(
                f"`{owners[0]}` and `{owner}` must have the same columns",
                f"Got {first.n_columns} and {table.n_columns}",
                "Select the common columns of both",
            )
        if table.names is not None and first.names is not None and table.names != first.names:
            raise InputError(_difference(owners[0], first.names, owner, table.names))
    named = next((table.names for table in tables if table.names is not None), None)
    return named or tuple(f"{fallback}{j}" for j in range(first.n_columns))


def _difference(one: str, names: tuple[str, ...], other: str, others: tuple[str, ...]) -> str:
    missing, extra = [n for n in names if n not in others], [n for n in others if n not in names]
    if missing or extra:
        got = f"Only in `{one}`: {missing}; only in `{other}`: {extra}"
        return message(f"`{one}` and `{other}` must have the same columns", got, "Select the common columns of both")
    got = f"`{other}` holds {list(others)}"
    return message(f"`{one}` and `{other}` must have their columns in the same order", got, f"Pass {other}[{list(names)}]")


def encode_columns(
    tables: Sequence[Table | StoredTable], owners: Sequence[str], categorical: Sequence[bool | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pooled columns (n_columns, n_rows) and whether each is categorical.

    ``categorical`` marks the columns; None infers it: text, categories and booleans are categorical. A missing category is one more
    category, a missing number NaN. Columns of stored tables are read a piece at a time, into a scratch file.
    """
    shape = (tables[0].n_columns, sum(table.n_rows for table in tables))
    columns = _empty(shape, on_disk=any(isinstance(table, StoredTable) for table in tables))
    is_category = np.array(
        [any(_is_text(table, j) for table in tables) if wanted is None else wanted for j, wanted in enumerate(categorical)],
        bool,
    )
    codes: list[dict[Any, int]] = [{} for _ in categorical]
    start = 0
    for table, owner in zip(tables, owners, strict=True):
        first = start
        for piece in pieces_of(table):
            stop = start + piece.n_rows
            for j, coded in enumerate(is_category):
                place = (owner, start - first)
                # Codes are shared by all tables: a category has the same number in both samples.
                columns[j, start:stop] = _codes(piece, j, codes[j]) if coded else _numbers(piece, j, place)
            start = stop
    return columns, is_category


def lay_out(columns: np.ndarray, order: Sequence[tuple[int, bool]]) -> np.ndarray:
    """Return the columns in another order: ``(j, False)`` is column j, ``(j, True)`` whether its numbers are missing.

    Missing numbers of column j are replaced by its median: with the indicator column any number would do in the kernel, and
    the median changes median distances least. Columns stay where they are, in memory or in a scratch file.
    """
    if list(order) == [(j, False) for j in range(len(columns))]:
        return columns
    out = _empty((len(order), columns.shape[1]), on_disk=isinstance(columns, np.memmap))
    for place, (j, says_missing) in enumerate(order):
        missing = np.isnan(columns[j])
        out[place] = missing if says_missing else columns[j]
        if missing.any() and not says_missing:
            known = columns[j][~missing]
            out[place, missing] = np.median(known) if known.size else 0.0
    return out


def _empty(shape: tuple[int, int], *, on_disk: bool) -> np.ndarray:
    return scratch_array(shape) if on_disk else np.empty(shape)


def _is_text(table: Table | StoredTable, j: int) -> bool:
    if isinstance(table, StoredTable):
        # A column of a file has one type, which the first piece shows.
        return any(_is_text(piece, j) for piece in itertools.islice(table.pieces(), 1))
    if table.names is not None:
        dtype = str(table.readable()[table.names[j]].dtype)
        if dtype.startswith(_TEXT_TYPES):
            return True
        # Only a column of objects may hold anything, so its cells are inspected.
        if dtype not in ("Object", "Unknown"):
            return False
    values = table.column(j)
    return values.dtype.kind in "bUS" or (values.dtype.kind == "O" and any(isinstance(v, (str, bool)) for v in values))


def _numbers(piece: Table, j: int, place: tuple[str, int]) -> np.ndarray:
    owner, first = place
    try:
        values = piece.select([j]).numeric(what=owner)[:, 0]
    except InputTypeError as error:  # its message is about models
        do = "Pass a number in its place, such as days since the first date, or leave the column out"
        raise InputTypeError(f"{str(error).partition('. ')[0]}, which has no distance", do=do) from None
    infinite = np.isinf(values)
    if infinite.any():
        row = first + int(np.argmax(infinite))
        raise InputError(f"Input {owner} contains infinity", f"First in {piece.label(j)}, row {row}", "Clip or drop it")
    return values


def _codes(piece: Table, j: int, numbers: dict[Any, int]) -> np.ndarray:
    """Return category numbers, in order of first appearance over all tables."""
    values = (None if is_missing(value) else value for value in piece.column(j).tolist())
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], float)


def refuse_per_column(bandwidth: PerColumn) -> None:
    """Refuse bandwidths per column where two tables share the setting."""
    if not isinstance(bandwidth, (str, int, float, np.number)):
        got, do = f"Got {type(bandwidth).__name__}", "Pass bandwidth_x= or bandwidth_y= for one per column"
        raise InputTypeError("`bandwidth` of HSIC is one number or word, for both sides", got, do)

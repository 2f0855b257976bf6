"""Columns of one or two samples as numbers: float64 where they are numeric, category codes where they are not."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from exactshap.errors import InputError, InputTypeError, message
from exactshap.frames import Table
from exactshap.frames.stored import StoredTable, pieces_of, scratch_array

__all__ = ["encode_columns", "in_order", "pooled_names", "refuse_per_column"]

_TEXT_TYPES = ("String", "Categorical", "Enum", "Boolean")


def pooled_names(tables: Sequence[Table | StoredTable], owners: Sequence[str], fallback: str = "x") -> tuple[str, ...]:
    """Return the common column names of some tables, or say how they differ."""
    first = tables[0]
    for table, owner in zip(tables[1:], owners[1:], strict=True):
        if table.n_columns != first.n_columns:
            raise InputError(
                message(
                    f"`{owners[0]}` and `{owner}` must have the same columns",
                    f"Got {first.n_columns} and {table.n_columns}",
                    "Select the common columns of both",
                )
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
    """Return the pooled columns (n_columns, n_rows) and which of them are categorical (n_columns,).

    ``categorical`` says so per column; None looks at the column: text, categories and booleans are. Columns of stored tables are
    read a piece at a time, into a scratch file.
    """
    shape = (tables[0].n_columns, sum(table.n_rows for table in tables))
    columns = scratch_array(shape) if any(isinstance(table, StoredTable) for table in tables) else np.empty(shape)
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
                columns[j, start:stop] = _codes(piece, j, codes[j], place) if coded else _numbers(piece, j, place)
            start = stop
    return columns, is_category


def in_order(columns: np.ndarray, order: list[int]) -> np.ndarray:
    """Return the columns in another order; they stay where they are, in memory or in a scratch file."""
    if order == list(range(len(columns))):
        return columns
    out = (
        scratch_array((len(order), columns.shape[1]))
        if isinstance(columns, np.memmap)
        else np.empty((len(order), columns.shape[1]))
    )
    for place, j in enumerate(order):
        out[place] = columns[j]
    return out


def _is_text(table: Table | StoredTable, j: int) -> bool:
    if isinstance(table, StoredTable):
        return any(_is_text(piece, j) for piece in itertools.islice(table.pieces(), 1))  # columns of files have a type
    if table.is_frame:
        dtype = str(table._series(j).dtype)
        if dtype.startswith(_TEXT_TYPES):
            return True
        if dtype not in ("Object", "Unknown"):
            return False
    values = table.column(j)
    return values.dtype.kind in "bUS" or (values.dtype.kind == "O" and any(isinstance(v, (str, bool)) for v in values))


def _numbers(piece: Table, j: int, place: tuple[str, int]) -> np.ndarray:
    owner, first = place
    values = piece.select([j]).numeric(what=owner)[:, 0]
    bad = ~np.isfinite(values)
    if bad.any():
        kind = "NaN" if np.isnan(values[bad][0]) else "infinity"
        raise InputError(_missing(owner, kind, piece.label(j), first + int(np.argmax(bad))))
    return values


def _codes(piece: Table, j: int, numbers: dict[Any, int], place: tuple[str, int]) -> np.ndarray:
    """Return category numbers, in order of first appearance over all tables."""
    owner, first = place
    codes = []
    for row, value in enumerate(piece.column(j).tolist()):
        if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
            raise InputError(_missing(owner, "NaN", piece.label(j), first + row))
        codes.append(numbers.setdefault(value, len(numbers)))
    return np.array(codes, float)


def _missing(owner: str, kind: str, label: str, row: int) -> str:
    return message(f"Input {owner} contains {kind}", f"First in {label}, row {row}", "Fill or drop the missing values")


def refuse_per_column(bandwidth: Any) -> None:
    """Refuse bandwidths of single columns where one number or word stands for two sets of variables."""
    if not isinstance(bandwidth, (str, int, float, np.number)):
        got, do = f"Got {type(bandwidth).__name__}", "Pass bandwidth_x= or bandwidth_y= for one per column"
        raise InputTypeError(message("`bandwidth` of HSIC is one number or word, for both sides", got, do))

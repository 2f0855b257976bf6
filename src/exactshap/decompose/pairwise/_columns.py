"""Columns of one or two samples as numbers: float64 where they are numeric, category codes where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactshap.errors import InputError, InputTypeError, message
from exactshap.frames import Table

__all__ = ["encode_columns", "pooled_names", "refuse_per_column"]

_TEXT_TYPES = ("String", "Categorical", "Enum", "Boolean")


def pooled_names(tables: Sequence[Table], owners: Sequence[str], fallback: str = "x") -> tuple[str, ...]:
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
    tables: Sequence[Table], owners: Sequence[str], categorical: Sequence[bool | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pooled columns (n_columns, n_rows) and which of them are categorical (n_columns,).

    ``categorical`` says so per column; None looks at the column: text, categories and booleans are.
    """
    n_rows = sum(table.n_rows for table in tables)
    columns = np.empty((tables[0].n_columns, n_rows))
    is_category = np.zeros(len(columns), bool)
    for j, wanted in enumerate(categorical):
        is_category[j] = any(_is_text(table, j) for table in tables) if wanted is None else wanted
        encode = _codes if is_category[j] else _numbers
        columns[j] = encode(tables, owners, j)
    return columns, is_category


def _is_text(table: Table, j: int) -> bool:
    if table.is_frame:
        dtype = str(table._series(j).dtype)
        if dtype.startswith(_TEXT_TYPES):
            return True
        if dtype not in ("Object", "Unknown"):
            return False
    values = table.column(j)
    return values.dtype.kind in "bUS" or (values.dtype.kind == "O" and any(isinstance(v, (str, bool)) for v in values))


def _numbers(tables: Sequence[Table], owners: Sequence[str], j: int) -> np.ndarray:
    parts = [table.select([j]).numeric(what=owner)[:, 0] for table, owner in zip(tables, owners, strict=True)]
    for table, owner, values in zip(tables, owners, parts, strict=True):
        bad = ~np.isfinite(values)
        if bad.any():
            kind = "NaN" if np.isnan(values[bad][0]) else "infinity"
            raise InputError(_missing(owner, kind, table.label(j), int(np.argmax(bad))))
    return np.concatenate(parts)


def _codes(tables: Sequence[Table], owners: Sequence[str], j: int) -> np.ndarray:
    """Return category numbers, in order of first appearance over all tables."""
    numbers: dict[Any, int] = {}
    codes = []
    for table, owner in zip(tables, owners, strict=True):
        for row, value in enumerate(table.column(j).tolist()):
            if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
                raise InputError(_missing(owner, "NaN", table.label(j), row))
            codes.append(numbers.setdefault(value, len(numbers)))
    return np.array(codes, float)


def _missing(owner: str, kind: str, label: str, row: int) -> str:
    return message(f"Input {owner} contains {kind}", f"First in {label}, row {row}", "Fill or drop the missing values")


def refuse_per_column(bandwidth: Any) -> None:
    """Refuse bandwidths of single columns where one number or word stands for two sets of variables."""
    if not isinstance(bandwidth, (str, int, float, np.number)):
        got, do = f"Got {type(bandwidth).__name__}", "Pass bandwidth_x= or bandwidth_y= for one per column"
        raise InputTypeError(message("`bandwidth` of HSIC is one number or word, for both sides", got, do))

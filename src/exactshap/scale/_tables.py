"""Convert tables to the background's library, and separate rows that models refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from exactshap._runtime.optional import first_installed, require
from exactshap._runtime.types import TableLike
from exactshap.errors import ExplanationWarning, InputError, InputTypeError, warn
from exactshap.frames import Table, as_table, is_missing
from exactshap.frames.stored import CsvTypes
from exactshap.results.data import frame_kind, frame_of

# Cells of a CSV file that pandas reads as missing
_MISSING_IN_PANDAS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
    *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
# InputError and InputTypeError derive from these, and models raise them, too.
REFUSALS = (ValueError, TypeError)
Solve = Callable[[np.ndarray], Any]  # row numbers -> result, or one of REFUSALS


def as_frame(table: TableLike) -> tuple[Any, Callable[[Any], Any]]:
    """Return a frame, and a function that converts back. Engines also pass record batches and mappings of arrays."""
    if isinstance(table, Mapping):
        frame = frame_of(None, table, None)
        names = "column_names" if frame_kind(frame) == "pyarrow" else "columns"
        return frame, lambda result: {name: np.asarray(result[name]) for name in getattr(result, names)}
    if type(table).__name__ == "RecordBatch" and frame_kind(table) == "pyarrow":
        arrow = require("pyarrow", "scale", purpose="A record batch")
        return arrow.Table.from_batches([table]), lambda result: arrow.RecordBatch.from_arrays(
            [column.combine_chunks() for column in result.columns], schema=result.schema
        )
    if frame_kind(table) is None:
        got, do = f"Got {type(table).__name__}", "Pass a pandas or polars DataFrame, or an Arrow table"
        raise InputTypeError("A partition must be a table with names", got, do)
    return table, lambda result: result


def check_types(table: Table, background: Table | None) -> None:
    """Refuse text in numeric columns, and bytes. Warn where the background has more digits."""
    if background is None or background.n_columns != table.n_columns:
        return
    place = {name: j for j, name in enumerate(background.names or ())}
    own, wanted, first = _kinds_of_columns(table), _kinds_of_columns(background), table.take(slice(0, 1))
    for j, name in enumerate(table.names or ()):
        here, there = own[j], wanted[place.get(name, j)]
        if table.n_rows and not here.startswith("float") and isinstance(cell := first.column(j)[0], bytes):
            raise InputError(
                f"Column {name!r} holds bytes", f"Got {cell!r} in the first row", "Decode it before: no text equals bytes"
            )
        if there.startswith("float") and here == "text":
            got = f"Got {table.column(j).dtype}, in the background {there}"
            raise InputError(
                f"Column {name!r} holds text instead of numbers", got, "Convert it before: rows would be refused one by one"
            )
        if (here, there) == ("float32", "float64"):
            warn(f"column {name!r} is float32, but float64 in the background: it has 7 digits only", ExplanationWarning)


def _kinds_of_columns(table: Table) -> list[str]:
    """Return "text", "float32", "float64" (any other number) or "" (anything else) for each column."""
    # All columns at once, and each dtype once: one column after the other takes a hundred times as long
    if table.is_frame and not table.is_plain:
        dtypes, kind_of = list(table.readable().schema.values()), _kind_in_frames
    else:
        dtypes, kind_of = list(table.dtypes) or [np.asarray(table.native).dtype] * table.n_columns, _kind_in_arrays
    kinds = {dtype: kind_of(dtype) for dtype in set(dtypes)}
    return [kinds[dtype] for dtype in dtypes]


def _kind_in_arrays(dtype: np.dtype) -> str:
    return "" if dtype.kind not in "fiub" else "float32" if dtype == np.float32 else "float64"


def _kind_in_frames(dtype: Any) -> str:
    import narwhals.stable.v2 as nw

    if dtype.is_numeric() or dtype == nw.Boolean:
        return "float32" if dtype == nw.Float32 else "float64"
    return "text" if dtype in (nw.String, nw.Categorical, nw.Enum) else ""


def csv_types(keep: tuple[str, ...], background: Table | None) -> CsvTypes:
    """Return how CSV files are read. Columns are text where the background holds text, whatever the cells look like.

    Without a background, cells of text are missing that pandas reads as missing: it holds the rows then.
    """
    if background is None or not background.is_frame:
        return CsvTypes(keep, gaps=_MISSING_IN_PANDAS if first_installed(("pandas",)) else ("",))
    import narwhals.stable.v2 as nw

    frame, texts, times = background.readable(), {}, []
    missing = _MISSING_IN_PANDAS if frame_kind(background.native) == "pandas" else ("",)
    for name in background.names or ():
        known = frame[name].drop_nulls().to_list()
        if frame[name].dtype.is_temporal():
            times.append(name)
        elif known and all(isinstance(cell, str) for cell in known):
            texts[name] = tuple(cell for cell in missing if cell not in known)
    truths = tuple(name for name in background.names or () if frame[name].dtype == nw.Boolean and name not in keep)
    return CsvTypes(keep, texts, tuple(times), truths)


def in_library_of(table: Table, background: Table | None) -> Table:
    """Return a frame of the background's library; without one Arrow's as pandas, since scikit-learn's steps take no Arrow tables."""
    here = frame_kind(table.native)
    if background is not None and background.is_frame:
        wanted = frame_kind(background.native)
    else:
        wanted = first_installed(("pandas",)) if here == "pyarrow" else here
    if wanted in (here, None):
        return table
    import narwhals.stable.v2 as nw

    frame = nw.from_native(table.native, eager_only=True)
    known = background.readable().schema if background is not None and background.is_frame else {}
    # pandas makes objects of empty columns, of booleans with missing cells and of decimals: numbers hold them.
    gaps = [
        name
        for name, kind in frame.schema.items()
        if kind == nw.Unknown or (kind == nw.Boolean and frame[name].is_null().any())
    ]
    decimals = [name for name, kind in frame.schema.items() if kind == nw.Decimal and known.get(name, nw.Float64).is_numeric()]
    frame = frame.with_columns(nw.col(*gaps).cast(nw.Float64)) if gaps else frame
    # Arrow's own way from decimals to float64 is off in the last bit
    frame = frame.with_columns(nw.col(*decimals).cast(nw.String).cast(nw.Float64)) if decimals else frame
    if here == "pyarrow" and (gaps or decimals):  # its notes for pandas name the types before
        frame = nw.from_native(frame.to_native().replace_schema_metadata(), eager_only=True)
    converted = {"pandas": frame.to_pandas, "polars": frame.to_polars, "pyarrow": frame.to_arrow}[str(wanted)]()
    return as_table(converted, allow_empty=True)


def explain_what_is_possible(
    solve: Solve, table: Table, offsets: np.ndarray | None, *, has_types: bool
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


def first_refused(solve: Solve, table: Table, error: Exception, offsets: np.ndarray | None) -> tuple[int | None, Exception]:
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
    """Yield rows with their result, in order. A refused row comes alone, with its error."""
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
    gaps = np.stack(columns if offsets is None else [*columns, _gap_codes(offsets)], axis=1)
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
    return _gap_codes(numbers[:, 0])


def _gap_codes(numbers: np.ndarray) -> np.ndarray:
    """Return the same of numbers."""
    return np.where(np.isnan(numbers), 1, np.where(np.isposinf(numbers), 2, 3 * np.isneginf(numbers))).astype(np.int8)

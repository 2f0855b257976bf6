"""Convert the players' cells to numbers on an axis and to text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.types import TableLike
from exactshap.errors import InputError
from exactshap.frames import Table, as_table, is_missing, label_text

if TYPE_CHECKING:
    from exactshap.results.data._explanation_data import ExplanationData

# Numbers that are read together for a hash: 2 MiB.
CELLS_AT_ONCE = 2**18


@dataclass(frozen=True, eq=False)
class Cells:
    """Hold numbers and texts of the players, as drawn and converted."""

    # (n_rows, n_players): the column of each player, the mean of a group of numeric columns, or codes of text in the order
    # of its categories or the alphabet (NaN if missing)
    numbers: np.ndarray
    # object (n_rows, n_players): numbers as they are and everything else as text: of a group the cells of its columns (of
    # more than three numbers, their mean)
    display: np.ndarray
    numeric: np.ndarray  # bool (n_players,): whether ``numbers`` are measurements rather than codes
    text: np.ndarray  # bool (n_players,): whether ``display`` is text

    def days(self, j: int) -> np.ndarray | None:
        """Return days since 1970 of a column of dates, NaN where missing. None for other columns."""
        return None if self.numeric[j] else as_days(self.display[:, j])

    def categories(self, j: int) -> tuple[str, ...]:
        """Return the categories behind the numbers 0, 1, ... of a column; none for measurements."""
        shown = self.display[:, j]
        if not self.numeric[j]:
            codes = dict(zip(shown, self.numbers[:, j], strict=True))
            return tuple(sorted(filter(None, codes), key=codes.__getitem__))
        is_truth = not self.text[j] and any(isinstance(cell, str) for cell in shown)
        return ("False", "True") if is_truth else ()


@dataclass(frozen=True, eq=False)
class Axis:
    """Hold the cells of one player as numbers."""

    name: str
    numbers: np.ndarray  # (n_rows,): NaN where missing; days since 1970 for dates; 0, 1, ... for categories
    kind: str  # {"number", "date", "text"}
    categories: tuple[str, ...] | None = None  # what 0, 1, ... mean for text


def cells(explanation: ExplanationData, rows: np.ndarray | None = None) -> Cells | None:
    """Return the cells of all or some rows, or None for an explanation without data."""
    if explanation.data is None:
        return None
    table = as_table(explanation.data, allow_empty=True)
    players = player_columns(explanation, table)
    if rows is not None:
        table = table.take(rows)
    columns = [_player_cells(table, members) for members in players]
    display = np.empty((table.n_rows, len(players)), object)
    for j, (_, shown, _) in enumerate(columns):
        display[:, j] = shown
    numbers = np.stack([column for column, _, _ in columns], axis=1) if columns else np.empty((table.n_rows, 0))
    numeric = np.array([numeric for _, _, numeric in columns], bool)
    groups = np.array([len(members) > 1 for members in players], bool)
    return Cells(numbers, display, numeric, ~numeric | groups)


def player_columns(explanation: ExplanationData, table: Table) -> list[tuple[int, ...]]:
    """Return the column numbers of each player: its group, its name, or the next column that belongs to no group."""
    groups = explanation.groups or {}
    members = {name: tuple(_number(column, table) for column in columns) for name, columns in groups.items()}
    taken = {j for columns in members.values() for j in columns}
    free = (j for j in range(table.n_columns) if j not in taken)
    players = [members[name] if name in members else (next(free, -1),) for name in explanation.feature_names]
    if any(-1 in columns for columns in players) or next(free, None) is not None:
        raise InputError(
            "`data` does not have the columns of the players",
            f"`data` has {table.n_columns} columns for {explanation.n_players} players",
        )
    return players


def _number(column: int | str, table: Table) -> int:
    if not isinstance(column, str):
        return int(column)
    # Readers' names of the columns of arrays
    names = table.names or tuple(f"x{j}" for j in range(table.n_columns))
    if column not in names:
        raise InputError(f"A group names column {column!r}, which `data` does not have", f"Got {names}")
    return names.index(column)


def _player_cells(table: Table, members: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, bool]:
    numbers = table.numbers(list(members))
    if numbers is None:
        return _text_cells(table, members)
    if len(members) == 1:
        shown, known = numbers[:, 0].astype(object), ~np.isnan(numbers[:, 0])
        cells = table.column(members[0])
        if cells.dtype == bool or (cells.dtype == object and all(isinstance(cell, (bool, np.bool_)) for cell in cells[known])):
            shown[known] = np.where(numbers[known, 0] > 0, "True", "False")
        return numbers[:, 0], shown, True
    display = np.empty(len(numbers), object)
    display[:] = [_group_text(row) for row in numbers.tolist()]
    return numbers.mean(axis=1), display, True


def _group_text(row: list[float]) -> str:
    """Return the numbers of a group as text.

    >>> _group_text([15024.0, float("nan")]), _group_text([1.0, 2.0, 3.0, 4.5])
    ('15024, missing', 'mean 2.625 of 4')
    """
    if len(row) > 3:
        return f"mean {np.mean(row):.4g} of {len(row)}"
    return ", ".join(f"{value:.6g}" if value == value else "missing" for value in row)


def _text_cells(table: Table, members: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, bool]:
    columns = [[cell_text(value) for value in table.column(j)] for j in members]
    texts = [", ".join(row) for row in zip(*columns, strict=True)]
    code = {text: float(number) for number, text in enumerate(in_order(texts, table, members))}
    numbers = np.array([code.get(text, np.nan) for text in texts], float)
    display = np.empty(len(texts), object)
    display[:] = texts
    return numbers, display, False


def in_order(texts: Iterable[str], table: Table, members: tuple[int, ...]) -> list[str]:
    """Return the distinct texts of a player in the order of its column's categories, or of the alphabet."""
    places = {cell_text(category): k for k, category in enumerate(ordered_categories(table, members[0]))}
    return sorted(set(texts) - {""}, key=lambda text: (places.get(text, len(places)), text))


def ordered_categories(table: Table, j: int) -> list[Any]:
    """Return the categories of a column of a table that orders them."""
    return categories_in_order(table.readable()[table.names[j]]) if table.names is not None else []


def categories_in_order(column: Any) -> list[Any]:
    """Return the categories of a series that orders them, pandas' ordered ones and Enum of polars; of others none."""
    import narwhals.stable.v2 as nw

    series = nw.from_native(column, allow_series=True, pass_through=True)
    return series.cat.get_categories().to_list() if isinstance(getattr(series, "dtype", None), nw.Enum) else []


def axis_name(explanation: ExplanationData, j: int) -> str:
    """Return what the axis of player ``j`` shows: its column, or the mean of a group's columns, or the group's text."""
    name = explanation.feature_names[j]
    members = (explanation.groups or {}).get(name, ())
    shown = cells(explanation, np.arange(min(explanation.n_rows, 1))) if len(members) > 1 else None
    return f"{name} (mean of {len(members)} columns)" if shown is not None and shown.numeric[j] else name


def axis(explanation: ExplanationData, shown: Cells, j: int) -> Axis:
    """Return the cells of a player as places on an axis."""
    name = axis_name(explanation, j)
    days = shown.days(j)
    if days is not None:
        return Axis(name, days, "date")
    categories = shown.categories(j)
    if categories or not shown.numeric[j]:
        return Axis(name, shown.numbers[:, j], "text", categories)
    return Axis(name, shown.numbers[:, j], "number")


def row_name(explanation: ExplanationData, i: int) -> str:
    """Return a row's number, with its label if that differs: ``row 3 (customer 17)``."""
    index = getattr(explanation.data, "index", None)
    label = "" if index is None or callable(index) else label_text(index[i])
    return f"row {i} ({label})" if label and label != str(i) else f"row {i}"


def cell_text(value: object) -> str:
    """Return a cell as text, "" if missing.

    >>> cell_text("NY"), cell_text(None), cell_text(3), cell_text(np.timedelta64(90, "m"))
    ('NY', '', '3', '1:30:00')
    """
    if is_missing(value):
        return ""
    return str(value.astype("m8[us]").item() if isinstance(value, np.timedelta64) else value)


def as_days(texts: np.ndarray) -> np.ndarray | None:
    """Return days since 1970 for a column of ISO dates, or None. Empty cells are NaN; None if any text is no date.

    >>> as_days(np.array(["1970-01-02", ""], object)), as_days(np.array(["1", "x"], object))
    (array([ 1., nan]), None)
    """
    known = texts != ""
    if not known.any() or any(not isinstance(text, str) or len(text) < 10 or text[4:5] != "-" for text in texts[known]):
        return None
    days = np.full(len(texts), np.nan)
    try:
        # As it is written there, without the zone, to the millisecond
        local = [text[:10] + re.split("[+Z-]", text[10:23].replace(" ", "T"))[0] for text in texts[known]]
        moments = np.array(local, dtype="datetime64[ms]")
    except ValueError:
        return None
    days[known] = moments.astype(np.int64) / 86_400_000
    return days


def fingerprint(data: TableLike) -> str:
    """Return the SHA-256 of a table's names and cells, in hexadecimal.

    Numbers and booleans count as float64 and everything else as text, so that a CSV file, a Parquet file, pandas and polars
    give the same hash. The rows' order matters, their labels do not.

    >>> import numpy as np
    >>> fingerprint(np.eye(2)) == fingerprint([[1, 0], [0, 1]])
    True
    """
    table = as_table(data, allow_empty=True)
    digest = hashlib.sha256(f"{table.n_rows} x {table.n_columns}".encode())
    for name, cells in zip(table.names or map(str, range(table.n_columns)), _columns_of(table), strict=True):
        digest.update(b"\x1e" + name.encode(errors="surrogatepass") + b"\x1f")
        digest.update(cells.tobytes() if isinstance(cells, np.ndarray) else "\x1f".join(cells).encode(errors="surrogatepass"))
    return digest.hexdigest()


def row_bytes(data: TableLike) -> Iterator[bytes]:
    """Yield each row's cells as bytes, by the rules of :func:`fingerprint`: the library that holds them does not matter.

    >>> list(row_bytes([[1.0]])) == list(row_bytes([[1]]))
    True
    """
    table = as_table(data, allow_empty=True)
    names = table.names or tuple(str(j) for j in range(table.n_columns))
    start = "\x1f".join(names).encode(errors="surrogatepass")
    columns = list(_columns_of(table))
    numbers = [column for column in columns if isinstance(column, np.ndarray)]
    texts = [column for column in columns if not isinstance(column, np.ndarray)]
    table_of_numbers = np.column_stack(numbers) if numbers else np.empty((table.n_rows, 0))
    for i in range(table.n_rows):
        words = b"".join(b"\x1f" + column[i].encode(errors="surrogatepass") for column in texts)
        yield start + b"\x1e" + table_of_numbers[i].tobytes() + words


def _columns_of(table: Table) -> Iterator[np.ndarray | list[str]]:
    """Yield the cells of each column: numbers of several at once, as one of a sparse matrix or a wide frame takes long to find."""
    step = max(1, CELLS_AT_ONCE // max(table.n_rows, 1))
    for start in range(0, table.n_columns, step):
        places = range(start, min(start + step, table.n_columns))
        together = table.numbers(list(places))
        for j in places:
            numbers = table.numbers([j]) if together is None else together[:, [j - start]]
            if numbers is None:
                yield [cell_text(value) for value in in_microseconds(table.column(j)).tolist()]
            else:
                # One NaN; minus zero and zero are one number
                yield np.where(np.isnan(numbers), np.nan, numbers + 0.0)[:, 0]


def in_microseconds(column: np.ndarray) -> np.ndarray:
    """Return nanoseconds in microseconds, as lists of them are numbers; with more digits as they are."""
    if column.dtype.kind not in "mM" or np.datetime_data(column.dtype)[0] != "ns":
        return column
    shorter = column.astype(f"{column.dtype.kind}8[us]")
    return shorter if np.array_equal(shorter, column, equal_nan=True) else column

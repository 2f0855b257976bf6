"""A hash of a table that does not depend on which library holds it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, InputTypeError
from exactshap.results.data._cells import cell_text

if TYPE_CHECKING:
    from exactshap.frames import Table

__all__ = ["fingerprint", "row_bytes"]


def fingerprint(data: TableLike) -> str:
    """Return the SHA-256 of a table's names and cells, in hexadecimal.

    Numbers and booleans count as float64 and everything else as text, so that a CSV file, a Parquet file, pandas and polars
    give the same hash. The rows' order matters, their labels do not.

    Examples
    --------
    >>> import numpy as np
    >>> fingerprint(np.eye(2)) == fingerprint([[1, 0], [0, 1]])
    True
    """
    from exactshap.frames import as_table

    table = as_table(data, allow_empty=True)
    digest = hashlib.sha256(f"{table.n_rows} x {table.n_columns}".encode())
    for j in range(table.n_columns):
        digest.update(
            b"\x1e" + (table.names[j] if table.names is not None else str(j)).encode(errors="surrogatepass") + b"\x1f"
        )
        digest.update(_column_bytes(table, j))
    return digest.hexdigest()


def row_bytes(data: TableLike) -> Iterator[bytes]:
    """Yield each row's cells as bytes, by the rules of :func:`fingerprint`: the library that holds them does not matter.

    >>> list(row_bytes([[1.0]])) == list(row_bytes([[1]]))
    True
    """
    from exactshap.frames import as_table

    table = as_table(data, allow_empty=True)
    names = table.names or tuple(str(j) for j in range(table.n_columns))
    start = "\x1f".join(names).encode(errors="surrogatepass")
    columns = [_cells_of(table, j) for j in range(table.n_columns)]
    numbers = [column for column in columns if isinstance(column, np.ndarray)]
    texts = [column for column in columns if not isinstance(column, np.ndarray)]
    table_of_numbers = np.column_stack(numbers) if numbers else np.empty((table.n_rows, 0))
    for i in range(table.n_rows):
        words = b"".join(b"\x1f" + column[i].encode(errors="surrogatepass") for column in texts)
        yield start + b"\x1e" + table_of_numbers[i].tobytes() + words


def _column_bytes(table: Table, j: int) -> bytes:
    cells = _cells_of(table, j)
    return cells.tobytes() if isinstance(cells, np.ndarray) else "\x1f".join(cells).encode(errors="surrogatepass")


def _cells_of(table: Table, j: int) -> np.ndarray | list[str]:
    """Return a column as numbers, else as texts."""
    try:
        numbers = table.select([j]).numeric()[:, 0]
    except (InputError, InputTypeError):
        return [cell_text(value) for value in table.column(j).tolist()]
    # One NaN; minus zero and zero are one number
    return np.where(np.isnan(numbers), np.nan, numbers + 0.0)

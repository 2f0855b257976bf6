"""A hash of a table that does not depend on which library holds it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, InputTypeError
from exactshap.results.data._cells import cell_text

if TYPE_CHECKING:
    from exactshap.frames import Table

__all__ = ["fingerprint"]


def fingerprint(data: TableLike) -> str:
    """Return the SHA-256 of a table's names and cells, in hexadecimal.

    Numbers and booleans count as float64 and everything else as text, so that a CSV file, a Parquet file, pandas and polars
    give the same hash. The rows' order matters, their labels do not.

    Parameters
    ----------
    data : array, pandas, polars or pyarrow table

    Returns
    -------
    digest : str

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


def _column_bytes(table: Table, j: int) -> bytes:
    try:
        numbers = table.select([j]).numeric()[:, 0]
    except (InputError, InputTypeError):
        return "\x1f".join(cell_text(value) for value in table.column(j).tolist()).encode(errors="surrogatepass")
    # One NaN; minus zero and zero are one number
    return np.where(np.isnan(numbers), np.nan, numbers + 0.0).tobytes()

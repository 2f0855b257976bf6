"""A hash of a table that does not depend on which library holds it."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

__all__ = ["fingerprint"]


def fingerprint(data: Any) -> str:
    """Return the SHA-256 of a table's names and cells, in hexadecimal.

    Numbers and booleans count as float64 and everything else as text, so that a CSV file, a Parquet file, pandas and polars
    give the same hash. The rows' order matters, their labels do not.

    >>> import numpy as np
    >>> fingerprint(np.eye(2)) == fingerprint([[1, 0], [0, 1]])
    True
    """
    from exactshap.frames import as_table

    table = as_table(data, allow_empty=True)
    digest = hashlib.sha256(f"{table.n_rows} x {table.n_columns}".encode())
    for j in range(table.n_columns):
        digest.update(b"\x1e" + (table.names[j] if table.names is not None else str(j)).encode() + b"\x1f")
        digest.update(_column_bytes(table.column(j)))
    return digest.hexdigest()


def _column_bytes(column: np.ndarray) -> bytes:
    if column.dtype.kind in "fiub":
        return (np.asarray(column, np.float64) + 0.0).tobytes()  # + 0.0: minus zero and zero are one number
    if column.dtype.kind == "O" and all(isinstance(value, (int, float, np.number, np.bool_)) for value in column):
        return _column_bytes(column.astype(float))
    return "\x1f".join("" if value is None else str(value) for value in column.tolist()).encode()

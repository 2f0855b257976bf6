"""Read rows of a Parquet file or folder on demand, as a table."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.types import Foreign, TableLike
from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean
from exactshap.frames import Table, as_table
from exactshap.frames.stored._places import find_files
from exactshap.frames.stored._source import group_batches, parquet_file


class StoredTable:
    """Hold rows of a Parquet file or folder, read piece by piece.

    Parameters
    ----------
    source : path, sequence of paths, or pyarrow.dataset.Dataset
        ``.parquet`` files, folders of such files (in the order of their names; hidden ones are left out), or patterns.
    columns : sequence of str, default=None
        Columns to use, in this order; None: all but a pandas index (``__index_level_0__``).
    drop : sequence of str, default=()
        Columns to leave out, such as identifiers.
    filesystem : file system of pyarrow or fsspec, default=None
        Where the paths are; None infers it from addresses such as ``s3://...``, else this machine.

    Attributes
    ----------
    n_rows, n_columns : int
    names : tuple of str
        The columns.

    Raises
    ------
    InputError, UnknownNameError
        If the files have other columns than the first one, or do not have a column that is named.

    Notes
    -----
    Construction reads only the ends of the files. Rows are decoded 65,536 at a time, row group by row group.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pandas.DataFrame({"id": [1, 2], "age": [3.0, 4.0]}).to_parquet(pathlib.Path(folder, "a.parquet"))
    ...     rows = StoredTable(folder, drop=["id"])
    ...     rows.names, rows.n_rows
    (('age',), 2)
    """

    def __init__(
        self, source: TableLike, columns: Sequence[str] | None = None, *, drop: Sequence[str] = (), filesystem: Foreign = None
    ) -> None:
        if isinstance(columns, str) or isinstance(drop, str):
            raise InputTypeError("`columns` and `drop` are lists of columns", "Got a single text", 'Pass drop=["id"]')
        self.source, self._filesystem = source, filesystem
        self._files = tuple(find_files(source, filesystem))
        self._called = Path(source).name if isinstance(source, (str, os.PathLike)) else f"{len(self._files)} files"
        if self._files[0].kind != "parquet":
            raise InputError(f"{self._called} is not Parquet", "Got CSV", "Convert it to Parquet first")
        self.n_rows, schemas = 0, []
        for stored in self._files:
            with parquet_file(stored) as opened:
                self.n_rows += opened.metadata.num_rows
                schemas.append(opened.schema_arrow.remove_metadata())
        held = schemas[0].names
        for name in (*(columns or ()), *drop):
            if name not in held:
                raise UnknownNameError(f"{self._called} has no column {name!r}", do=did_you_mean(name, held))
        counted = [name for name in held if not is_index(name)] if columns is None else columns
        self.names = tuple(name for name in counted if name not in drop)
        for file, schema in zip(self._files, schemas, strict=True):
            _check(schema, schemas[0], self.names, file.name, self._files[0].name)

    @property
    def n_columns(self) -> int:
        return len(self.names)

    def select(self, columns: Sequence[str] | None = None, *, drop: Sequence[str] = ()) -> StoredTable:
        """Return the same rows with other columns.

        Parameters
        ----------
        columns, drop : sequences of str

        Returns
        -------
        table : StoredTable
        """
        wanted = self.names if columns is None else columns
        return StoredTable(self.source, wanted, drop=drop, filesystem=self._filesystem)

    def pieces(self) -> Iterator[Table]:
        """Yield the rows in order, a piece at a time.

        Yields
        ------
        piece : Table
            Of an Arrow table.
        """
        arrow = require("pyarrow", "scale", purpose="Reading data")
        for stored in self._files:
            with parquet_file(stored) as file:
                for batch in group_batches(file, self.n_columns, columns=list(self.names)):
                    yield as_table(arrow.Table.from_batches([batch]).select(list(self.names)), allow_empty=True)

    def __repr__(self) -> str:
        return f"StoredTable({self._called!r}: {self.n_rows:,} rows, {self.n_columns} columns)"


def as_rows(native: TableLike, *, what: str = "X") -> Table | StoredTable:
    """Return a table in memory, or the stored one at a path."""
    if isinstance(native, StoredTable):
        return native
    stored = isinstance(native, (str, os.PathLike)) or callable(getattr(native, "get_fragments", None))
    return StoredTable(native) if stored else as_table(native, what=what)


def pieces_of(table: Table | StoredTable) -> Iterator[Table]:
    return table.pieces() if isinstance(table, StoredTable) else iter((table,))


def scratch_array(shape: tuple[int, ...]) -> np.ndarray:
    """Return a float64 array backed by an unnamed temporary file.

    The system keeps in memory what fits; the file is deleted with the array.
    """
    if not np.prod(shape):
        return np.empty(shape)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, np.float64, "w+", shape=shape)


def is_index(name: str) -> bool:
    """Say whether a column is the stored index of a pandas frame. pandas writes it under this name and reads it as no column.

    >>> is_index("__index_level_0__"), is_index("age")
    (True, False)
    """
    return name.startswith("__index_level_") and name.endswith("__")


def _check(schema: Foreign, first: Any, names: tuple[str, ...], file: str, of: str) -> None:
    for name in names:
        if name not in schema.names:
            raise InputError(f"{file} has no column {name!r}", f"{of} has one", "Convert one of the files")
        if schema.field(name).type != first.field(name).type:
            got = f"Got {schema.field(name).type}, in {of} {first.field(name).type}"
            raise InputError(f"Column {name!r} of {file} has another type", got, "Convert one of the files")

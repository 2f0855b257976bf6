"""Parquet and CSV files, read as a stream of batches of a fixed number of rows."""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exactshap._runtime.files import check_regular, open_regular
from exactshap._runtime.optional import require
from exactshap.errors import ExactshapError, InputError, message

__all__ = ["SourceFile", "find_files", "inspect", "kind_of", "parquet_file", "read_rows", "read_schema"]

_SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}
_STEP = 65_536  # rows that are decoded at a time
_OPEN = threading.local()  # the stream that a thread reads from: the next batch is most often the next rows of the same file


@dataclass(frozen=True)
class SourceFile:
    """One file of the input.

    Attributes
    ----------
    path, name : str
        Where it is, and what it is called in messages and in the manifest.
    digest : str
        SHA-256 of its bytes.
    groups : tuple of int
        Number of rows before each row group, and of all rows; CSV files have one group.
    """

    path: str
    name: str
    digest: str
    groups: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        return self.groups[-1]

    def place(self, row: int) -> str:
        """Return where a row is, as text.

        >>> SourceFile("a.parquet", "a.parquet", "", (0, 10, 20)).place(12)
        'a.parquet, row group 1, row 12 of the file'
        """
        group = (
            "" if len(self.groups) < 2 or kind_of(self.path) == "csv" else f", row group {bisect_right(self.groups, row) - 1}"
        )
        return f"{self.name}{group}, row {row} of the file"


def find_files(source: Path) -> list[Path]:
    """Return the files of a folder in the order of their names, or the one file; hidden ones and others do not count."""
    if not source.exists():
        raise FileNotFoundError(2, "No such file or folder", str(source))
    if not source.is_dir():
        kind_of(source)
        check_regular(source)
        return [source]
    found = sorted(path for path in source.rglob("*") if path.suffix.lower() in _SUFFIXES and not _is_hidden(path, source))
    if not found:
        raise InputError(message(f"The folder {source} has no data", "Got no .parquet and no .csv file in it"))
    kinds = {kind_of(path) for path in found}
    if len(kinds) > 1:
        raise InputError(
            message(f"The folder {source} mixes formats", f"Got {' and '.join(sorted(kinds))}", "Keep one of them")
        )
    return found


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def kind_of(path: str | Path) -> str:
    """Return "parquet" or "csv" by the suffix of a file, or refuse it."""
    kind = _SUFFIXES.get(Path(path).suffix.lower())
    if kind is None:
        raise InputError(message(f"Data are read from Parquet and CSV files, not from {Path(path).name}"))
    return kind


def read_schema(path: str | Path, keep: tuple[str, ...]) -> Any:
    """Return the columns and types of a file; those of CSV files are as :func:`csv_types` says."""
    if kind_of(path) == "parquet":
        with parquet_file(path) as file:
            return file.schema_arrow.remove_metadata()
    return _csv(path, keep).schema


def inspect(path: str, name: str, keep: tuple[str, ...]) -> SourceFile:
    """Read a file once for its digest and its number of rows."""
    with open_regular(path) as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if kind_of(path) == "csv":
        return SourceFile(path, name, digest, (0, sum(batch.num_rows for batch in _batches(path, 0, keep))))
    with parquet_file(path) as file:
        sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    return SourceFile(path, name, digest, tuple(starts))


def read_rows(file: SourceFile, start: int, stop: int, keep: tuple[str, ...]) -> Any:
    """Return the rows [start, stop) of a file as an Arrow table; rows that follow those of the last call are read on."""
    stream = getattr(_OPEN, "stream", None)
    if stream is None or stream.file != file or stream.position > start or stream.reopens_nearer(start):
        stream = _OPEN.stream = _Stream(file, start, keep)
    try:
        return stream.take(start, stop)
    except BaseException:
        _OPEN.stream = None
        raise


class _Stream:
    """The rows of a file from some row on."""

    def __init__(self, file: SourceFile, start: int, keep: tuple[str, ...]) -> None:
        self.file = file
        group = max(bisect_right(file.groups[:-1], start) - 1, 0)
        self.position = file.groups[group]  # the first row that was not given away
        self.batches = _batches(file.path, group, keep)
        self.left: Any = None

    def reopens_nearer(self, start: int) -> bool:
        """Say whether a whole row group could be left out by opening the file again."""
        here, there = (bisect_right(self.file.groups[:-1], row) for row in (self.position, start))
        return there > here + 1

    def take(self, start: int, stop: int) -> Any:
        """Return the rows [start, stop); those before are read and forgotten."""
        arrow = require("pyarrow", "scale", purpose="Reading data")
        parts = []
        while self.position < stop:
            batch = next(self.batches, None) if self.left is None else self.left
            if batch is None:
                got = f"It ends after {self.position} of {self.file.n_rows} rows"
                raise InputError(message(f"{self.file.name} is not the file that it was, or damaged", got))
            end = min(stop - self.position, batch.num_rows)
            begin = min(max(start - self.position, 0), end)
            if end > begin:
                parts.append(batch.slice(begin, end - begin))
            self.left = batch.slice(end) if end < batch.num_rows else None
            self.position += end
        return arrow.Table.from_batches(parts).combine_chunks()


def _batches(path: str | Path, group: int, keep: tuple[str, ...]) -> Iterator[Any]:
    """Yield record batches from a row group on."""
    if kind_of(path) == "parquet":
        with parquet_file(path) as file:
            schema = file.schema_arrow.remove_metadata()
            for number in range(group, file.num_row_groups):  # one by one: asked for several, the library holds all of them
                for batch in file.iter_batches(_STEP, row_groups=[number]):
                    yield batch.cast(schema) if batch.schema != schema else batch.replace_schema_metadata()
        return
    with _readable(path, "CSV"), _csv(path, keep) as reader:
        yield from reader


@contextmanager
def parquet_file(path: str | Path) -> Iterator[Any]:
    """Open a Parquet file; damage that shows then or later, while it is read, is said with the file's name."""
    parquet = require("pyarrow.parquet", "scale", purpose="Reading Parquet")
    check_regular(path)
    with _readable(path, "Parquet"), parquet.ParquetFile(path) as file:
        yield file


@contextmanager
def _readable(path: str | Path, kind: str) -> Iterator[None]:
    """Turn what Arrow raises at damaged files into an InputError; errors of the system, which have a number, stay as they are.

    Arrow raises its own classes, those of Python for text and sizes that cannot be, and OSError without a number.
    """
    arrow = require("pyarrow", "scale", purpose=f"Reading {kind}")
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, ExactshapError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        what = f"{Path(path).name} cannot be read as {kind}"
        raise InputError(message(what, f"{error}"[:200] or type(error).__name__, "Is it whole? Write it again")) from None


def _csv(path: str | Path, keep: tuple[str, ...]) -> Any:
    """Open a CSV file; its first megabyte decides on types, and whole numbers in it may turn into others later: float64."""
    csv = require("pyarrow.csv", "scale", purpose="Reading CSV")
    arrow = require("pyarrow", "scale", purpose="Reading CSV")
    check_regular(path)
    with _readable(path, "CSV"):
        with csv.open_csv(path) as first:
            guessed = first.schema
        wide = {
            field.name: arrow.float64()
            for field in guessed
            if field.name not in keep and (arrow.types.is_integer(field.type) or arrow.types.is_null(field.type))
        }
        return csv.open_csv(path, convert_options=csv.ConvertOptions(column_types=wide))

"""Read Parquet and CSV files as streams of batches of rows."""

from __future__ import annotations

import codecs
import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from exactshap._runtime.optional import require
from exactshap._runtime.types import Foreign, TableLike
from exactshap.errors import ExactshapError, ExplanationWarning, InputError, message, warn
from exactshap.frames.stored._places import StoredFile

# Rows decoded at a time, at most and at least, and their bytes
_STEP, _LEAST_STEP, _STEP_BYTES = 65_536, 4096, 2**24
# Of a local file, bytes of a column that are read at a time. Otherwise the library holds all bytes of a row group, some of them until the
# file is closed: a group of 200,000 rows of 100 columns takes 225 MiB at most in place of 394, in the same time.
_BUFFER_BYTES = 2**16
# Of each column of a row group, bytes that the library unpacks at most: a page and a dictionary of 1 MiB. It holds them twice.
_UNPACKED_BYTES = 2.0**21
# Batches of decoded rows that are alive at once
_DECODED = 3.0
# The open stream of a thread, as the next batch is usually the next rows of the same file.
_OPEN = threading.local()
# Path and digest -> a later state of the file with the same bytes.
_CHECKED: dict[tuple[str, str], tuple[int | None, ...]] = {}
_START_AGAIN = "Leave the input alone during a run, and start it again in an empty folder"


@dataclass(frozen=True)
class CsvTypes:
    """Say how CSV columns with cells that look like something else are read.

    ``keep`` stay as they look; ``texts`` are columns of text, with the cells that are missing there; ``times`` are dates for the model, too;
    ``truths`` are truth values where no cell shows it; ``gaps`` are the cells that are missing in all other columns of text.
    """

    keep: tuple[str, ...] = ()
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    times: tuple[str, ...] = ()
    truths: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    def type_of(self, name: str, guessed: Any) -> Any:
        """Return the type of a column, None for the guess. Integers are float64, as others may follow, and dates are text."""
        arrow = require("pyarrow", "scale", purpose="Reading CSV")
        if name in self.texts or (arrow.types.is_temporal(guessed) and name not in (*self.keep, *self.times)):
            return arrow.string()
        if arrow.types.is_null(guessed) and name in self.truths:
            return arrow.bool_()
        is_wide = arrow.types.is_integer(guessed) or arrow.types.is_null(guessed)
        return arrow.float64() if is_wide and name not in self.keep else None

    def with_gaps(self, batch: Any) -> Any:
        """Return rows with missing cells of text as missing, as pandas reads them."""
        compute, arrow = (require(name, "scale", purpose="Reading CSV") for name in ("pyarrow.compute", "pyarrow"))
        others = [
            one.name for one in batch.schema if self.gaps and one.name not in self.keep and arrow.types.is_string(one.type)
        ]
        for name, missing in {**dict.fromkeys(others, self.gaps), **self.texts}.items():
            if (place := batch.schema.get_field_index(name)) >= 0:
                cells = batch.column(place)
                is_missing = compute.is_in(cells, value_set=arrow.array(missing, arrow.string()))
                columns = [*batch.columns[:place], compute.if_else(is_missing, None, cells), *batch.columns[place + 1 :]]
                batch = arrow.RecordBatch.from_arrays(columns, schema=batch.schema)
        return batch


@dataclass(frozen=True)
class SourceFile:
    """Hold a file as it was when a run began."""

    file: StoredFile
    digest: str  # SHA-256 of its bytes
    groups: tuple[int, ...]  # number of rows before each row group, and of all rows; CSV files have one group
    state: tuple[int | None, ...] = ()  # its size and times at that moment

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def n_rows(self) -> int:
        return self.groups[-1]

    def place(self, row: int) -> str:
        """Return the place of a row as text.

        >>> SourceFile(StoredFile("a.parquet", "a.parquet", "parquet"), "", (0, 10, 20)).place(12)
        'a.parquet, row group 1, row 12 of the file'
        """
        has_groups = len(self.groups) > 1 and self.file.kind == "parquet"
        group = f", row group {bisect_right(self.groups, row) - 1}" if has_groups else ""
        return f"{self.name}{group}, row {row} of the file"

    def check(self, *, finally_: bool = False) -> None:
        """Refuse a file that has changed, by size, times and digest.

        Some object stores keep no times; there the digest is compared once, at the end of a run (``finally_``).
        """
        try:
            now = self.file.state()
        except OSError as error:
            raise InputError(f"{self.name} is gone or cannot be read", f"{error}", _START_AGAIN) from None
        known = self.state, _CHECKED.get((self.file.path, self.digest))
        # Two states have these bytes: that of the start, and one confirmed by a digest later
        if now in known and not (finally_ and None in now):
            return
        if self.file.sha256() != self.digest:
            raise InputError(f"{self.name} has changed while it was read", "Its SHA-256 differs", _START_AGAIN)
        _CHECKED[self.file.path, self.digest] = now


def read_schema(file: StoredFile, types: CsvTypes) -> Any:
    """Return the columns and types of a file and of its folders. Those of CSV files are as ``types`` says."""
    arrow = require("pyarrow", "scale", purpose="Reading data")
    if file.kind == "parquet":
        with parquet_file(file) as opened:
            schema = opened.schema_arrow.remove_metadata()
    else:
        schema = _csv(file, types).schema
    for name, value in file.keys:
        schema = schema if name in schema.names else schema.append(arrow.field(name, _key_type(value)))
    return schema


def warn_of_losses(file: StoredFile, types: CsvTypes, features: Sequence[str], kept: Sequence[str]) -> None:
    """Warn of what the first megabyte of a CSV file loses: leading zeros, digits beyond those of float64, words such as NA.

    Such words of features are read as missing, and may be categories.
    """
    if file.kind != "csv":
        return
    csv, compute, arrow = (
        require(name, "scale", purpose="Reading CSV") for name in ("pyarrow.csv", "pyarrow.compute", "pyarrow")
    )
    with _readable(file.name, "CSV"):
        with _csv(file, types) as typed:
            kinds = {one.name: one.type for one in typed.schema if one.name in (*kept, *features)}
        texts = csv.ConvertOptions(column_types=dict.fromkeys(kinds, arrow.string()), include_columns=list(kinds))
        with csv.open_csv(_stream(file), convert_options=texts) as reader:
            first = next(iter(reader), None)
    if first is None:
        return
    words = arrow.array([word for word in types.gaps if word], arrow.string())
    digits: dict[str, str] = {}
    held: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        cells = first.column(name)
        if arrow.types.is_string(kind):
            found = cells.filter(compute.is_in(cells, value_set=words)).unique().to_pylist() if name in features else []
            held |= {name: sorted(found)} if found else {}
            continue
        wide = "" if arrow.types.is_integer(kind) else "|[0-9]{17,}"
        numbers = cells.filter(compute.match_substring_regex(cells, f"^-?(0[0-9]+{wide})$"))
        digits |= {name: numbers[0].as_py()} if len(numbers) else {}
    if digits:
        do = "Write them as text, in Parquet, if they are names"
        warn(message(f"Digits of {file.name} are lost, as in numbers", f"Got {digits}", do), ExplanationWarning)
    if held:
        do = "If they are categories, write Parquet, or pass a background that holds them"
        warn(message(f"Words of {file.name} are read as missing", f"Got {held}", do), ExplanationWarning)


def _key_type(value: object) -> Any:
    arrow = require("pyarrow", "scale", purpose="Reading data")
    return arrow.null() if value is None else arrow.scalar(value).type


def inspect(file: StoredFile, types: CsvTypes) -> SourceFile:
    """Read a file once for its digest and its number of rows."""
    state = file.state()
    digest = file.sha256()
    if file.kind == "csv":
        groups = [sum(batch.num_rows for batch in _batches(file, 0, types))]
    else:
        with parquet_file(file) as opened:
            groups = [opened.metadata.row_group(number).num_rows for number in range(opened.num_row_groups)]
    source = SourceFile(file, digest, tuple(accumulate(groups, initial=0)), state)
    # The file may have been written while it was read
    source.check()
    return source


def first_rows(files: Sequence[StoredFile], types: CsvTypes) -> tuple[Any, int, float]:
    """Return the first rows of files, the number of all, and the bytes that reading the largest row group takes.

    Of Parquet files the ends say so; CSV files are read, in blocks of a megabyte.
    """
    arrow = require("pyarrow", "scale", purpose="Reading data")
    rows, groups = zip(*(_extent(file, types) for file in files), strict=True)
    heads = (
        _with_keys(arrow.Table.from_batches([batch.slice(0, _LEAST_STEP)]), file.keys)
        for file in files
        for batch in _batches(file, 0, types)
        if batch.num_rows
    )
    head = next(heads, None)
    return read_schema(files[0], types).empty_table() if head is None else head, sum(rows), max(groups)


def _extent(file: StoredFile, types: CsvTypes) -> tuple[int, float]:
    """Return the number of rows of a file, and the bytes that reading its largest row group takes."""
    if file.kind == "csv":
        return sum(batch.num_rows for batch in _batches(file, 0, types)), 0.0
    with parquet_file(file) as opened:
        groups = [opened.metadata.row_group(number) for number in range(opened.num_row_groups)]
    return sum(group.num_rows for group in groups), max(
        (_group_bytes(file, group) for group in groups if group.num_rows), default=0.0
    )


def _group_bytes(file: StoredFile, group: Any) -> float:
    """Return the bytes that reading a row group takes, by its entry at the end of the file."""
    columns = [group.column(number) for number in range(group.num_columns)]
    unpacked = sum(min(float(column.total_uncompressed_size), _UNPACKED_BYTES) for column in columns)
    # An object store sends all bytes of a group at once.
    packed = 0.0 if file.filesystem is None else float(sum(column.total_compressed_size for column in columns))
    rows = min(decoded_rows(len(columns)), group.num_rows)
    # Cells of text take their characters, others 8 bytes.
    of_a_row = sum(max(8.0, column.total_uncompressed_size / group.num_rows) for column in columns)
    return 2.0 * unpacked + packed + _DECODED * rows * of_a_row


def read_rows(file: SourceFile, start: int, stop: int, types: CsvTypes) -> Any:
    """Return rows [start, stop) of a file that has not changed, as an Arrow table with the keys of its folders."""
    stream = getattr(_OPEN, "stream", None)
    # Streams only go forward; beyond a whole row group, opening again avoids decoding the rows between
    if (
        stream is None
        or stream.file != file
        or stream.position > start
        or bisect_right(file.groups[:-1], start) > bisect_right(file.groups[:-1], stream.position) + 1
    ):
        file.check()
        stream = _OPEN.stream = _Stream(file, start, types)
    try:
        table = stream.take(start, stop)
        if stop >= file.n_rows:
            _OPEN.stream = None  # closes the file, with what it holds
        file.check()  # again, as the rows read must be those of the digested file
        return _with_keys(table, file.file.keys)
    except BaseException:
        _OPEN.stream = None
        raise


def _with_keys(table: TableLike, keys: tuple[tuple[str, Any], ...]) -> Any:
    arrow = require("pyarrow", "scale", purpose="Reading data")
    for name, value in keys:
        if name not in table.column_names:
            cells = arrow.repeat(arrow.scalar(value, _key_type(value)), table.num_rows)
            table = table.append_column(name, cells)
    return table


class _Stream:
    """Read a file forwards, from the row group of some row on."""

    def __init__(self, file: SourceFile, start: int, types: CsvTypes) -> None:
        self.file = file
        # Reading starts at the row group of the first row
        group = max(bisect_right(file.groups[:-1], start) - 1, 0)
        self.position = file.groups[group]  # the next row to return
        self.batches = _batches(file.file, group, types)
        self.left: Any = None

    def take(self, start: int, stop: int) -> Any:
        arrow = require("pyarrow", "scale", purpose="Reading data")
        parts = []
        while self.position < stop:
            batch = next(self.batches, None) if self.left is None else self.left
            if batch is None:
                got = f"It ends after {self.position} of {self.file.n_rows} rows"
                raise InputError(f"{self.file.name} has changed since the run started, or is damaged", got)
            end = min(stop - self.position, batch.num_rows)
            # begin == end for a batch before ``start``
            begin = min(max(start - self.position, 0), end)
            if end > begin:
                parts.append(batch.slice(begin, end - begin))
            self.left = batch.slice(end) if end < batch.num_rows else None
            self.position += end
        return arrow.Table.from_batches(parts).combine_chunks()


def _batches(file: StoredFile, group: int, types: CsvTypes) -> Iterator[Any]:
    """Yield a file's record batches, from a row group on."""
    if file.kind == "parquet":
        with parquet_file(file) as opened:
            schema = opened.schema_arrow.remove_metadata()
            for batch in group_batches(opened, len(schema), group):
                yield batch.cast(schema) if batch.schema != schema else batch.replace_schema_metadata()
        return
    with _readable(file.name, "CSV"), _csv(file, types) as reader:
        yield from map(types.with_gaps, reader)


def group_batches(opened: Foreign, n_columns: int, group: int = 0, *, columns: list[str] | None = None) -> Iterator[Any]:
    # One by one, as the library holds all of several in memory
    for number in range(group, opened.num_row_groups):
        yield from opened.iter_batches(decoded_rows(n_columns), row_groups=[number], columns=columns)


def decoded_rows(n_columns: int) -> int:
    """Return the rows to decode at a time.

    >>> decoded_rows(20), decoded_rows(100), decoded_rows(2000)
    (65536, 20971, 4096)
    """
    return max(_LEAST_STEP, min(_STEP, _STEP_BYTES // (8 * max(n_columns, 1))))


@contextmanager
def parquet_file(file: StoredFile | Path) -> Iterator[Any]:
    """Open a Parquet file; errors of opening and reading name the file."""
    parquet = require("pyarrow.parquet", "scale", purpose="Reading Parquet")
    file = file if isinstance(file, StoredFile) else StoredFile(str(file), file.name, "parquet")
    file.check()
    # Object stores answer few large requests faster than many small ones
    reading = {"pre_buffer": False, "buffer_size": _BUFFER_BYTES} if file.filesystem is None else {}
    with _readable(file.name, "Parquet"), parquet.ParquetFile(file.path, filesystem=file.filesystem, **reading) as opened:
        yield opened


def not_utf8(name: str, got: str | UnicodeDecodeError) -> InputError:
    """Return the error for a CSV file of another encoding, such as those of Excel on Windows."""
    begins = got.object[:2] if isinstance(got, UnicodeDecodeError) else b""
    encoding = "utf-16" if begins in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "latin-1"
    do = f"Write it in UTF-8: pandas.read_csv({name!r}, encoding={encoding!r}).to_csv('utf8.csv', index=False)"
    return InputError(f"{name} is not UTF-8", f"{got}", do)


@contextmanager
def _readable(name: str, kind: str) -> Iterator[None]:
    """Turn Arrow's errors at damaged files into an InputError. Numbered errors of the system stay.

    Arrow raises its own classes, Python's for invalid text and sizes, and OSError without a number.
    """
    arrow = require("pyarrow", "scale", purpose=f"Reading {kind}")
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        # Our own errors and the system's (no such file, no rights) say more than "cannot be read"
        if isinstance(error, ExactshapError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        if isinstance(error, UnicodeDecodeError):  # in the names of the columns
            raise not_utf8(name, error) from None
        what = f"{name} cannot be read as {kind}"
        raise InputError(
            what, f"{error}"[:200] or type(error).__name__, "Check that it is complete, or write it again"
        ) from None


def _csv(file: StoredFile, types: CsvTypes) -> Any:
    """Open a CSV file, with types by its first megabyte."""
    csv = require("pyarrow.csv", "scale", purpose="Reading CSV")
    arrow = require("pyarrow", "scale", purpose="Reading CSV")
    with _readable(file.name, "CSV"):
        # Opened twice, as types must be set before reading and are known after the first block
        with csv.open_csv(_stream(file)) as first:
            guessed = first.schema
        # Arrow reads what is no text as bytes, which no category equals
        if other := [field.name for field in guessed if arrow.types.is_binary(field.type)]:
            raise not_utf8(file.name, f"Column {other[0]!r} holds other bytes")
        wide = {field.name: own for field in guessed if (own := types.type_of(field.name, field.type)) is not None}
        return csv.open_csv(_stream(file), convert_options=csv.ConvertOptions(column_types=wide))


def _stream(file: StoredFile) -> Any:
    """Open a file, unpacked by its suffix in capitals, too. The reader takes plain paths itself."""
    file.check()
    if file.filesystem is not None:
        return file.filesystem.open_input_stream(file.path, compression=file.compression)
    arrow = require("pyarrow", "scale", purpose="Reading CSV")
    return arrow.input_stream(file.path, compression=file.compression) if file.compression else file.path

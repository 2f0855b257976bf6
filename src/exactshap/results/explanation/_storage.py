"""Save explanations without pickle, and load them as untrusted data.

A file is a zip of ``.npy`` arrays, a Parquet table for frames and one JSON text. Cells that neither format can hold (intervals of
``pandas.cut``, tuples, objects) are saved as the text that pictures and pages show.

The memory of a Parquet table is bounded before anything is decompressed: the libraries that read it take no limit, and ignore the
sizes in its footer. They decompress page after page, to the size in the header of each. These headers are short structs in Thrift's
compact encoding, which is all that is read here.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from exactshap import __version__
from exactshap._runtime.files import atomic_write, check_suffix, open_regular
from exactshap._runtime.optional import FRAME_LIBRARIES, first_installed, require
from exactshap._runtime.types import TableLike
from exactshap.errors import InputTypeError, MissingDependencyError, ModelFormatError
from exactshap.results.data import ExplanationData, cell_text, frame_kind, write_parquet

Kind = TypeVar("Kind", bound=ExplanationData)

# Written into files: it stays, wherever this module moves.
FORMAT, VERSION = "exactshap.explanation", 1
# Bytes of the metadata, and of what is unpacked at a time.
_MAX_JSON, _CHUNK = 2**26, 2**20
# Bytes that are unpacked unless max_bytes= says otherwise. Arrays are stored as they are, only the table is compressed: 200,000 rows of
# five constant columns of 40 characters unpack to 4.9 times the file. Without the factor a file of 20 kB could ask for 8 GiB.
_ALWAYS_BYTES, _MOST_TIMES, _MOST_BYTES = 2**28, 64, 2**33
# Bytes of the smallest object that a value of a JSON text becomes, with the reference to it, and what stands before each value but the
# first: a text of 63 kB that holds 20 million empty lists would take 2 GiB.
_OBJECT, _BEFORE_A_VALUE = 80, (b",", b"[", b"{", b":")
# Left out of the metadata: two are arrays or frames, the third is a function.
_NOT_SAVED = ("sets", "data", "stability_bound")
_METADATA, _PARQUET, _CELLS = "metadata.json", "data.parquet", "data.json"
# Of the table: the place of a column -> whether its categories are ordered, and these, if they are numbers.
_CATEGORIES = b"exactshap.categories"
# Of Parquet: the first and last bytes of a file, a type of columns, an encoding.
_MAGIC, _BYTE_ARRAY, _DELTA_BYTE_ARRAY = b"PAR1", 6, 7
# Bytes of one value or reference in memory, at most, but for text and for arrays of fixed length.
_WIDTH = 16
# Bytes that the libraries hold for a column besides its cells: buffers, a decoder, its name.
_COLUMN = 2**14
# Fields of a column chunk that is in this file, and not encrypted.
_PLAIN_CHUNK = frozenset(range(2, 8))
_AGAIN = "Save it again"
_AS_NPZ = "Save one with explanation.save('values.npz'), or exactshap explain MODEL DATA --out values.npz"


def save(explanation: ExplanationData, path: str | Path) -> None:
    """Write one whole ``.npz`` file of arrays and JSON, no pickle. A write that fails leaves nothing.

    Cells of ``data`` that such files cannot hold (intervals of ``pandas.cut``, tuples, objects) are written as the text that
    pictures show.
    """
    check_suffix(
        path, (".npz",), "A saved explanation", "Name it .npz; explanation.to_frame() gives the values for other files"
    )
    arrays, texts = _parts(explanation)
    with atomic_write(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            # The size is not known before the array is written; without zip64 an entry would end at 2 GiB.
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
        for name, content in texts.items():
            archive.writestr(name, content)


def _parts(explanation: ExplanationData) -> tuple[dict[str, np.ndarray], dict[str, bytes]]:
    arrays: dict[str, np.ndarray] = {}
    metadata: dict[str, Any] = {"format": FORMAT, "version": VERSION, "exactshap": __version__, "data": None}
    for name in (field.name for field in fields(explanation) if field.name not in _NOT_SAVED):
        value = getattr(explanation, name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif value is not None:
            metadata[name] = value
    if explanation.order > 1:
        padded = [(*players, *[-1] * (explanation.order - len(players))) for players in explanation.sets or ()]
        arrays["sets"] = np.array(padded, np.int32)
    texts: dict[str, bytes] = {}
    if explanation.data is not None:
        metadata["data"] = _add_data(explanation.data, arrays, texts)
    texts[_METADATA] = json.dumps(metadata, ensure_ascii=False, default=_plain).encode()
    return arrays, texts


def _plain(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise InputTypeError("Explanations are saved as numbers and text only", f"Got {type(value).__name__} {value!r}")


def _add_data(data: TableLike, arrays: dict[str, np.ndarray], texts: dict[str, bytes]) -> str:
    kind = frame_kind(data)
    if kind is not None:
        texts[_PARQUET] = _parquet_bytes(data, kind)
        return kind
    array = np.asarray(data)
    if not len(array):
        array = array.astype(float)  # of objects, too: none is there
    if array.dtype == object:
        rows = [[_cell(value) for value in row] for row in array]
        texts[_CELLS] = json.dumps(rows).encode()
        return "objects"
    arrays["data"] = array
    return "array"


def _cell(value: object) -> Any:
    """Return a cell as JSON holds it: a number, text, or None where it is missing.

    >>> _cell(np.float64(0.5)), _cell("a"), _cell(None), _cell((1, 2))
    (0.5, 'a', None, '(1, 2)')
    """
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (int, float, str)) else cell_text(value) or None


def _parquet_bytes(data: TableLike, kind: str) -> bytes:
    if kind == "polars":
        # Parquet has no place for Python objects: they are saved as the text that is shown.
        objects = [name for name, dtype in data.schema.items() if dtype == require("polars", "frames", purpose="Saving").Object]
        return _written(_with_texts(data, objects))
    arrow = require("pyarrow", "frames", purpose="Saving a frame")
    if kind == "pyarrow":
        texts = [field.name for field in data.schema if not (arrow.types.is_nested(field.type) or _is_held(field.type, arrow))]
        return _written(_with_texts(data, texts))
    # Numbers and dates are always held; only other columns are tried, which takes a conversion each.
    places = [j for j, dtype in enumerate(data.dtypes) if getattr(dtype, "kind", "O") not in "biufM"]
    places = [j for j in places if not _is_column_held(data.iloc[:, j], arrow)]
    if places:
        data = data.copy(deep=False)
        for j in places:
            # By place, as pandas allows several columns of one name.
            data.isetitem(j, [cell_text(value) or None for value in data.iloc[:, j]])
    levels = (data.index.get_level_values(level) for level in range(data.index.nlevels))
    if not all(_is_column_held(level, arrow) for level in levels):
        # An index may hold what Parquet does not, intervals of a grouping for example.
        data = data.set_axis(data.index.map(str), axis=0)
    return _written(data)


def _written(data: TableLike) -> bytes:
    buffer = io.BytesIO()
    write_parquet(data if frame_kind(data) == "polars" else _with_categories(data), buffer)
    return buffer.getvalue()


def _with_categories(data: TableLike) -> Any:
    """Return an Arrow table that names categories of numbers. Parquet would give them back as the numbers."""
    arrow = require("pyarrow", "frames", purpose="Saving a frame")
    table = arrow.Table.from_pandas(data) if frame_kind(data) == "pandas" else data
    categories = {}
    for j, (field, column) in enumerate(zip(table.schema, table.columns, strict=True)):
        if column.num_chunks and arrow.types.is_dictionary(field.type) and arrow.types.is_primitive(field.type.value_type):
            numbers = column.unify_dictionaries().chunk(0).dictionary.to_pylist()
            if all(isinstance(number, (bool, int, float)) for number in numbers):  # no dates
                categories[str(j)] = [field.type.ordered, numbers]
    metadata = {**(table.schema.metadata or {}), _CATEGORIES: json.dumps(categories)}
    return table.replace_schema_metadata(metadata) if categories else table


def _with_texts(data: TableLike, names: Sequence[str]) -> Any:
    if not names:
        return data
    import narwhals.stable.v2 as narwhals

    frame = narwhals.from_native(data, eager_only=True)
    texts = [
        narwhals.new_series(
            name, [cell_text(value) or None for value in frame[name]], narwhals.String, backend=frame.implementation
        )
        for name in names
    ]
    return frame.with_columns(*texts).to_native()


def _is_column_held(column: Any, arrow: Any) -> bool:
    """Whether a column of pandas comes back from Parquet as it is shown."""
    try:
        return _is_held(arrow.Array.from_pandas(column).type, arrow)
    except Exception:  # pyarrow has a class for every kind of cell that it cannot store
        return False


def _is_held(kind: Any, arrow: Any) -> bool:
    types = arrow.types
    if types.is_dictionary(kind):
        inner = kind.value_type
        return not (types.is_duration(inner) or isinstance(inner, arrow.BaseExtensionType)) and _is_held(inner, arrow)
    return not (types.is_nested(kind) or types.is_interval(kind))


def load(path: str | Path, kind: type[Kind], *, max_bytes: int | None) -> Kind:
    """Read an explanation of this class; see :meth:`Explanation.load`."""
    # Whatever is wrong from here on is wrong with the content
    with open_regular(path) as file:
        # What ``save`` writes is not much smaller than its content.
        if max_bytes is None:
            max_bytes = min(_MOST_BYTES, max(_ALWAYS_BYTES, _MOST_TIMES * os.fstat(file.fileno()).st_size))
        try:
            return _read(file, kind, _Allowance(path, max_bytes))
        except (ModelFormatError, MissingDependencyError):
            raise
        except zipfile.BadZipFile as error:
            step = _AGAIN if Path(path).suffix.lower() == ".npz" else _AS_NPZ
            raise _damaged(path, f"{error}. Pickles are never loaded", step) from None
        # zipfile, zlib, json, numpy and the frame libraries have a class for every kind of damage.
        except Exception as error:
            raise _damaged(path, f"{type(error).__name__}: {error}") from None


@dataclass
class _Allowance:
    """How many bytes of a file may still be unpacked."""

    path: str | Path
    max_bytes: int
    spent: int = 0

    def spend(self, n_bytes: int) -> None:
        self.spent += n_bytes
        if self.spent > self.max_bytes:
            raise ModelFormatError(
                f"{self.path} is larger than allowed",
                f"It holds at least {self.spent:,} bytes",
                f"Pass max_bytes={self.spent} or more if you trust it",
            )


def _read(file: BinaryIO, kind: type[Kind], allowance: _Allowance) -> Kind:
    path = allowance.path
    with zipfile.ZipFile(file) as archive:
        _check_archive(archive, allowance)
        metadata = _metadata(archive, allowance)
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        arrays = {name.removesuffix(".npy"): _array(_content(archive, name, allowance), name, path) for name in names}
        data = _data(archive, metadata.pop("data", None), arrays, allowance)
    known = {field.name for field in fields(kind)}
    unknown = (set(metadata) - known.difference(_NOT_SAVED)) | (set(arrays) - known.difference(("data", "stability_bound")))
    if unknown:
        raise _damaged(path, f"Unknown entry {min(unknown)!r}")
    content: dict[str, Any] = {**metadata, **arrays, "data": data}
    if "sets" in content:
        content["sets"] = tuple(tuple(int(j) for j in row if j >= 0) for row in content["sets"])
    try:
        return kind(**content)
    except (TypeError, ValueError) as error:
        raise _damaged(path, f"{error}") from None


def _check_archive(archive: zipfile.ZipFile, allowance: _Allowance) -> None:
    entries = archive.infolist()
    names = {entry.filename for entry in entries}
    if _METADATA not in names:
        raise ModelFormatError(f"{allowance.path} is not a saved Explanation", f"It has no {_METADATA}")
    # Two entries of one name: what is checked could be another one than what is read.
    if len(names) < len(entries):
        raise _damaged(allowance.path, "An entry is there twice")
    if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
        # Other methods unpack without a limit.
        raise _damaged(allowance.path, "An entry is neither stored nor deflated")
    # If they say so themselves
    _Allowance(allowance.path, allowance.max_bytes).spend(sum(entry.file_size for entry in entries))


def _content(archive: zipfile.ZipFile, name: str, allowance: _Allowance) -> bytes:
    """Unpack an entry in pieces and count them: what the directory says about sizes may be wrong."""
    pieces = []
    with archive.open(name) as entry:
        while piece := entry.read(_CHUNK):
            allowance.spend(len(piece))
            pieces.append(piece)
    return b"".join(pieces)


def _metadata(archive: zipfile.ZipFile, allowance: _Allowance) -> dict[str, Any]:
    path, size = allowance.path, archive.getinfo(_METADATA).file_size
    if size > _MAX_JSON:
        raise _damaged(path, f"{_METADATA} has {size:,} bytes")
    metadata = _parsed(_content(archive, _METADATA, allowance), _METADATA, allowance)
    # Half a character that is escaped would break the next save
    json.dumps(metadata, ensure_ascii=False).encode()
    if not isinstance(metadata, dict) or metadata.pop("format", None) != FORMAT:
        raise ModelFormatError(f"{path} is not a saved Explanation", "Its metadata names another format")
    version = metadata.pop("version", None)
    metadata.pop("exactshap", None)
    if not isinstance(version, int) or version > VERSION:
        raise ModelFormatError(f"{path} has a newer format", f"format {version!r} is newer than {VERSION}", "Update exactshap")
    return metadata


def _parsed(content: bytes, name: str, allowance: _Allowance) -> Any:
    # Before the text becomes objects, which take many times its size.
    allowance.spend(_OBJECT * sum(map(content.count, _BEFORE_A_VALUE)))
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(allowance.path, f"{name}: {error}") from None


def _array(content: bytes, name: str, path: str | Path) -> np.ndarray:
    """Read one array, once its header announces the bytes that are there."""
    stream = io.BytesIO(content)
    try:
        major, _ = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
    # numpy parses the header with tokenize and ast, and passes on whatever they raise.
    except Exception as error:
        raise _damaged(path, f"{name}: {error}") from None
    there = len(content) - stream.tell()
    if dtype.hasobject:
        raise _damaged(path, f"{name} holds Python objects (a pickle), which are never loaded")
    # Python's integers do not overflow: a product of shapes beyond 64 bits would look small in numpy.
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != there:
        raise _damaged(path, f"{name} announces shape {shape} but holds {there} bytes")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


def _data(archive: zipfile.ZipFile, kind: Any, arrays: dict[str, np.ndarray], allowance: _Allowance) -> Any:
    names = archive.namelist()
    if kind in FRAME_LIBRARIES and _PARQUET in names:
        rows = len(arrays.get("values", ()))
        return _read_parquet(_content(archive, _PARQUET, allowance), kind, rows, allowance)
    if kind == "objects" and _CELLS in names:
        cells = np.array(_parsed(_content(archive, _CELLS, allowance), _CELLS, allowance), dtype=object)
        if any(isinstance(cell, (list, dict)) for cell in cells.ravel()):
            raise _damaged(allowance.path, "Its cells are not a table")
        return cells
    if kind == "array" and "data" in arrays:
        return arrays.pop("data")
    if kind is None:
        return None
    raise _damaged(allowance.path, f"Its data are announced as {kind!r} and not there")


def _read_parquet(content: bytes, kind: str, n_rows: int, allowance: _Allowance) -> Any:
    reader = "polars" if kind == "polars" and first_installed(("polars",)) else "pyarrow"
    library = require(reader, "frames", purpose=f"Loading a {kind} frame")
    try:
        if reader == "pyarrow":
            table = _read_arrow(content, n_rows, allowance)
            return table.to_pandas() if kind == "pandas" else table
        # Text is views there: a cell that is repeated is kept once
        allowance.spend(unpacked_bytes(content, shared=None))
        # One row more than there are values shows that the table has too many.
        return library.read_parquet(io.BytesIO(content), n_rows=n_rows + 1)
    except ModelFormatError:
        raise
    except BaseException as error:  # the Parquet readers have a class of error for every kind of damage
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # what polars' Rust raises
            raise
        raise _damaged(allowance.path, f"{_PARQUET}: {error}") from None


def _read_arrow(content: bytes, n_rows: int, allowance: _Allowance) -> Any:
    """Read a table. Text that repeats is read as references to it, and counted before it is copied to every cell."""
    arrow = require("pyarrow", "frames", purpose="Loading a frame")
    compute = require("pyarrow.compute", "frames", purpose="Loading a frame")
    parquet = require("pyarrow.parquet", "frames", purpose="Loading a frame")
    schema = parquet.read_schema(io.BytesIO(content))
    kinds = (arrow.string(), arrow.large_string(), arrow.binary(), arrow.large_binary())
    text = [field.name for field in schema if field.type in kinds]
    allowance.spend(unpacked_bytes(content, shared=text))
    file = parquet.ParquetFile(io.BytesIO(content), read_dictionary=text)
    if file.metadata.num_rows != n_rows:
        raise _damaged(allowance.path, f"Its data have {file.metadata.num_rows} rows for {n_rows} rows of values")
    table = file.read()
    for column in table.columns:
        if arrow.types.is_dictionary(column.type) and column.type.value_type in kinds:
            for chunk in column.chunks:
                # What each cell's text takes once the references to the dictionary are replaced by copies of it.
                lengths = compute.binary_length(chunk.dictionary).cast(arrow.int64()).take(chunk.indices)
                allowance.spend(compute.sum(lengths).as_py() or 0)
    return _encoded(table.cast(schema), allowance)


def _encoded(table: Any, allowance: _Allowance) -> Any:
    """Return a table with the categories of numbers that it names."""
    arrow = require("pyarrow", "frames", purpose="Loading a frame")
    compute = require("pyarrow.compute", "frames", purpose="Loading a frame")
    named = (table.schema.metadata or {}).get(_CATEGORIES, b"{}")
    for place, (ordered, numbers) in _parsed(named, _PARQUET, allowance).items():
        field = table.schema.field(int(place))
        dictionary = arrow.array(numbers, field.type)
        cells = table.column(int(place)).combine_chunks()
        codes = compute.index_in(cells, value_set=dictionary)
        if codes.null_count > cells.null_count:
            raise _damaged(allowance.path, f"Column {field.name!r} has other cells than its categories")
        coded = arrow.DictionaryArray.from_arrays(codes, dictionary, ordered=bool(ordered))
        table = table.set_column(int(place), arrow.field(field.name, coded.type), coded)
    return table


def _damaged(path: str | Path, got: str, step: str = _AGAIN) -> ModelFormatError:
    return ModelFormatError(f"{path} is not a complete saved Explanation", got, step)


def unpacked_bytes(content: bytes, shared: Collection[str] | None) -> int:
    """Return the most bytes that a Parquet file's pages become. The overhead of small objects is left out.

    ``shared`` are columns of text with repeated cells that the reader keeps once, in a dictionary; None means all.
    """
    if content[:4] != _MAGIC or content[-4:] != _MAGIC or len(content) < 12:
        raise ValueError("Its Parquet part does not begin and end as one")
    # The file ends with the footer, its length in four bytes, and the magic word.
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    if start < 4:
        raise ValueError("Its Parquet footer is longer than the file")
    footer = _Compact(content, start).struct()
    if 8 in footer:
        raise ValueError("Its Parquet part is encrypted")
    # Field 2 of a schema element is the length of arrays of fixed length.
    width = max(_WIDTH, *(element.get(2, 0) for element in footer[2]))
    cells = sum(_chunk_bytes(content, chunk, width, shared) for group in footer[4] for chunk in group[1])
    return _COLUMN * len(footer[2]) + cells


def _chunk_bytes(content: bytes, chunk: dict[int, Any], width: int, shared: Collection[str] | None) -> int:
    if not _PLAIN_CHUNK.issuperset(chunk):
        raise ValueError("A Parquet column is encrypted or elsewhere")
    about = chunk[3]
    position, dictionary, path = about[9], about.get(11), [name.decode() for name in about[3]]
    # Columns without rows have no page, "at 0", where the magic word is; with or without a dictionary
    if dictionary is None and position == 0:
        return 0
    if dictionary is not None:
        if not (4 <= dictionary < position or (position == 0 and dictionary >= 4)):
            raise ValueError("A Parquet dictionary is not before its column")
        position = dictionary
    end = position + about[7]
    if not 4 <= position <= end <= len(content):
        raise ValueError("A Parquet column is outside of the file")
    # A cell that refers to a dictionary may become a copy of its longest entry, which is at most the whole dictionary page.
    repeated = about[1] == _BYTE_ARRAY and shared is not None and not (len(path) == 1 and path[0] in shared)
    total = largest_dictionary = 0
    for header, n_values in _pages(content, position, end):
        # A text of shared beginnings may be far longer than its page: no header bounds it.
        if about[1] >= _BYTE_ARRAY and _DELTA_BYTE_ARRAY in (header.get(5, {}).get(2), header.get(8, {}).get(4)):
            raise ValueError("A Parquet column of text is encoded by shared beginnings, which saving never does")
        if 7 in header:
            largest_dictionary = max(largest_dictionary, header[2])
        total += max(header[2], width * n_values) + (n_values * largest_dictionary if repeated and 7 not in header else 0)
    return total


def _pages(content: bytes, position: int, end: int) -> Iterator[tuple[dict[int, Any], int]]:
    while position < end:
        reader = _Compact(content, position)
        header = reader.struct()
        # Field 3 is the compressed size on disk, field 2 the size in memory.
        position = reader.position + header[3]
        if min(header[2], header[3]) < 0 or position > end:
            raise ValueError("A Parquet page is outside of its column")
        # Data, data of version 2, dictionary
        page = header.get(5) or header.get(8) or header.get(7) or {1: 0}
        if page[1] < 0:
            raise ValueError("A Parquet page announces a negative number of values")
        yield header, page[1]


class _Compact:
    """Read structs of Thrift's compact encoding as dicts by field number. A field that comes twice is refused."""

    def __init__(self, content: bytes, position: int) -> None:
        self.content, self.position = content, position

    def struct(self, depth: int = 0) -> dict[int, Any]:
        # A file may nest structs without end; Parquet's own are never that deep.
        if depth > 16:
            raise ValueError("A Parquet header is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            step = kind >> 4
            number = number + step if step else self._signed()
            if number in fields:
                raise ValueError(f"A Parquet header has field {number} twice")
            fields[number] = self._value(kind & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        # Thrift writes true and false as two types, without a value.
        if kind in (1, 2):
            return kind == 1
        if kind in (3, 7):
            return self._skip(1 if kind == 3 else 8)
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 8:
            return self._skip(self._unsigned())
        if kind in (9, 10):
            return self._list(depth)
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"A Parquet header has type {kind}")

    def _list(self, depth: int) -> list[Any]:
        start = self._byte()
        size, kind = start >> 4, start & 15
        size = self._unsigned() if size == 15 else size
        # Each item takes a byte at least: a longer list is damage, and is refused before it is built.
        if size > len(self.content) - self.position:
            raise ValueError("A Parquet list is longer than the file")
        return [self._skip(1) if kind in (1, 2) else self._value(kind, depth + 1) for _ in range(size)]

    def _byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def _skip(self, size: int) -> bytes:
        self.position += size
        if self.position > len(self.content):
            raise ValueError("A Parquet header goes beyond the file")
        return self.content[self.position - size : self.position]

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("A Parquet header has a number of more than 64 bits")

    def _signed(self) -> int:
        value = self._unsigned()
        # Zigzag: 0, -1, 1, -2 ... are written as 0, 1, 2, 3 ...
        return (value >> 1) ^ -(value & 1)

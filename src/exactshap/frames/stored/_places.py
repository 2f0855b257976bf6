"""Find files of rows, on this machine or in an object store."""

from __future__ import annotations

import glob
import hashlib
import importlib
import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from exactshap._runtime.files import check_regular, open_regular
from exactshap._runtime.optional import first_installed, require
from exactshap._runtime.types import Foreign, TableLike
from exactshap.errors import InputError, InputTypeError

_SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}
# CSV files are unpacked while they are read, a block at a time: memory does not depend on what they unpack to
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_SUFFIXES |= {f".csv{suffix}": "csv" for suffix in _PACKED}
# The folder of rows without a key, as Hive, Spark and pyarrow name it.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# Bytes read at a time for a digest: one request to an object store.
_DIGEST_BYTES_AT_ONCE = 2**22


@dataclass(frozen=True)
class StoredFile:
    """Hold the place of a file of rows, with its format and the keys of its folders."""

    path: str  # where it is
    name: str  # name in messages and in the manifest
    kind: str  # "parquet" or "csv"
    filesystem: Any = None  # of pyarrow; None: this machine's
    # Columns in the names of its folders (``year=2024``), with the value of all its rows
    keys: tuple[tuple[str, Any], ...] = ()

    def open(self) -> BinaryIO:
        return open_regular(self.path) if self.filesystem is None else self.filesystem.open_input_file(self.path)  # type: ignore[no-any-return]

    def check(self) -> None:
        if self.filesystem is None:
            check_regular(self.path)

    @property
    def compression(self) -> str | None:
        """Return the codec that the suffix names."""
        return _PACKED.get(Path(self.path).suffix.lower())

    def state(self) -> tuple[int | None, ...]:
        """Return a file's size and times, which change when it is written."""
        if self.filesystem is None:
            facts = check_regular(self.path)
            # The last one cannot be set to an earlier time
            return facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
        facts = self.filesystem.get_file_info(self.path)
        return facts.size, facts.mtime_ns

    def sha256(self) -> str:
        digest = hashlib.sha256()
        with self.open() as stream:
            while piece := stream.read(_DIGEST_BYTES_AT_ONCE):
                digest.update(piece)
        return digest.hexdigest()


def kind_of(path: str | Path) -> str:
    """Return "parquet" or "csv" by a file's suffix, or refuse it."""
    kind = _known_kind(path)
    if kind is None:
        raise InputError(f"Data are read from Parquet and CSV files, not from {Path(path).name}", do="Write them as Parquet")
    return kind


def _known_kind(path: str | Path) -> str | None:
    """Return the kind by a file's last suffix or its last two, None for others.

    >>> _known_kind("rows/a.CSV.gz"), _known_kind("a.b.parquet"), _known_kind("a.txt.gz")
    ('csv', 'parquet', None)
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return next((_SUFFIXES[name] for n in (1, 2) if (name := "".join(suffixes[-n:])) in _SUFFIXES), None)


def find_files(source: TableLike, filesystem: Foreign = None) -> list[StoredFile]:
    """Return a source's files in the order of their names. Hidden files and other kinds are left out.

    A source is files, folders or patterns (``rows/*/2024-*.parquet``), addresses such as ``s3://bucket/rows``, or a dataset of pyarrow; without a
    ``filesystem`` of pyarrow or fsspec, addresses name their own and other paths are on this machine.
    """
    if _is_dataset(source):
        return _of_dataset(source)
    several = isinstance(source, Sequence) and not isinstance(source, (str, bytes))
    places = list(source) if several else [source]
    if wrong := [place for place in places if not isinstance(place, (str, os.PathLike))]:
        got = f"Got {type(wrong[0]).__name__}"
        raise InputTypeError("A source is a path, a list of paths, or a data set of pyarrow", got)
    files = [pair for place in places for pair in _expanded(os.fspath(place), filesystem)]
    paths = [path for path, _ in files]
    if not files:
        raise InputError(f"{_called(source)} has no data", "Got no .parquet and no .csv file in it")
    repeated = [path for path, count in Counter(paths).items() if count > 1]
    if several and repeated:
        raise InputError("A file is in the source twice", f"Got {repeated[0]}", "Name each file once")
    kinds = {kind_of(path) for path in paths}
    if len(kinds) > 1:
        raise InputError(f"{_called(source)} mixes formats", f"Got {' and '.join(sorted(kinds))}", "Keep one of them")
    # Names in messages and manifests are relative to what all files have in common
    root = (
        os.fspath(source)
        if not several and Path(source).is_dir()
        else posixpath.commonpath([posixpath.dirname(p) for p in paths])
    )
    names = [posixpath.relpath(path, Path(root).absolute().as_posix() if files[0][1] is None else root) for path in paths]
    return _with_typed_keys(
        StoredFile(path, name, kind_of(path), system) for (path, system), name in zip(files, names, strict=True)
    )


def place_of(source: TableLike, path: Path, filesystem: Foreign = None) -> str | None:
    """Return the part of a source that would include a new local file. It is a folder, pattern, address or dataset, or None."""
    if _is_dataset(source):  # which does not tell its folder
        local = [posixpath.dirname(file.path) for file in _of_dataset(source) if file.filesystem is None]
        places = [posixpath.commonpath(local)] if local else []
    else:
        places = [os.fspath(place) for place in (source if isinstance(source, (list, tuple)) else [source])]
    resolved = ((place, *_resolved(place, filesystem)) for place in places)
    return next((place for place, system, local in resolved if system is None and _would_match(local, path.resolve())), None)


def _would_match(place: str, path: Path) -> bool:
    """Say whether a folder, or folders of a pattern, hold a path or a pattern matches it (``**``: may match it)."""
    parts = Path(place).absolute().parts
    # An existing path is taken literally, even if it looks like a pattern; else the part before the first magic one is
    fixed = len(parts) if os.path.exists(place) else next((j for j, p in enumerate(parts) if glob.has_magic(p)), len(parts))
    folder, pattern = Path(*parts[:fixed]).resolve(), parts[fixed:]
    if not (folder.is_dir() and path.is_relative_to(folder)):
        return False
    names = path.relative_to(folder).parts
    return "**" in pattern or (len(names) >= len(pattern) and all(map(fnmatchcase, names, pattern)))


def _is_dataset(source: TableLike) -> bool:
    return callable(getattr(source, "get_fragments", None))


def _called(source: TableLike) -> str:
    return (
        f"The folder {source}" if isinstance(source, (str, os.PathLike)) and Path(source).is_dir() else f"The source {source}"
    )


def _expanded(place: str, filesystem: Foreign) -> Iterator[tuple[str, Any]]:
    """Yield the files of a place, each with its file system (None: this machine's)."""
    system, path = _resolved(place, filesystem)
    if system is not None:
        yield from ((match, system) for match in _of_store(system, path))
        return
    is_there = os.path.exists(path)
    if not is_there and not glob.has_magic(path):
        raise FileNotFoundError(2, "No such file or folder", path)
    if is_there and not os.path.isdir(path):
        kind_of(path)
        check_regular(path)
    # "rows/**" matches a folder, the folders in it, and their files: each file counts once.
    matches = map(Path, [path] if is_there else sorted(glob.glob(path, recursive=True)))
    found = (file for match in matches for file in (_of_folder(match) if match.is_dir() else [match]))
    yield from ((file, None) for file in dict.fromkeys(file.absolute().as_posix() for file in found if _known_kind(file)))


def _of_folder(folder: Path) -> Iterator[Path]:
    parts = (path.relative_to(folder).parts for path in folder.rglob("*"))
    files = (folder.joinpath(*names) for names in sorted(parts) if not _is_hidden(names))
    return (file for file in files if not file.is_dir())


def _is_hidden(names: Iterable[str]) -> bool:
    return any(name.startswith((".", "_")) for name in names)


# -- object stores and data sets -------------------------------------------------------------------------------------


def _resolved(place: str, filesystem: Foreign) -> tuple[Any, str]:
    """Return the file system of pyarrow and the path on it; None for this machine's."""
    if filesystem is None and "://" not in place:
        return None, place
    arrow = require("pyarrow.fs", "scale", purpose="A file system")
    if filesystem is None:
        filesystem, place = _of_address(arrow, place)
    if not isinstance(filesystem, arrow.FileSystem):
        if not callable(getattr(filesystem, "open", None)):
            got = f"Got {type(filesystem).__name__}"
            raise InputTypeError("`filesystem` is a file system of pyarrow or fsspec", got)
        # fsspec's local file system is this machine
        if type(filesystem).__module__ == "fsspec.implementations.local" and "://" not in place:
            return None, place
        filesystem = arrow.PyFileSystem(arrow.FSSpecHandler(filesystem))
    return (None if isinstance(filesystem, arrow.LocalFileSystem) else filesystem), place


def _of_address(arrow: Foreign, place: str) -> tuple[Any, str]:
    """Return the file system and the path of an address; pyarrow knows some schemes, fsspec many."""
    try:
        return arrow.FileSystem.from_uri(place)  # type: ignore[no-any-return]
    except ValueError as error:  # ArrowInvalid: a scheme that it does not know
        library = first_installed(("fsspec",))
        if library is None:
            raise InputError(f"{place} cannot be read", f"{error}", "Install fsspec, or pass filesystem=") from None
    try:
        return importlib.import_module(f"{library}.core").url_to_fs(place)  # type: ignore[no-any-return]
    except (ValueError, ImportError) as error:
        raise InputError(f"{place} cannot be read", f"{error}", "Pass filesystem=") from None


def _of_store(system: Foreign, path: str) -> list[str]:
    """Return the files of a folder or a pattern, or the file itself."""
    arrow = require("pyarrow.fs", "scale", purpose="A file system")
    path = path.rstrip("/")
    kind = system.get_file_info(path).type
    if kind == arrow.FileType.File:
        kind_of(path)
        return [path]
    pattern = path.split("/")
    fixed = next((j for j, part in enumerate(pattern) if glob.has_magic(part)), len(pattern))
    folder = "/".join(pattern[:fixed])
    if kind == arrow.FileType.NotFound and fixed == len(pattern):
        raise FileNotFoundError(2, "No such file or folder", path)
    if "**" in pattern:
        raise InputError("Patterns with ** are for files of this machine", f"Got {path}", "Name the folder")
    matches = []
    for info in system.get_file_info(arrow.FileSelector(folder, recursive=True)):
        names = info.path.removeprefix(folder).strip("/").split("/")
        # A pattern matches paths of its own depth; a folder includes files of any depth
        fits = all(map(fnmatchcase, names, pattern[fixed:])) and (len(names) == len(pattern) - fixed or fixed == len(pattern))
        if info.type == arrow.FileType.File and fits and not _is_hidden(names) and _known_kind(info.path):
            matches.append((names, info.path))
    return [path for _, path in sorted(matches)]


def _of_dataset(source: TableLike) -> list[StoredFile]:
    """Return the files of a pyarrow dataset, with keys of its partitioning."""
    datasets = require("pyarrow.dataset", "scale", purpose="A data set")
    arrow = require("pyarrow.fs", "scale", purpose="A data set")
    try:
        fragments = list(source.get_fragments())
    except ValueError as error:  # of a data set that is filtered or projected
        raise InputError("This data set cannot be read file by file", f"{error}", "Pass it without filter") from None
    if not fragments:
        raise InputError("The data set has no data", "Got no file in it")
    files = []
    for fragment in fragments:
        path = getattr(fragment, "path", "")
        if not path:
            do = "Give its tables to scale.Partition"
            raise InputError("A data set in memory has no files", f"Got {type(fragment).__name__}", do)
        kind = {"ParquetFileFormat": "parquet", "CsvFileFormat": "csv"}.get(type(fragment.format).__name__)
        if kind is None or (kind == "csv" and fragment.format != datasets.CsvFileFormat()):
            got = f"Got {type(fragment.format).__name__}"
            raise InputError("Data sets are read from Parquet, and from CSV separated by commas", got)
        system = None if isinstance(fragment.filesystem, arrow.LocalFileSystem) else fragment.filesystem
        keys = datasets.get_partition_keys(fragment.partition_expression)
        files.append(StoredFile(path, path, kind, system, tuple(keys.items())))
    root = posixpath.commonpath([posixpath.dirname(file.path) for file in files])
    return [replace(file, name=posixpath.relpath(file.path, root)) for file in files]


# -- keys in the names of folders ------------------------------------------------------------------------------------


def _with_typed_keys(files: Iterable[StoredFile]) -> list[StoredFile]:
    """Return files with typed keys of folders: integers if all values of a key are, else text ("01" stays text)."""
    files = list(files)
    texts = [_folder_keys(file.path) for file in files]
    names = {name for keys in texts for name in keys}
    # Over all files: a key must not be a number in one folder and text in another
    whole = {name for name in names if all(_is_whole(keys.get(name)) for keys in texts)}
    typed = [
        tuple((name, int(text) if text is not None and name in whole else text) for name, text in keys.items())
        for keys in texts
    ]
    return [replace(file, keys=keys) for file, keys in zip(files, typed, strict=True)]


def _folder_keys(path: str) -> dict[str, str | None]:
    parts = [part.partition("=") for part in posixpath.dirname(path).split("/") if "=" in part]
    return {unquote(name): None if text == _NO_VALUE else unquote(text) for name, _, text in parts}


def _is_whole(text: str | None) -> bool:
    # "01" and "-0" are no integers, as these would be written differently
    return text is None or (text.lstrip("-").isdecimal() and str(int(text)) == text and abs(int(text)) < 2**63)

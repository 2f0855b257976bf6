"""Explanations as files: a zip of ``.npy`` arrays, a Parquet table for frames and one JSON text. No pickle, ever."""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from exactshap._runtime.files import check_suffix, replacing
from exactshap._runtime.optional import FRAME_LIBRARIES, first_installed, require
from exactshap.errors import InputError, InputTypeError, ModelFormatError, message
from exactshap.results.data import ExplanationData, frame_kind

__all__ = ["load", "save"]

Kind = TypeVar("Kind", bound=ExplanationData)

FORMAT, VERSION = "exactshap.explanation", 1  # written into files: it stays, wherever this module moves
_MAX_JSON = 2**26
_METADATA, _PARQUET, _CELLS = "metadata.json", "data.parquet", "data.json"


def save(explanation: ExplanationData, path: str | Path) -> None:
    """Write an explanation; see :meth:`Explanation.save`."""
    check_suffix(
        path, (".npz",), "A saved explanation", "Name it .npz; explanation.to_frame() gives the values for other files"
    )
    arrays, texts = _parts(explanation)
    with replacing(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
        for name, content in texts.items():
            archive.writestr(name, content)


def _parts(explanation: ExplanationData) -> tuple[dict[str, np.ndarray], dict[str, bytes]]:
    from exactshap import __version__

    arrays: dict[str, np.ndarray] = {}
    metadata: dict[str, Any] = {"format": FORMAT, "version": VERSION, "exactshap": __version__, "data": None}
    for name in (field.name for field in fields(explanation) if field.name not in ("data", "sets", "stability_bound")):
        value = getattr(explanation, name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif value is not None:
            metadata[name] = value
    if explanation.order > 1:
        arrays["sets"] = _padded(explanation.sets or (), explanation.order)
    texts: dict[str, bytes] = {}
    if explanation.data is not None:
        metadata["data"] = _add_data(explanation.data, arrays, texts)
    texts[_METADATA] = json.dumps(metadata, ensure_ascii=False, default=_plain).encode()
    return arrays, texts


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise InputTypeError(message("Explanations are saved as numbers and text only", f"Got {type(value).__name__} {value!r}"))


def _padded(sets: tuple[tuple[int, ...], ...], order: int) -> np.ndarray:
    table = np.full((len(sets), order), -1, np.int32)
    for number, players in enumerate(sets):
        table[number, : len(players)] = players
    return table


def _add_data(data: Any, arrays: dict[str, np.ndarray], texts: dict[str, bytes]) -> str:
    kind = frame_kind(data)
    if kind is not None:
        texts[_PARQUET] = _parquet_bytes(data, kind)
        return kind
    array = np.asarray(data)
    if array.dtype == object:
        texts[_CELLS] = json.dumps(array.tolist(), default=_plain).encode()
        return "objects"
    arrays["data"] = array
    return "array"


def _parquet_bytes(data: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == "polars":
        data.write_parquet(buffer)
        return buffer.getvalue()
    parquet = require("pyarrow.parquet", "frames", purpose="Saving a frame")
    try:
        table = require("pyarrow", "frames", purpose="Saving a frame").Table.from_pandas(data) if kind == "pandas" else data
        parquet.write_table(table, buffer)
    except Exception as error:  # pyarrow has a class for every kind of cell that it cannot store
        raise InputError(
            message("`data` cannot be saved without pickle", f"{error}", "Convert that column to text or numbers")
        ) from None
    return buffer.getvalue()


def load(path: str | Path, kind: type[Kind], *, max_bytes: int) -> Kind:
    """Read an explanation of this class; see :meth:`Explanation.load`."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, path, max_bytes)
            metadata = _metadata(archive, path)
            arrays = {
                name.removesuffix(".npy"): _array(archive, name, path) for name in archive.namelist() if name.endswith(".npy")
            }
            data = _data(archive, metadata.pop("data", None), arrays, path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _damaged(path, f"{error}. Pickles are never loaded") from None
    return _assembled(kind, metadata, arrays, data, path)


def _assembled(kind: type[Kind], metadata: dict[str, Any], arrays: dict[str, np.ndarray], data: Any, path: Any) -> Kind:
    content: dict[str, Any] = {**metadata, **arrays, "data": data}
    unknown = set(content) - {field.name for field in fields(kind)}
    if unknown:
        raise _damaged(path, f"Unknown entry {min(unknown)!r}")
    try:
        if "sets" in content:
            content["sets"] = tuple(tuple(int(j) for j in row if j >= 0) for row in content["sets"])
        return kind(**content)
    except (TypeError, ValueError) as error:
        raise _damaged(path, f"{error}") from None


def _check_archive(archive: zipfile.ZipFile, path: Any, max_bytes: int) -> None:
    total = sum(entry.file_size for entry in archive.infolist())
    if total > max_bytes:
        raise ModelFormatError(
            message(f"{path} is larger than allowed", f"It holds {total:,} bytes", f"Pass max_bytes={total} if you trust it")
        )
    if _METADATA not in archive.namelist():
        raise ModelFormatError(message(f"{path} is not a saved Explanation", f"It has no {_METADATA}"))


def _metadata(archive: zipfile.ZipFile, path: Any) -> dict[str, Any]:
    metadata = _json(archive, _METADATA, path)
    if not isinstance(metadata, dict) or metadata.pop("format", None) != FORMAT:
        raise ModelFormatError(message(f"{path} is not a saved Explanation", "Its metadata names another format"))
    version = metadata.pop("version", None)
    metadata.pop("exactshap", None)
    if not isinstance(version, int) or version > VERSION:
        raise ModelFormatError(
            message(f"{path} has a newer format", f"format {version} is newer than {VERSION}", "Update exactshap")
        )
    return metadata


def _json(archive: zipfile.ZipFile, name: str, path: Any) -> Any:
    if archive.getinfo(name).file_size > _MAX_JSON and name == _METADATA:
        raise _damaged(path, f"{name} has {archive.getinfo(name).file_size:,} bytes")
    try:
        return json.loads(archive.read(name))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"{name}: {error}") from None


def _array(archive: zipfile.ZipFile, name: str, path: Any) -> np.ndarray:
    """Read one array, after its header was found to announce exactly the bytes that are there."""
    content = archive.read(name)
    stream = io.BytesIO(content)
    try:
        major, _ = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        there = len(content) - stream.tell()
        if dtype.hasobject:
            raise _damaged(path, f"{name} holds Python objects (a pickle), which are never loaded")
        if math.prod(shape) * dtype.itemsize != there:
            raise _damaged(path, f"{name} announces shape {shape} but holds {there} bytes")
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)
    except ModelFormatError:
        raise
    except Exception as error:  # numpy parses the header with tokenize and ast, and passes on whatever they raise
        raise _damaged(path, f"{name}: {error}") from None


def _data(archive: zipfile.ZipFile, kind: Any, arrays: dict[str, np.ndarray], path: Any) -> Any:
    names = archive.namelist()
    if kind in FRAME_LIBRARIES and _PARQUET in names:
        rows = len(arrays.get("values", ()))
        return _read_parquet(archive.read(_PARQUET), kind, rows, path)
    if kind == "objects" and _CELLS in names:
        return np.array(_json(archive, _CELLS, path), dtype=object)
    if kind == "array" and "data" in arrays:
        return arrays.pop("data")
    if kind is None:
        return None
    raise _damaged(path, f"Its data are announced as {kind!r} and not there")


def _read_parquet(content: bytes, kind: str, n_rows: int, path: Any) -> Any:
    reader = "polars" if kind == "polars" and first_installed(("polars",)) else "pyarrow"
    try:
        if reader == "polars":
            return require("polars", "frames", purpose="Loading a polars frame").read_parquet(
                io.BytesIO(content), n_rows=n_rows + 1
            )
        parquet = require("pyarrow.parquet", "frames", purpose="Loading a frame")
        file = parquet.ParquetFile(io.BytesIO(content))
        if file.metadata.num_rows != n_rows:
            raise _damaged(path, f"Its data have {file.metadata.num_rows} rows for {n_rows} rows of values")
        table = file.read()
    except ModelFormatError:
        raise
    except Exception as error:  # the Parquet readers have a class of error for every kind of damage
        if isinstance(error, ImportError):
            raise
        raise _damaged(path, f"{_PARQUET}: {error}") from None
    return table.to_pandas() if kind == "pandas" else table


def _damaged(path: Any, got: str) -> ModelFormatError:
    return ModelFormatError(message(f"{path} is not a complete saved Explanation", got, "Save it again"))

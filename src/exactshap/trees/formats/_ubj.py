"""Read Universal Binary JSON as XGBoost writes it.

A compiled scan (``src/native/trees/ubj.cpp``) first lists the values on a tape, one row each, at most a quarter of the file's
bytes; lengths (big-endian) are validated before anything is allocated. Trees are decoded lazily: :class:`Scanned`
copies a column of all trees at once out of the bytes.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap.errors import ModelFormatError
from exactshap.trees.formats._document import Records, always_fits, chained, every_or_none, numbers

_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
# As in ubj.h: added to the type of the numbers of a typed array.
TYPED = 128
_STRUCT = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_DTYPE = {marker: np.dtype(kind) for marker, kind in _NUMBERS.items()}
_NATIVE = {marker: dtype.newbyteorder("=") for marker, dtype in _DTYPE.items()}
_OF_TYPED = {TYPED + ord(marker): dtype for marker, dtype in _NATIVE.items()}
# Rows of the tape that are allocated for small files.
SPARE_ROWS = 1000
# As in ubj.h: keys of an object in a list of similar ones.
MAX_KEYS = 64
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}


class Tape(NamedTuple):
    """Hold a scan's rows, one per value, and the bytes they point into."""

    data: np.ndarray  # uint8
    marker: np.ndarray  # uint8 (n_values,), the others int64
    key_start: np.ndarray
    key_length: np.ndarray
    start: np.ndarray
    size: np.ndarray
    after: np.ndarray


scan = kernel("trees.scan_ubj(data, marker, key_start, key_length, start, count, after)")
list_objects = kernel("trees.list_ubj_objects(tape, row, out)")
fill_members = kernel("trees.fill_ubj_members(tape, objects, out, markers, totals, same)")
copy_numbers = kernel("trees.copy_ubj_numbers(tape, rows, out)")


class _Tape:
    """Hold the scanned values and their bytes."""

    def __init__(self, data: bytes, *arrays: np.ndarray) -> None:
        self.data = data
        _, self.marker, self.key_start, self.key_length, self.start, self.size, self.after = arrays
        self.handle = Handle(Tape(*arrays))


def read_ubj(data: bytes) -> Any:
    """Parse ``data`` into dicts, lists, strings, numbers and NumPy arrays.

    Typed arrays of numbers become NumPy arrays, lists of objects called "trees" :class:`Scanned`.
    """
    codes = np.frombuffer(data, np.uint8)
    # Enough for a model of small trees
    rows = _rows(len(data) // 32 + SPARE_ROWS)
    n, fault = scan(codes, *rows)
    if fault >= 0:
        raise ModelFormatError(f"Malformed UBJSON at byte {fault}", _fault(data, fault))
    if n > len(data) // 4 + SPARE_ROWS:
        got = f"{n:,} values in {len(data):,} bytes"
        raise ModelFormatError("UBJSON of too many tiny values", got, "XGBoost writes typed arrays: save the model again")
    if n > len(rows[0]):
        # The scan counts all values even without room for them: now the number is known
        rows = _rows(n)
        scan(codes, *rows)
    return _value_at(_Tape(data, codes, *(column[:n] for column in rows)), 0)


def _fault(data: bytes, position: int) -> str:
    """Describe the fault at a byte where the scan stopped."""
    left = len(data) - position
    if left <= 0:
        return "it ends too early"
    return f"a value, key, length or end was expected within {left:,} bytes, got {data[position : position + 8]!r}"


def _rows(n: int) -> tuple[np.ndarray, ...]:
    return np.empty(n, np.uint8), *(np.empty(n, np.int64) for _ in range(5))


def _value_at(tape: _Tape, row: int) -> Any:
    """Return the value of a row."""
    kind, start, n = tape.marker.item(row), tape.start.item(row), tape.size.item(row)
    if kind == ord("{"):
        return _object_at(tape, row, n)
    if kind == ord("["):
        alike = _alike_numbers(tape, row, n)
        return [_value_at(tape, child) for child in _children(tape, row)] if alike is None else alike
    if kind == ord("S"):
        return _text(tape, start, n)
    if kind == ord("C"):
        return tape.data[start : start + 1].decode("latin-1")
    if kind >= TYPED:
        marker = bytes([kind - TYPED])
        return np.frombuffer(tape.data, _DTYPE[marker], n, start).astype(_NATIVE[marker])
    marker = bytes([kind])
    return _CONSTANTS[marker] if marker in _CONSTANTS else struct.unpack_from(_STRUCT[marker], tape.data, start)[0]


def _alike_numbers(tape: _Tape, row: int, n: int) -> list[Any] | None:
    """Return the numbers of an untyped array of one type, else None."""
    kinds = tape.marker[row + 1 : row + 1 + n].tobytes()
    marker = kinds[:1]
    if marker not in _NUMBERS or tape.after.item(row) != row + 1 + n or kinds != marker * n:
        return None
    apart = 1 + _DTYPE[marker].itemsize  # bytes of a number and the marker before it
    return np.ndarray(n, _DTYPE[marker], tape.data, tape.start.item(row + 1), (apart,)).tolist()


def _object_at(tape: _Tape, row: int, n: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for child in _children(tape, row):
        key = _text(tape, tape.key_start.item(child), tape.key_length.item(child))
        scanned = _scanned(tape, child) if key == "trees" else None
        made[key] = _value_at(tape, child) if scanned is None else scanned
    if len(made) < n:
        raise ModelFormatError(f"Malformed UBJSON at byte {tape.start[row]}", "a key occurs twice")
    return made


def _scanned(tape: _Tape, row: int) -> Scanned | None:
    """Return a list of objects as :class:`Scanned`, or None for other lists."""
    objects = np.empty(tape.size.item(row) if tape.marker.item(row) == ord("[") else 0, np.int64)
    return Scanned(tape, objects) if len(objects) and list_objects(tape.handle, row, objects) else None


def _children(tape: _Tape, row: int) -> list[int]:
    after = tape.after.item
    children, child, end = [], row + 1, after(row)
    while child < end:
        children.append(child)
        child = after(child)
    return children


def _text(tape: _Tape, start: int, n: int) -> str:
    try:
        return tape.data[start : start + n].decode("utf-8")
    except UnicodeDecodeError:
        raise ModelFormatError(f"Malformed UBJSON at byte {start}", "text is not UTF-8") from None


class _Entries(NamedTuple):
    """Hold the entries of one key, one per object."""

    # (n_objects,): the row of each, -1 if missing, -2 if there are two
    rows: np.ndarray
    kind: int  # the common marker, or 0
    total: int  # numbers in each
    same: bool  # whether all are the same text


class Scanned(Records):
    """Decode objects lazily: entries are copied out of the bytes, a column at a time."""

    def __init__(self, tape: _Tape, rows: np.ndarray) -> None:
        self.tape, self.rows = tape, rows

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, kept: np.ndarray) -> Scanned:
        return Scanned(self.tape, self.rows[np.asarray(kept, np.int64)])

    def entries(self, name: str) -> list[Any]:
        return [None if row < 0 else _value_at(self.tape, row) for row in self._find(name).rows.tolist()]

    def names(self) -> set[str]:
        tape = self.tape
        children = np.array([child for row in self.rows.tolist() for child in _children(tape, row)], np.int64)
        pieces = set(zip(tape.key_start[children].tolist(), tape.key_length[children].tolist(), strict=True))
        return {_text(tape, start, length) for start, length in pieces}

    def has(self, name: str) -> bool:
        rows, kind, _, _ = self._find(name)
        return bool(kind) or every_or_none(rows >= 0, name)

    def distinct(self, name: str) -> set[Any]:
        rows, _, _, same = self._find(name)
        return {_value_at(self.tape, rows.item(0))} if same else super().distinct(name)

    def inner(self, name: str) -> Scanned | None:
        rows, kind, _, _ = self._find(name)
        if (rows < 0).any():
            return None
        if kind != ord("{"):
            raise ModelFormatError(f"Entry {name!r} of the trees must be an object")
        return Scanned(self.tape, rows)

    def column(self, name: str, dtype: type, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        rows, kind, total, _ = self._find(name)
        if kind not in _OF_TYPED:
            return chained([None if row < 0 else _value_at(self.tape, row) for row in rows.tolist()], name, dtype, counts)
        sizes = self.tape.size[rows]
        if counts is not None and (sizes != counts).any():
            k = int(np.argmax(sizes != counts))
            raise ModelFormatError(f"tree {k}: {name} must hold {counts[k]} numbers", f"Got {sizes[k]}")
        native = _OF_TYPED[kind]
        fits = always_fits(native, np.dtype(dtype))
        out: np.ndarray = np.empty(total, dtype if fits else np.int64 if native.kind in "iu" else np.float64)
        copy_numbers(self.tape.handle, rows, out)
        return out if fits else numbers(out, f"trees: {name}", dtype), sizes

    def columns(self, names: Sequence[str], dtype: type, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        columns = [self._find(name) for name in names]
        rows = np.concatenate([entries.rows for entries in columns])
        sizes = self.tape.size[rows].reshape(len(names), -1)  # rows of missing entries (-1) may be any, but are no arrays
        alike = all(kind in _OF_TYPED and always_fits(_OF_TYPED[kind], np.dtype(dtype)) for _, kind, _, _ in columns)
        if not alike or (sizes != (sizes[0] if counts is None else counts)).any():
            # One by one, to convert them or to name the fault
            return super().columns(names, dtype, counts)
        out: np.ndarray = np.empty((len(names), columns[0].total), dtype)
        copy_numbers(self.tape.handle, rows, out.reshape(-1))
        return out, sizes[0]

    def _find(self, name: str) -> _Entries:
        members, other = self._members
        entries = members.get(name.encode())
        if entries is None:
            if other >= 0:
                raise ModelFormatError(f"tree {other}: its entries are not those of tree 0")
            return _Entries(np.full(len(self.rows), -1), 0, 0, False)
        if not entries.kind and (entries.rows == -2).any():
            raise ModelFormatError(f"tree {int(np.argmin(entries.rows))}: key {name!r} occurs twice")
        return entries

    @functools.cached_property
    def _members(self) -> tuple[dict[bytes, _Entries], int]:
        """Return the first object's entries by key, and the first object with other keys (-1: none)."""
        tape, keys = self.tape, _children(self.tape, self.rows.item(0)) if len(self.rows) else []
        if len(keys) > MAX_KEYS:
            raise ModelFormatError(f"tree 0: must not have more than {MAX_KEYS} entries", f"Got {len(keys)}")
        rows, totals = np.empty((len(keys), len(self.rows)), np.int64), np.empty(len(keys), np.int64)
        kinds, same = np.empty(len(keys), np.uint8), np.empty(len(keys), bool)
        other = fill_members(tape.handle, self.rows, rows, kinds, totals, same)
        places = zip(tape.key_start[keys].tolist(), tape.key_length[keys].tolist(), strict=True)
        names = [tape.data[start : start + length] for start, length in places]
        entries = map(_Entries, rows, kinds.tolist(), totals.tolist(), same.tolist())
        return dict(reversed(list(zip(names, entries, strict=True)))), other  # the first of two with one name

"""Read Universal Binary JSON as XGBoost writes it.

A compiled scan (``src/native/trees/ubj.cpp``) first lists the values on a tape, one row each, at most a quarter of the file's
bytes; lengths (big-endian) are validated before anything is allocated. Trees are decoded lazily: :class:`Scanned`
copies a column of all trees at once out of the bytes.
"""

from __future__ import annotations

import functools
import struct
from typing import Any, NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap.errors import ModelFormatError
from exactshap.trees.formats._document import Records, always_fits, every_or_none, numbers

# As in ubj.h: added to the type of the numbers of a typed array.
TYPED = 128
_STRUCT = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_KINDS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_DTYPE = {marker: np.dtype(kind) for marker, kind in _KINDS.items()}
_NATIVE = {marker: dtype.newbyteorder("=") for marker, dtype in _DTYPE.items()}
_OF_TYPED = {TYPED + ord(marker): dtype for marker, dtype in _NATIVE.items()}
# Rows of the tape that are allocated for small files.
SPARE_ROWS = 1000
# As in ubj.h: keys of an object in a list of similar ones.
MAX_KEYS = 64
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}


class TapeArrays(NamedTuple):
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
fill_members = kernel("trees.fill_ubj_members(tape, objects, out, markers, totals)")
copy_numbers = kernel("trees.copy_ubj_numbers(tape, rows, out)")


class _Tape:
    """Hold the arrays of a scan, the file's bytes, and what the kernels read."""

    def __init__(self, data: bytes, *arrays: np.ndarray) -> None:
        self.data = data
        _, self.marker, self.key_start, self.key_length, self.start, self.size, self.after = arrays
        self.handle = Handle(TapeArrays(*arrays))


def read_ubj(data: bytes) -> Any:
    """Parse ``data`` into dicts, lists, strings, numbers and NumPy arrays.

    Typed arrays of numbers become NumPy arrays, lists of objects called "trees" :class:`Scanned`.
    """
    codes = np.frombuffer(data, np.uint8)
    # Enough for a model of small trees
    rows = _rows(len(data) // 32 + SPARE_ROWS)
    n, fault = scan(codes, *rows)
    if fault >= 0:
        left = len(data) - fault
        what = f"a value, key, length or end was expected within {left:,} bytes, got {data[fault : fault + 8]!r}"
        raise ModelFormatError(f"Malformed UBJSON at byte {fault}", what if left > 0 else "it ends too early")
    if n > len(data) // 4 + SPARE_ROWS:
        got = f"{n:,} values in {len(data):,} bytes"
        raise ModelFormatError("UBJSON of too many tiny values", got, "XGBoost writes typed arrays: save the model again")
    if n > len(rows[0]):
        # The scan counts all values even without room for them: now the number is known
        rows = _rows(n)
        scan(codes, *rows)
    return _value_at(_Tape(data, codes, *(column[:n] for column in rows)), 0)


def _rows(n: int) -> tuple[np.ndarray, ...]:
    return np.empty(n, np.uint8), *(np.empty(n, np.int64) for _ in range(5))


def _value_at(tape: _Tape, row: int) -> Any:
    """Return the value of a row."""
    kind, start, n = tape.marker.item(row), tape.start.item(row), tape.size.item(row)
    if kind == ord("{"):
        children = _children(tape, row)
        places = zip(tape.key_start[children].tolist(), tape.key_length[children].tolist(), strict=True)
        keys = [_text(tape, *place) for place in places]
        if len(set(keys)) < len(keys):
            raise ModelFormatError(f"Malformed UBJSON at byte {start}", "a key occurs twice")
        return {key: _of_key(tape, key, child) for key, child in zip(keys, children, strict=True)}
    if kind == ord("["):
        return [_value_at(tape, child) for child in _children(tape, row)]
    if kind == ord("S"):
        return _text(tape, start, n)
    if kind == ord("C"):
        return tape.data[start : start + 1].decode("latin-1")
    if kind >= TYPED:
        marker = bytes([kind - TYPED])
        return np.frombuffer(tape.data, _DTYPE[marker], n, start).astype(_NATIVE[marker])
    marker = bytes([kind])
    return _CONSTANTS[marker] if marker in _CONSTANTS else struct.unpack_from(_STRUCT[marker], tape.data, start)[0]


def _of_key(tape: _Tape, key: str, row: int) -> Any:
    """Return the value of a key; of "trees" a list of objects is :class:`Scanned`."""
    if key == "trees" and tape.marker.item(row) == ord("[") and tape.size.item(row):
        objects = np.empty(tape.size.item(row), np.int64)
        if list_objects(tape.handle, row, objects):
            return Scanned(tape, objects)
    return _value_at(tape, row)


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
        rows, kind, _ = self._find(name)
        return bool(kind) or every_or_none(rows >= 0, name)

    def inner(self, name: str) -> Scanned | None:
        rows, kind, _ = self._find(name)
        if (rows < 0).any():
            return None
        if kind != ord("{"):
            raise ModelFormatError(f"Entry {name!r} of the trees must be an object")
        return Scanned(self.tape, rows)

    def column(self, name: str, dtype: type, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        rows, kind, total = self._find(name)
        if kind not in _OF_TYPED:
            return super().column(name, dtype, counts)
        sizes = self.tape.size[rows]
        if counts is not None and (sizes != counts).any():
            k = int(np.argmax(sizes != counts))
            raise ModelFormatError(f"tree {k}: {name} must hold {counts[k]} numbers", f"Got {sizes[k]}")
        native = _OF_TYPED[kind]
        fits = always_fits(native, np.dtype(dtype))
        out: np.ndarray = np.empty(total, dtype if fits else np.int64 if native.kind in "iu" else np.float64)
        copy_numbers(self.tape.handle, rows, out)
        return out if fits else numbers(out, f"trees: {name}", dtype), sizes

    def _find(self, name: str) -> _Entries:
        members, other = self._members
        entries = members.get(name.encode())
        if entries is None:
            if other >= 0:
                raise ModelFormatError(f"tree {other}: its entries are not those of tree 0")
            return _Entries(np.full(len(self.rows), -1), 0, 0)
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
        kinds = np.empty(len(keys), np.uint8)
        other = fill_members(tape.handle, self.rows, rows, kinds, totals)
        places = zip(tape.key_start[keys].tolist(), tape.key_length[keys].tolist(), strict=True)
        names = [tape.data[start : start + length] for start, length in places]
        entries = map(_Entries, rows, kinds.tolist(), totals.tolist())
        return dict(reversed(list(zip(names, entries, strict=True)))), other  # the first of two with one name

"""Reader for Universal Binary JSON, as far as XGBoost writes it.

A compiled scan finds the values first, with lengths (big-endian) validated before anything is allocated: a row of the tape for
each value, no more than a quarter of the file's bytes. Trees are decoded lazily: :class:`Scanned` copies a column of all trees at
once out of the bytes.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from exactshap.errors import ModelFormatError, message
from exactshap.trees.formats._document import numbers
from exactshap.trees.formats._records import Records, chained, every_or_none

__all__ = ["Scanned", "read_ubj"]

_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_WIDTH = {marker: np.dtype(kind).itemsize for marker, kind in _NUMBERS.items()}
_STRUCT = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_DTYPE = {marker: np.dtype(kind) for marker, kind in _NUMBERS.items()}
_NATIVE = {marker: dtype.newbyteorder("=") for marker, dtype in _DTYPE.items()}
SPARE_ROWS = 1000  # of the tape, for small files
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}


class _Tape(NamedTuple):
    """The rows of ``_ubj_kernels.scan`` and the bytes that they point into."""

    data: bytes
    codes: np.ndarray
    marker: np.ndarray
    key_start: np.ndarray
    key_length: np.ndarray
    start: np.ndarray
    size: np.ndarray
    after: np.ndarray


def read_ubj(data: bytes) -> Any:
    """Return the value that ``data`` holds, with lists of objects called "trees" as :class:`Scanned`.

    Dicts, lists, strings, numbers, and NumPy arrays for typed arrays of numbers.
    """
    from exactshap.trees.formats._ubj_kernels import scan

    codes = np.frombuffer(data, np.uint8)
    n, fault = scan(codes, *_rows(0))
    if fault >= 0:
        raise ModelFormatError(message(f"Malformed UBJSON at byte {fault}", _fault(data, fault)))
    if n > len(data) // 4 + SPARE_ROWS:
        got = f"{n:,} values in {len(data):,} bytes"
        raise ModelFormatError(
            message("UBJSON of too many tiny values", got, "XGBoost writes typed arrays: save the model again")
        )
    rows = _rows(n)
    scan(codes, *rows)
    return _made(_Tape(data, codes, *rows), 0)


def _fault(data: bytes, position: int) -> str:
    """Say what can be wrong at a byte where the scan stopped."""
    left = len(data) - position
    if left <= 0:
        return "it ends too early"
    return f"a value, key, length or end was expected within {left:,} bytes, got {data[position : position + 8]!r}"


def _rows(n: int) -> tuple[np.ndarray, ...]:
    return np.empty(n, np.uint8), *(np.empty(n, np.int64) for _ in range(5))


def _made(tape: _Tape, row: int) -> Any:
    """Return the value of a row."""
    kind, start, n = int(tape.marker[row]), int(tape.start[row]), int(tape.size[row])
    if kind == ord("{"):
        return _made_object(tape, row, n)
    if kind == ord("["):
        alike = _alike_numbers(tape, row, n)
        return [_made(tape, child) for child in _children(tape, row)] if alike is None else alike
    if kind == ord("S"):
        return _text(tape, start, n)
    if kind == ord("C"):
        return tape.data[start : start + 1].decode("latin-1")
    if kind >= 128:
        marker = bytes([kind - 128])
        return np.frombuffer(tape.data, _DTYPE[marker], n, start).astype(_NATIVE[marker])
    marker = bytes([kind])
    return _CONSTANTS[marker] if marker in _CONSTANTS else struct.unpack_from(_STRUCT[marker], tape.data, start)[0]


def _alike_numbers(tape: _Tape, row: int, n: int) -> list[Any] | None:
    """Return the numbers of an untyped array that are all of one type, None if it holds something else."""
    kinds = tape.marker[row + 1 : row + 1 + n]
    marker = bytes([kinds[0]]) if n else b""
    if marker not in _NUMBERS or tape.after[row] != row + 1 + n or (kinds != kinds[0]).any():
        return None
    cells = tape.start[row + 1 : row + 1 + n, None] + np.arange(_WIDTH[marker])
    return tape.codes[cells].view(_DTYPE[marker])[:, 0].tolist()


def _made_object(tape: _Tape, row: int, n: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for child in _children(tape, row):
        key = _text(tape, int(tape.key_start[child]), int(tape.key_length[child]))
        below = _children(tape, child) if key == "trees" and tape.marker[child] == ord("[") else []
        objects = np.array(below, np.int64)
        made[key] = Scanned(tape, objects) if (tape.marker[objects] == ord("{")).all() and below else _made(tape, child)
    if len(made) < n:
        raise ModelFormatError(message(f"Malformed UBJSON at byte {tape.start[row]}", "a key occurs twice"))
    return made


def _children(tape: _Tape, row: int) -> list[int]:
    found, child, end = [], row + 1, int(tape.after[row])
    while child < end:
        found.append(child)
        child = int(tape.after[child])
    return found


def _text(tape: _Tape, start: int, n: int) -> str:
    try:
        return tape.data[start : start + n].decode("utf-8")
    except UnicodeDecodeError:
        raise ModelFormatError(message(f"Malformed UBJSON at byte {start}", "text is not UTF-8")) from None


class Scanned(Records):
    """Objects that were found but not made: their entries are copied out of the bytes, a column at a time."""

    def __init__(self, tape: _Tape, rows: np.ndarray) -> None:
        self.tape, self.rows = tape, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, k: Any) -> Any:
        return _made(self.tape, int(self.rows[k]))

    def take(self, kept: np.ndarray) -> Scanned:
        return Scanned(self.tape, self.rows[np.asarray(kept, np.int64)])

    def entries(self, name: str) -> list[Any]:
        return [None if row < 0 else _made(self.tape, row) for row in self._children(name).tolist()]

    def names(self) -> set[str]:
        tape = self.tape
        children = np.array([child for row in self.rows.tolist() for child in _children(tape, row)], np.int64)
        pieces = set(zip(tape.key_start[children].tolist(), tape.key_length[children].tolist(), strict=True))
        return {_text(tape, start, length) for start, length in pieces}

    def has(self, name: str) -> bool:
        return every_or_none(self._children(name) >= 0, name)

    def distinct(self, name: str) -> set[Any]:
        tape, rows = self.tape, self._children(name)
        if (rows < 0).any() or (tape.marker[rows] != ord("S")).any():
            return super().distinct(name)
        start, count = tape.start[rows].tolist(), tape.size[rows].tolist()
        return {piece.decode("utf-8") for piece in {tape.data[a : a + n] for a, n in zip(start, count, strict=True)}}

    def inner(self, name: str) -> Scanned | None:
        rows = self._children(name)
        if (rows < 0).any():
            return None
        if (self.tape.marker[rows] != ord("{")).any():
            raise ModelFormatError(message(f"Entry {name!r} of the trees must be an object"))
        return Scanned(self.tape, rows)

    def column(self, name: str, dtype: type, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        tape, rows = self.tape, self._children(name)
        kind = tape.marker[rows[0]] if len(rows) else 0
        if kind < 128 or (rows < 0).any() or (tape.marker[rows] != kind).any():
            return chained([None if row < 0 else _made(tape, row) for row in rows.tolist()], name, dtype, counts)
        sizes = tape.size[rows]
        if counts is not None and (sizes != counts).any():
            k = int(np.argmax(sizes != counts))
            raise ModelFormatError(message(f"tree {k}: {name} must hold {counts[k]} numbers", f"Got {sizes[k]}"))
        return numbers(self._copied(rows, bytes([kind - 128])), f"trees: {name}", dtype), sizes

    def _copied(self, rows: np.ndarray, marker: bytes) -> np.ndarray:
        from exactshap.trees.formats._ubj_kernels import copy_pieces

        n_bytes = self.tape.size[rows] * _WIDTH[marker]
        out = np.empty(int(n_bytes.sum()), np.uint8)
        copy_pieces(self.tape.codes, self.tape.start[rows], n_bytes, out)
        return out.view(_DTYPE[marker]).astype(_NATIVE[marker], copy=False)

    def _children(self, name: str) -> np.ndarray:
        from exactshap.trees.formats._ubj_kernels import fill_children

        tape, out = self.tape, np.empty(len(self.rows), np.int64)
        text = np.frombuffer(name.encode(), np.uint8)
        fill_children(tape.codes, tape.key_start, tape.key_length, tape.after, self.rows, text, out)
        if (out == -2).any():
            raise ModelFormatError(message(f"tree {int(np.argmin(out))}: key {name!r} occurs twice"))
        return out

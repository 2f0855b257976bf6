"""Reference implementation of the reader of Universal Binary JSON, and a writer: plain Python, value by value.

Every value takes at least one byte and every container counts its entries against the bytes that are left.
"""

import json
import struct
from typing import Any

import numpy as np

from exactshap.errors import ModelFormatError, message

__all__ = ["document_of", "read_ubj", "typed", "write"]

MAX_NESTING = 64
_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_WIDTH = {marker: np.dtype(kind).itemsize for marker, kind in _NUMBERS.items()}
_STRUCT = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_DTYPE = {marker: np.dtype(kind) for marker, kind in _NUMBERS.items()}
_NATIVE = {marker: dtype.newbyteorder("=") for marker, dtype in _DTYPE.items()}
_LENGTH = {ord(marker): _WIDTH[marker] for marker in (b"i", b"U", b"I", b"l", b"L")}
_UNSIGNED = ord("U")
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}


def document_of(path) -> Any:
    """Return the parsed JSON or UBJSON of a file as plain data."""
    return _plain(read_ubj(path.read_bytes())) if path.suffix == ".ubj" else json.loads(path.read_bytes())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, np.ndarray)) else getattr(value, "item", lambda: value)()


def read_ubj(data: bytes) -> Any:
    """Return the value that ``data`` holds: dicts, lists, strings, numbers, and NumPy arrays for typed number arrays."""
    reader = _Cursor(data)
    root: list[Any] = []
    stack: list[_Open] = [_Open(root, left=1)]
    while stack:
        top = stack[-1]
        if top.left == 0 or (top.left is None and reader.skip(top.closing)):
            stack.pop()
            continue
        key = reader.text() if isinstance(top.into, dict) else None
        value, opened = reader.value()
        top.add(key, value, reader.position)
        if opened is not None:
            if len(stack) > MAX_NESTING:
                reader.fail(f"nested deeper than {MAX_NESTING}")
            stack.append(opened)
    if reader.position != len(data):
        reader.fail(f"{len(data) - reader.position} bytes after the end")
    return root[0]


class _Open:
    """A container being filled: ``left`` entries still to come, or None until its closing byte."""

    def __init__(self, into: Any, left: int | None, closing: bytes = b"") -> None:
        self.into, self.left, self.closing = into, left, closing

    def add(self, key: str | None, value: Any, position: int) -> None:
        if key is None:
            self.into.append(value)
        elif key in self.into:
            raise ModelFormatError(message(f"Malformed UBJSON at byte {position}", f"key {key[:40]!r} occurs twice"))
        else:
            self.into[key] = value
        if self.left is not None:
            self.left -= 1


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def fail(self, why: str) -> None:
        raise ModelFormatError(message(f"Malformed UBJSON at byte {self.position}", why))

    def take(self, n: int) -> bytes:
        if n < 0 or n > len(self.data) - self.position:
            self.fail(f"{n} bytes wanted, {len(self.data) - self.position} left")
        self.position += n
        return self.data[self.position - n : self.position]

    def skip(self, marker: bytes) -> bool:
        """Step over ``marker`` if it is next."""
        found = self.data[self.position : self.position + 1] == marker
        self.position += found
        return found

    def number(self, marker: bytes) -> Any:
        return struct.unpack(_STRUCT[marker], self.take(_WIDTH[marker]))[0]

    def length(self) -> int:
        data, start = self.data, self.position + 1
        marker = data[start - 1] if start <= len(data) else -1
        width = _LENGTH.get(marker)
        if width is None:
            self.fail(f"a length was expected, got marker {self.take(1)!r}")
            raise AssertionError
        if start + width > len(data):
            self.fail(f"{width} bytes wanted, {len(data) - start} left")
        self.position = start + width
        n = int.from_bytes(data[start : start + width], "big", signed=marker != _UNSIGNED)
        if n < 0 or n > len(data) - self.position:
            self.fail(f"length {n} is beyond the end")
        return n

    def text(self) -> str:
        data = self.take(self.length())
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            self.fail("text is not UTF-8")
            raise

    def value(self) -> tuple[Any, _Open | None]:
        """Return the next value, and the container to fill if it is one."""
        marker = self.take(1)
        if marker == b"[":  # most of a model
            return self._array()
        if marker in _NUMBERS:
            return self.number(marker), None
        if marker in _CONSTANTS:
            return _CONSTANTS[marker], None
        if marker == b"S":
            return self.text(), None
        if marker == b"C":
            return self.take(1).decode("latin-1"), None
        if marker == b"{":
            return self._container({}, b"}")
        self.fail(f"unknown marker {marker!r}")
        raise AssertionError

    def _container(self, into: Any, closing: bytes) -> tuple[Any, _Open]:
        if self.skip(b"$"):
            self.fail("typed objects and arrays of non-numbers are not known")
        left = self.length() if self.skip(b"#") else None
        return into, _Open(into, left, closing)

    def _array(self) -> tuple[Any, _Open | None]:
        if not self.skip(b"$"):
            return self._container([], b"]")
        marker = self.take(1)
        if marker not in _NUMBERS or not self.skip(b"#"):
            self.fail(f"typed array of {marker!r}")
        n = self.length()
        data = self.take(n * _WIDTH[marker])
        return np.frombuffer(data, _DTYPE[marker]).astype(_NATIVE[marker]), None


def _key(text):
    data = text.encode()
    return b"L" + struct.pack(">q", len(data)) + data


def write(value):
    """Write what XGBoost writes: counted plain arrays, typed number arrays, 64-bit lengths."""
    if isinstance(value, dict):
        return b"{" + b"".join(_key(k) + write(v) for k, v in value.items()) + b"}"
    if isinstance(value, list):
        return b"[#L" + struct.pack(">q", len(value)) + b"".join(map(write, value))
    if isinstance(value, np.ndarray):
        marker = {"f4": b"d", "f8": b"D", "i4": b"l", "i8": b"L", "i1": b"i", "u1": b"U", "i2": b"I"}[value.dtype.str[1:]]
        return b"[$" + marker + b"#L" + struct.pack(">q", len(value)) + value.astype(value.dtype.newbyteorder(">")).tobytes()
    if isinstance(value, bool):
        return b"T" if value else b"F"
    if value is None:
        return b"Z"
    if isinstance(value, str):
        return b"S" + _key(value)
    return b"D" + struct.pack(">d", value) if isinstance(value, float) else b"L" + struct.pack(">q", value)


def typed(value):
    """Return a document of JSON with its lists of numbers as XGBoost writes them to binary files."""
    if isinstance(value, dict):
        return {name: typed(one) for name, one in value.items()}
    kinds = {type(one) for one in value} if isinstance(value, list) else set()
    if kinds and kinds <= {int, float}:
        return np.array(value, np.int32 if kinds == {int} else np.float32)
    return [typed(one) for one in value] if isinstance(value, list) else value

"""How much memory a Parquet file needs, before anything is decompressed.

The libraries that read Parquet have no limit to give them, and what the footer says about sizes is not what they obey: they
decompress page after page, to the size in the header of each. The headers are short structs in Thrift's compact encoding,
which is all that is read here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

__all__ = ["unpacked_bytes"]

_MAGIC, _BYTE_ARRAY, _DELTA_BYTE_ARRAY = b"PAR1", 6, 7
# Bytes of one value or reference in memory, at most, but for text and for arrays of fixed length.
_WIDTH = 16
# Bytes that the libraries hold for a column besides its cells: buffers, a decoder, its name.
_COLUMN = 2**14
# Fields of a column chunk that is in this file, and not encrypted.
_PLAIN_CHUNK = frozenset(range(2, 8))


def unpacked_bytes(content: bytes, shared: Collection[str] | None = ()) -> int:
    """Return the most bytes that a Parquet file's pages become. The overhead of small objects is left out.

    Parameters
    ----------
    shared : collection of str, or None
        Columns of text with repeated cells that the reader keeps once, in a dictionary; None means all.
    """
    if content[:4] != _MAGIC or content[-4:] != _MAGIC or len(content) < 12:
        raise ValueError("Its Parquet part does not begin and end as one")
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    if start < 4:
        raise ValueError("Its Parquet footer is longer than the file")
    footer = _Compact(content, start).struct()
    if 8 in footer:
        raise ValueError("Its Parquet part is encrypted")
    width = max(_WIDTH, *(element.get(2, 0) for element in footer[2]))
    cells = sum(_chunk_bytes(content, chunk, width, shared) for group in footer[4] for chunk in group[1])
    return _COLUMN * len(footer[2]) + cells


def _chunk_bytes(content: bytes, chunk: dict[int, Any], width: int, shared: Collection[str] | None) -> int:
    if not _PLAIN_CHUNK.issuperset(chunk):
        raise ValueError("A Parquet column is encrypted or elsewhere")
    about = chunk[3]
    position, dictionary, path = about[9], about.get(11), [name.decode() for name in about[3]]
    if dictionary is not None:
        if not 4 <= dictionary < position:
            raise ValueError("A Parquet dictionary is not before its column")
        position = dictionary
    end = position + about[7]
    if not 4 <= position <= end <= len(content):
        raise ValueError("A Parquet column is outside of the file")
    repeated = about[1] == _BYTE_ARRAY and shared is not None and not (len(path) == 1 and path[0] in shared)
    total = largest_dictionary = 0
    for header, n_values in _pages(content, position, end):
        if about[1] >= _BYTE_ARRAY and _DELTA_BYTE_ARRAY in (header.get(5, {}).get(2), header.get(8, {}).get(4)):
            raise ValueError("A Parquet column of text is encoded by shared beginnings, which saving never does")
        if 7 in header:
            largest_dictionary = max(largest_dictionary, header[2])
        total += max(header[2], width * n_values) + (n_values * largest_dictionary if repeated and 7 not in header else 0)
    return total


def _pages(content: bytes, position: int, end: int) -> Iterator[tuple[dict[int, Any], int]]:
    """Yield each page's header and number of values of a column."""
    while position < end:
        reader = _Compact(content, position)
        header = reader.struct()
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
        if kind in (1, 2):  # the type of a field of truth says which it is
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
        return (value >> 1) ^ -(value & 1)

"""Compiled scan of Universal Binary JSON: where each value lies, without making any.

Bytes are compared by their codes, which are the letters of the format: ``{ } [ ] $ #`` and one letter for each type.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["TYPED", "copy_pieces", "fill_children", "scan"]

TYPED = 128  # added to the type of the numbers of a typed array
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = ord("{"), ord("}"), ord("["), ord("]")
_TYPE, _COUNT, _TEXT, _CHARACTER = ord("$"), ord("#"), ord("S"), ord("C")
_TRUE, _FALSE, _NULL = ord("T"), ord("F"), ord("Z")
_MAX_NESTING = 64
_WIDTH = np.zeros(256, np.int64)  # bytes of a number of each type, 0 if it is none
_WIDTH[np.frombuffer(b"iUIldLD", np.uint8)] = 1, 1, 2, 4, 4, 8, 8


@njit(nogil=True, cache=True, error_model="numpy")
def _length(data, position):
    """Return the length written at ``position`` (-1 if it is not valid, or beyond the end) and where it ends."""
    size = data.shape[0]
    if position >= size:
        return -1, position
    marker = data[position]
    width = _WIDTH[marker]
    position += 1
    if width == 0 or marker == 100 or marker == 68 or position + width > size:
        return -1, position
    n = np.int64(0)
    for b in range(width):
        n = (n << 8) | np.int64(data[position + b])
    position += width
    if marker != 85 and width < 8 and n >= np.int64(1) << (8 * width - 1):
        return -1, position
    if n < 0 or n > size - position:
        return -1, position
    return n, position


@njit(nogil=True, cache=True, error_model="numpy")
def scan(data, marker, key_start, key_length, start, count, after):
    """Write one row for each value, in the order of the file; with arrays of no rows, count them.

    ``marker`` is the type's letter, plus ``TYPED`` for arrays of numbers; ``key_start`` and ``key_length`` (-1 outside objects)
    tell the key; ``start`` where the bytes of the value begin; ``count`` numbers, bytes of a text, or children; ``after`` the row
    that follows the value and all that is in it. Returns the number of rows, and the position of a fault or -1.
    """
    size, filling = data.shape[0], marker.shape[0] > 0
    opened = np.empty(_MAX_NESTING, np.int64)
    left = np.empty(_MAX_NESTING, np.int64)
    closing = np.empty(_MAX_NESTING, np.uint8)
    children = np.empty(_MAX_NESTING, np.int64)
    position, depth, n = 0, -1, 0
    while True:
        while depth >= 0:
            if left[depth] < 0 and position < size and data[position] == closing[depth]:
                position += 1
            elif left[depth] != 0:
                break
            if filling:
                after[opened[depth]], count[opened[depth]] = n, children[depth]
            depth -= 1
        if depth < 0 and n > 0:
            return n, -1 if position == size else position
        name_start, name_length = np.int64(0), np.int64(-1)
        if depth >= 0 and closing[depth] == _CLOSE_OBJECT:
            name_length, name_start = _length(data, position)
            if name_length < 0:
                return n, position
            position = name_start + name_length
        if position >= size:
            return n, position
        kind = np.int64(data[position])
        position += 1
        first, items = position, np.int64(1)
        is_open = kind in (_OPEN_OBJECT, _OPEN_ARRAY)
        if kind == _OPEN_ARRAY and position < size and data[position] == _TYPE:
            if position + 2 >= size or data[position + 2] != _COUNT or _WIDTH[data[position + 1]] == 0:
                return n, position
            kind, is_open = TYPED + np.int64(data[position + 1]), False
            items, first = _length(data, position + 3)
            if items < 0 or items * _WIDTH[kind - TYPED] > size - first:
                return n, position
            position = first + items * _WIDTH[kind - TYPED]
        elif kind == _TEXT:
            items, first = _length(data, position)
            if items < 0:
                return n, position
            position = first + items
        elif kind == _CHARACTER or _WIDTH[kind] > 0:
            position += 1 if kind == _CHARACTER else _WIDTH[kind]
            if position > size:
                return n, first
        elif not is_open and kind != _TRUE and kind != _FALSE and kind != _NULL:
            return n, first
        if depth >= 0:
            children[depth] += 1
            left[depth] -= 1 if left[depth] > 0 else 0
        if filling:
            marker[n], key_start[n], key_length[n] = kind, name_start, name_length
            start[n], count[n], after[n] = first, items, n + 1
        if is_open:
            depth += 1
            if depth >= _MAX_NESTING:
                return n, position
            opened[depth], left[depth], children[depth] = n, -1, 0
            closing[depth] = _CLOSE_OBJECT if kind == _OPEN_OBJECT else _CLOSE_ARRAY
            if position < size and data[position] == _TYPE:
                return n, position
            if position < size and data[position] == _COUNT:
                left[depth], position = _length(data, position + 1)
                if left[depth] < 0:
                    return n, position
        n += 1


@njit(nogil=True, cache=True, error_model="numpy")
def fill_children(data, key_start, key_length, after, objects, name, out):
    """Write the row of the child called ``name`` of each object to ``out``: -1 if there is none, -2 if there are two."""
    for o in range(objects.shape[0]):
        out[o] = -1
        row = objects[o] + 1
        while row < after[objects[o]]:
            same = key_length[row] == name.shape[0]
            b = 0
            while same and b < name.shape[0]:
                same = data[key_start[row] + b] == name[b]
                b += 1
            if same:
                out[o] = row if out[o] == -1 else -2
            row = after[row]


@njit(nogil=True, cache=True, error_model="numpy")
def copy_pieces(data, start, n_bytes, out):
    """Copy pieces of ``data`` behind one another to ``out``."""
    end = 0
    for p in range(start.shape[0]):
        for b in range(n_bytes[p]):
            out[end + b] = data[start[p] + b]
        end += n_bytes[p]

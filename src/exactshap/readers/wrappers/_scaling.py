"""What scalers and splines make of rows, a piece at a time, in memory that is used again."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

__all__ = ["Features", "Operation", "Scaling", "SplinedRows"]

PIECE = 2**16  # numbers that stay in a core's caches from one operation to the next
WIDE = 1024  # numbers of neighbouring rows that one step takes together, as each step takes a while to begin
MANY = 2**17  # numbers, from which on operands are repeated for it


class Operation(NamedTuple):
    """One step of the arithmetic: ``function(rows, *operands)``, where an operand is one number for all columns, or one for each.

    ``hides``: whether what is not finite may be finite after it.
    """

    function: Callable[..., Any]
    operands: tuple[np.ndarray, ...]
    hides: bool = False

    def repeated(self, times: int) -> Operation:
        """Return the same for rows with their columns so many times beside each other."""
        return self._replace(operands=tuple(np.tile(operand, times) if operand.ndim else operand for operand in self.operands))


class Lent:
    """A piece of rows until its block is left, which hands its memory to the next one: few rows take less than a generator would."""

    __slots__ = ("_memory", "_piece", "_spare")

    def __init__(self, piece: np.ndarray, memory: np.ndarray | None, spare: list[np.ndarray]) -> None:
        self._piece, self._memory, self._spare = piece, memory, spare

    def __enter__(self) -> np.ndarray:
        return self._piece

    def __exit__(self, *_: object) -> None:
        if self._memory is not None:
            self._spare.append(self._memory)


class Scaling:
    """What scalers, one after the other, make of rows, a piece at a time.

    Parameters
    ----------
    array : array of shape (n_rows, n_columns)
        It is not written to.
    operations : tuple of Operation
    """

    def __init__(self, array: np.ndarray, operations: tuple[Operation, ...]) -> None:
        self.array, self.shape = array, array.shape
        self._operations = operations
        self._spare: list[np.ndarray] = []  # memory of pieces: fresh one costs as much as an operation

    def all(self) -> np.ndarray | None:
        """Return all rows; None where some may not be finite."""
        n_rows, n_columns = self.shape
        scaled = np.empty_like(self.array)  # in the layout that scikit-learn's copy has
        step = max(1, PIECE // n_columns)
        with np.errstate(all="ignore"):
            for some in (slice(start, start + step) for start in range(0, n_rows, step)):
                piece = scaled[some]
                self._write(self.array[some], piece)
                if not math.isfinite(np.add.reduce(piece, axis=None)):
                    return None
        return scaled

    def lent(self, some: slice) -> Lent:
        """Lend some of the rows in double precision, in memory that the next piece overwrites; what is not finite stays so."""
        rows = self.array[some]
        if rows.size == self.array.size:
            memory, piece = None, np.empty_like(rows)
        else:
            memory = _used_before(self._spare)
            memory = memory if memory is not None and memory.size >= rows.size else np.empty(rows.size, rows.dtype)
            by_column = not rows.flags.c_contiguous and abs(rows.strides[0]) < abs(rows.strides[1])
            shape = rows.shape[::-1] if by_column else rows.shape
            piece = memory[: rows.size].reshape(shape)
            piece = piece.T if by_column else piece
        self._write(rows, piece)
        return Lent(piece.astype(np.float64, copy=False), memory, self._spare)

    def _write(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Write scaled rows, neighbours together where they are many and lie one after the other."""
        first = 0
        if self.array.size >= MANY and rows.flags.c_contiguous and out.flags.c_contiguous:
            times, operations = self._together
            wide = len(rows) // times, times * rows.shape[1]
            first = wide[0] * times
            _apply(operations, rows[:first].reshape(wide), out[:first].reshape(wide))
        if first < len(rows):
            _apply(self._operations, rows[first:], out[first:])

    @functools.cached_property
    def _together(self) -> tuple[int, tuple[Operation, ...]]:
        """How many rows are taken together, and the operations on them."""
        times = max(1, WIDE // self.shape[1])
        return times, tuple(operation.repeated(times) for operation in self._operations)


def _used_before(spare: list[np.ndarray]) -> np.ndarray | None:
    """Return memory that no piece is in any more, to one thread alone; None where there is none."""
    try:
        return spare.pop()
    except IndexError:  # looking first would let another thread in between
        return None


def _apply(operations: tuple[Operation, ...], rows: np.ndarray, out: np.ndarray) -> None:
    """Write what the operations, one after the other, make of rows; NaN everywhere where one of them would hide what is not finite."""
    if not operations:
        out[...] = rows
    for function, operands, hides in operations:
        if hides and not math.isfinite(np.add.reduce(rows, axis=None)):
            out[...] = np.nan
            return
        function(rows, *operands, out=out)
        rows = out


class Features(Protocol):
    """Functions of single columns, ``width`` of them in all."""

    @property
    def width(self) -> int: ...

    def fill(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Write the features of float64 rows into ``out (n_rows, width)``; what is not finite leaves a number of them that is not."""
        ...


class SplinedRows:
    """The features of scaled rows, scaled again, a piece at a time.

    Parameters
    ----------
    scaling : Scaling
    features : Features
    after : tuple of Operation
        On features.
    """

    def __init__(self, scaling: Scaling, features: Features, after: tuple[Operation, ...]) -> None:
        self._scaling, self._features, self._after = scaling, features, after
        self.shape = scaling.shape[0], features.width
        self._spare: list[np.ndarray] = []

    def all(self) -> np.ndarray | None:
        """Return all rows, one after the other in memory; None where some may not be finite."""
        n_rows, width = self.shape
        made = np.empty(self.shape, self._scaling.array.dtype)
        step = max(1, PIECE // width)
        with np.errstate(all="ignore"):
            for some in (slice(start, start + step) for start in range(0, n_rows, step)):
                with self.lent(some) as piece:
                    if not math.isfinite(np.add.reduce(piece, axis=None)):
                        return None
                    made[some] = piece
        return made

    def lent(self, some: slice) -> Lent:
        """Lend the features of some rows in double precision, in memory that the next piece overwrites."""
        with self._scaling.lent(some) as rows:
            size = len(rows) * self._features.width
            memory = _used_before(self._spare)
            memory = memory if memory is not None and memory.size >= size else np.empty(size)
            made = memory[:size].reshape(len(rows), self._features.width)
            self._features.fill(rows, made)
        dtype = self._scaling.array.dtype
        rounded = made if dtype == np.float64 else made.astype(dtype)
        if self._after:
            _apply(self._after, rounded, rounded)
        if rounded is not made:
            made[...] = rounded
        return Lent(made, memory, self._spare)

"""Rows that are made when a solver asks for them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import numpy as np

__all__ = ["InDouble", "MadeRows"]


class MadeRows(Protocol):
    """Rows that are made a piece at a time, on the thread that asks for it, and need not all be in memory.

    Attributes
    ----------
    shape : tuple of int
        ``(n_rows, n_columns)``.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    def lent(self, some: slice) -> AbstractContextManager[np.ndarray]:
        """Lend some of the rows as float64, in whatever layout; what is not finite leaves a number of them that is not."""
        ...


class InDouble:
    """Rows of an array in another precision.

    Parameters
    ----------
    array : array of shape (n_rows, n_columns)

    Examples
    --------
    >>> from exactshap.solvers import InDouble
    >>> with InDouble(np.ones((3, 2), np.float32)).lent(slice(1, 3)) as piece:
    ...     piece.dtype, piece.shape
    (dtype('float64'), (2, 2))
    """

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape = array, array.shape

    def lent(self, some: slice) -> AbstractContextManager[np.ndarray]:
        return nullcontext(self._array[some].astype(np.float64))

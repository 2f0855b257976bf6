"""Rows that are made when a solver asks for them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np

__all__ = ["MadeRows"]


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

"""Compiled sums of eight numbers at a time, by names that the compiler turns into vector instructions."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["U1", "U2", "U3", "U4", "U5", "U6", "U7", "add_range"]

# Unsigned offsets: numba then leaves out the test for negative indices, which keeps the processor's vector units idle.
U1, U2, U3, U4, U5, U6, U7 = (np.uint64(i) for i in range(1, 8))


@njit(nogil=True, cache=True, error_model="numpy")
def add_range(values, to, source, size):
    """Add ``values[source:source + size]`` to ``values[to:to + size]``, eight at a time: these ranges are often just eight."""
    x = 0
    while x + 8 <= size:
        i, k = np.uint64(to + x), np.uint64(source + x)
        a0, a1, a2, a3 = values[i], values[i + U1], values[i + U2], values[i + U3]
        a4, a5, a6, a7 = values[i + U4], values[i + U5], values[i + U6], values[i + U7]
        b0, b1, b2, b3 = values[k], values[k + U1], values[k + U2], values[k + U3]
        b4, b5, b6, b7 = values[k + U4], values[k + U5], values[k + U6], values[k + U7]
        values[i], values[i + U1], values[i + U2], values[i + U3] = a0 + b0, a1 + b1, a2 + b2, a3 + b3
        values[i + U4], values[i + U5], values[i + U6], values[i + U7] = a4 + b4, a5 + b5, a6 + b6, a7 + b7
        x += 8
    while x < size:
        values[to + x] += values[source + x]
        x += 1

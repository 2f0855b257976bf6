"""The compiled kernels: loaded on first use, picked by the CPU, held against what they are given.

A kernel is a C++ function in ``src/native``; ``kernel("room.name(a, b, out)")`` is the same function in Python. What it takes
is read from the library itself, so that there is no second declaration that could differ: dtypes, dimensions and writability of
every array are checked in the library before anything is read. The interpreter's lock is free while a kernel runs, and Ctrl-C
ends one within some hundredths of a second.
"""

from __future__ import annotations

from exactshap._native._kernel import Handle, Kernel, kernel
from exactshap._native._library import Cancellation, level, raise_if_cancelled

__all__ = ["Cancellation", "Handle", "Kernel", "kernel", "level", "raise_if_cancelled"]

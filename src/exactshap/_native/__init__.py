"""Load compiled kernels on first use, for the features of the CPU, and check their arguments.

A kernel is a C++ function in ``src/native``; ``kernel("room.name(a, b, out)")`` is the same function in Python. Its parameters
are read from the library itself, so that no second declaration can differ: dtypes, dimensions and writability of every array are
checked in the library before anything is read. The interpreter's lock is released while a kernel runs, and Ctrl-C ends one
within some hundredths of a second.
"""

from __future__ import annotations

from exactshap._native._kernel import Handle, Kernel, kernel
from exactshap._native._library import Cancellation, level, raise_if_cancelled

__all__ = ["Cancellation", "Handle", "Kernel", "kernel", "level", "raise_if_cancelled"]

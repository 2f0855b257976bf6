"""BLAS on one thread: small factorisations gain nothing from several, and wait for cores that others use."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

__all__ = ["single_threaded_blas"]

_LOCK = Lock()
_BEFORE: list[tuple[Any, int]] = []  # libraries and the threads that they had
_BLOCKS = [0]  # how many blocks run: the last one to leave restores them


@functools.cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of numpy and scipy: looking for them takes milliseconds, asking them microseconds."""
    import scipy.linalg  # noqa: F401 - loads scipy's own
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS on one thread: the limit belongs to the whole process, so that the last block to leave restores it."""
    with _LOCK:
        if _BLOCKS[0] == 0:
            _BEFORE[:] = [(library, library.get_num_threads()) for library in _libraries()]
            for library, n_threads in _BEFORE:
                if n_threads != 1:
                    library.set_num_threads(1)
        _BLOCKS[0] += 1
    try:
        yield
    finally:
        with _LOCK:
            _BLOCKS[0] -= 1
            for library, n_threads in _BEFORE if _BLOCKS[0] == 0 else ():
                if n_threads != 1:
                    library.set_num_threads(n_threads)

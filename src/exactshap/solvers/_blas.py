"""BLAS on one thread: small factorisations gain nothing from several, and wait for cores that others use."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

__all__ = ["single_threaded_blas"]

_LOCK = Lock()
_LIMITS: list[Any] = []  # one entry for each block that runs; the first one holds what the last one restores


@functools.cache
def _controller() -> Any:
    """Return the BLAS libraries of numpy and scipy: looking for them takes milliseconds, limiting them microseconds."""
    import scipy.linalg  # noqa: F401 - loads scipy's own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS on one thread: the limit belongs to the whole process, so that the last block to leave restores it."""
    with _LOCK:
        _LIMITS.append(None if _LIMITS else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            if len(_LIMITS) > 1:
                _LIMITS.pop()
            else:
                _LIMITS.pop().restore_original_limits()

"""Ctrl-C while a kernel runs.

On the main thread a kernel asks the interpreter for pending signals every 20 ms, so a handler written in Python runs as usual
and what it raises comes out of the call. Threads of a pool receive no signals: they look at a :class:`Cancellation`, which the
waiting main thread sets before it lets its own exception go on.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from exactshap._native._library import library

__all__ = ["Cancellation", "raise_if_cancelled", "raise_interruption"]

_WATCHED = threading.local()


class Cancellation:
    """A flag that ends kernels of other threads; kernels that it ends raise ``KeyboardInterrupt`` there.

    >>> cancellation = Cancellation()
    >>> with cancellation.watched():  # in each thread of the pool
    ...     pass
    """

    def __init__(self) -> None:
        self._flag = ctypes.c_int32(0)

    def set(self) -> None:
        """End the kernels of all threads that watch."""
        self._flag.value = 1

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Make kernels and :func:`raise_if_cancelled` of this thread look at the flag.

        They look at it instead of asking for signals.
        """
        watch = library().exactshap_watch
        watch(ctypes.byref(self._flag))
        _WATCHED.flag = self._flag
        try:
            yield
        finally:
            watch(None)
            _WATCHED.flag = None


def raise_if_cancelled() -> None:
    """Raise ``KeyboardInterrupt`` in a thread that is to stop: for work that calls a user's function, no kernel."""
    flag = getattr(_WATCHED, "flag", None)
    if flag is not None and flag.value:
        raise KeyboardInterrupt


def raise_interruption() -> None:
    """Raise what ended a kernel: the exception of a signal's handler, or ``KeyboardInterrupt`` for a cancelled thread."""
    # The call keeps the interpreter's lock, and raises the signal that it finds set.
    ctypes.PyDLL(None, handle=library()._handle).exactshap_raise()
    raise KeyboardInterrupt

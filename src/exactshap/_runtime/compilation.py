"""Whether numba is compiling right now, and for how long it has: it does so once for each kernel, and keeps it on disk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core import event

__all__ = ["Compilation", "compilation"]


class Compilation(event.Listener):
    """Seconds spent compiling since it listens; kernels that call each other compile one inside the other."""

    def __init__(self) -> None:
        self.depth, self.seconds, self._since = 0, 0.0, 0.0

    @property
    def running(self) -> bool:
        return self.depth > 0

    def on_start(self, event: event.Event) -> None:
        if self.depth == 0:
            self._since = time.perf_counter()
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self._since


@contextmanager
def compilation() -> Iterator[Compilation]:
    """Give a :class:`Compilation` that listens until the end of the block.

    >>> with compilation() as seen:
    ...     pass
    >>> seen.running, seen.seconds
    (False, 0.0)
    """
    with event.install_listener("numba:compile", Compilation()) as installed:
        yield installed

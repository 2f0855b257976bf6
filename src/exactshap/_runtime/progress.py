"""What a run says while it works: nothing, calls of the user's function, or one line on standard error that renews itself."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "duration", "is_watched", "progress_rows", "progress_text"]

Progress = bool | Callable[[int, int], None] | None

PATIENCE, RENEWAL = 2.0, 0.5  # seconds before the first word, and between two


@contextmanager
def progress_rows(progress: Progress, total: int) -> Iterator[Callable[[int], None]]:
    """Give a function of the rows done so far."""
    if callable(progress):
        yield lambda done: progress(done, total)
        return
    with progress_text(progress, lambda done, seconds: _rows_text(done, total, seconds)) as line:
        yield line.reached


@contextmanager
def progress_text(progress: Progress, text: Callable[[int, float], str]) -> Iterator[Line]:
    """Show ``text(done, seconds)`` on standard error: with True, or by default once the work is long and someone watches."""
    line = Line(text)
    if callable(progress) or progress is False or (progress is None and not is_watched()):
        yield line
        return
    renewing = threading.Thread(target=line.renew, args=(0.0 if progress else PATIENCE,), daemon=True)
    renewing.start()
    try:
        yield line
    finally:
        line.stop.set()
        renewing.join()
        line.close(always=bool(progress))


def is_watched() -> bool:
    """Say whether standard error is a terminal or a notebook."""
    stream = sys.stderr
    return stream is not None and (stream.isatty() or type(stream).__module__.startswith("ipykernel"))


class Line:
    """One line that is written over itself by a thread of its own."""

    def __init__(self, text: Callable[[int, float], str]) -> None:
        self.text, self.done, self.width = text, 0, 0
        self.started, self.stop = time.perf_counter(), threading.Event()

    def reached(self, done: int) -> None:
        """Note how many rows are done."""
        self.done = done

    def renew(self, patience: float) -> None:
        """Write the line again and again, after ``patience`` seconds, until it is stopped."""
        wait = patience
        while not self.stop.wait(wait):
            self.write()
            wait = RENEWAL

    def write(self) -> None:
        """Write the line over what was there."""
        words = self.text(self.done, time.perf_counter() - self.started)
        print(f"\r{words:<{self.width}}", end="", file=sys.stderr, flush=True)
        self.width = len(words)

    def close(self, *, always: bool) -> None:
        """Write the last state and leave the line; nothing if nothing was shown."""
        if self.width or always:
            self.write()
            print(file=sys.stderr, flush=True)


def _rows_text(done: int, total: int, seconds: float) -> str:
    """Return what a count of rows says.

    >>> _rows_text(50, 200, 20.0)
    'explained 50 of 200 rows in 20 s, about 60 s left'
    """
    left = f", about {duration(seconds * (total - done) / done)} left" if 0 < done < total else ""
    return f"explained {done:,} of {total:,} rows in {duration(seconds)}{left}"


def duration(seconds: float) -> str:
    """Return a time in words, in the unit that suits it.

    >>> [duration(seconds) for seconds in (0.0123, 45.0, 600.0, 14000.0, 900000.0)]
    ['0.012 s', '45 s', '10 min', '3.9 hours', '10 days']
    """
    for unit, length, from_seconds in (("days", 86400.0, 172800.0), ("hours", 3600.0, 7200.0), ("min", 60.0, 120.0)):
        if seconds >= from_seconds:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.2g} s"

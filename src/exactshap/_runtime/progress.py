"""Report the progress of a run: not at all, by the user's function, or by one updated line on standard error."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from exactshap.errors import ExactshapError

Progress = bool | Callable[[int, int], None] | None

# Seconds before the first update, so that short calls stay silent, and between two.
PATIENCE, RENEWAL = 2.0, 0.5
# Seconds of work after which a thread's share is known, as some thread clocks tick every 16 ms.
CLOCKED = 0.1
# Seconds of a request from which a log line forecasts it, where no terminal shows progress.
LONG = 60.0

logger = logging.getLogger("exactshap")


@dataclass(frozen=True)
class Calls:
    """State the calls that a row needs: a sentence, the coalitions (None if unknown), how to need fewer, whether they are all."""

    sentence: str
    coalitions: float | None
    advice: str = ""
    every: bool = False


def fewer_coalitions(n_players: int) -> int:
    """Return the budget for a first impression.

    300 coalitions give most functions of a dozen columns errors of some thousandths.
    """
    return max(300, 8 * n_players)


_n_evaluated = 0  # coalitions evaluated in this process
_forecasts: list[_Forecast] = []  # requests in progress that call a model


def count_coalitions(coalitions: int) -> None:
    """Count evaluated coalitions."""
    global _n_evaluated
    _n_evaluated += coalitions
    for forecast in tuple(_forecasts):
        forecast.look()


def progress_rows(
    progress: Progress,
    total: int,
    calls: Calls | None = None,
    ahead: Callable[[], float] | None = None,
    *,
    n_steps: int = 2,
) -> AbstractContextManager[Callable[[int], None]]:
    """Give a function of the rows done so far; where a row needs many ``calls``, these show within it.

    ``ahead`` forecasts the seconds of a large request, for one that has no row after :data:`PATIENCE` seconds. A request of one step has
    nothing to forecast from besides these.
    """
    if callable(progress):
        return nullcontext(lambda done: progress(done, total))
    if progress is False:
        return _UNWATCHED
    if progress is None and not is_watched():
        return _UNWATCHED if n_steps == 1 and calls is None and ahead is None else _logged_rows(total, calls, ahead)
    return _shown_rows(progress, total, calls)


@contextmanager
def _logged_rows(total: int, calls: Calls | None, ahead: Callable[[], float] | None) -> Iterator[Callable[[int], None]]:
    """Log the forecast of a long request, where no terminal shows its progress."""
    forecast = _Forecast(total, calls)
    timer = None if ahead is None else threading.Timer(PATIENCE, forecast.look_ahead, (ahead,))
    if timer is not None:
        timer.daemon = True
        timer.start()
    if calls is not None:
        _forecasts.append(forecast)
    try:
        yield forecast.reached
    finally:
        if calls is not None:
            _forecasts.remove(forecast)
        if timer is not None:
            timer.cancel()


@contextmanager
def _shown_rows(progress: Progress, total: int, calls: Calls | None) -> Iterator[Callable[[int], None]]:
    """Show the rows done so far on standard error."""
    before = _n_evaluated

    def text(done: int, seconds: float) -> str:
        return _rows_text(done, total, seconds, *(() if calls is None else (_n_evaluated - before, calls.coalitions)))

    first = "" if calls is None else "; ".join(filter(None, (calls.sentence, calls.advice)))
    with progress_text(progress, text, first) as line:
        yield line.reached


def _nowhere(done: int) -> None:
    """Do nothing, as progress is not shown."""


_UNWATCHED = nullcontext(_nowhere)


class _Forecast:
    """Log once how long a long request takes, where no terminal shows its progress."""

    def __init__(self, total: int, calls: Calls | None = None) -> None:
        self.total, self.calls, self.done = total, calls, 0
        self.started, self.evaluated, self.waits = time.perf_counter(), _n_evaluated, True

    def reached(self, done: int) -> None:
        """Forecast from the rows done so far."""
        self.done = done
        self.look()

    def look(self) -> None:
        """Forecast from the rows and coalitions done so far."""
        seconds = time.perf_counter() - self.started
        share = _share_done(self.done, self.total, _n_evaluated - self.evaluated, self.calls)
        if seconds >= PATIENCE and 0.0 < share < 1.0:
            self.say(seconds / share)

    def look_ahead(self, ahead: Callable[[], float]) -> None:
        """Forecast from pieces of the work, timed while the first rows are solved."""
        process, thread = time.process_time(), time.thread_time()
        try:
            seconds = ahead()
        except ExactshapError:  # the request itself raises the error
            return
        process, thread = time.process_time() - process, time.thread_time() - thread
        # Pieces are timed by the process clock, which includes the rows: only the share of this thread is theirs
        share = min(thread / process, 1.0) if process >= CLOCKED else 1.0
        if self.done == 0:
            self.say(seconds * share)

    def say(self, seconds: float) -> None:
        """Log the forecast once."""
        if self.waits and seconds > LONG:
            self.waits = False
            logger.warning(
                "explaining %s rows takes about %s; explainer.plan(X) says why, and progress=True shows how far it is",
                f"{self.total:,}",
                duration(seconds),
            )


def _share_done(done: int, total: int, coalitions: int, calls: Calls | None) -> float:
    """Return the fraction that is done, the larger one of rows and coalitions."""
    within = 0.0 if calls is None or calls.coalitions is None else min(coalitions / (calls.coalitions * total), 1.0)
    return max(done / max(total, 1), within)


@contextmanager
def progress_text(progress: Progress, text: Callable[[int, float], str], first: str = "") -> Iterator[Line]:
    """Show ``text(done, seconds)`` on standard error: with True, or by default once the work is long and someone watches.

    ``first`` is a line above.
    """
    line = Line(text, first)
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
    """Rewrite one line on standard error from a separate thread."""

    def __init__(self, text: Callable[[int, float], str], first: str = "") -> None:
        self.text, self.first, self.done, self.width = text, first, 0, 0
        self.started, self.stop = time.perf_counter(), threading.Event()

    def reached(self, done: int) -> None:
        """Note how many rows are done."""
        self.done = done

    def renew(self, patience: float) -> None:
        """Rewrite the line after ``patience`` seconds and periodically, until it is stopped."""
        wait = patience
        while not self.stop.wait(wait):
            self.write()
            wait = RENEWAL

    def write(self) -> None:
        """Overwrite the line."""
        words = self.text(self.done, time.perf_counter() - self.started)
        if self.first and not self.width:
            print(self.first, file=sys.stderr)
        print(f"\r{words:<{self.width}}", end="", file=sys.stderr, flush=True)
        self.width = len(words)

    def close(self, *, always: bool) -> None:
        """Write the last state and end the line, if anything was shown."""
        if self.width or always:
            self.write()
            print(file=sys.stderr, flush=True)


def _rows_text(done: int, total: int, seconds: float, coalitions: int = 0, of_each: float | None = None) -> str:
    """Return the text of a progress line: rows, time, and coalitions evaluated.

    >>> _rows_text(50, 200, 20.0)
    'explained 50 of 200 rows in 20 s, about 60 s left'
    >>> _rows_text(0, 3, 20.0, 1024, 2048)
    'explained 0 of 3 rows in 20 s (1,024 of 6,144 coalitions), about 100 s left'
    """
    share = _share_done(done, total, coalitions, Calls("", of_each))
    left = f", about {duration(seconds * (1.0 - share) / share)} left" if 0.0 < share < 1.0 else ""
    of = "" if of_each is None else f" of {of_each * total:,.0f}"
    within = f" ({coalitions:,}{of} coalitions)" if coalitions else ""
    return f"explained {done:,} of {total:,} rows in {duration(seconds)}{within}{left}"


def duration(seconds: float) -> str:
    """Return a time as text, in a suitable unit.

    >>> [duration(seconds) for seconds in (0.0123, 45.0, 104.0, 600.0, 14000.0, 900000.0)]
    ['0.012 s', '45 s', '100 s', '10 min', '3.9 hours', '10 days']
    """
    for unit, length, from_seconds in (("days", 86400.0, 172800.0), ("hours", 3600.0, 7200.0), ("min", 60.0, 120.0)):
        if seconds >= from_seconds:
            return f"{float(f'{seconds / length:.2g}'):g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} s"

"""Work on threads: each task is compiled code or linear algebra, which scales badly when BLAS splits it itself.

BLAS runs on one thread meanwhile, so that ``n_jobs`` alone says how many cores are taken, and the bits do
not depend on it.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from exactshap._native import raise_if_cancelled
from exactshap._runtime.crew import map_with_help
from exactshap._runtime.process_settings import single_threaded_blas

__all__ = [
    "CallTimes",
    "Pace",
    "asked_jobs",
    "at_pace",
    "coalitions_in_threads",
    "known_pace",
    "map_in_threads",
    "n_threads",
    "pace_of_little",
    "raise_if_cancelled",
    "rows_alone_pay",
    "rows_in_threads",
    "single_threaded_blas",
    "threads_of_a_block",
    "using_jobs",
    "worker_count",
]

T = TypeVar("T")
Result = TypeVar("Result")

WORTH_IT = 2.0**14  # values of a coalition's largest matrix, below which threads cost more than they save
SURE = 2.0**17  # the same, from which on they surely save more
MANY, QUICK = 16, 0.0006  # coalitions of sizes between, of which one tells: it takes fewer seconds where threads cost more
SECONDS, LEAST = 0.02, 0.004  # work that threads are worth: of a request and of a block
SHARE = 16  # of the rows, a first piece that tells
UNCERTAIN = 0.2  # of the work, left to whichever thread comes first
PIECE, SMALL = 0.002, 4  # seconds of a small piece, and how many of them there are for each thread, at most
WORTH = 8.0  # times what it takes beyond its rows, at least, of a small piece
FORGOTTEN = 0.8  # what is kept of that where none was tried
# of the time in calls of a function, from which on threads pay; or seconds of a row between them, which matrices take: threads share
# little of what is quicker
PAYS, MATRICES = 0.75, 0.012
SLOWER = 1.2  # times the pace before, at most: other programs take the cores now and then


class Pace:
    """Seconds that a row took when it was last asked for, a small piece beyond its rows, and what runs beside: the next request knows."""

    def __init__(self) -> None:
        self.each = self.beside = self.extra = 0.0

    def keep(self, name: str, n_rows: int, function: Callable[[], T]) -> T:
        """Return ``function()``, and keep how long it took for each of ``n_rows`` rows."""
        started = time.perf_counter()
        result = function()
        self.note(name, (time.perf_counter() - started) / n_rows)
        return result

    def note(self, name: str, now: float) -> None:
        before = getattr(self, name)
        setattr(self, name, min(now, SLOWER * before) if before else now)

    def keep_extra(self, n_rows: int, function: Callable[[], T]) -> T:
        """Return ``function()``, and keep how much longer it took than its rows should have taken."""
        started = time.perf_counter()
        result = function()
        self.extra = (self.extra + max(0.0, time.perf_counter() - started - n_rows * self.each)) / 2.0
        return result

    @property
    def of_a_row(self) -> float:
        """Seconds that a row takes, with what runs beside."""
        return self.each + self.beside

    def is_little(self, n_rows: int, asked: int, share: float = 1.0) -> bool:
        """Say whether ``n_rows`` of ``asked`` rows are no work for threads; less is, where a ``share`` of it pays already."""
        return self.of_a_row * asked < share * SECONDS or self.of_a_row * n_rows < LEAST

    def pieces(self, first: int, n_rows: int, workers: int) -> tuple[list[slice], list[slice]]:
        """Return slices of the rows from ``first`` on that let all threads end together, one of which has other work before.

        The last ones are small, for whichever thread comes first, as no pace is certain; none where these would cost too much.
        """
        rows, before = n_rows - first, self.beside * n_rows / self.each
        n_small = int(min(SMALL * workers, UNCERTAIN * rows * self.each / max(PIECE, WORTH * self.extra)))
        n_small = n_small if n_small >= workers else 0  # one alone would keep one thread, and the others waiting
        share = (1.0 - UNCERTAIN * (n_small > 0)) * (rows + before) / workers
        mine = max(0.0, share - before)
        others = min(share, (rows - mine) / (workers - 1))
        left = rows - mine - others * (workers - 1) if n_small else 0.0
        if not n_small:
            self.extra *= FORGOTTEN
            mine = max(0.0, rows - others * (workers - 1))
        sizes = [*[others] * (workers - 1), mine, *[left / max(1, n_small)] * n_small]
        ends = [first + round(size) for size in itertools.accumulate(sizes, initial=0.0)]
        slices = [slice(start, stop) for start, stop in itertools.pairwise(ends)]
        return [s for s in slices[:workers] if s.start < s.stop], [s for s in slices[workers:] if s.start < s.stop]


class CallTimes:
    """How much of its time solving a row spends in calls of the user's function; much of what is between them keeps other threads waiting."""

    def __init__(self) -> None:
        self.inside = self.all = 0.0
        self.rows = 0

    @contextmanager
    def counted(self, name: str, n_rows: int = 0) -> Iterator[None]:
        """Add the seconds of what is inside to ``inside`` or ``all``; none of a thread that helps, which waits for others as well."""
        started = time.perf_counter()
        yield
        if _JOBS.get() is not None:
            setattr(self, name, getattr(self, name) + time.perf_counter() - started)
            self.rows += n_rows

    def threads_pay(self) -> bool | None:
        """Return whether threads may gain more than they wait for each other; None before a row was solved."""
        if not self.rows:
            return None
        return self.inside > PAYS * self.all or self.all - self.inside > MATRICES * self.rows


_JOBS: ContextVar[int | None] = ContextVar("n_jobs", default=None)
_PACE: ContextVar[tuple[Pace | None, int]] = ContextVar("pace", default=(None, 0))
threads_of_a_block: ContextVar[int] = ContextVar("granted threads", default=1)


class using_jobs:
    """Let coalitions inside run on ``n_jobs`` threads, with joblib's conventions, and the rows of a block on so many of them."""

    def __init__(self, n_jobs: int | None, of_a_block: int = 1) -> None:
        self._asked = n_jobs, of_a_block

    def __enter__(self) -> None:
        n_jobs, of_a_block = self._asked
        self._before = _JOBS.set(n_jobs), threads_of_a_block.set(of_a_block)

    def __exit__(self, *_: object) -> None:
        jobs, threads = self._before
        _JOBS.reset(jobs)
        threads_of_a_block.reset(threads)


@contextmanager
def at_pace(pace: Pace, n_rows: int) -> Iterator[None]:
    """Let the rows of blocks inside, ``n_rows`` in all, be cut by the pace of those before them."""
    token = _PACE.set((pace, n_rows))
    try:
        yield
    finally:
        _PACE.reset(token)


def asked_jobs() -> int | None:
    """Return the ``n_jobs`` of the explainer whose call this is part of."""
    return _JOBS.get()


def rows_alone_pay() -> bool | None:
    """Return whether a single row is work for a thread, at the pace of those before it; None before that is known."""
    pace, n_rows = _PACE.get()
    if pace is None or not pace.each:
        return None
    return pace.each > LEAST and pace.each * n_rows >= SECONDS


def known_pace(n_rows: int) -> tuple[Pace, int]:
    """Return the pace of requests like this one, which may be a new one, and how many rows are asked for, these or more."""
    pace, asked = _PACE.get()
    return pace or Pace(), max(asked, n_rows)


def pace_of_little(n_rows: int, share: float = 1.0) -> Pace | None:
    """Return the pace of rows before these, where it tells that they are too few for threads; None where they may not be, or none is known."""
    pace, asked = known_pace(n_rows)
    return pace if pace.each and pace.is_little(n_rows, asked, share) else None


def n_threads(size: float) -> int:
    """Return on how many threads coalitions of matrices of ``size`` values run."""
    return 1 if size < WORTH_IT else worker_count(_JOBS.get())


def worker_count(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` asks for, with joblib's conventions; None is one.

    >>> worker_count(None), worker_count(3)
    (1, 3)
    """
    if n_jobs in (None, 1):
        return 1
    from joblib import effective_n_jobs

    return max(1, int(effective_n_jobs(n_jobs)))


def map_in_threads(function: Callable[[T], Result], tasks: Iterable[T], n_jobs: int | None) -> Generator[Result, None, None]:
    """Yield ``function(task)`` in the order of the tasks, from ``n_jobs`` threads: the same bits for every number of threads.

    Where the waiting thread is interrupted, or stops asking, the kernels of the others end as well.

    >>> list(map_in_threads(abs, [-2, 1, -3], n_jobs=2))
    [2, 1, 3]
    """
    workers = worker_count(n_jobs)
    with single_threaded_blas():
        if workers == 1:
            yield from map(function, tasks)
        else:
            yield from map_with_help(function, tasks, workers)


def coalitions_in_threads(function: Callable[[Any], Any], tasks: Sequence[Any], size: float) -> list[Any]:
    """Return ``function(task)`` for every coalition, in order, on the threads that :func:`n_threads` grants, if they are worth it."""
    workers, middle = max(1, min(n_threads(size), len(tasks))), len(tasks) // 2
    if workers == 1 or size >= SURE or len(tasks) < MANY:
        return list(map_in_threads(function, tasks, workers))
    started = time.perf_counter()
    [found] = map_in_threads(function, tasks[middle : middle + 1], 1)  # the first coalition may be the empty one
    workers = 1 if time.perf_counter() - started < QUICK else workers
    others = list(map_in_threads(function, [*tasks[:middle], *tasks[middle + 1 :]], workers))
    return [*others[:middle], found, *others[middle:]]


def rows_in_threads(
    function: Callable[[slice], Result],
    n_rows: int,
    beside: Callable[[], T],
    pays: Callable[[], bool | None] = lambda: True,
    *,
    one_by_one: bool = False,
) -> tuple[list[Result], T]:
    """Return ``function(rows)`` for slices that cover all rows, and ``beside()``: on the threads granted, if there is work for them.

    The pace of the last request, or else a first piece of the rows, tells how long they will take, and ``pays()`` whether threads
    would share that work. Rows that gain nothing from company go ``one_by_one`` to whichever thread comes first, if they take long.
    No bit depends on the cut where no row depends on the others.

    >>> with using_jobs(2, of_a_block=2):
    ...     rows_in_threads(lambda rows: rows.stop - rows.start, 3, lambda: "beside")
    ([1, 2], 'beside')
    """
    workers, (pace, asked) = threads_of_a_block.get(), known_pace(n_rows)
    if workers == 1 or n_rows < 2:
        return [function(slice(0, n_rows))], beside()

    def run(rows: slice) -> Result:
        return pace.keep("each", rows.stop - rows.start, functools.partial(function, rows))

    def run_small(rows: slice) -> Result:
        return pace.keep_extra(rows.stop - rows.start, functools.partial(function, rows))

    first = 0 if pace.each or pays() is False else max(1, n_rows // SHARE)
    head = [run(slice(0, first))] if first else []
    if pace.is_little(n_rows - first, asked) or pays() is False:
        return [*head, run(slice(first, n_rows))], pace.keep("beside", n_rows, beside)
    alone = [slice(i, i + 1) for i in range(first, n_rows)] if one_by_one and pace.of_a_row > LEAST else []
    large, small = (alone, []) if alone else pace.pieces(first, n_rows, workers)
    tasks: list[Callable[[], Any]] = [lambda: pace.keep("beside", n_rows, lambda: _tried(beside))]
    tasks += [functools.partial(run, rows) for rows in large] + [functools.partial(run_small, rows) for rows in small]
    found, *parts = map_in_threads(lambda task: task(), tasks, workers)
    return [*head, *parts], found()


def _tried(function: Callable[[], T]) -> Callable[[], T]:
    """Call a function; return what gives its result, or raises what it raised: what others raise comes first."""
    try:
        result = function()
    except Exception as error:
        raised = error

        def fail() -> T:
            raise raised

        return fail
    return lambda: result

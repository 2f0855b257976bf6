"""Work on threads: each task is compiled code or linear algebra, which scales badly when BLAS splits it itself.

BLAS runs on one thread meanwhile, so that ``n_jobs`` alone says how many cores are taken, and the bits do
not depend on it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from exactshap._native import Cancellation
from exactshap._runtime.blas import single_threaded_blas

__all__ = [
    "asked_jobs",
    "coalitions_in_threads",
    "map_in_threads",
    "n_threads",
    "rows_in_threads",
    "single_threaded_blas",
    "threads_of_a_block",
    "using_jobs",
    "worker_count",
]

T = TypeVar("T")
Result = TypeVar("Result")

WORTH_IT = 2.0**14  # values of a coalition's largest matrix; below, starting threads costs more than it saves
SECONDS, SHARE, PIECES = 0.02, 16, 2  # work that threads are worth; a first piece of rows that tells; pieces for each thread
_JOBS: ContextVar[int | None] = ContextVar("n_jobs", default=None)
threads_of_a_block: ContextVar[int] = ContextVar("granted threads", default=1)


@contextmanager
def using_jobs(n_jobs: int | None, of_a_block: int = 1) -> Iterator[None]:
    """Let coalitions inside run on ``n_jobs`` threads, with joblib's conventions, and the rows of a block on so many of them."""
    jobs, threads = _JOBS.set(n_jobs), threads_of_a_block.set(of_a_block)
    try:
        yield
    finally:
        _JOBS.reset(jobs)
        threads_of_a_block.reset(threads)


def asked_jobs() -> int | None:
    """Return the ``n_jobs`` of the explainer whose call this is part of."""
    return _JOBS.get()


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


def map_in_threads(function: Callable[[T], Result], tasks: Iterable[T], n_jobs: int | None) -> Iterator[Result]:
    """Yield ``function(task)`` in the order of the tasks, from ``n_jobs`` threads: the same bits for every number of threads.

    Where the waiting thread is interrupted, or stops asking, the kernels of the others end as well.

    >>> list(map_in_threads(abs, [-2, 1, -3], n_jobs=2))
    [2, 1, 3]
    """
    workers = worker_count(n_jobs)
    with single_threaded_blas():
        if workers == 1:
            yield from map(function, tasks)
            return
        from concurrent.futures import ThreadPoolExecutor

        cancellation = Cancellation()

        def run(task: T) -> Result:
            with cancellation.watched():
                return function(task)

        with ThreadPoolExecutor(workers) as pool:
            try:
                yield from pool.map(run, tasks)
            except BaseException:  # the pool waits for its threads before it lets the exception go on
                cancellation.set()
                raise


def coalitions_in_threads(function: Callable[[Any], Any], tasks: Sequence[Any], size: float) -> list[Any]:
    """Return ``function(task)`` for every coalition, in order, on the threads that :func:`n_threads` grants."""
    return list(map_in_threads(function, tasks, max(1, min(n_threads(size), len(tasks)))))


def rows_in_threads(function: Callable[[slice], Result], n_rows: int, beside: Callable[[], T]) -> tuple[list[Result], T]:
    """Return ``function(rows)`` for slices that cover all rows, and ``beside()``: on the threads granted, if there is work for them.

    A first piece of the rows tells how long the others will take. No bit depends on the cut where no row depends on the others.

    >>> with using_jobs(2, of_a_block=2):
    ...     rows_in_threads(lambda rows: rows.stop - rows.start, 3, lambda: "beside")
    ([1, 2], 'beside')
    """
    workers, first = threads_of_a_block.get(), max(1, n_rows // SHARE)
    if workers == 1 or n_rows < 2:
        return [function(slice(0, n_rows))], beside()
    started = time.perf_counter()
    head = function(slice(0, first))
    if (time.perf_counter() - started) * (n_rows - first) / first < SECONDS:
        return [head, function(slice(first, n_rows))], beside()
    step = -(-(n_rows - first) // (PIECES * workers))
    pieces = [slice(start, min(start + step, n_rows)) for start in range(first, n_rows, step)]
    tasks: list[Callable[[], Any]] = [functools.partial(_tried, beside)]
    tasks += [functools.partial(function, rows) for rows in pieces]
    found, *parts = map_in_threads(lambda task: task(), tasks, workers)
    return [head, *parts], found()


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

"""Run tasks on threads: compiled code or linear algebra, which scales badly when BLAS uses threads itself.

BLAS runs on one thread meanwhile, so that ``n_jobs`` alone sets the number of cores, and the bits do
not depend on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from exactshap._native import Cancellation
from exactshap._native import raise_if_cancelled as raise_if_cancelled
from exactshap._runtime.checks import check_jobs
from exactshap._runtime.process_settings import single_threaded_blas

T = TypeVar("T")
Result = TypeVar("Result")

# Values of a coalition's largest matrix, below which threads cost more than they save.
THREADED_VALUES = 2.0**14

_JOBS: ContextVar[int | None] = ContextVar("n_jobs", default=None)


@contextmanager
def using_jobs(n_jobs: int | None) -> Iterator[None]:
    """Run coalitions within the block on ``n_jobs`` threads, with joblib's conventions."""
    token = _JOBS.set(n_jobs)
    try:
        yield
    finally:
        _JOBS.reset(token)


def asked_jobs() -> int | None:
    """Return the ``n_jobs`` of the current explainer."""
    return _JOBS.get()


def n_threads(size: float) -> int:
    """Return the number of threads for coalitions with matrices of ``size`` values."""
    return 1 if size < THREADED_VALUES else worker_count(_JOBS.get())


def worker_count(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``, with joblib's conventions; None is one.

    >>> worker_count(None), worker_count(3)
    (1, 3)
    """
    if n_jobs in (None, 1):
        return 1
    check_jobs(n_jobs)
    from joblib import effective_n_jobs

    return max(1, int(effective_n_jobs(n_jobs)))


def map_in_threads(function: Callable[[T], Result], tasks: Iterable[T], n_jobs: int | None) -> Generator[Result, None, None]:
    """Yield ``function(task)`` in the order of the tasks, from ``n_jobs`` threads: the same bits for every number of threads.

    When the consuming thread is interrupted or stops iterating, the kernels of the others end as well.

    >>> list(map_in_threads(abs, [-2, 1, -3], n_jobs=2))
    [2, 1, 3]
    """
    workers = worker_count(n_jobs)
    with single_threaded_blas():
        if workers == 1:
            yield from map(function, tasks)
        else:
            yield from _from_pool(function, tasks, workers)


def _from_pool(function: Callable[[T], Result], tasks: Iterable[T], workers: int) -> Iterator[Result]:
    from concurrent.futures import ThreadPoolExecutor

    cancellation, failed = Cancellation(), list[int]()

    def run(place: int, task: T) -> Result:
        with cancellation.watched():
            # Results come in the order of the tasks, so that the first error in
            # that order is raised, whichever came first in time
            if any(other < place for other in failed):  # that one is waited for first, and nothing begins after an error
                raise KeyboardInterrupt
            try:
                return function(task)
            except BaseException:
                failed.append(place)
                raise

    with ThreadPoolExecutor(workers, thread_name_prefix="exactshap") as pool:
        futures = [pool.submit(run, place, task) for place, task in enumerate(tasks)]
        try:
            for future in futures:
                yield future.result()
        except BaseException:
            # Kernels of the other threads poll this flag; without it the pool would wait for them to finish
            cancellation.set()
            pool.shutdown(cancel_futures=True)
            raise


def coalitions_in_threads(function: Callable[[T], Result], tasks: Sequence[T], size: float) -> list[Result]:
    """Return ``function(task)`` for every coalition, in order, on :func:`n_threads` threads."""
    return list(map_in_threads(function, tasks, min(n_threads(size), max(1, len(tasks)))))


def map_on_workers(function: Callable[..., Any], tasks: Iterable[Sequence[Any]]) -> Iterator[Any] | None:
    """Return ``function(*task)`` in the order of the tasks, from joblib's active backend; None without workers.

    >>> map_on_workers(abs, [(-2,)]) is None
    True
    """
    if asked_jobs() is not None:  # this call has its own number of threads
        return None
    if "joblib.parallel" not in sys.modules:  # no backend can be set yet, and the import takes longer than most explanations
        return None
    from joblib import Parallel, delayed, effective_n_jobs

    if effective_n_jobs(None) < 2:
        return None
    # Not every backend supports generators
    found: Iterator[Any] = iter(Parallel()(delayed(function)(*task) for task in tasks))
    return found

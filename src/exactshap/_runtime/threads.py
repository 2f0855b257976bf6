"""Work on threads: each task is compiled code or linear algebra, which scales badly when BLAS splits it itself.

BLAS runs on one thread meanwhile, so that ``n_jobs`` alone says how many cores are taken, and the bits do
not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from exactshap._native import Cancellation
from exactshap._runtime.blas import single_threaded_blas

__all__ = ["asked_jobs", "coalitions_in_threads", "map_in_threads", "n_threads", "single_threaded_blas", "using_jobs"]

T = TypeVar("T")
Result = TypeVar("Result")

WORTH_IT = 2.0**14  # values of a coalition's largest matrix; below, starting threads costs more than it saves
_JOBS: ContextVar[int | None] = ContextVar("n_jobs", default=None)


@contextmanager
def using_jobs(n_jobs: int | None) -> Iterator[None]:
    """Let coalitions inside the block run on ``n_jobs`` threads, with joblib's conventions."""
    token = _JOBS.set(n_jobs)
    try:
        yield
    finally:
        _JOBS.reset(token)


def asked_jobs() -> int | None:
    """Return the ``n_jobs`` of the explainer whose call this is part of."""
    return _JOBS.get()


def n_threads(size: float) -> int:
    """Return on how many threads coalitions of matrices of ``size`` values run."""
    if size < WORTH_IT or _JOBS.get() in (None, 1):
        return 1
    from joblib import effective_n_jobs

    return max(1, int(effective_n_jobs(_JOBS.get())))


def map_in_threads(function: Callable[[T], Result], tasks: Iterable[T], n_jobs: int | None) -> Iterator[Result]:
    """Yield ``function(task)`` in the order of the tasks, from ``n_jobs`` threads: the same bits for every number of threads.

    Where the waiting thread is interrupted, or stops asking, the kernels of the others end as well.

    >>> list(map_in_threads(abs, [-2, 1, -3], n_jobs=2))
    [2, 1, 3]
    """
    workers = 1
    if n_jobs not in (None, 1):
        from joblib import effective_n_jobs

        workers = max(1, int(effective_n_jobs(n_jobs)))
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

"""Coalitions on threads: each of them is linear algebra that scales badly when BLAS splits it itself.

BLAS runs on one thread while coalitions are evaluated, so that ``n_jobs`` alone says how many cores are taken, and the bits do
not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from exactshap._runtime.blas import single_threaded_blas

__all__ = ["coalitions_in_threads", "n_threads", "single_threaded_blas", "using_jobs"]

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


def n_threads(size: float) -> int:
    """Return on how many threads coalitions of matrices of ``size`` values run."""
    if size < WORTH_IT or _JOBS.get() in (None, 1):
        return 1
    from joblib import effective_n_jobs

    return max(1, int(effective_n_jobs(_JOBS.get())))


def coalitions_in_threads(function: Callable[[Any], Any], tasks: Sequence[Any], size: float) -> list[Any]:
    """Return ``function(task)`` for every task, in order: the same bits for every number of threads."""
    workers = min(n_threads(size), len(tasks))
    with single_threaded_blas():
        if workers < 2:
            return [function(task) for task in tasks]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, tasks))

"""Run on joblib's configured workers: ``parallel_config(backend="dask")`` or ``"loky"`` around a call without ``n_jobs``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from exactshap._runtime.threads import asked_jobs

__all__ = ["map_on_workers"]


def map_on_workers(function: Callable[..., Any], tasks: Iterable[Sequence[Any]]) -> Iterator[Any] | None:
    """Return ``function(*task)`` in the order of the tasks, from joblib's active backend; None where no other than this process is set.

    >>> map_on_workers(abs, [(-2,)]) is None
    True
    """
    if asked_jobs() is not None:  # this call says itself how many threads it takes
        return None
    from joblib import Parallel, delayed, effective_n_jobs

    if effective_n_jobs(None) < 2:
        return None
    # Not every backend has generators
    found: Iterator[Any] = iter(Parallel()(delayed(function)(*task) for task in tasks))
    return found

"""Coalitions on threads: each of them is linear algebra that scales badly when BLAS splits it itself."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np

__all__ = ["coalitions_in_threads", "n_threads"]

WORTH_IT = 2.0**18  # values of a coalition's largest matrix; below, starting threads costs more than it saves
_BLAS = Lock()  # the limit on BLAS threads belongs to the whole process: one batch at a time may change it


def n_threads(size: float) -> int:
    """Return on how many threads coalitions of matrices of ``size`` values run: as many as BLAS itself may use."""
    if size < WORTH_IT:
        return 1
    from threadpoolctl import threadpool_info

    return max([int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"], default=1)


def coalitions_in_threads(function: Callable[[np.ndarray], np.ndarray], masks: np.ndarray, size: float) -> list[np.ndarray]:
    """Return ``function(mask)`` for every mask, with BLAS on one thread: the same bits for every number of threads."""
    if size < WORTH_IT or len(masks) < 2:
        return [function(mask) for mask in masks]
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_limits

    with _BLAS:
        workers = n_threads(size)
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, masks))

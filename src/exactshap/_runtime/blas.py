"""BLAS on one thread: small factorisations gain nothing from several, and wait for cores that others use."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from exactshap._runtime.shared import OfTheProcess

__all__ = ["single_threaded_blas"]


@functools.cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of numpy and scipy: looking for them takes milliseconds, asking them microseconds."""
    import scipy.linalg  # noqa: F401 - loads scipy's own
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def _one_thread() -> Iterator[None]:
    several = [(library, n_threads) for library in _libraries() if (n_threads := library.get_num_threads()) != 1]
    try:
        for library, _ in several:
            _set(library, 1)
        yield
    finally:
        for library, n_threads in several:
            _set(library, n_threads)


def _set(library: Any, n_threads: int) -> None:
    """Limit a library, on whatever thread: threadpoolctl 3.8 lets the documented call do nothing but on the first one that made it."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


_ONE_THREAD = OfTheProcess(_one_thread)


def single_threaded_blas() -> OfTheProcess:
    """Keep BLAS on one thread: the limit belongs to the whole process, so that the last block to leave restores it."""
    _libraries()  # looked for before the step
    return _ONE_THREAD

"""Settings of the whole process, made by the first block that wants them and undone by the last one: BLAS on one thread, no warnings.

Small factorisations gain nothing from several threads, and wait for cores that others use. In the process of a command, no collection
of garbage while libraries are imported. And one that stays: OpenMP on one thread in a process that was forked.
"""

from __future__ import annotations

import functools
import gc
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager, nullcontext, suppress
from typing import Any

from exactshap._runtime.cache import STEP
from exactshap._runtime.types import Foreign


class OfTheProcess(ContextDecorator):
    """A setting of the whole process inside of some blocks: the first one to come makes it, the last one to leave undoes it.

    Each block for itself would put back what it found, which is another one's setting, for good.
    """

    def __init__(self, setting: Callable[[], AbstractContextManager[Any]]) -> None:
        self._setting, self._blocks = setting, 0
        self._current: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> None:
        with STEP:
            # Under the lock, as blocks of other threads come and go meanwhile
            if self._blocks == 0:
                self._current = self._setting()
                self._current.__enter__()
            self._blocks += 1

    def __exit__(self, *raised: object) -> None:
        with STEP:
            self._blocks -= 1
            if self._blocks == 0:
                self._current.__exit__(None, None, None)


class _WhileOpen(type):
    def __subclasscheck__(cls, category: type) -> bool:
        return without_warnings._blocks > 0


class _Whatever(Warning, metaclass=_WhileOpen):
    """All warnings while a block is open, else none: copies of the filter, which other libraries put back later, do nothing."""


_EVERY = "ignore", None, _Whatever, None, 0


@contextmanager
def _ignored() -> Iterator[None]:
    """Not by ``catch_warnings``: libraries open and close theirs on other threads meanwhile, and put back the filters they found."""
    found: Any = warnings.filters
    # In front of all other filters, and removed as an object: whatever others insert meanwhile stays
    found.insert(0, _EVERY)
    try:
        yield
    finally:
        current: Any = warnings.filters
        for filters in (found, current):
            with suppress(ValueError):
                filters.remove(_EVERY)


without_warnings = OfTheProcess(_ignored)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage, and set apart what is there at the end.

    scikit-learn brings 300,000 objects that stay. The collector would go through them again and again as they come, in a tenth of
    the time, and whenever it looks at all objects later.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


without_collection = OfTheProcess(_uncollected)


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


def _set(library: Foreign, n_threads: int) -> None:
    """Limit a library, on whatever thread: threadpoolctl 3.8 lets the documented call do nothing but on the first one that made it."""
    # The private name where there is one, as the public one may do nothing on this thread
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


_ONE_THREAD = OfTheProcess(_one_thread)


def single_threaded_blas() -> OfTheProcess:
    """Keep BLAS on one thread: the limit belongs to the whole process, so that the last block to leave restores it."""
    _libraries()  # looked for before the step
    return _ONE_THREAD


# The thread that a forked process was left with, while nothing was done about it.
_FORKED: list[int] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _FORKED.append(threading.get_ident()))


def without_lost_threads() -> None:
    """Keep OpenMP to one thread in a forked process' first thread.

    That thread lost its team in the fork; others have teams of their own.

    GNU's has the threads of the parent on its books there, and waits for them for ever: in what scikit-learn's histogram boosting,
    XGBoost or LightGBM predict, if they predicted before the fork. A limit of threads would not hold where a model names its own.
    """
    if threading.get_ident() not in _FORKED:
        return
    from threadpoolctl import ThreadpoolController

    for library in ThreadpoolController().select(user_api="openmp").lib_controllers:
        # No active level of parallel regions: each runs on the thread that meets it
        if limit := getattr(library.dynlib, "omp_set_max_active_levels", None):
            limit(0)
    _FORKED.clear()

"""Change settings of the whole process from the first nested block to the last: BLAS on one thread, no warnings.

Small factorisations gain nothing from several threads, and wait for cores that others use. A command collects no garbage while
libraries are imported. One setting stays: OpenMP on one thread in a forked process.
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
    """Hold a setting of the whole process: the first block to enter makes it, the last one to leave undoes it.

    If each block restored what it saw on entry, that could be the setting of another block, for good.
    """

    def __init__(self, setting: Callable[[], AbstractContextManager[Any]]) -> None:
        self._setting, self._blocks = setting, 0
        self._current: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> None:
        with STEP:
            # Under the lock, as other threads enter and leave blocks meanwhile
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
        # Damage of what is stored is noticed once, by whichever call reads it first.
        return without_warnings._blocks > 0 and not getattr(category, "is_always_given", False)


class _Whatever(Warning, metaclass=_WhileOpen):
    """Match all warnings while a block is open, else none. Copies of the filter that are restored later do nothing."""


_EVERY = "ignore", None, _Whatever, None, 0


@contextmanager
def _ignored() -> Iterator[None]:
    """Ignore warnings without ``catch_warnings``. Blocks on other threads restore the filters that they saw."""
    found: Any = warnings.filters
    # Inserted before all other filters and removed as an object, so that filters of others stay
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
    """Collect no garbage, and freeze the objects that exist at the end.

    scikit-learn creates 300,000 permanent objects. The collector would traverse them repeatedly, which takes a tenth of the import,
    and again in each later full collection.
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
    """Return the BLAS libraries of numpy and scipy, which take milliseconds to find."""
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
    """Limit a library on any thread; the documented call of threadpoolctl 3.8 only works on the first thread."""
    # The private name if it exists, as the public one may do nothing on this thread
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


_ONE_THREAD = OfTheProcess(_one_thread)


def single_threaded_blas() -> OfTheProcess:
    """Keep BLAS on one thread. The limit is the whole process's, and the last block to leave restores it."""
    _libraries()  # looked for before the step
    return _ONE_THREAD


# The only thread of a forked process, until OpenMP is limited there.
_FORKED: list[int] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _FORKED.append(threading.get_ident()))


def without_lost_threads() -> None:
    """Keep OpenMP to one thread in a forked process' first thread.

    That thread lost its team in the fork; other threads have their own teams.

    GNU's OpenMP would wait for ever for the threads of the parent, in predictions of scikit-learn's histogram boosting, XGBoost
    or LightGBM, if they predicted before the fork. A limit of threads would not apply to models that set their own.
    """
    if threading.get_ident() not in _FORKED:
        return
    from threadpoolctl import ThreadpoolController

    for library in ThreadpoolController().select(user_api="openmp").lib_controllers:
        # No active level: each parallel region runs on the thread that enters it
        if limit := getattr(library.dynlib, "omp_set_max_active_levels", None):
            limit(0)
    _FORKED.clear()

"""What threads share with care: a lock for single steps, and settings of the whole process."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

__all__ = ["STEP", "OfTheProcess", "copied_state", "without_warnings"]

# for microseconds, while nothing is made or waited for; a finalizer may come within, on the same thread
STEP = threading.RLock()
if hasattr(os, "register_at_fork"):  # in a child the threads of its parent are gone: none of them may hold it
    os.register_at_fork(before=STEP.acquire, after_in_parent=STEP.release, after_in_child=STEP.release)


def copied_state(one: Any) -> dict[str, Any]:
    """Return what is pickled of an object whose cached properties other threads may fill meanwhile: this is its ``__getstate__``."""
    return dict(one.__dict__)


class OfTheProcess:
    """A setting of the whole process inside of some blocks: the first one to come makes it, the last one to leave undoes it.

    Each block for itself would put back what it found, which is another one's setting, for good.
    """

    def __init__(self, setting: Callable[[], AbstractContextManager[Any]]) -> None:
        self._setting, self._blocks = setting, 0
        self._current: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> None:
        with STEP:
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
    found.insert(0, _EVERY)
    try:
        yield
    finally:
        current: Any = warnings.filters
        for filters in (found, current):
            with suppress(ValueError):
                filters.remove(_EVERY)


without_warnings = OfTheProcess(_ignored)

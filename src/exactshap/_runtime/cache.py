"""Cache the latest results of pure functions; pickles leave them out."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# Held for microseconds; reentrant, as a finalizer may run within, on the same thread
STEP = threading.RLock()
# In a forked child a thread of the parent may have held it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=STEP.acquire, after_in_parent=STEP.release, after_in_child=STEP.release)


class BoundedCache(dict[tuple[Any, ...], Any]):
    """Keep the latest results of pure functions; thread-safe, and empty after unpickling."""

    def __init__(self) -> None:
        super().__init__()
        self._making: dict[tuple[Any, ...], threading.Lock] = {}

    def __reduce__(self) -> tuple[type[BoundedCache], tuple[()]]:
        return BoundedCache, ()

    def get_or_make(self, key: tuple[Any, ...], make: Callable[[], Any], *, keep: int) -> Any:
        """Return the item, made once; at most ``keep`` items stay of those with the same first word in their keys.

        Threads wait for each other only for the same item, and no item needs itself, so there is no deadlock.
        """
        # The lock is never held while an item is made, as that may use other caches
        with STEP:
            if key in self:
                # Moved to the end: the least recently used item leaves first
                item = self[key] = self.pop(key)
                return item
            # After a fork no thread is making it
            place = os.getpid(), *key
            making = self._making.setdefault(place, threading.Lock())
        with making:
            with STEP:
                if key in self:  # made by the thread that this one waited for
                    return self[key]
            try:
                item = make()
                with STEP:
                    same = [old for old in self if old[0] == key[0]]
                    for old in same[: max(0, len(same) - keep + 1)]:
                        del self[old]
                    self[key] = item
            finally:
                with STEP:
                    self._making.pop(place, None)
            return item


def kept(keep: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Keep the latest results of a method in ``self.cache``, by its positional arguments."""

    def decorate(method: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(method)
        def wrapped(self: Any, *key: Any) -> T:
            return self.cache.get_or_make((method.__name__, *key), lambda: method(self, *key), keep=keep)  # type: ignore[no-any-return]

        return wrapped

    return decorate


def copied_state(one: object) -> dict[str, Any]:
    """Return a copy of an object's state for pickling. Other threads may fill cached properties meanwhile."""
    return dict(one.__dict__)

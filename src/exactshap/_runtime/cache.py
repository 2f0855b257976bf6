"""The latest results of pure functions, kept within a bound."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["BoundedCache"]


class BoundedCache(dict[tuple[Any, ...], Any]):
    """Keep the latest results of pure functions. It is thread-safe, and empty again after a pickle: nothing depends on it."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()  # held for a look only, never while an item is made: what is made may ask other caches
        self._making: dict[tuple[Any, ...], threading.Lock] = {}

    def __reduce__(self) -> tuple[type[BoundedCache], tuple[()]]:
        return BoundedCache, ()

    def made(self, key: tuple[Any, ...], make: Callable[[], Any], *, keep: int) -> Any:
        """Return the item, made once; at most ``keep`` items whose keys start with the same word stay.

        Threads wait for each other only where they ask for the same item, and no item needs itself: so none waits for ever.
        """
        with self._lock:
            if key in self:
                return self[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self:  # by the thread that this one waited for
                    return self[key]
            item = make()
            with self._lock:
                same = [old for old in self if old[0] == key[0]]
                for old in same[: max(0, len(same) - keep + 1)]:
                    del self[old]
                self[key] = item
                self._making.pop(key, None)
            return item

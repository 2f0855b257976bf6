"""The latest results of pure functions, kept within a bound."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["BoundedCache"]


class BoundedCache:
    """Keep the latest results of pure functions. It is thread-safe, and empty again after a pickle: nothing depends on it."""

    def __init__(self) -> None:
        self._items: dict[Hashable, Any] = {}
        self._lock = threading.RLock()  # what is made may ask for other items

    def __reduce__(self) -> tuple[type[BoundedCache], tuple[()]]:
        return BoundedCache, ()

    def get(self, key: tuple[Any, ...], make: Callable[[], Any], *, keep: int) -> Any:
        """Return the item, made once; at most ``keep`` items whose keys start with the same word stay."""
        with self._lock:
            if key not in self._items:
                same = [old for old in self._items if old[0] == key[0]]  # type: ignore[index]
                for old in same[: len(same) - keep + 1]:
                    del self._items[old]
                self._items[key] = make()
            return self._items[key]

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
        self._lock = threading.RLock()  # what is made may ask for other items

    def __reduce__(self) -> tuple[type[BoundedCache], tuple[()]]:
        return BoundedCache, ()

    def made(self, key: tuple[Any, ...], make: Callable[[], Any], *, keep: int) -> Any:
        """Return the item, made once; at most ``keep`` items whose keys start with the same word stay."""
        with self._lock:
            if key not in self:
                same = [old for old in self if old[0] == key[0]]
                for old in same[: len(same) - keep + 1]:
                    del self[old]
                self[key] = make()
            return self[key]

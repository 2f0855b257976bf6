"""Pickle objects for workers once, and unpickle them once in each process.

Engines pickle a function again for every task. An explainer holds a model and a background, so it is sent as one block of bytes:
copying it costs milliseconds, and a worker that has unpacked it before looks it up by digest.
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
from typing import Any

from exactshap._runtime.cache import BoundedCache
from exactshap._runtime.optional import first_installed

# Objects that a process keeps unpacked.
_KEPT = 4
_WORD = "unpacked"
_UNPACKED = BoundedCache()


def pack(content: Any) -> tuple[str, bytes]:
    """Return the digest and the pickle of an object; cloudpickle, if installed, pickles local functions by value."""
    try:
        data = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        library = first_installed(("cloudpickle",))
        if library is None:
            raise
        data = importlib.import_module(library).dumps(content)
    return hashlib.sha256(data).hexdigest(), data


def unpack(digest: str, data: bytes) -> Any:
    """Return the object, unpacked at most once in this process.

    >>> one = unpack(*pack([1, 2]))
    >>> one is unpack(*pack([1, 2]))
    True
    """
    return _UNPACKED.get_or_make((_WORD, digest), lambda: pickle.loads(data), keep=_KEPT)


class Carried:
    """Wrap a function to be pickled once and unpickled once per process.

    >>> one = pickle.loads(pickle.dumps(Carried(len)))
    >>> one("ab")
    2
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._packed: tuple[str, bytes] | None = None

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._packed is None:
            self._packed = pack(self._function)
        return _unpacked, self._packed


def _unpacked(digest: str, data: bytes) -> Carried:
    carried = Carried(unpack(digest, data))
    carried._packed = (digest, data)
    return carried

"""Pickle objects for workers once, and unpickle them once in each process.

Engines pickle a function again for every task. An explainer holds a model and a background, so it is sent as one block of bytes:
copying it costs milliseconds, and a worker that has unpacked it before looks it up by digest.
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
from typing import Any, Self, TypeVar

from exactshap._runtime.cache import BoundedCache
from exactshap._runtime.optional import first_installed

# Objects that a process keeps unpacked.
_KEPT = 4
_WORD = "unpacked"
_UNPACKED = BoundedCache()

Kind = TypeVar("Kind")


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


class PackedOnce:
    """Pickle an object's state once, and unpickle it once per process; a copy is packed again."""

    _packed: tuple[str, bytes] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._packed is None:
            self._packed = pack({name: value for name, value in self.__dict__.items() if name != "_packed"})
        return _unpacked, (type(self), *self._packed)

    def __copy__(self) -> Self:
        return _filled(type(self), {**self.__dict__, "_packed": None})


class Carried(PackedOnce):
    """Wrap a function to be pickled once and unpickled once per process.

    >>> one = pickle.loads(pickle.dumps(Carried(len)))
    >>> one("ab")
    2
    """

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


def _unpacked(kind: type[Kind], digest: str, data: bytes) -> Kind:
    return _filled(kind, {**unpack(digest, data), "_packed": (digest, data)})


def _filled(kind: type[Kind], state: dict[str, Any]) -> Kind:
    one = kind.__new__(kind)
    one.__dict__.update(state)
    return one

"""Pickle objects for workers once, and identify objects by what they do."""

from __future__ import annotations

import hashlib
import importlib
import pickle
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, Self, TypeVar

from exactshap import __version__
from exactshap._runtime.cache import BoundedCache
from exactshap._runtime.optional import first_installed
from exactshap.explainer import Explainer
from exactshap.results.data import fingerprint

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
    """Pickle an object's state once, and unpickle it once per process. A copy is packed again."""

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


def explainer_identity(explainer: Explainer, index: str) -> dict[str, Any]:
    """Return what the values depend on, by name; "model" is None for objects that cannot be pickled."""
    reader = explainer.reader
    background = reader.traits.background
    return {
        "model": object_digest(reader.traits.model),
        "background": None if background is None else fingerprint(background.native),
        "weights of the background": None if reader.traits.weights is None else object_digest(reader.traits.weights),
        "value function": reader.traits.value_function,
        "players": [[name, *columns] for name, columns in zip(reader.traits.player_names, reader.traits.players, strict=True)],
        "outputs": list(reader.traits.output_names),
        "index": index,
        "version of exactshap": __version__,
    }


def object_digest(content: Any) -> str | None:
    """Return a digest of an object's pickle, or None. Shared and equal parts give the same digest.

    Functions count by their code, their defaults and what they refer to, not by their place in a file.

    >>> object_digest([1.0, "a"]) == object_digest(pickle.loads(pickle.dumps([1.0, "a"])))
    True
    """
    digest = hashlib.sha256()
    try:
        _Pickler(SimpleNamespace(write=digest.update)).dump(content)
    except Exception:  # objects may raise anything when they are pickled; cycles end in RecursionError or ValueError
        return None
    return digest.hexdigest()


class _Pickler(pickle.Pickler):
    """Pickle functions by what they do; everything else as usual."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=4)
        self.fast = True  # no memo: equal parts and shared parts give the same bytes
        self.seen: set[int] = set()

    def reducer_override(self, content: Any) -> Any:
        if isinstance(content, ModuleType):
            return str, (content.__name__,)
        if not isinstance(content, FunctionType):
            return NotImplemented
        if id(content) in self.seen:  # a function that calls itself
            return str, (content.__qualname__,)
        self.seen.add(id(content))
        cells = [cell.cell_contents for cell in content.__closure__ or ()]
        used = {name: content.__globals__[name] for name in _names(content.__code__) if name in content.__globals__}
        return list, ((_code(content.__code__), content.__defaults__, content.__kwdefaults__, cells, used),)


def _names(code: CodeType) -> list[str]:
    nested = [name for constant in code.co_consts if isinstance(constant, CodeType) for name in _names(constant)]
    return sorted({*code.co_names, *nested})


def _code(code: CodeType) -> list[Any]:
    """Return what a function does: bytecode, constants and names, without files and lines."""
    constants = [_code(constant) if isinstance(constant, CodeType) else repr(constant) for constant in code.co_consts]
    return [code.co_code, constants, list(code.co_names), list(code.co_varnames)]

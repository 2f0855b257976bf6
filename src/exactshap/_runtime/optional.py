"""Import optional libraries, and names and methods of our own packages, on first use."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from exactshap.errors import MissingDependencyError

FRAME_LIBRARIES = ("pandas", "polars", "pyarrow")
INSTALL_FRAMES = 'Install one with: pip install "exactshap[frames]"'


def require(module: str, extra: str | None, *, purpose: str) -> ModuleType:
    """Import a module, or say how to install it: by an extra of exactshap, or by itself where no extra brings it.

    >>> require("json", "frames", purpose="Reading JSON").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        what = name if extra is None else f'"exactshap[{extra}]"'
        raise MissingDependencyError(f"{purpose} needs {name}", f"{error}", f"Install it with: pip install {what}") from None


def first_installed(modules: tuple[str, ...]) -> str | None:
    """Return the first installed one of some modules, without importing it.

    >>> first_installed(("no_such_module", "json"))
    'json'
    """
    return next((module for module in modules if importlib.util.find_spec(module) is not None), None)


def on_first_use(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's ``__getattr__``, which imports names on first use.

    ``names`` maps each module, below ``package`` or by full name, to its names.

    >>> on_first_use("os", {"path": "join split"})("join")("a", "b")
    'a/b'
    """
    full = {module: module if module.startswith("exactshap.") else f"{package}.{module}" for module in names}
    places = {name: full[module] for module, of_module in names.items() for name in of_module.split()}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(places[name]), name)

    return get


class MethodOnFirstUse:
    """Stand for a function as a method; its module is imported on first use.

    >>> class Folder(str):
    ...     joined = MethodOnFirstUse("os.path", "join")
    >>> Folder("a").joined("b")
    'a/b'
    """

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._owner, self._attribute = owner, attribute

    def __get__(self, instance: object, owner: type) -> Any:
        function = getattr(importlib.import_module(self._module), self._name)
        setattr(self._owner, self._attribute, function)  # from now on an ordinary method
        return function if instance is None else function.__get__(instance, owner)

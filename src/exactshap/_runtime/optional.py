"""Optional libraries: imported on first use, and named with their fix when missing."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from exactshap.errors import MissingDependencyError, message

__all__ = ["FRAME_LIBRARIES", "INSTALL_FRAMES", "first_installed", "require"]

FRAME_LIBRARIES = ("pandas", "polars", "pyarrow")
INSTALL_FRAMES = 'Install one with: pip install "exactshap[frames]"'


def require(module: str, extra: str, *, purpose: str) -> ModuleType:
    """Import a module, or say which extra brings it.

    >>> require("json", "frames", purpose="Reading JSON").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise MissingDependencyError(
            message(f"{purpose} needs {name}", f"{error}", f'Install it with: pip install "exactshap[{extra}]"')
        ) from None


def first_installed(modules: tuple[str, ...]) -> str | None:
    """Return the first of some modules that is installed, without importing it.

    >>> first_installed(("no_such_module", "json"))
    'json'
    """
    return next((module for module in modules if importlib.util.find_spec(module) is not None), None)

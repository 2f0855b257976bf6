"""Find the shared library, load it once, and choose the level of instruction set."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from exactshap.errors import InputError, MissingDependencyError, message

_HERE = Path(__file__).parent
_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
_LEVELS = ("v2", "v3", "v4")
_REBUILD = "Run `python src/native/build.py` in the working tree"


class _Python(ctypes.Structure):
    """Hold the functions of Python's stable interface that poll signals."""

    _names_ = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch", "PyErr_Restore")
    _fields_ = [(name, ctypes.c_void_p) for name in _names_]


@functools.cache
def library() -> ctypes.CDLL:
    """Load the library; nothing is written and nothing compiled."""
    path = _HERE / f"exactshap{_SUFFIX}"
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise MissingDependencyError(_why_not(path, error)) from error
    loaded.exactshap_sources.restype = loaded.exactshap_best_level.restype = ctypes.c_char_p
    _refuse_stale(loaded.exactshap_sources().decode())
    borrowed = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in _Python._names_]
    loaded.exactshap_connect(ctypes.byref(_Python(*borrowed)))
    return loaded


def _why_not(path: Path, error: OSError) -> str:
    if not path.exists():
        return message(
            "The compiled kernels are missing",
            f"no file `{path}`",
            f"{_REBUILD}, or install exactshap again with `pip install --force-reinstall --no-deps exactshap`",
        )
    return message(
        "The compiled kernels cannot be loaded",
        f"{error}",
        "The installed wheel is for another system or C library: install from source with `pip install --no-binary exactshap exactshap`",
    )


def _refuse_stale(built_from: str) -> None:
    """Refuse a library that was built from other sources. Only a working tree has sources to compare with; a wheel has none."""
    folder = _HERE.parent.parent / "native"
    if not folder.is_dir():
        return
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in {".h", ".cpp"}):
        # With names and end marks, so that moving text between files changes the digest
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    if digest.hexdigest()[:16] != built_from:
        raise MissingDependencyError(
            "The compiled kernels do not belong to the sources", f"The library was built from others than `{folder}`", _REBUILD
        )


@functools.cache
def level() -> str:
    """Return the level in use; the environment variable ``EXACTSHAP_CPU`` can lower it.

    >>> level() in {"v2", "v3", "v4", "base"}
    True
    """
    best = library().exactshap_best_level().decode()  # of this CPU: v2, v3 or v4 on x86-64, "base" elsewhere
    if not best:
        raise MissingDependencyError(
            "The compiled kernels need an x86-64 CPU with SSE 4.2 (2009 or later)", "an older one", "Use another machine"
        )
    wanted = os.environ.get("EXACTSHAP_CPU") or best
    # CPUs of a higher level also run the lower ones
    possible = _LEVELS[: _LEVELS.index(best) + 1] if best in _LEVELS else (best,)
    if wanted not in possible:
        names = ", ".join(f"`{name}`" for name in possible)
        raise InputError(
            "The environment variable `EXACTSHAP_CPU` names no level of this CPU",
            f"{wanted!r}",
            f"Unset it, or use one of {names}",
        )
    return wanted


def symbol(name: str) -> Any:
    """Return an exported function of the level in use."""
    return getattr(library(), f"exactshap_{level()}_{name}")


_WATCHED = threading.local()


class Cancellation:
    """Cancel kernels of other threads, which then raise ``KeyboardInterrupt``.

    >>> cancellation = Cancellation()
    >>> with cancellation.watched():  # in each thread of the pool
    ...     pass
    """

    def __init__(self) -> None:
        self._flag = ctypes.c_int32(0)

    def set(self) -> None:
        """End the kernels of all threads that watch."""
        self._flag.value = 1

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Make kernels and :func:`raise_if_cancelled` of this thread poll the flag instead of signals."""
        watch = library().exactshap_watch
        watch(ctypes.byref(self._flag))
        _WATCHED.flag = self._flag
        try:
            yield
        finally:
            watch(None)
            _WATCHED.flag = None


def raise_if_cancelled() -> None:
    """Raise ``KeyboardInterrupt`` in a cancelled thread, between calls of a user's function."""
    flag = getattr(_WATCHED, "flag", None)
    if flag is not None and flag.value:
        raise KeyboardInterrupt


def raise_interruption() -> None:
    """Raise the exception that ended a kernel: that of a signal's handler, or ``KeyboardInterrupt`` if cancelled."""
    # The call keeps the interpreter's lock, and raises a pending signal.
    ctypes.PyDLL(None, handle=library()._handle).exactshap_raise()
    raise KeyboardInterrupt

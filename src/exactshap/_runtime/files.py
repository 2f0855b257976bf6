"""Read regular files only; write a file completely or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where a file that is being written cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

from exactshap.errors import InputError, ModelFormatError

_DRAFT = re.compile(r"\..+\.[0-9a-f]{8}\.exactshap\.part")
# Where files cannot be locked, an old draft counts as abandoned.
_SECONDS_UNTIL_STALE = 86_400.0


def check_suffix(path: str | os.PathLike[str], known: tuple[str, ...], what: str, do: str) -> None:
    """Refuse a file name with the suffix of another format; no suffix is fine.

    >>> check_suffix("report.html", (".html",), "A report", "")
    """
    suffix = Path(path).suffix.lower()
    if suffix and suffix not in known:
        raise InputError(f"{what} is a {known[0]} file", f"Got {Path(path).name!r}", do)


def check_regular(path: str | os.PathLike[str]) -> os.stat_result:
    """Refuse a device, a pipe or a socket: reading one may never return.

    Missing files and folders remain errors of the system.

    >>> check_regular(os.devnull)
    Traceback (most recent call last):
    exactshap.errors.ModelFormatError: 'null' is not a regular file. Got a device. Copy its content into a file.
    """
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "No such file", os.fspath(path)) from None
    return _refuse_irregular(facts, path)


def _refuse_irregular(facts: os.stat_result, path: str | os.PathLike[str]) -> os.stat_result:
    if stat.S_ISDIR(facts.st_mode):
        raise IsADirectoryError(errno.EISDIR, "Is a folder", os.fspath(path))
    if not stat.S_ISREG(facts.st_mode):
        kind = "a pipe" if stat.S_ISFIFO(facts.st_mode) else "a socket" if stat.S_ISSOCK(facts.st_mode) else "a device"
        what = f"{os.path.basename(path)!r} is not a regular file"
        raise ModelFormatError(what, f"Got {kind}", "Copy its content into a file")
    return facts


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file for reading, or refuse it without waiting; see :func:`check_regular`."""
    check_regular(path)  # first, as opening has effects on some devices
    # O_NONBLOCK: a pipe that has replaced the file since the check does not wait for a writer
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _refuse_irregular(os.fstat(descriptor), path)  # the file may have been replaced
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_bounded(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Return the bytes of a regular file, or refuse one with more than ``max_bytes``."""
    with open_regular(path) as file:
        size, name = os.fstat(file.fileno()).st_size, os.path.basename(path)
        if size > max_bytes:
            got = f"It has {size} bytes; the limit is {max_bytes}"
            raise ModelFormatError(f"{name!r} is too large", got, "Raise max_bytes=")
        # One byte more than the size, as files in /proc claim to be empty and others may grow
        content = file.read(size + 1)
    if len(content) > size:
        got = f"It has more than the {size} bytes that the system announced"
        raise ModelFormatError(f"{name!r} is still growing", got, "Copy it and read the copy")
    return content


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path in the same folder; move it over ``path`` on success, remove it on failure or interrupt.

    Drafts of killed processes in that folder are removed first; drafts that another process is writing stay.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with atomic_write(Path(folder.name) / "a.txt") as draft:
    ...     _ = draft.write_text("whole")
    >>> [file.name for file in Path(folder.name).iterdir()]
    ['a.txt']
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a folder", str(target))
    _remove_stale_drafts(target.absolute().parent)
    with _errors_name(target):
        draft, lock = _locked_draft(target)
        try:
            yield draft
            # Atomic within one folder: readers see the old file or the new one
            os.replace(draft, target)
        finally:
            os.close(lock)
            draft.unlink(missing_ok=True)


@contextmanager
def _errors_name(target: Path) -> Iterator[None]:
    """Name the user's file in errors of the system. These name its draft or no file."""
    try:
        yield
    except OSError as error:
        # Other libraries raise errors without a number, which are about something else
        if error.errno is None or not (error.filename is None or _DRAFT.fullmatch(os.path.basename(str(error.filename)))):
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error


def _locked_draft(target: Path) -> tuple[Path, int]:
    """Make an empty locked draft next to ``target``.

    The lock lasts until the process ends or the descriptor is closed.
    """
    while True:
        # A unique name, so that two saves never share a draft
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.exactshap.part")
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if fcntl is None:  # Windows cannot replace the target with an open descriptor
            os.close(descriptor)
            return draft, os.open(os.devnull, os.O_RDONLY)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Otherwise another save removed the draft as stale before it was locked
        if os.fstat(descriptor).st_nlink:
            return draft, descriptor
        os.close(descriptor)


def _remove_stale_drafts(folder: Path) -> None:
    """Remove the drafts of killed writers, which no process locks."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _DRAFT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_stale(Path(entry.path))


def _remove_if_stale(draft: Path) -> None:
    if fcntl is None:
        if time.time() - draft.stat().st_mtime > _SECONDS_UNTIL_STALE:
            draft.unlink(missing_ok=True)
        return
    # The target of a link of that name must not be locked
    descriptor = os.open(draft, os.O_RDWR | os.O_NOFOLLOW)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink(missing_ok=True)
    finally:
        os.close(descriptor)

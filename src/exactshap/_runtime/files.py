"""Write a file completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exactshap.errors import InputError, message

__all__ = ["check_suffix", "replacing"]


def check_suffix(path: str | os.PathLike[str], known: tuple[str, ...], what: str, do: str) -> None:
    """Refuse a file name whose ending promises another format; no ending is fine.

    >>> check_suffix("report.html", (".html",), "A report", "")
    """
    suffix = Path(path).suffix.lower()
    if suffix and suffix not in known:
        raise InputError(message(f"{what} is a {known[0]} file", f"Got {Path(path).name!r}", do))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path in the same folder; move it over ``path`` on success, remove it on any failure or interrupt.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with replacing(Path(folder.name) / "a.txt") as draft:
    ...     _ = draft.write_text("whole")
    >>> [file.name for file in Path(folder.name).iterdir()]
    ['a.txt']
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield draft
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)

"""What a folder of results says about itself: it is written once, before the first result, and compared when a run resumes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactshap._runtime.files import atomic_write, read_bounded
from exactshap.errors import InputError, ModelFormatError, message

__all__ = ["NAME", "check_destination", "write_manifest"]

NAME = "_manifest.json"  # readers of Parquet folders leave out names with an underscore
_FORMAT = 1
_MAX_BYTES = 2**28


def check_destination(folder: Path, content: Mapping[str, Any], *, resume: bool) -> None:
    """Make the folder, or see that what it holds is the same run.

    Raises
    ------
    InputError
        If the folder holds something else, or a run that differs: every difference is named.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(message(f"{folder} is a file", do="Name a folder for the results"))
    folder.mkdir(parents=True, exist_ok=True)
    held = [path.name for path in folder.iterdir() if not path.name.endswith(".exactshap.part")]
    if not held:
        return
    if NAME not in held:
        got = f"Got {', '.join(sorted(held)[:3])}, and no {NAME}"
        raise InputError(message(f"The folder {folder} holds something else", got, "Name an empty folder"))
    if not resume:
        raise InputError(message(f"The folder {folder} holds an earlier run", "Got resume=False", "Remove it, or resume it"))
    _refuse_differences(folder, _read(folder / NAME), content)


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest, the same bytes for the same run; drafts of killed runs go."""
    with atomic_write(folder / NAME) as draft:
        draft.write_text(json.dumps({"format": _FORMAT, **content}, indent=1) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_bounded(path, _MAX_BYTES))
        if content["format"] != _FORMAT:
            raise ValueError(f"its format is {content['format']!r}, this version knows {_FORMAT}")
        return {name: dict(content[name]) for name in ("run", "inputs")} | {"schema": list(content["schema"])}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ModelFormatError(message(f"{path} is not a manifest of exactshap", f"{error}", "Name an empty folder")) from None


def _refuse_differences(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    now = json.loads(json.dumps(now))
    changes = [
        _change(f"the {name}", before["run"].get(name), value)
        for name, value in now["run"].items()
        if before["run"].get(name) != value
    ]
    old, new = before["inputs"], now["inputs"]
    changes += [f"the file {name} is gone" for name in old if name not in new]
    changes += [f"the file {name} is new" for name in new if name not in old]
    changes += [f"the file {name} has changed" for name in new if name in old and old[name] != new[name]]
    if not changes and before["schema"] != now["schema"]:
        changes = ["the columns of the output"]
    if changes:
        more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
        do = "Run it as it was, or name an empty folder"
        raise InputError(message(f"The run in {folder} was another one", f"Different: {'; '.join(changes[:3])}{more}", do))


def _change(name: str, before: Any, now: Any) -> str:
    """Return what changed, with both sides where they are short.

    >>> _change("the index", "shapley", "banzhaf"), _change("the model", "a" * 64, "b" * 64)
    ("the index ('shapley' before, now 'banzhaf')", 'the model')
    """
    short = all(len(repr(side)) <= 40 for side in (before, now))
    return f"{name} ({before!r} before, now {now!r})" if short else name

"""Keep the manifest of a folder of results: the run, and digests of inputs and finished results."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exactshap._runtime.files import atomic_write, read_bounded
from exactshap.errors import InputError, ModelFormatError

# Readers of Parquet folders leave out names with an underscore.
NAME = "_manifest.json"
_FORMAT = 1
_MAX_BYTES = 2**28
# Largest fraction of a run's time for rewriting the manifest.
_MANIFEST_TIME = 0.05


def check_place(folder: Path, *, resume: bool) -> dict[str, Any] | None:
    """Return the manifest of an earlier run, or None; refuse a folder with other content."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file", do="Name a folder for the results")
    held = [path.name for path in folder.iterdir()] if folder.exists() else []
    # Drafts of a killed run are no results, and are overwritten.
    held = [name for name in held if not name.endswith(".exactshap.part")]
    if not held:
        return None
    if NAME not in held:
        got = f"Got {', '.join(sorted(held)[:3])}, and no {NAME}"
        raise InputError(f"The folder {folder} holds something else", got, "Name an empty folder")
    if not resume:
        raise InputError(f"The folder {folder} holds an earlier run", "Got resume=False", "Remove it, or resume it")
    return _read(folder / NAME)


def check_run(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse a run that differs from the earlier one, and name every difference."""
    # Through JSON, as ``before`` went: tuples become lists.
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
        do = "Use the data and settings of that run, or name an empty folder"
        raise InputError(f"The run in {folder} is of other data or settings", f"Different: {'; '.join(changes[:3])}{more}", do)


@dataclass
class Manifest:
    folder: Path
    content: Mapping[str, Any]
    outputs: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0  # seconds of the last write
    written: float = 0.0  # time of the last write

    def add(self, name: str, digest: str) -> None:
        """Note a result, and write the manifest now and then; a resumed run repeats results not yet noted."""
        if self.outputs.get(name) == digest:
            return
        self.outputs[name] = digest
        # The manifest grows with the results: writing it after each would cost their number squared.
        if time.perf_counter() - self.written >= self.seconds / _MANIFEST_TIME:
            self.write()

    def write(self) -> None:
        """Write the manifest, with the same bytes for the same run, and remove drafts of killed runs."""
        started = time.perf_counter()
        self.folder.mkdir(parents=True, exist_ok=True)
        # Sorted, as a resumed run adds its results in another order.
        content = {"format": _FORMAT, **self.content, "outputs": dict(sorted(self.outputs.items()))}
        with atomic_write(self.folder / NAME) as draft:
            draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        self.written = time.perf_counter()
        self.seconds = self.written - started


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_bounded(path, _MAX_BYTES))
        if content["format"] != _FORMAT:
            raise ValueError(f"its format is {content['format']!r}, this version knows {_FORMAT}")
        tables = {
            name: dict(content.get(name, {}) if name == "outputs" else content[name]) for name in ("run", "inputs", "outputs")
        }
        return tables | {"schema": list(content["schema"])}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFormatError(f"{path} is not a manifest of exactshap", f"{error}", "Name an empty folder") from None


def _change(name: str, before: object, now: object) -> str:
    """Describe what changed, with both values if they are short.

    >>> _change("the index", "shapley", "banzhaf"), _change("the model", "a" * 64, "b" * 64)
    ("the index ('shapley' before, now 'banzhaf')", 'the model')
    """
    short = all(len(repr(side)) <= 40 for side in (before, now))
    return f"{name} ({before!r} before, now {now!r})" if short else name

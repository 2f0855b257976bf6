"""Explain, write and summarise each batch; keep the manifest of a folder."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from exactshap._runtime.files import atomic_write, read_bounded
from exactshap._runtime.optional import require
from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, ModelFormatError
from exactshap.frames.stored import SourceFile, StoredFile, read_rows
from exactshap.scale._partition import Partition
from exactshap.scale._statistics import GlobalImportance

# Readers of Parquet folders leave out names with an underscore.
_MANIFEST = "_manifest.json"
_FORMAT = 1
_MAX_BYTES = 2**28  # of a manifest
# Largest fraction of a run's time for rewriting the manifest.
_MANIFEST_TIME = 0.05
# Errors of the system that more room mends: a full disk, a quota, a limit on the size of files.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Metadata key of results that leave out values or digits.
_IMPORTANCE = b"exactshap.importance"


def check_place(folder: Path, *, resume: bool) -> dict[str, Any] | None:
    """Return the manifest of an earlier run, or None. Refuse a folder with other content."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file", do="Name a folder for the results")
    held = [path.name for path in folder.iterdir()] if folder.exists() else []
    # Drafts of a killed run are no results, and are overwritten.
    held = [name for name in held if not name.endswith(".exactshap.part")]
    if not held:
        return None
    if _MANIFEST not in held:
        got = f"Got {', '.join(sorted(held)[:3])}, and no {_MANIFEST}"
        raise InputError(f"The folder {folder} holds something else", got, "Name an empty folder")
    if not resume:
        raise InputError(f"The folder {folder} holds an earlier run", "Got resume=False", "Remove it, or resume it")
    return _read_manifest(folder / _MANIFEST)


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
    """Keep the file that says what a folder of results is of, and which results are finished."""

    folder: Path
    content: Mapping[str, Any]  # run, inputs and columns
    outputs: dict[str, str] = field(default_factory=dict)  # file of a finished result -> its SHA-256
    seconds: float = 0.0  # that the last write took
    written: float = 0.0  # when it ended

    def add(self, name: str, digest: str) -> None:
        """Note a result, and write the manifest now and then. A resumed run repeats results not yet noted."""
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
        try:
            with atomic_write(self.folder / _MANIFEST) as draft:
                draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            if not self.outputs:  # nothing is finished that could be kept
                raise
            raise _resumable(error, self.folder / _MANIFEST) from error
        self.written = time.perf_counter()
        self.seconds = self.written - started


def _resumable(error: OSError, target: Path) -> OSError:
    """Return a failed write's error with what to do."""
    do = "make room" if error.errno in _FULL else "put that right"
    text = f"{error.strerror or error}: finished results are kept; {do} and run again to resume"
    return OSError(error.errno or 0, text, str(target))


def _read_manifest(path: Path) -> dict[str, Any]:
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


@dataclass(frozen=True)
class Batch:
    """Name rows [start, stop) of a file, their first number among all rows, and the file of their result."""

    file: SourceFile
    start: int
    stop: int
    first: int
    name: str
    digest: str = ""  # SHA-256 of the result that an earlier run has finished; "" where there is none

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


class Done(NamedTuple):
    """Hold the importances and the digest of a finished batch, and whether its result was there, or there but changed."""

    importance: GlobalImportance
    digest: str
    was_there: bool = False
    had_changed: bool = False


def cut(files: list[SourceFile], batch_rows: int, digests: dict[str, str]) -> list[Batch]:
    """Cut files into batches, with the digests of results that an earlier run has finished."""
    cuts = [(file, start) for file in files for start in range(0, file.n_rows, batch_rows)]
    width, first, batches = max(5, len(str(len(cuts)))), 0, []
    for number, (file, start) in enumerate(cuts):
        stop = min(start + batch_rows, file.n_rows)
        name = f"part-{number:0{width}}.parquet"
        batches.append(Batch(file, start, stop, first, name, digests.get(name, "")))
        first += stop - start
    return batches


def check_there(folder: Path, batches: list[Batch]) -> None:
    """Refuse results that are gone at the end: someone removed them, or workers wrote them to a disk of their own."""
    gone = [batch.name for batch in batches if not (folder / batch.name).is_file()]
    if gone:
        text = f"Not there at the end, as {len(gone)} of {len(batches)} results: run again to resume, on workers that write to this disk"
        raise FileNotFoundError(errno.ENOENT, text, str(folder / gone[0]))


@dataclass(frozen=True)
class Work:
    """Read, explain, write and summarise each batch, here or in another process. Without a folder nothing is written."""

    part: Partition
    folder: str | None

    def __call__(self, batch: Batch) -> Done:
        finished = self.finished(batch)
        if finished is not None:
            if self.part.writes_all:
                importance = GlobalImportance.of(finished)
            else:  # a result that holds only some of its values has them in its metadata
                importance = GlobalImportance.from_json(json.loads(finished.schema.metadata[_IMPORTANCE]))
            return Done(importance, batch.digest, was_there=True)
        table, importance = self._explained(batch)
        if self.folder is None:
            return Done(importance, "")
        target = Path(self.folder, batch.name)
        # An earlier run finished it, but its bytes have changed: the user is warned at the end.
        had_changed = bool(batch.digest) and target.exists()
        return Done(importance, self._written(table, importance, target), had_changed=had_changed)

    def finished(self, batch: Batch) -> Any:
        """Return an earlier run's result if it is there byte for byte, else None."""
        if not batch.digest or self.folder is None:
            return None
        parquet = require("pyarrow.parquet", "scale", purpose="Reading Parquet")
        try:
            content = read_bounded(Path(self.folder, batch.name), sys.maxsize - 1)
        except (OSError, ModelFormatError):
            return None
        if hashlib.sha256(content).hexdigest() != batch.digest:
            return None
        return parquet.read_table(io.BytesIO(content))

    def _written(self, table: TableLike, importance: GlobalImportance, target: Path) -> str:
        parquet = require("pyarrow.parquet", "scale", purpose="Writing Parquet")
        if not self.part.writes_all:
            table = table.replace_schema_metadata({_IMPORTANCE: json.dumps(importance.to_json())})
        # Only columns with repeated cells are written as dictionaries: values hardly repeat.
        repeated = [*self.part.layout.keep, *(name for name, kind in self.part.layout.kinds if kind == "string")]
        try:
            with atomic_write(target) as draft:
                parquet.write_table(table, draft, use_dictionary=repeated)
                return StoredFile(str(draft), target.name, "parquet").sha256()
        except OSError as error:
            raise _resumable(error, target) from error

    def check_again(self, batch: Batch, finished: Any) -> None:
        """Explain one row of an earlier run again, as no digest shows settings such as the budget."""
        row = read_rows(batch.file, batch.start, batch.start + 1, self.part.csv_types)
        before = finished.slice(0, 1).to_pylist()[0]
        try:
            now = self.part(row).to_pylist()[0]
        # The row was marked before, or could not have been there.
        except InputError:
            now = dict.fromkeys(before, np.nan)
        names = self.part.layout.numbers
        old, new = (np.array([numbers[name] for name in names], float) for numbers in (before, now))
        # Relative to the largest number of the row: small values may differ by rounding of large ones.
        size = np.max(np.abs(old[np.isfinite(old)]), initial=0.0)
        if not np.allclose(old, new, rtol=0.0, atol=1e-9 * size, equal_nan=True):
            j = int(np.nanargmax(np.abs(old - new))) if np.isfinite(old - new).any() else 0
            got = f"{names[j]} of its first row was {old[j]:.6g} and is {new[j]:.6g} now"
            do = "Use the settings (budget, seed, ...) and versions of that run, or name an empty folder"
            raise InputError(f"The run in {self.folder} is of other data or settings", got, do)

    def _explained(self, batch: Batch) -> tuple[Any, GlobalImportance]:
        arrow = require("pyarrow", "scale", purpose="Reading data")
        table = read_rows(batch.file, batch.start, batch.stop, self.part.csv_types)
        try:
            output, columns = self.part.explained(table)
        except InputError as error:
            row, reason = error.row, getattr(error, "reason", "")
            if row is None or not reason:
                place = f"{batch.file.name}, rows {batch.start} to {batch.stop - 1} of the file"
                raise type(error)(f"{place}: {error}") from None
            what = f"Row {batch.first + row} cannot be explained ({batch.file.place(batch.start + row)})"
            do = 'Impute or drop such rows before, or pass on_bad_rows="mark"'
            raise InputError(what, reason.replace(f"row {row}", f"row {batch.first + row}", 1), do) from None
        return output.cast(self.part.schema), GlobalImportance.of(arrow.table(columns))

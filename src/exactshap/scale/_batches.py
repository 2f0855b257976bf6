"""Read, explain and write each batch of rows on its own, here or in another process."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from exactshap._runtime.files import atomic_write, read_bounded
from exactshap._runtime.optional import require
from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, ModelFormatError
from exactshap.frames.stored import SourceFile, StoredFile, read_rows
from exactshap.scale._importance import GlobalImportance
from exactshap.scale._partition import Partition

# Metadata key of results that leave out values or digits.
_IMPORTANCE = b"exactshap.importance"


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
    cuts = [(file, start) for file in files for start in range(0, file.n_rows, batch_rows)]
    width, first, batches = max(5, len(str(len(cuts)))), 0, []
    for number, (file, start) in enumerate(cuts):
        stop = min(start + batch_rows, file.n_rows)
        name = f"part-{number:0{width}}.parquet"
        batches.append(Batch(file, start, stop, first, name, digests.get(name, "")))
        first += stop - start
    return batches


@dataclass(frozen=True)
class Work:
    """Read, explain, write and summarise each batch, here or in another process.

    Without a folder nothing is written.
    """

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
            text = f"{error.strerror or error}: finished results are kept; make room and run again to resume"
            raise OSError(error.errno or 0, text, str(target)) from error

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

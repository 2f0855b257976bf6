"""Batches of rows: each is read, explained and written by itself, here or in another process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exactshap._runtime.files import atomic_write
from exactshap._runtime.optional import require
from exactshap.errors import ExactshapError, InputError, message
from exactshap.frames.stored import SourceFile, parquet_file, read_rows
from exactshap.scale.partition import Partition
from exactshap.scale.statistics import GlobalImportance

__all__ = ["Batch", "Work", "cut", "elsewhere"]


@dataclass(frozen=True)
class Batch:
    """Rows [start, stop) of a file, which are rows [first, ...) of all, and the name of their result."""

    file: SourceFile
    start: int
    stop: int
    first: int
    name: str

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


def cut(files: list[SourceFile], batch_rows: int) -> list[Batch]:
    """Cut every file into batches; a batch is never of two files."""
    cuts = [(file, start) for file in files for start in range(0, file.n_rows, batch_rows)]
    width, first, batches = max(5, len(str(len(cuts)))), 0, []
    for number, (file, start) in enumerate(cuts):
        stop = min(start + batch_rows, file.n_rows)
        batches.append(Batch(file, start, stop, first, f"part-{number:0{width}}.parquet"))
        first += stop - start
    return batches


@dataclass(frozen=True)
class Work:
    """What is done with each batch, here or in another process: read it, explain it, write its result, say what is in it."""

    part: Partition
    folder: str

    def __call__(self, batch: Batch) -> tuple[GlobalImportance, bool]:
        """Return the importances of a batch, and whether its result was there before."""
        parquet = require("pyarrow.parquet", "scale", purpose="Reading Parquet")
        target = Path(self.folder, batch.name)
        if self.is_whole(batch):
            with parquet_file(target) as file:
                return GlobalImportance.of(file.read()), True
        table = self._explained(batch)
        try:
            with atomic_write(target) as draft:
                parquet.write_table(table, draft, use_dictionary=list(self.part.layout.keep))  # values hardly repeat
        except OSError as error:
            text = f"{error.strerror or error}: results that are whole stay; make room and run again to resume"
            raise OSError(error.errno or 0, text, str(target)) from error
        return GlobalImportance.of(table), False

    def is_whole(self, batch: Batch) -> bool:
        """Say whether the result of a batch is there, with all its rows and columns."""
        path = Path(self.folder, batch.name)
        if not path.exists():
            return False
        try:
            with parquet_file(path) as file:
                fits = file.schema_arrow.remove_metadata().equals(self.part.schema)
                return bool(file.metadata.num_rows == batch.n_rows and fits)
        except (OSError, InputError):
            return False

    def check_again(self, batch: Batch) -> None:
        """Explain one row again that an earlier run has explained: settings that no digest shows would change its values."""
        row = read_rows(batch.file, batch.start, batch.start + 1, self.part.layout.keep)
        with parquet_file(Path(self.folder, batch.name)) as file:
            before = next(file.iter_batches(1)).to_pylist()[0]
        try:
            now = self.part(row).to_pylist()[0]
        except InputError:  # it was marked before, or could not have been there
            now = dict.fromkeys(before, np.nan)
        names = self.part.layout.values
        old, new = (np.array([numbers[name] for name in names], float) for numbers in (before, now))
        size = np.max(np.abs(old[np.isfinite(old)]), initial=0.0)
        if not np.allclose(old, new, rtol=0.0, atol=1e-9 * size, equal_nan=True):
            j = int(np.nanargmax(np.abs(old - new))) if np.isfinite(old - new).any() else 0
            got = f"{names[j]} of its first row was {old[j]:.6g} and is {new[j]:.6g} now"
            do = "Use the settings (budget, seed, ...) and versions of that run, or name an empty folder"
            raise InputError(message(f"The run in {self.folder} was another one", got, do))

    def _explained(self, batch: Batch) -> Any:
        table = read_rows(batch.file, batch.start, batch.stop, self.part.layout.keep)
        try:
            made = self.part(table)
        except InputError as error:
            row, reason = error.row, getattr(error, "reason", "")
            if row is None or not reason:
                place = f"{batch.file.name}, rows {batch.start} to {batch.stop - 1} of the file"
                raise elsewhere(error, f"{place}: {error}") from None
            what = f"Row {batch.first + row} cannot be explained ({batch.file.place(batch.start + row)})"
            do = 'Impute or drop such rows before, or pass on_bad_rows="mark"'
            raise InputError(message(what, reason.replace(f"row {row}", f"row {batch.first + row}", 1), do)) from None
        return made.cast(self.part.schema)


def elsewhere(error: ExactshapError, text: str) -> ExactshapError:
    """Return the same error with a text that says where it was."""
    return type(error)(text)

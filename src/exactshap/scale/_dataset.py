"""Stream files through an explainer into files; killed runs can be resumed."""

from __future__ import annotations

import builtins
import functools
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exactshap._runtime.optional import require
from exactshap._runtime.progress import Progress, duration, progress_rows
from exactshap._runtime.types import Foreign, TableLike
from exactshap.errors import ExactshapError, ExplanationWarning, InputError, printable, warn
from exactshap.explainer import Explainer
from exactshap.frames.stored import (
    SourceFile,
    StoredFile,
    inspect,
    is_index,
    place_of,
    read_schema,
    warn_of_losses,
)
from exactshap.results.data import counted
from exactshap.scale._batches import Batch, Manifest, Work, check_place, check_run, check_there, cut
from exactshap.scale._partition import Partition, checked_batch_rows, named_columns, wanted_files
from exactshap.scale._statistics import GlobalImportance


@dataclass(frozen=True, repr=False)
class DatasetResult:
    """Hold the outcome of :func:`explain_dataset`.

    Attributes
    ----------
    destination : Path or None
        The folder of results, which readers of Parquet folders take as one table; None where no values were written.
    files : tuple of Path
        Its files, in the order of the rows.
    n_rows : int
        Rows in all.
    n_bad_rows : int
        Rows among them that could not be explained and are marked.
    n_resumed : int
        Rows that an earlier run had explained.
    seconds : float
        Wall time of this run.
    importance : GlobalImportance
        Mean and mean absolute values over all rows.
    max_residual : float
        Largest ``|residual|``, in the unit of the model output.
    """

    destination: Path | None
    files: tuple[Path, ...]
    n_rows: int
    n_bad_rows: int
    n_resumed: int
    seconds: float
    importance: GlobalImportance
    max_residual: float

    def __repr__(self) -> str:
        resumed = f", {self.n_resumed:,} of them by an earlier run" if self.n_resumed else ""
        where = "" if self.destination is None else f": {counted(len(self.files), 'file')} in {self.destination}"
        head = f"{self.n_rows:,} rows explained in {duration(self.seconds)}{resumed}{where}"
        return f"{printable(head)}\nlargest residual {self.max_residual:.2g}\n{self.importance!r}"


def explain_dataset(
    explainer: Explainer,
    source: TableLike,
    destination: str | os.PathLike[str] | None,
    *,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    batch_rows: int | None = None,
    resume: bool = True,
    on_bad_rows: str = "raise",
    index: Any = "shapley",
    order: int = 1,
    top_k: int | None = None,
    dtype: str = "float64",
    offset: str | None = None,
    filesystem: Foreign = None,
    map: Callable[..., Iterable[Any]] | None = None,
    progress: Progress = None,
) -> DatasetResult:
    """Explain Parquet or CSV files of any size into Parquet files.

    Parameters
    ----------
    explainer : Explainer
    source : path, sequence of paths, or pyarrow.dataset.Dataset
        ``.parquet``, ``.csv`` or ``.csv.gz`` files, folders of such files (in the order of their names; hidden ones are left out), or
        patterns such as ``rows/*/2024-*.parquet``. Addresses such as ``s3://bucket/rows`` are opened by pyarrow or fsspec. Columns of CSV files are text
        where the background holds text, whatever the cells look like.
    destination : path or None
        Folder of the results: new, empty, or that of the same run, which is then resumed. It must not be inside the source. None: no
        values are written, and the result has the importances over all rows only.
    keep : sequence of str, default=()
        Columns to copy to the results, such as identifiers, or keys in the names of folders (``year=2024``).
    drop : sequence of str, default=()
        Columns that are neither features nor kept. A pandas index (``__index_level_0__``) and keys of folders need not be named.
    batch_rows : int, default=None
        Rows of one batch, which is one file of the results; None: as many as a quarter of the explainer's ``memory_limit`` holds,
        at most 100,000. :meth:`Partition.plan` says what a run takes.
    resume : bool, default=True
        Go on with a run that was interrupted: results that are whole stay. A run that differs in the model, the background, a
        setting or an input is refused, and what differs is named. False refuses a folder that holds a run.
    on_bad_rows : {"raise", "mark"}, default="raise"
        See :class:`Partition`; the error names file, row group and row.
    index : str or Semivalue, default="shapley"
        Which value; see :func:`exactshap.semivalues.available`.
    order, top_k, dtype, offset
        As in :class:`Partition`: pairs, the largest values of each row, float32, the column of offsets.
    filesystem : file system of pyarrow or fsspec, default=None
        Where the source is; None infers it from the address, else this machine.
    map : callable, default=None
        An ordered map, such as ``executor.map`` of a process pool, on workers that see the same files. None: here, one by one.
    progress : bool, callable or None, default=None
        As in :class:`~exactshap.Explainer`; it counts rows.

    Returns
    -------
    result : DatasetResult
        ``destination``, a folder that readers of Parquet take as one table, and its ``files``, in the order of the rows; ``n_rows``,
        ``n_bad_rows`` (marked) and ``n_resumed`` among them (explained by an earlier run); ``seconds`` of this run;
        ``importance``, a :class:`GlobalImportance` over all rows; ``max_residual``, in the unit of the model output.

    Raises
    ------
    InputError
        If a file does not fit or has changed while it was read, a row cannot be explained, or the destination holds another run or is
        inside the source.
    OSError
        If a result cannot be written (a full disk); whole results stay, and the run can be resumed.

    Notes
    -----
    A result is written under another name and renamed, so that every file is whole; ``_manifest.json`` holds digests of every
    input, of model and background and of every finished result, the settings and the columns. A result that is not what was written is
    explained again, with a warning. A resumed run gives the same bytes as one that was never interrupted. Cost: that of the explainer,
    and reading every input once for its digest.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas
    >>> from sklearn.linear_model import LinearRegression
    >>> from exactshap import Explainer
    >>> X = pandas.DataFrame({"age": [1.0, 2.0, 4.0], "bmi": [3.0, 1.0, 2.0]})
    >>> explainer = Explainer(LinearRegression().fit(X, 2.0 * X["age"] + X["bmi"]), X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, destination = pathlib.Path(folder, "in.parquet"), pathlib.Path(folder, "out")
    ...     X.to_parquet(source)
    ...     result = explain_dataset(explainer, source, destination, batch_rows=2)
    ...     result.n_rows, len(result.files), list(pandas.read_parquet(destination).columns)[:2]
    (3, 2, ['phi_age', 'phi_bmi'])
    """
    started = time.perf_counter()
    run = builtins.map if map is None else map
    question = {"index": index, "order": order, "top_k": top_k, "dtype": dtype, "offset": offset}
    part = Partition(explainer, keep, on_bad_rows, drop=drop, **question)
    stored = wanted_files(part, source, filesystem)
    folder = None if destination is None else Path(destination)
    if destination is not None and "://" in os.fspath(destination):  # as a path it would be a local folder, too
        do = "Name a folder and copy it there, or map scale.Partition with an engine that writes there"
        raise InputError("Results are written to folders of this machine", f"Got {os.fspath(destination)!r}", do)
    if folder is not None:
        _refuse_inside(folder, source, stored, filesystem)
    # Checked before any input is read, as digests of large inputs take long.
    before = None if folder is None else check_place(folder, resume=resume)
    part = _typed(part, stored)
    # All files are checked first: one that does not fit must not end a run after hours.
    _check_schemas(part, stored)
    batch_rows = checked_batch_rows(part, batch_rows)
    files = list(run(functools.partial(inspect, types=part.csv_types), stored))
    manifest = None
    if folder is not None:
        # Another run may have begun in the folder while inputs were read.
        before = before or check_place(folder, resume=resume)
        manifest = Manifest(folder, _content(part, files, batch_rows), dict(before["outputs"] if before else {}))
        if before is not None:
            check_run(folder, before, manifest.content)
        manifest.write()
    batches = cut(files, batch_rows, manifest.outputs if manifest else {})
    # Absolute, as workers of the map may run in another folder.
    work = Work(part, None if folder is None else str(folder.absolute()))
    # One row of an earlier run is explained again: what no digest shows (budget, versions) would change its values.
    first = next(((batch, table) for batch in batches if (table := work.finished(batch)) is not None), None)
    if first is not None:
        work.check_again(*first)
    return _gathered(work, folder, batches, run, progress, started, manifest)


def _gathered(
    work: Work,
    folder: Path | None,
    batches: list[Batch],
    run: Callable,
    progress: Progress,
    started: float,
    manifest: Manifest | None,
) -> DatasetResult:
    arrow = require("pyarrow", "scale", purpose="Reading data")
    # Importances of no row: the start of the sum, and the result of a run without rows.
    total, resumed, changed = GlobalImportance.of(arrow.table(work.part.layout.marked(0))), 0, 0
    try:
        with progress_rows(progress, sum(batch.n_rows for batch in batches)) as report:
            # Added in the order of the batches, so that sums have the same bits for any map.
            for batch, done in zip(batches, run(work, batches), strict=True):
                total += done.importance
                resumed += batch.n_rows if done.was_there else 0
                changed += done.had_changed
                if manifest is not None:
                    manifest.add(batch.name, done.digest)
                report(total.n_rows + total.n_bad_rows)
    finally:
        if manifest is not None:
            manifest.write()
    # Checked again at the end: results of a file that changed during the run belong to no input.
    for file in {batch.file.name: batch.file for batch in batches}.values():
        file.check(finally_=True)
    if folder is not None:
        check_there(folder, batches)
    if changed:
        text = f"{counted(changed, 'result')} of {folder} differed from what had been written: explained again"
        warn(text, ExplanationWarning)
    return DatasetResult(
        destination=folder,
        files=() if folder is None else tuple(folder / batch.name for batch in batches),
        n_rows=total.n_rows + total.n_bad_rows,
        n_bad_rows=total.n_bad_rows,
        n_resumed=resumed,
        seconds=time.perf_counter() - started,
        importance=total,
        max_residual=total.max_residual,
    )


# -- before the first batch ------------------------------------------------------------------------------------------


def _refuse_inside(folder: Path, source: TableLike, files: list[StoredFile], filesystem: Foreign) -> None:
    """Refuse a folder of results among the inputs: the next run would read them."""
    if (place := place_of(source, folder / "part-0.parquet", filesystem)) is not None:
        got = f"Got {folder} in {place}"
        raise InputError("The destination is inside the source, which its files would join", got, "Name another folder")
    for file in files:
        if file.filesystem is None and Path(file.path).resolve().is_relative_to(folder.resolve()):
            got = f"Got {file.path} in {folder}"
            raise InputError("The source is inside the destination", got, "Name another folder for the results")


def _typed(part: Partition, files: list[StoredFile]) -> Partition:
    """Return the partition with the types of its kept columns. A key of folders may be missing in some of them."""
    arrow = require("pyarrow", "scale", purpose="Reading data")
    types: dict[str, Any] = {}
    for file in files if any(file.keys for file in files) else files[:1]:
        schema = read_schema(file, part.csv_types)
        for name in part.layout.keep:
            if name in schema.names and (name not in types or arrow.types.is_null(types[name])):
                types[name] = schema.types[schema.names.index(name)]
    return part.with_types(types)


def _check_schemas(part: Partition, files: list[StoredFile]) -> None:
    first, named = None, named_columns(part)
    warn_of_losses(files[0], part.csv_types, part.explainer.reader.traits.feature_names, part.layout.keep)
    for file in files:
        schema = read_schema(file, part.csv_types)
        for name in schema.names:
            if is_index(name) and name not in named:
                schema = schema.remove(schema.get_field_index(name))
        first = schema if first is None else first
        try:
            part(schema.empty_table())
        except ExactshapError as error:
            raise type(error)(f"{file.name} does not fit. {error}") from None
        if schema.names != first.names and not part.explainer.align:
            got = f"Got {schema.names}, in {files[0].name} {first.names}"
            raise InputError(f"{file.name} has other columns than {files[0].name}", got)
        for field in schema:
            _check_type(field, first.field(field.name) if field.name in first.names else field, file.name, files[0].name, part)


def _check_type(field: Any, before: Any, name: str, first: str, part: Partition) -> None:
    arrow = require("pyarrow", "scale", purpose="Reading data")
    kinds = [arrow.types.is_floating(one.type) or arrow.types.is_integer(one.type) for one in (field, before)]
    kept = field.name in part.layout.keep
    # A column of missing cells only has Arrow's type null, which fits any other.
    if field.type == before.type or field.name in part.drop or arrow.types.is_null(field.type):
        return
    if arrow.types.is_null(before.type) and (not kept or part.types[field.name] == field.type):
        return
    # Kept columns share one schema of results; features only have to stay numeric or non-numeric.
    if kept or kinds[0] != kinds[1]:
        got = f"Got {field.type}, in {first} {before.type}"
        raise InputError(f"Column {field.name!r} of {name} has another type", got, "Convert one of the files")
    # In single precision a number may fall on the other side of a split than in double.
    if arrow.float32() in (field.type, before.type):
        warn(f"column {field.name!r} is {field.type} in {name}, but {before.type} in {first}", ExplanationWarning)


def _content(part: Partition, files: list[SourceFile], batch_rows: int) -> dict[str, Any]:
    keys = {file.name: {"keys": dict(file.file.keys)} if file.file.keys else {} for file in files}
    return {
        "run": part.identity() | {"batch_rows": batch_rows},
        "schema": [[field.name, str(field.type)] for field in part.schema],
        "inputs": {file.name: {"sha256": file.digest, "rows": file.n_rows, **keys[file.name]} for file in files},
    }

"""Files in, files out: rows stream through an explainer batch by batch, and a run that was killed goes on where it was."""

from __future__ import annotations

import builtins
import functools
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.progress import Progress, progress_rows
from exactshap.errors import ExactshapError, ExplanationWarning, InputError, message, warn
from exactshap.frames.stored import SourceFile, find_files, inspect, read_schema
from exactshap.scale.files._batches import Batch, Work, cut, elsewhere
from exactshap.scale.files._manifest import check_destination, write_manifest
from exactshap.scale.files._result import DatasetResult
from exactshap.scale.partition import Partition
from exactshap.scale.statistics import GlobalImportance

if TYPE_CHECKING:
    from exactshap.explainer import Explainer

__all__ = ["explain_dataset"]

_MOST_ROWS = 100_000  # of a batch, unless asked for: more saves nothing
_COPIES = 6.0  # of a batch's cells in and out that are in memory at once: read, solved, certified, written


def explain_dataset(
    explainer: Explainer,
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    batch_rows: int | None = None,
    resume: bool = True,
    on_bad_rows: str = "raise",
    index: Any = "shapley",
    map: Callable[..., Iterable[Any]] | None = None,
    progress: Progress = None,
) -> DatasetResult:
    """Explain a file or a folder of Parquet or CSV files into a folder of Parquet files, whatever their size.

    Parameters
    ----------
    explainer : Explainer
    source : path
        A ``.parquet`` or ``.csv`` file, or a folder of such files (in the order of their names; hidden ones are left out).
    destination : path
        Folder of the results: new, empty, or that of the same run, which is then resumed.
    keep : sequence of str, default=()
        Columns to copy to the results, such as identifiers.
    drop : sequence of str, default=()
        Columns that are neither features nor kept.
    batch_rows : int, default=None
        Rows of one batch, which is one file of the results; None: as many as a quarter of the explainer's ``memory_limit`` holds,
        at most 100,000.
    resume : bool, default=True
        Go on with a run that was interrupted: results that are whole stay. A run that differs in the model, the background, a
        setting or an input is refused, and what differs is named. False refuses a folder that holds a run.
    on_bad_rows : {"raise", "mark"}, default="raise"
        See :class:`Partition`; the error names file, row group and row.
    index : str or Semivalue, default="shapley"
        Which value.
    map : callable, default=None
        An ordered map, such as ``executor.map`` of a process pool, on workers that see the same files. None: here, one by one.
    progress : bool, callable or None, default=None
        As in :class:`~exactshap.Explainer`; rows are counted.

    Returns
    -------
    result : DatasetResult
        Numbers of rows, seconds, importances over all rows, the largest residual, and the paths.

    Raises
    ------
    InputError
        If a file does not fit, a row cannot be explained, or the destination holds another run.
    OSError
        If a result cannot be written (a full disk); whole results stay, and the run can be resumed.

    Notes
    -----
    A result is written beside its place and renamed, so that every file is whole; ``_manifest.json`` holds digests of every
    input, of model and background, the settings and the columns. A resumed run gives the same bytes as one that was never
    interrupted. Cost: that of the explainer, and reading every input once for its digest.

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
    part = Partition(explainer, keep, on_bad_rows, drop=drop, index=index)
    paths = find_files(Path(source))
    names = _names(paths, Path(source))
    part = _typed(part, paths[0])
    _check_schemas(part, paths, names)
    batch_rows = _checked_batch_rows(part, batch_rows)
    files = list(run(functools.partial(inspect, keep=part.layout.keep), [str(path.absolute()) for path in paths], names))
    folder = Path(destination)
    content = _content(part, files, batch_rows)
    check_destination(folder, content, resume=resume)
    write_manifest(folder, content)
    batches = cut(files, batch_rows)
    work = Work(part, str(folder.absolute()))
    done = [batch for batch in batches if work.is_whole(batch)]
    if done:
        work.check_again(done[0])
    return _gathered(work, folder, batches, run, progress, started)


def _gathered(
    work: Work, folder: Path, batches: list[Batch], run: Callable, progress: Progress, started: float
) -> DatasetResult:
    """Run all batches and add up what they say."""
    total, resumed = _nothing(work.part), 0
    with progress_rows(progress, sum(batch.n_rows for batch in batches)) as report:
        for batch, (importance, was_there) in zip(batches, run(work, batches), strict=True):
            total += importance
            resumed += batch.n_rows if was_there else 0
            report(total.n_rows + total.n_bad_rows)
    return DatasetResult(
        destination=folder,
        files=tuple(folder / batch.name for batch in batches),
        n_rows=total.n_rows + total.n_bad_rows,
        n_bad_rows=total.n_bad_rows,
        n_resumed=resumed,
        seconds=time.perf_counter() - started,
        importance=total,
        max_residual=total.max_residual,
    )


def _nothing(part: Partition) -> GlobalImportance:
    return GlobalImportance.of(part.schema.empty_table())


# -- before the first batch ------------------------------------------------------------------------------------------


def _names(paths: list[Path], source: Path) -> list[str]:
    return [path.relative_to(source).as_posix() if source.is_dir() else path.name for path in paths]


def _typed(part: Partition, path: Path) -> Partition:
    """Return the partition with the types of its kept columns."""
    schema = read_schema(path, part.layout.keep)
    types = {name: schema.field(name).type for name in part.layout.keep if name in schema.names}
    return part.with_types(types)


def _check_schemas(part: Partition, paths: list[Path], names: list[str]) -> None:
    """See that every file fits the model and the first file, before any work; types are compared, as columns may be unnamed."""
    first = None
    for path, name in zip(paths, names, strict=True):
        schema = read_schema(path, part.layout.keep)
        first = schema if first is None else first
        try:
            part(schema.empty_table())
        except ExactshapError as error:
            raise elsewhere(error, f"{name} does not fit. {error}") from None
        if schema.names != first.names and not part.explainer.align:
            got = f"Got {schema.names}, in {names[0]} {first.names}"
            raise InputError(message(f"{name} has other columns than {names[0]}", got))
        for field in schema:
            _check_type(field, first.field(field.name) if field.name in first.names else field, name, names[0], part)


def _check_type(field: Any, before: Any, name: str, first: str, part: Partition) -> None:
    arrow = require("pyarrow", "scale", purpose="Reading data")
    kinds = [arrow.types.is_floating(one.type) or arrow.types.is_integer(one.type) for one in (field, before)]
    kept = field.name in part.layout.keep
    if field.type == before.type or field.name in part.drop or arrow.types.is_null(field.type):
        return
    if arrow.types.is_null(before.type) and not kept:
        return
    if kept or kinds[0] != kinds[1]:
        got = f"Got {field.type}, in {first} {before.type}"
        raise InputError(message(f"Column {field.name!r} of {name} has another type", got, "Convert one of the files"))
    if arrow.float32() in (field.type, before.type):
        warn(f"column {field.name!r} is {field.type} in {name}, but {before.type} in {first}", ExplanationWarning)


def _checked_batch_rows(part: Partition, batch_rows: int | None) -> int:
    if batch_rows is None:
        width = 8.0 * _COPIES * (part.explainer.reader.n_features + len(part.layout.keep) + len(part.layout.made))
        return int(max(1, min(_MOST_ROWS, part.explainer.memory_limit / 4 // width)))
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, (int, np.integer)) or batch_rows < 1:
        raise InputError(message("The 'batch_rows' parameter must be a positive int", f"Got {batch_rows!r}"))
    return int(batch_rows)


def _content(part: Partition, files: list[SourceFile], batch_rows: int) -> dict[str, Any]:
    return {
        "run": part.identity() | {"batch_rows": batch_rows},
        "schema": [[field.name, str(field.type)] for field in part.schema],
        "inputs": {file.name: {"sha256": file.digest, "rows": file.n_rows} for file in files},
    }

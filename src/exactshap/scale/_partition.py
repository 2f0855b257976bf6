"""Explain partitions of tables by one picklable function, for any engine."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.optional import require
from exactshap._runtime.types import Foreign, TableLike
from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean, rows_from
from exactshap.explainer import Explainer, Forecast, require_score
from exactshap.frames import Table, as_table, with_dtypes_of
from exactshap.frames.stored import StoredFile, find_files, first_rows, is_index
from exactshap.scale._columns import join_columns, layout_of
from exactshap.scale._pickled import PackedOnce, explainer_identity
from exactshap.scale._tables import (
    REFUSALS,
    as_frame,
    check_types,
    csv_types,
    explain_what_is_possible,
    first_refused,
    in_library_of,
)

_POLICIES = ("raise", "mark")
# Largest default number of rows of a batch: more saves nothing.
_MAX_BATCH_ROWS = 100_000
# Copies of a batch in memory at once: read, solved, certified, written.
_COPIES = 6.0
# Copies of its text, which is passed on as it is: 4,000 rows of 10,000 characters took 78 to 84 MiB.
_COPIES_OF_TEXT = 2.0


class Partition(PackedOnce):
    r"""Explain tables partition by partition, as a function that any engine maps.

    Values of a row depend on that row alone, bit for bit, however rows are partitioned. (``prediction`` is the model's own,
    and libraries of linear algebra may round it differently for other numbers of rows.)

    Parameters
    ----------
    explainer : Explainer
        Explainer of the rows. ``Explainer(..., align=True)`` reorders columns by name; otherwise another order is refused.
    keep : sequence of str, or mapping of str to type, default=()
        Columns to copy to the output, such as identifiers. With types ("int64", "string", or Arrow's own) they are in
        ``schema`` too.
    on_bad_rows : {"raise", "mark"}, default="raise"
        What to do with rows that the model refuses (missing values, categories it never saw): an error that names the row, or
        NaN in all its numbers and False in ``exact``.
    drop : sequence of str, default=()
        Columns that are neither features nor kept.
    index : str or Semivalue, default="shapley"
        Which value; see :func:`exactshap.semivalues.available`.
    order : int, default=1
        2 for pairs: their columns are called ``phi_<feature> & <feature>``.
    top_k : int, default=None
        Write the k values of each row that are largest in magnitude, as ``feature_1``, ``value_1``, ..., and the sum of all others as
        ``rest``, instead of one column for each feature.
    dtype : {"float64", "float32"}, default="float64"
        Of values and standard errors; baseline, prediction and residual stay float64.
    offset : str, default=None
        The column of offsets (log exposure, XGBoost's ``base_margin``), which is no feature; see the call of an
        :class:`~exactshap.Explainer`.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns and types of the output.
    meta : pandas.DataFrame
        The empty output, for Dask. Kept columns without a type are of dtype ``object``.

    Raises
    ------
    InputError, UnknownNameError
        If a setting is not known, or two columns of the output would have one name.

    Notes
    -----
    A call takes a pandas or polars DataFrame, an Arrow table or record batch, or a mapping of names to arrays, and returns the
    same kind: the kept columns, ``phi_<feature>`` (``phi_<output>_<feature>`` for several outputs), ``baseline``,
    ``prediction``, ``residual`` (each with ``_<output>``), ``exact`` and, for sampled values, ``se_<feature>``; all in the unit
    of the model output, float64 but for ``exact``. The cost is that of the explainer's call and a copy of the result.

    It is pickled once, as one block of bytes, and unpickled once per process, whatever the number of tasks.

    Examples
    --------
    >>> import pandas
    >>> from sklearn.linear_model import LinearRegression
    >>> from exactshap import Explainer
    >>> X = pandas.DataFrame({"age": [1.0, 2.0, 4.0], "bmi": [3.0, 1.0, 2.0]})
    >>> model = LinearRegression().fit(X, 2.0 * X["age"] + X["bmi"])
    >>> part = Partition(Explainer(model, X), keep=["id"])
    >>> list(part(X.assign(id=[7, 8, 9])).columns)
    ['id', 'phi_age', 'phi_bmi', 'baseline', 'prediction', 'residual', 'exact']
    """

    def __init__(
        self,
        explainer: Explainer,
        keep: Sequence[str] | Mapping[str, Any] = (),
        on_bad_rows: str = "raise",
        *,
        drop: Sequence[str] = (),
        index: Any = "shapley",
        order: int = 1,
        top_k: int | None = None,
        dtype: str = "float64",
        offset: str | None = None,
    ) -> None:
        if not isinstance(explainer, Explainer):
            got = f"Got {type(explainer).__name__}"
            raise InputTypeError("The 'explainer' parameter must be an Explainer", got, "Pass Explainer(model, background)")
        if on_bad_rows not in _POLICIES:
            raise UnknownNameError(f"Unknown policy on_bad_rows={on_bad_rows!r}", do=did_you_mean(on_bad_rows, _POLICIES))
        if isinstance(keep, str) or isinstance(drop, str):
            raise InputTypeError("`keep` and `drop` are lists of columns", "Got a single text", 'Pass keep=["id"]')
        if offset is not None:
            _check_offset(explainer, offset)
        self.explainer = copy.copy(explainer)
        self.explainer.progress = False  # the engine reports the progress
        self.types = dict(keep) if isinstance(keep, Mapping) else dict.fromkeys(keep)
        self.drop, self.on_bad_rows, self.index, self.order = tuple(drop), on_bad_rows, index, order
        self.offset = offset
        traits, columns = explainer.reader.traits, tuple(self.types)
        # By a forecast for a background row
        first = None if traits.background is None else traits.background.take(slice(0, 1)).native
        sampled = first is not None and not explainer.plan(first, index, order).exact
        self.layout = layout_of(traits, columns, sampled=sampled, order=order, top_k=top_k, dtype=dtype)
        self.csv_types = csv_types(columns, traits.background)

    def __call__(self, table: TableLike) -> Any:
        """Return a table's explanation as a table of the same kind."""
        return self.explained(table)[0]

    def explained(self, table: TableLike) -> tuple[Any, dict[str, np.ndarray]]:
        """Return a table's output, and every computed column with all its digits."""
        frame, restore = as_frame(table)
        whole = as_table(frame, allow_empty=True)
        columns = self._solve_all(self._features(whole), self._offsets(whole), whole)
        return restore(join_columns(frame, self.layout.keep, self.layout.written(columns))), columns

    def plan(self, source: TableLike, batch_rows: int | None = None, *, filesystem: Foreign = None) -> Forecast:
        """Forecast what :func:`explain_dataset` takes for files. Their first rows and their ends are read.

        Parameters
        ----------
        source, batch_rows, filesystem
            As in :func:`explain_dataset`.

        Returns
        -------
        forecast : Forecast
            ``seconds`` are those of explaining, without reading and writing; ``memory`` is that of one batch, and of reading the largest
            row group (``row_group``); ``block_rows`` are the rows of a batch.
        """
        head, n_rows, row_group = first_rows(wanted_files(self, source, filesystem), self.csv_types)
        rows = min(checked_batch_rows(self, batch_rows), n_rows)
        whole = as_table(head.take(np.arange(rows) % max(head.num_rows, 1)), allow_empty=True)
        features, offsets = self._typed(self._features(whole)), self._offsets(whole)
        one = self.explainer.plan(features.native, self.index, self.order, offset=offsets)
        # Columns that are dropped are read, too.
        text = max(0.0, head.nbytes / max(head.num_rows, 1) - 8.0 * head.num_columns)
        batch = rows * (_bytes_of_a_row(self) + _COPIES_OF_TEXT * text)
        memory, seconds = one.memory + batch + row_group, one.seconds * n_rows / max(rows, 1)
        sizes = {"float": 4.0, "bool": 1.0}  # others take 8 bytes: numbers, and names in dictionaries at most
        result = n_rows * sum(sizes.get(kind, 8.0) for _, kind in self.layout.kinds)
        return replace(one, seconds=seconds, memory=memory, result=result, block_rows=rows, row_group=row_group)

    @property
    def writes_all(self) -> bool:
        """Whether the output holds every value with all its digits."""
        return self.layout.top_k is None and self.layout.dtype == "float64"

    def iterate(self, tables: Iterable[Any]) -> Iterator[Any]:
        """Yield each table's output in turn. Spark's ``mapInPandas`` and ``mapInArrow`` call it so.

        Parameters
        ----------
        tables : iterable of tables

        Yields
        ------
        table : of the kind that came in
        """
        for table in tables:
            yield self(table)

    @property
    def schema(self) -> Any:
        unknown = [name for name, kind in self.types.items() if kind is None]
        if unknown:
            what, got = "A schema needs the types of the kept columns", f"Got none for {', '.join(map(repr, unknown))}"
            raise InputError(what, got, f"Pass keep={{{unknown[0]!r}: 'int64'}}, or another of Arrow's types")
        return self._schema()

    def _schema(self) -> Any:
        arrow = require("pyarrow", "scale", purpose="A schema")
        kept = [
            (name, arrow.type_for_alias(kind) if isinstance(kind, str) else kind or arrow.null())
            for name, kind in self.types.items()
        ]
        computed = [(name, arrow.type_for_alias(kind)) for name, kind in self.layout.kinds]
        return arrow.schema([*kept, *computed])

    @property
    def meta(self) -> Any:
        require("pandas", "frames", purpose="An empty frame for Dask")
        return self._schema().empty_table().to_pandas()

    def with_types(self, types: Mapping[str, Any]) -> Partition:
        """Return the same partition with the types of its kept columns."""
        part = copy.copy(self)
        part.types = {name: types.get(name, known) for name, known in self.types.items()}
        return part

    def identity(self) -> dict[str, Any]:
        """Return what the output depends on, by name."""
        index = getattr(self.index, "name", self.index)
        settings = {"keep": list(self.layout.keep), "drop": list(self.drop), "on_bad_rows": self.on_bad_rows}
        written = {"order": self.order, "top_k": self.layout.top_k, "dtype": self.layout.dtype}
        return explainer_identity(self.explainer, index) | settings | written | {"offset": self.offset}

    def __repr__(self) -> str:
        return f"Partition({self.explainer!r}, keep={list(self.types)}, on_bad_rows={self.on_bad_rows!r})"

    # -- rows --------------------------------------------------------------------------------------------------------

    def _features(self, whole: Table) -> Table:
        """Return the columns of the model: by name, or as an array if it was fitted without names."""
        names, reader = whole.names or (), self.explainer.reader
        outside = {*self.drop, *(() if self.offset is None else (self.offset,))}
        for name in (*self.types, *outside):
            if name not in names:
                raise UnknownNameError(f"The table has no column {name!r}", do=did_you_mean(name, names))
        own = set(reader.traits.feature_names)
        left_out = {name for name in names if name in outside or ((name in self.types or is_index(name)) and name not in own)}
        background = reader.traits.background
        has_names = reader.traits.fitted_names is not None or (background is not None and background.is_frame)
        unknown = [name for name in names if name not in left_out and name not in own]
        if has_names and unknown and own.issubset(names):
            what, got = "The table has columns that are no features", f"Got {', '.join(map(repr, unknown[:10]))}"
            raise UnknownNameError(what, got, "Name them in drop=, or in keep= to have them in the results")
        table = whole.select([j for j, name in enumerate(names) if name not in left_out])
        table = in_library_of(table, background) if has_names else table
        check_types(table, background)
        if has_names:
            return table
        given = tuple(reader.traits.feature_names)
        if given != tuple(f"x{j}" for j in range(len(given))) and table.names != given:
            what, got = "The columns are not those of the explainer", f"Got {list(table.names or ())}"
            raise UnknownNameError(what, got, f"Pass {list(given)}, in this order")
        return as_table(table.numeric(), allow_empty=True)

    def _typed(self, features: Table) -> Table:
        """Return rows in the background's dtypes: whole numbers of a CSV file are float64, which CatBoost takes for no category."""
        background = self.explainer.reader.traits.background
        if background is None or not features.is_frame:
            return features
        names, own = background.names or (), features.names or ()
        if names != own:  # selecting copies the background
            if set(names) != set(own):
                return features
            background = background.select([names.index(name) for name in own])
        return with_dtypes_of(background, features, narrow=True)

    def _offsets(self, whole: Table) -> np.ndarray | None:
        if self.offset is None:
            return None
        return np.asarray(whole.select([(whole.names or ()).index(self.offset)]).numeric(what="offset")[:, 0], float)

    def _solve_all(self, features: Table, offsets: np.ndarray | None, whole: Table) -> dict[str, np.ndarray]:
        def solve(rows: np.ndarray) -> dict[str, np.ndarray]:
            # Typed row by row in the end, as one bad cell changes the dtype of its column
            chosen = self._typed(features if len(rows) == features.n_rows else features.take(rows))
            of_rows = None if offsets is None else offsets[rows]
            with rows_from(int(rows[0]) if rows.size else 0):
                return self.layout.columns(self.explainer(chosen.native, self.index, self.order, offset=of_rows))

        try:
            return solve(np.arange(features.n_rows))
        except REFUSALS as error:
            # Without rows: a table with wrong columns raises here, whatever its rows.
            solve(np.arange(0))
            if self.on_bad_rows == "raise":
                row: int | None = getattr(error, "row", None)
                reason: Exception = error
                if row is None:
                    row, reason = first_refused(solve, features, error, offsets)
                if row is None:
                    raise
                raise self._refused(whole, row, reason) from None
        columns, has_types = self.layout.marked(features.n_rows), self.explainer.reader.traits.background is not None
        for rows, part in explain_what_is_possible(solve, features, offsets, has_types=has_types):
            for name, values in part.items():
                columns[name][rows] = values
        return columns

    def _refused(self, whole: Table, row: int, reason: Exception) -> InputError:
        """Return the error of a row, which is named by its kept cells too, such as " (id=17)"."""
        cells = whole.take([row])
        texts = [f"{name}={cells.column((whole.names or ()).index(name))[0]!s:.60}" for name in self.layout.keep]
        called = f" ({', '.join(texts)})" if texts else ""
        do = 'Impute or drop such rows before, or pass on_bad_rows="mark"'
        error = InputError(f"Row {row} of the partition{called} cannot be explained", f"{reason}", do, row=row)
        error.reason = f"{reason}"  # type: ignore[attr-defined]
        return error


def checked_batch_rows(part: Partition, batch_rows: int | None) -> int:
    """Return the number of rows of a batch; None means what a quarter of the explainer's ``memory_limit`` holds."""
    if batch_rows is None:
        return int(max(1, min(_MAX_BATCH_ROWS, part.explainer.memory_limit / 4 // _bytes_of_a_row(part))))
    return check_count("batch_rows", batch_rows)


def _bytes_of_a_row(part: Partition) -> float:
    return 8.0 * _COPIES * (part.explainer.reader.traits.n_features + len(part.layout.keep) + len(part.layout.kinds))


def named_columns(part: Partition) -> set[str | None]:
    """Return the columns that a run names: kept ones, dropped ones, the offset, features."""
    return {*part.layout.keep, *part.drop, part.offset, *part.explainer.reader.traits.feature_names}


def wanted_files(part: Partition, source: TableLike, filesystem: Foreign) -> list[StoredFile]:
    """Return a source's files, with the folder keys that the run names as their only keys."""
    named, files = named_columns(part), find_files(source, filesystem)
    return [replace(file, keys=tuple(pair for pair in file.keys if pair[0] in named)) for file in files]


def _check_offset(explainer: Explainer, offset: str) -> None:
    """Refuse an ``offset`` that is no column or a feature, and explainers of a unit without offsets."""
    if not isinstance(offset, str):
        do = "Make them a column of every table: offset='log_exposure'"
        raise InputTypeError("`offset` must name a column", f"Got {type(offset).__name__}", do)
    if offset in explainer.reader.traits.feature_names:
        do = "Fit the model without that column"
        raise InputError(f"Column {offset!r} is a feature of the model", "Got it as offset= too", do)
    require_score(explainer.reader)

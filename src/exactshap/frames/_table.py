"""Hold rows as the user passed them, and convert cells to float64.

Integers that float64 cannot represent, text and dates are refused; missing cells become NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, InputTypeError, printable

# Up to here every integer is a float64.
EXACT_INTEGERS = 2.0**53
# Longest label of a row in a message, in characters.
_LABEL_CHARACTERS = 60
# The name of a column that comes from an unnamed Series of texts.
UNNAMED = "text"


@dataclass(frozen=True, eq=False)
class Table:
    """Hold rows as the user passed them.

    Use :meth:`numeric` for a float64 array, :meth:`take` for rows, :meth:`hybrid` for hand-masked rows. ``as_table`` makes one.

    Attributes
    ----------
    native : DataFrame, array or CSR matrix
        What the model's own ``predict`` receives.
    names : tuple of str or None
        Column names as text; None for arrays.
    n_rows, n_columns : int
    was_column : bool
        Whether a list or Series of texts was passed, which a function of such rows receives again.

    Examples
    --------
    >>> from exactshap.frames import as_table
    >>> table = as_table([[1.0, 2.0], [3.0, 4.0]])
    >>> table.take(slice(1, 2)).numeric()
    array([[3., 4.]])
    """

    native: Any
    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int
    was_column: bool = False

    def __getstate__(self) -> dict[str, Any]:
        # A copy, as other threads may add cached properties meanwhile
        return {name: value for name, value in dict(self.__dict__).items() if name != "_readable"}

    @functools.cached_property
    def is_frame(self) -> bool:
        return self.names is not None

    @functools.cached_property
    def is_sparse(self) -> bool:
        return is_sparse(self.native)

    @functools.cached_property
    def is_plain(self) -> bool:
        """Say whether this is a pandas frame of NumPy's numeric dtypes."""
        return bool(self.dtypes) and all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in set(self.dtypes))

    @functools.cached_property
    def has_one_dtype(self) -> bool:
        """Say whether this is such a frame of one dtype."""
        return self.is_plain and len(set(self.dtypes)) == 1

    @functools.cached_property
    def dtypes(self) -> tuple[Any, ...]:
        """Return the dtypes of a pandas frame's columns, none for other tables."""
        library, schema = self._schema
        return schema if library == "pandas" else ()

    @functools.cached_property
    def _schema(self) -> tuple[str, Any]:
        """Return a frame's library and dtypes, as that library compares them: narwhals does not know all sets of categories."""
        if not self.is_frame:
            return "", ()
        library = type(self.native).__module__.partition(".")[0]
        return library, self.native.schema if library in ("polars", "pyarrow") else tuple(self.native.dtypes)

    @functools.cached_property
    def categorical(self) -> tuple[int, ...]:
        """Return a frame's columns of a categorical dtype. Ordered ones are narwhals' Enum."""
        if not self.is_frame or self.is_plain:
            return ()
        dtypes = self.readable().schema.values()
        return tuple(j for j, dtype in enumerate(dtypes) if str(dtype).startswith(("Categorical", "Enum")))

    def readable(self) -> Any:
        """Return a frame for narwhals, with text as names of columns."""
        return self._readable

    @functools.cached_property
    def _readable(self) -> Any:
        # Once, as narwhals compares all names each time: loops over columns would take their square
        native = self.native
        # Columns are looked up by ``names``, while pandas' labels may be numbers or tuples
        if self._labels is not None:
            native = native.set_axis(list(self.names or ()), axis=1)
        return narwhals().from_native(native, eager_only=True)

    def labelled(self, native: TableLike) -> Any:
        """Return such a frame with the user's labels of columns."""
        return native if self._labels is None else native.set_axis(self._labels, axis=1)

    @functools.cached_property
    def _labels(self) -> Any:
        """Return a pandas frame's labels if they are not text, else None."""
        if not self.is_frame or not self.dtypes or tuple(self.native.columns) == self.names:
            return None
        return self.native.columns

    def of_same_columns(self, native: TableLike, n_rows: int) -> Table:
        return Table(native, self.names, n_rows, self.n_columns)

    def take(self, rows: Any) -> Table:
        """Return some rows in the same container. ``rows`` is a slice or an integer array."""
        if isinstance(rows, slice) and rows.indices(self.n_rows) == (0, self.n_rows, 1):
            return self
        # A view, as no code writes to the user's rows
        if isinstance(rows, slice) and (not self.is_frame or self.dtypes):
            part = self.native.iloc[rows] if self.is_frame else self.native[rows]
            return self.of_same_columns(part, part.shape[0])
        # Sparse and other rows are taken by number
        rows = np.arange(self.n_rows)[rows] if isinstance(rows, slice) else np.asarray(rows)
        if not self.is_frame:
            return self.of_same_columns(self.native[rows], len(rows))
        if self.dtypes:  # pandas: narwhals takes ten times as long
            return self.of_same_columns(self.native.iloc[rows], len(rows))
        return self.of_same_columns(self.readable()[rows.tolist(), :].to_native(), len(rows))

    def copy(self) -> Table:
        """Return a copy of the rows."""
        # Arrow tables cannot be written to
        own = getattr(self.native, "copy", None) or getattr(self.native, "clone", None)
        is_array = not self.is_frame and not self.is_sparse
        native = np.array(self.native) if is_array else self.native if own is None else own()
        return Table(native, self.names, self.n_rows, self.n_columns, self.was_column)

    def as_it_is(self) -> Any:
        """Return the rows without columns that they get or replace later. Cells are not copied."""
        if self.dtypes:
            return self.native.copy(deep=False)
        return self.native.clone() if self.is_frame and hasattr(self.native, "clone") else self.native

    def select(self, columns: Sequence[int]) -> Table:
        if not self.is_frame:
            native = self.native[:, list(columns)]
            return Table(native, None, self.n_rows, len(columns))
        names = tuple(self.names[j] for j in columns)  # type: ignore[index]
        native = self.native.iloc[:, list(columns)] if self.dtypes else self.readable().select(list(names)).to_native()
        return Table(native, names, self.n_rows, len(names))

    def column(self, j: int) -> np.ndarray:
        """Return one column as a one-dimensional array of its own dtype."""
        if self.is_sparse:
            return np.asarray(self.native[:, [j]].toarray()[:, 0])
        if not self.is_frame:
            return np.asarray(self.native[:, j])
        series = self.readable()[self.names[j]]  # type: ignore[index]
        if getattr(series.dtype, "time_zone", None):  # times as people write them there, where NumPy has those of Greenwich
            series = series.dt.replace_time_zone(None)
        return _cells_of(series)

    def numeric(
        self, *, what: str = "X", absent: float = 0.0, categories: bool = False, names: Sequence[str] | None = None
    ) -> np.ndarray:
        """Return a read-only float64 array of shape (n_rows, n_columns). NaN stays; text and dates are refused by column.

        ``absent`` is the value of cells that a sparse matrix does not store. With ``categories``, those of numbers are numbers, as for
        models that know no categories. ``names`` are those of the columns of an array.
        """
        if self.is_sparse:
            # Cells that are not stored are 0 for most models, but missing for XGBoost
            numbers = numeric_array(self.native.toarray(), what)
            return numbers if absent == 0.0 else np.where(stored_mask(self.native), numbers, absent)
        if not self.is_frame:
            return numeric_array(self.native, what, names)
        # Wide integers may have lost digits: then each column is checked separately
        if self.is_plain and (values := plain_numbers(self.native, self.dtypes)) is not None:
            return values
        frame = self.readable()  # once, as it costs as much as a column of a few hundred rows
        columns = [numeric_column(frame[name], what, categories) for name in self.names or ()]
        return np.stack(columns, axis=1) if columns else np.empty((self.n_rows, 0))

    def finite(self, what: str, owner: str, *, names: tuple[str, ...] | None = None) -> np.ndarray:
        """Return the rows as float64; refuse NaN and infinity.

        In scikit-learn's words, with row and column. ``names`` are those of the columns of an array, ``owner`` is the model.
        """
        values = self.numeric(what=what, categories=True)
        if not np.isfinite(values).all():
            i, j = (int(position) for position in np.argwhere(~np.isfinite(values))[0])
            kind = "NaN" if np.isnan(values[i, j]) else "infinity or a value too large for dtype('float64')"
            label = self.label(j) if names is None or self.is_frame else f"column {names[j]!r}"
            raise InputError(
                f"Input {what} contains {kind} (first at row {i}, {label})",
                f"{owner} does not accept missing or infinite values",
                "Impute them, or explain the Pipeline that does",
                row=i if what == "X" else None,
            )
        return values

    def numbers(self, columns: list[int]) -> np.ndarray | None:
        """Return some columns as numbers; None if one holds text or dates."""
        try:
            if self.is_frame and len(columns) == 1:
                return numeric_column(self.readable()[self.names[columns[0]]], "X").reshape(-1, 1)  # type: ignore[index]
            return self.select(columns).numeric()
        except (InputError, InputTypeError):
            return None

    def in_double(self) -> Table:
        """Return single-precision columns in double precision. Models compute in the precision of their input."""
        if not self.is_frame:
            return Table(self.numeric(), None, self.n_rows, self.n_columns)
        if self.dtypes and np.float32 not in self.dtypes:
            return self
        nw = narwhals()
        frame = self.readable().with_columns(nw.selectors.by_dtype(nw.Float32).cast(nw.Float64))
        return replace(self, native=self.labelled(frame.to_native()))

    def label(self, j: int) -> str:
        """Return the name of column ``j`` for messages."""
        return f"column {self.names[j]!r}" if self.names is not None else f"column {j}"

    def row_label(self, i: int) -> str:
        """Return the name of row ``i`` for messages. It includes the pandas label, unless that is the number."""
        index: Any = self.native.index if self.dtypes else None
        # Labels 0, 1, ... are the numbers of the rows
        if index is None or (type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1):
            return f"row {i}"
        return f"row {i} (label {printable(label_text(index[i]))[:_LABEL_CHARACTERS]})"

    def stacks_with(self, other: Table) -> bool:
        """Say whether the two can be stacked without changing a cell."""
        # Frames of different dtypes would be converted to a common one, or refused
        if self.is_frame or other.is_frame:
            return bool(self._schema == other._schema)
        return bool(self.native.dtype == other.native.dtype)

    def hybrid(self, other: Table, mask: np.ndarray, cells: np.ndarray | None = None) -> Table:
        """Return rows with some columns from here and the rest from ``other``.

        The columns from here have ``mask`` (n_columns,) True. Row i of the rest is row i of ``other``, or with ``cells`` (n_rows, n_columns) its row ``cells[i, j]`` in column j.
        The result is of the same kind as this table.
        """
        mask = np.asarray(mask, bool)
        if self.is_sparse:
            return self._sparse_hybrid(other, mask, cells)
        if not self.is_frame:
            outside = other.native if cells is None else np.take_along_axis(np.asarray(other.native), cells, axis=0)
            return Table(np.where(mask[None, :], self.native, outside), None, self.n_rows, self.n_columns)
        if self.dtypes and other.dtypes:
            return self._pandas_hybrid(other, mask, cells)
        here = self.readable()
        rest = [(j, name) for j, name in enumerate(self.names or ()) if not mask[j]]
        of = {j: other if cells is None else other.select([j]).take(cells[:, j]) for j, _ in rest}
        columns = [of[j].series_like(here, j if cells is None else 0, name) for j, name in rest]
        # Whole columns: their dtype, categories and gaps stay
        native = self.labelled(here.with_columns(*columns).to_native())
        return Table(native, self.names, self.n_rows, self.n_columns)

    def _pandas_hybrid(self, other: Table, mask: np.ndarray, cells: np.ndarray | None) -> Table:
        """Mix frames of pandas without a block for each column, which steps would go through one by one."""
        here, there = self.native, other.native
        if cells is None and self.has_one_dtype and self.dtypes == other.dtypes:
            values = np.where(mask, here.to_numpy(), there.to_numpy())
            native = type(here)(values, columns=here.columns, index=here.index, copy=False)
            return self.of_same_columns(native, self.n_rows)
        native = here.copy(deep=False)
        for j in np.flatnonzero(~mask):
            column = there.iloc[:, j].array
            # Whole columns: their dtype, categories and gaps stay
            native.isetitem(j, column if cells is None else column.take(cells[:, j]))
        return self.of_same_columns(native, self.n_rows)

    def _sparse_hybrid(self, other: Table, mask: np.ndarray, cells: np.ndarray | None) -> Table:
        columns = np.broadcast_to(mask, (self.n_rows, self.n_columns))
        if cells is None:
            return Table(sparse_hybrid(self.native, other.native, columns), None, self.n_rows, self.n_columns)
        native = self.native
        for j in np.flatnonzero(~mask):  # each column has its own rows
            here = np.ones(columns.shape, bool)
            here[:, j] = False
            native = sparse_hybrid(native, other.native[cells[:, j]], here)
        return Table(native, None, self.n_rows, self.n_columns)

    def series_like(self, frame: TableLike, j: int, name: str) -> Any:
        if self.is_frame:
            here = self.readable()
            # Between libraries only cells can be converted, not dtypes
            if here.implementation is frame.implementation:
                return here[name]
        return narwhals().new_series(name, self.column(j), backend=frame.implementation)

    def repeat(self, times: int) -> Table:
        """Repeat every row: 0, 0, 1, 1, ..."""
        return self.take(np.repeat(np.arange(self.n_rows), times))

    def tile(self, times: int) -> Table:
        """Return the whole table ``times`` times: 0, 1, 0, 1, ..."""
        return self.take(np.tile(np.arange(self.n_rows), times))


def label_text(label: object) -> str:
    """Return a row's label as text; a tuple, of a MultiIndex, without signs of Python.

    >>> label_text(7), label_text(("north", np.int64(7)))
    ('7', 'north, 7')
    """
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def with_unique_index(frame: TableLike) -> Any:
    """Return a pandas frame with numbers instead of repeated labels, which hybrid rows inherit.

    Models that align rows by label refuse repeated ones.

    >>> import pandas as pd
    >>> with_unique_index(pd.DataFrame({"age": [40, 50]}, index=[7, 7])).index.tolist()
    [0, 1]
    """
    return frame if getattr(getattr(frame, "index", None), "is_unique", True) else frame.reset_index(drop=True)


def narwhals() -> Any:
    """Return the stable interface of narwhals, imported on first use."""
    import narwhals.stable.v2 as nw

    return nw


def numeric_array(array: np.ndarray, what: str, names: Sequence[str] | None = None) -> np.ndarray:
    """Return an array of numbers, or of objects that are numbers, as float64."""
    if array.dtype.kind in "fiub":
        return _exact_float64(array, what)
    if array.dtype.kind == "O":
        labels = range(array.shape[1]) if names is None else map(repr, names)
        columns = [_numeric_object(column, f"column {label}", what) for label, column in zip(labels, array.T, strict=True)]
        return np.stack(columns, axis=1)
    raise _not_numeric(array.dtype, "the array", what)


def plain_numbers(frame: TableLike, dtypes: Sequence[np.dtype]) -> np.ndarray | None:
    """Return a pandas frame of NumPy dtypes as float64, or None if integers may be inexact."""
    values = np.array(frame.to_numpy(dtype=np.float64), order="C")
    if any(dtype.kind in "iu" and dtype.itemsize == 8 for dtype in set(dtypes)):
        wide = [j for j, dtype in enumerate(dtypes) if dtype.kind in "iu" and dtype.itemsize == 8]
        if np.abs(values[:, wide]).max(initial=0.0) >= EXACT_INTEGERS:
            return None
    return values


def _cells_of(series: TableLike) -> np.ndarray:
    """Return the cells of a narwhals Series. Missing cells of Arrow's dictionaries would get the last category (pyarrow 26)."""
    if series.implementation.is_pyarrow() and str(series.dtype).startswith(("Categorical", "Enum")):
        native = series.to_native()
        return np.asarray(native.cast(native.type.value_type).to_numpy())
    cells = np.asarray(series.to_numpy())
    # polars' structs and arrays of one length have a second axis there
    return cells if cells.ndim == 1 else np.fromiter(series.to_list(), object, len(series))


def numeric_column(series: TableLike, what: str, categories: bool = False) -> np.ndarray:
    """Return a narwhals Series of numbers as float64, with NaN for missing cells."""
    dtype = series.dtype
    if dtype.is_numeric() or str(dtype) == "Boolean":
        if dtype.is_integer():
            # Missing cells are dropped first, as they would turn integers into floats before the check
            whole = _exact_float64(series.drop_nulls().to_numpy(), f"{what} column {series.name!r}")
            if len(whole) == len(series):
                return whole
        if str(dtype).startswith("Decimal"):  # as text, since Arrow's own way to float64 is off in the last bit
            series = series.cast(narwhals().String)
        values = series.cast(narwhals().Float64).to_numpy()
        return np.asarray(values, float)
    # A column of missing cells may have any dtype
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if str(dtype) in ("Object", "Unknown") or (categories and str(dtype).startswith(("Categorical", "Enum"))):
        return _numeric_object(np.asarray(_cells_of(series), object), f"column {series.name!r}", what)
    raise _not_numeric(dtype, f"column {series.name!r}", what, _example(series.to_list()))


def _numeric_object(values: np.ndarray, where: str, what: str) -> np.ndarray:
    missing = np.array([v is None or type(v).__name__ == "NAType" for v in values], bool)
    bad = [v for v, gone in zip(values, missing, strict=True) if not gone and not _is_real(v)]
    if bad:
        raise _not_numeric(type(bad[0]).__name__, where, what, _example([None if _is_real(v) else v for v in values]))
    for v in values:
        # Python's integers are unbounded: each is compared with its float64
        if isinstance(v, (int, np.integer)) and int(float(v)) != int(v):
            raise _too_large(f"{what} {where}", v)
    return np.where(missing, np.nan, values).astype(float)


def is_missing(value: object) -> bool:
    """Say whether a cell is None, NaN, a missing date or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing("NaN")
    (True, True, False)
    """
    # NA is recognised by name, without pandas, and first, as comparisons with it have no truth value. NaN and NaT differ from themselves.
    # A vector in a cell compares cell by cell
    return value is None or type(value).__name__ == "NAType" or (getattr(value, "ndim", 0) == 0 and bool(value != value))


def _is_real(value: object) -> bool:
    return isinstance(value, (int, float, Decimal, np.number, np.bool_)) and not isinstance(value, np.complexfloating)


def _too_large(what: str, largest: Any) -> InputError:
    return InputError(
        f"`{what}` holds integers beyond 2^53 that float64 cannot represent", f"Largest {largest}", "Scale or encode them"
    )


def _exact_float64(array: np.ndarray, what: str) -> np.ndarray:
    # Aligned, as kernels require; numbers of a file may not be
    values = array.astype(np.float64, copy=not array.flags.aligned)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        limit = 2**53
        # int(), as the magnitude of the smallest int64 is no int64. Integers beyond the limit may be exact, too
        if max(abs(int(array.max())), abs(int(array.min()))) > limit and not np.array_equal(values.astype(array.dtype), array):
            raise _too_large(what, array.max())
    return values


def _example(cells: Sequence[Any]) -> str:
    """Return the first cell that no number can be read from, which may be one among many, or else the first one.

    >>> _example(["19", None, "fifty", "7"]), _example(["19", "7"]), _example([None, "n/a"])
    (" such as 'fifty' in row 2", " such as '19' in row 0", " such as 'n/a' in row 1")
    """
    present = [(row, cell) for row, cell in enumerate(cells) if not is_missing(cell)] or [(0, cells[0])]
    row, cell = next((pair for pair in present if not _reads_as_number(pair[1])), present[0])
    return f" such as {cell!r:.60} in row {row}"


def _reads_as_number(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def _not_numeric(dtype: Any, where: str, what: str, example: str = "") -> Exception:
    # The words of a cell say nothing about its kind: "Full-time" is no time
    text, got = str(dtype), f"Got {dtype}{example}"
    if "complex" in text:
        return InputError("Complex data not supported", f"Got dtype {text} in `{what}`")
    if any(word in text.lower() for word in ("date", "time", "duration", "period")):
        return InputTypeError(
            f"In `{what}`, {where} holds dates or times",
            got,
            "Convert it to a number, or explain the Pipeline that does",
        )
    return InputError(
        f"In `{what}`, {where} holds text or other non-numeric values",
        got,
        "Encode it or explain the Pipeline that does",
    )


def is_sparse(data: TableLike) -> bool:
    return type(data).__module__.startswith("scipy.sparse")


def stored_mask(matrix: TableLike) -> np.ndarray:
    """Return which cells (n_rows, n_columns) of a CSR matrix are stored, explicit zeros included."""
    stored = np.zeros(matrix.shape, bool)
    stored[np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices] = True
    return stored


def sparse_hybrid(here: TableLike, other: TableLike, columns: np.ndarray) -> Any:
    """Return CSR rows with cells of ``here`` or, where ``columns`` is False, ``other``.

    Explicit zeros stay stored, as XGBoost distinguishes them from cells that are not.
    """
    from scipy import sparse

    parts = []
    for matrix, wanted in ((here, columns), (other, ~columns)):
        entries = matrix.tocoo()
        # By stored entries, so that explicit zeros stay stored
        keep = wanted[entries.row, entries.col]
        parts.append((entries.data[keep], entries.row[keep], entries.col[keep]))
    data, rows, cols = (np.concatenate(pair) for pair in zip(*parts, strict=True))
    # from entries, as that constructor keeps explicit zeros; there are no duplicates that it would add up
    return sparse.csr_matrix((data, (rows, cols)), shape=here.shape)

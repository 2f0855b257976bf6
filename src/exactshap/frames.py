"""The border: whatever table comes in becomes a :class:`Table`; nothing else in the package knows pandas or polars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.errors import InputError, InputTypeError, UnknownNameError, message

__all__ = ["Table", "as_table", "check_columns"]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as the user passed them, with what readers need to know about them.

    Use :meth:`numeric` for a float64 array, :meth:`take` for rows, :meth:`hybrid` for hand-masked rows. Made by :func:`as_table`.

    Attributes
    ----------
    native : DataFrame or array
        It goes to the model's own ``predict`` untouched.
    names : tuple of str or None
        Column names; None for arrays.
    n_rows, n_columns : int

    Examples
    --------
    >>> table = as_table([[1.0, 2.0], [3.0, 4.0]])
    >>> table.take(slice(1, 2)).numeric()
    array([[3., 4.]])
    """

    native: Any
    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int

    @property
    def is_frame(self) -> bool:
        return self.names is not None

    def take(self, rows: Any) -> Table:
        """Return the rows of a slice or an integer array, in the same kind of container."""
        rows = np.arange(self.n_rows)[rows] if isinstance(rows, slice) else np.asarray(rows)
        native = (
            self.native[rows]
            if not self.is_frame
            else _narwhals().from_native(self.native, eager_only=True)[rows.tolist(), :].to_native()
        )
        return Table(native, self.names, len(rows), self.n_columns)

    def copy(self) -> Table:
        """Return the same rows in memory of their own."""
        own = getattr(self.native, "copy", None) or getattr(self.native, "clone", None)  # arrow tables cannot be written to
        native = np.array(self.native) if not self.is_frame else self.native if own is None else own()
        return Table(native, self.names, self.n_rows, self.n_columns)

    def select(self, columns: Sequence[int]) -> Table:
        """Return some columns, in the given order."""
        if not self.is_frame:
            native = self.native[:, list(columns)]
            return Table(native, None, self.n_rows, len(columns))
        names = tuple(self.names[j] for j in columns)  # type: ignore[index]
        native = _narwhals().from_native(self.native, eager_only=True).select(list(names)).to_native()
        return Table(native, names, self.n_rows, len(names))

    def column(self, j: int) -> np.ndarray:
        """Return one column as a one-dimensional array, of whatever dtype it has."""
        if not self.is_frame:
            return np.asarray(self.native[:, j])
        return _narwhals().from_native(self.native, eager_only=True)[self.names[j]].to_numpy()  # type: ignore[index]

    def numeric(self, *, what: str = "X") -> np.ndarray:
        """Return a float64 array of shape (n_rows, n_columns); NaN stays, text and dates are refused by column."""
        if not self.is_frame:
            return _numeric_array(self.native, what)
        columns = [_numeric_column(self._series(j), what) for j in range(self.n_columns)]
        return np.stack(columns, axis=1) if columns else np.empty((self.n_rows, 0))

    def _series(self, j: int) -> Any:
        return _narwhals().from_native(self.native, eager_only=True)[self.names[j]]  # type: ignore[index]

    def label(self, j: int) -> str:
        """Return how to name column ``j`` in a message."""
        return f"column {self.names[j]!r}" if self.names is not None else f"column {j}"

    def hybrid(self, other: Table, mask: np.ndarray) -> Table:
        """Return rows that take the columns where ``mask`` (n_columns,) is True from here and the rest from ``other``.

        Both tables need the same number of rows. The result is of the same kind as this table.
        """
        mask = np.asarray(mask, bool)
        if not self.is_frame:
            native = np.where(mask[None, :], self.native, other.native)
            return Table(native, None, self.n_rows, self.n_columns)
        here = _narwhals().from_native(self.native, eager_only=True)
        outside = [other.series_like(here, j, name) for j, name in enumerate(self.names or ()) if not mask[j]]
        native = here.with_columns(*outside).to_native()  # whole columns: their dtype, categories and gaps stay
        return Table(native, self.names, self.n_rows, self.n_columns)

    def series_like(self, frame: Any, j: int, name: str) -> Any:
        """Return column ``j`` as a narwhals Series of the library of a narwhals frame: as it is, or rebuilt from its cells."""
        nw = _narwhals()
        if self.is_frame:
            here = nw.from_native(self.native, eager_only=True)
            if here.implementation is frame.implementation:
                return here[name]
        return nw.new_series(name, self.column(j), backend=frame.implementation)

    def repeat(self, times: int) -> Table:
        """Return every row ``times`` times in a row: 0, 0, 1, 1, ..."""
        return self.take(np.repeat(np.arange(self.n_rows), times))

    def tile(self, times: int) -> Table:
        """Return the whole table ``times`` times: 0, 1, 0, 1, ..."""
        return self.take(np.tile(np.arange(self.n_rows), times))


def _narwhals() -> Any:
    import narwhals.stable.v2 as nw

    return nw


_TABLE = "Pass an array of shape (n_rows, n_features) or a DataFrame"
_NAMES_SHOWN = 12


def as_table(data: Any, *, what: str = "X", allow_empty: bool = False) -> Table:
    """Return ``data`` as a :class:`Table`, or say what is wrong with it.

    Parameters
    ----------
    data : array, list of lists, pandas, polars or pyarrow table, or Table
    what : str, default="X"
        How messages name it.
    allow_empty : bool, default=False
        Whether no rows are fine.

    Returns
    -------
    table : Table

    Raises
    ------
    InputError, InputTypeError
        If it is no table of two dimensions with at least one column (and row), in scikit-learn's words.

    Examples
    --------
    >>> table = as_table([[1.0, 2.0], [3.0, 4.0]])
    >>> table.n_rows, table.n_columns, table.names
    (2, 2, None)
    """
    if isinstance(data, Table):
        return data
    if data is None:
        raise InputTypeError(message(f"`{what}` must be a table", "Got None", _TABLE))
    _refuse_sparse(data, what)
    is_frame = hasattr(data, "columns") or hasattr(data, "column_names")
    table = _frame_table(data, what) if is_frame else _array_table(data, what)
    if table.n_columns == 0:
        raise InputError(
            message(f"Found array `{what}` with 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required")
        )
    if table.n_rows == 0 and not allow_empty:
        raise InputError(
            message(f"Found array `{what}` with 0 sample(s) (shape=(0, {table.n_columns})) while a minimum of 1 is required")
        )
    return table


def _refuse_sparse(data: Any, what: str) -> None:
    from scipy import sparse

    if sparse.issparse(data):
        gib = float(np.prod(data.shape)) * 8 / 2**30
        raise InputTypeError(
            message(
                f"Sparse input is not supported by `{what}`",
                f"Got {type(data).__name__}",
                f"Call .toarray() (would need {gib:.2g} GiB)",
            )
        )


def _brief(value: Any) -> str:
    """Return a word or two for something that is no table."""
    return f"{value!r}"[:60] if isinstance(value, (str, int, float)) else f"an object of {type(value).__name__}"


def _frame_table(data: Any, what: str) -> Table:
    nw = _narwhals()
    _refuse_repeated(list(data.column_names if hasattr(data, "column_names") else data.columns), what)
    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError as error:
        if callable(getattr(data, "collect", None)):
            raise InputTypeError(
                message(f"`{what}` is not read yet", f"Got {type(data).__name__}", "Call .collect()")
            ) from None
        raise InputTypeError(
            message(f"`{what}` is not a table that can be read", f"Got {type(data).__name__}: {error}")
        ) from None
    except Exception as error:  # narwhals' own class for duplicate names; its name differs between versions
        raise InputError(message(f"`{what}` cannot be read", f"{error}", "Feature names must be unique")) from None
    _refuse_sparse_columns(data, what)
    names = list(frame.columns)
    if any(not isinstance(name, str) for name in names):
        raise InputTypeError(
            message(
                "Feature names must be strings",
                f"Got {sorted({type(n).__name__ for n in names})}",
                "Rename with X.columns = X.columns.astype(str)",
            )
        )
    return Table(data, tuple(names), frame.shape[0], len(names))


def _refuse_repeated(names: list[Any], what: str) -> None:
    seen: set[Any] = set()
    repeated = next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]
    if repeated is not None:
        got = f"{repeated!r} occurs {names.count(repeated)} times"
        raise InputError(message(f"Feature names of `{what}` must be unique", got, "Drop or rename the repeated columns"))


def _refuse_sparse_columns(data: Any, what: str) -> None:
    """Refuse pandas' sparse columns: models take such a frame for a sparse matrix."""
    dtypes = getattr(data, "dtypes", ())
    sparse = [name for name, dtype in zip(data.columns, dtypes, strict=False) if type(dtype).__name__ == "SparseDtype"]
    if sparse:
        got = f"Got {len(sparse)} sparse columns, the first is {sparse[0]!r}"
        raise InputTypeError(message(f"Sparse input is not supported by `{what}`", got, "Pass X.sparse.to_dense()"))


def _array_table(data: Any, what: str) -> Table:
    if np.ma.is_masked(data):
        raise InputError(message(f"`{what}` has masked cells", "NumPy drops their mask", "Pass data.filled(np.nan)"))
    if callable(getattr(data, "detach", None)):  # a tensor that may record gradients, or lie on another device
        data = data.detach().cpu()
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise InputError(message(f"`{what}` must be a rectangular table", f"{error}")) from None
    if array.ndim == 1 and array.dtype == object and any(isinstance(row, (list, tuple, np.ndarray)) for row in array):
        raise InputError(message(f"`{what}` must be a rectangular table", "Got rows of different lengths"))
    if array.ndim == 0:
        raise InputTypeError(message(f"`{what}` must be a table", f"Got {_brief(data)}", _route(data)))
    if array.ndim != 2:
        hint = "Pass one row per line"
        if array.ndim == 1:
            series = hasattr(data, "iloc")
            row, column = ("X.iloc[[0]]", "series.to_frame()") if series else ("array.reshape(1, -1)", "array.reshape(-1, 1)")
            hint = f"Reshape your data using {row} if it is one row, or {column} if it is one column"
        raise InputError(
            message(f"Expected 2D array for `{what}`, got {array.ndim}D array instead", f"Its shape is {array.shape}", hint)
        )
    if not array.dtype.isnative:  # bytes in the other order, which XGBoost takes for other numbers
        array = array.astype(array.dtype.newbyteorder("="))
    return Table(array, None, *array.shape)


def _route(data: Any) -> str:
    """Return what to pass instead of something that holds rows but is no table."""
    if isinstance(data, dict):
        return "Pass a DataFrame: pandas.DataFrame([row]) of one row, pandas.DataFrame(columns) of columns"
    if isinstance(held := getattr(data, "data", None), np.ndarray) and held.ndim == 2:  # shap.kmeans, shap.maskers.Independent
        weights = ", and background_weights=object.weights" if hasattr(data, "weights") else ""
        return f"Pass the rows that it holds: object.data{weights}"
    return _TABLE


def _numeric_array(array: np.ndarray, what: str) -> np.ndarray:
    if array.dtype.kind in "fiub":
        return _exact_float64(array, what)
    if array.dtype.kind == "O":
        columns = [_numeric_object(array[:, j], f"column {j}", what) for j in range(array.shape[1])]
        return np.stack(columns, axis=1)
    raise _not_numeric(array.dtype, "the array", what)


def _numeric_column(series: Any, what: str) -> np.ndarray:
    dtype = series.dtype
    if dtype.is_numeric() or str(dtype) == "Boolean":
        if dtype.is_integer():
            whole = _exact_float64(series.drop_nulls().to_numpy(), f"{what} column {series.name!r}")
            if len(whole) == len(series):
                return whole
        values = series.cast(_narwhals().Float64).to_numpy()
        return np.asarray(values, float)
    if series.null_count() == len(series):  # whatever dtype a library gives to a column of gaps
        return np.full(len(series), np.nan)
    if str(dtype) in ("Object", "Unknown"):
        return _numeric_object(np.asarray(series.to_numpy(), object), f"column {series.name!r}", what)
    raise _not_numeric(f"{dtype} such as {series.drop_nulls()[0]!r:.60}", f"column {series.name!r}", what)


def _numeric_object(values: np.ndarray, where: str, what: str) -> np.ndarray:
    missing = np.array([v is None or type(v).__name__ == "NAType" for v in values], bool)
    bad = [v for v, gone in zip(values, missing, strict=True) if not gone and not _is_real(v)]
    if bad:
        raise _not_numeric(f"{type(bad[0]).__name__} such as {bad[0]!r}", where, what)
    for v in values:
        if isinstance(v, (int, np.integer)) and int(float(v)) != int(v):
            raise _too_large(f"{what} {where}", v)
    return np.where(missing, np.nan, values).astype(float)


def _is_real(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) and not isinstance(value, np.complexfloating)


def _too_large(what: str, largest: Any) -> InputError:
    return InputError(
        message(
            f"`{what}` holds integers beyond 2^53 that float64 cannot represent", f"Largest {largest}", "Scale or encode them"
        )
    )


def _exact_float64(array: np.ndarray, what: str) -> np.ndarray:
    values = array.astype(np.float64, copy=False)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        limit = 2**53
        if max(abs(int(array.max())), abs(int(array.min()))) > limit and not np.array_equal(values.astype(array.dtype), array):
            raise _too_large(what, array.max())
    return values


def _not_numeric(dtype: Any, where: str, what: str) -> Exception:
    text = str(dtype)
    if "complex" in text:
        return InputError(message("Complex data not supported", f"Got dtype {text} in `{what}`"))
    if any(word in text.lower() for word in ("date", "time", "duration", "period")):
        return InputTypeError(
            message(
                f"In `{what}`, {where} holds dates or times",
                f"Got {text}",
                "Convert it to a number, or explain the Pipeline that does",
            )
        )
    return InputError(
        message(
            f"In `{what}`, {where} holds text or other non-numeric values",
            f"Got {text}",
            "Encode it or explain the Pipeline that does",
        )
    )


def check_columns(
    table: Table, names: Sequence[str] | None, n_features: int, *, owner: str, what: str = "X", align: bool = False
) -> Table:
    """Check a table against the columns a model was fitted with, in scikit-learn's words; reorder only on request.

    Parameters
    ----------
    table : Table
    names : sequence of str or None
        What the model was fitted with.
    n_features : int
    owner : str
        The model's name, for messages.
    what : str, default="X"
        The table's.
    align : bool, default=False
        Reorder the columns of a frame by name instead of refusing another order.

    Returns
    -------
    table : Table

    Raises
    ------
    UnknownNameError
        If names differ.
    InputError
        If the number of columns does.

    Examples
    --------
    >>> check_columns(as_table([[1.0, 2.0]]), None, 2, owner="SVR").n_columns
    2
    """
    if table.is_frame and names is not None:
        wanted, got = list(names), list(table.names or ())
        if wanted != got:
            if align and sorted(wanted) == sorted(got):
                return table.select([got.index(name) for name in wanted])
            raise UnknownNameError(_name_message(wanted, got, what))
        return table
    if table.n_columns != n_features:
        raise InputError(
            message(f"{what} has {table.n_columns} features, but {owner} is expecting {n_features} features as input")
        )
    return table


def _name_message(wanted: list[str], got: list[str], what: str) -> str:
    known, here = set(wanted), set(got)
    missing, extra = [n for n in wanted if n not in here], [n for n in got if n not in known]
    text = f"The feature names of `{what}` should match those that were passed during fit."
    if not missing and not extra:
        comma = "," if len(wanted) > _NAMES_SHOWN else ""
        return (
            f"{text} Feature names must be in the same order as they were in fit. Got {_listed(got)}."
            f" Pass {_selection(wanted, what)}{comma} or align=True."
        )
    do = f"Pass {_selection(wanted, what)}" if not missing else "Pass exactly the columns that the model was fitted with"
    return f"{text} Missing: {_listed(missing)}; unexpected: {_listed(extra)}. {do}."


def _listed(names: list[str]) -> str:
    """Return names as a list, the first of them if they are many.

    >>> _listed(["a", "b"]), _listed(["a"] * 13)[-16:]
    ("['a', 'b']", "'a', ... 1 more]")
    """
    more = len(names) - _NAMES_SHOWN
    return f"{names}" if more <= 0 else f"{names[:_NAMES_SHOWN]}"[:-1] + f", ... {more} more]"


def _selection(wanted: list[str], what: str) -> str:
    """Return code that takes the wanted columns; few names are written out."""
    return f"{what}[{wanted}]" if len(wanted) <= _NAMES_SHOWN else f"{what}[names], with the names in the order of the fit"

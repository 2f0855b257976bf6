"""Turn input into a :class:`Table`, or refuse it with what to pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.optional import FRAME_LIBRARIES, INSTALL_FRAMES, first_installed, require
from exactshap._runtime.types import TableLike
from exactshap.errors import ExplanationWarning, InputError, InputTypeError, MissingDependencyError, message, warn
from exactshap.frames._table import UNNAMED, Table, is_sparse, narwhals

_INPUTS = (
    "Of several inputs, pass one table: np.hstack([input.reshape(len(input), -1) for input in inputs]), and a function that cuts it again;"
    " groups= makes a player of each input; or name their axes with shape= (docs/functions.md)"
)
# On platforms where long doubles are doubles, they are read as doubles.
_DOUBLE_BYTES = 8
_TABLE = "Pass an array of shape (n_rows, n_features) or a DataFrame"


def as_table(data: TableLike, *, what: str = "X", allow_empty: bool = False) -> Table:
    """Return ``data`` as a :class:`Table`, or refuse it under the name ``what``.

    >>> table = as_table([[1.0, 2.0], [3.0, 4.0]])
    >>> table.n_rows, table.n_columns, table.names
    (2, 2, None)
    """
    if isinstance(data, Table):
        return data
    if data is None:
        raise InputTypeError(f"`{what}` must be a table", "Got None", _TABLE)
    # A quick path for plain arrays, not for subclasses, which may hold more than numbers
    if type(data) is np.ndarray:
        table = _rectangle(data, data, what)
    elif is_sparse(data):
        table = Table(data.tocsr(), None, *data.shape)
    else:
        is_frame = hasattr(data, "columns") or hasattr(data, "column_names")
        table = _frame_table(data, what) if is_frame else _array_table(data, what)
    if table.n_columns == 0:
        raise InputError(f"Found array `{what}` with 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required")
    if table.n_rows == 0 and not allow_empty:
        raise InputError(
            f"Found array `{what}` with 0 sample(s) (shape=(0, {table.n_columns})) while a minimum of 1 is required"
        )
    return table


def _frame_table(data: TableLike, what: str) -> Table:
    # The usual case, without narwhals
    if type(data).__module__.partition(".")[0] == "pandas" and type(data).__name__ == "DataFrame":
        names, n_rows = tuple(_as_text(data.columns.tolist())), len(data)
        _refuse_repeated(list(names), what)
    else:
        _refuse_repeated(list(data.column_names if hasattr(data, "column_names") else data.columns), what)
        listed, n_rows = _columns_and_rows(data, what)
        names = tuple(_as_text(listed))
    table = Table(data, names, n_rows, len(names))
    # Compiled code reads numbers in the machine's byte order only
    if any(isinstance(dtype, np.dtype) and not dtype.isnative for dtype in set(table.dtypes)):
        foreign = {
            name: dtype.newbyteorder("=")
            for name, dtype in data.dtypes.items()
            if isinstance(dtype, np.dtype) and not dtype.isnative
        }
        _warn_of_byte_order(what, "X.astype({name: dtype.newbyteorder('=') for name, dtype in X.dtypes.items()})")
        table = Table(data.astype(foreign), names, n_rows, len(names))
    if not table.is_plain:
        _refuse_sparse_columns(data, what)
    return table


def _warn_of_byte_order(what: str, do: str) -> None:
    """Warn that a library such as XGBoost may misread numbers in the other byte order."""
    text = f"Numbers of `{what}` have their bytes in the other order, and were converted"
    warn(message(text, "XGBoost predicts from such bytes as they are", f"Predict and explain {do}"), ExplanationWarning)


def _as_text(labels: list[Any]) -> list[str]:
    """Return labels as text: integers of ``pd.DataFrame(array)``, tuples of a MultiIndex as XGBoost joins them.

    >>> _as_text(["age", 3, ("sepal", "length")])
    ['age', '3', 'sepal length']
    """
    return [" ".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in labels]


def _columns_and_rows(data: TableLike, what: str) -> tuple[list[Any], int]:
    try:
        frame = narwhals().from_native(data, eager_only=True)
    except TypeError as error:
        for name in ("collect", "compute"):  # of polars, of Dask
            if callable(getattr(data, name, None)):
                what, got = f"`{what}` is not read yet", f"Got {type(data).__module__}.{type(data).__name__}"
                raise InputTypeError(what, got, f"Call .{name}()") from None
        raise InputTypeError(f"`{what}` is not a table that can be read", f"Got {type(data).__name__}: {error}") from None
    except Exception as error:  # narwhals' own class for duplicate names; its name differs between versions
        raise InputError(f"`{what}` cannot be read", f"{error}", "Feature names must be unique") from None
    return list(frame.columns), frame.shape[0]


def _refuse_repeated(names: list[Any], what: str) -> None:
    if len(set(names)) == len(names):
        return
    repeated, times = Counter(names).most_common(1)[0]
    got = f"{repeated!r} occurs {times} times"
    raise InputError(f"Feature names of `{what}` must be unique", got, "Drop or rename the repeated columns")


def _refuse_sparse_columns(data: TableLike, what: str) -> None:
    """Refuse pandas' sparse columns: models take such a frame for a sparse matrix."""
    dtypes = getattr(data, "dtypes", ())
    sparse = [name for name, dtype in zip(data.columns, dtypes, strict=False) if type(dtype).__name__ == "SparseDtype"]
    if sparse:
        got = f"Got {len(sparse)} sparse columns, the first is {sparse[0]!r}"
        raise InputTypeError(
            f"Sparse input is not supported by `{what}`",
            got,
            f"Pass {what}.astype({{name: dtype.subtype for name, dtype in {what}.dtypes.items() if hasattr(dtype, 'subtype')}})",
        )


def _array_table(data: TableLike, what: str) -> Table:
    if np.ma.is_masked(data):
        raise InputError(f"`{what}` has masked cells", "NumPy drops their mask", "Pass data.filled(np.nan)")
    # A tensor may record gradients or be on another device
    if callable(getattr(data, "detach", None)):
        data = data.detach().cpu()
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise InputError(f"`{what}` must be a rectangular table", f"{error}", _INPUTS) from None
    if array.dtype.kind in "US" and not hasattr(data, "dtype"):
        # NumPy writes numbers next to text as text, which scikit-learn and CatBoost read as they are
        cells = np.asarray(data, object)
        array = array if all(isinstance(cell, str) for cell in cells.flat) else cells
    return _rectangle(array, data, what)


def _rectangle(array: np.ndarray, data: TableLike, what: str) -> Table:
    """Return the table of a two-dimensional array; ``data`` is its source."""
    # NumPy makes a one-dimensional array of lists of different lengths
    if array.ndim == 1 and array.dtype == object and any(isinstance(row, (list, tuple, np.ndarray)) for row in array):
        raise InputError(f"`{what}` must be a rectangular table", "Got rows of different lengths")
    if array.ndim == 1 and len(array) and all(isinstance(row, dict) for row in array):
        return _frame_table(_frame_of_records(list(array), what), what)
    # A list or Series of texts is one column
    if array.ndim == 1 and len(array) and all(isinstance(cell, str) for cell in array):
        table = as_table(data.to_frame(data.name or UNNAMED) if hasattr(data, "to_frame") else array.reshape(-1, 1), what=what)
        return replace(table, was_column=True)
    if array.ndim == 0:
        brief = repr(data)[:60] if isinstance(data, (str, int, float)) else f"an object of {type(data).__name__}"
        raise InputTypeError(f"`{what}` must be a table", f"Got {brief}", _route(data))
    if array.ndim != 2:
        hint = (
            f"Pass {what}.reshape(len({what}), -1), for a model with a function that undoes it: "
            f"lambda rows: predict(rows.reshape(-1, {', '.join(map(str, array.shape[1:]))})); "
            "or name its axes with shape=, and groups= makes players of windows, channels or variables (docs/functions.md)"
        )
        if array.ndim == 1:
            series = hasattr(data, "iloc")
            row, column = ("X.iloc[[0]]", "series.to_frame()") if series else ("array.reshape(1, -1)", "array.reshape(-1, 1)")
            hint = f"Reshape your data using {row} if it is one row, or {column} if it is one column"
        raise InputError(
            f"Expected 2D array for `{what}`, got {array.ndim}D array instead", f"Its shape is {array.shape}", hint
        )
    if not array.dtype.isnative:
        array = _converted(array, array.dtype.newbyteorder("="))
        _warn_of_byte_order(what, "X.astype(X.dtype.newbyteorder('='))")
    # Only for extended precision, as long doubles are doubles elsewhere
    if array.dtype.type is np.longdouble and array.dtype.itemsize > _DOUBLE_BYTES and not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
        text = f"Long doubles of `{what}` do not lie row by row, and were copied"
        warn(
            message(text, "XGBoost reads other cells there", "Predict and explain np.ascontiguousarray(X)"), ExplanationWarning
        )
    return Table(array, None, *array.shape)


def _converted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return an array in another dtype. Rows and columns repeated by ``np.broadcast_to`` stay so."""
    if 0 not in array.strides:
        return array.astype(dtype)
    # A stride of 0 repeats one cell along its axis: only that cell is converted
    once = array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)]
    return np.broadcast_to(once.astype(dtype), array.shape)


def _frame_of_records(records: list[dict], what: str) -> Any:
    """Return a list of dicts, such as a service's records, as a frame."""
    keys = list(records[0])
    odd = next((i for i, record in enumerate(records) if set(record) != set(keys)), None)
    if odd is not None:
        raise InputError(
            f"The rows of `{what}` must have the same keys",
            f"Row {odd} differs in {min(map(str, set(records[odd]) ^ set(keys)))!r}",
            "Write missing cells as None, or pass pandas.DataFrame(rows), which does",
        )
    library = first_installed(FRAME_LIBRARIES)
    if library is None:
        raise MissingDependencyError("Rows as dicts need pandas, polars or pyarrow", do=INSTALL_FRAMES)
    module = require(library, "frames", purpose="Reading rows as dicts")
    return module.Table.from_pylist(records) if library == "pyarrow" else module.DataFrame(records)


def _route(data: TableLike) -> str:
    if isinstance(data, dict):
        return "Pass a DataFrame: pandas.DataFrame([row]) of one row, pandas.DataFrame(columns) of columns"
    # shap.kmeans, shap.maskers.Independent
    if isinstance(held := getattr(data, "data", None), np.ndarray) and held.ndim == 2:
        weights = ", and background_weights=object.weights" if hasattr(data, "weights") else ""
        return f"Pass the rows that it holds: object.data{weights}"
    return _TABLE

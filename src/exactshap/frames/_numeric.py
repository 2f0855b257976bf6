"""Cells as float64, sparse ones too: integers that it cannot represent, text and dates are refused, missing cells become NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, InputTypeError, message

# Below, every integer is a float64.
EXACT_INTEGERS = 2.0**53


def narwhals() -> Any:
    """Return the stable interface of narwhals, imported on first use."""
    import narwhals.stable.v2 as nw

    return nw


def numeric_array(array: np.ndarray, what: str) -> np.ndarray:
    """Return an array of numbers, or of objects that are numbers, as float64."""
    if array.dtype.kind in "fiub":
        return _exact_float64(array, what)
    if array.dtype.kind == "O":
        columns = [_numeric_object(array[:, j], f"column {j}", what) for j in range(array.shape[1])]
        return np.stack(columns, axis=1)
    raise _not_numeric(array.dtype, "the array", what)


def plain_numbers(frame: TableLike, dtypes: Sequence[np.dtype]) -> np.ndarray | None:
    """Return a pandas frame of NumPy dtypes as float64, or None. None where integers may be too large to be exact."""
    values = np.array(frame.to_numpy(dtype=np.float64), order="C")
    if any(dtype.kind in "iu" and dtype.itemsize == 8 for dtype in set(dtypes)):
        wide = [j for j, dtype in enumerate(dtypes) if dtype.kind in "iu" and dtype.itemsize == 8]
        if np.abs(values[:, wide]).max(initial=0.0) >= EXACT_INTEGERS:
            return None
    return values


def numeric_column(series: TableLike, what: str) -> np.ndarray:
    """Return a narwhals Series of numbers as float64; what is missing becomes NaN."""
    dtype = series.dtype
    if dtype.is_numeric() or str(dtype) == "Boolean":
        if dtype.is_integer():
            whole = _exact_float64(series.drop_nulls().to_numpy(), f"{what} column {series.name!r}")
            if len(whole) == len(series):
                return whole
        values = series.cast(narwhals().Float64).to_numpy()
        return np.asarray(values, float)
    # Whatever dtype a library gives to a column of gaps
    if series.null_count() == len(series):
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


def _is_real(value: object) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) and not isinstance(value, np.complexfloating)


def _too_large(what: str, largest: Any) -> InputError:
    return InputError(
        message(
            f"`{what}` holds integers beyond 2^53 that float64 cannot represent", f"Largest {largest}", "Scale or encode them"
        )
    )


def _exact_float64(array: np.ndarray, what: str) -> np.ndarray:
    # Kernels read whole numbers, a file's may lie anywhere
    values = array.astype(np.float64, copy=not array.flags.aligned)
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


def is_sparse(data: TableLike) -> bool:
    """Say whether rows are a sparse matrix or array of SciPy."""
    return type(data).__module__.startswith("scipy.sparse")


def to_csr(matrix: TableLike) -> Any:
    """Return the matrix by rows, its explicit zeros kept."""
    return matrix if matrix.format == "csr" else matrix.tocsr()


def stored_mask(matrix: TableLike) -> np.ndarray:
    """Return which cells of a CSR matrix are stored, explicit zeros included. The mask has shape (n_rows, n_columns)."""
    stored = np.zeros(matrix.shape, bool)
    stored[np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices] = True
    return stored


def sparse_hybrid(here: TableLike, other: TableLike, columns: np.ndarray) -> Any:
    """Return CSR rows that mix cells of ``here`` and ``other``.

    Those of ``here`` stand where ``columns`` (n_rows, n_columns) is True.

    A cell keeps whether it is stored, which decides what XGBoost makes of it.
    """
    from scipy import sparse

    parts = []
    for matrix, wanted in ((here, columns), (other, ~columns)):
        entries = matrix.tocoo()
        keep = wanted[entries.row, entries.col]
        parts.append((entries.data[keep], entries.row[keep], entries.col[keep]))
    data, rows, cols = (np.concatenate(pair) for pair in zip(*parts, strict=True))
    # by way of the entries: the constructor adds up duplicates, of which there are none, and keeps explicit zeros
    return sparse.csr_matrix((data, (rows, cols)), shape=here.shape)

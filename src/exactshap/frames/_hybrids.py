"""Build hybrid rows: cells of one table inside a coalition, another's outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap.errors import InputTypeError
from exactshap.frames._table import Table, narwhals, sparse_hybrid


def hybrid_cells(here: Table, other: Table, rows: np.ndarray, references: np.ndarray, columns: np.ndarray) -> Table | None:
    """Return hybrid rows with one coalition each; None for tables that do not mix cell by cell.

    Arrays and sparse matrices mix, pandas frames of numbers, and frames of one library with equal dtypes, which are kept.

    ``rows`` and ``references`` (n,) are row numbers of ``here`` and of ``other``; ``columns`` (n, n_columns) says which cells come from ``here``.

    >>> from exactshap.frames import as_table
    >>> here, other = as_table([[1.0, 2.0]]), as_table([[3.0, 4.0]])
    >>> hybrid_cells(here, other, np.array([0]), np.array([0]), np.array([[True, False]])).native
    array([[1., 4.]])
    """
    if here.is_sparse and other.is_sparse:
        mixed = sparse_hybrid(here.native[rows], other.native[references], np.asarray(columns, bool))
        return Table(mixed, None, len(rows), here.n_columns)
    both_arrays = not (here.is_frame or other.is_frame or here.is_sparse or other.is_sparse)
    mine, theirs = (here.native, other.native) if both_arrays else (_numbers(here), _numbers(other))
    if mine is None or theirs is None:
        return hybrid_frame(here, other, rows, references, columns) if here.stacks_with(other) else None
    try:
        values = np.where(columns, _rows(mine, rows), _rows(theirs, references))
    except TypeError as error:  # dates next to numbers
        got = f"Got dtypes {mine.dtype} and {theirs.dtype}"
        raise InputTypeError("Cells of `X` and of `background` do not mix", got, "Pass cells of one kind") from error
    # They are stacked with rows of this kind and only compared with each other, so rounding does no harm
    if values.dtype.kind == mine.dtype.kind == "f":
        values = values.astype(mine.dtype, copy=False)
    return _of_numbers(here, values, rows)


def _rows(numbers: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return some rows; ``take`` would first copy a whole frame, which is stored by column."""
    return numbers.take(chosen, axis=0) if numbers.flags.c_contiguous else numbers[chosen]


def _numbers(table: Table) -> np.ndarray | None:
    """Return the numbers of an array or pandas frame of one dtype without a copy, else None."""
    if table.is_sparse:
        return None
    if not table.is_frame:
        return table.native if table.native.dtype.kind in "fiub" else None
    return table.native.to_numpy() if table.has_one_dtype else None


def _of_numbers(kind: Table, values: np.ndarray, rows: np.ndarray) -> Table:
    if not kind.is_frame:
        return Table(values, None, *values.shape)
    frame = kind.native
    native = type(frame)(values, columns=frame.columns, index=frame.index.take(rows), copy=False)
    return kind.of_same_columns(native, len(values))


def hybrid_frame(here: Table, other: Table, rows: np.ndarray, references: np.ndarray, columns: np.ndarray) -> Table:
    """Return hybrid rows of two frames of one library, as :func:`hybrid_cells` takes them.

    Frames are gathered column by column, so that dtypes, categories and gaps stay; rows of pandas keep the labels of ``here``. Frames
    of pandas with other dtypes have those that pandas combines both to.

    >>> import pandas
    >>> from exactshap.frames import as_table
    >>> here, other = (as_table(pandas.DataFrame({"a": [n], "b": [text]}, [n])) for n, text in ((1, "u"), (2, "v")))
    >>> mixed = hybrid_frame(here, other, np.array([0]), np.array([0]), np.array([[True, False]])).native
    >>> mixed.to_numpy().tolist(), mixed.index.tolist()
    ([[1, 'v']], [1])
    """
    # Rows that hold the chosen ones, and their places there, so that few rows are copied
    (top, inside), (below, outside) = (
        (table, chosen) if len(chosen) >= table.n_rows else (table.take(chosen), np.arange(len(chosen)))
        for table, chosen in ((here, rows), (other, references))
    )
    both, places = _stacked(top, below), np.where(columns, inside[:, None], top.n_rows + outside[:, None])
    if here.dtypes:  # in less than half of narwhals' time for the rows of a certificate
        cells = {j: both.iloc[:, j].array.take(places[:, j]) for j in range(here.n_columns)}
        native = type(here.native)(cells, index=top.native.index.take(inside), copy=False)
        native.columns = both.columns
    else:
        frame = narwhals().from_native(both, eager_only=True)
        gathered = [frame[name][places[:, j]] for j, name in enumerate(here.names or ())]
        native = frame[inside, :].with_columns(*gathered).to_native()
    return here.of_same_columns(native, len(rows))


def _stacked(top: Table, below: Table) -> Any:
    """Return the rows of two frames of one library under each other, with the labels of ``top`` for the columns."""
    if not (top.dtypes and below.dtypes):
        return narwhals().concat([table.readable() for table in (top, below)], how="vertical").to_native()
    import pandas

    labels = top.native.columns
    # Columns are the same by name, while pandas would put those of 1 and "1" next to each other
    lower = below.native if below.native.columns.equals(labels) else below.native.set_axis(labels, axis=1)
    return pandas.concat([top.native, lower])


def above(top: Table, below: Table) -> Table:
    """Stack the rows of two tables of one kind. Frames of one numeric dtype keep the upper rows' index.

    >>> from exactshap.frames import as_table
    >>> above(as_table([[1.0]]), as_table([[2.0]])).native
    array([[1.],
           [2.]])
    """
    n_rows = top.n_rows + below.n_rows
    if top.is_sparse:
        from scipy import sparse

        return Table(sparse.vstack([top.native, below.native], format="csr"), None, n_rows, top.n_columns)
    if not top.is_frame:
        return Table(np.concatenate([top.native, below.native]), None, n_rows, top.n_columns)
    if top.has_one_dtype and below.has_one_dtype:
        values = np.concatenate([top.native.to_numpy(), below.native.to_numpy()])
        return _of_numbers(top, values, np.append(np.arange(top.n_rows), np.zeros(below.n_rows, int)))
    return top.of_same_columns(_stacked(top, below), n_rows)

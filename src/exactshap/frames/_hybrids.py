"""Hybrid rows: cells of one table where a coalition says so, and of another everywhere else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactshap.frames._table import Table

__all__ = ["above", "hybrid_cells", "hybrid_columns"]


def hybrid_cells(here: Table, other: Table, rows: np.ndarray, references: np.ndarray, columns: np.ndarray) -> Table | None:
    """Return rows that take the cells where ``columns (n, n_columns)`` is True from ``rows`` of here, the rest from ``references``.

    Each has a coalition of its own: arrays, and pandas frames of one dtype of numbers. None for other tables.
    """
    if not here.is_frame and not other.is_frame:
        return _array(np.where(columns, here.native[rows], other.native[references]), here.native.dtype)
    mine, theirs = _numbers(here), _numbers(other)
    if mine is None or theirs is None:
        return None
    mixed = _array(np.where(columns, mine[rows], theirs[references]), mine.dtype)
    return mixed if not here.is_frame else _like(here, mixed.native, here.native.index[rows])


def _array(values: np.ndarray, dtype: np.dtype) -> Table:
    """Return a table of the dtype of the rows that will be explained beside it: any row will do, rounded ones as well."""
    values = values.astype(dtype, copy=False) if dtype.kind == values.dtype.kind == "f" else values
    return Table(values, None, *values.shape)


def _numbers(table: Table) -> np.ndarray | None:
    """Return the numbers of an array or of a pandas frame of one dtype, without a copy; None of other tables."""
    if not table.is_frame:
        return table.native if table.native.dtype.kind in "fiub" else None
    return table.native.to_numpy() if table.has_one_dtype else None


def _like(frame: Table, values: np.ndarray, index: object) -> Table:
    native = type(frame.native)(values, columns=frame.native.columns, index=index)
    return Table(native, frame.names, len(values), frame.n_columns)


def hybrid_columns(
    here: Table, other: Table, rows: Sequence[np.ndarray], references: Sequence[np.ndarray], coalitions: np.ndarray
) -> Table | None:
    """Return hybrids of pandas frames of equal dtypes, whatever these are: share k of the rows takes the columns of coalition k.

    Whole columns are replaced, so that dtypes, categories and gaps stay. None for other tables.
    """
    if not here.dtypes or here.dtypes != other.dtypes:
        return None
    shares = []
    for chosen, replaced_by, inside in zip(rows, references, coalitions, strict=True):
        share, reference = here.native.iloc[chosen], other.native.iloc[replaced_by]
        for j in np.flatnonzero(~inside).tolist():
            share.isetitem(j, reference.iloc[:, j].array)
        shares.append(share)
    return Table(_under_each_other(shares), here.names, sum(map(len, shares)), here.n_columns)


def above(top: Table, below: Table) -> Table:
    """Return the rows of two tables of one kind under each other; pandas keeps its index."""
    n_rows = top.n_rows + below.n_rows
    if not top.is_frame:
        return Table(np.concatenate([top.native, below.native]), None, n_rows, top.n_columns)
    if top.has_one_dtype and below.has_one_dtype:
        values = np.concatenate([top.native.to_numpy(), below.native.to_numpy()])
        return _like(top, values, top.native.index.append(below.native.index))
    return Table(_under_each_other([top.native, below.native]), top.names, n_rows, top.n_columns)


def _under_each_other(frames: Sequence[object]) -> object:
    import pandas

    return frames[0] if len(frames) == 1 else pandas.concat(frames)

"""Many coalitions of one row against a background, as one table of the background's kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap.frames import Table

__all__ = ["hybrid_rows"]


def hybrid_rows(row: Table, background: Table, columns: np.ndarray) -> Table:
    """Return n_coalitions x n_background rows: columns of the coalition from ``row``, the rest from the background.

    ``columns`` (n_coalitions, n_columns) says which. Frames are gathered column by column, so that dtypes and categories stay.
    """
    n_coalitions, n_background = len(columns), background.n_rows
    if not row.is_frame or not background.is_frame:
        cells = np.where(columns[:, None, :], _array(row), _array(background)[None])
        cells = cells.reshape(n_coalitions * n_background, -1)
        return Table(cells, None, *cells.shape)
    return _frame_rows(row, background, columns)


def _array(table: Table) -> np.ndarray:
    return table.numeric() if table.is_frame else np.asarray(table.native)


def _frame_rows(row: Table, background: Table, columns: np.ndarray) -> Table:
    import narwhals.stable.v2 as nw

    n_rows = len(columns) * background.n_rows
    # the row stands behind the background; each cell says which of the two it takes
    both: Any = nw.concat([table.readable() for table in (background, row)], how="vertical")
    from_background = np.tile(np.arange(background.n_rows), len(columns))
    inside = np.repeat(columns, background.n_rows, axis=0)
    names = row.names or ()
    gathered = [both[name][np.where(inside[:, j], background.n_rows, from_background)] for j, name in enumerate(names)]
    frame = both[from_background, :]
    if both.implementation.is_pandas_like():
        import pandas as pd

        native = pd.DataFrame({name: s.to_native().reset_index(drop=True) for name, s in zip(names, gathered, strict=True)})
    else:
        native = frame.with_columns(*gathered).to_native()
    return Table(row.labelled(native), names, n_rows, len(names))

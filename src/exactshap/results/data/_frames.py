"""Build frames of any installed library, and hold values with names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.optional import FRAME_LIBRARIES, INSTALL_FRAMES, first_installed, require
from exactshap._runtime.types import Foreign, TableLike
from exactshap._runtime.words import PrintedTable
from exactshap.errors import InputError, MissingDependencyError, UnknownNameError, did_you_mean
from exactshap.results.data._certificate import without_noise
from exactshap.results.data._validation import place_of

_SHOWN = 10  # rows of a printed table


def frame_kind(data: TableLike) -> str | None:
    """Return the library of a frame: pandas, polars or pyarrow; None for other tables.

    >>> frame_kind([[1.0]]) is None
    True
    """
    root = type(data).__module__.partition(".")[0]
    return root if root in FRAME_LIBRARIES else None


def frame_of(data: TableLike, columns: Mapping[str, np.ndarray], kind: str | None) -> Any:
    """Return columns as a frame of a kind, or of the data's. The index is that of the data.

    >>> import numpy as np
    >>> frame_of(None, {"value": np.zeros(1)}, "pandas").to_dict("records")
    [{'value': 0.0}]
    """
    if kind is not None and kind not in FRAME_LIBRARIES:
        raise UnknownNameError(f"Unknown kind of frame {kind!r}", do=did_you_mean(kind, FRAME_LIBRARIES))
    kind = kind or frame_kind(data) or first_installed(FRAME_LIBRARIES)
    if kind is None:
        raise MissingDependencyError("A frame needs pandas, polars or pyarrow", do=INSTALL_FRAMES)
    library = require(kind, "frames", purpose=f"A {kind} frame")
    if kind == "pandas":
        index = data.index if frame_kind(data) == "pandas" else None
        return library.DataFrame(dict(columns), index=index, columns=list(columns))
    return library.DataFrame(dict(columns)) if kind == "polars" else library.table(dict(columns))


def write_parquet(frame: TableLike, target: Foreign) -> None:
    if frame_kind(frame) == "polars":
        frame.write_parquet(target)
        return
    arrow = require("pyarrow", "frames", purpose="A Parquet file")
    table = arrow.Table.from_pandas(frame) if frame_kind(frame) == "pandas" else frame
    require("pyarrow.parquet", "frames", purpose="A Parquet file").write_table(table, target)


@dataclass(frozen=True, eq=False, repr=False)
class NamedValues(PrintedTable):
    """Hold values of players, for every row or one for all, as :meth:`exactshap.Explanation.mean` returns.

    NumPy takes it for the array ``values``; ``named["age"]`` is the part of one player.

    Attributes
    ----------
    values : array of shape ([n_rows,] n_players[, n_outputs])
        In the unit of the model output.
    names : tuple of str
        Of the players.
    output_names : tuple of str or None
    per_row : bool
        Whether the first axis is that of the rows.
    tolerance : float
        Numbers up to this one are printed as 0: rounding.

    Examples
    --------
    >>> import numpy as np
    >>> named = NamedValues(np.array([[1.0, -4.0], [3.0, -2.0]]), ("age", "bmi"))
    >>> named.abs().mean().sort_values(ascending=False)
      player  value
      bmi         3
      age         2
    >>> named["age"]
    array([1., 3.])
    """

    values: np.ndarray
    names: tuple[str, ...]
    output_names: tuple[str, ...] | None = None
    per_row: bool = True
    tolerance: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, name: str) -> Any:
        j = place_of(name, self.names, "player")
        return self.values[(slice(None), j) if self.per_row else j]

    def abs(self) -> NamedValues:
        """Return the magnitudes."""
        return replace(self, values=np.abs(self.values))

    __abs__ = abs

    def mean(self) -> NamedValues:
        """Return the mean over the rows, one value per player (and output)."""
        return self._over_rows(np.mean)

    def max(self) -> NamedValues:
        """Return the largest value of each player over the rows."""
        return self._over_rows(np.max)

    def min(self) -> NamedValues:
        """Return the smallest value of each player over the rows."""
        return self._over_rows(np.min)

    def _over_rows(self, summary: Any) -> NamedValues:
        if not self.per_row:
            return self
        if not len(self.values):
            raise InputError("A summary over rows needs at least one row", "Got none")
        return replace(self, values=summary(self.values, axis=0), per_row=False)

    def sort_values(self, ascending: bool = True) -> NamedValues:
        """Return the players sorted by their value; ties keep their order.

        Parameters
        ----------
        ascending : bool, default=True
            As in pandas; False puts the largest first.
        """
        if self.per_row or self.values.ndim > 1:
            what = (
                "rows: take .mean() or .max() first" if self.per_row else "outputs: take .output(name) of the explanation first"
            )
            raise InputError("Players are sorted by one value each", f"These are values of several {what}")
        order = np.argsort(self.values if ascending else -self.values, kind="stable")
        return replace(self, values=self.values[order], names=tuple(self.names[j] for j in order))

    def head(self, n: int = 5) -> NamedValues:
        """Return the first ``n`` rows, or players if there are no rows."""
        names = self.names if self.per_row else self.names[:n]
        return replace(self, values=self.values[:n], names=names)

    def to_frame(self) -> Any:
        """Return a frame with a column per player and output. Without rows the columns are ``player`` and ``value``."""
        return frame_of(None, self._columns(), None)

    def _columns(self) -> dict[str, Any]:
        if not self.per_row:
            outputs = (
                {"value": self.values}
                if self.output_names is None
                else dict(zip(self.output_names, self.values.T, strict=True))
            )
            return {"player": list(self.names), **outputs}
        return dict(named_columns(self.names, self.output_names, self.values))

    def _table(self) -> tuple[list[str], list[list[str]], int]:
        columns = self._columns()
        if self.per_row:
            columns = {"row": [str(i) for i in range(len(self.values))], **columns}
        shown = [list(column[:_SHOWN]) for column in columns.values()]
        rows = [
            [cell if isinstance(cell, str) else f"{without_noise(cell, self.tolerance):.6g}" for cell in row]
            for row in zip(*shown, strict=True)
        ]
        return list(columns), rows, len(self.values)


def named_columns(names: Sequence[str], output_names: Sequence[str] | None, values: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Return columns (n_rows,) of values (n_rows, n_names[, n_outputs]), named ``player[output]`` for several outputs."""
    if output_names is None:
        return [(name, values[:, j]) for j, name in enumerate(names)]
    return [(f"{name}[{output}]", values[:, j, k]) for j, name in enumerate(names) for k, output in enumerate(output_names)]

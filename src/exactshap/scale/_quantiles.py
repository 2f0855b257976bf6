"""Estimate quantiles of values over parts of a table, by sketches that add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.types import TableLike
from exactshap._runtime.words import PrintedTable, more_than
from exactshap.errors import InputError
from exactshap.results.data import counted
from exactshap.scale._importance import SHOWN, value_columns


@dataclass(frozen=True, repr=False)
class GlobalQuantiles(PrintedTable):
    r"""Hold approximate quantiles of each column of values, over parts.

    Each column has a DDSketch: counts of its values in bins with edges that grow by :math:`(1 + \epsilon) / (1 - \epsilon)`, so that a
    quantile :math:`q` comes out as :math:`\hat q` with :math:`|\hat q - q| \le \epsilon |q|`.

    Attributes
    ----------
    feature_names : tuple of str
        Columns of values without ``phi_``: features, or ``<output>_<feature>``.
    n_rows : int
        Rows that were explained.
    relative_error : float
        epsilon: how far a quantile may be off, relative to itself.
    sketches : tuple of ddsketch.DDSketch

    Notes
    -----
    Counts add up exactly, so the quantiles are the same bits for any number of parts. The library is ``ddsketch`` (in the extra
    ``scale``). Memory: about 16 kB for each feature.

    Examples
    --------
    >>> import pandas
    >>> table = pandas.DataFrame({"phi_age": [1.0, 2.0, 3.0, 4.0, 100.0]})
    >>> quantiles = GlobalQuantiles.of(table[:2]) + GlobalQuantiles.of(table[2:])
    >>> bool(abs(quantiles.quantile(0.5)[0] - 3.0) <= 0.01 * 3.0)
    True
    """

    feature_names: tuple[str, ...]
    n_rows: int
    relative_error: float
    sketches: tuple[Any, ...]

    @classmethod
    def of(cls, table: TableLike, relative_error: float = 0.01) -> GlobalQuantiles:
        """Return the sketches of one output of :class:`Partition`.

        Parameters
        ----------
        table : pandas, polars or pyarrow table with columns ``phi_...``
        relative_error : float in (0, 1), default=0.01

        Returns
        -------
        quantiles : GlobalQuantiles
        """
        if not 0.0 < relative_error < 1.0:
            raise InputError("`relative_error` must be in (0, 1)", f"Got {relative_error!r}")
        names, numbers, explained = value_columns(table)
        sketches = tuple(_sketch(column, relative_error) for column in numbers[explained].T)
        return cls(names, int(explained.sum()), relative_error, sketches)

    def __add__(self, other: GlobalQuantiles) -> GlobalQuantiles:
        if (self.feature_names, self.relative_error) != (other.feature_names, other.relative_error):
            got = f"Got {list(self.feature_names)[:6]} within {self.relative_error}, {list(other.feature_names)[:6]} within {other.relative_error}"
            raise InputError("Parts of different features or errors cannot be added", got)
        merged = []
        for one, two in zip(self.sketches, other.sketches, strict=True):
            # Into a new sketch, as ``merge`` changes the one that it is called on.
            both = _empty(self.relative_error)
            both.merge(one)
            both.merge(two)
            merged.append(both)
        return GlobalQuantiles(self.feature_names, self.n_rows + other.n_rows, self.relative_error, tuple(merged))

    def quantile(self, q: float) -> np.ndarray:
        """Return an approximate quantile of the values of each feature.

        Parameters
        ----------
        q : float in [0, 1]
            0.5 is the median. Between two values it is the lower one.

        Returns
        -------
        quantile : array of shape (n_features,)
            In the unit of the model output, off by ``relative_error`` of itself at most; NaN without rows.
        """
        if not 0.0 <= q <= 1.0:
            raise InputError("A quantile is a number in [0, 1]", f"Got {q!r}")
        return np.array([np.nan if not self.n_rows else sketch.get_quantile_value(q) for sketch in self.sketches], float)

    def _head(self) -> tuple[str, Mapping[str, str]]:
        within = f"within {self.relative_error:.2g} of each"
        return f"approximate quantiles ({within}) over {counted(self.n_rows, 'row')}", {}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        columns = [self.quantile(q) for q in (0.05, 0.5, 0.95)]
        rows = [[name, *(f"{column[j]:.4g}" for column in columns)] for j, name in enumerate(self.feature_names[:SHOWN])]
        return ["feature", "5 %", "50 %", "95 %"], rows

    def _more(self) -> str:
        return more_than(SHOWN, len(self.feature_names))


def _empty(relative_error: float) -> Any:
    return require("ddsketch", "scale", purpose="A sketch of quantiles").DDSketch(relative_error)


def _sketch(values: np.ndarray, relative_error: float) -> Any:
    """Return the sketch of some values, counted bin by bin, as the library takes them one by one."""
    sketch = _empty(relative_error)
    # The one that the library's DDSketch is made with.
    mapping = require("ddsketch.mapping", "scale", purpose="A sketch of quantiles").LogarithmicMapping(relative_error)
    size = np.abs(values)
    large = size > mapping.min_possible
    bins = np.ceil(np.log(size[large]) / np.log(mapping.gamma)).astype(np.int64)
    for sign in (-1.0, 1.0):
        # DDSketch keeps negative numbers in bins of their own, by magnitude.
        for number, count in zip(*np.unique(bins[np.sign(values[large]) == sign], return_counts=True), strict=True):
            sketch.add(sign * mapping.value(int(number)), float(count))
    if not large.all():
        sketch.add(0.0, float(np.count_nonzero(~large)))
    return sketch

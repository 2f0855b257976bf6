"""Add up importances, exactly, and sketches of quantiles over parts of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.types import TableLike
from exactshap._runtime.words import PrintedTable
from exactshap.errors import InputError
from exactshap.frames import as_table
from exactshap.results.data import counted, frame_of

_VALUE = "phi_"  # first letters of columns of values
_SHOWN = 10  # features of a printed table
# Every float64 is a whole number of 2^-1074.
_UNIT = 1074
# Bits of the lower part of a mantissa.
_LOW_BITS = 26
# Sums of this many 27-bit numbers are whole numbers below 2^53, which float64 holds exactly.
_ROWS_AT_ONCE = 2**25


@dataclass(frozen=True, repr=False)
class GlobalImportance(PrintedTable):
    r"""Hold the mean and mean absolute value of each column, over parts.

    .. math:: \frac{1}{n} \sum_i |\phi_{ij}| \quad\text{and}\quad \frac{1}{n} \sum_i \phi_{ij}

    Attributes
    ----------
    feature_names : tuple of str
        Columns of values without ``phi_``: features, or ``<output>_<feature>``.
    n_rows : int
        Rows that were explained.
    n_bad_rows : int
        Rows that were marked; they are in no mean.
    max_residual : float
        Largest ``|residual|``.
    sums, absolute_sums : ExactSums
        Sums without rounding.

    Notes
    -----
    Sums are whole numbers of 2^-1074, so ``a + b`` is exact and the means have the same bits for any number of parts; each is
    rounded once. Cost: about 25 ns for each value.

    Examples
    --------
    >>> import pandas
    >>> table = pandas.DataFrame({"phi_age": [1.0, -3.0], "prediction": [0.0, 0.0], "residual": [0.0, 0.0]})
    >>> importance = GlobalImportance.of(table[:1]) + GlobalImportance.of(table[1:])
    >>> importance.mean_abs, importance.mean
    (array([2.]), array([-1.]))
    """

    feature_names: tuple[str, ...]
    n_rows: int
    n_bad_rows: int
    max_residual: float
    sums: ExactSums
    absolute_sums: ExactSums

    @classmethod
    def of(cls, table: TableLike) -> GlobalImportance:
        """Return the importances of one output of :class:`Partition`.

        Parameters
        ----------
        table : pandas, polars or pyarrow table with columns ``phi_...``

        Returns
        -------
        importance : GlobalImportance
        """
        wide = as_table(table, allow_empty=True)
        features, numbers, explained = _value_columns(table)
        names = wide.names or ()
        residuals = [j for j, name in enumerate(names) if name == "residual" or name.startswith("residual_")]
        left = np.abs(wide.select(residuals).numeric())[explained] if residuals else np.zeros((0, 0))
        sums, magnitudes = ExactSums.of(numbers[explained])
        return cls(
            feature_names=features,
            n_rows=int(explained.sum()),
            n_bad_rows=int((~explained).sum()),
            max_residual=float(left.max(initial=0.0)),
            sums=sums,
            absolute_sums=magnitudes,
        )

    def __add__(self, other: GlobalImportance) -> GlobalImportance:
        if self.feature_names != other.feature_names:
            got = f"Got {list(self.feature_names)[:6]} and {list(other.feature_names)[:6]}"
            raise InputError("Parts of different features cannot be added", got)
        return GlobalImportance(
            feature_names=self.feature_names,
            n_rows=self.n_rows + other.n_rows,
            n_bad_rows=self.n_bad_rows + other.n_bad_rows,
            max_residual=max(self.max_residual, other.max_residual),
            sums=self.sums + other.sums,
            absolute_sums=self.absolute_sums + other.absolute_sums,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the content for JSON, with sums as text."""
        sums = {name: [f"{unit:x}" for unit in getattr(self, name).units] for name in ("sums", "absolute_sums")}
        counts = {"n_rows": self.n_rows, "n_bad_rows": self.n_bad_rows, "max_residual": self.max_residual}
        return {"feature_names": list(self.feature_names), **counts, **sums}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> GlobalImportance:
        """Return the importances that :meth:`to_json` wrote."""
        sums = {name: ExactSums(tuple(int(unit, 16) for unit in content[name])) for name in ("sums", "absolute_sums")}
        return cls(**{**content, "feature_names": tuple(content["feature_names"]), **sums})

    @property
    def mean(self) -> np.ndarray:
        """Return each feature's mean value (n_features,), in the output's unit."""
        return self.sums.means(self.n_rows)

    @property
    def mean_abs(self) -> np.ndarray:
        """Return each feature's mean absolute value (n_features,), in the output's unit."""
        return self.absolute_sums.means(self.n_rows)

    def to_frame(self) -> Any:
        """Return a frame with the columns ``feature``, ``mean_abs`` and ``mean``.

        Returns
        -------
        frame : pandas, polars or pyarrow table
        """
        columns: dict[str, Any] = {"feature": list(self.feature_names), "mean_abs": self.mean_abs, "mean": self.mean}
        return frame_of(None, columns, None)

    def _head(self) -> tuple[str, Mapping[str, str]]:
        bad = f", {counted(self.n_bad_rows, 'row')} could not be explained" if self.n_bad_rows else ""
        return f"mean |value| of {len(self.feature_names)} features over {counted(self.n_rows, 'row')}{bad}", {}

    def _table(self) -> tuple[list[str], list[list[str]], int]:
        strength = self.mean_abs
        order = np.argsort(-strength, kind="stable")[:_SHOWN]
        return ["feature", "mean |value|"], [[self.feature_names[j], f"{strength[j]:.6g}"] for j in order], len(strength)


def _value_columns(table: TableLike) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return names and numbers (n_rows, n_columns) of value columns, and which rows were explained."""
    wide = as_table(table, allow_empty=True)
    names = wide.names or ()
    values = [j for j, name in enumerate(names) if name.startswith(_VALUE)]
    if not values:
        got = f"Got {list(names)[:6]}"
        raise InputError("The table has no columns of values", got, "Pass what a Partition gives")
    numbers = wide.select(values).numeric()
    return tuple(names[j].removeprefix(_VALUE) for j in values), numbers, ~np.isnan(numbers).all(axis=1)


@dataclass(frozen=True)
class ExactSums:
    """Hold the sum of each column as a multiple of 2^-1074, exact in Python's unbounded integers.

    >>> one, _ = ExactSums.of(np.array([[1e16], [1.0], [-1e16]]))
    >>> one.means(1)
    array([1.])
    """

    units: tuple[int, ...]

    @classmethod
    def of(cls, values: np.ndarray) -> tuple[ExactSums, ExactSums]:
        """Return the column sums of (n_rows, n_columns), and those of absolute values."""
        values = np.asarray(values, np.float64)
        if not np.isfinite(values).all():
            raise InputError("Values must be finite to be summed", do="Leave such rows out")
        sums = magnitudes = cls((0,) * values.shape[1])
        for start in range(0, len(values), _ROWS_AT_ONCE):
            parts = [_units(column) for column in values[start : start + _ROWS_AT_ONCE].T]
            sums += cls(tuple(above - below for above, below in parts))
            magnitudes += cls(tuple(above + below for above, below in parts))
        return sums, magnitudes

    def __add__(self, other: ExactSums) -> ExactSums:
        return ExactSums(tuple(a + b for a, b in zip(self.units, other.units, strict=True)))

    def means(self, n: int) -> np.ndarray:
        return np.array([unit / (n << _UNIT) if n else np.nan for unit in self.units], np.float64)


def _units(column: np.ndarray) -> tuple[int, int]:
    r"""Return a column's exact sums :math:`2^{1074} \sum_i |m_i| 2^{e_i}` of positive and of negative numbers.

    Mantissas have 53 bits and are added up exponent by exponent.
    """
    fraction, exponent = np.frexp(np.ascontiguousarray(column))
    # An integer by definition of float64
    mantissa = np.ldexp(np.abs(fraction), 53).astype(np.int64)
    if not mantissa.any():
        return 0, 0
    smallest = int(exponent.min())
    high = mantissa >> _LOW_BITS
    low = mantissa - (high << _LOW_BITS)
    places = 2 * (exponent - smallest) + (fraction < 0)
    sums = (np.bincount(places, weights=high), np.bincount(places, weights=low))
    total = [0, 0]
    for place in np.flatnonzero((sums[0] != 0) | (sums[1] != 0)):
        units = (int(sums[0][place]) << _LOW_BITS) + int(sums[1][place])
        shift = int(place) // 2 + smallest - 53 + _UNIT
        # Subnormal numbers end in that many zeros
        total[int(place) % 2] += units << shift if shift >= 0 else units >> -shift
    return total[0], total[1]


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
        names, numbers, explained = _value_columns(table)
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

    def _table(self) -> tuple[list[str], list[list[str]], int]:
        columns = [self.quantile(q) for q in (0.05, 0.5, 0.95)]
        rows = [[name, *(f"{column[j]:.4g}" for column in columns)] for j, name in enumerate(self.feature_names[:_SHOWN])]
        return ["feature", "5 %", "50 %", "95 %"], rows, len(self.feature_names)


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

"""Sums of float64 numbers without any rounding: the same bits however the numbers are cut into parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap.errors import InputError, message

__all__ = ["ExactSums"]

# Every float64 is a whole number of 2^-1074.
_UNIT = 1074
# Bits of the lower part of a mantissa.
_LOW_BITS = 26
# Sums of this many 27-bit numbers are whole numbers below 2^53, which float64 holds exactly.
_ROWS_AT_ONCE = 2**25


@dataclass(frozen=True)
class ExactSums:
    """One sum for each column, as a whole number of 2^-1074. Integers of Python have no largest value, so nothing is lost.

    Attributes
    ----------
    units : tuple of int

    Examples
    --------
    >>> one = ExactSums.of(np.array([[1e16], [1.0], [-1e16]]))
    >>> one.means(1)
    array([1.])
    """

    units: tuple[int, ...]

    @classmethod
    def of(cls, values: np.ndarray) -> ExactSums:
        """Return the sums of the columns of an array (n_rows, n_columns)."""
        return cls.with_magnitudes(values)[0]

    @classmethod
    def with_magnitudes(cls, values: np.ndarray) -> tuple[ExactSums, ExactSums]:
        """Return column sums of an array, and those of absolute values. The array is (n_rows, n_columns)."""
        values = np.asarray(values, np.float64)
        if not np.isfinite(values).all():
            raise InputError(message("A sum of values that are not finite has no value", do="Leave such rows out"))
        sums = magnitudes = cls.zeros(values.shape[1])
        for start in range(0, len(values), _ROWS_AT_ONCE):
            parts = [_units(column) for column in values[start : start + _ROWS_AT_ONCE].T]
            sums += cls(tuple(above - below for above, below in parts))
            magnitudes += cls(tuple(above + below for above, below in parts))
        return sums, magnitudes

    @classmethod
    def zeros(cls, n_columns: int) -> ExactSums:
        """Return sums of nothing."""
        return cls((0,) * n_columns)

    def __add__(self, other: ExactSums) -> ExactSums:
        return ExactSums(tuple(a + b for a, b in zip(self.units, other.units, strict=True)))

    def means(self, n: int) -> np.ndarray:
        """Return the sums over ``n``, each rounded once; NaN for n = 0."""
        return np.array([unit / (n << _UNIT) if n else np.nan for unit in self.units], np.float64)


def _units(column: np.ndarray) -> tuple[int, int]:
    r"""Return a column's exact sums of positive and of negative numbers. They are :math:`2^{1074} \sum_i |m_i| 2^{e_i}`.

    Mantissas have 53 bits and are added up exponent by exponent.
    """
    fraction, exponent = np.frexp(np.ascontiguousarray(column))
    # A whole number by definition of float64
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

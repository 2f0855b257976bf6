"""Features of scikit-learn's SplineTransformer, by the same arithmetic, without Python's lock."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._native import Handle
from exactshap.solvers.additive import Splines, fill_splines

__all__ = ["SplineFeatures"]

MOST_DEGREE = 5  # of those that are compiled
BEYOND = ("constant", "linear", "continue", "periodic")
TRIED = 64  # rows of a trial besides those about the knots


@dataclass(frozen=True, eq=False)
class SplineFeatures:
    """What a fitted SplineTransformer makes of rows that are finite, and NaN of numbers that are not.

    Attributes
    ----------
    splines : Handle of Splines
    kept : int
        Splines of each column.
    period : tuple of two arrays of shape (n_columns,), or None
        Where a periodic function begins and how long it is; rows are brought there first.
    """

    splines: Handle
    kept: int
    period: tuple[np.ndarray, np.ndarray] | None

    @classmethod
    def of(cls, transformer: Any) -> SplineFeatures | None:
        """Return None for attributes that are not what its ``fit`` leaves, and for what is not compiled."""
        own = vars(transformer)
        bases, degree, beyond = own.get("bsplines_"), own.get("degree"), own.get("extrapolation")
        if not (type(bases) is list and bases and type(degree) is int and 0 <= degree <= MOST_DEGREE and beyond in BEYOND):
            return None
        is_periodic, n_knots = beyond == "periodic", len(bases[0].t)
        n_splines = n_knots - degree - 1 - degree * is_periodic
        kept = n_splines - (not own.get("include_bias"))
        known = n_splines >= max(1, degree) and kept >= 1 and type(own.get("include_bias")) is bool
        if not known or not all(_is_basis(basis, degree, n_knots, n_splines, beyond) for basis in bases):
            return None
        knots = np.array([basis.t for basis in bases])
        limits, ends = np.tile([-np.inf, np.inf], (len(bases), 1)), np.zeros((len(bases), 2, 2, n_splines))
        if beyond in ("constant", "linear") and not _lines(bases, degree, limits, ends, straight=beyond == "linear"):
            return None
        starts, lengths = knots[:, degree], knots[:, n_knots - degree - 1] - knots[:, degree]
        if is_periodic and not np.all(lengths > 0.0):
            return None
        return cls(Handle(Splines(knots, limits, ends, degree)), kept, (starts, lengths) if is_periodic else None)

    @property
    def width(self) -> int:
        """Features of a row."""
        knots: np.ndarray = self.splines.value[0]
        return self.kept * len(knots)

    def fill(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Write the features of float64 rows into ``out (n_rows, width)``."""
        if self.period is not None:
            start, length = self.period
            rows = np.remainder(rows - start, length)
            rows += start
        fill_splines(np.ascontiguousarray(rows), self.splines, self.kept, out)

    def has_bits_of(self, transformer: Any, dtype: np.dtype) -> bool:
        """Compare with ``transform`` on knots, their neighbours, and rows between, below and above them."""
        one = copy.copy(transformer)
        vars(one).pop("feature_names_in_", None)
        knots = np.array([basis.t for basis in transformer.bsplines_]).T
        about = [knots, *(np.nextafter(knots, end) for end in (-np.inf, np.inf)), 1e3 * knots]
        wide = np.linspace(-1.0, 2.0, TRIED)[:, None] * (knots[-1] - knots[0]) + knots[0]
        rows = np.concatenate([*about, np.random.default_rng(0).permuted(wide, axis=0)]).astype(dtype)
        own = one.transform(rows.copy())
        own = own.toarray() if hasattr(own, "toarray") else own
        ours = np.empty((len(rows), self.width))
        self.fill(rows.astype(np.float64), ours)
        found = ours.astype(dtype)
        is_same = type(own) is np.ndarray and (own.dtype, own.shape) == (found.dtype, found.shape)
        return is_same and bool(np.isfinite(found).all()) and own.tobytes() == found.tobytes()


def _is_basis(basis: Any, degree: int, n_knots: int, n_splines: int, beyond: str) -> bool:
    """Say whether a BSpline gives the splines themselves, and those that a period repeats."""
    knots, coefficients = basis.t, basis.c
    arrays = all(type(array) is np.ndarray and array.dtype == np.float64 for array in (knots, coefficients))
    if not arrays or knots.shape != (n_knots,) or (basis.k, basis.axis) != (degree, 0):
        return False
    if bool(basis.extrapolate) != (beyond in ("continue", "periodic")) or not np.all(np.diff(knots) >= 0.0):
        return False
    each = np.eye(n_splines)
    return np.array_equal(coefficients, np.concatenate([each, each[:degree]]) if beyond == "periodic" else each)


def _lines(bases: list[Any], degree: int, limits: np.ndarray, ends: np.ndarray, *, straight: bool) -> bool:
    """Write what stands for the splines beyond the knots; return whether it is known.

    Few of the first and of the last splines go on there: as many as the degree. Straight lines of degree 0 and 1 are of one more, and, as
    ``transform`` keeps that number, of one more in the next column, whose limits are further inside.
    """
    n_splines = ends.shape[-1]
    if degree == 0 and not straight:  # transform itself fails
        return False
    for basis, limit, end in zip(bases, limits, ends, strict=True):
        limit[:] = basis.t[degree], basis.t[-degree - 1]
        degree += straight and degree <= 1
        if degree > n_splines or not limit[0] <= limit[1]:
            return False
        for side, some in enumerate((slice(0, degree), slice(n_splines - degree, n_splines))):
            end[side, 0, some] = basis(limit[side])[some]
            if straight:
                end[side, 1, some] = basis(limit[side], nu=1)[some]
    return bool(np.isfinite(ends).all())

"""Features of scikit-learn's bases (``src/native/additive/features.cpp``, ``splines.cpp``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel

__all__ = ["Splines", "fill_products_of_columns", "fill_splines"]

fill_products_of_columns = kernel("additive.fill_products_of_columns(X, chains, out)")
fill_splines = kernel("additive.fill_splines(X, splines, kept, out)")


class Splines(NamedTuple):
    """B-splines of each column on ``knots (n_columns, n_knots)``; those beyond ``n_splines`` are the first ones again.

    Beyond ``limits (n_columns, 2)`` there are lines instead, of ``ends (n_columns, 2, 2, n_splines)``: of each limit values and slopes.
    """

    knots: np.ndarray
    limits: np.ndarray
    ends: np.ndarray
    degree: int

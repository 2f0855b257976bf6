"""What a model predicts beside what was read of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Comparison"]


class Comparison(NamedTuple):
    """What a model predicts for rows that need no values, beside what the formula that was read of it gives.

    Attributes
    ----------
    prediction, residual : arrays of shape (n_rows[, n_outputs])
        The model's own prediction, and how far it is above the formula.
    tolerance : array of shape (n_rows,)
        The largest residual that rounding can explain.
    """

    prediction: np.ndarray
    residual: np.ndarray
    tolerance: np.ndarray

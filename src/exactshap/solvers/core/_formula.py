"""What a formula gives for rows whose values nobody asks for."""

from __future__ import annotations

import numpy as np

from exactshap.solvers.core._solution import Solution

__all__ = ["of_formula"]

_NO_VALUES = Solution.zeros(0, 0)


def of_formula(full: np.ndarray, scale: np.ndarray | float, error_bound: np.ndarray | float = 0.0) -> Solution:
    """Return f(x) by a formula, with what its rounding is relative to and a bound on its other errors.

    Parameters
    ----------
    full : array of shape (n_rows[, n_outputs])
    scale, error_bound : arrays of shape (n_rows,) or floats

    Returns
    -------
    solution : Solution
        Of no values.

    Examples
    --------
    >>> from exactshap.solvers import of_formula
    >>> of_formula(np.array([2.0, 3.0]), scale=4.0).full
    array([2., 3.])
    """
    return _NO_VALUES.with_(empty=full, full=full, scale=scale, error_bound=error_bound)

"""Constants of an instantiation on a sample, which bound the evaluation and the loss of a weighting."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

__all__ = ["evaluation_constant", "largest_norms"]


def evaluation_constant(of_size: Callable[[int, float], float], masses: dict[int, float], largest: np.ndarray) -> float:
    r"""Return :math:`\sqrt{\sum_k m_k\, c_k(r_k)^2}` (Eq. 59, 60), r_k the largest norm of any k columns of a row; or NaN."""
    try:
        return math.sqrt(sum(mass * of_size(k, float(largest[k - 1])) ** 2 for k, mass in masses.items()))
    except NotImplementedError:
        return math.nan


def largest_norms(X: np.ndarray) -> np.ndarray:
    """Return the largest norm of any 1, 2, ... columns of a row of X, of shape (n_features,)."""
    return np.sqrt(np.cumsum(np.sort(X**2, axis=1)[:, ::-1], axis=1).max(axis=0))

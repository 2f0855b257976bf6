"""The functions of a fitted weighting: one for each subset of columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap.estimators.rkhs_weighting._instantiation import ROW_BLOCK, Instantiation

__all__ = ["WeightingTerm"]


@dataclass(frozen=True, eq=False)
class WeightingTerm:
    """One function f_J of a fitted weighting: ``subset`` J, its ``parameters`` (n_terms, n_parameters), ``coefficients`` (n_terms,).

    The coefficients carry the probability of the subset.
    """

    subset: tuple[int, ...]
    parameters: np.ndarray
    coefficients: np.ndarray
    base: Instantiation

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return f_J (n_rows,) for the columns of the subset, X of shape (n_rows, len(subset))."""
        step = max(1, ROW_BLOCK // max(1, len(self.coefficients)))
        blocks = [
            (self.base.expectation(self.parameters, X[i : i + step]) * self.coefficients).sum(axis=1)
            for i in range(0, len(X), step)
        ]
        return np.concatenate(blocks) if blocks else np.zeros(0)

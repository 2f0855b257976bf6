"""Features that scikit-learn's bases make of rows, by the same arithmetic, into arrays that stay in a core's caches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactshap.solvers.additive import fill_products_of_columns

__all__ = ["MonomialFeatures"]

_PARAMETERS = ("n_features_in_", "degree", "interaction_only", "include_bias", "order")


@dataclass(frozen=True)
class MonomialFeatures:
    """Those of PolynomialFeatures, each a product of the columns from the last to the first, as it multiplies them itself.

    Attributes
    ----------
    about : tuple
        What tells them: a basis of the same parameters has the same.
    chains : array of shape (n_features, degree)
        Columns in the order of the products; -1 behind them.
    """

    about: tuple[Any, ...]
    chains: np.ndarray = field(compare=False)

    @classmethod
    def of(cls, basis: Any) -> MonomialFeatures:
        powers = np.asarray(basis.powers_, np.int64)
        chains = np.full((len(powers), int(powers.sum(axis=1).max(initial=0))), -1, np.int64)
        for chain, row in zip(chains, powers, strict=True):
            columns = np.repeat(np.arange(len(row)), row)[::-1]
            chain[: len(columns)] = columns
        return cls(_about(basis), chains)

    @property
    def width(self) -> int:
        return len(self.chains)

    def fit(self, basis: Any) -> bool:
        """Say whether the basis still makes these features, row by row."""
        return _about(basis) == self.about

    def fill(self, rows: np.ndarray, out: np.ndarray) -> None:
        fill_products_of_columns(rows, self.chains, out)


def _about(basis: Any) -> tuple[Any, ...]:
    return tuple(getattr(basis, name) for name in _PARAMETERS)

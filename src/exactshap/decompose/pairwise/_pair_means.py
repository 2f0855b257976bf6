"""From sums over pairs of rows to the statistic of two samples, and its jackknife."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.decompose.pairwise._inference import jackknife_error
from exactshap.decompose.pairwise._kernels import PanelBlock

__all__ = ["PairMeans", "split_sums"]


def split_sums(sums: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sums over ordered pairs within the first sample, within the second, and between, each (n_players + 1,)."""
    return sums[0, :, :n].sum(axis=1), sums[1, :, n:].sum(axis=1), sums[1, :, :n].sum(axis=1)


@dataclass(frozen=True)
class PairMeans:
    """How sums over pairs become the statistic; pairs i = i' contribute 0 to every share."""

    n: int
    m: int
    estimator: str

    def _denominators(self, n: Any, m: Any) -> tuple[Any, Any]:
        return (n * n, m * m) if self.estimator == "biased" else (n * (n - 1), m * (m - 1))

    def statistic(self, first: Any, second: Any, between: Any, n: int | None = None, m: int | None = None) -> Any:
        """Return first / (n (n - 1)) + second / (m (m - 1)) - 2 between / (n m), or the biased form."""
        n, m = float(self.n if n is None else n), float(self.m if m is None else m)  # type: ignore[assignment]
        of_first, of_second = self._denominators(n, m)
        return first / of_first + second / of_second - 2.0 * between / (n * m)  # type: ignore[operator]

    def weights(self, block: PanelBlock) -> np.ndarray:
        """Return the weight of each ordered pair of a block."""
        of_first, of_second = self._denominators(float(self.n), float(self.m))
        own, other = block.start >= self.n, block.first >= self.n
        weight = -1.0 / (self.n * self.m) if own != other else 1.0 / (of_second if own else of_first)
        return np.full((block.height, block.padded), weight)

    def jackknife(self, sums: np.ndarray) -> np.ndarray | None:
        """Return standard errors (n_players + 1,): leaving a row out takes its row sums away. None below 3 rows."""
        n, m = self.n, self.m
        if min(n, m) < 3:
            return None
        first, second, between = (part[:, None] for part in split_sums(sums, n))
        without_x = self.statistic(first - 2.0 * sums[0, :, :n], second, between - sums[1, :, :n], n=n - 1)
        without_z = self.statistic(first, second - 2.0 * sums[1, :, n:], between - sums[0, :, n:], m=m - 1)
        return jackknife_error(without_x, without_z)

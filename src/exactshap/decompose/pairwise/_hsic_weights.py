"""The doubly centred kernel of HSIC's second variable, block by block: what each pair of rows weighs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap._runtime.threads import map_in_threads
from exactshap.decompose.pairwise._factors import Factors
from exactshap.decompose.pairwise._kernels import (
    LANES,
    PanelBlock,
    add_centred_contributions,
    fill_permuted_weights,
    fill_products,
)
from exactshap.decompose.pairwise._panels import Sweep, blocks_of, panels_of

__all__ = ["CentredKernel", "centred_kernel", "norm_of", "offsets_of", "row_sums_of"]


def norm_of(n: int, estimator: str) -> float:
    """Return what the sum over pairs is multiplied with: 1 / (n - 1)^2, or 1 / (n (n - 3)) for the unbiased estimator."""
    return 1.0 / (n - 1) ** 2 if estimator == "biased" else 1.0 / (n * (n - 3))


def offsets_of(row_sums: np.ndarray, estimator: str) -> np.ndarray:
    r"""Return a with :math:`L_c[i,i'] = L[i,i'] - a_i - a_{i'}` from the row sums of L without its diagonal, on the last axis.

    Biased: the double centring H L H, with the diagonal 1 of L counted. Unbiased: the U-centring of Song et al. (2012),
    with diagonal 0 and n - 2 in place of n. Either makes the row sums of :math:`L_c` zero.
    """
    n = row_sums.shape[-1]
    if estimator == "biased":
        full = row_sums + 1.0
        return full / n - full.sum(axis=-1, keepdims=True) / (2.0 * n**2)
    return row_sums / (n - 2) - row_sums.sum(axis=-1, keepdims=True) / (2.0 * (n - 1) * (n - 2))


@dataclass(frozen=True, eq=False)
class CentredKernel:
    """The kernel of Y, centred so that its rows sum to 0; made where it is needed and never stored."""

    factors: Factors
    offsets: np.ndarray
    estimator: str

    @property
    def diagonal(self) -> np.ndarray:
        return 1.0 - 2.0 * self.offsets if self.estimator == "biased" else np.zeros_like(self.offsets)

    def norm(self, n: int) -> float:
        return norm_of(n, self.estimator)

    def block(self, block: PanelBlock) -> np.ndarray:
        """Return the centred kernel of a block (height, padded), 0 outside the triangle i' > i."""
        out = np.empty((block.height, block.padded))
        fill_products(self.factors.arrays, self.offsets, block, out)
        return out

    def add_weighted(self, sweep: Sweep, block: PanelBlock, weighted: np.ndarray, plain: np.ndarray) -> None:
        """Add the contributions of a block's pairs, times this kernel and as they are, to the sums of the rows on both sides."""
        arrays, rules = sweep.factors.arrays, sweep.rules.arrays
        add_centred_contributions(arrays, rules, self.factors.arrays, self.offsets, block, weighted, plain)

    def permuted_block(self, block: PanelBlock, orders: np.ndarray) -> np.ndarray:
        """Return the centred kernel of a block for permuted rows, of shape (n_permutations, height * padded)."""
        out = np.empty((len(orders), block.height, block.padded))
        fill_permuted_weights(self.factors.arrays, self.offsets, orders, block, out)
        return out.reshape(len(orders), -1)

    def times(self, vectors: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Return the product of each vector (n_vectors, n_rows) with the centred kernel matrix, the diagonal included."""
        return self.off_diagonal(vectors, n_jobs) + vectors * self.diagonal

    def off_diagonal(self, vectors: np.ndarray, n_jobs: int | None, begin: int = 0) -> np.ndarray:
        """Return the product without the diagonal; with ``begin``, of rows before it with those from it on, both ways."""
        n = self.factors.n_rows
        padded = np.pad(vectors, ((0, 0), (0, LANES)))

        def panel_product(panel: tuple[int, int]) -> np.ndarray:
            out = np.zeros_like(padded)
            for block in blocks_of(panel, n, 1, begin=begin):
                weights = self.block(block)
                rows, columns = slice(block.start, block.stop), slice(block.first, block.first + block.padded)
                out[:, rows] += padded[:, columns] @ weights.T
                out[:, columns] += padded[:, rows] @ weights
            return out

        total = np.zeros_like(padded)
        for part in map_in_threads(panel_product, panels_of(begin or n), n_jobs):
            total += part
        return total[:, :n]


def centred_kernel(y: Factors, estimator: str, n_jobs: int | None) -> CentredKernel:
    """Centre the kernel of Y: one pass over its pairs for the row sums."""
    return CentredKernel(y, offsets_of(row_sums_of(y, n_jobs), estimator), estimator)


def row_sums_of(y: Factors, n_jobs: int | None, begin: int = 0) -> np.ndarray:
    """Return the row sums (n_rows,) of the kernel of Y without its diagonal."""
    plain = CentredKernel(y, np.zeros(y.n_rows), "unbiased")
    return plain.off_diagonal(np.ones((1, y.n_rows)), n_jobs, begin)[0]

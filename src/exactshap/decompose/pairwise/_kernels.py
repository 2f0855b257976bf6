"""Call the compiled kernels of pairwise statistics (``src/native/pairwise``).

A block holds the pairs of some rows i with some rows i' > i; its last axis is padded to whole tiles of :data:`LANES` pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel

LANES = 64  # as in the kernels


class FactorArrays(NamedTuple):
    """Hold what the kernels read of :class:`~exactshap.decompose.pairwise._factors.Factors`."""

    columns: np.ndarray
    kinds: np.ndarray
    scales: np.ndarray
    starts: np.ndarray


class PanelBlock(NamedTuple):
    """Hold pairs of rows ``start <= i < stop`` and ``first <= i' < last``, i' > i. ``padded`` is a multiple of LANES."""

    start: int
    stop: int
    first: int
    last: int

    @property
    def height(self) -> int:
        return self.stop - self.start

    @property
    def padded(self) -> int:
        return -(-(self.last - self.first) // LANES) * LANES


fill_contributions = kernel("pairwise.fill_contributions(factors, rules, block, out)")
add_contributions = kernel("pairwise.add_contributions(factors, rules, block, rows, others)")
add_distances = kernel("pairwise.add_distances(columns, weights, squared, block, out)")
add_all_distances = kernel("pairwise.add_all_distances(columns, weights, squared, out)")
fill_gaps = kernel("pairwise.fill_gaps(factors, block, out)")
fill_products = kernel("pairwise.fill_products(factors, offset, block, out)")
fill_permuted_weights = kernel("pairwise.fill_permuted_weights(factors, offset, permutations, block, out)")
add_sides = kernel("pairwise.add_sides(values, weights, to_rows, first_row, to_columns, first_column)")
fill_node_products = kernel("pairwise.fill_node_products(factors, block, nodes, out)")
fill_joint_contributions = kernel(
    "pairwise.fill_joint_contributions(x_factors, x_offsets, y_factors, y_offsets, block, nodes, weights, out)"
)

"""Values of sets of two and more players, by the compiled sweep of the product games."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exactshap.decompose._estimate import Settings
from exactshap.decompose._factors import Factors
from exactshap.decompose._pairwise import Block, blocks_of, map_panels, panels_of

__all__ = ["joint_values"]

Weights = Callable[[Block], np.ndarray]


def joint_values(factors: Factors, weights: Weights, boundary: int | None, settings: Settings, n_sets: int) -> np.ndarray:
    r"""Return the values of all sets of 2..order players, of shape (n_sets,), by size and then lexicographically.

    .. math:: \phi_T = \sum_{i \ne i'} w_{ii'} \prod_{j \in T} (k_j - 1) \int \prod_{k \notin T} (1 - t + t k_k)\, \mathrm{d}\mu(t)

    ``weights(block)`` gives w, of the block's shape (height, padded). Exact rules; cost O(n^2 n_sets nodes).
    """
    if settings.order == 1:
        return np.zeros(0)

    def panel_values(panel: tuple[int, int]) -> np.ndarray:
        out = np.zeros(n_sets)
        for block in blocks_of(panel, factors.n_rows, factors.n_players, boundary):
            out += _block_values(factors, block, weights(block), settings, n_sets)
        return out

    panels = panels_of(factors.n_rows, boundary)
    return 2.0 * np.sum(list(map_panels(panel_values, panels, settings.n_jobs)), axis=0)


def _block_values(factors: Factors, block: Block, weights: np.ndarray, settings: Settings, n_sets: int) -> np.ndarray:
    """Treat the pairs of a block as the terms of one product game."""
    import math

    from exactshap.decompose._pairwise_kernels import fill_gaps
    from exactshap.solvers._kernels import fill_interactions

    gaps = np.empty((factors.n_players, block.height, block.padded))
    fill_gaps(factors.columns, factors.kinds, factors.scales, factors.starts, block.start, block.stop, block.first, block.last,
              gaps)  # fmt: skip
    inside = (1.0 - gaps).reshape(1, factors.n_players, -1)
    outside, coefficients = np.ones_like(inside), np.ascontiguousarray(weights.reshape(1, -1))
    out, offset = np.zeros((1, n_sets, 1)), 0
    for size in range(2, settings.order + 1):
        count = math.comb(factors.n_players, size)
        rule = settings.semivalue.rule(size, settings.order, degree=factors.n_players - size)
        nodes, node_weights = (np.array(part, float) for part in rule)
        part = np.zeros((1, count, 1))
        fill_interactions(inside, outside, coefficients, np.ones(1), size, nodes, node_weights, part)
        out[:, offset : offset + count] = part
        offset += count
    return out[0, :, 0]

"""Values of sets of two and more players, by the compiled sweep of the product games."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exactshap._runtime.threads import map_in_threads
from exactshap.decompose.pairwise._estimate import PairwiseSettings
from exactshap.decompose.pairwise._factors import Factors
from exactshap.decompose.pairwise._kernels import PanelBlock, fill_gaps
from exactshap.decompose.pairwise._panels import blocks_of, panels_of
from exactshap.semivalues import Measure, Rule
from exactshap.solvers.core import coarse_bound, enough_nodes

__all__ = ["joint_values"]

Weights = Callable[[PanelBlock], np.ndarray]


def joint_values(
    factors: Factors, weights: Weights, boundary: int | None, settings: PairwiseSettings, n_sets: int
) -> tuple[np.ndarray, float]:
    r"""Return the values of all sets of 2..order players (n_sets,), by size and then lexicographically, and their truncation.

    .. math:: \phi_T = \sum_{i \ne i'} w_{ii'} \prod_{j \in T} (k_j - 1) \int \prod_{k \notin T} (1 - t + t k_k)\, \mathrm{d}\mu(t)

    ``weights(block)`` gives w, of the block's shape (height, padded). The truncation is relative to the sum of the magnitudes
    of w, 0.0 where all rules are exact; each block has its own rules. Cost O(n^2 n_sets nodes).
    """
    if settings.order == 1:
        return np.zeros(0), 0.0

    def panel_values(panel: tuple[int, int]) -> tuple[np.ndarray, float]:
        out, truncation = np.zeros(n_sets), 0.0
        for block in blocks_of(panel, factors.n_rows, factors.n_players, boundary):
            values, relative = _block_values(factors, block, weights(block), settings, n_sets)
            out, truncation = out + values, max(truncation, relative)
        return out, truncation

    panels = panels_of(factors.n_rows, boundary)
    parts, truncations = zip(*map_in_threads(panel_values, panels, settings.n_jobs), strict=True)
    return 2.0 * np.sum(parts, axis=0), max(truncations)


def _block_values(
    factors: Factors, block: PanelBlock, weights: np.ndarray, settings: PairwiseSettings, n_sets: int
) -> tuple[np.ndarray, float]:
    """Treat the pairs of a block as the terms of one product game, with no more nodes than their largest spread needs."""
    import math

    from exactshap.solvers.product import fill_interactions

    d = factors.n_players
    gaps = np.empty((d, block.height, block.padded))
    fill_gaps(factors.arrays, block, gaps)
    spread = float(gaps.sum(axis=0).max()) / 2.0  # of factors between 1 and 1 - gap, all of height 1 (see ``_nodes``)
    inside = (1.0 - gaps).reshape(1, d, -1)
    outside, coefficients = np.ones_like(inside), np.ascontiguousarray(weights.reshape(1, -1))
    out, offset, truncation = np.zeros((1, n_sets, 1)), 0, 0.0
    for size in range(2, settings.order + 1):
        count = math.comb(d, size)
        rule, relative = _rule(settings.semivalue.of_size(size, settings.order), d - size, spread)
        part = np.zeros((1, count, 1))
        fill_interactions(inside, outside, coefficients, np.ones(1), size, *rule, part)
        out[:, offset : offset + count] = part
        offset, truncation = offset + count, max(truncation, relative)
    return out[0, :, 0], truncation


def _rule(measure: Measure, degree: int, spread: float) -> tuple[Rule, float]:
    """Return a rule as good as exact, as writable arrays, and its truncation relative to the height of the factors."""
    n_nodes = enough_nodes(spread, degree, measure)
    truncated = n_nodes < degree // 2 + 1
    nodes, weights = measure.rule(2 * n_nodes - 1 if truncated else degree)
    return (np.array(nodes, float), np.array(weights, float)), coarse_bound(spread, n_nodes, measure) if truncated else 0.0

"""HSIC split over the variables of both sides at once: one game instead of two."""

from __future__ import annotations

import numpy as np

from exactshap._runtime.threads import map_in_threads
from exactshap.decompose.pairwise._direct import direct_hsic
from exactshap.decompose.pairwise._estimate import Estimate, Question, residual_of
from exactshap.decompose.pairwise._factors import Factors
from exactshap.decompose.pairwise._hsic_weights import norm_of, offsets_of
from exactshap.decompose.pairwise._kernels import LANES, add_sides, fill_joint_contributions, fill_node_products
from exactshap.decompose.pairwise._panels import blocks_of, panels_of
from exactshap.results.decomposition import check_residual, pair_tolerance
from exactshap.semivalues import Beta
from exactshap.solvers.core import RELATIVE_TRUNCATION, enough_nodes

__all__ = ["estimate_joint"]


def estimate_joint(task: tuple[Factors, Factors, Question, np.ndarray]) -> Estimate:
    r"""Return the shares of the columns of X, then of Y, then HSIC itself.

    .. math:: \phi_j = \frac{1}{(n-1)^2} \int_0^1 \bigl\langle (K_j - 1) \circ P_{-j}(t),\ H R(t) H \bigr\rangle \mathrm{d}\mu(t)

    for a column of X, with P(t) and R(t) the products of 1 - t + t K over the columns of either side, and with the sides
    exchanged for a column of Y. The kernels of the other side must be centred at every node, which takes one pass for row
    sums before the pass for the shares: O(n^2 (d_x + d_y)) per node. Permutations repeat it all.
    """
    x, y, question, orders = task
    nodes, weights, error_bound = _rule(x, y, question)
    norm = norm_of(x.n_rows, question.estimator)
    values = norm * _sums(x, y, nodes, weights, question)
    permuted = [norm * _sums(x, y.take(order), nodes, weights, question) for order in orders]
    residual = residual_of(direct_hsic(x, y, question.estimator, question.n_jobs), values, np.zeros(0), question)
    scale = 4.0 * norm * x.n_rows**2
    tolerance = pair_tolerance(scale, x.n_rows, len(x.columns) + len(y.columns))
    check_residual("HSIC", residual, tolerance)
    null = np.stack(permuted, axis=1) if permuted else np.empty((len(values), 0))
    return Estimate(values, None, null, np.zeros(0), residual, tolerance, scale * error_bound)


def _rule(x: Factors, y: Factors, question: Question) -> tuple[np.ndarray, np.ndarray, float]:
    """Return a rule exact for all players (or to rounding, by the ranges of the columns), then t = 1 with weight 0."""
    degree = x.n_players + y.n_players - 1
    measure = question.semivalue.of_size(1, 1)
    count = enough_nodes(_range_spread(x) + _range_spread(y), degree)
    graded = isinstance(measure, Beta) and count < degree // 2 + 1
    nodes, weights = measure.gauss(count) if isinstance(measure, Beta) and graded else measure.rule(degree)
    return np.append(nodes, 1.0), np.append(weights, 0.0), 2.0 * RELATIVE_TRUNCATION if graded else 0.0


def _range_spread(one: Factors) -> float:
    """Return a bound on half the sum of 1 - kernel over the players of any pair: every kernel falls with the distance."""
    ends = np.stack([one.columns.min(axis=1), one.columns.max(axis=1)], axis=1)
    extremes = Factors(ends, one.column_names, one.kernels, one.bandwidths, one.starts, one.names)
    kernels = extremes.kernel_matrices(np.array([0]), np.array([1]))
    return float(0.5 * (1.0 - kernels).sum())


def _sums(x: Factors, y: Factors, nodes: np.ndarray, weights: np.ndarray, question: Question) -> np.ndarray:
    """Return the sums over ordered pairs i != i' of the contributions (n_x + n_y + 1,)."""
    x_offsets, y_offsets = (offsets_of(_row_sums(one, nodes, question.n_jobs), question.estimator) for one in (x, y))

    def panel_sums(panel: tuple[int, int]) -> np.ndarray:
        out = np.zeros(x.n_players + y.n_players + 1)
        for block in blocks_of(panel, x.n_rows, x.n_players + y.n_players):
            fill_joint_contributions(x.arrays, x_offsets, y.arrays, y_offsets, block, nodes, weights, out)
        return out

    return 2.0 * np.sum(list(map_in_threads(panel_sums, panels_of(x.n_rows), question.n_jobs)), axis=0)


def _row_sums(one: Factors, nodes: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the row sums, without the diagonal, of the product at each node: (n_nodes, n_rows)."""
    shape = (len(nodes), one.n_rows + LANES)

    def panel_sums(panel: tuple[int, int]) -> np.ndarray:
        sums = np.zeros(shape)
        for block in blocks_of(panel, one.n_rows, len(nodes)):
            values = np.empty((len(nodes), block.height, block.padded))
            fill_node_products(one.arrays, block, nodes, values)
            add_sides(values, np.ones(values.shape[1:]), sums, block.start, sums, block.first)
        return sums

    total = np.zeros(shape)
    for part in map_in_threads(panel_sums, panels_of(one.n_rows), n_jobs):
        total += part
    return total[:, : one.n_rows]

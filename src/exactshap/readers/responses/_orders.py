r"""Sample Shapley values along orders of the players, with other orders for each background row.

.. math:: \phi_j(v) = \sum_z w_z\, E_\pi[D_{jz}], \qquad D_{jz} = g(f(x_{S \cup j}, z)) - g(f(x_S, z)), \quad S = \{\text{players before } j \text{ in } \pi\}

for a link g and scores f. A value v(S) holds one coalition against all background rows, so that its errors are those of few coalitions; here each
background row z has K random orders of its own, each used forwards and backwards [1]_ [2]_. With :math:`M_{jz}` the same differences of the
scores themselves, with the exact mean :math:`\phi_j(m)`,

.. math:: \hat\phi_j = B\, \phi_j(m) + \sum_z w_z \frac1K \sum_k (D_{jzk} - B M_{jzk}), \qquad
    \hat V_j = \sum_z w_z^2 \frac{1}{K (K - 1)} \sum_k (R_{jzk} - \bar R_{jz})^2, \quad R = D - B M

is unbiased for fixed slopes B, and :math:`\hat V` its variance without bias. B minimises :math:`\sum_j \hat V_j` of the first orders.

A player that few orders and background rows move may have hardly any variance in a sample, by chance. Its :math:`\hat V_j` is joined, as two degrees of
freedom, with what players vary by on average of their squares Q; its own degrees are those of the rows that move it [3]_:

.. math:: \frac{\nu_j \hat V_j + 2 r Q_j}{\nu_j + 2}, \qquad Q_j = \sum_z q_{jz}, \quad q_{jz} = w_z^2 \frac1K \sum_k D_{jzk}^2, \qquad
    \nu_j = (K - 1) \frac{Q_j^2}{\sum_z q_{jz}^2}, \quad r = \frac{\sum_k \hat V_k}{\sum_k Q_k}

And what its scores miss of their known mean, :math:`m_j`, says more: with the share of the squares that B leaves over, the squared error is at least

.. math:: \frac{\sum_k \hat V_k}{\sum_k \hat V_k(B M)} m_j^2, \qquad m_j = B \Bigl(\sum_z w_z \frac1K \sum_k M_{jzk} - \phi_j(m)\Bigr).

References
----------
.. [1] Strumbelj & Kononenko (2014). Explaining prediction models and individual predictions with feature contributions.
   Knowledge and Information Systems 41: random pairs of an order and a row.
.. [2] Mitchell et al. (2022). Sampling permutations for Shapley value estimation. JMLR 23, section 4.1: orders and their reverses.
.. [3] Satterthwaite (1946). An approximate distribution of estimates of variance components. Biometrics Bulletin 2: degrees of freedom of a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from exactshap._native import kernel
from exactshap._runtime.checks import checked_generator
from exactshap._runtime.slices import slices

# Orders of players as places (n_background, n_orders, n_players) -> scores (n_background, n_scores, n_orders, n_players + 1)
Along = Callable[[np.ndarray], np.ndarray]
RIDGE = 1e-6  # of the squares of what players move: far less than their variance where the control variate helps
TINIEST = 1e-300
PRIOR_FREEDOM = 2.0  # of the variance that players have on average: little against the hundreds that a default sample has
MIN_PAIRS = 2  # of each background row: a variance needs two
CHUNK_SCORES = 2**20  # at a time: 8 MiB

# src/native/responses/orders.cpp
fill_moves = kernel("responses.fill_moves(values, place, out)")


@dataclass(frozen=True, eq=False)
class OrderSample:
    """Hold what orders say of :math:`v - B m`: ``values`` and ``variance`` (n_players, n_outputs), ``slopes`` (n_scores, n_outputs)."""

    values: np.ndarray
    variance: np.ndarray
    slopes: np.ndarray
    scale: float  # the mean over the background of the largest response on the way, which may be far above those at its ends


def sample_orders(
    along: Along,
    respond: Callable[[np.ndarray], np.ndarray],
    weights: np.ndarray,
    exact: np.ndarray,
    n_pairs: int,
    random_state: object,
) -> OrderSample:
    """Return the mean differences along ``n_pairs`` orders and their reverses for each background row, and their variance.

    ``exact (n_players, n_scores)`` are the values of the scores themselves. A seed gives every row the same orders.
    """
    n_players, n_scores = exact.shape
    # Of all background rows at a time, so that the slopes are those of all
    step = max(MIN_PAIRS, CHUNK_SCORES // (2 * len(weights) * n_scores * (n_players + 1)))
    left, fitted, sizes, slopes, largest = _Means(n_pairs), _Means(n_pairs), np.zeros(()), None, np.zeros(len(weights))
    for forwards in _orders(random_state, len(weights), n_pairs, n_players, step):
        scores = along(np.concatenate([forwards, n_players - 1 - forwards], axis=1))
        responses = respond(scores)
        largest = np.maximum(largest, np.abs(responses).max(axis=(1, 2, 3)))
        moved, moved_scores = _moves(responses, forwards), _moves(scores, forwards)
        if slopes is None:
            slopes = _slopes(moved, moved_scores, weights)
        explained = np.einsum("zskj,so->zokj", moved_scores, slopes)
        left.add(moved - explained)
        fitted.add(explained)
        sizes = sizes + np.einsum("zokj,z->zjo", moved**2, weights**2 / n_pairs)
    assert slopes is not None
    # A variance of few degrees of freedom may be small by chance.
    size = sizes.sum(axis=0)
    freedom = (n_pairs - 1) * size**2 / np.maximum((sizes**2).sum(axis=0), TINIEST)
    variance = left.variance(weights)
    pooled = variance.sum(axis=0) / np.maximum(size.sum(axis=0), TINIEST) * size
    variance = (freedom * variance + PRIOR_FREEDOM * pooled) / (freedom + PRIOR_FREEDOM)
    # The scores' own exact values show what the orders happened to miss, also of players that few of them moved.
    missed = (fitted.mean(weights) - exact @ slopes) ** 2
    share = variance.sum(axis=0) / np.maximum(fitted.variance(weights).sum(axis=0), TINIEST)
    variance = np.maximum(variance, np.minimum(share, 1.0) * missed)
    return OrderSample(left.mean(weights), variance, slopes, float(weights @ largest))


def _orders(random_state: object, n_background: int, n_pairs: int, n_players: int, step: int) -> Iterator[np.ndarray]:
    """Yield random orders as places of the players, ``(n_background, n_some, n_players)`` with at most ``step`` at a time."""
    rng = checked_generator(random_state)
    for some in slices(n_pairs, step):
        players = np.tile(np.arange(n_players, dtype=np.int32), (n_background, some.stop - some.start, 1))
        yield rng.permuted(players, axis=2)


class _Means:
    """Add up values (n_background, n_outputs, n_pairs, n_players) of some pairs after others."""

    def __init__(self, n_pairs: int) -> None:
        self._n_pairs, self._centre, self._sums, self._squares = n_pairs, np.zeros(0), np.zeros(0), np.zeros(0)

    def add(self, values: np.ndarray) -> None:
        if not self._centre.size:
            self._centre = values.mean(axis=2)  # what squares are taken from, so that they keep their digits
            self._sums, self._squares = np.zeros_like(self._centre), np.zeros_like(self._centre)
        values = values - self._centre[:, :, None]
        self._sums += values.sum(axis=2)
        self._squares += (values**2).sum(axis=2)

    def mean(self, weights: np.ndarray) -> np.ndarray:
        """Return the weighted sums (n_players, n_outputs) of the background rows' means."""
        return np.einsum("zoj,z->jo", self._centre + self._sums / self._n_pairs, weights)

    def variance(self, weights: np.ndarray) -> np.ndarray:
        """Return the variance of :meth:`mean` over the orders of each background row."""
        spread = np.maximum(self._squares - self._sums**2 / self._n_pairs, 0.0) / (self._n_pairs * (self._n_pairs - 1))
        return np.einsum("zoj,z->jo", spread, weights**2)


def _moves(values: np.ndarray, forwards: np.ndarray) -> np.ndarray:
    """Return what each player moves, the mean of an order and its reverse: (n_background, n_outputs, n_pairs, n_players)."""
    out = np.empty((*values.shape[:2], *forwards.shape[1:]))
    fill_moves(np.ascontiguousarray(values, float), forwards, out)
    return out


def _slopes(moved: np.ndarray, moved_scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the slopes (n_scores, n_outputs) that leave the least variance within background rows."""
    w = weights[:, None, None, None]
    a, b = (w * (part - part.mean(axis=2, keepdims=True)) for part in (moved_scores, moved))
    n_scores, n_outputs = a.shape[1], b.shape[1]
    a, b = np.moveaxis(a, 1, -1).reshape(-1, n_scores), np.moveaxis(b, 1, -1).reshape(-1, n_outputs)
    # Not "@": its bits depend on the threads that BLAS has
    squares, products = np.einsum("nk,nl->kl", a, a), np.einsum("nk,no->ko", a, b)
    # A score without interactions varies by rounding alone, which has no slope
    ridge = RIDGE * float(((w * moved_scores) ** 2).sum()) / n_scores * np.eye(n_scores)
    slopes, *_ = np.linalg.lstsq(squares + ridge, products, rcond=None)
    return np.asarray(slopes)

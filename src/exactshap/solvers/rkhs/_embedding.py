r"""Compute conditional mean embeddings by kernel ridge regression into a feature space.

With rows Z of weights w and kernels :math:`k_S` on the known and :math:`k_{\bar S}` on the unknown players,

.. math:: E[g(Z_{\bar S}) \mid Z_S = x_S] \approx \sum_z W_{zx}\, g(z), \qquad
          W = (K_S + \eta\, \operatorname{diag}(1 / w))^{-1} k_S(Z, x)

for every g in the space of :math:`k_{\bar S}`; with equal weights the ridge is :math:`n \eta I`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap._runtime.linear_algebra import factorise_lower, inverse_of, solve_factored
from exactshap.errors import InputError
from exactshap.kernels import Component

# Candidate ridges, relative to kernel values of at most 1.
ETAS = np.logspace(-7.0, 0.0, 15)
# Eigenvalues of a landmark kernel below this fraction of the largest are rounding.
RANK_CUTOFF = 1e-10
# Rows: twelve eigenvalue problems of this size take half a second.
MAX_ROWS_FOR_ETA = 300
# Random coalitions, with losses added up
COALITIONS_FOR_ETA = 12


def subset_product(factors: np.ndarray, mask: np.ndarray, start: int = 0, stop: int | None = None) -> np.ndarray:
    """Multiply factors (n_players, n, m) of the players in ``mask``, for rows start to stop; ones for none."""
    out = np.ones(factors[0, start:stop].shape)
    for j in np.flatnonzero(mask):
        out *= factors[j, start:stop]
    return out


def median_gaussian(rows: np.ndarray) -> Component:
    """Return the Gaussian kernel of the rows' median distances: some kernels measure no closeness."""
    some = rows[:: max(1, len(rows) // 500)]
    distances = np.abs(some[:, None, :] - some[None, :, :]).reshape(-1, rows.shape[1])
    bandwidth = np.array([np.median(d[d > 0]) if np.any(d > 0) else 1.0 for d in distances.T])
    return Component(squared=0.5 / bandwidth**2)


def check_eta(eta: Any, owner: str) -> float:
    """Return the ridge of an embedding as a positive float, or refuse it."""
    number = isinstance(eta, (int, float, np.integer, np.floating)) and not isinstance(eta, bool)
    if not number or not np.isfinite(eta) or eta <= 0:
        raise InputError(
            f"The 'eta' parameter of {owner} must be a float > 0 or 'auto'",
            f"Got {eta!r}",
            "Without a ridge the conditional expectations only interpolate: use eta=1e-3, or eta='auto' to cross-validate",
        )
    return float(eta)


def embedding_weights(within: np.ndarray, targets: np.ndarray, eta: float, weights: np.ndarray) -> np.ndarray:
    """Return (K + eta diag(1 / w))^-1 targets by one Cholesky factorisation.

    ``within`` (n, n), k_S between the conditioning rows, is overwritten, and so is ``targets`` (n, m) in Fortran order. The weights
    (n,) are positive and sum to one.
    """
    return solve_factored(_factor(within, eta, weights), np.asfortranarray(targets))


def ridge_inverse(within: np.ndarray, eta: float, weights: np.ndarray) -> np.ndarray:
    """Return (K + eta diag(1 / w))^-1 (n, n), symmetric to the bit. ``within`` is overwritten."""
    return inverse_of(_factor(within, eta, weights))


def _factor(within: np.ndarray, eta: float, weights: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor in Fortran order, with arbitrary numbers above the diagonal."""
    within[np.diag_indices_from(within)] += eta / weights
    factor = np.asfortranarray(within.T)  # the transpose of a symmetric matrix in C order, factorised in place
    if not factorise_lower(factor):
        return factor
    raise InputError(
        "The kernel matrix of the conditioning rows is singular to working precision",
        f"Its Cholesky factorisation failed at eta={eta:g} (duplicated rows make it singular)",
        "Raise eta=, for instance to 1e-3",
    )


def choose_eta(factors: np.ndarray) -> float:
    """Return the ridge with the smallest leave-one-out loss over random coalitions.

    ``factors`` (n_players, n, n) are one-player kernel factors between the conditioning rows; at most 300 of these are used.
    """
    # A fixed seed, as the ridge must not change from call to call
    rng = np.random.default_rng(0)
    n_players, n = factors.shape[:2]
    if n_players < 2:
        # No proper coalition exists to condition on
        return float(ETAS[len(ETAS) // 2])
    rows = np.sort(rng.choice(n, min(n, MAX_ROWS_FOR_ETA), replace=False))
    factors = factors[:, rows[:, None], rows]
    losses = np.zeros(len(ETAS))
    for _ in range(COALITIONS_FOR_ETA):
        mask = np.zeros(n_players, bool)
        # Neither empty nor full, as then there is nothing to condition on or to estimate
        mask[rng.choice(n_players, rng.integers(1, n_players), replace=False)] = True
        losses += leave_one_out_loss(subset_product(factors, mask), subset_product(factors, ~mask), ETAS)
    return float(ETAS[int(np.argmin(losses))])


def leave_one_out_loss(known: np.ndarray, unknown: np.ndarray, etas: np.ndarray) -> np.ndarray:
    r"""Return each ridge's mean squared leave-one-out error of the embedding of the unknown players.

    .. math:: \frac1n \sum_i \bigl\| k_{\bar S}(z_i, \cdot) - \mu^{(-i)}_{\bar S | z_i} \bigr\|^2
              = \frac1n \sum_i \frac{(A K_{\bar S} A)_{ii}}{A_{ii}^2}, \qquad A = (K_S + n \eta I)^{-1}

    The ridge stays n eta when a row is left out, as in every linear smoother.
    """
    n = len(known)
    # K + n eta I has the same eigenvectors for all ridges, so that one decomposition is enough
    eigenvalues, vectors = np.linalg.eigh(known)
    rotated = vectors.T @ unknown @ vectors
    losses = []
    for eta in etas:
        inverse = 1.0 / (np.maximum(eigenvalues, 0.0) + n * eta)
        scaled = vectors * inverse
        numerator = np.einsum("ia,ab,ib->i", scaled, rotated, scaled, optimize=True)
        losses.append(np.mean(numerator / (vectors**2 @ inverse) ** 2))
    return np.array(losses)


def pivoted_rows(
    column: Callable[[int], np.ndarray], diagonal: np.ndarray, weights: np.ndarray, n_chosen: int, rng: np.random.Generator
) -> np.ndarray:
    r"""Return rows that span a kernel matrix well, outliers included, by randomly pivoted Cholesky.

    Each row z is drawn with a probability proportional to its weight and its residual given the rows L before:

    .. math:: P(z) \propto w_z \bigl(k(z, z) - k_L(z)^\top K_{LL}^{-1} k_L(z)\bigr)

    ``column(i) -> (n,)`` is the kernel between row i and all rows, ``diagonal`` k(z, z). Once all residuals are zero, the rest
    is drawn from the other rows at random. O(n n_chosen^2) operations and n n_chosen numbers. Chen, Epperly, Tropp & Webber, *Randomly
    pivoted Cholesky*, Algorithm 1.
    """
    n = len(diagonal)
    left, factor = np.array(diagonal, float), np.empty((n_chosen, n))
    chosen: list[int] = []
    floor = RANK_CUTOFF * left.max(initial=0.0)
    for i in range(n_chosen):
        share = np.where(left > floor, weights * left, 0.0)
        if not share.any():
            others = np.setdiff1d(np.arange(n), chosen)
            return np.concatenate([chosen, rng.choice(others, n_chosen - i, replace=False)]).astype(int)
        pivot = int(rng.choice(n, p=share / share.sum()))
        row = column(pivot) - factor[:i, pivot] @ factor[:i]
        factor[i] = row / np.sqrt(left[pivot])
        left -= factor[i] ** 2
        # Exactly 0, as rounding might let the row be drawn again
        left[pivot] = 0.0
        chosen.append(pivot)
    return np.array(chosen, int)


def whitener(landmarks: np.ndarray) -> np.ndarray:
    """Return T (b, rank) with k(x, m) T the Nystroem features of x, without eigenvalues that are rounding."""
    eigenvalues, vectors = np.linalg.eigh(landmarks)
    keep = eigenvalues > RANK_CUTOFF * max(eigenvalues[-1], 0.0)
    return vectors[:, keep] / np.sqrt(eigenvalues[keep])


class FeatureRidge:
    r"""Solve ridge regression on features c(z) of weighted rows z.

    .. math:: E[g \mid x] \approx \Bigl[\sum_z w_z g(z) c(z)^\top\Bigr] \Bigl[\sum_z w_z c(z) c(z)^\top + \eta I\Bigr]^{-1} c(x)
    """

    def __init__(self, weights: np.ndarray, eta: float) -> None:
        self.eta = eta
        # Equal weights are a factor of the sum, which saves a weighted copy of the features
        self.share: Any = weights[0] if np.all(weights == weights[0]) else weights[:, None]

    def mean(self, first: np.ndarray, second: np.ndarray, start: int = 0) -> np.ndarray:
        """Return sum_z w_z first(z) second(z)^T over the rows from ``start`` on."""
        if np.ndim(self.share) == 0:
            return np.asarray(self.share * (first.T @ second))
        return np.asarray(first.T @ (self.share[start : start + len(first)] * second))

    def solve(self, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return (sum_z w c c^T + eta I)^-1 c(x), of shape (n_features, n_rows)."""
        return self.solve_mean(self.mean(features, features), targets)

    def solve_mean(self, gram: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return :meth:`solve` for ``gram``, the mean of c c^T, overwriting it."""
        from scipy.linalg import solve

        gram[np.diag_indices_from(gram)] += self.eta
        return np.asarray(solve(gram, targets.T, assume_a="pos", overwrite_a=True, check_finite=False))

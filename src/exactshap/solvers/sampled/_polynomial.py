r"""Compute PolySHAP, the Shapley values of the polynomial that fits sampled coalitions best.

.. math:: \min_\phi \sum_S w(S)\, \mu(S) \Bigl(v(S) - v(\emptyset) - \sum_{T \in \mathcal F,\, T \subseteq S} \phi_T\Bigr)^2
          \quad \text{s.t.} \quad \sum_T \phi_T = v(D) - v(\emptyset), \qquad
          \phi_i^{SV} = \sum_{T \ni i} \phi_T / |T|

with the Shapley kernel :math:`\mu` and inverse sampling rates ``w`` (Fumagalli et al. 2026, Theorem 4.3). Order 1 is KernelSHAP; the
k-additive frontier is kADD-SHAP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap.solvers.sampled._frontier import Sets
from exactshap.solvers.sampled._sampling import row_weights, sizes_of, stratum_weights

# Fraction of a row's weight that the other rows predict, below which they do not determine it
UNTOLD = 1e-8
# |R_jj| below this fraction of the largest: the columns do not determine the coefficients
SINGULAR = 1e-10
TINIEST = 1e-300
# Relative residual that counts as rounding.
ROUNDING = 1e-10
# Digits to which equal answers agree.
ALIKE_DIGITS = 9


@dataclass(frozen=True, eq=False)
class PolynomialFit:
    """Hold values, and their changes by one more or one less row.

    ``values`` and ``std_error`` (n_players, n_outputs); ``errors`` (n_outputs,) are the cross-validated mean squared residuals, in the
    metric of the weights, infinite when the rows do not determine the polynomial. ``moves`` (n_rows, n_players) is by how much one more unit of a
    row's target moves the values, ``unseen`` (n_rows,) the share of the row's stratum that no row shows. ``left_out``
    (n_outputs,) is the largest residual of a row that was left out in units of the largest target, infinite where the others do not predict one.
    """

    values: np.ndarray
    std_error: np.ndarray
    errors: np.ndarray
    rank: int
    n_columns: int
    moves: np.ndarray
    unseen: np.ndarray
    left_out: np.ndarray

    @property
    def determined(self) -> bool:
        return self.rank == self.n_columns - 1

    @property
    def error(self) -> float:
        return float(self.errors.sum())

    def unseen_error(self, sizes: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return what pairs that were not called may hold, as an error (n_players, n_outputs) of values that predict all that were."""
        certain = np.ones(targets.shape[1])
        guesses = surprises(certain, targets, np.bincount(sizes)[sizes])
        return np.asarray(np.sqrt((self.unseen[:, None] * self.moves**2).T @ guesses))


def fit_polynomial(
    columns: np.ndarray,
    targets: np.ndarray,
    total: np.ndarray,
    masks: np.ndarray,
    shares: np.ndarray,
    *,
    paired: bool,
    mirrored: bool = False,
) -> PolynomialFit:
    """Fit coefficients that sum to ``total`` (n_outputs,) and return ``shares @ coefficients``, with jackknife errors.

    ``columns`` (n_rows, n_columns), ``targets`` (n_rows, n_outputs), ``shares`` (n_players, n_columns). A reflection turns the
    constraint into a fixed first coordinate; the rest is one QR factorisation, or the shortest solution when rows are missing.
    ``paired``: each row stands for two complements (odd characters). ``mirrored``: the second half of the rows are the complements
    of the first half, so that the two are left out together.
    """
    from scipy.linalg import lstsq, qr, solve_triangular

    p = columns.shape[1]
    inverse_rates = stratum_weights(masks, paired=paired)
    root = np.sqrt(row_weights(masks, paired=paired))[:, None]
    rotated, rotated_shares = _reflected(columns), _reflected(shares)
    # Coefficients with the sum ``total`` have this first coordinate in the new basis
    first = total / np.sqrt(p)
    matrix, shares_left = root * rotated[:, 1:], rotated_shares[:, 1:]
    right = root * (targets - rotated[:, :1] * first)
    base = rotated_shares[:, :1] * first
    n, width = matrix.shape
    still = np.zeros((n, len(shares)))
    if width == 0:
        none = np.zeros(right.shape[1])
        return PolynomialFit(base, np.zeros_like(base), none, 0, p, still, np.ones(n), none)
    if n >= width:
        q, r = qr(matrix, mode="economic", check_finite=False)
        diagonal = np.abs(np.diag(r))
        if diagonal.min() > SINGULAR * diagonal.max():
            rest = solve_triangular(r, q.T @ right, check_finite=False)
            residual = right - matrix @ rest
            influence = solve_triangular(r, shares_left.T, trans="T", check_finite=False)
            moves = q @ influence
            unseen = 1.0 - 1.0 / np.maximum(inverse_rates, 1.0)[:, None]  # of each row's stratum, 1 - n_s / C(d, s)
            left_out = _left_out(q, residual)
            variance = _jackknife(left_out, np.sqrt(unseen) * moves, mirrored=mirrored)
            luck, sizes = by_luck(targets, n / width), sizes_of(masks, paired=paired)
            if n < 2 * width - 1:  # so few rows are fitted exactly by many games
                luck = np.where((np.abs(left_out / root) <= ROUNDING * np.abs(targets).max(axis=0)).all(axis=0), 1.0, luck)
            variance += (unseen * moves**2).T @ (root**2 * surprises(luck, targets, np.bincount(sizes)[sizes]))
            errors = (left_out**2).sum(axis=0) / n
            # Divided by the root of the weights, residuals are in units of the target again
            worst = np.abs(left_out / root).max(axis=0) / np.maximum(np.abs(targets).max(axis=0), TINIEST)
            # A row of leverage 1 is always fitted exactly, so its residual shows nothing
            blind = _leverage(q) > 1.0 - UNTOLD
            if blind.any():
                worst = np.full_like(worst, np.inf)
            if (blind & (unseen[:, 0] > 0.0)).any():
                variance, errors = np.full_like(variance, np.inf), np.full_like(errors, np.inf)
            std_error = np.sqrt(variance)
            return PolynomialFit(base + shares_left @ rest, std_error, errors, width, p, root * moves, unseen[:, 0], worst)
    rest, _, rank, _ = lstsq(matrix, right, check_finite=False)
    unknown = np.full((len(shares), right.shape[1]), np.inf)
    return PolynomialFit(base + shares_left @ rest, unknown, unknown[0], int(rank), p, still, np.ones(n), unknown[0])


def _reflected(columns: np.ndarray) -> np.ndarray:
    """Return the columns in an orthonormal basis that begins with (1, ..., 1) / sqrt(p)."""
    p = columns.shape[1]
    # Householder: I - 2 r r^T with r along (1, ..., 1) / sqrt(p) - e_1 swaps these two vectors
    reflector = np.full(p, 1.0 / np.sqrt(p))
    reflector[0] -= 1.0
    norm = np.linalg.norm(reflector)
    reflector = reflector / norm if norm > 0 else reflector
    return columns - 2.0 * np.outer(columns @ reflector, reflector)


def _left_out(q: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Return leave-one-out residuals (n_rows, n_outputs) e_i / (1 - h_i), h_i = |q_i|^2, without refits."""
    room = 1.0 - _leverage(q)
    return np.where(room[:, None] > UNTOLD, residual / np.maximum(room, UNTOLD)[:, None], 0.0)


def _leverage(q: np.ndarray) -> np.ndarray:
    return np.asarray(np.minimum((q**2).sum(axis=1), 1.0))


def _jackknife(left_out: np.ndarray, moves: np.ndarray, *, mirrored: bool) -> np.ndarray:
    r"""Return variances of the values: leaving row i out moves them by :math:`B^\top q_i` (``moves``) times its residual then.

    Rows of strata that are enumerated almost completely count less: 1 - n_s / C(d, s).
    """
    n = len(left_out)
    moved = moves[:, :, None] * left_out[:, None, :]
    if mirrored:
        # Complements are left out together, so their moves are added before they are squared
        moved = moved[: n // 2] + moved[n // 2 :]
    return np.asarray((moved**2).sum(axis=0))


def by_luck(answers: np.ndarray, n_rows_for_each: float) -> np.ndarray:
    r"""Return the probability (n_outputs,) that rows were predicted by luck, of ``answers`` (n_rows, n_outputs).

    .. math:: t^{n / p - 1}

    where two answers are the same with probability t, and n / p rows are there for each coefficient or relevance, one of which fixes it.
    """
    n = len(answers)
    rounded = np.round(answers / np.maximum(np.abs(answers).max(axis=0), TINIEST), ALIKE_DIGITS)
    times = [np.unique(column, return_counts=True)[1] for column in rounded.T]
    alike = np.array([(some * (some - 1)).sum() / max(n * (n - 1), 1) for some in times])
    return np.asarray(alike ** max(n_rows_for_each - 1.0, 0.0))


def surprises(luck: np.ndarray, answers: np.ndarray, n_alike: np.ndarray) -> np.ndarray:
    """Return the squared error (n_rows, n_outputs) of rows predicted by ``luck``: each a guess once in ``n_alike`` (n_rows,) and one more."""
    return np.asarray(luck * (answers**2).mean(axis=0) / (n_alike[:, None] + 1.0))


def odd_shares(n_players: int, sets: Sets) -> np.ndarray:
    """Return phi_i = sum over T with i of 2 c_T / |T|, for coefficients of odd characters."""
    return 2.0 * unanimity_shares(n_players, sets)


def unanimity_shares(n_players: int, sets: Sets) -> np.ndarray:
    """Return phi_i = sum over T with i of phi_T / |T|, for coefficients of unanimity games."""
    shares = np.zeros((n_players, len(sets)))
    for column, players in enumerate(sets):
        shares[list(players), column] = 1.0 / len(players)
    return shares

r"""Fit Gaussian processes over coalitions, a Bayesian polynomial regression of every order at once.

With :math:`x = 2 S - 1 \in \{-1, 1\}^d` the kernel of one game is a product, one relevance :math:`\theta_j` per player,

.. math:: k(x, x') = \exp\Bigl(-\sum_j \theta_j [x_j \ne x'_j]\Bigr) = \prod_j \frac{1 + \rho_j x_j x'_j}{1 + \rho_j},
          \qquad \rho_j = \tanh(\theta_j / 2),

that is, independent coefficients of all :math:`2^d` Walsh characters, of variance proportional to
:math:`\prod_{j \in T} \rho_j`. A white part :math:`\tau\, \delta(x, x')` belongs to the game as well (it is no noise), so that the
posterior mean passes through every observed value and is the game itself once all coalitions are observed.

A pair of complementary coalitions splits the game into an odd and an even half, independent of each other under this kernel;
symmetric measures (Shapley, Banzhaf) depend on the odd half only, with half the rows. The posterior mean is a sum of products of
one-player factors: its values of any index are exact by quadrature on a ``ProductGame``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from exactshap._runtime.linear_algebra import solve_lower
from exactshap._runtime.process_settings import single_threaded_blas
from exactshap.games import ProductGame
from exactshap.solvers.sampled.process._halves import FittedHalf, Half, covariance
from exactshap.solvers.sampled.process._relevance import evenly_spaced, find_relevances
from exactshap.solvers.sampled.process._values import Prior, Question

# Rows that are left out to estimate errors: inverting their block takes as long as factorising it
MAX_CHECKED = 2000
# the true squared error over the posterior's, after leaving rows out: 0.5 to 1.6 on seven forest games, 1.2 to 2.6 on image games
HEAVY_TAILS = 1.5
# Least part of the posterior's squared error, for its own rounding and jitter
SMALLEST_RATIO = 1e-4
# Pairs up to which the even half also informs the relevances if the values depend on the odd one only
BOTH_ROWS = 150
# relevance, over d, that m rows hardly distinguish from none: the least of any player in errors; tuned
FAINT, FAINTEST = 2.0, 0.3  # over sqrt(m), and at most
TINIEST = 1e-300
MAX_ROWS = 12_000  # pairs in one dense factorisation (1.1 GiB)


class HalfPosterior(NamedTuple):
    """Hold covariances of one half with the values of sets, which do not depend on the answers."""

    fitted: FittedHalf
    cross: np.ndarray  # (n_pairs, n_sets), covariances of the values with the rows
    left: np.ndarray  # (n_sets,), variances given the rows
    influence: np.ndarray  # K^-1 cross, (n_pairs, n_sets): by how much a row moves the values


@dataclass(frozen=True, eq=False)
class CubeProcess:
    """Hold the posterior of a game given ``points`` (n_pairs, n_players) of -1 and 1 and, if paired, their mirror images."""

    points: np.ndarray
    order: np.ndarray  # (n_pairs,), where each of them stood among those given
    prior: Prior
    halves: tuple[FittedHalf, ...]

    @property
    def theta(self) -> np.ndarray:
        return self.prior.theta

    @property
    def white(self) -> float:
        return self.prior.white

    @property
    def logs(self) -> np.ndarray:
        """Return log theta and log tau, (n_players + 1,)."""
        return np.log(np.append(self.theta, self.white))

    @property
    def paired(self) -> bool:
        return self.halves[0].half.sign != 0

    @functools.cached_property
    def unit(self) -> np.ndarray:
        """Return the root mean square (n_outputs,) of the odd half's values, without overflow of squares."""
        return self.halves[0].half.scale

    @functools.cached_property
    def n_answers(self) -> float:
        r"""Return how many independent numbers the relevances were fitted to: rows times outputs, fewer where outputs are alike.

        .. math:: m\, \frac{(\operatorname{tr} C)^2}{\operatorname{tr} C^2}, \qquad C = y^\top y
        """
        target = self.halves[0].half.target
        between = np.asarray(target.T @ target)
        return len(target) * max(float(between.trace()) ** 2 / max(float((between**2).sum()), TINIEST), 1.0)

    def game(self) -> ProductGame:
        """Return the posterior mean, up to its constant, as a product game of four terms per pair."""
        # k(x, x') is a product of factors 1 and exp(-theta_j), and the white part one of factors 1 and 0: two terms a coalition
        kept = np.exp(-self.theta)
        inside = self.points > 0
        coefficients, a, b = [], [], []
        for mirror in (False, True) if self.paired else (False,):
            here = inside ^ mirror
            sign = [(fitted.half.sign if mirror else 1) for fitted in self.halves]
            dual = sum(s * fitted.dual * fitted.half.scale for s, fitted in zip(sign, self.halves, strict=True))
            coefficients += [0.5 * dual if self.paired else dual, self.white * dual]
            a += [np.where(here, 1.0, kept), here.astype(float)]
            b += [np.where(here, kept, 1.0), (~here).astype(float)]
        return ProductGame(np.concatenate(coefficients), np.concatenate(a), np.concatenate(b))

    def predict(self, masks: np.ndarray) -> np.ndarray:
        """Return the posterior mean (n_masks, n_outputs) of every coalition, or of its odd half if there is no other."""
        points = 2.0 * masks - 1.0
        gram = points @ self.points.T
        # x . x' is d for the same coalition and -d for its complement
        seen, mirrored = gram == self.points.shape[1], gram == -self.points.shape[1]
        total = np.zeros((1, 1))
        for fitted in self.halves:
            matrix = covariance(points, self.points, self.theta, fitted.half.sign)
            matrix += self.white * (1.0 * seen + fitted.half.sign * mirrored)
            total = total + (matrix @ fitted.dual) * fitted.half.scale + fitted.half.offset
        return total

    def checked(self, half: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that calibrate the errors, and leave-one-out residuals of a half there, in its scale: alpha_i / (K^-1)_ii."""
        precision = self._precisions[half]
        n = len(precision)
        return self.order[-n:], self.halves[half].dual[-n:] / precision[:, None]

    def posterior(self, question: Question) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of the posterior mean of the odd half and, in squares of ``unit``, their variances: (n_sets, n_outputs).

        The variances have the scale of the left-out residuals if that is smaller, as a game that they recover is known.
        """
        posterior = self.half_posteriors(question)[0]
        fitted, precision = posterior.fitted, self._precisions[0]
        scale = (fitted.dual[-len(precision) :] ** 2 / precision[:, None]).mean(axis=0)
        values = (posterior.cross.T @ fitted.dual) * self.unit
        return values, posterior.left[:, None] * np.clip(scale, SMALLEST_RATIO * fitted.variance, fitted.variance)

    @property
    def white_share(self) -> float:
        """Return the share of the white part in the variance of left-out rows of the odd half, their mean."""
        return float(self.white * self._precisions[0].mean())

    def variance_of_left_out(self, weights: np.ndarray, half: int = 0) -> np.ndarray:
        """Return the variance (n_columns, n_outputs) of weighted sums of the left-out residuals of :meth:`checked`, weights (n_checked, n_columns)."""
        n, fitted = len(weights), self.halves[half]
        scaled = np.asfortranarray(weights / self._precisions[half][:, None])
        root = solve_lower(np.asfortranarray(fitted.factor[-n:, -n:]), scaled)
        return np.asarray((root**2).sum(axis=0)[:, None] * fitted.variance)

    @functools.cached_property
    def _precisions(self) -> list[np.ndarray]:
        """Return (K^-1)_ii of each half at the last rows, which calibrate the errors."""
        return [fitted.precisions(min(len(self.order), MAX_CHECKED)) for fitted in self.halves]

    def wary(self) -> CubeProcess:
        """Return the process with a least relevance for each player, so that invisible players have an error, too."""
        theta = np.maximum(self.theta, min(FAINT / np.sqrt(self.n_answers), FAINTEST) / self.points.shape[1])
        if np.array_equal(theta, self.theta):
            return self
        halves = tuple(FittedHalf.at(self.points, fitted.half, theta, self.white) for fitted in self.halves)
        return replace(self, prior=Prior(theta, self.white), halves=halves)

    def half_posteriors(self, question: Question) -> list[HalfPosterior]:
        """Return covariances of each half with the values of sets, which do not depend on the answers."""
        posteriors = []
        for fitted in self.halves:
            sign = fitted.half.sign
            cross = self.prior.covariances(sign, self.points, question)
            root = solve_lower(fitted.factor, cross.copy(order="F"))
            left = np.maximum(self.prior.variances(sign, question) - (root**2).sum(axis=0), 0.0)
            posteriors.append(HalfPosterior(fitted, cross, left, solve_lower(fitted.factor, root, transposed=True)))
        return posteriors

    def solve(self, question: Question, surprises: Sequence[np.ndarray] = ()) -> tuple[np.ndarray, np.ndarray]:
        r"""Return the exact values of the posterior mean and their posterior standard deviations, calibrated: (n_sets, n_outputs).

        Values are linear in the game, so that those of the mean are :math:`\mathrm{cov}(\phi_T, g)\, K^{-1} g`. ``surprises`` (n_sets, n_outputs)
        of each half are factors of its variances at least, before those that single rows ask for.
        """
        posteriors = self.half_posteriors(question)
        surprises = surprises or [np.zeros(1)] * len(posteriors)
        values = error = np.zeros(())
        for half, precision, least in zip(posteriors, self._precisions, surprises, strict=True):
            fitted = half.fitted
            variance = half.left[:, None] * fitted.variance * self._inflation(half, precision, least)
            values = values + (half.cross.T @ fitted.dual) * fitted.half.scale
            error = np.hypot(error, np.sqrt(variance) * fitted.half.scale)
        return values, error

    def _inflation(self, posterior: HalfPosterior, precision: np.ndarray, least: np.ndarray) -> np.ndarray:
        r"""Return the factor by which the posterior's variances are too small, by leave-one-out residuals.

        .. math:: c\, \Bigl[\max\Bigl\{\frac1m \sum_i z_i^2,\; \frac{\sum_i w_i z_i^2}{\sum_i w_i},\; 10^{-4}\Bigr\} + \frac dm\Bigr],
                  \qquad w_i = \sum_T (K^{-1} c_T)_i^2 / (K^{-1})_{ii}

        ``z`` are standardised residuals, ``w`` the variance by which the values would move without row i, :math:`c_T` the covariance
        of the value of T with the rows. d / m stands for the d relevances that were fitted to m rows, ``c`` (HEAVY_TAILS) for games that are rougher between the rows than at them.
        """
        fitted, checked = posterior.fitted, slice(-len(precision), None)
        squares = fitted.dual[checked] ** 2 / precision[:, None] / np.maximum(fitted.variance, TINIEST)
        weights = (posterior.influence[checked] ** 2).sum(axis=1) / precision
        weighted = weights @ squares / max(float(weights.sum()), TINIEST)
        judged = np.maximum(np.maximum(squares.mean(axis=0), weighted), np.maximum(least, SMALLEST_RATIO))
        return HEAVY_TAILS * (judged + self.points.shape[1] / self.n_answers)

    def scales(self) -> list[tuple[int, float]]:
        """Return the sign of each half, and its scale relative to the larger one, in the mean square of outputs."""
        scales = np.array([fitted.half.scale * np.sqrt(fitted.variance) for fitted in self.halves])
        scales = np.sqrt(np.mean((scales / np.maximum(scales.max(axis=0), TINIEST)) ** 2, axis=1))
        return [(fitted.half.sign, float(scale)) for fitted, scale in zip(self.halves, scales, strict=True)]


def fit_process(
    points: np.ndarray,
    inside: np.ndarray,
    outside: np.ndarray | None,
    *,
    even: bool,
    relevance_rows: int,
    rng: np.random.Generator,
    start: np.ndarray | None = None,
) -> CubeProcess:
    """Fit relevances on at most ``relevance_rows`` rows, then condition on all of them.

    ``start`` are the ``logs`` of a process of fewer rows, from which their search goes on.
    ``inside`` and ``outside`` (n_rows, n_outputs) are the values of the coalitions and of their complements, or None for single
    coalitions; the first row is the full coalition. ``even`` fits both halves of pairs.
    """
    m = len(points)
    halves = _halves(inside, outside, even=even or m <= BOTH_ROWS)
    some, trained = points, halves
    if m > relevance_rows:
        # The full coalition, row 0, always stays
        rows = np.append(0, 1 + np.sort(rng.choice(m - 1, relevance_rows - 1, replace=False)))
        some, trained = points[rows], _halves(inside[rows], None if outside is None else outside[rows], even=even)
    with single_threaded_blas():
        logs = find_relevances(some, trained, start)
    theta, white = np.exp(logs[:-1]), float(np.exp(logs[-1]))
    order = _checked_last(m)
    wanted = halves if even else halves[:1]
    points = points[order]
    fitted = tuple(FittedHalf.at(points, half.rows(order), theta, white) for half in wanted)
    return CubeProcess(points, order, Prior(theta, white), fitted)


def _checked_last(n_rows: int) -> np.ndarray:
    """Return an order of the rows in which those that calibrate the errors, evenly spread, come last."""
    checked = np.zeros(n_rows, bool)
    checked[evenly_spaced(n_rows, MAX_CHECKED)] = True
    return np.argsort(checked, kind="stable")


def _halves(inside: np.ndarray, outside: np.ndarray | None, *, even: bool) -> list[Half]:
    signs = (0,) if outside is None else (-1, 1) if even else (-1,)
    return [Half.of(inside, outside, sign) for sign in signs]

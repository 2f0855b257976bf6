r"""Gaussian processes over coalitions: a Bayesian polynomial regression of every order at once.

With :math:`x = 2 S - 1 \in \{-1, 1\}^d` the kernel of one game is a product, one relevance :math:`\theta_j` per player,

.. math:: k(x, x') = \exp\Bigl(-\sum_j \theta_j [x_j \ne x'_j]\Bigr) = \prod_j \frac{1 + \rho_j x_j x'_j}{1 + \rho_j},
          \qquad \rho_j = \tanh(\theta_j / 2),

that is, independent coefficients of all :math:`2^d` Walsh characters, of variance proportional to
:math:`\prod_{j \in T} \rho_j`. A white part :math:`\tau\, \delta(x, x')` belongs to the game as well (it is no noise), so that the
posterior mean passes through every observed value and is the game itself once all coalitions are observed.

A pair of complementary coalitions splits the game into an odd and an even half, independent of each other under this kernel;
symmetric measures (Shapley, Banzhaf) see the odd half only, with half the rows. The posterior mean is a sum of products of
one-player factors: its values of any index are exact by quadrature on a ``ProductGame``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from exactshap._runtime.blas import single_threaded_blas
from exactshap.games import ProductGame
from exactshap.semivalues import Beta, Measure, Semivalue
from exactshap.solvers.core import enough_nodes
from exactshap.solvers.sampled.process._cube_index import functionals, prior_variance, white_functionals, white_variance
from exactshap.solvers.sampled.process._evidence import Half, covariance, covariance_and_slopes, factorise, invert_triangle
from exactshap.solvers.sampled.process._relevance import evenly_spaced, find_relevances

__all__ = ["CubeProcess", "fit_process"]

MAX_CHECKED = 200  # rows that are left out to calibrate the standard errors
# the true squared error over the posterior's, after leaving rows out: 0.5 to 1.6 on seven forest games, 1.2 to 2.6 on image games
HEAVY_TAILS = 1.5
LEAST_TOLD = 1e-4  # of the posterior's squared error, for its own rounding and jitter
BOTH_ROWS = 150  # pairs up to which the even half tells of the relevances, too, where only the odd one is asked for
MAX_ROWS = 12_000  # pairs in one dense factorisation, of two matrices (2.1 GiB)


@dataclass(frozen=True, eq=False)
class FittedHalf:
    half: Half
    factor: np.ndarray  # lower Cholesky factor (n_pairs, n_pairs); what stands above its diagonal means nothing
    dual: np.ndarray  # (n_pairs, n_outputs), scaled
    variance: np.ndarray  # (n_outputs,), of the scaled target
    known: dict[int, np.ndarray] = field(default_factory=dict)  # precisions of so many last rows

    def precisions(self, n_last: int) -> np.ndarray:
        """Return (K^-1)_ii of the last rows: as K = L L^T, the last block of K^-1 is V^-T V^-1, V the last block of L."""
        if n_last not in self.known:
            block = self.factor[-n_last:, -n_last:]
            inverse = invert_triangle(block, np.zeros((n_last, n_last), order="F"))
            self.known[n_last] = (inverse**2).sum(axis=0)
        return self.known[n_last]


@dataclass(frozen=True, eq=False)
class CubeProcess:
    """The posterior of a game after ``points`` (n_pairs, n_players) of -1 and 1 and, if paired, their mirror images were seen."""

    points: np.ndarray
    order: np.ndarray  # (n_pairs,), where each of them stood among those given
    theta: np.ndarray
    white: float
    halves: tuple[FittedHalf, ...]

    @functools.cached_property
    def rho(self) -> np.ndarray:
        return np.tanh(self.theta / 2.0)

    @property
    def paired(self) -> bool:
        return self.halves[0].half.sign != 0

    @functools.cached_property
    def unit(self) -> np.ndarray:
        """Root mean square (n_outputs,) of the odd half's values: squares of the values themselves might overflow."""
        return self.halves[0].half.scale

    def game(self) -> ProductGame:
        """Return the posterior mean, up to its constant, as a product game of four terms per pair."""
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
        """Return the posterior mean (n_masks, n_outputs) of every coalition; of its odd half if that is all there is."""
        points = 2.0 * masks - 1.0
        gram = points @ self.points.T
        seen, mirrored = gram == self.points.shape[1], gram == -self.points.shape[1]
        total = np.zeros((1, 1))
        for fitted in self.halves:
            matrix = covariance(points, self.points, self.theta, fitted.half.sign)
            matrix += self.white * (1.0 * seen + fitted.half.sign * mirrored)
            total = total + (matrix @ fitted.dual) * fitted.half.scale + fitted.half.offset
        return total

    def left_out(self) -> np.ndarray:
        """Return the leave-one-out residuals (n_pairs, n_outputs) of the odd half, in the order given: alpha_i / (K^-1)_ii."""
        residuals = np.empty_like(self.halves[0].dual)
        residuals[self.order] = self._left_out(len(self.order)) * self.unit
        return residuals

    def checked(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which of the rows given calibrate the errors, and the odd half's leave-one-out residuals at them, in its ``unit``."""
        n = min(len(self.order), MAX_CHECKED)
        return self.order[-n:], self._left_out(n)

    def _left_out(self, n_last: int) -> np.ndarray:
        fitted = self.halves[0]
        return fitted.dual[-n_last:] / fitted.precisions(n_last)[:, None]

    def solve(
        self, semivalue: Semivalue, order: int, sets: tuple[tuple[int, ...], ...], relative_doubt: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Return the exact values of the posterior mean and their posterior standard deviations, calibrated: (n_sets, n_outputs).

        Values are linear in the game, so that those of the mean are :math:`\mathrm{cov}(\phi_T, g)\, K^{-1} g`. ``relative_doubt``
        stands for the relevances having been fitted to the rows, for callers who hold the errors to another estimate, too.
        """
        by_size = [np.array([players for players in sets if len(players) == size]) for size in range(1, order + 1)]
        values = error = np.zeros(())
        for fitted in self.halves:
            parts = [self._joint(fitted.half.sign, players, semivalue, order) for players in by_size]
            cross, prior = np.concatenate([c for c, _ in parts], axis=1), np.concatenate([p for _, p in parts])
            values = values + (cross.T @ fitted.dual) * fitted.half.scale
            error = np.hypot(error, np.sqrt(self._variance(fitted, cross, prior, relative_doubt)) * fitted.half.scale)
        return values, error

    def _variance(self, fitted: FittedHalf, cross: np.ndarray, prior: np.ndarray, doubt: float | None) -> np.ndarray:
        """Return the variances (n_sets, n_outputs) of one half's scaled values."""
        from scipy.linalg import lapack

        half = lapack.dtrtrs(fitted.factor, cross, lower=1)[0]
        left = np.maximum(prior - (half**2).sum(axis=0), 0.0)
        influence = lapack.dtrtrs(fitted.factor, half, lower=1, trans=1)[0]
        return left[:, None] * fitted.variance * self._inflation(fitted, influence, doubt)

    def _inflation(self, fitted: FittedHalf, influence: np.ndarray, doubt: float | None) -> np.ndarray:
        r"""Return by how much the posterior's variances (n_outputs,) are too small, judged by leaving out every observation.

        .. math:: c\, (1 + q) \max\Bigl\{\frac1m \sum_i z_i^2,\; \frac{\sum_i w_i z_i^2}{\sum_i w_i},\; 10^{-4}\Bigr\},
                  \qquad w_i = \sum_T (K^{-1} c_T)_i^2 / (K^{-1})_{ii}

        ``z`` are standardised residuals, ``w`` the variance by which the values would move without row i, :math:`c_T` the covariance
        of the value of T with the rows. ``q`` (``doubt``) stands for the d relevances that were fitted to the rows; where it is None, d / m
        is added to the largest instead. ``c`` (HEAVY_TAILS) stands for games that are rougher between the rows than at them.
        """
        m = len(self.points)
        checked = slice(-min(m, MAX_CHECKED), None)
        precision = fitted.precisions(min(m, MAX_CHECKED))
        squares = fitted.dual[checked] ** 2 / precision[:, None] / np.maximum(fitted.variance, 1e-300)
        weights = (influence[checked] ** 2).sum(axis=1) / precision
        weighted = weights @ squares / max(float(weights.sum()), 1e-300)
        told = np.maximum(np.maximum(squares.mean(axis=0), weighted), LEAST_TOLD)
        return HEAVY_TAILS * (told + self.points.shape[1] / m if doubt is None else told * (1.0 + doubt))

    def _joint(self, sign: int, sets: np.ndarray, semivalue: Semivalue, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the covariances of the values of sets of one size with the rows, (n_pairs, n_sets), and their variances."""
        d, size = self.points.shape[1], sets.shape[1]
        nodes, weights = _rule(semivalue.of_size(size, order), d - size, float((self.rho / (1.0 + self.rho)).sum()))
        exact = semivalue.weights(d, size, order)
        share = 0.5 if sign else 1.0
        cross = share * functionals(self.points, self.rho, sets, nodes, weights)
        cross += self.white * white_functionals(self.points, sets, exact)
        if sign:
            cross += share * sign * functionals(-self.points, self.rho, sets, nodes, weights)
            cross += self.white * sign * white_functionals(-self.points, sets, exact)
        prior = prior_variance(self.rho, sets, nodes, weights, sign)
        return cross, prior + self.white * white_variance(d, size, exact, sign)


def _rule(measure: Measure, degree: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Return as many nodes as the kernel's relevances need: factors (1 +- rho) / (1 + rho) spread by rho / (1 + rho) (``_nodes``)."""
    n_nodes = enough_nodes(spread, degree)
    if isinstance(measure, Beta) and n_nodes < degree // 2 + 1:
        return measure.gauss(n_nodes)
    return measure.rule(degree)


def needs_even(semivalue: Semivalue, n_players: int, order: int) -> bool:
    """Say whether an index sees the even half: sizes above one or measures that are not symmetric about 1/2 do."""
    return order > 1 or not _is_symmetric(semivalue, n_players)


@functools.lru_cache(maxsize=64)
def _is_symmetric(semivalue: Semivalue, n_players: int) -> bool:
    weights = semivalue.weights(n_players, 1, 1)
    return not bool(np.any(np.abs(weights - weights[::-1]) > 1e-9 * np.abs(weights) + 1e-14))


def fit_process(
    points: np.ndarray,
    inside: np.ndarray,
    outside: np.ndarray | None,
    *,
    even: bool,
    relevance_rows: int,
    max_iterations: int,
    rng: np.random.Generator,
) -> CubeProcess:
    """Fit relevances on at most ``relevance_rows`` rows, then condition on all of them.

    ``inside`` and ``outside`` (n_rows, n_outputs) are the values of the coalitions and of their complements, or None for single
    coalitions; the first row is the full coalition. ``even`` asks for both halves of pairs.
    """
    m = len(points)
    halves = _halves(inside, outside, even=even or m <= BOTH_ROWS)
    some, trained = points, halves
    if m > relevance_rows:
        rows = np.append(0, 1 + np.sort(rng.choice(m - 1, relevance_rows - 1, replace=False)))
        some, trained = points[rows], _halves(inside[rows], None if outside is None else outside[rows], even=even)
    with single_threaded_blas():
        logs = find_relevances(some, trained, max_iterations)
    theta, white = np.exp(logs[:-1]), float(np.exp(logs[-1]))
    order = _checked_last(m)
    points = points[order]
    asked = halves if even else halves[:1]
    fitted = tuple(_condition(points, half.rows(order), theta, white) for half in asked)
    return CubeProcess(points, order, theta, white, fitted)


def _checked_last(n_rows: int) -> np.ndarray:
    """Return an order of the rows in which those that calibrate the errors, evenly spread, come last."""
    checked = np.zeros(n_rows, bool)
    checked[evenly_spaced(n_rows, MAX_CHECKED)] = True
    return np.argsort(checked, kind="stable")


def _halves(inside: np.ndarray, outside: np.ndarray | None, *, even: bool) -> list[Half]:
    signs = (0,) if outside is None else (-1, 1) if even else (-1,)
    return [Half.of(inside, outside, sign) for sign in signs]


def _condition(points: np.ndarray, half: Half, theta: np.ndarray, white: float) -> FittedHalf:
    from scipy.linalg import lapack

    factor, failed = factorise(covariance_and_slopes(points, theta, half.sign, white)[0])
    if failed:
        raise np.linalg.LinAlgError("The covariance of the sampled coalitions is not positive definite")
    dual = np.ascontiguousarray(lapack.dpotrs(factor, half.target, lower=1)[0])
    variance = (half.target * dual).sum(axis=0) / len(points)
    return FittedHalf(half, factor, dual, variance)

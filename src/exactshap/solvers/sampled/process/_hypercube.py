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
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from exactshap._runtime.linear_algebra import solve_lower
from exactshap._runtime.process_settings import single_threaded_blas
from exactshap.games import ProductGame
from exactshap.semivalues import Beta, Semivalue
from exactshap.solvers.core import enough_nodes, sets_by_size
from exactshap.solvers.sampled.process._evidence import FittedHalf, Half, covariance, fill_singles
from exactshap.solvers.sampled.process._relevance import evenly_spaced, find_relevances

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
    theta: np.ndarray
    white: float
    halves: tuple[FittedHalf, ...]
    even: Half | None = None  # of pairs, in the order of the points, whether the values see it or not

    @functools.cached_property
    def rho(self) -> np.ndarray:
        return np.tanh(self.theta / 2.0)

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

    def left_out(self) -> np.ndarray:
        """Return the leave-one-out residuals (n_pairs, n_outputs) of the odd half, in the order given: alpha_i / (K^-1)_ii."""
        odd, residuals = self.halves[0], np.empty_like(self.halves[0].dual)
        residuals[self.order] = odd.dual / odd.precisions(len(odd.dual))[:, None] * self.unit
        return residuals

    def checked(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that calibrate the errors, and the odd half's leave-one-out residuals there, in its ``unit``."""
        precision = self._precisions[0]
        n = len(precision)
        return self.order[-n:], self.halves[0].dual[-n:] / precision[:, None]

    def posterior(self, semivalue: Semivalue, order: int, sets: tuple[tuple[int, ...], ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of the posterior mean of the odd half and, in squares of ``unit``, their variances: (n_sets, n_outputs).

        The variances have the scale of the left-out residuals if that is smaller, as a game that they recover is known.
        """
        posterior = self.half_posteriors(semivalue, order, sets)[0]
        fitted, precision = posterior.fitted, self._precisions[0]
        scale = (fitted.dual[-len(precision) :] ** 2 / precision[:, None]).mean(axis=0)
        values = (posterior.cross.T @ fitted.dual) * self.unit
        return values, posterior.left[:, None] * np.clip(scale, SMALLEST_RATIO * fitted.variance, fitted.variance)

    @property
    def white_share(self) -> float:
        """Return the share of the white part in the variance of left-out rows of the odd half, their mean."""
        return float(self.white * self._precisions[0].mean())

    def variance_of_left_out(self, weights: np.ndarray) -> np.ndarray:
        """Return the variance (n_columns, n_outputs) of weighted sums of the left-out residuals of :meth:`checked`, weights (n_checked, n_columns)."""
        n, odd = len(weights), self.halves[0]
        root = solve_lower(np.asfortranarray(odd.factor[-n:, -n:]), np.asfortranarray(weights / self._precisions[0][:, None]))
        return np.asarray((root**2).sum(axis=0)[:, None] * odd.variance)

    @functools.cached_property
    def _precisions(self) -> list[np.ndarray]:
        """Return (K^-1)_ii of each half at the last rows, which calibrate the errors."""
        return [fitted.precisions(min(len(self.order), MAX_CHECKED)) for fitted in self.halves]

    def wary(self) -> CubeProcess:
        """Return the process with a least relevance for each player, so that invisible players have an error, too."""
        n_rows, n_players = self.points.shape
        theta = np.maximum(self.theta, min(FAINT / np.sqrt(n_rows), FAINTEST) / n_players)
        if np.array_equal(theta, self.theta):
            return self
        halves = tuple(FittedHalf.at(self.points, fitted.half, theta, self.white) for fitted in self.halves)
        return replace(self, theta=theta, halves=halves)

    def half_posteriors(self, semivalue: Semivalue, order: int, sets: tuple[tuple[int, ...], ...]) -> list[HalfPosterior]:
        """Return covariances of each half with the values of sets, which do not depend on the answers."""
        by_size, posteriors = sets_by_size(sets, order), []
        for fitted in self.halves:
            sign = fitted.half.sign
            cross = np.concatenate([self._cross(sign, self.points, some, semivalue, order) for some in by_size], axis=1)
            prior = np.concatenate([self._prior(sign, some, semivalue, order) for some in by_size])
            root = solve_lower(fitted.factor, cross.copy(order="F"))
            left = np.maximum(prior - (root**2).sum(axis=0), 0.0)
            posteriors.append(HalfPosterior(fitted, cross, left, solve_lower(fitted.factor, root, transposed=True)))
        return posteriors

    def solve(self, semivalue: Semivalue, order: int, sets: tuple[tuple[int, ...], ...]) -> tuple[np.ndarray, np.ndarray]:
        r"""Return the exact values of the posterior mean and their posterior standard deviations, calibrated: (n_sets, n_outputs).

        Values are linear in the game, so that those of the mean are :math:`\mathrm{cov}(\phi_T, g)\, K^{-1} g`.
        """
        posteriors = self.half_posteriors(semivalue, order, sets)
        values = error = np.zeros(())
        for half, precision in zip(posteriors, self._precisions, strict=True):
            fitted = half.fitted
            variance = half.left[:, None] * fitted.variance * self._inflation(half, precision)
            values = values + (half.cross.T @ fitted.dual) * fitted.half.scale
            error = np.hypot(error, np.sqrt(variance) * fitted.half.scale)
        return values, error

    def _inflation(self, posterior: HalfPosterior, precision: np.ndarray) -> np.ndarray:
        r"""Return the factor (n_outputs,) by which the posterior's variances are too small, by leave-one-out residuals.

        .. math:: c\, \Bigl[\max\Bigl\{\frac1m \sum_i z_i^2,\; \frac{\sum_i w_i z_i^2}{\sum_i w_i},\; 10^{-4}\Bigr\} + \frac dm\Bigr],
                  \qquad w_i = \sum_T (K^{-1} c_T)_i^2 / (K^{-1})_{ii}

        ``z`` are standardised residuals, ``w`` the variance by which the values would move without row i, :math:`c_T` the covariance
        of the value of T with the rows. d / m stands for the d relevances that were fitted to m rows, ``c`` (HEAVY_TAILS) for games that are rougher between the rows than at them.
        """
        fitted, checked = posterior.fitted, slice(-len(precision), None)
        squares = fitted.dual[checked] ** 2 / precision[:, None] / np.maximum(fitted.variance, 1e-300)
        weights = (posterior.influence[checked] ** 2).sum(axis=1) / precision
        weighted = weights @ squares / max(float(weights.sum()), 1e-300)
        judged = np.maximum(np.maximum(squares.mean(axis=0), weighted), SMALLEST_RATIO)
        return HEAVY_TAILS * (judged + self.points.shape[1] / len(self.points))

    def covariances(
        self, sign: int, points: np.ndarray, semivalue: Semivalue, order: int, sets: tuple[tuple[int, ...], ...], most: int
    ) -> np.ndarray:
        """Return covariances (n_points, n_sets) of values with one half at any points, for the ``most`` most variable sets."""
        by_size = sets_by_size(sets, order)
        priors = [self._prior(sign, some, semivalue, order) for some in by_size]
        chosen = np.zeros(len(sets), bool)
        chosen[np.argsort(-np.concatenate(priors), kind="stable")[:most]] = True
        kept_by_size = np.split(chosen, np.cumsum([len(some) for some in by_size])[:-1])
        wanted = [some[kept] for some, kept in zip(by_size, kept_by_size, strict=True)]
        return np.concatenate([self._cross(sign, points, some, semivalue, order) for some in wanted], axis=1)

    def sizes(self) -> np.ndarray:
        """Return the size of each half (n_halves,) relative to the larger one, in the mean square of outputs."""
        sizes = np.array([fitted.half.scale * np.sqrt(fitted.variance) for fitted in self.halves])
        return np.asarray(np.sqrt(np.mean((sizes / np.maximum(sizes.max(axis=0), 1e-300)) ** 2, axis=1)))

    def _cross(self, sign: int, points: np.ndarray, sets: np.ndarray, semivalue: Semivalue, order: int) -> np.ndarray:
        """Return covariances (n_points, n_sets) of values of one size with one half."""
        nodes, weights = self._rule(semivalue, sets.shape[1], order)
        cross = functionals(points, self.rho, sets, nodes, weights, sign)
        cross *= 0.5 if sign else 1.0
        exact = semivalue.weights(points.shape[1], sets.shape[1], order)
        return np.asarray(cross + self.white * white_functionals(points, sets, exact, sign))

    def _prior(self, sign: int, sets: np.ndarray, semivalue: Semivalue, order: int) -> np.ndarray:
        """Return the variances (n_sets,) of values of one size before any call."""
        d, size = self.points.shape[1], sets.shape[1]
        exact = semivalue.weights(d, size, order)
        smooth = prior_variance(self.rho, sets, *self._rule(semivalue, size, order), sign)
        return np.asarray(smooth + self.white * white_variance(d, size, exact, sign))

    def _rule(self, semivalue: Semivalue, size: int, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Return as many nodes as the relevances need: factors (1 +- rho) / (1 + rho) spread by rho / (1 + rho) (``_nodes``)."""
        degree = len(self.rho) - size
        n_nodes, measure = enough_nodes(float((self.rho / (1.0 + self.rho)).sum()), degree), semivalue.of_size(size, order)
        if isinstance(measure, Beta) and n_nodes < degree // 2 + 1:
            return measure.gauss(n_nodes)
        return measure.rule(degree)


def fit_process(
    points: np.ndarray,
    inside: np.ndarray,
    outside: np.ndarray | None,
    *,
    even: bool,
    relevance_rows: int,
    max_iterations: int,
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
        logs = find_relevances(some, trained, max_iterations, start)
    theta, white = np.exp(logs[:-1]), float(np.exp(logs[-1]))
    order = _checked_last(m)
    wanted = halves if even else halves[:1]
    points = points[order]
    fitted = tuple(FittedHalf.at(points, half.rows(order), theta, white) for half in wanted)
    mirrored = None if outside is None else Half.of(inside[order], outside[order], 1)
    return CubeProcess(points, order, theta, white, fitted, mirrored)


def _checked_last(n_rows: int) -> np.ndarray:
    """Return an order of the rows in which those that calibrate the errors, evenly spread, come last."""
    checked = np.zeros(n_rows, bool)
    checked[evenly_spaced(n_rows, MAX_CHECKED)] = True
    return np.argsort(checked, kind="stable")


def _halves(inside: np.ndarray, outside: np.ndarray | None, *, even: bool) -> list[Half]:
    signs = (0,) if outside is None else (-1, 1) if even else (-1,)
    return [Half.of(inside, outside, sign) for sign in signs]


def functionals(
    points: np.ndarray, rho: np.ndarray, sets: np.ndarray, nodes: np.ndarray, weights: np.ndarray, sign: int = 0
) -> np.ndarray:
    r"""Return the index of k(., x) + sign k(., -x) for every row x and every set, of shape (n_rows, n_sets); sets all of one size.

    .. math:: \phi_T\, k(\cdot, x) = \int \prod_{j \in T} 2 \rho_j x_j \prod_{k \notin T} (1 + u \rho_k x_k)\, \mathrm{d}\mu
              \Big/ \prod_k (1 + \rho_k), \qquad u = 2 t - 1
    """
    if sets.shape[1] == 1 and np.array_equal(sets[:, 0], np.arange(points.shape[1])):
        out = np.zeros((len(points), len(sets)))
        fill_singles(np.ascontiguousarray(points), rho, np.array(nodes), np.array(weights), float(sign), out)
        return out
    if sign:
        sides = [functionals(side, rho, sets, nodes, weights) for side in (points, -points)]
        return sides[0] + sign * sides[1]
    slopes, by_set = points * rho, np.zeros((len(sets), len(points)))  # rows of one set lie together
    for u, weight in zip(2.0 * nodes - 1.0, weights, strict=True):
        factors = (1.0 + u * slopes) / (1.0 + rho)
        ratio = np.ascontiguousarray((2.0 * slopes / (1.0 + rho) / factors).T)  # factors > 0: rho < 1
        product = ratio[sets[:, 0]]
        for players in sets.T[1:]:
            product *= ratio[players]
        by_set += np.multiply(product, weight * factors.prod(axis=1), out=product)
    return by_set.T


def white_functionals(points: np.ndarray, sets: np.ndarray, weights: np.ndarray, sign: int = 0) -> np.ndarray:
    r"""Return the index of the indicator of every row's coalition S, plus sign times that of its complement.

    .. math:: (-1)^{|T| - |T \cap S|}\, p(|S - T|)
    """
    if sign:
        return white_functionals(points, sets, weights) + sign * white_functionals(-points, sets, weights)
    inside = points > 0
    overlaps = np.arange(sets.shape[1] + 1)  # all possible |T n S|
    # Overlaps larger than the coalition cannot occur: their positions are clipped, and never read
    outside = np.clip(inside.sum(axis=1)[:, None] - overlaps, 0, len(weights) - 1)
    by_overlap = (-1.0) ** (sets.shape[1] - overlaps) * weights[outside]
    if sets.shape[1] == 1:
        return np.where(inside[:, sets[:, 0]], by_overlap[:, 1:], by_overlap[:, :1])
    return np.take_along_axis(by_overlap, inside[:, sets].sum(axis=2), axis=1)


def prior_variance(rho: np.ndarray, sets: np.ndarray, nodes: np.ndarray, weights: np.ndarray, sign: int) -> np.ndarray:
    r"""Return the prior variance (n_sets,) of the index of one half, without the white part.

    .. math:: \tfrac12 \prod_{j \in T} 4 \rho_j \iint \Bigl[\prod_{k \notin T} (1 + \rho_k u u') \pm (-1)^{|T|}
              \prod_{k \notin T} (1 - \rho_k u u')\Bigr] \mathrm{d}\mu\, \mathrm{d}\mu' \Big/ \prod_k (1 + \rho_k)
    """
    u = 2.0 * nodes - 1.0
    products, pair_weights = np.outer(u, u).ravel(), np.outer(weights, weights).ravel()
    total = np.zeros(len(sets))
    directions = [(1.0, 1.0)] + ([(-1.0, float(sign * (-1) ** sets.shape[1]))] if sign else [])
    for direction, factor in directions:
        # In logarithms, as a product over all players may underflow, and a factor may be 0 at rho = 1
        factors = np.maximum((1.0 + direction * products[:, None] * rho) / (1.0 + rho), 1e-300)
        whole = factor * pair_weights * np.exp(np.log(factors).sum(axis=1))
        ratio = 4.0 * rho / (1.0 + rho) / factors
        if sets.shape[1] == 1:
            total += whole @ ratio[:, sets[:, 0]]
        else:
            total += sum(weight * row[sets].prod(axis=1) for weight, row in zip(whole, ratio, strict=True))
    return (0.5 if sign else 1.0) * np.maximum(total, 0.0)


def white_variance(n_players: int, size: int, weights: np.ndarray, sign: int) -> float:
    r"""Return the prior variance of the index of one half's white part of unit variance.

    .. math:: 2^{|T|} \sum_s C(d - |T|, s)\, \bigl[p(s)^2 \pm (-1)^{|T|} p(s)\, p(d - |T| - s)\bigr]
    """
    from scipy.special import gammaln

    rest = n_players - size
    s = np.arange(rest + 1)
    logs = gammaln(rest + 1) - gammaln(s + 1) - gammaln(rest - s + 1)
    root = np.exp(0.5 * np.minimum(logs, 1400.0))  # p is 0 long before it is cut off
    p = root * weights
    return float(2.0**size * (p @ p + sign * (-1) ** size * (p @ p[::-1])))


def needs_even(semivalue: Semivalue, n_players: int, order: int) -> bool:
    """Say whether an index depends on the even half: sizes above one and measures not symmetric about 1/2 do."""
    return order > 1 or not _is_symmetric(semivalue, n_players)


@functools.lru_cache(maxsize=64)
def _is_symmetric(semivalue: Semivalue, n_players: int) -> bool:
    weights = semivalue.weights(n_players, 1, 1)
    return not bool(np.any(np.abs(weights - weights[::-1]) > 1e-9 * np.abs(weights) + 1e-14))

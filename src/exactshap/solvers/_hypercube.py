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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.games import ProductGame
from exactshap.semivalues import Semivalue
from exactshap.solvers._solution import set_sizes

__all__ = ["CubeProcess", "fit_process"]

JITTER = 1e-10  # relative to the kernel's variance of 1: far below any white part worth having
RELEVANCE = (-12.0, 3.0)  # bounds of log theta: from invisible to rho = 1 - 4e-9
WHITE = (-18.0, 2.0)  # bounds of log tau
# weak priors, which decide when there are few rows: log theta around its mean, that mean around log(1 / (2 d)), log tau
SPREAD, LEVEL_SPREAD, WHITE_SPREAD, TYPICAL_WHITE = 1.25, 1.0, 3.0, 1e-3
MAX_CHECKED = 1500  # rows up to which leave-one-out residuals are worth an inverse
MAX_ROWS = 12_000  # pairs in one dense factorisation (1.1 GiB)


@dataclass(frozen=True, eq=False)
class Half:
    """What is regressed: ``sign`` -1 is (v(S) - v(D - S)) / 2, +1 the same with a plus, 0 the game itself at single coalitions."""

    sign: int
    target: np.ndarray  # (n_pairs, n_outputs), scaled
    scale: np.ndarray  # (n_outputs,)
    offset: np.ndarray  # (n_outputs,), subtracted from the even half

    @classmethod
    def of(cls, inside: np.ndarray, outside: np.ndarray | None, sign: int) -> Half:
        target = inside if outside is None else (inside + sign * outside) / 2.0
        offset = target.mean(axis=0) if sign >= 0 else np.zeros(target.shape[1])
        target = target - offset
        scale = np.sqrt(np.mean(target**2, axis=0))
        scale = np.where(scale > 0, scale, 1.0)
        return cls(sign, target / scale, scale, offset)


def covariance(points: np.ndarray, others: np.ndarray, theta: np.ndarray, sign: int) -> np.ndarray:
    """Return (k(x, x') + sign k(x, -x')) / 2 for rows of -1 and 1, or k itself; all but the odd half get a free constant."""
    total = theta.sum()
    gram = (points * theta) @ others.T
    matrix = np.exp(0.5 * (gram - total))
    if sign:
        mirrored = np.exp(-0.5 * (gram + total), out=gram)
        mirrored *= sign
        matrix += mirrored
        matrix *= 0.5
    if sign >= 0:
        matrix += 1.0
    return matrix


def _half_evidence(points: np.ndarray, half: Half, theta: np.ndarray, white: float) -> tuple[float, np.ndarray, float]:
    r"""Return the negative log marginal likelihood, its gradient in log theta and in log tau; scales profiled out.

    .. math:: \tfrac12 \sum_k \bigl(m \log \hat\sigma_k^2 + \log |K|\bigr), \qquad \hat\sigma_k^2 = y_k^\top K^{-1} y_k / m
    """
    from scipy.linalg import lapack

    m, n_outputs = half.target.shape
    total = theta.sum()
    gram = (points * theta) @ points.T
    share = 0.5 if half.sign else 1.0
    same = share * np.exp(0.5 * (gram - total))
    # k(x, -x') = exp(-total) / k(x, x'): a division is cheaper than a second exponential, while nothing underflows
    mirrored = half.sign * (share**2 * np.exp(-total) / same if total < 600.0 else share * np.exp(-0.5 * (gram + total)))
    matrix = same + mirrored + (half.sign >= 0)
    matrix[np.diag_indices(m)] += white + JITTER
    factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)  # symmetric: the transpose is in LAPACK's order
    if failed:
        return 1e25, np.zeros(points.shape[1]), 0.0
    log_determinant = 2.0 * np.log(np.diag(factor)).sum()
    inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    dual = inverse @ half.target
    variance = np.maximum((half.target * dual).sum(axis=0) / m, 1e-300)
    value = 0.5 * (m * np.log(variance).sum() + n_outputs * log_determinant)
    slope = 0.5 * (n_outputs * inverse - (dual / variance) @ dual.T)
    same *= slope
    mirrored *= slope
    difference = same - mirrored
    sums = np.einsum("aj,aj->j", points, difference @ points)
    gradient = 0.5 * theta * (sums - same.sum() - mirrored.sum())
    return float(value), gradient, float(np.trace(slope)) * white


def _evidence(logs: np.ndarray, points: np.ndarray, halves: list[Half]) -> tuple[float, np.ndarray]:
    theta, white = np.exp(logs[:-1]), float(np.exp(logs[-1]))
    value, gradient = 0.0, np.zeros(len(logs))
    for half in halves:
        part, slope, white_slope = _half_evidence(points, half, theta, white)
        value += part
        gradient[:-1] += slope
        gradient[-1] += white_slope
    return value, gradient


def _penalised(logs: np.ndarray, points: np.ndarray, halves: list[Half]) -> tuple[float, np.ndarray]:
    """Return the negative log posterior of log theta and log tau, and its gradient."""
    value, gradient = _evidence(logs, points, halves)
    d = len(logs) - 1
    mean = logs[:-1].mean()
    deviation = (logs[:-1] - mean) / SPREAD
    level = (mean - np.log(0.5 / d)) / LEVEL_SPREAD
    white = (logs[-1] - np.log(TYPICAL_WHITE)) / WHITE_SPREAD
    gradient[:-1] += deviation / SPREAD + level / LEVEL_SPREAD / d
    gradient[-1] += white / WHITE_SPREAD
    return value + 0.5 * float(deviation @ deviation + level**2 + white**2), gradient


def _relevances(points: np.ndarray, halves: list[Half], max_iterations: int) -> np.ndarray:
    """Return log theta (d,) and log tau, the posterior's maximum: first one relevance for all, then one each."""
    from scipy.optimize import minimize

    d = points.shape[1]

    def shared(logs: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _penalised(np.append(np.full(d, logs[0]), logs[1]), points, halves)
        return value, np.array([gradient[:-1].sum(), gradient[-1]])

    def search(function: Callable[..., Any], start: np.ndarray, bounds: list[tuple[float, float]], steps: int) -> np.ndarray:
        found = minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
        return np.asarray(found.x)

    level, white = search(shared, np.log([0.5 / d, TYPICAL_WHITE]), [RELEVANCE, WHITE], 15)

    def separate(logs: np.ndarray) -> tuple[float, np.ndarray]:
        return _penalised(logs, points, halves)

    return search(separate, np.append(np.full(d, level), white), [RELEVANCE] * d + [WHITE], max_iterations)


def functionals(points: np.ndarray, rho: np.ndarray, sets: np.ndarray, nodes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Return the index of k(., x) for every row x and every set, of shape (n_rows, n_sets); sets all of one size.

    .. math:: \phi_T\, k(\cdot, x) = \int \prod_{j \in T} 2 \rho_j x_j \prod_{k \notin T} (1 + u \rho_k x_k)\, \mathrm{d}\mu
              \Big/ \prod_k (1 + \rho_k), \qquad u = 2 t - 1
    """
    slopes = points * rho
    out = np.zeros((len(points), len(sets)))
    for u, weight in zip(2.0 * nodes - 1.0, weights, strict=True):
        factors = (1.0 + u * slopes) / (1.0 + rho)
        ratio = 2.0 * slopes / (1.0 + rho) / factors  # factors > 0: rho < 1
        out += (weight * factors.prod(axis=1))[:, None] * ratio[:, sets].prod(axis=2)
    return out


def white_functionals(points: np.ndarray, sets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Return the index of the indicator of every row's coalition S: (-1)^(|T| - |T n S|) p(|S - T|)."""
    inside = points > 0
    among = inside[:, sets].sum(axis=2)
    sign = np.where((sets.shape[1] - among) % 2 == 0, 1.0, -1.0)
    return sign * weights[inside.sum(axis=1)[:, None] - among]


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
        factors = np.maximum((1.0 + direction * products[:, None] * rho) / (1.0 + rho), 1e-300)
        whole = factor * pair_weights * np.exp(np.log(factors).sum(axis=1))
        ratio = 4.0 * rho / (1.0 + rho) / factors
        total += sum(weight * row[sets].prod(axis=1) for weight, row in zip(whole, ratio, strict=True))
    return (0.5 if sign else 1.0) * np.maximum(total, 0.0)


def white_variance(n_players: int, size: int, weights: np.ndarray, sign: int) -> float:
    r"""Return the prior variance of the index of one half's white part of unit variance.

    .. math:: 2^{|T|} \sum_s C(d - |T|, s)\, \bigl[p(s)^2 \pm (-1)^{|T|} p(s)\, p(d - |T| - s)\bigr]
    """
    from scipy.special import gammaln

    rest = n_players - size
    s = np.arange(rest + 1)
    root = np.exp(0.5 * (gammaln(rest + 1) - gammaln(s + 1) - gammaln(rest - s + 1)))
    p = root * weights
    return float(2.0**size * (p @ p + sign * (-1) ** size * (p @ p[::-1])))


@dataclass(frozen=True, eq=False)
class FittedHalf:
    half: Half
    factor: np.ndarray  # lower Cholesky factor (n_pairs, n_pairs)
    dual: np.ndarray  # (n_pairs, n_outputs), scaled
    variance: np.ndarray  # (n_outputs,), of the scaled target


@dataclass(frozen=True, eq=False)
class CubeProcess:
    """The posterior of a game after ``points`` (n_pairs, n_players) of -1 and 1 and, if paired, their mirror images were seen."""

    points: np.ndarray
    theta: np.ndarray
    white: float
    halves: tuple[FittedHalf, ...]

    @property
    def rho(self) -> np.ndarray:
        return np.tanh(self.theta / 2.0)

    @property
    def paired(self) -> bool:
        return self.halves[0].half.sign != 0

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

    def left_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the leave-one-out residuals (n_pairs, n_outputs) of the odd half and their squares in predicted variances.

        Both follow from the inverse: alpha_i / (K^-1)_ii and alpha_i^2 / (K^-1)_ii / sigma^2.
        """
        from scipy.linalg import lapack

        fitted = self.halves[0]
        precision = np.diag(lapack.dpotri(fitted.factor, lower=1)[0])[:, None]
        squares = fitted.dual**2 / precision / np.maximum(fitted.variance, 1e-300)
        return fitted.dual / precision * fitted.half.scale, squares

    def std_error(self, semivalue: Semivalue, order: int, sets: tuple[tuple[int, ...], ...]) -> np.ndarray:
        """Return the posterior standard deviation of every set's value, of shape (n_sets, n_outputs).

        The variance is raised by (m + d) / m for m rows, since d relevances were fitted to them, and by the mean squared
        standardised leave-one-out residual where that is above one.
        """
        parts = []
        for size in set_sizes(order):
            chosen = np.array([players for players in sets if len(players) == size])
            parts.append(sum(self._variance(fitted, chosen, semivalue, order) for fitted in self.halves))
        return np.sqrt(np.concatenate(parts) * self._inflation())

    def _inflation(self) -> np.ndarray:
        m, d = self.points.shape
        surprise = self.left_out()[1].mean(axis=0) if m <= MAX_CHECKED else np.ones(1)
        return (m + d) / m * np.maximum(surprise, 1.0)

    def _variance(self, fitted: FittedHalf, sets: np.ndarray, semivalue: Semivalue, order: int) -> np.ndarray:
        from scipy.linalg import solve_triangular

        d, size, sign = self.points.shape[1], sets.shape[1], fitted.half.sign
        nodes, weights = semivalue.rule(size, order, degree=min(d - size, 31))
        exact = semivalue.weights(d, size, order)
        share = 0.5 if sign else 1.0
        cross = share * functionals(self.points, self.rho, sets, nodes, weights)
        cross += self.white * white_functionals(self.points, sets, exact)
        if sign:
            cross += share * sign * functionals(-self.points, self.rho, sets, nodes, weights)
            cross += self.white * sign * white_functionals(-self.points, sets, exact)
        prior = prior_variance(self.rho, sets, nodes, weights, sign)
        prior = prior + self.white * white_variance(d, size, exact, sign)
        explained = (solve_triangular(fitted.factor, cross, lower=True, check_finite=False) ** 2).sum(axis=0)
        return np.maximum(prior - explained, 0.0)[:, None] * fitted.variance * fitted.half.scale**2


def needs_even(semivalue: Semivalue, n_players: int, order: int) -> bool:
    """Say whether an index sees the even half: sizes above one or measures that are not symmetric about 1/2 do."""
    weights = semivalue.weights(n_players, 1, order)
    return order > 1 or not np.allclose(weights, weights[::-1], rtol=1e-9, atol=1e-14)


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
    rows = np.arange(m)
    if m > relevance_rows:
        rows = np.append(0, 1 + np.sort(rng.choice(m - 1, relevance_rows - 1, replace=False)))
    both = even or len(rows) <= relevance_rows // 2
    trained = _halves(inside[rows], None if outside is None else outside[rows], even=both)
    logs = _relevances(points[rows], trained, max_iterations)
    theta, white = np.exp(logs[:-1]), float(np.exp(logs[-1]))
    halves = _halves(inside, outside, even=even)
    return CubeProcess(points, theta, white, tuple(_condition(points, half, theta, white) for half in halves))


def _halves(inside: np.ndarray, outside: np.ndarray | None, *, even: bool) -> list[Half]:
    signs = (0,) if outside is None else (-1, 1) if even else (-1,)
    return [Half.of(inside, outside, sign) for sign in signs]


def _condition(points: np.ndarray, half: Half, theta: np.ndarray, white: float) -> FittedHalf:
    from scipy.linalg import cho_solve, cholesky

    matrix = covariance(points, points, theta, half.sign)
    matrix[np.diag_indices(len(points))] += white + JITTER
    factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    dual = cho_solve((factor, True), half.target, check_finite=False)
    variance = (half.target * dual).sum(axis=0) / len(points)
    return FittedHalf(half, factor, dual, variance)

r"""Estimate the values of many rows of one function by one Gaussian process over rows and coalitions.

A coalition S of a row is a point: its members, and the distances :math:`z_c` of the row's columns from those of the background, 0 outside of S. What
one row shows of a column, others with a similar cell know. The kernel is a product over players j and columns c,

.. math:: k = \exp\Bigl(-\sum_j \theta_j [S_j \ne S'_j] - \sum_c \alpha_c (z_c - z'_c)^2\Bigr),

with a white part :math:`\tau`; the relevances of players and columns are found by their likelihood, for each output its own. So the mean on a row is a product game,
with exact values by quadrature, and the game of one row is a process of :mod:`exactshap.solvers.sampled.process` with
relevances :math:`\theta_j + \sum_c \alpha_c z_c^2`. Posterior variances have the scale of the residuals of calls that are left out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from exactshap._runtime.linear_algebra import inverse_of, solve_definite, solve_lower
from exactshap._runtime.process_settings import single_threaded_blas
from exactshap.errors import BudgetError
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part, player_sets
from exactshap.solvers.sampled._estimators import ROUNDING
from exactshap.solvers.sampled._polynomial import ALIKE_DIGITS, TINIEST
from exactshap.solvers.sampled._problem import warn_alike
from exactshap.solvers.sampled._sampling import draw, strata
from exactshap.solvers.sampled.process import Prior, Question, white_functionals

MAX_POINTS = 6000  # coalitions of all rows: three matrices of 0.3 GiB
# Points that decide the relevances, and steps of their search
RELEVANCE_POINTS, MAX_STEPS = 800, 60
# A weak prior of log relevances: mean relevance of all players, that of the white part, standard deviation; and bounds
TYPICAL, TYPICAL_WHITE, SPREAD = 0.25, 1e-2, 2.0
BOUNDS, WHITE_BOUNDS = (-12.0, 3.0), (-18.0, 2.0)
JITTER = 1e-8
IMPOSSIBLE = 1e25


@dataclass(frozen=True, eq=False)
class Points:
    """Hold coalitions of rows: members (n, n_players), and distances of columns (n, n_columns), 0 outside of them."""

    members: np.ndarray
    distances: np.ndarray

    def of(self, chosen: np.ndarray) -> Points:
        return Points(self.members[chosen], self.distances[chosen])

    def kernel(self, theta: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Return the covariances (n, n) without the white part."""
        signs, scaled = 2.0 * self.members - 1.0, self.distances * alpha
        squares = (scaled * self.distances).sum(axis=1)
        logs = (signs * (0.5 * theta)) @ signs.T - 0.5 * theta.sum()
        logs -= np.maximum(squares[:, None] + squares - 2.0 * scaled @ self.distances.T, 0.0)
        return np.asarray(np.exp(logs, out=logs))


@dataclass(frozen=True, eq=False)
class Pool:
    """Hold a process given answers (n, n_outputs) at points; the first point is the empty coalition, with the answer 0."""

    points: Points
    theta: np.ndarray
    alpha: np.ndarray  # (n_columns,)
    white: float  # with the jitter, which belongs to the game as well: all calls are met
    factor: np.ndarray  # lower L, K = L L^T
    dual: np.ndarray  # K^-1 y

    @classmethod
    def at(cls, points: Points, answers: np.ndarray, logs: np.ndarray) -> Pool:
        n_players, n_columns = points.members.shape[1], points.distances.shape[1]
        theta, alpha, white = np.split(np.exp(logs), [n_players, n_players + n_columns])
        solved = solve_definite(points.kernel(theta, alpha), answers, ridge=float(white[0]) + JITTER)
        if solved is None:
            raise np.linalg.LinAlgError("The covariance of the sampled coalitions is not positive definite")
        return cls(points, theta, alpha, float(white[0]) + JITTER, *solved)

    @classmethod
    def fitted(cls, points: Points, answers: np.ndarray) -> Pool:
        return cls.at(points, answers, find_logs(points, answers))

    @functools.cached_property
    def scale(self) -> np.ndarray:
        """Return the variance (n_outputs,) of the process, by residuals of left-out points."""
        return np.asarray((self.dual[1:] ** 2 / inverse_of(self.factor).diagonal()[1:, None]).mean(axis=0))

    def values(
        self, row: np.ndarray, own: np.ndarray, moving: np.ndarray, owners: np.ndarray, semivalue: Semivalue
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the values (n_moving, n_outputs) of a row, their variances (n_moving,) on scale 1, and the rounding of the values.

        ``row`` has distances (n_columns,), ``own`` are its points, the empty coalition among them, ``moving`` the players that differ
        from the background.
        """
        d = len(moving)
        of_players = np.array([[owner == j for owner in owners] for j in moving], float).reshape(d, -1)  # (d, n_columns)
        apart = (self.alpha * (row - self.points.distances) ** 2) @ of_players.T
        members = self.points.members[:, moving]
        inside = np.exp(-self.theta[moving] * ~members - apart)
        outside = np.exp(-self.theta[moving] * members - (self.alpha * self.points.distances**2) @ of_players.T)
        idle = np.setdiff1d(np.arange(len(self.theta)), moving)
        rest = np.exp(-(self.points.members[:, idle] @ self.theta[idle]))
        rest *= np.exp(-(self.alpha * self.points.distances**2) @ np.isin(owners, idle))
        cross, measure = np.zeros((len(members), d)), semivalue.of_size(1, 1)
        for t, weight in zip(*measure.rule(d - 1), strict=True):
            factors = np.maximum(t * inside + (1.0 - t) * outside, TINIEST)
            cross += (weight * rest * factors.prod(axis=1))[:, None] * (inside - outside) / factors
        singles = np.arange(d)[:, None]
        cross[own] += self.white * white_functionals(2.0 * members[own] - 1.0, singles, semivalue.weights(d, 1, 1))
        relevances = self.theta[moving] + of_players @ (self.alpha * row**2)
        prior = Prior(relevances, self.white).variances(0, Question(semivalue, 1, player_sets(d, 1)))
        root = solve_lower(self.factor, cross.copy(order="F"))
        rounding = np.finfo(float).eps * (np.abs(cross).T @ np.abs(self.dual))
        return cross.T @ self.dual, np.maximum(prior - (root**2).sum(axis=0), 0.0), rounding


def solve_pooled(
    answers: Callable[[np.ndarray, np.ndarray], np.ndarray],
    rows: np.ndarray,
    owners: np.ndarray,
    moving: Sequence[Sequence[int]],
    semivalue: Semivalue,
    *,
    budget: int,
    rng: np.random.Generator,
) -> list[tuple[Part, int]]:
    """Estimate the values of single players of each row from ``budget`` coalitions of each; return them with each row's calls.

    Parameters
    ----------
    answers : callable
        From numbers of rows (n,) and masks (n, n_players) to values (n, n_outputs).
    rows : array of shape (n_rows, n_columns)
        Distances from the background, on a common scale.
    owners : array of shape (n_columns,)
        The player of each column.
    moving : sequence of sequence of int
        The players of each row that differ from the background; others get 0 and cost no call.
    semivalue, budget, rng
        The question, the calls, and the source of coalitions.
    """
    n_players = 1 + int(owners.max())
    numbers, masks = _coalitions(n_players, moving, budget, rng)
    if len(masks) > MAX_POINTS:
        raise BudgetError(
            "One process over so many coalitions of rows is out of reach",
            f"{len(rows)} rows together have {len(masks)}; the limit is {MAX_POINTS}",
            "Pass a smaller budget= or rows_together=",
        )
    found = answers(numbers, masks)
    empty, targets = found[0], found - found[0]
    if not any(moving):
        none = np.zeros((n_players, len(empty)))
        idle = Part(none, empty, empty, "regression (no player differs from the background)", std_error=none)
        return [(idle, 1)] * len(rows)
    if not targets.any():
        warn_alike("coalitions of all rows", f"{len(found)} calls")
    unit = np.sqrt(np.mean((targets / _positive(np.abs(targets).max(axis=0))) ** 2, axis=0)) * np.abs(targets).max(axis=0)
    unit, magnitude = _positive(unit), np.abs(found).max(axis=0)
    distances = np.where(masks[:, owners], rows[numbers], 0.0)
    points = Points(masks, distances)
    values, errors = np.zeros((2, len(rows), n_players, len(empty)))
    # The empty coalition belongs to all rows; the full one is a row's last
    owned = [np.append(0, np.flatnonzero(numbers[1:] == i) + 1) for i in range(len(rows))]
    full = found[[own[-1] for own in owned]]
    with single_threaded_blas():  # the bits of sums would depend on the number of threads
        for some in _alike(targets / unit):
            pool = Pool.fitted(points, targets[:, some] / unit[some])
            least = ROUNDING * np.finfo(float).eps * magnitude[some] / unit[some]
            for i, (row, own, players) in enumerate(zip(rows, owned, map(list, moving), strict=True)):
                if not players:
                    continue
                mean, variance, rounding = pool.values(row, own, np.array(players), owners, semivalue)
                if semivalue.is_efficient(1):
                    mean = mean + ((full[i] - empty)[some] / unit[some] - mean.sum(axis=0)) / len(players)
                values[np.ix_([i], players, some)] = unit[some] * mean
                error = np.maximum(np.sqrt(variance[:, None] * pool.scale), np.maximum(rounding, least))
                errors[np.ix_([i], players, some)] = unit[some] * error
    method = f"regression (Gaussian process over coalitions of {len(rows)} rows, {len(masks)} calls)"
    scale = float(magnitude.max())
    return [  # the empty coalition is called once
        (Part(values[i], empty, full[i], method, std_error=errors[i], scale=scale), len(own) - (i > 0))
        for i, own in enumerate(owned)
    ]


def _alike(targets: np.ndarray) -> list[list[int]]:
    """Return groups of outputs of ``targets`` (n, n_outputs) that are the same but for their sign, as the two classes of one model."""
    groups: dict[bytes, list[int]] = {}
    for k, column in enumerate(np.round(targets, ALIKE_DIGITS).T):
        name = min((column + 0.0).tobytes(), (0.0 - column).tobytes())  # 0 and not -0
        groups.setdefault(name, []).append(k)
    return list(groups.values())


def pooled_work(n_calls: float, n_rows: float, n_players: int) -> float:
    """Return what a pool costs, in multiplications: the search for relevances, the factor, and the values of each row."""
    return float(4.0 * MAX_STEPS * min(n_calls, RELEVANCE_POINTS) ** 3 + n_calls**3 + n_rows * n_players * n_calls**2)


def _coalitions(
    n_players: int, moving: Sequence[Sequence[int]], budget: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (n,) and masks (n, n_players): the empty coalition once, then those of each row, its full one last."""
    numbers, masks = [np.zeros(1, int)], [np.zeros((1, n_players), bool)]
    for i, players in enumerate(moving):
        d = len(players)
        if d == 0:
            continue
        drawn = np.zeros((0, d), bool)
        if d > 1:
            drawn = draw(d, min(budget - 2, 2**d - 2), rng, strata(d, paired=False), paired=False)
        among_all = np.zeros((len(drawn) + 1, n_players), bool)
        among_all[:, players] = np.concatenate([drawn, np.ones((1, d), bool)])
        numbers.append(np.full(len(among_all), i))
        masks.append(among_all)
    return np.concatenate(numbers), np.concatenate(masks)


def _positive(numbers: np.ndarray) -> np.ndarray:
    return np.where(numbers > 0, numbers, 1.0)


def find_logs(points: Points, answers: np.ndarray) -> np.ndarray:
    """Return the logarithms of theta, alpha and tau: the maximum of the posterior given at most 800 of the points."""
    from scipy.optimize import minimize

    n_players, n_columns = points.members.shape[1], points.distances.shape[1]
    chosen = np.unique(np.rint(np.linspace(0, len(answers) - 1, RELEVANCE_POINTS)).astype(int))
    some, targets = points.of(chosen), answers[chosen]
    typical = np.log([*[TYPICAL / n_players] * n_players, *[TYPICAL / n_columns] * n_columns, TYPICAL_WHITE])
    bounds = [*[BOUNDS] * (n_players + n_columns), WHITE_BOUNDS]

    def posterior(logs: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = evidence(some, targets, logs)
        pull = (logs - typical) / SPREAD**2
        return value + 0.5 * float(pull @ (logs - typical)), slope + pull

    return np.asarray(
        minimize(posterior, typical, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MAX_STEPS}).x
    )


def evidence(points: Points, answers: np.ndarray, logs: np.ndarray) -> tuple[float, np.ndarray]:
    r"""Return the negative log marginal likelihood with scales profiled out, and its slopes in the logarithms.

    .. math:: \tfrac12 \sum_k \bigl(n \log \hat\sigma_k^2 + \log |K|\bigr), \qquad \hat\sigma_k^2 = y_k^\top K^{-1} y_k / n
    """
    n, n_outputs = answers.shape
    n_players, n_columns = points.members.shape[1], points.distances.shape[1]
    theta, alpha, white = np.split(np.exp(logs), [n_players, n_players + n_columns])
    kernel = points.kernel(theta, alpha)
    solved = solve_definite(kernel.copy(), answers, ridge=float(white[0]) + JITTER)
    if solved is None:
        return IMPOSSIBLE, np.zeros(len(logs))
    factor, dual = solved
    inverse = inverse_of(factor)
    variance = np.maximum((answers * dual).sum(axis=0) / n, TINIEST)
    value = 0.5 * n * np.log(variance).sum() + n_outputs * np.log(factor.diagonal()).sum()
    slopes = 0.5 * (n_outputs * inverse - (dual / variance) @ dual.T)
    weighted, signs, z = slopes * kernel, 2.0 * points.members - 1.0, points.distances
    of_players = -0.5 * theta * (weighted.sum() - (signs * (weighted @ signs)).sum(axis=0))
    of_columns = -2.0 * alpha * ((z**2 * weighted.sum(axis=1)[:, None]).sum(axis=0) - (z * (weighted @ z)).sum(axis=0))
    return float(value), np.concatenate([of_players, of_columns, white * slopes.trace()])

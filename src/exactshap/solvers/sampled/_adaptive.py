r"""Larger samples placed in stages, each where the process that was fitted to the calls so far knows the values least.

Up to 800 pairs are placed before anything is known of the game (``_design``). Beyond, about as many are called first; the process that is
fitted to them says how much calling a pair x would lower the summed variance of the Shapley values,

.. math:: \sum_i \mathrm{cov}(\phi_i, g(x))^2 / \mathrm{var}(g(x)),

given all pairs called or chosen before, and the next stage, about 2.25 times as many pairs in all, takes the largest of random
candidates. Nearest in print: sequential information gain, one coalition after the other (Rundel et al. 2026, ShaplEIG).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from exactshap._runtime.process_settings import single_threaded_blas
from exactshap.solvers.sampled._design import value_covariances
from exactshap.solvers.sampled._estimators import foretold
from exactshap.solvers.sampled._problem import RegressionProblem
from exactshap.solvers.sampled._sampling import MAX_DESIGNED
from exactshap.solvers.sampled._surrogate import posterior
from exactshap.solvers.sampled.process import CubeProcess, covariance

__all__ = ["Candidates", "grow"]

GROWTH = 2.25  # pairs after a stage over those before, at most
MAX_PLACED = 4000  # pairs: placing more takes longer than to condition on them; the rest is drawn by size
LEAST_PAIRS = 6  # a player: with fewer the relevances are hardly known
STAGE_ROWS = 800  # pairs that decide the relevances of a stage
CANDIDATES = 2  # for each place, and as many again as were called before
BATCH = 128  # places between two passes over all candidates
SHORTLIST = 4  # candidates for each place of a batch
TRUSTED = 1e-6  # of a prior variance of 1/2, added to that of candidates: what is left of one that is known is rounding


def grow(problem: RegressionProblem, n_calls: int) -> None:
    """Call coalitions until ``n_calls`` of them have been asked for: in stages where that pays, else at once."""
    for size in _stages(problem, n_calls):
        if len(problem.masks) >= size:
            continue
        if len(problem.masks) == 0 or foretold(problem):
            problem.grow(2 * size + 2)
        else:
            with single_threaded_blas():  # its sums would end in other bits with other numbers of threads
                problem.ask(_placed(problem, size - len(problem.masks)))
    problem.grow(n_calls)


def _stages(problem: RegressionProblem, n_calls: int) -> list[int]:
    """Return the pairs in all after each stage; none where coalitions are drawn or placed at once."""
    d, n_pairs = problem.n_players, (n_calls - 2) // 2
    pays = max(MAX_DESIGNED, 2 * LEAST_PAIRS * d - 1) < n_pairs < 2 ** (d - 1) - 1
    if not pays or problem.settings.estimator not in ("auto", "process") or not problem.is_shapley:
        return []
    last = min(n_pairs, MAX_PLACED)
    first = len(problem.masks) or min(MAX_DESIGNED, last // 2)
    n_stages = max(math.ceil(math.log(last / first) / math.log(GROWTH)), 0)
    return [first, *(round(first * (last / first) ** (k / n_stages)) for k in range(1, n_stages + 1))]


def _placed(problem: RegressionProblem, n: int) -> np.ndarray:
    """Return the next ``n`` pairs (n, n_players)."""
    masks = problem.unseen(CANDIDATES * n)
    candidates = Candidates.of(posterior(problem, STAGE_ROWS), 2.0 * masks - 1.0, n)
    return masks[candidates.choose(n)]


@dataclass(eq=False)
class Candidates:
    r"""Pairs that may be called next, given what was called or chosen before.

    ``explained`` holds the rows of :math:`L^{-1} k(X, C)`, :math:`k(X, X) = L L^\top`, of all points X called or chosen; ``variance`` (n_candidates,) and ``gain`` (n_candidates, n_players) are what is left of
    the variance of each candidate and of its covariances with the values.
    """

    points: np.ndarray  # (n_candidates, n_players) of -1 and 1
    theta: np.ndarray
    white: float
    explained: np.ndarray  # (n_rows, n_candidates), filled up to ``n_explained``
    n_explained: int
    variance: np.ndarray
    gain: np.ndarray
    is_open: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.is_open = np.ones(len(self.points), bool)

    @classmethod
    def of(cls, process: CubeProcess, points: np.ndarray, n_places: int) -> Candidates:
        """Return candidates given the pairs that the process has seen, with room for ``n_places`` more."""
        from scipy.linalg import lapack

        n_known, theta, factor = len(process.points), process.theta, process.halves[0].factor
        white = process.white + TRUSTED
        known = lapack.dtrtrs(factor, covariance(process.points, points, theta, -1), lower=1)[0]
        values = lapack.dtrtrs(factor, value_covariances(process.points, theta, process.white, -1), lower=1)[0]
        prior = covariance(points[:1], points[:1], theta, -1)[0, 0] + white
        explained = np.empty((n_known + n_places, len(points)))
        explained[:n_known] = known
        gain = value_covariances(points, theta, process.white, -1) - known.T @ values
        variance = np.maximum(prior - (known**2).sum(axis=0), TRUSTED)
        return cls(points, theta, white, explained, n_known, variance, gain)

    def choose(self, n: int) -> np.ndarray:
        """Return the places (n,) of the candidates to call, greedily; less of them where there are fewer."""
        chosen = np.zeros(0, int)
        n = min(n, len(self.points))
        while len(chosen) < n:
            picked, root = self._batch(min(BATCH, n - len(chosen)))
            self._explain(picked, root)
            chosen = np.append(chosen, picked)
        return chosen

    def _scores(self) -> np.ndarray:
        return np.where(self.is_open, (self.gain**2).sum(axis=1) / self.variance, -1.0)

    def _batch(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next ``n`` of the most telling candidates, one after the other, and the Cholesky factor of their covariance."""
        n_short = min(SHORTLIST * n, int(self.is_open.sum()))
        short = np.argsort(-self._scores(), kind="stable")[:n_short]
        left = covariance(self.points[short], self.points[short], self.theta, -1) + self.white * np.eye(n_short)
        seen = self.explained[: self.n_explained, short]
        left -= seen.T @ seen
        gain, variance, is_open = self.gain[short], left.diagonal().copy(), np.ones(n_short, bool)
        rows, picked = np.empty((n, n_short)), np.empty(n, int)
        for place in range(n):
            best = picked[place] = np.where(is_open, (gain**2).sum(axis=1) / variance, -1.0).argmax()
            is_open[best] = False
            root = np.sqrt(variance[best])
            rows[place] = (left[:, best] - rows[:place].T @ rows[:place, best]) / root
            gain -= np.outer(rows[place], gain[best] / root)
            variance = np.maximum(variance - rows[place] ** 2, TRUSTED)
        return short[picked], rows[:, picked].T

    def _explain(self, picked: np.ndarray, root: np.ndarray) -> None:
        """Take from all candidates what the picked ones tell of them; ``root`` is the picked ones' factor."""
        from scipy.linalg import solve_triangular

        seen = self.explained[: self.n_explained]
        fresh = covariance(self.points[picked], self.points, self.theta, -1)
        fresh[np.arange(len(picked)), picked] += self.white
        fresh -= np.ascontiguousarray(seen[:, picked]).T @ seen
        root = np.tril(root)
        fresh = solve_triangular(root, fresh, lower=True, check_finite=False)
        self.explained[self.n_explained : self.n_explained + len(picked)] = fresh
        self.n_explained += len(picked)
        self.variance = np.maximum(self.variance - (fresh**2).sum(axis=0), TRUSTED)
        self.gain -= fresh.T @ solve_triangular(root, self.gain[picked], lower=True, check_finite=False)
        self.is_open[picked] = False

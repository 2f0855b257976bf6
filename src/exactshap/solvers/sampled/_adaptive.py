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
BATCH = 64  # places between two passes over all candidates
BLOCK = 512  # candidates that are looked at together
SHORTLIST = 3  # candidates for each place of a batch
TRUSTED = 1e-6  # of a prior variance of 1/2, added to that of candidates: what is left of one that is known is rounding


def grow(problem: RegressionProblem, n_calls: int) -> None:
    """Call coalitions until ``n_calls`` of them have been asked for: in stages where that pays, else at once."""
    for size in _stages(problem, n_calls):
        if len(problem.masks) >= size:
            continue
        if len(problem.masks) == 0 or foretold(problem):
            problem.grow(2 * size + 2)
        else:
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
    with single_threaded_blas():  # sums would end in other bits with other numbers of threads
        process = posterior(problem, STAGE_ROWS)
        problem.relevances = process.logs
        return masks[Candidates.of(process, 2.0 * masks - 1.0, n).choose(n)]


@dataclass(eq=False)
class Candidates:
    r"""Pairs that may be called next, given what was called or chosen before.

    ``explained`` holds the columns of :math:`L^{-1} k(X, C)`, :math:`k(X, X) = L L^\top`, of all points X called or chosen;
    ``variance`` (n_candidates,) and ``gain`` (n_candidates, n_players) are what is left of the variance of each candidate and of its
    covariances with the values. Those that were chosen are gone: the last ones have taken their places.
    """

    points: np.ndarray  # (n_candidates, n_players) of -1 and 1
    theta: np.ndarray
    white: float
    explained: np.ndarray  # (n_candidates, n_rows), filled up to ``n_explained``
    n_explained: int
    variance: np.ndarray
    gain: np.ndarray
    names: np.ndarray = field(init=False)  # (n_candidates,), which they were of those given

    def __post_init__(self) -> None:
        self.names = np.arange(len(self.points))

    @classmethod
    def of(cls, process: CubeProcess, points: np.ndarray, n_places: int) -> Candidates:
        """Return candidates given the pairs that the process has seen, with room for ``n_places`` more."""
        from scipy.linalg import blas, lapack

        n_known, theta, factor = len(process.points), process.theta, process.halves[0].factor
        white = process.white + TRUSTED
        explained = np.empty((len(points), n_known + n_places))
        for start in range(0, len(points), BLOCK):
            rows = slice(start, start + BLOCK)
            beside = covariance(points[rows], process.points, theta, -1)
            explained[rows, :n_known] = blas.dtrsm(1.0, factor, beside.T, lower=1, overwrite_b=1).T
        known = explained[:, :n_known]
        values = lapack.dtrtrs(factor, value_covariances(process.points, theta, process.white, -1), lower=1)[0]
        prior = covariance(points[:1], points[:1], theta, -1)[0, 0] + white
        gain = value_covariances(points, theta, process.white, -1) - known @ values
        return cls(points.copy(), theta, white, explained, n_known, np.maximum(prior - _squares(known), TRUSTED), gain)

    def choose(self, n: int) -> np.ndarray:
        """Return which candidates (n,) to call, greedily; less of them where there are fewer."""
        chosen: list[np.ndarray] = []
        n_left = min(n, len(self.points))
        while n_left:
            picked, root = self._batch(min(BATCH, n_left))
            chosen.append(self.names[picked])
            self._explain(picked, root)
            n_left -= len(picked)
        return np.concatenate(chosen)

    def _batch(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next ``n`` of the most telling candidates, one after the other, and the Cholesky factor of their covariance."""
        n_short = min(SHORTLIST * n, len(self.points))
        short = np.argsort(-_squares(self.gain) / self.variance, kind="stable")[:n_short]
        left = covariance(self.points[short], self.points[short], self.theta, -1) + self.white * np.eye(n_short)
        seen = self.explained[short, : self.n_explained]
        left -= seen @ seen.T
        gain, variance, is_open = self.gain[short], left.diagonal().copy(), np.ones(n_short, bool)
        rows, picked = np.empty((n, n_short)), np.empty(n, int)
        for place in range(n):
            best = picked[place] = np.where(is_open, _squares(gain) / variance, -1.0).argmax()
            is_open[best] = False
            root = np.sqrt(variance[best])
            rows[place] = (left[best] - rows[:place, best] @ rows[:place]) / root
            gain -= rows[place][:, None] * (gain[best] / root)
            variance = np.maximum(variance - rows[place] ** 2, TRUSTED)
        return short[picked], rows[:, picked].T

    def _explain(self, picked: np.ndarray, root: np.ndarray) -> None:
        """Take from all others what the picked ones tell of them, and let those go; ``root`` is the picked ones' factor."""
        from scipy.linalg import blas, solve_triangular

        start, end = self.n_explained, self.n_explained + len(picked)
        points, gain, seen = self.points[picked], self.gain[picked], self.explained[picked, :start]
        self._let_go(picked)
        fresh = covariance(self.points, points, self.theta, -1)
        fresh -= self.explained[:, :start] @ seen.T
        fresh = blas.dtrsm(1.0, root, fresh.T, lower=1, overwrite_b=1).T
        self.explained[:, start:end] = fresh
        self.n_explained = end
        self.variance = np.maximum(self.variance - _squares(fresh), TRUSTED)
        self.gain -= fresh @ solve_triangular(root, gain, lower=True, check_finite=False)

    def _let_go(self, picked: np.ndarray) -> None:
        """Move the last candidates to the places of those picked."""
        n_left = len(self.points) - len(picked)
        free = picked[picked < n_left]
        last = np.setdiff1d(np.arange(n_left, len(self.points)), picked)
        for part in (self.points, self.names, self.variance, self.gain):
            part[free] = part[last]
        self.explained[free, : self.n_explained] = self.explained[last, : self.n_explained]
        self.points, self.names, self.variance, self.gain, self.explained = (
            part[:n_left] for part in (self.points, self.names, self.variance, self.gain, self.explained)
        )


def _squares(rows: np.ndarray) -> np.ndarray:
    """Return the sum of squares (n_rows,) of each row."""
    return np.asarray(np.einsum("rk,rk->r", rows, rows))

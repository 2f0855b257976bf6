r"""Place samples in stages, each where it lowers the variance of the values most under the process fitted so far.

Up to 800 pairs are placed before any call (``_sampling``). Beyond, and for all values but Shapley's from 6 pairs a
player on (12 for those that see both halves of the game), half of the calls are made first; the process that is fitted to them says how
much calling a pair x would lower the summed variance of the values of the sets T that are wanted,

.. math:: \sum_h \sigma_h^2 \sum_T \mathrm{cov}(\phi_T, g_h(x))^2 / \mathrm{var}(g_h(x)),

given all pairs called or chosen before, and the next stage, about 2.25 times as many pairs in all, takes the largest of random
candidates. If almost all that left-out pairs miss is white, no place is better than another: at least three quarters of all pairs are drawn by size then, and
correct the process without bias (``_correction``). h are the odd and the even half of the game, of scale :math:`\sigma_h`, as far as the values see them: Shapley values of
single players see the odd one only. Fewer calls than that, for values that see both halves, are pairs first and then single coalitions,
placed alike. Nearest in print: sequential information gain, one coalition after the other (Rundel et al. 2026, ShaplEIG).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from exactshap._runtime.linear_algebra import solve_lower
from exactshap._runtime.process_settings import single_threaded_blas
from exactshap.semivalues import Semivalue
from exactshap.solvers.sampled._estimators import is_predicted
from exactshap.solvers.sampled._problem import RegressionProblem
from exactshap.solvers.sampled._sampling import MAX_DESIGNED
from exactshap.solvers.sampled._surrogate import posterior
from exactshap.solvers.sampled.process import CubeProcess, covariance

GROWTH = 2.25  # pairs after a stage over those before, at most
# Pairs: placing more takes longer than conditioning on them, so the rest is drawn by size
MAX_PLACED = 4000
# Pairs a player before a stage: with fewer the relevances are hardly known
STAGE_PAIRS_A_PLAYER = 6
# Up to this many pairs a player, and the fraction of calls in pairs, before single coalitions
PAIRS_FIRST = ((6, 0.65), (12, 0.5))
PLACES_AT_ONCE = 16  # with fewer left, all are placed at once
# Share of the variance of left-out pairs that no other pair knows anything of, above which the rest is drawn: no place is better than another
MOSTLY_WHITE = 0.8
# Share of all pairs that may be fitted then: their left-out residuals are not among those that correct
MOST_FITTED = 0.25
STAGE_ROWS = 800  # pairs that decide the relevances of a stage
# Candidates for each place, where places are few and where they are many; and as many again as were called before
CANDIDATES = {True: 6, False: 2}
WIDE_SEARCH_PLACES = 400
BATCH = 64  # places between two passes over all candidates
BLOCK = 512  # candidates that are looked at together
SHORTLIST = 3  # candidates for each place of a batch
# Called pairs of which covariances are cleared in double precision: what they leave is so small that single precision is enough
DOUBLE_ROWS = 128
# Added to the variance of candidates, 1/2 before any call: that of a known one is rounding
TRUSTED = 1e-6
# Sets that decide together: those with the most variable values before any call
MOST_SETS = 500

Question: TypeAlias = tuple[Semivalue, int, tuple[tuple[int, ...], ...]]  # the semivalue, the order, the sets


def grow(problem: RegressionProblem, n_calls: int, limit: int) -> None:
    """Call coalitions until ``n_calls`` (of at most ``limit``) have been called, in stages if that pays."""
    if (share := _pairs_first(problem, limit)) is not None:
        _grow_pairs_first(problem, n_calls, share)
        return
    for size in _stages(problem, n_calls):
        if len(problem.masks) >= size:
            continue
        if len(problem.masks) == 0 or is_predicted(problem):
            problem.grow(2 * size + 2)
        elif len(masks := _placed(problem, size - len(problem.masks), (n_calls - 2) // 2)):
            problem.add(masks)
        else:
            break
    problem.grow(n_calls)


def _pairs_first(problem: RegressionProblem, limit: int) -> float | None:
    """Return the fraction of pairs among few calls, for values that depend on both halves; else None."""
    d, n_pairs = problem.n_players, (limit - 2) // 2
    if problem.settings.estimator not in ("auto", "process") or not problem.sees_even or n_pairs < d:
        return None
    return next((share for most, share in PAIRS_FIRST if n_pairs < most * d < 2 ** (d - 2)), None)


def _grow_pairs_first(problem: RegressionProblem, n_calls: int, share: float) -> None:
    """Call pairs first, which separate the halves, then single coalitions, which inform about both by one call."""
    if len(problem.masks) == 0:
        problem.grow(2 * round(share * (n_calls - 2) / 2) + 2)
        problem.part()
    while (n_left := n_calls - 2 - len(problem.masks)) > 0:
        problem.add(_placed(problem, n_left if n_left <= PLACES_AT_ONCE else n_left // 2))


def _stages(problem: RegressionProblem, n_calls: int) -> list[int]:
    """Return the total of pairs after each stage; none if coalitions are drawn or placed at once."""
    d, n_pairs = problem.n_players, (n_calls - 2) // 2
    least = max(MAX_DESIGNED, 2 * STAGE_PAIRS_A_PLAYER * d - 1) if problem.is_shapley else STAGE_PAIRS_A_PLAYER * d - 1
    if not least < n_pairs < 2 ** (d - 1) - 1 or problem.settings.estimator not in ("auto", "process"):
        return []
    last = min(n_pairs, MAX_PLACED)
    first = len(problem.masks) or min(MAX_DESIGNED, last // 2)
    n_stages = max(math.ceil(math.log(last / first) / math.log(GROWTH)), 0)
    return [first, *(round(first * (last / first) ** (k / n_stages)) for k in range(1, n_stages + 1))]


def _placed(problem: RegressionProblem, n: int, total: int = 0) -> np.ndarray:
    """Return the next ``n`` pairs or coalitions (n, n_players); none if draws up to ``total`` pairs correct the process better."""
    masks = problem.unseen(CANDIDATES[n <= WIDE_SEARCH_PLACES] * n)
    with single_threaded_blas():  # the bits of sums would depend on the number of threads
        process = posterior(problem, STAGE_ROWS)
        problem.relevances = process.logs
        if problem.is_corrected and problem.n_fitted <= MOST_FITTED * total and process.white_share > MOSTLY_WHITE:
            problem.most_fitted = problem.n_fitted
            return masks[:0]
        question = problem.semivalue, problem.order, problem.sets
        return masks[Candidates.of(process, 2.0 * masks - 1.0, n, question).choose(n)]


@dataclass(eq=False)
class Candidates:
    """Hold pairs or coalitions that may be called next, given those called or chosen before."""

    points: np.ndarray  # (n_candidates, n_players) of -1 and 1
    halves: list[Side]  # of the game, those that the values see
    names: np.ndarray = field(init=False)  # (n_candidates,), which they were of those given

    def __post_init__(self) -> None:
        self.names = np.arange(len(self.points))

    @classmethod
    def of(cls, process: CubeProcess, points: np.ndarray, n_places: int, question: Question) -> Candidates:
        """Return candidates given the pairs that the process has seen, with room for ``n_places`` more."""
        sizes = process.sizes()
        return cls(points.copy(), [Side.of(process, k, sizes[k], points, n_places, question) for k in range(len(sizes))])

    def choose(self, n: int) -> np.ndarray:
        """Return the candidates (at most n) to call, greedily; with the places left, the candidates become fewer, too."""
        chosen: list[np.ndarray] = []
        n_left = min(n, len(self.points))
        for_each = len(self.points) / max(n_left, 1)
        while n_left:
            picked, roots = self._batch(min(BATCH, n_left))
            chosen.append(self.names[picked])
            n_left -= len(picked)
            self._explain(picked, roots, max(math.ceil(for_each * n_left), SHORTLIST * BATCH))
        return np.concatenate(chosen)

    def _batch(self, n: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the next ``n`` most informative candidates, one by one, and the Cholesky factors of their covariances."""
        n_short = min(SHORTLIST * n, len(self.points))
        short = np.argsort(-_reductions(self.halves), kind="stable")[:n_short]
        listed = [half.shortlist(self.points, short, n) for half in self.halves]
        is_open, picked = np.ones(n_short, bool), np.empty(n, int)
        for place in range(n):
            best = picked[place] = np.where(is_open, _reductions(listed), -1.0).argmax()
            is_open[best] = False
            for half in listed:
                half.pick(place, int(best))
        return short[picked], [half.rows[:, picked].T for half in listed]

    def _explain(self, picked: np.ndarray, roots: list[np.ndarray], most: int) -> None:
        """Condition the best ``most`` of the others on the picked ones, and drop the rest: the last ones move into their places."""
        order = _reductions(self.halves)
        order[picked] = -1.0
        n_left, points = min(most, len(self.points) - len(picked)), self.points[picked]
        kept = np.zeros(len(self.points), bool)
        kept[np.argsort(-order, kind="stable")[:n_left]] = True
        free, last = np.flatnonzero(~kept[:n_left]), n_left + np.flatnonzero(kept[n_left:])
        known = [(half.gain[picked], half.parts(picked)) for half in self.halves]
        self.points[free], self.names[free] = self.points[last], self.names[last]
        self.points, self.names = self.points[:n_left], self.names[:n_left]
        for half, root, (gain, seen) in zip(self.halves, roots, known, strict=True):
            half.move(free, last, n_left)
            half.explain(self.points, points, gain, seen, root)


@dataclass(eq=False)
class Side:
    r"""Hold covariances of candidates in one half of the game, given those called or chosen before.

    ``explained`` holds the columns of :math:`L^{-1} k(X, C)`, :math:`k(X, X) = L L^\top`, of all points X called or chosen;
    ``variance`` (n_candidates,) and ``gain`` (n_candidates, n_sets) are what is left of the variance of each candidate and of its
    covariances with the values, those in units of the larger half.
    """

    sign: int
    theta: np.ndarray
    white: float
    first: np.ndarray  # (n_candidates, n_first): most of what is explained, so that single precision is enough for the rest
    explained: np.ndarray  # (n_candidates, n_rows - n_first), filled up to ``n_explained``
    n_explained: int
    variance: np.ndarray
    gain: np.ndarray

    @classmethod
    def of(cls, process: CubeProcess, k: int, size: float, points: np.ndarray, n_places: int, question: Question) -> Side:
        """Return the side of the process' k-th half for points (n_candidates, n_players)."""
        fitted, theta, n_known = process.halves[k], process.theta, len(process.points)
        sign, white = fitted.half.sign, process.white + TRUSTED
        prior = covariance(points[:1], points[:1], theta, sign)[0, 0] + white
        variance = np.full(len(points), prior)
        joint = process.covariances(sign, np.concatenate([process.points, points]), *question, most=MOST_SETS)
        moved, gain = solve_lower(fitted.factor, joint[:n_known].copy(order="F")), joint[n_known:]
        n_first = min(DOUBLE_ROWS, n_known)
        n_rest, first = n_known - n_first, np.empty((len(points), n_first))
        explained = np.empty((len(points), n_rest + n_places), np.float32)
        for start in range(0, len(points), BLOCK):
            rows = slice(start, start + BLOCK)
            cross = covariance(points[rows], process.points, theta, sign)
            root = solve_lower(fitted.factor, cross.T).T
            first[rows], explained[rows, :n_rest] = root[:, :n_first], root[:, n_first:]
            variance[rows] -= _squares(root)
            gain[rows] -= root @ moved
        return cls(sign, theta, white, first, explained, n_rest, np.maximum(variance, TRUSTED), size * gain)

    def parts(self, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Return what is explained of some candidates, in double and in single precision."""
        return self.first[rows], self.explained[rows, : self.n_explained]

    def shortlist(self, points: np.ndarray, short: np.ndarray, n_places: int) -> Shortlist:
        """Return some candidates with their joint covariances."""
        left = covariance(points[short], points[short], self.theta, self.sign) + self.white * np.eye(len(short))
        for part in self.parts(short):
            left -= part @ part.T
        return Shortlist(left, self.gain[short], left.diagonal().copy(), np.empty((n_places, len(short))))

    def move(self, free: np.ndarray, last: np.ndarray, n_left: int) -> None:
        """Move the last candidates into free places, so that the first ``n_left`` are left."""
        for part in (self.variance, self.gain, *self.parts()):
            part[free] = part[last]
        self.first, self.explained = self.first[:n_left], self.explained[:n_left]
        self.variance, self.gain = self.variance[:n_left], self.gain[:n_left]

    def explain(
        self, points: np.ndarray, picked: np.ndarray, gain: np.ndarray, seen: tuple[np.ndarray, np.ndarray], root: np.ndarray
    ) -> None:
        """Condition the candidates at ``points`` on those ``picked``; ``root`` is the factor of their covariance."""
        start, end = self.n_explained, self.n_explained + len(picked)
        fresh = covariance(points, picked, self.theta, self.sign)
        for part, of_picked in zip(self.parts(), seen, strict=True):
            fresh -= part @ of_picked.T
        root = np.asfortranarray(root)
        fresh = solve_lower(root, fresh.T).T
        self.explained[:, start:end] = fresh
        self.n_explained = end
        self.variance = np.maximum(self.variance - _squares(fresh), TRUSTED)
        self.gain -= fresh @ solve_lower(root, gain.copy(order="F"))


@dataclass(eq=False)
class Shortlist:
    """Hold the most informative candidates of one half, from which a batch is picked one by one."""

    left: np.ndarray  # (n_short, n_short), how they vary together
    gain: np.ndarray
    variance: np.ndarray
    rows: np.ndarray  # (n_places, n_short), of the factor of the picked ones' covariance

    def pick(self, place: int, best: int) -> None:
        """Condition the others on the ``best`` one."""
        root = np.sqrt(self.variance[best])
        self.rows[place] = (self.left[best] - self.rows[:place, best] @ self.rows[:place]) / root
        self.rows[place, best] = root  # whatever rounding has left: the factor's diagonal is positive
        self.gain -= self.rows[place][:, None] * (self.gain[best] / root)
        self.variance = np.maximum(self.variance - self.rows[place] ** 2, TRUSTED)


def _reductions(halves: Sequence[Side | Shortlist]) -> np.ndarray:
    """Return the reduction of the summed variance of the values by calling each candidate."""
    return np.add.reduce([_squares(half.gain) / half.variance for half in halves])


def _squares(rows: np.ndarray) -> np.ndarray:
    """Return the sum of squares (n_rows,) of each row."""
    return np.asarray(np.einsum("rk,rk->r", rows, rows))

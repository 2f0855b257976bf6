r"""Call samples in stages, each where it lowers the variance of the values most under the process fitted so far (``_placement``).

Up to 6 pairs a player (12 for values that see both halves of the game) are placed before any call. Of more, half of the calls are made
first, but 800 pairs at most; the process that is fitted to them places the next stage, about 2.25 times as many pairs in all, among
random candidates, by region where there are many. If almost all that left-out pairs miss is white, no place is
better than another: at least three quarters of all pairs are drawn by size then, and correct the process without bias (``_correction``).
Fewer calls than that, for values that see both halves, are pairs first and then single coalitions, placed alike.
"""

from __future__ import annotations

import math

import numpy as np

from exactshap._runtime.process_settings import single_threaded_blas
from exactshap.solvers.sampled._estimators import is_predicted
from exactshap.solvers.sampled._placement import MAX_DESIGNED, TRUSTED, Belief, place
from exactshap.solvers.sampled._problem import RegressionProblem
from exactshap.solvers.sampled._surrogate import posterior
from exactshap.solvers.sampled.process import CubeProcess

GROWTH = 2.25  # pairs after a stage over those before, at most
# Pairs a player from which on there are stages: with fewer the relevances are hardly known (of 8 to 40 players and 120 to 1,600 calls stages have
# 0.6 to 1.2 of the squared errors of a design, 0.88 in the geometric mean of 17 sizes)
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
# Called and placed points of a region, if evenly spread: conditioning candidates on all points would take time as their cube
REGION_POINTS = 900


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
        # Fewer pairs than players would be drawn as single coalitions
        problem.grow(2 * max(round(share * (n_calls - 2) / 2), problem.n_players) + 2)
        problem.part()
    while (n_left := n_calls - 2 - len(problem.masks)) > 0:
        problem.add(_placed(problem, n_left if n_left <= PLACES_AT_ONCE else n_left // 2))


def _stages(problem: RegressionProblem, n_calls: int) -> list[int]:
    """Return the total of pairs after each stage; none if coalitions are drawn or placed at once."""
    d, n_pairs = problem.n_players, (n_calls - 2) // 2
    if not STAGE_PAIRS_A_PLAYER * d <= n_pairs < 2 ** (d - 1) - 1 or problem.settings.estimator not in ("auto", "process"):
        return []
    last = min(n_pairs, problem.most_fitted)  # others correct the process, which they do best if drawn
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
        belief = Belief(process.prior, process.white + TRUSTED, process.scales(), problem.question)
        return masks[_by_region(process, 2.0 * masks - 1.0, n, belief)]


def _by_region(process: CubeProcess, candidates: np.ndarray, n: int, belief: Belief) -> np.ndarray:
    """Return which candidates to call, placed among the calls of their region: of equal sides of the most relevant players."""
    known, points = process.points, np.concatenate([process.points, candidates])
    n_splits = min(max(math.ceil(math.log2((len(known) + n) / REGION_POINTS)), 0), points.shape[1] - process.paired)
    most_relevant = np.argsort(-process.theta, kind="stable")[: n_splits + process.paired]
    sides = points[:, most_relevant] > 0
    if process.paired:  # a pair is on the side of its half with the most relevant player
        sides = (sides ^ ~sides[:, :1])[:, 1:]
    regions = sides @ (1 << np.arange(n_splits))
    here, there = np.split(regions, [len(known)])
    # Each region has its share of the places, rounded so that they sum to n
    ends = np.rint(np.cumsum(np.bincount(there, minlength=2**n_splits)) * (min(n, len(candidates)) / max(len(candidates), 1)))
    chosen = [np.empty(0, int)]
    for region, n_places in enumerate(np.diff(ends, prepend=0.0).astype(int)):
        if n_places:
            own = np.flatnonzero(there == region)
            chosen.append(own[place(known[here == region], candidates[own], n_places, belief)])
    return np.concatenate(chosen)

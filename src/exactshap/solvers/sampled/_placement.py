r"""Choose the pairs or coalitions to call next, greedily.

Under the process given the calls so far, calling x lowers the summed variance of the values of the sets T by

.. math:: \sum_h \sigma_h^2 \sum_T \mathrm{cov}(\phi_T, g_h(x))^2 / \mathrm{var}(g_h(x)),

where h are the halves of the game that the values see, of scale :math:`\sigma_h`. The candidate with the largest reduction is called next.
Before any call all players are equally relevant, so that the design of a first sample depends on its size only.
Nearest in print: sequential information gain, one coalition after the other (Rundel et al. 2026, ShaplEIG).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from exactshap._runtime.linear_algebra import factorise_lower, solve_lower
from exactshap._runtime.process_settings import single_threaded_blas
from exactshap.semivalues import find
from exactshap.solvers.core import player_sets
from exactshap.solvers.sampled._sampling import draw, shares_of, sizes_of, strata
from exactshap.solvers.sampled.process import Prior, Question, covariance

# Pairs that are placed before any call; more are drawn by size
MAX_DESIGNED = 800
# White part that designs assume, for interactions that no kernel of low order explains (tuned)
DESIGN_WHITE = {True: 3e-3, False: 0.1}
# Candidates for a design, or two for each place
MIN_CANDIDATES = 1000
# Pairs a player that a design places where it likes; of the others each size has as many as draws by size would: a design alone leaves out
# sizes between 1 and half of the players, where a game that jumps may do anything
FREE_PAIRS = 2
# Places between two passes over all candidates: one for so many points that are known by then, at most
BATCH, KNOWN_FOR_EACH = 64, 32
CROWDED = 0.8  # candidates are dropped where so small a share of them is enough
SHORTLIST = 3  # candidates for each place of a batch
# Sets that decide together: those with the most variable values before any call
MOST_SETS = 500
TRUSTED = 1e-6  # of the variance of a point, 1/2 before any call: what is below is rounding


class Belief(NamedTuple):
    """Hold what is known before any call: the process, and the values that it is called for."""

    prior: Prior
    noise: float  # variance that a call leaves open
    halves: Sequence[tuple[int, float]]  # signs and scales of those that the values see
    question: Question


@dataclass(eq=False)
class Side:
    r"""Hold what is left of one half of the game at points (n_points, n_players), given those called or chosen.

    ``explained`` are the columns of :math:`k(X, C) L^{-\top}`, :math:`k(C, C) = L L^\top`, for the points C called or chosen, in blocks;
    ``variance`` (n_points,) and ``gain`` (n_points, n_sets) are what is left of variances, and of covariances with the values. The first
    block explains most, so that single precision is enough for the others.
    """

    sign: int
    theta: np.ndarray
    noise: float
    points: np.ndarray
    gain: np.ndarray
    variance: np.ndarray
    explained: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(cls, sign: int, scale: float, belief: Belief, points: np.ndarray) -> Side:
        """Return the side before any call."""
        prior, noise = belief.prior, belief.noise
        own = covariance(points[:1], points[:1], prior.theta, sign)[0, 0] + noise
        gain = scale * prior.covariances(sign, points, belief.question, MOST_SETS)
        return cls(sign, prior.theta, noise, points, gain, np.full(len(points), own))

    def kept(self, rows: np.ndarray | slice) -> Side:
        """Return the same of some points; what single precision is enough for is put together, as large products are faster."""
        first, rest = self.explained[:1], self.explained[1:]
        explained = tuple(block[rows] for block in first)
        if rest:
            explained += (np.concatenate([block[rows] for block in rest], axis=1),)
        return replace(self, points=self.points[rows], gain=self.gain[rows], variance=self.variance[rows], explained=explained)

    def left(self, rows: np.ndarray | slice, columns: np.ndarray) -> np.ndarray:
        """Return the covariances (n_rows, n_columns) that are left of some points with others."""
        matrix = covariance(self.points[rows], self.points[columns], self.theta, self.sign)
        for block in self.explained:
            matrix -= block[rows] @ block[columns].T
        return matrix

    def condition(self, columns: np.ndarray) -> None:
        """Call some points."""
        fresh = self.left(slice(None), columns)
        root = np.asfortranarray(fresh[columns])
        root[np.diag_indices(len(columns))] += self.noise
        if factorise_lower(root):
            raise np.linalg.LinAlgError("The covariance of the sampled coalitions is not positive definite")
        fresh, slopes = solve_lower(root, fresh.T).T, solve_lower(root, self.gain[columns].copy(order="F"))
        self.explained += (fresh.astype(np.float32) if self.explained else fresh,)
        self.variance = np.maximum(self.variance - _squares(fresh), TRUSTED)
        self.gain = self.gain - fresh @ slopes


def place(
    known: np.ndarray, candidates: np.ndarray, n_places: int, belief: Belief, least: np.ndarray | None = None
) -> np.ndarray:
    """Return which ``candidates`` (n_candidates, n_players) to call next, given the ``known`` points.

    The last places are kept for sizes (of the smaller of two complements) of which fewer than ``least`` (n_players + 1,) would be placed.
    """
    points = np.concatenate([known, candidates])
    n_known, n_places = len(known), min(n_places, len(candidates))
    sides = [Side.of(sign, scale, belief, points) for sign, scale in belief.halves]
    if n_known:
        for side in sides:
            side.condition(np.arange(n_known))
        sides = [side.kept(slice(n_known, None)) for side in sides]
    names = np.arange(n_known, len(points))
    sizes = sizes_of(candidates > 0, paired=True)
    owed = np.bincount(sizes, minlength=candidates.shape[1] + 1)
    owed = np.minimum(owed, 0 if least is None else least)  # points of each size that are still to be placed
    chosen, is_open = np.empty(0, int), np.ones(len(names), bool)
    while (n_left := n_places - len(chosen)) > 0:
        n_batch = min(BATCH, n_left, 1 + (n_known + len(chosen)) // KNOWN_FOR_EACH)
        allowed = is_open & (owed[sizes] > 0) if owed.sum() >= n_left else is_open
        order = np.argsort(np.where(allowed, -_reductions(sides), 0.0), kind="stable")
        most = max(len(candidates) * n_left // n_places, SHORTLIST * BATCH)
        if most < CROWDED * len(names) and not owed.any():
            order = order[:most]
            sides, names, sizes, is_open = [side.kept(order) for side in sides], names[order], sizes[order], is_open[order]
            order = np.arange(most)
        short = order[: min(SHORTLIST * n_batch, np.count_nonzero(allowed))]
        picked = short[_batch([side.kept(short) for side in sides], n_batch, sizes[short], owed, n_left)]
        chosen, is_open[picked] = np.append(chosen, names[picked]), False
        for side in sides:
            side.condition(picked)
    return chosen - n_known


def _batch(sides: Sequence[Side], n_batch: int, sizes: np.ndarray, owed: np.ndarray, n_left: int) -> list[int]:
    """Return the next of a short list, one by one, each given those before; take their sizes from those ``owed``."""
    picked: list[int] = []
    lefts = [side.left(slice(None), np.arange(len(sizes))) for side in sides]
    # Columns of L, as in ``Side.condition``: of the points picked so far
    roots = [np.empty((n_batch, len(sizes))) for _ in sides]
    is_open = np.ones(len(sizes), bool)
    for place in range(n_batch):
        # Once the missing sizes fill all places left, only they are allowed
        free = is_open & (owed[sizes] > 0) if owed.sum() >= n_left - place else is_open
        if not free.any():
            break
        best = int(np.where(free, _reductions(sides), -1.0).argmax())
        picked.append(best)
        is_open[best] = False
        owed[sizes[best]] -= owed[sizes[best]] > 0
        for left, root, side in zip(lefts, roots, sides, strict=True):
            scale = np.sqrt(side.variance[best])
            column = root[place]
            column[:] = (left[best] - root[:place, best] @ root[:place]) / scale
            side.gain -= np.outer(column, side.gain[best] / scale)
            side.variance = np.maximum(side.variance - column**2, TRUSTED)
    return picked


def _reductions(sides: Sequence[Side]) -> np.ndarray:
    """Return the reduction of the summed variance of the values by calling each point."""
    return np.add.reduce([_squares(side.gain) / side.variance for side in sides])


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("rk,rk->r", rows, rows))


@functools.lru_cache(maxsize=64)
def _designed(n_players: int, n: int, paired: bool, every_size: bool) -> np.ndarray:
    rng = np.random.default_rng(0)
    n_candidates = max(2 * n, MIN_CANDIDATES)
    groups = strata(n_players, paired=paired)
    candidates = draw(n_players, n_candidates, rng, groups, paired=paired)
    least = np.zeros(n_players + 1, int)
    if every_size:
        least[groups.sizes] = np.ceil(shares_of(groups, max(n - FREE_PAIRS * n_players, 0))[0])
    known = np.array([[1.0] * n_players, [-1.0] * n_players])[: 1 if paired else 2]
    # Single coalitions are too few to learn a white part, which would put all of them on the border
    prior = Prior(np.full(n_players, 2.0 / n_players), DESIGN_WHITE[True] if paired else 0.0)
    question = Question(find("shapley"), 1, player_sets(n_players, 1))
    belief = Belief(prior, DESIGN_WHITE[paired], [(-1 if paired else 0, 1.0)], question)
    with single_threaded_blas():
        chosen = place(known, 2.0 * candidates - 1.0, n, belief, least)
    result = candidates[chosen]
    result.setflags(write=False)
    return result


def design(n_players: int, n: int, rng: np.random.Generator, *, paired: bool, every_size: bool = False) -> np.ndarray:
    """Return coalitions for a process: small samples placed one by one where most informative, larger ones drawn by size.

    The design does not depend on the game, so that all rows of a seed share it. With ``every_size`` pairs of every size are
    placed, so that the model of each size is checked by calls.
    """
    if n > MAX_DESIGNED:
        return draw(n_players, n, rng, strata(n_players, paired=paired), paired=paired)
    return np.ascontiguousarray(_designed(n_players, n, paired, every_size)[:, rng.permutation(n_players)])

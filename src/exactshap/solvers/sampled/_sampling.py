"""Which coalitions are called: stratified by size, in pairs with their complements, never twice."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from exactshap._runtime.process_settings import single_threaded_blas
from exactshap.solvers.core import keys_of
from exactshap.solvers.sampled._counts import kernel_weights, size_counts
from exactshap.solvers.sampled._frontier import additive_frontier, unanimity_columns

MAX_LISTED = 200_000  # coalitions of one size that are listed rather than drawn until distinct
MAX_DESIGNED = 800  # pairs that are placed one by one; the work grows with the cube of their number
DESIGN_WHITE = {True: 3e-3, False: 0.1}  # what designs assume of interactions that no kernel of low order explains (tuned)
MANY_CANDIDATES_PAIRS = 400  # pairs up to which there are four candidates for each place, two beyond
# pairs a player for each pair that every size has at least, and at most so many: a design alone would leave out sizes between 1 and half
# of the players, where a game that jumps may do anything; tuned
PAIRS_A_PROBE, MOST_PROBES = 2, 2


@dataclass(frozen=True)
class Strata:
    """Coalitions by size: ``sizes`` (n_strata,), how many there are of each, and their share of the sample."""

    sizes: np.ndarray
    counts: np.ndarray  # float; beyond 2^1015 in units of some power of two (``_counts``)
    shares: np.ndarray


def strata(n_players: int, *, paired: bool, size_weights: np.ndarray | None = None) -> Strata:
    """Return the strata of sizes 1..d-1, or of pairs (the smaller of two complements, ties by holding player 0).

    ``size_weights`` (n_players - 1,) is the probability of each size up to a constant; default: equal, the leverage scores of
    order 1.
    """
    d = n_players
    weights = np.ones(d - 1) if size_weights is None else np.asarray(size_weights, float)
    sizes = np.arange(1, d // 2 + 1) if paired else np.arange(1, d)
    counts = size_counts(d)[sizes]
    shares = weights[sizes - 1].copy()
    if paired:
        shares = shares + np.where(2 * sizes == d, 0.0, weights[d - sizes - 1])
        counts = np.where(2 * sizes == d, counts / 2, counts)
    return Strata(sizes, counts, shares / shares.sum())


@functools.lru_cache(maxsize=16)
def _equal_strata(n_players: int, paired: bool) -> Strata:
    return strata(n_players, paired=paired)


def quotas(groups: Strata, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return how many to draw of each stratum: proportional to the shares, never more than there are (the border trick)."""
    wanted, n = shares_of(groups, n)[0], int(min(n, np.minimum(groups.counts, n).sum()))
    whole = np.floor(wanted + 1e-9)
    # systematic rounding: each stratum gets floor or ceil of its share, with the right expectation
    steps = np.floor(np.cumsum(wanted - whole) + rng.random() + 1e-12)
    whole += np.minimum(np.diff(steps, prepend=0.0), groups.counts - whole)
    return _repair(whole, groups.counts, n).astype(int)


def shares_of(groups: Strata, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of each stratum in ``n`` draws, at most what there is, and which strata are drawn to the end."""
    n = int(min(n, np.minimum(groups.counts, n).sum()))
    wanted = np.zeros(len(groups.sizes))
    open_ = np.ones(len(wanted), bool)
    while open_.any():
        left = n - wanted[~open_].sum()
        wanted[open_] = left * groups.shares[open_] / groups.shares[open_].sum()
        full = open_ & (wanted >= groups.counts)
        if not full.any():
            break
        wanted[full] = groups.counts[full]
        open_ &= ~full
    return wanted, ~open_


def _repair(whole: np.ndarray, counts: np.ndarray, n: int) -> np.ndarray:
    """Make the sum exact: at most one stratum is one short or one over after systematic rounding."""
    while whole.sum() != n:
        step = 1.0 if whole.sum() < n else -1.0
        room = counts - whole if step > 0 else whole
        whole[int(np.argmax(room))] += step
    return whole


def draw(n_players: int, n: int, rng: np.random.Generator, groups: Strata, *, paired: bool) -> np.ndarray:
    """Draw ``n`` distinct coalitions (or pairs) without replacement, uniformly within each stratum."""
    parts = [
        _of_size(n_players, int(size), int(count), rng, halved=paired and 2 * int(size) == n_players)
        for size, count in zip(groups.sizes, quotas(groups, n, rng), strict=True)
        if count
    ]
    return np.concatenate(parts) if parts else np.zeros((0, n_players), bool)


def _of_size(n_players: int, size: int, count: int, rng: np.random.Generator, *, halved: bool) -> np.ndarray:
    total = math.comb(n_players, size) // (2 if halved else 1)
    if total <= MAX_LISTED and count * 4 > total:
        masks = listed(n_players, size)[:total]  # with halved, the first half holds player 0
        return masks[np.sort(rng.choice(total, count, replace=False))]
    distinct = np.zeros((0, n_players), bool)
    while len(distinct) < count:
        block = _uniform(n_players, np.full(2 * (count - len(distinct)), size), rng)
        if halved:
            block ^= ~block[:, :1]
        distinct = np.concatenate([distinct, block])
        last_first = np.arange(len(distinct))[::-1]
        first = dict(zip(keys_of(distinct[last_first]), last_first.tolist(), strict=True))  # of those that are equal
        distinct = distinct[sorted(first.values())[:count]]
    return distinct


@functools.lru_cache(maxsize=32)
def listed(n_players: int, size: int) -> np.ndarray:
    """Return all coalitions of a size, lexicographically, read-only."""
    rows = np.array(list(itertools.combinations(range(n_players), size)))
    masks = np.zeros((len(rows), n_players), bool)
    np.put_along_axis(masks, rows, True, axis=1)
    masks.setflags(write=False)
    return masks


def _uniform(n_players: int, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return one uniform coalition of each size."""
    ranks = rng.random((len(sizes), n_players)).argsort(axis=1).argsort(axis=1)
    return ranks < sizes[:, None]


def draw_independent(
    n_players: int, n: int, rng: np.random.Generator, size_weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw ``n`` independent coalitions with replacement; return them with their probabilities of size (n,)."""
    weights = np.ones(n_players - 1) if size_weights is None else np.asarray(size_weights, float)
    probability = weights / weights.sum()
    sizes = rng.choice(np.arange(1, n_players), size=n, p=probability)
    return _uniform(n_players, sizes, rng), probability[sizes - 1]


def stratum_weights(masks: np.ndarray, *, paired: bool) -> np.ndarray:
    """Return C(d, s) / n_s for each row: the inverse sampling rate of its stratum, exactly 1 where all are enumerated."""
    d = masks.shape[1]
    sizes = masks.sum(axis=1)
    sizes = np.minimum(sizes, d - sizes) if paired else sizes
    groups = _equal_strata(d, paired)
    seen = np.bincount(sizes, minlength=d + 1)[groups.sizes]
    with np.errstate(divide="ignore"):
        rate = groups.counts / seen
    return rate[sizes - 1]


def row_weights(masks: np.ndarray, inverse_rates: np.ndarray) -> np.ndarray:
    """Return mu(S) times the inverse sampling rate of each row."""
    return kernel_weights(masks.shape[1])[masks.sum(axis=1) - 1] * inverse_rates


@functools.lru_cache(maxsize=64)
def _designed(n_players: int, n: int, paired: bool, of_each_size: int) -> np.ndarray:
    from exactshap.solvers.sampled._design import place_pairs

    rng = np.random.default_rng(0)
    n_candidates = max((4 if n <= MANY_CANDIDATES_PAIRS else 2) * n, 300)
    candidates = draw(n_players, n_candidates, rng, strata(n_players, paired=paired), paired=paired)
    known = np.array([[True] * n_players] if paired else [[True] * n_players, [False] * n_players])
    theta = np.full(n_players, 2.0 / n_players)
    with single_threaded_blas():
        chosen = place_pairs(known, candidates, n, theta, DESIGN_WHITE[paired], -1 if paired else 0, of_each_size)
    result = candidates[chosen]
    result.setflags(write=False)
    return result


def design(n_players: int, n: int, rng: np.random.Generator, *, paired: bool, every_size: bool = False) -> np.ndarray:
    """Return coalitions for a process: small samples are placed one by one where they tell most, larger ones drawn by size.

    Nothing here depends on the game, so that one design serves every row of a seed. With ``every_size`` pairs of every size are
    among those that are placed, so that what is believed of a size is held against calls.
    """
    if n > MAX_DESIGNED:
        return draw(n_players, n, rng, strata(n_players, paired=paired), paired=paired)
    probes = min(n // (PAIRS_A_PROBE * n_players), MOST_PROBES) if every_size else 0
    return np.ascontiguousarray(_designed(n_players, n, paired, probes)[:, rng.permutation(n_players)])


@functools.lru_cache(maxsize=64)
def leverage_scores(n_players: int, order: int) -> np.ndarray:
    r"""Return the probability of each size 1..d-1 under the leverage scores of the order-k problem, of shape (d - 1,).

    With :math:`A^\top A = \sum_S \mu(S) x_S x_S^\top` projected onto the efficiency constraint's null space, the score of S is
    :math:`\mu(S)\, x_S^\top (A^\top A)^+ x_S`, a function of ``|S|`` alone; the scores of all coalitions add up to the rank. Order 1
    gives equal sizes. Entries of :math:`A^\top A` follow from ``u = |T | T'|`` alone:
    :math:`\sum_{s \ge u} C(d - u, s - u) \mu(s)`.
    """
    d = n_players
    if order == 1 or d <= 2:
        return np.full(d - 1, 1.0 / (d - 1))
    sets = additive_frontier(d, order)
    members = unanimity_columns(np.eye(d, dtype=bool), tuple((j,) for j in range(d)))
    rows = np.array([members[list(players)].sum(axis=0) for players in sets])
    union = (rows.sum(axis=1)[:, None] + rows.sum(axis=1) - rows @ rows.T).astype(int)
    mu = kernel_weights(d)
    entry = np.array([sum(math.comb(d - u, s - u) * mu[s - 1] for s in range(max(u, 1), d)) for u in range(d + 1)])
    gram = entry[union]
    gram = gram - gram.mean(axis=0)
    gram = gram - gram.mean(axis=1, keepdims=True)
    inverse = np.linalg.pinv(gram, rcond=1e-11, hermitian=True)
    prefixes = np.tri(d - 1, d, dtype=bool)  # one coalition of each size: symmetry does the rest
    columns = unanimity_columns(prefixes, sets)
    columns = columns - columns.mean(axis=1, keepdims=True)
    scores = size_counts(d)[1:-1] * mu * np.einsum("sp,pq,sq->s", columns, inverse, columns)
    scores = scores / scores.sum()
    scores.setflags(write=False)
    return scores

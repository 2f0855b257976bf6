r"""Draw coalitions to call: stratified by size, in pairs with their complements, never twice.

:math:`C(d, s)` leaves the range of floats beyond 1020 players, and :math:`1 / C(d, s)` with it. Only products of the two matter, which are
computed as such: weights of the kernel by rows of a size (:func:`row_weights`), weights over chances (:func:`counted_weights`).
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from exactshap.semivalues import Semivalue
from exactshap.solvers.sampled._frontier import additive_frontier, unanimity_columns

# Bits of the largest C(d, s) of 1020 players: its products with weights are floats
MOST_BITS = 1015
# Numbers of sizes times nodes in memory at a time
BLOCK = 2**20
# Coalitions of one size that are listed rather than drawn until distinct
MAX_LISTED = 200_000
DRAWS_AT_ONCE = 8  # at least


def _exact_counts(n_players: int) -> list[int]:
    return list(itertools.accumulate(range(n_players), lambda count, s: count * (n_players - s) // (s + 1), initial=1))


@functools.lru_cache(maxsize=16)
def size_counts(n_players: int) -> np.ndarray:
    """Return C(d, s) for s = 0..d, (d + 1,), infinite beyond :data:`MOST_BITS`."""
    exact = _exact_counts(n_players)
    counts = np.array([float(count) if count.bit_length() <= MOST_BITS else np.inf for count in exact])
    counts.setflags(write=False)
    return counts


def kernel_weights(n_players: int) -> np.ndarray:
    r"""Return the Shapley kernel of one coalition of each size 1..d-1, of shape (d - 1,), up to a constant; 0 beyond floats.

    .. math:: \mu(s) = \frac{1}{(d - 1)\, C(d - 2, s - 1)} = \frac{d}{s\, (d - s)} \frac{1}{C(d, s)}
    """
    s = np.arange(1, n_players)
    return np.asarray(n_players / (s * (n_players - s)) / size_counts(n_players)[1:-1])


def counted_weights(semivalue: Semivalue, n_players: int, size: int, order: int) -> np.ndarray:
    r"""Return p(s) C(d, s + o) for overlaps o = 0..|T| and s = 0..d-|T|, p as in :meth:`Semivalue.weights`.

    .. math:: p(s)\, C(d, s + o) = \sum_q w_q \exp\bigl(s \log t_q + (d - |T| - s) \log (1 - t_q) + \log C(d, s + o)\bigr)
    """
    from scipy.special import xlog1py, xlogy

    degree = n_players - size
    s, counts = np.arange(degree + 1), size_counts(n_players)
    if np.isfinite(counts).all():
        return np.array([semivalue.weights(n_players, size, order) * counts[s + overlap] for overlap in range(size + 1)])
    nodes, weights = semivalue.rule(size, order, degree=degree)
    result, logarithms = np.empty((size + 1, degree + 1)), np.array([math.log(count) for count in _exact_counts(n_players)])
    for some in np.array_split(s, -(-len(s) * len(nodes) // BLOCK)):
        logs = xlogy(some[:, None], nodes) + xlog1py(degree - some[:, None], -nodes)
        for overlap in range(size + 1):
            result[overlap, some] = np.exp(logs + logarithms[some + overlap, None]) @ weights
    return result


@dataclass(frozen=True)
class Strata:
    """Hold strata of coalitions: ``sizes`` (n_strata,), their numbers, and their shares of the sample."""

    sizes: np.ndarray
    counts: np.ndarray  # float; infinite beyond 2^1015
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
        # A pair has the probability of both of its sizes; at half of the
        # players they are the same size, with half as many pairs
        shares = shares + np.where(2 * sizes == d, 0.0, weights[d - sizes - 1])
        counts = np.where(2 * sizes == d, counts / 2, counts)
    return Strata(sizes, counts, shares / shares.sum())


def quotas(groups: Strata, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the draws of each stratum, proportional to the shares and at most its number (the border trick)."""
    wanted = shares_of(groups, n)[0]
    whole = np.floor(wanted + 1e-9)
    # systematic rounding: each stratum gets floor or ceil of its share, with the right expectation
    steps = np.floor(np.cumsum(wanted - whole) + rng.random() + 1e-12)
    whole += np.minimum(np.diff(steps, prepend=0.0), groups.counts - whole)
    while missing := round(wanted.sum()) - whole.sum():  # one stratum may be off by one
        room = groups.counts - whole if missing > 0 else whole
        whole[int(np.argmax(room))] += np.sign(missing)
    return whole.astype(int)


def shares_of(groups: Strata, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of each stratum in ``n`` draws, at most its number, and which strata are exhausted."""
    n = int(min(n, np.minimum(groups.counts, n).sum()))
    wanted = np.zeros(len(groups.sizes))
    open_ = np.ones(len(wanted), bool)
    while open_.any():
        left = n - wanted[~open_].sum()
        wanted[open_] = left * groups.shares[open_] / groups.shares[open_].sum()
        # Exhausted strata pass the rest of their share on, which may exhaust others: hence the loop
        full = open_ & (wanted >= groups.counts)
        if not full.any():
            break
        wanted[full] = groups.counts[full]
        open_ &= ~full
    return wanted, ~open_


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
    # For a large part of all, drawing until distinct would mostly repeat
    if total <= MAX_LISTED and count * 4 > total:
        masks = listed(n_players, size)[:total]  # with halved, the first half holds player 0
        return masks[np.sort(rng.choice(total, count, replace=False))]
    distinct = np.zeros((0, n_players), bool)
    while len(distinct) < count:
        block = _uniform(n_players, np.full(2 * (count - len(distinct)), size), rng)
        if halved:
            # The half of each pair with player 0: coalitions without it become their complements
            block = _named(block)
        distinct = np.concatenate([distinct, block])
        distinct = distinct[_first_places(distinct)[:count]]
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
    # Ranks of random numbers are a random order of players, the first s of which are a uniform coalition
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


def sizes_of(masks: np.ndarray, *, paired: bool) -> np.ndarray:
    """Return the size (n_masks,) of each coalition, or of each pair's smaller complement."""
    sizes = masks.sum(axis=1)
    return np.asarray(np.minimum(sizes, masks.shape[1] - sizes) if paired else sizes)


def stratum_weights(masks: np.ndarray, *, paired: bool) -> np.ndarray:
    """Return C(d, s) / n_s for each row: the inverse sampling rate of its stratum, exactly 1 where all are enumerated."""
    d, sizes = masks.shape[1], sizes_of(masks, paired=paired)
    groups = strata(d, paired=paired)
    seen = np.bincount(sizes, minlength=d + 1)[groups.sizes]
    with np.errstate(divide="ignore"):
        rate = groups.counts / seen
    return rate[sizes - 1]


def row_weights(masks: np.ndarray, *, paired: bool) -> np.ndarray:
    """Return the kernel of each row times the inverse sampling rate of its stratum, which needs no number of coalitions."""
    d, inside, sizes = masks.shape[1], masks.sum(axis=1), sizes_of(masks, paired=paired)
    seen = np.bincount(sizes)[sizes] * np.where(paired & (2 * sizes == d), 2, 1)
    return np.asarray(d / (inside * (d - inside) * seen))


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
    prefixes = np.tri(d - 1, d, dtype=bool)  # one coalition of each size is enough by symmetry
    columns = unanimity_columns(prefixes, sets)
    columns = columns - columns.mean(axis=1, keepdims=True)
    scores = size_counts(d)[1:-1] * mu * np.einsum("sp,pq,sq->s", columns, inverse, columns)
    scores = scores / scores.sum()
    scores.setflags(write=False)
    return scores


@dataclass
class Draws:
    r"""Hold pairs of complements: those of small groups are listed, those of other sizes drawn with replacement.

    ``listed (n_listed, n_players)`` are all pairs of the sizes of which even draws would want as many as there are, one half of each.
    The other sizes (``is_drawn``, for sizes 0..d) are equally probable. A pair that is drawn again is not called again and counts
    again; draws go on until one of them is a pair too many, and that draw is left out:
    ``masks (n_draws, n_players)``, of which the first ``n_certain`` would be there however the draws fell.

    Means over these draws are unbiased: whatever their order, they end at the same place, so that given which they are, all orders are
    equally probable; their mean is the expectation of the first draw given all of them. So is the variance that they show divided by
    their number, for the same reason with the first two. If the draw that spends the last call were the last to count, new pairs
    would count too much.
    """

    n_players: int
    listed: np.ndarray = field(init=False)
    is_drawn: np.ndarray = field(init=False)
    masks: np.ndarray = field(init=False)
    n_certain: int = field(init=False, default=0)
    stream: np.ndarray = field(init=False)  # all draws so far, those beyond the budget included

    def __post_init__(self) -> None:
        self.listed = self.masks = self.stream = np.zeros((0, self.n_players), bool)
        self.is_drawn = np.ones(self.n_players + 1, bool)

    @property
    def complete(self) -> bool:
        """Say whether all pairs are listed."""
        return not self.is_drawn[1:-1].any()

    def grow(self, n_pairs: int, rng: np.random.Generator) -> None:
        """List and draw ``n_pairs`` pairs in all; earlier draws stay, except of sizes that are now listed."""
        groups = strata(self.n_players, paired=True)
        sizes = groups.sizes[shares_of(groups, n_pairs)[1]]
        # The empty piece in front keeps the shape where no size is listed
        self.listed = np.concatenate([self.listed[:0], *(_pairs_of(self.n_players, size) for size in sizes.tolist())])
        self.is_drawn = ~np.isin(np.arange(self.n_players + 1), [*sizes, *(self.n_players - sizes)])
        self.stream = self.stream[self.is_drawn[self.stream.sum(axis=1)]]
        self.n_certain = 0 if self.complete else n_pairs - len(self.listed)
        first = _first_places(_named(self.stream))
        while not self.complete and len(first) <= self.n_certain:
            # Growing blocks, as ever fewer of the next draws are new
            n_more = max(self.n_certain - len(first), len(self.stream) // 4, DRAWS_AT_ONCE)
            more = draw_independent(self.n_players, n_more, rng, self.is_drawn[1:-1])[0]
            self.stream = np.concatenate([self.stream, more])
            first = _first_places(_named(self.stream))
        # Up to the draw that brings one pair too many, and without it
        self.masks = self.stream[: 0 if self.complete else first[self.n_certain]]


def _pairs_of(n_players: int, size: int) -> np.ndarray:
    """Return one half of each pair of a size, the one that holds player 0 if both are of it."""
    masks = listed(n_players, size)
    return masks[: len(masks) // 2] if 2 * size == n_players else masks


def _first_places(masks: np.ndarray) -> np.ndarray:
    """Return the first position of each coalition, ascending."""
    names = np.packbits(masks, axis=1)
    return np.sort(np.unique(names.view(np.dtype((np.void, names.shape[1]))), return_index=True)[1])


def _named(masks: np.ndarray) -> np.ndarray:
    """Return each pair by its half that holds player 0."""
    return masks ^ ~masks[:, :1]

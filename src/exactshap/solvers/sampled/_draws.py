"""Independent draws of coalitions that make as many calls as they may, and stay unbiased."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from exactshap.solvers.sampled._counts import size_counts
from exactshap.solvers.sampled._sampling import draw_independent, listed, shares_of, strata

LEAST = 8  # draws at a time


@dataclass
class Draws:
    r"""Pairs of complements: those of small groups are listed, those of the other sizes drawn, with replacement.

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
        """Whether all pairs are listed."""
        return not self.is_drawn[1:-1].any()

    @property
    def probability(self) -> np.ndarray:
        """Probability of one drawn coalition of each size, times 2^e_s (see ``_counts``), of shape (n_players + 1,)."""
        return self.is_drawn / self.is_drawn[1:-1].sum() / size_counts(self.n_players)

    def grow(self, n_pairs: int, rng: np.random.Generator) -> None:
        """List and draw ``n_pairs`` pairs in all; what was drawn before stays, but for sizes that are now listed."""
        groups = strata(self.n_players, paired=True)
        sizes = groups.sizes[shares_of(groups, n_pairs)[1]]
        self.listed = np.concatenate([self.listed[:0], *(_pairs_of(self.n_players, size) for size in sizes.tolist())])
        self.is_drawn = ~np.isin(np.arange(self.n_players + 1), [*sizes, *(self.n_players - sizes)])
        self.stream = self.stream[self.is_drawn[self.stream.sum(axis=1)]]
        self.n_certain = 0 if self.complete else n_pairs - len(self.listed)
        first = _first_places(self.stream)
        while not self.complete and len(first) <= self.n_certain:
            n_more = max(self.n_certain - len(first), len(self.stream) // 4, LEAST)
            more = draw_independent(self.n_players, n_more, rng, self.is_drawn[1:-1])[0]
            self.stream = np.concatenate([self.stream, more])
            first = _first_places(self.stream)
        self.masks = self.stream[: 0 if self.complete else first[self.n_certain]]


def _pairs_of(n_players: int, size: int) -> np.ndarray:
    """Return one half of each pair of a size, the one that holds player 0 if both are of it."""
    masks = listed(n_players, size)
    return masks[: len(masks) // 2] if 2 * size == n_players else masks


def _first_places(masks: np.ndarray) -> np.ndarray:
    """Return where each pair comes up for the first time, ascending."""
    names = np.packbits(masks ^ ~masks[:, :1], axis=1)  # a pair by its half that holds player 0
    return np.sort(np.unique(names.view(np.dtype((np.void, names.shape[1]))), return_index=True)[1])

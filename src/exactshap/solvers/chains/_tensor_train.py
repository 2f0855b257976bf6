r"""Tensor trains: every player's derivative from one product on either side of it.

With every player present with probability t the expected value is a product of matrices of polynomials,

.. math:: V(t) = F_1(t) \cdots F_d(t), \quad F_j = t A_j + (1 - t) B_j, \qquad
          \phi_T = \int_0^1 F_1 \cdots (A_j - B_j) \cdots F_d\, \mathrm{d}\mu(t)

with A - B in the places of T: of degree d - \|T\| in t, so that Gauss rules are exact. Left products are row vectors that grow to the
right, right products are there for all places; a set of s players is met by following A - B at each of them. Products of matrices only:
nothing is divided or subtracted that is not a factor of the game.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from exactshap.games import TensorTrainGame
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Solution, player_sets, set_sizes

__all__ = ["chain_bytes", "solve_chain"]

BLOCK_VALUES = 2**20  # values of all matrices of a block: nodes times rows times background rows times ranks


def solve_chain(game: TensorTrainGame, semivalue: Semivalue, order: int) -> Solution:
    """Solve a chain for every set of 1..order players, exactly.

    Cost O(n_rows n_background n_nodes n_players rank^2) for order 1, times C(d, order) / d beyond.
    """
    d, n_rows = game.n_players, len(game.inside[0])
    sets = player_sets(d, order)
    number = {players: place for place, players in enumerate(sets)}
    values = np.zeros((n_rows, len(sets), game.n_outputs))
    ends = np.zeros((3, n_rows, game.n_outputs))
    n_nodes = max(len(semivalue.rule(size, order, degree=d - size)[0]) for size in set_sizes(order))
    pairs = max(1, int(BLOCK_VALUES / (n_nodes * _values_of_a_pair(game))))
    rows_at_once = max(1, pairs // game.n_background)
    for start, first in itertools.product(range(0, n_rows, rows_at_once), range(0, game.n_background, pairs)):
        rows, chosen = slice(start, start + rows_at_once), slice(first, first + pairs)
        block = _Block(game, rows, chosen)
        for size in set_sizes(order):
            block.add_sets(size, *semivalue.rule(size, order, degree=d - size), number, values[rows])
        ends[:, rows] += block.ends()
    part = Solution(
        values,
        ends[0],
        ends[1],
        "transfer matrices",
        error_bound=np.zeros(n_rows),
        scale=ends[2].max(axis=1),
        n_nodes=n_nodes,
    )
    return part.finish(
        d,
        semivalue,
        order,
        constant=game.constant,
        magnitude=np.abs(game.constant).max(),
        single_row=game.n_rows is None,
        single_output=game.single_output,
    )


def chain_bytes(game: TensorTrainGame) -> float:
    """Return the bytes of working memory."""
    pairs = max(1.0, (game.n_rows or 1) * game.n_background)
    return (
        8.0 * 4 * min(pairs * (game.n_players // 2 + 1) * _values_of_a_pair(game), max(BLOCK_VALUES, _values_of_a_pair(game)))
    )


def _values_of_a_pair(game: TensorTrainGame) -> float:
    return float(sum(core[0].size + core.shape[1] * game.n_outputs for core in game.inside))


class _Block:
    """Some rows and background rows; matrices are (n_nodes, n_rows, n_background, r, r')."""

    def __init__(self, game: TensorTrainGame, rows: slice, chosen: slice) -> None:
        self.inside = [core[rows][None, :, None] for core in game.inside]
        self.outside = [(core if len(core) == 1 else core[chosen])[None, None] for core in game.outside]
        self.steps = [one - other for one, other in zip(self.inside, self.outside, strict=True)]
        self.weights = game.weights[chosen]

    def add_sets(
        self, size: int, nodes: np.ndarray, node_weights: np.ndarray, number: dict[tuple[int, ...], int], out: np.ndarray
    ) -> None:
        """Add the values of all sets of one size to ``out (n_rows, n_sets, n_outputs)``."""
        t = nodes[:, None, None, None, None]
        self._joined = [t * one + (1.0 - t) * other for one, other in zip(self.inside, self.outside, strict=True)]
        self._right = _from_the_right(self._joined)
        self._shares, self._number, self._out = node_weights, number, out
        self._follow(np.ones((1, 1, 1, 1, 1)), 0, (), size)

    def _follow(self, left: np.ndarray, start: int, players: tuple[int, ...], missing: int) -> None:
        """Go on to the right from ``left``, the product up to ``start`` with A - B at ``players``."""
        for j in range(start, len(self.steps) - missing + 1):
            stepped = left @ self.steps[j]
            if missing == 1:
                self._out[:, self._number[(*players, j)]] += self._mean(stepped @ self._right[j + 1], self._shares)
            else:
                self._follow(stepped, j + 1, (*players, j), missing - 1)
            left = left @ self._joined[j]

    def _mean(self, chains: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return the sum over nodes and the mean over the background, (n_rows, n_outputs)."""
        shape = (len(shares), chains.shape[1], len(self.weights), 1, chains.shape[-1])
        chains = np.broadcast_to(chains, shape).transpose(1, 0, 2, 3, 4).reshape(shape[1], -1, shape[-1])
        return (np.outer(shares, self.weights).reshape(1, 1, -1) @ chains)[
            :, 0
        ]  # one product a row: the same bits in any company

    def ends(self) -> np.ndarray:
        """Return v(empty), v(D) and the sum of magnitudes, (3, n_rows, n_outputs)."""
        heights = [np.maximum(np.abs(one), np.abs(other)) for one, other in zip(self.inside, self.outside, strict=True)]
        n_rows = self.inside[0].shape[1]
        found = [self._mean(_from_the_right(cores)[0], np.ones(1)) for cores in (self.outside, self.inside, heights)]
        return np.stack([np.broadcast_to(one, (n_rows, one.shape[1])) for one in found])


def _from_the_right(cores: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the products of all matrices from each place on, ending with the identity."""
    products = [np.eye(cores[-1].shape[-1])[None, None, None]]
    for core in reversed(cores):
        products.append(core @ products[-1])
    return products[::-1]

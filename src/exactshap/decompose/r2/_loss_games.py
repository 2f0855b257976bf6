r"""The game of one boosted tree under any loss: exact by a table of its coalitions, or by the parabola nearest to the loss.

.. math:: v_k(S) = \sum_i w_i\, \ell\bigl(y_i, F_{k-1}(x_i) + f_{k,S}(x_i)\bigr)

**Tables.** :math:`f_{k,S}` depends on the players of tree k only: with few of them all their coalitions are visited.

**Parabolas.** :math:`f_{k,S}(x_i)` lies between the smallest and the largest leaf. The parabola through the loss at the three Chebyshev
points of that interval, of half width h, is off by at most :math:`\max |\ell'''|\, h^3 / 24` (Trefethen, Approximation Theory, chapter 4: the
node polynomial of three Chebyshev points is at most h^3 / 4), or as computed for a loss with a kink; a value of its game by at most twice
as much; and a parabola of :math:`f_{k,S}` is a squared error, whose game is that of R2.
"""

from __future__ import annotations

import numpy as np

from exactshap.decompose.r2._games import residual_rows_of, tree_decisions
from exactshap.decompose.r2._layout import EnsembleLayout
from exactshap.decompose.r2._losses import Loss
from exactshap.games import all_masks
from exactshap.semivalues import find
from exactshap.solvers.core import set_values

__all__ = ["TreeGame", "parabola_rows", "table_rows"]

TABLE_VALUES = 2**21  # values of a table of some rows and all coalitions
FLAT = 1e-10  # curvature of a parabola at least, relative to its slope over the interval


class TreeGame:
    """One tree over some rows: its players, its values on coalitions, its range."""

    def __init__(self, layout: EnsembleLayout, tree: int, owner: np.ndarray, shares: np.ndarray) -> None:
        trees = layout.trees
        self.nodes = slice(int(trees.tree_start[tree]), int(trees.tree_start[tree + 1]))
        self.trees, self.tree, self.layout, self.shares = trees, tree, layout, shares[self.nodes]
        feature = trees.feature[self.nodes]
        self.player_of_node = np.where(feature >= 0, owner[feature], -1)
        self.players = np.unique(self.player_of_node[feature >= 0])
        leaves = trees.value[self.nodes][feature < 0, 0]
        self.low, self.high = float(leaves.min()), float(leaves.max())

    def reached(self) -> np.ndarray:
        """Return the global number of the leaf (n_rows,) that each row comes to."""
        decided, trees = tree_decisions(self.layout, self.tree), self.trees
        at = np.full(len(decided), self.nodes.start)
        while (moving := np.flatnonzero(trees.feature[at] >= 0)).size:
            here = at[moving]
            at[moving] = np.where(decided[moving, here - self.nodes.start], trees.left[here], trees.right[here])
        return at

    def values(self, went_left: np.ndarray) -> np.ndarray:
        """Return f_S (n_rows, 2^n_players) from decisions (n_rows, n_nodes of the tree)."""
        inside = all_masks(len(self.players)).T  # (n_players, 2^n_players)
        return self._below(0, went_left, inside)

    def _below(self, node: int, went_left: np.ndarray, inside: np.ndarray) -> np.ndarray:
        start, trees = self.nodes.start, self.trees
        if trees.feature[start + node] < 0:
            return np.full((1, 1), trees.value[start + node, 0])
        left, right = (int(child[start + node]) - start for child in (trees.left, trees.right))
        below = [self._below(child, went_left, inside) for child in (left, right)]
        averaged = self.shares[left] * below[0] + self.shares[right] * below[1]
        followed = np.where(went_left[:, node, None], *below)
        known = inside[np.searchsorted(self.players, self.player_of_node[node])]
        return np.where(known[None], followed, averaged)


def table_rows(game: TreeGame, loss: Loss, y: np.ndarray, met: np.ndarray) -> np.ndarray:
    """Return each row's shares (n_rows, n_players of the tree) of the loss."""
    n, semivalue = len(game.players), find("shapley")
    shares = np.zeros((len(y), n))
    step, decided = max(1, TABLE_VALUES >> n), tree_decisions(game.layout, game.tree)
    for start in range(0, len(y), step):
        rows = slice(start, min(start + step, len(y)))
        f = np.broadcast_to(game.values(decided[rows]), (rows.stop - start, 2**n))
        table = loss.value(y[rows, None], met[rows, None] + f)[:, :, None]
        for j in range(n):
            shares[rows, j] = set_values(table, (j,), semivalue, 1, n)[:, 0]
    return shares


def parabola_rows(game: TreeGame, loss: Loss, y: np.ndarray, met: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's shares (n_rows, all players) of the parabola, and how far each value of its game is off (n_rows,)."""
    middle, half = (game.high + game.low) / 2.0, (game.high - game.low) / 2.0
    if half == 0.0:
        return np.zeros((len(y), game.layout.n_players)), np.zeros(len(y))
    points = half * np.cos(np.pi * np.array([1.0, 3.0, 5.0]) / 6.0)
    at = loss.value(y[:, None], met[:, None] + middle + points)
    slope = (at[:, 0] - at[:, 2]) / (points[0] - points[2])
    curvature = (at[:, 0] - 2.0 * at[:, 1] + at[:, 2]) / (2.0 * points[0] ** 2)
    flattest = FLAT * np.abs(slope) / half + np.finfo(float).tiny
    weight = np.where(np.abs(curvature) < flattest, flattest, curvature)  # a residual is slope over curvature
    shares = residual_rows_of(game.layout, game.tree, middle - slope / (2.0 * weight), weight)
    off = loss.missed(y, met + game.low, met + game.high) + np.abs(weight - curvature) * half**2
    return shares, off

r"""Product games of players in a tree: an integral for each level above a player.

.. math:: \phi_j = \sum_l c_l\, (a_{lj} - b_{lj}) \prod_{k=1}^m w_{lk}, \qquad
          w_{lk} = \int_0^1 \prod_{B \in \mathrm{siblings}_k} \bigl(t\, a_{lB} + (1 - t)\, b_{lB}\bigr)\, \mathrm{d}\mu(t)

In a random order that no branch breaks up, each sibling of j's branch at level k is there before it with probability t, all of it or
nothing, and different levels are independent. Where members have an order, :math:`w_{lk}` is the product of a over the earlier ones and
of b over the later ones. The integrand has one degree less than there are members: Gauss rules are exact.
"""

from __future__ import annotations

import itertools

import numpy as np

from exactshap.games import ProductGame
from exactshap.semivalues import Branch, Hierarchy
from exactshap.solvers.core import Solution

__all__ = ["solve_product_hierarchy"]

BLOCK_VALUES = 2**18  # values of one array: rows times background rows times terms

Factors = dict[Branch | int | str, tuple[np.ndarray, np.ndarray]]


def solve_product_hierarchy(game: ProductGame, hierarchy: Hierarchy) -> Solution:
    """Return the part of all rows, with all axes. Cost O(n_rows n_background n_terms n_players n_nodes)."""
    n_rows = game.a.shape[0]
    part = Solution.zeros(n_rows, game.n_players, game.n_outputs, method="quadrature over levels")
    values, scale = np.zeros_like(part.values), np.zeros(n_rows)
    empty, full = np.zeros_like(part.empty), np.zeros_like(part.full)
    step = max(1, BLOCK_VALUES // max(1, game.n_terms))
    rows_at_once = max(1, step // game.n_background)
    for rows, background in itertools.product(_slices(n_rows, rows_at_once), _slices(game.n_background, step)):
        sweep = _Sweep(game, hierarchy, rows, background)
        sweep.descend(hierarchy.tree, np.ones(()))
        values[rows] += sweep.values
        full[rows] += sweep.summed(game.a[rows].prod(axis=2)[:, None, :])
        empty[rows] += sweep.summed(game.b[background].prod(axis=2)[None])
        scale[rows] += sweep.heights()
    return Solution(values, empty, full, part.method, error_bound=np.zeros(n_rows), scale=scale)


def _slices(n: int, step: int) -> list[slice]:
    return [slice(start, start + step) for start in range(0, n, step)]


class _Sweep:
    """One block of rows and background rows; arrays are (n_rows, n_background, n_terms)."""

    def __init__(self, game: ProductGame, hierarchy: Hierarchy, rows: slice, background: slice) -> None:
        self.game, self.semivalue = game, hierarchy.semivalue
        self.a, self.b = game.a[rows][:, None], game.b[background][None]
        self.weights = game.weights[background]
        self.factors: Factors = {}
        self._multiply(hierarchy.tree)
        self.values = np.zeros((self.a.shape[0], game.n_players, game.n_outputs))

    def _multiply(self, member: Branch | int | str) -> tuple[np.ndarray, np.ndarray]:
        """Return a_B and b_B of a branch or player, and keep them."""
        if isinstance(member, Branch):
            inside, outside = zip(*map(self._multiply, member.members), strict=True)
            found = _product(inside), _product(outside)
        else:
            found = self.a[..., int(member)], self.b[..., int(member)]
        self.factors[member] = found
        return found

    def descend(self, tree: Branch, above: np.ndarray) -> None:
        """Multiply the weights of each level on the way down to the players."""
        factors = [self.factors[member] for member in tree.members]
        below = _ordered(factors) if tree.ordered else self._joining(factors)
        for member, weight in zip(tree.members, below, strict=True):
            if isinstance(member, Branch):
                self.descend(member, above * weight)
            else:
                inside, outside = self.factors[member]
                self.values[:, int(member)] = self.summed(above * weight * (inside - outside))

    def _joining(self, factors: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
        """Return w for members in random order, from products of those before and after at each node."""
        n = len(factors)
        total: list[np.ndarray] = [np.zeros(())] * n
        for t, weight in zip(*self.semivalue.rule(degree=n - 1), strict=True):
            joined = [t * inside + (1.0 - t) * outside for inside, outside in factors]
            before, after = [np.full((), weight)], [np.ones(())]
            for one, other in zip(joined[:-1], joined[:0:-1], strict=True):
                before.append(before[-1] * one)
                after.append(after[-1] * other)
            total = [found + left * right for found, left, right in zip(total, before, reversed(after), strict=True)]
        return total

    def summed(self, terms: np.ndarray) -> np.ndarray:
        """Return the sum over terms and the mean over the background, (n_rows, n_outputs)."""
        terms = np.broadcast_to(terms, (self.a.shape[0], len(self.weights), self.game.n_terms))
        one_by_one = [(self.weights @ row) @ self.game.c for row in terms]  # the same bits in any company
        return np.real(np.array(one_by_one))

    def heights(self) -> np.ndarray:
        """Return the sum of |c| times the largest magnitudes of all factors, (n_rows,)."""
        largest = np.maximum(np.abs(self.a), np.abs(self.b)).prod(axis=3)
        return np.array([self.weights @ row @ np.abs(self.game.c).max(axis=1) for row in largest])


def _product(arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    total = arrays[0]
    for array in arrays[1:]:
        total = total * array
    return total


def _ordered(factors: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Return w for members in their own order: earlier ones are inside, later ones outside."""
    before, after = [np.ones(())], [np.ones(())]
    for (inside, _), (_, outside) in zip(factors[:-1], factors[:0:-1], strict=True):
        before.append(before[-1] * inside)
        after.append(after[-1] * outside)
    return [left * right for left, right in zip(before, reversed(after), strict=True)]

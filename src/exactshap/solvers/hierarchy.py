r"""Solve games with players in nested groups or stages.

Product games have an integral for each level above a player:

.. math:: \phi_j = \sum_l c_l\, (a_{lj} - b_{lj}) \prod_{k=1}^m w_{lk}, \qquad
          w_{lk} = \int_0^1 \prod_{B \in \mathrm{siblings}_k} \bigl(t\, a_{lB} + (1 - t)\, b_{lB}\bigr)\, \mathrm{d}\mu(t)

In a random order that does not split branches, each sibling of j's branch at level k precedes it with probability t, as a whole,
and different levels are independent. Where members have an order, :math:`w_{lk}` is the product of a over the earlier ones and
of b over the later ones. The integrand has one degree less than there are members: Gauss rules are exact. Other games are evaluated
on the coalitions that the hierarchy admits, which are few for small groups.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from exactshap._runtime.slices import slices
from exactshap.errors import BudgetError, InputError, UnsupportedStructureError
from exactshap.games import AdditiveGame, Game, OracleGame, ProductGame, all_masks
from exactshap.semivalues import Branch, Hierarchy, Semivalue
from exactshap.solvers.core import Part, Solution

# By player: coalitions before it, masks (n, n_players), and their weights (n,)
Admitted = dict[int, tuple[np.ndarray, np.ndarray]]

# a and b of each branch, player or term
Factors = dict[Branch | int | str, tuple[np.ndarray, np.ndarray]]

# Values of one array: rows times background rows times terms.
BLOCK_VALUES = 2**18

# Coalitions of product and additive games, which need no calls.
MAX_COALITIONS = 2**16
# Calls of an oracle without a budget: as many as enumeration of 12 players takes.
MAX_CALLS = 2**12


def solve_hierarchy(
    game: Game, hierarchy: Hierarchy, order: int = 1, *, budget: int | None = None, method: str = "auto"
) -> Solution:
    r"""Solve a game for players in nested groups or stages, exactly. The order is 1.

    Product games by an integral for each level; additive games term by term, as players outside of a term do not count; other games by
    their values on all coalitions that the hierarchy admits: :math:`2^{n_1 + \dots + n_m}` for groups of sizes n along one path,
    instead of :math:`2^d`. "enumeration" visits the coalitions of any game: the reference implementation.

    >>> from exactshap.games import OracleGame
    >>> from exactshap.semivalues import owen
    >>> solve_hierarchy(OracleGame(lambda masks: masks.sum(axis=1) ** 2.0, 3), owen({"pair": [0, 1]})).values
    array([3., 3., 3.])
    """
    if order != 1:
        text = f"Index {hierarchy.name!r} has values for single players only"
        raise UnsupportedStructureError(text, f"Got order={order}", "Use order=1, or index='k-sii' for pairs")
    if method not in ("auto", "enumeration"):
        text = f"Index {hierarchy.name!r} has methods of its own"
        raise InputError(text, f"Got method={method!r}", "Use method='auto' or 'enumeration'")
    hierarchy = hierarchy.among([str(j) for j in range(game.n_players)])
    if method == "auto" and isinstance(game, ProductGame):
        return solve_product_hierarchy(game, hierarchy).finish_game(game, hierarchy, 1, constant=game.constant)
    if method == "auto" and isinstance(game, AdditiveGame):
        return _per_term(game, hierarchy).finish_game(game, hierarchy, 1, constant=game.constant)
    return _visited(game, hierarchy, budget)


def _visited(game: Game, hierarchy: Hierarchy, budget: int | None) -> Solution:
    """Solve any game by its values on the coalitions that the hierarchy admits."""
    d, needed = game.n_players, n_admitted(hierarchy.tree)
    limit = budget or (MAX_CALLS if isinstance(game, OracleGame) else MAX_COALITIONS)
    if needed > limit:
        # A budget of millions of calls is not worth suggesting
        do = f"Pass budget={needed:.0f}, make the groups smaller or nest them" if needed < 2**24 else "Nest the groups"
        text = f"Index {hierarchy.name!r} of {d} players needs up to {needed:.3g} coalitions of this game"
        raise BudgetError(text, f"The limit is {limit}", do)
    found = admitted(hierarchy.tree, hierarchy.semivalue, d)
    before = [found[j][0] for j in range(d)]
    joined = [masks | (np.arange(d) == j) for j, masks in enumerate(before)]
    every = [*before, *joined, np.array([[False] * d, [True] * d])]
    # Players share coalitions: each is evaluated once
    masks, where = np.unique(np.concatenate(every), axis=0, return_inverse=True)
    # NumPy 2.0.0 returns it as a column where there is an axis
    *places, (empty, full) = np.split(where.ravel(), np.cumsum([len(some) for some in every[:-1]]))
    table = np.asarray(game.value(masks), float).reshape((game.n_rows or 1, len(masks), -1))
    values = np.zeros((len(table), d, table.shape[2]))
    for j in range(d):
        values[:, j] = np.einsum("s,rsk->rk", found[j][1], table[:, places[d + j]] - table[:, places[j]])
    part = Part(
        values,
        table[:, empty],
        table[:, full],
        f"enumeration over levels ({len(masks)} coalitions)",
        error_bound=np.zeros(len(table)),
        scale=np.abs(table).max(axis=(1, 2)),
    )
    return part.finish_game(game, hierarchy, 1, n_evaluations=len(masks))


def _per_term(game: AdditiveGame, hierarchy: Hierarchy) -> Part:
    """Solve each term with the hierarchy of its own players. Other players are its dummies."""
    total = Part.zeros(game.n_rows or 1, game.n_players, game.n_outputs, method="per-term enumeration over levels")
    values, scale = total.values, total.scale
    empty, full = np.zeros_like(total.empty), np.zeros_like(total.full)
    # Terms of the same form share weights, which take 2^d numbers
    matrix = functools.cache(lambda tree, n: weights_of_all(tree, hierarchy.semivalue, n))
    for subset, table in zip(game.subsets, game.tables, strict=True):
        # Terms without players only add to v(empty) and v(D)
        if subset:
            # The term's players, numbered from 0, in their part of the tree
            kept = {player: place for place, player in enumerate(subset)}
            weights = matrix(_unnamed(hierarchy.tree.restricted(kept)), len(subset))
            values[:, list(subset)] += np.einsum("ps,rsk->rpk", weights, table)
        empty, full = empty + table[:, 0], full + table[:, -1]
        scale = scale + np.abs(table).max(axis=(1, 2), initial=0.0)
    return Part(values, empty, full, total.method, error_bound=total.error_bound, scale=scale)


def _unnamed(tree: Branch) -> Branch:
    """Return the tree without names, so that terms of one form share weights."""
    members = tuple(_unnamed(member) if isinstance(member, Branch) else member for member in tree.members)
    return Branch(members, tree.ordered)


def solve_product_hierarchy(game: ProductGame, hierarchy: Hierarchy) -> Part:
    """Return the part of all rows, with all axes. Cost O(n_rows n_background n_terms n_players n_nodes)."""
    n_rows = game.a.shape[0]
    part = Part.zeros(n_rows, game.n_players, game.n_outputs, method="quadrature over levels")
    values, scale = np.zeros_like(part.values), np.zeros(n_rows)
    empty, full = np.zeros_like(part.empty), np.zeros_like(part.full)
    # Background rows first; where they leave room, several rows go together
    step = max(1, BLOCK_VALUES // max(1, game.n_terms))
    rows_at_once = max(1, step // game.n_background)
    for rows, background in itertools.product(slices(n_rows, rows_at_once), slices(game.n_background, step)):
        sweep = _Sweep(game, hierarchy, rows, background)
        sweep.descend(hierarchy.tree, np.ones(()))
        values[rows] += sweep.values
        full[rows] += sweep.summed(game.a[rows].prod(axis=2)[:, None, :])
        empty[rows] += sweep.summed(game.b[background].prod(axis=2)[None])
        scale[rows] += sweep.heights()
    return Part(values, empty, full, part.method, error_bound=np.zeros(n_rows), scale=scale)


class _Sweep:
    """Solve one block of rows and background rows; arrays are (n_rows, n_background, n_terms)."""

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
            found = functools.reduce(np.multiply, inside), functools.reduce(np.multiply, outside)
        else:
            found = self.a[..., int(member)], self.b[..., int(member)]
        self.factors[member] = found
        return found

    def descend(self, tree: Branch, above: np.ndarray) -> None:
        """Multiply the weights of each level down to the players."""
        factors = [self.factors[member] for member in tree.members]
        # In a fixed order, earlier members are inside and later ones outside
        earlier, later = zip(*factors, strict=True)
        below = products_of_others(earlier, later) if tree.ordered else self._joining(factors)
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
        # The integrand is a product over the n - 1 siblings: a rule of degree n - 1 is exact
        for t, weight in zip(*self.semivalue.rule(degree=n - 1), strict=True):
            joined = [t * inside + (1.0 - t) * outside for inside, outside in factors]
            others = products_of_others(joined, joined, weight)
            total = [value + one for value, one in zip(total, others, strict=True)]
        return total

    def summed(self, terms: np.ndarray) -> np.ndarray:
        """Return the sum over terms and background mean, (n_rows, n_outputs)."""
        terms = np.broadcast_to(terms, (self.a.shape[0], len(self.weights), self.game.n_terms))
        # So that the bits of a row do not depend on the others
        by_row = [(self.weights @ row) @ self.game.c for row in terms]
        # Factors may be complex (random Fourier features): the game is the real part of the sum
        return np.real(np.array(by_row))

    def heights(self) -> np.ndarray:
        """Return the sum of |c| times the factors' largest magnitudes, (n_rows,)."""
        largest = np.maximum(np.abs(self.a), np.abs(self.b)).prod(axis=3)
        return np.array([self.weights @ row @ np.abs(self.game.c).max(axis=1) for row in largest])


def products_of_others(
    before: Sequence[np.ndarray], after: Sequence[np.ndarray], weight: float | np.ndarray = 1.0
) -> list[np.ndarray]:
    """Return the weighted products of the factors before and after each place.

    Two passes without division, as a factor may be zero.

    >>> [float(product) for product in products_of_others([2.0, 3.0, 0.0], [5.0, 7.0, 11.0])]
    [77.0, 22.0, 6.0]
    """
    left, right = [np.asarray(weight)], [np.ones(())]
    for one, other in zip(before[:-1], after[:0:-1], strict=True):
        left.append(left[-1] * one)
        right.append(right[-1] * other)
    return [first * last for first, last in zip(left, reversed(right), strict=True)]


def weights_of_all(tree: Branch, semivalue: Semivalue, n_players: int) -> np.ndarray:
    """Return the weights (n_players, 2^d) of all coalitions; values are this matrix times the table of v."""
    found = np.zeros((n_players, 2**n_players))
    for j, (masks, weights) in admitted(tree, semivalue, n_players).items():
        codes = masks @ (1 << np.arange(n_players))
        # ``add.at``, as the same coalition can occur several times
        np.add.at(found[j], codes | (1 << j), weights)
        np.add.at(found[j], codes, -weights)
    return found


def admitted(tree: Branch, semivalue: Semivalue, n_players: int) -> Admitted:
    """Return the coalitions that can precede each player, with weights."""
    found: Admitted = {}
    _descend(tree, semivalue, np.zeros((1, n_players), bool), np.ones(1), found)
    return found


def n_admitted(tree: Branch) -> float:
    """Bound the number of distinct coalitions."""
    n = len(tree.members)
    # A member follows one set of earlier ones in a fixed order, else any set of its n - 1 siblings
    ways = float(n) if tree.ordered else 2.0 ** (n - 1)
    inner = [member for member in tree.members if isinstance(member, Branch)]
    # The players of one branch share coalitions: 2^n in all
    own = (n + 1.0 if tree.ordered else 2.0**n) if len(inner) < n else 0.0
    each = 1.0 if tree.ordered else ways
    return own + each * sum(n_admitted(member) for member in inner)


def _descend(tree: Branch, semivalue: Semivalue, before: np.ndarray, weights: np.ndarray, found: Admitted) -> None:
    """Add the siblings that can precede each member, and recurse."""
    blocks = np.zeros((len(tree.members), before.shape[1]), bool)
    for block, member in zip(blocks, tree.members, strict=True):
        block[list(member.players()) if isinstance(member, Branch) else [member]] = True  # type: ignore[index]
    for place, member in enumerate(tree.members):
        if tree.ordered:
            # In a fixed order exactly the earlier members are there
            chosen, share = blocks[:place].any(axis=0).reshape(1, -1), np.ones(1)
        else:
            subsets = all_masks(len(blocks) - 1)
            # Every subset of the siblings, each of them with all of its players or with none
            chosen = subsets.astype(np.int64) @ np.delete(blocks, place, axis=0).astype(np.int64) > 0
            share = semivalue.weights(len(blocks))[subsets.sum(axis=1)]
        # Levels are independent, so that coalitions join and weights multiply
        masks = (before[:, None] | chosen).reshape(-1, before.shape[1])
        product = np.outer(weights, share).ravel()
        if isinstance(member, Branch):
            _descend(member, semivalue, masks, product, found)
        else:
            found[int(member)] = masks, product

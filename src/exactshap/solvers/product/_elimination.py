r"""Games that are a product of factors on few players each, solved by variable elimination.

.. math:: v(S) = \sum_z w_z\, \mathrm{Re} \sum_l c_l \prod_f e^{r_l s_{fz}(S \cap I_f)}

Each player has two states. With players in S with probability t, the expected value is the sum over all states of the factors
times t or 1 - t: players are eliminated one by one, and a second pass backwards gives every player its derivative

.. math:: \phi_j = \int_0^1 \bigl(Z_j^{1}(t) - Z_j^{0}(t)\bigr)\, d\mu(t),

where Z_j^s is the sum over the states of the others with j in state s. A set T takes the signs of its derivative as weights of
all its players but the last. The cost of a pass is 2^(width + 1) for each player, with the width of the graph of factors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part, player_sets, set_sizes

__all__ = ["Elimination", "eliminate", "solve_factors"]

BATCH_VALUES = 2**16  # of one table of all states: 1 MiB, what stays in a core's caches


@dataclass(frozen=True)
class Elimination:
    """An order of players, and what is next to each when it is eliminated.

    Attributes
    ----------
    order : tuple of int
    cliques : tuple of tuples of int
        The player itself and its neighbours then, ascending.
    parent : tuple of int
        The place in ``order`` of the clique that takes the message; -1 for the last.
    home : tuple of int
        Of each factor the place of the clique that it belongs to.
    width : int
        The size of the largest clique less one.
    """

    order: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    parent: tuple[int, ...]
    home: tuple[int, ...]
    width: int


def eliminate(n_players: int, factors: Sequence[Sequence[int]]) -> Elimination:
    """Return an order that adds few edges: the player with the fewest missing edges among its neighbours comes next.

    Examples
    --------
    >>> eliminate(4, [(0, 1), (1, 2), (2, 3)]).width
    1
    """
    near: list[set[int]] = [set() for _ in range(n_players)]
    for members in factors:
        for one in members:
            near[one] |= set(members) - {one}

    def missing(player: int) -> tuple[int, int, int]:
        pairs = itertools.combinations(near[player], 2)
        return sum(b not in near[a] for a, b in pairs), len(near[player]), player

    left, order, cliques = set(range(n_players)), [], []
    while left:
        player = min(left, key=missing)
        for one in near[player]:
            near[one] |= near[player] - {one}
            near[one].discard(player)
        order.append(player)
        cliques.append(tuple(sorted({player, *near[player]})))
        left.remove(player)
    place = {player: k for k, player in enumerate(order)}
    later = [min((place[p] for p in clique if place[p] > k), default=n_players - 1) for k, clique in enumerate(cliques)]
    parent = tuple(-1 if k == n_players - 1 else later[k] for k in range(n_players))
    home = tuple(min((place[p] for p in members), default=0) for members in factors)
    return Elimination(tuple(order), tuple(cliques), parent, home, max(map(len, cliques), default=1) - 1)


def solve_factors(
    n_players: int,
    factors: Sequence[tuple[tuple[int, ...], np.ndarray]],
    rates: np.ndarray,
    coefficients: np.ndarray,
    weights: np.ndarray,
    semivalue: Semivalue,
    order: int,
) -> Part:
    """Return the values (1, n_sets, 1) of one row, as a part without a constant.

    Parameters
    ----------
    n_players : int
    factors : sequence of (players, table)
        Players ascending; ``table (n_background, 2^k)`` holds s, bit p of a column is the p-th player.
    rates, coefficients : arrays of shape (n_terms,)
        r and c.
    weights : array of shape (n_background,)
    semivalue, order
        As in :func:`exactshap.solvers.solve`.
    """
    plan = eliminate(n_players, [members for members, _ in factors])
    n_background, step = len(weights), max(1, BATCH_VALUES // (len(rates) * 2 ** (plan.width + 1)))
    values, ends, scale = np.zeros(len(player_sets(n_players, order))), np.zeros(2), 0.0
    for start in range(0, n_background, step):
        part = slice(start, start + step)
        tables = [np.exp(np.multiply.outer(table[part].T, rates)).reshape(len(table.T), -1) for _, table in factors]
        mass = np.multiply.outer(weights[part], coefficients).ravel()
        graph = _Graph(plan, _cliques(plan, factors, tables), mass)
        values += graph.values(n_players, semivalue, order)
        for k, code in enumerate((0, -1)):
            ends[k] += float(np.real(np.sum(math.prod((table[code] for table in tables), start=mass))))
        sizes = (np.abs(table).max(axis=0) for table in tables)
        scale += float(np.sum(math.prod(sizes, start=np.abs(mass))))
    one = np.full(1, scale)
    return Part(
        values[None, :, None], ends[None, :1], ends[None, 1:], "variable elimination", error_bound=np.zeros(1), scale=one
    )


def _cliques(
    plan: Elimination, factors: Sequence[tuple[tuple[int, ...], np.ndarray]], tables: Sequence[np.ndarray]
) -> list[np.ndarray | None]:
    """Return the product of the factors of each clique, with an axis of two states, or of one, for each of its players."""
    products: list[np.ndarray | None] = [None] * len(plan.order)
    for (members, _), table, home in zip(factors, tables, plan.home, strict=True):
        # the first player is the lowest bit, hence the last axis of states
        states = table.reshape(*[2] * len(members), -1).transpose(*range(len(members) - 1, -1, -1), len(members))
        shaped = states.reshape(*[2 if p in members else 1 for p in plan.cliques[home]], -1)
        known = products[home]
        products[home] = shaped if known is None else known * shaped
    return products


@dataclass(frozen=True, eq=False)
class _Graph:
    """Cliques of factors over a batch of terms and background rows."""

    plan: Elimination
    factors: list[np.ndarray | None]
    mass: np.ndarray

    def values(self, n_players: int, semivalue: Semivalue, order: int) -> np.ndarray:
        """Return the value of every set."""
        found: list[np.ndarray] = []
        for size in set_sizes(order):
            nodes, node_weights = semivalue.of_size(size, order).rule(max(n_players - size, 0))
            for fixed in itertools.combinations(range(n_players), size - 1):
                rest = max(fixed, default=-1) + 1
                total = np.zeros(n_players)
                for t, weight in zip(nodes, node_weights, strict=True):
                    if rest < n_players:
                        total += weight * self.derivatives(float(t), fixed)
                found.append(total[rest:])
        return np.concatenate(found)

    def derivatives(self, t: float, fixed: tuple[int, ...]) -> np.ndarray:
        """Return Z^1 - Z^0 of every player, others in with probability t, ``fixed`` ones with the signs of a derivative."""
        plan, n = self.plan, len(self.plan.order)
        weights = [np.array([-1.0, 1.0]) if p in fixed else np.array([1.0 - t, t]) for p in range(n)]
        messages: list[list[np.ndarray]] = [[] for _ in range(n)]  # of the children, aligned with their parent
        children: list[list[int]] = [[] for _ in range(n)]
        products: list[np.ndarray] = []
        for k, clique in enumerate(plan.cliques):
            own = self.factors[k]
            products.append(math.prod(messages[k], start=np.ones([1] * (len(clique) + 1)) if own is None else own))
            if plan.parent[k] >= 0:
                up = _weighted(products[k], weights[plan.order[k]], clique.index(plan.order[k]))
                members = tuple(p for p in clique if p != plan.order[k])
                children[plan.parent[k]].append(k)
                messages[plan.parent[k]].append(_aligned(up, members, plan.cliques[plan.parent[k]]))
        down: list[np.ndarray | None] = [None] * n
        result = np.zeros(n)
        for k in range(n - 1, -1, -1):
            clique, own_player = plan.cliques[k], plan.order[k]
            axis = clique.index(own_player)
            above = down[k]  # over the neighbours, weighted with everything outside the clique but their own weights
            whole = products[k] if above is None else products[k] * above
            for other, p in enumerate(clique):
                if p != own_player:
                    whole = _weighted(whole, weights[p], other, keep=True)
            if whole.shape[axis] == 2:
                off, on = whole.reshape(2, -1)
                result[own_player] = float(
                    np.real(np.dot(self.mass, on - off) if len(on) > 1 else self.mass.sum() * (on - off)[0])
                )
            self._pass_down(k, children[k], messages[k], above, weights, down)
        return result

    def _pass_down(
        self,
        k: int,
        children: list[int],
        messages: list[np.ndarray],
        above: np.ndarray | None,
        weights: list[np.ndarray],
        down: list[np.ndarray | None],
    ) -> None:
        """Set what lies outside each child: the clique's own factor, what is above, and the messages of the other children."""
        clique, own = self.plan.cliques[k], self.factors[k]
        before = np.ones([1] * (len(clique) + 1)) if own is None else own
        before = before if above is None else before * above
        # products of the messages behind each child, so that a clique of many children costs two products for each
        after = list(itertools.accumulate(reversed(messages[1:]), np.multiply))[::-1]
        for place, c in enumerate(children):
            table = before * after[place] if place < len(after) else before
            for axis, p in enumerate(clique):
                if p not in self.plan.cliques[c]:
                    table = _weighted(table, weights[p], axis, keep=True)
            down[c] = _aligned(table, clique, self.plan.cliques[c])
            if place < len(after):
                before = before * messages[place]


def _weighted(table: np.ndarray, weights: np.ndarray, axis: int, *, keep: bool = False) -> np.ndarray:
    """Return the sum over the two states of a player; a table that does not depend on it has an axis of one."""
    if table.shape[axis] == 1:
        total = table * weights.sum()
        return total if keep else np.squeeze(total, axis)
    off, on = (table[(slice(None),) * axis + (slice(state, state + 1),)] for state in (0, 1))
    total = weights[0] * off + weights[1] * on
    return total if keep else np.squeeze(total, axis)


def _aligned(table: np.ndarray, members: Sequence[int], clique: Sequence[int]) -> np.ndarray:
    """Return a table on ascending ``members`` with axes for a clique's players: of length one for those that it does not have."""
    shape = dict(zip(members, table.shape[:-1], strict=True))
    dropped = [shape[p] for p in members if p not in clique]
    assert all(size == 1 for size in dropped)
    return table.reshape(*[shape.get(p, 1) for p in clique], table.shape[-1])

r"""Solve games that are products of factors on few players each, by variable elimination.

.. math:: v(S) = \sum_z w_z\, \mathrm{Re} \sum_l c_l \prod_f e^{r_l s_{fz}(S \cap I_f)}

Each player has two states. If players are in S with probability t, the expected value is the sum over all states of the factors
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
from typing import NamedTuple

import numpy as np

from exactshap._native import kernel
from exactshap._runtime.slices import slices
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part, count_sets, set_sizes

fill_elimination = kernel("product.fill_elimination(real, imaginary, mass, plan, weights, separator, rest, node_weights, out)")

BATCH_VALUES = 2**17  # numbers in the tables of all cliques at a time: 2 MiB


@dataclass(frozen=True)
class Elimination:
    """Hold an order of players, and the neighbours of each when it is eliminated."""

    order: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]  # the player itself and its neighbours then, ascending
    parent: tuple[int, ...]  # the place in ``order`` of the clique that takes the message; -1 for the last
    home: tuple[int, ...]  # the place of each factor's clique
    width: int  # the size of the largest clique minus one


def eliminate(n_players: int, factors: Sequence[Sequence[int]]) -> Elimination:
    """Return an order that adds few edges: next is the player with the fewest missing edges among its neighbours.

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
            # Summing a player out leaves one factor on its neighbours, which become neighbours of each other
            near[one] |= near[player] - {one}
            near[one].discard(player)
        order.append(player)
        cliques.append(tuple(sorted({player, *near[player]})))
        left.remove(player)
    place = {player: k for k, player in enumerate(order)}
    # A clique sends its message to that of its member eliminated next; without other members it is a number,
    # which the last clique takes
    later = [min((place[p] for p in clique if place[p] > k), default=n_players - 1) for k, clique in enumerate(cliques)]
    parent = tuple(-1 if k == n_players - 1 else later[k] for k in range(n_players))
    # A factor belongs to its first member's clique, which includes the others, as they are neighbours
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
    """Return the values (1, n_sets, 1) of one row, without a constant.

    A factor has its players, ascending, and a ``table (n_background, 2^k)`` of s: bit p of a column is the p-th player. ``rates`` and
    ``coefficients`` (n_terms,) are r and c.
    """
    plan = eliminate(n_players, [members for members, _ in factors])
    arrays = _plan_arrays(plan)
    step = BATCH_VALUES // (len(rates) * int(arrays.plan.start[-1]))
    values, ends, scale = np.zeros(count_sets(n_players, order)), np.zeros(2), 0.0
    for part in slices(len(weights), step):
        waves = [_waves(table[part].T, rates) for _, table in factors]
        mass = np.multiply.outer(weights[part], coefficients).ravel()
        for k, code in enumerate((0, -1)):
            ends[k] += float(np.real(np.sum(math.prod((wave[code] for wave in waves), start=mass))))
        sizes = (np.abs(wave).max(axis=0) for wave in waves)
        scale += float(np.sum(math.prod(sizes, start=np.abs(mass))))
        tables = _cliques(plan, [members for members, _ in factors], waves)
        values += _values(arrays, tables, mass, n_players, semivalue, order)
    one = np.full(1, scale)
    return Part(
        values[None, :, None], ends[None, :1], ends[None, 1:], "variable elimination", error_bound=np.zeros(1), scale=one
    )


def _waves(scores: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return exp(r s) of shape (n_states, n_elements): real and imaginary parts alone are much faster than a complex exponential."""
    found = np.zeros((*scores.shape, len(rates)), complex)
    if np.any(rates.imag):
        angle = np.multiply.outer(scores, rates.imag)
        np.cos(angle, out=found.real)
        np.sin(angle, out=found.imag)
    else:
        found.real = 1.0
    if np.any(rates.real):
        found *= np.exp(np.multiply.outer(scores, rates.real))
    return found.reshape(len(scores), -1)


def _cliques(plan: Elimination, members: Sequence[tuple[int, ...]], waves: Sequence[np.ndarray]) -> np.ndarray:
    """Return the products (n_states, n_elements) of each clique's factors. States have the order of their numbers."""
    starts = np.cumsum([0, *(2 ** len(clique) for clique in plan.cliques)])
    products = np.ones((starts[-1], waves[0].shape[1] if waves else 1), complex)
    for players, wave, home in zip(members, waves, plan.home, strict=True):
        places = [plan.cliques[home].index(p) for p in players]
        states = np.arange(2 ** len(plan.cliques[home]))
        products[starts[home] : starts[home + 1]] *= wave[_moved(states, places, range(len(places)))]
    return products


def _moved(states: np.ndarray, places: Sequence[int], to: Sequence[int]) -> np.ndarray:
    """Return the numbers of states with only the bits at ``places``, moved to ``to``."""
    found = np.zeros_like(states)
    for place, new in zip(places, to, strict=True):
        found |= ((states >> place) & 1) << new
    return found


class _PlanArrays(NamedTuple):
    """Hold an elimination as the kernel reads it (src/native/product/elimination.cpp)."""

    size: np.ndarray
    own: np.ndarray
    player: np.ndarray
    parent: np.ndarray
    start: np.ndarray
    places: np.ndarray
    onto: np.ndarray


class _Arrays(NamedTuple):
    """Hold the same, with players and the places of those with weights in each state: of separators, and of parents' other players."""

    plan: _PlanArrays
    separators: Sequence[tuple[tuple[int, ...], Sequence[int]]]
    rests: Sequence[tuple[tuple[int, ...], Sequence[int]]]


def _plan_arrays(plan: Elimination) -> _Arrays:
    sizes = np.array([len(clique) for clique in plan.cliques])
    separators = [tuple(p for p in clique if p != own) for clique, own in zip(plan.cliques, plan.order, strict=True)]
    rests: list[tuple[tuple[int, ...], Sequence[int]]] = []
    onto, places = [np.zeros(0, int)], [0]
    for separator, parent in zip(separators, plan.parent, strict=True):
        if parent >= 0:
            above = plan.cliques[parent]
            onto.append(_moved(np.arange(2 ** len(above)), [above.index(p) for p in separator], range(len(separator))))
            rests.append((above, [place for place, p in enumerate(above) if p not in separator]))
        places.append(sum(map(len, onto)))
    own = [clique.index(p) for clique, p in zip(plan.cliques, plan.order, strict=True)]
    lists = (sizes, own, plan.order, plan.parent, np.cumsum([0, *(2**sizes)]), places, np.concatenate(onto))
    of_all = [(players, range(len(players))) for players in separators]
    return _Arrays(_PlanArrays(*(np.array(one, np.int64) for one in lists)), of_all, rests)


def _values(
    arrays: _Arrays, tables: np.ndarray, mass: np.ndarray, n_players: int, semivalue: Semivalue, order: int
) -> np.ndarray:
    """Return the value of every set."""
    real, imaginary = np.ascontiguousarray(tables.real), np.ascontiguousarray(tables.imag)
    if real.shape[1] != len(mass):  # no factors
        real, imaginary = (np.repeat(one, len(mass), axis=1) for one in (real, imaginary))
    masses = np.stack([mass.real, mass.imag])
    found: list[np.ndarray] = []
    for size in set_sizes(order):
        nodes, node_weights = semivalue.of_size(size, order).rule(max(n_players - size, 0))
        for fixed in itertools.combinations(range(n_players), size - 1):
            out, rest = np.zeros(n_players), max(fixed, default=-1) + 1
            if rest < n_players:
                weights = np.empty((len(nodes), 2, n_players))
                weights[:, 0], weights[:, 1] = 1.0 - nodes[:, None], nodes[:, None]
                # v(with) - v(without) of each fixed player: weights 1 and -1 of its two states
                weights[:, 0, list(fixed)], weights[:, 1, list(fixed)] = -1.0, 1.0
                by_state = (_state_weights(weights, parts) for parts in (arrays.separators, arrays.rests))
                fill_elimination(real, imaginary, masses, arrays.plan, weights, *by_state, np.array(node_weights, float), out)
            # A set occurs once, with its last player, hence in lexicographic order
            found.append(out[rest:])
    return np.concatenate(found)


def _state_weights(weights: np.ndarray, parts: Sequence[tuple[tuple[int, ...], Sequence[int]]]) -> np.ndarray:
    """Return products of the weights of the players at some places. They are for all states of each part's players."""
    found = [np.zeros((len(weights), 0))]
    for players, places in parts:
        states = np.arange(2 ** len(players))
        product = np.ones((len(weights), len(states)))
        for place in places:
            product *= weights[:, (states >> place) & 1, players[place]]
        found.append(product)
    return np.concatenate(found, axis=1)

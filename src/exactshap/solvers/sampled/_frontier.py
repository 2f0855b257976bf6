r"""Choose interaction frontiers, the sets that a polynomial models, and build its columns.

Two bases span the same games. Unanimity columns :math:`\prod_{j \in T} [j \in S]` take any frontier. For paired coalitions and all
sets up to order k, odd characters :math:`\chi_T(S) = \prod_{j \in T} (2 [j \in S] - 1)`, ``|T|`` odd, give the same values with
half the rows and fewer columns, since Shapley values see the odd half of a game only: that is Theorem 5.1 of PolySHAP (paired
order 1 equals order 2) and its extension to orders 3 and 4.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from exactshap.errors import BudgetError, InputError, InputTypeError

Sets = tuple[tuple[int, ...], ...]
MAX_COLUMNS = 20_000


@functools.lru_cache(maxsize=8)
def additive_frontier(n_players: int, order: int, *, odd: bool = False) -> Sets:
    """Return all sets of 1..order players (of odd sizes only), by size and then lexicographically."""
    sizes = range(1, min(order, n_players) + 1, 2 if odd else 1)
    count = sum(math.comb(n_players, size) for size in sizes)
    if count > MAX_COLUMNS:
        raise BudgetError(
            f"A polynomial of order {order} in {n_players} players is out of reach",
            f"It has {count:.3g} terms; the limit is {MAX_COLUMNS}",
            "Lower polynomial_order=, or pass a smaller frontier=",
        )
    return tuple(itertools.chain.from_iterable(itertools.combinations(range(n_players), size) for size in sizes))


def partial_frontier(n_players: int, n_terms: int, rng: np.random.Generator) -> Sets:
    """Return the singletons and then interactions by size, lexicographic in a random order of the players: ``n_terms`` in all."""
    label = rng.permutation(n_players)
    sets: list[tuple[int, ...]] = [(j,) for j in range(n_players)]
    for size in range(2, n_players + 1):
        for players in itertools.combinations(range(n_players), size):
            if len(sets) >= n_terms:
                return tuple(sets)
            sets.append(tuple(sorted(int(label[p]) for p in players)))
    return tuple(sets)


def known_sets(frontier: Any, n_players: int, order: int) -> Iterable[Sequence[int]]:
    """Return the interactions of a structure with players as columns; sets of players are returned unchanged.

    A graph: its edges (an object with ``edges``, or a matrix (n_players, n_players) with nonzero entries for edges). An EBM: its
    terms (``term_features_``). A fitted tree model: all sets of at most ``order`` columns that share a path.
    """
    if hasattr(frontier, "term_features_"):
        # Single players are columns of every polynomial
        return [tuple(term) for term in frontier.term_features_ if len(term) > 1]
    if hasattr(frontier, "edges"):
        return sorted({tuple(sorted(edge[:2])) for edge in frontier.edges})
    if hasattr(frontier, "predict"):
        return _path_sets(frontier, order)
    if isinstance(frontier, np.ndarray) and frontier.shape == (n_players, n_players):
        linked = (frontier != 0) | (frontier.T != 0)
        return [tuple(edge) for edge in np.argwhere(np.triu(linked, 1)).tolist()]
    if isinstance(frontier, Iterable):
        return frontier
    raise InputTypeError(
        "The 'frontier' parameter must be sets of players, their number, a graph, an EBM or a tree model",
        f"Got {type(frontier).__name__}",
        "Pass e.g. frontier=[(0, 1), (2, 3)]",
    )


def _path_sets(model: Any, order: int) -> Sets:
    """Return the sets of 2..order columns that some root-to-leaf path splits on, or its leaf multiplies."""
    from exactshap.trees import convert

    trees = convert(model).trees
    above: dict[int, frozenset[int]] = {}
    paths: set[frozenset[int]] = set()
    linear = trees.linear
    for node, (left, right, feature) in enumerate(zip(trees.left, trees.right, trees.feature, strict=True)):
        path = above.pop(node, frozenset())  # parents come before their children
        if left < 0:
            paths.add(path)
            columns = linear.column[linear.start[node] : linear.start[node + 1]].tolist() if linear is not None else []
            paths.update(path | {column} for column in columns)
        else:
            above[int(left)] = above[int(right)] = path | {int(feature)}
    sets = {players for path in paths for size in range(2, order + 1) for players in itertools.combinations(sorted(path), size)}
    return tuple(sorted(sets, key=lambda players: (len(players), players)))


def check_frontier(frontier: Iterable[Sequence[int]], n_players: int) -> Sets:
    """Return the user's sets with all singletons in front; refuse unknown or repeated players and repeated sets."""
    sets: list[tuple[int, ...]] = [(j,) for j in range(n_players)]
    for members in frontier:
        players = tuple(sorted(int(j) for j in members))
        if not players or len(set(players)) < len(players) or not 0 <= players[0] <= players[-1] < n_players:
            raise InputError(
                f"Each set of `frontier` must hold distinct players within 0..{n_players - 1}", f"Got {tuple(members)}"
            )
        if len(players) > 1:
            sets.append(players)
    repeated = [players for players, times in Counter(sets).items() if times > 1]
    if len(sets) > MAX_COLUMNS:
        raise BudgetError(
            f"A frontier of {len(sets)} terms is out of reach", f"The limit is {MAX_COLUMNS}", "Pass fewer or smaller sets"
        )
    if repeated:
        raise InputError("Each set of `frontier` may be named once", f"Got {repeated[0]} twice")
    return tuple(sets)


def set_products(rows: np.ndarray, sets: Sets) -> np.ndarray:
    """Return the product over each set of columns, for every row, of shape (n_rows, n_sets), in the type of ``rows``."""
    columns, products, start = np.ascontiguousarray(rows.T), np.empty((len(sets), len(rows)), rows.dtype), 0
    # Sets of one size are a rectangular index, so that one product is enough
    for _, group in itertools.groupby(sets, len):
        members = np.array(list(group))
        products[start : start + len(members)] = columns[members].prod(axis=1)
        start += len(members)
    return products.T


def unanimity_columns(masks: np.ndarray, sets: Sets) -> np.ndarray:
    """Return the product of memberships for every coalition and set, of shape (n_masks, n_sets)."""
    return set_products(masks.astype(float), sets)


def character_columns(masks: np.ndarray, sets: Sets) -> np.ndarray:
    """Return the product of -1 (outside) and 1 (inside) for every coalition and set, of shape (n_masks, n_sets)."""
    return set_products(2.0 * masks - 1.0, sets)

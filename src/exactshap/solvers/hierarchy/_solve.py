"""Values of players in a tree, for each kind of game."""

from __future__ import annotations

import functools

import numpy as np

from exactshap.errors import BudgetError, InputError, UnsupportedStructureError, message
from exactshap.games import AdditiveGame, Game, OracleGame, ProductGame
from exactshap.semivalues import Branch, Hierarchy
from exactshap.solvers.core import Solution
from exactshap.solvers.hierarchy._coalitions import admitted, n_admitted
from exactshap.solvers.hierarchy._product import solve_product_hierarchy

__all__ = ["solve_hierarchy"]

MAX_COALITIONS = 2**16  # of games whose values are ours to compute
MAX_CALLS = 2**12  # of an oracle without a budget: as many as enumeration of 12 players takes


def solve_hierarchy(
    game: Game, hierarchy: Hierarchy, order: int = 1, *, budget: int | None = None, method: str = "auto"
) -> Solution:
    r"""Solve a game for players in nested groups or stages, exactly.

    Product games by an integral for each level; additive games term by term, as players outside of a term do not count; other games by
    their values on all coalitions that the hierarchy admits: :math:`2^{n_1 + \dots + n_m}` for groups of sizes n along one path,
    instead of :math:`2^d`.

    Parameters
    ----------
    game : ProductGame, AdditiveGame, OracleGame or any other
    hierarchy : Hierarchy
    order : int, default=1
        Only 1.
    budget : int, default=None
        Calls of an oracle's function at most.
    method : {"auto", "enumeration"}, default="auto"
        Enumeration visits the coalitions of any game: the reference implementation.

    Returns
    -------
    solution : Solution

    Raises
    ------
    UnsupportedStructureError
        For interactions.
    BudgetError
        If there are too many coalitions to visit; the message says how many.

    Examples
    --------
    >>> from exactshap.games import OracleGame
    >>> from exactshap.semivalues import owen
    >>> solve_hierarchy(OracleGame(lambda masks: masks.sum(axis=1) ** 2.0, 3), owen({"pair": [0, 1]})).values
    array([3., 3., 3.])
    """
    if order != 1:
        text = f"Index {hierarchy.name!r} has values for single players only"
        raise UnsupportedStructureError(message(text, f"Got order={order}", "Use order=1, or index='k-sii' for pairs"))
    if method not in ("auto", "enumeration"):
        text = f"Index {hierarchy.name!r} has methods of its own"
        raise InputError(message(text, f"Got method={method!r}", "Use method='auto' or 'enumeration'"))
    hierarchy = hierarchy.among([str(j) for j in range(game.n_players)])
    if method == "auto" and isinstance(game, ProductGame):
        part = solve_product_hierarchy(game, hierarchy)
        constant = game.constant
    elif method == "auto" and isinstance(game, AdditiveGame):
        part, constant = _per_term(game, hierarchy), game.constant
    else:
        part, constant = _visited(game, hierarchy, budget), np.zeros(())
    return part.finish(
        game.n_players,
        hierarchy,
        1,
        constant=constant,
        single_row=game.n_rows is None,
        single_output=game.single_output,
    )


def _per_term(game: AdditiveGame, hierarchy: Hierarchy) -> Solution:
    """Each term with the hierarchy of its own players: the others add nothing, wherever they stand."""
    total = Solution.zeros(game.n_rows or 1, game.n_players, game.n_outputs, method="per-term enumeration over levels")
    values, scale = total.values, total.scale
    empty, full = np.zeros_like(total.empty), np.zeros_like(total.full)
    matrix = functools.cache(lambda tree, n: admitted(tree, hierarchy.semivalue, n).matrix(n))
    for subset, table in zip(game.subsets, game.tables, strict=True):
        if subset:
            kept = {player: place for place, player in enumerate(subset)}
            weights = matrix(_unnamed(hierarchy.tree.restricted(kept)), len(subset))
            values[:, list(subset)] += np.einsum("ps,rsk->rpk", weights, table)
        empty, full = empty + table[:, 0], full + table[:, -1]
        scale = scale + np.abs(table).max(axis=(1, 2), initial=0.0)
    return Solution(values, empty, full, total.method, error_bound=total.error_bound, scale=scale)


def _unnamed(tree: Branch) -> Branch:
    """Return the tree without names, so that terms of one form share their weights."""
    members = tuple(_unnamed(member) if isinstance(member, Branch) else member for member in tree.members)
    return Branch(members, tree.ordered)


def _visited(game: Game, hierarchy: Hierarchy, budget: int | None) -> Solution:
    """Any game, by its values on the coalitions that the hierarchy admits."""
    d, needed = game.n_players, n_admitted(hierarchy.tree)
    limit = budget or (MAX_CALLS if isinstance(game, OracleGame) else MAX_COALITIONS)
    if needed > limit:
        do = f"Pass budget={needed:.0f}, make the groups smaller or nest them" if needed < 2**24 else "Nest the groups"
        text = f"Index {hierarchy.name!r} of {d} players needs up to {needed:.3g} coalitions of this game"
        raise BudgetError(message(text, f"The limit is {limit}", do))
    found = admitted(hierarchy.tree, hierarchy.semivalue, d)
    pairs = []
    for j in range(d):
        joined = found.masks[j].copy()
        joined[:, j] = True
        pairs += [joined, found.masks[j]]
    masks, where = np.unique(
        np.concatenate([*pairs, np.zeros((1, d), bool), np.ones((1, d), bool)]), axis=0, return_inverse=True
    )
    where = where.ravel()
    table = np.asarray(game.value(masks), float).reshape((game.n_rows or 1, len(masks), -1))
    values, start = np.zeros((len(table), d, table.shape[2])), 0
    for j in range(d):
        weights = found.weights[j]
        here = [where[start + k * len(weights) : start + (k + 1) * len(weights)] for k in range(2)]
        values[:, j] = np.einsum("s,rsk->rk", weights, table[:, here[0]] - table[:, here[1]])
        start += 2 * len(weights)
    return Solution(
        values,
        table[:, where[-2]],
        table[:, where[-1]],
        f"enumeration over levels ({len(masks)} coalitions)",
        error_bound=np.zeros(len(table)),
        scale=np.abs(table).max(axis=(1, 2)),
        n_evaluations=len(masks),
    )

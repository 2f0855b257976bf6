"""Any game, by visiting all 2^d coalitions: the reference for every other solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from exactshap.games import Game, all_masks
from exactshap.semivalues import Semivalue
from exactshap.solvers.core._calls import checked_calls
from exactshap.solvers.core._sets import player_sets
from exactshap.solvers.core._solution import Part, Solution

__all__ = ["set_values", "solve_enumerated"]


def solve_enumerated(
    game: Game,
    semivalue: Semivalue,
    order: int,
    *,
    batch_size: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Solution:
    r"""Solve any game of few players by enumeration.

    .. math:: \phi_T = \sum_{S \subseteq D \setminus T} p_{|T|}(|S|)\, \Delta_T v(S), \qquad
              \Delta_T v(S) = \sum_{L \subseteq T} (-1)^{|T| - |L|} v(S \cup L)

    Cost: 2^d values of the game; a single game may give ``batch_size`` at a time, with ``progress`` called after each
    batch, and O(2^d) additions for each set.
    """
    sets = player_sets(game.n_players, order)
    masks = all_masks(game.n_players)
    value = game.value if batch_size is None and progress is None else checked_calls(game, batch_size, progress)
    table = np.asarray(value(masks), float)
    table = table.reshape((1 if game.n_rows is None else game.n_rows, len(masks), -1))
    values = np.stack([set_values(table, players, semivalue, order, game.n_players) for players in sets], axis=1)
    part = Part(
        values=values,
        empty=table[:, 0],
        full=table[:, -1],
        method=f"enumeration (2^{game.n_players} coalitions)",
        scale=np.abs(table).max(axis=(1, 2), initial=0),
    )
    return part.finish_game(game, semivalue, order, n_evaluations=len(masks))


def set_values(table: np.ndarray, players: Sequence[int], semivalue: Semivalue, order: int, n_players: int) -> np.ndarray:
    """Return phi_T (n_rows, n_outputs) from a table of all coalitions.

    ``table`` is (n_rows, 2^d, n_outputs); bit j of the code is player j.
    """
    n_rows, _, n_outputs = table.shape
    cube = table.reshape((n_rows, *([2] * n_players), n_outputs))
    for j in sorted(players):  # axis of player j: the last bit is the first axis
        cube = np.diff(cube, axis=n_players - j)
    sizes = np.zeros(1, dtype=int)
    for _ in range(n_players - len(players)):
        sizes = np.concatenate([sizes, sizes + 1])
    weights = semivalue.weights(n_players, len(players), order)[sizes]
    return np.asarray(np.einsum("rso,s->ro", cube.reshape(n_rows, -1, n_outputs), weights))

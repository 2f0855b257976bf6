"""Additive games: each term on the coalitions of its own players."""

from __future__ import annotations

import numpy as np

from exactshap.games import AdditiveGame
from exactshap.games._base import squeeze
from exactshap.semivalues import Semivalue
from exactshap.solvers._enumeration import set_values
from exactshap.solvers._solution import Solution, player_sets

__all__ = ["solve_additive"]


def solve_additive(game: AdditiveGame, semivalue: Semivalue, order: int) -> Solution:
    r"""Solve a sum of small terms: players outside a term are dummies of it, so that its own 2^|I| coalitions suffice.

    .. math:: \phi_T = \sum_{I \supseteq T} \sum_{S \subseteq I \setminus T} p(|S|)\, \Delta_T v_I(S)

    Cost O(sum_I |I|^order 2^|I|) per row, whatever the number of players (STAR-SHAP, Theorem 3.1).
    """
    sets = player_sets(game.n_players, order)
    position = {players: s for s, players in enumerate(sets)}
    n_rows = 1 if game.n_rows is None else game.n_rows
    values = np.zeros((n_rows, len(sets), game.n_outputs))
    empty, full = (np.zeros((n_rows, game.n_outputs)) + game.constant for _ in range(2))
    scale = np.zeros(n_rows)
    for subset, table in zip(game.subsets, game.tables, strict=True):
        empty += table[:, 0]
        full += table[:, -1]
        scale += np.abs(table).max(axis=(1, 2), initial=0)
        if len(subset) == 0:
            continue
        for local in player_sets(len(subset), min(order, len(subset))):
            players = tuple(sorted(subset[p] for p in local))
            values[:, position[players]] += set_values(table, local, semivalue, order, len(subset))
    residual = full - empty - values.sum(axis=1) if semivalue.is_efficient(order) else None
    return Solution(
        values=squeeze(game, values),
        sets=sets,
        empty=squeeze(game, empty),
        full=squeeze(game, full),
        residual=None if residual is None else squeeze(game, residual),
        method=f"per-term enumeration ({len(game.subsets)} terms)",
        scale=scale[0] if game.n_rows is None else scale,
    )

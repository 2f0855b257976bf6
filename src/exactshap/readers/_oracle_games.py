"""Games of rows that are known by calling something, and players that change nothing in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap.games import OracleGame
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution, player_sets, solve

__all__ = ["RowGames", "solve_moving"]

FIXED_WAYS = frozenset({"estimator", "frontier", "pairing", "polynomial_order", "sampling", "surrogate", "tol"})


@dataclass(frozen=True, eq=False)
class RowGames:
    """The games of several rows, for value-by-value checks."""

    games: tuple[OracleGame, ...]
    n_players: int
    n_outputs: int
    single_output: bool

    @property
    def n_rows(self) -> int:
        return len(self.games)

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) of shape (n_rows, n_masks[, n_outputs])."""
        return np.stack([game.value(masks) for game in self.games])


def solve_moving(game: OracleGame, moving: list[int], semivalue: Semivalue, order: int, **settings: Any) -> Solution:
    """Solve a game in which only the ``moving`` players matter: a semivalue gives exactly zero to the others."""
    d = game.n_players
    idle = [place for place in range(d) if place not in set(moving)]
    live = sorted([*moving, *idle[: max(order - len(moving), 0)]])
    if len(live) == d or FIXED_WAYS & settings.keys():
        return solve(game, semivalue, order, **settings)

    def value(masks: np.ndarray) -> np.ndarray:
        among_all = np.zeros((len(masks), d), bool)
        among_all[:, live] = masks
        return game.value(among_all)

    found = solve(OracleGame(value, len(live)), semivalue, order, **settings)
    sets = player_sets(d, order)
    number = {members: place for place, members in enumerate(sets)}
    places = [number[tuple(live[j] for j in members)] for members in found.sets]

    def among_all_sets(values: np.ndarray) -> np.ndarray:
        out = np.zeros((len(sets), *values.shape[1:]))
        out[places] = values
        return out

    part = replace(
        found.part,
        values=among_all_sets(found.values),
        std_error=None if found.std_error is None else among_all_sets(found.std_error),
        method=f"{found.method} of {len(live)} of {d} players, which differ from the background",
    )
    return replace(found, part=part, sets=sets)

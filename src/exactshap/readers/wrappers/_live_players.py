"""Leave out players without columns, which get exactly zero at no cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from exactshap.frames import Table
from exactshap.games import Game, LiveGame, spread
from exactshap.readers import DelegatingReader, Reader, Request
from exactshap.semivalues import Semivalue
from exactshap.solvers import Posterior, Solution, player_sets

# Players that are kept where there are as many: interactions of higher orders are refused for fewer.
MIN_PLAYERS = 4


def read_live(read: Callable[[Request], Reader], request: Request) -> Reader:
    """Read a model with the players that have columns.

    Semivalues give nothing to the others.

    Only "normalized" games know them, as their baseline is shared by all players.
    """
    assert request.players is not None
    empty = [place for place, (_, columns) in enumerate(request.players) if not columns]
    kept = max(len(request.players) - len(empty), min(MIN_PLAYERS, len(request.players)))
    # The last of those without columns leave; the first stay where there would be fewer players than MIN_PLAYERS.
    dead = set(empty[len(empty) - (len(request.players) - kept) :])
    if not dead or request.value_function == "normalized":
        return read(request)
    live = tuple(place for place in range(len(request.players)) if place not in dead)
    return LivePlayers(read(replace(request, players=tuple(request.players[place] for place in live))), request.players, live)


class LivePlayers(DelegatingReader):
    """Show what ``inner`` says of ``live`` players; the others have no columns."""

    def __init__(self, inner: Reader, players: tuple[tuple[str, tuple[int, ...]], ...], live: tuple[int, ...]) -> None:
        columns, names = tuple(columns for _, columns in players), tuple(name for name, _ in players)
        super().__init__(inner, players=columns, player_names=names)
        self.live = live

    def game(self, X: Table) -> Game:
        return LiveGame(super().game(X), self.traits.n_players, self.live)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        return self._among_all(super().solve(X, semivalue, order), order)

    def _among_all(self, solution: Solution, order: int) -> Solution:
        """Return the solution for all players, 0 where one has no columns."""
        sets = player_sets(self.traits.n_players, order)
        number = {members: place for place, members in enumerate(sets)}
        places = [number[tuple(self.live[j] for j in members)] for members in solution.sets]

        def by_set(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else spread(values, 1, len(sets), places)

        covariance, live = solution.covariance, list(self.live)
        if covariance is not None:
            # Rows and columns of the matrix: players without columns neither vary nor covary.
            covariance = spread(spread(covariance, 1, self.traits.n_players, live), 2, self.traits.n_players, live)
        values = spread(solution.values, 1, len(sets), places)
        return replace(
            solution,
            part=replace(solution.part, values=values, std_error=by_set(solution.std_error)),
            sets=sets,
            posterior=Posterior(covariance, solution.covariance_residual, by_set(solution.set_std)),
        )

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        # Dead players mask nothing, as no column of the rows is theirs.
        return super().masked_predictions(X, np.asarray(masks)[:, list(self.live)])

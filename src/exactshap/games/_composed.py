"""Compose games of others: weighted sums, and games with players that nothing depends on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from exactshap.games._games import Game


@dataclass(frozen=True, eq=False)
class SumGame:
    r"""Add up games over the same players.

    .. math:: v(S) = c + \sum_m v_m(S)\, W_m
    """

    games: tuple[Game, ...]
    weights: tuple[np.ndarray, ...]  # of each game, (its n_outputs, n_outputs)
    constant: np.ndarray  # (n_outputs,)
    single_output: bool

    @property
    def n_players(self) -> int:
        return self.games[0].n_players

    @property
    def n_rows(self) -> int | None:
        return self.games[0].n_rows

    @property
    def n_outputs(self) -> int:
        return len(self.constant)

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) of shape ([n_rows,] n_masks[, n_outputs])."""
        return self.total((game.value(masks) for game in self.games), self.constant)

    def total(self, parts: Iterable[np.ndarray], constant: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the weighted sum (...[, n_outputs]) of an array of each game (...[, its n_outputs])."""
        columns = (part[..., None] if game.single_output else part for game, part in zip(self.games, parts, strict=True))
        total = constant + sum(part @ weights for part, weights in zip(columns, self.weights, strict=True))
        return np.asarray(total[..., 0] if self.single_output else total)


@dataclass(frozen=True, eq=False)
class LiveGame:
    """Hold a game that depends on some of its players only."""

    inner: Game
    n_players: int
    live: tuple[int, ...]

    @property
    def n_rows(self) -> int | None:
        return self.inner.n_rows

    @property
    def n_outputs(self) -> int:
        return self.inner.n_outputs

    @property
    def single_output(self) -> bool:
        return self.inner.single_output

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) from the live players in S."""
        return self.inner.value(np.asarray(masks)[:, list(self.live)])


def spread(values: np.ndarray, axis: int, size: int, places: list[int]) -> np.ndarray:
    """Return zeros along an axis, with the values at their places."""
    out = np.zeros((*values.shape[:axis], size, *values.shape[axis + 1 :]))
    out[(slice(None),) * axis + (places,)] = values
    return out

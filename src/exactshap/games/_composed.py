"""Compose games of others: weighted sums, and games with players that nothing depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from exactshap.games._games import AdditiveGame, Game, ProductGame


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
        total = weighted_sum(columns, self.weights, constant)
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


def weighted_sum(arrays: Iterable[np.ndarray], weights: Sequence[np.ndarray], constant: np.ndarray | float = 0.0) -> np.ndarray:
    r"""Return the sum (..., n_outputs) of arrays (..., n_m) times their weights (n_m, n_outputs). No array is held.

    .. math:: c + \sum_m a_m W_m
    """
    total = np.zeros(())
    for number, (array, by) in enumerate(zip(arrays, weights, strict=True)):
        if number == 0:
            total = np.full((*array.shape[:-1], by.shape[1]), constant, float)
        # A multiple of the identity, as of bagged classifiers: one addition for all outputs in the place of one for each.
        if np.array_equal(by, by[0, 0] * np.eye(len(by))):
            total += array if by[0, 0] == 1.0 else by[0, 0] * array
            continue
        for i, k in np.argwhere(by):
            total[..., k] += by[i, k] * array[..., i]
    return total


def affine(game: Game, factor: float, shift: float) -> Game:
    """Return the game factor * v + shift. Product and additive games stay of their kind."""
    if isinstance(game, ProductGame):
        c = game.c[:, 0] if game.single_output else game.c
        a = game.a[0] if game.n_rows is None else game.a
        return ProductGame(c * factor, a, game.b, game.weights, game.constant * factor + shift)
    if isinstance(game, AdditiveGame):
        tables = [table * factor for table in game.tables]
        tables = [table[..., 0] for table in tables] if game.single_output else tables
        return AdditiveGame(game.n_players, game.subsets, tables, game.constant * factor + shift)
    return SumGame((game,), (factor * np.eye(game.n_outputs),), np.full(game.n_outputs, shift), game.single_output)


def with_equal_shares(game: ProductGame, total: np.ndarray, *, constant: np.ndarray) -> ProductGame:
    """Return games plus ``total`` (n_outputs,) times |S| / d, with another constant."""
    d = game.n_players
    c = np.concatenate([game.c, np.broadcast_to(total / d, (d, game.n_outputs))])
    a = np.concatenate([game.a, np.ones((len(game.a), d, d))], axis=1)
    b = np.concatenate([game.b, np.broadcast_to(1.0 - np.eye(d), (1, d, d))], axis=1)
    return ProductGame(c[:, 0] if game.single_output else c, a, b, constant=constant)

"""Solve any game by evaluating all 2^d coalitions once, the reference for every other solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap.errors import InputError, InputTypeError
from exactshap.games import Game, all_masks
from exactshap.semivalues import Semivalue
from exactshap.solvers.core._sets import player_sets
from exactshap.solvers.core._solution import Part, Solution


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
    """Return phi_T (n_rows, n_outputs) from a table (n_rows, 2^d, n_outputs) of all coalitions; bit j of a code is player j."""
    n_rows, _, n_outputs = table.shape
    cube = table.reshape((n_rows, *([2] * n_players), n_outputs))
    for j in sorted(players):  # axis of player j: the last bit has the first axis
        cube = np.diff(cube, axis=n_players - j)
    # Sizes of coalitions by code: each further player repeats the list with one member more
    sizes = np.zeros(1, dtype=int)
    for _ in range(n_players - len(players)):
        sizes = np.concatenate([sizes, sizes + 1])
    weights = semivalue.weights(n_players, len(players), order)[sizes]
    return np.asarray(np.einsum("rso,s->ro", cube.reshape(n_rows, -1, n_outputs), weights))


@dataclass
class Calls:
    """Call a game's function in batches, each coalition once."""

    game: Game
    batch_size: int | None = None
    progress: Callable[[int], None] | None = None
    # Coalition -> row of the table of values
    places: dict[bytes, int] = field(default_factory=dict)
    blocks: list[np.ndarray] = field(default_factory=list)  # that table, in pieces as returned

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) (n_masks, n_outputs); only coalitions without a stored value are called."""
        keys = keys_of(masks)
        # By key, so that a coalition that occurs twice in one request is evaluated once
        fresh = {key: row for row, key in enumerate(keys) if key not in self.places}
        names, rows, before = list(fresh), np.fromiter(fresh.values(), int, len(fresh)), self.count
        size = self.batch_size or max(len(rows), 1)
        for start in range(0, len(rows), size):
            chosen = rows[start : start + size]
            self.blocks.append(np.asarray(self.game.value(masks[chosen]), float).reshape(len(chosen), -1))
            self.places.update(zip(names[start : start + size], range(self.count, self.count + len(chosen)), strict=True))
            if self.progress is not None:
                self.progress(self.count)
        # All were new: their values are the last rows of the table, in order
        if len(fresh) == len(keys) > 0:
            return self.table()[before:]
        return self.table()[np.fromiter(map(self.places.__getitem__, keys), int, len(keys))] if keys else np.empty((0, 1))

    def table(self) -> np.ndarray:
        """Return all values so far, (n_calls, n_outputs)."""
        if len(self.blocks) > 1:
            self.blocks = [np.concatenate(self.blocks)]
        return self.blocks[0]

    @property
    def count(self) -> int:
        return len(self.places)


def checked_calls(game: Game, batch_size: Any, progress: Any) -> Calls:
    """Return the calls of a single game; refuse invalid settings."""
    if game.n_rows is not None:
        text = "Coalitions are called in batches for one game at a time"
        raise InputError(text, f"Got a batch of {game.n_rows} games", "Solve the rows one by one, or exactly")
    if batch_size is not None:
        batch_size = check_count("batch_size", batch_size)
    if progress is not None and not callable(progress):
        raise InputTypeError("The 'progress' parameter must be callable", f"Got {type(progress).__name__}")
    return Calls(game, batch_size, progress)


def keys_of(masks: np.ndarray) -> list[bytes]:
    """Return one hashable name for each coalition (n_masks, n_players)."""
    packed = np.ascontiguousarray(np.packbits(masks, axis=1))
    # A void item is a whole row, and ``tolist`` turns all into bytes at once
    names: list[Any] = packed.view(np.dtype((np.void, packed.shape[1]))).ravel().tolist()
    return names

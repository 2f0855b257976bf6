"""What the three kinds of games share: shapes, masks and the value contract."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from exactshap.errors import BudgetError, InputError, message

__all__ = ["Game", "all_masks", "check_masks", "frozen", "squeeze"]

MAX_ENUMERATED_PLAYERS = 24


class Game(Protocol):
    """A batch of cooperative games over the same players.

    ``n_rows`` is None for a single game and ``single_output`` tells whether the output axis is dropped in public results.
    """

    @property
    def n_players(self) -> int: ...

    @property
    def n_rows(self) -> int | None: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def single_output(self) -> bool: ...

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S), of shape ([n_rows,] n_masks[, n_outputs]), for boolean ``masks`` of shape (n_masks, n_players)."""


def check_masks(masks: np.ndarray, n_players: int) -> np.ndarray:
    """Return ``masks`` as a boolean array of shape (n_masks, n_players)."""
    masks = np.asarray(masks)
    if masks.ndim == 1:
        masks = masks[None, :]
    if masks.ndim != 2 or masks.shape[1] != n_players:
        raise InputError(
            message(f"`masks` must have shape (n_masks, {n_players})", f"Got {masks.shape}", "Pass one boolean per player")
        )
    return masks.astype(bool, copy=False)


def all_masks(n_players: int) -> np.ndarray:
    """Return all 2^d coalitions, of shape (2^d, d); bit j of the row number is player j.

    >>> all_masks(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    if n_players > MAX_ENUMERATED_PLAYERS:
        raise BudgetError(
            message(
                f"Enumerating all coalitions of {n_players} players is out of reach",
                f"2^{n_players} coalitions are {2.0**n_players * n_players / 2**40:.3g} TiB of masks; "
                f"the limit is {MAX_ENUMERATED_PLAYERS} players",
                "Use a game with structure, or a sampled solver with budget=",
            )
        )
    return (np.arange(2**n_players)[:, None] >> np.arange(n_players)) & 1 == 1


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a read-only view."""
    view = array.view()
    view.setflags(write=False)
    return view


def squeeze(game: Game, values: np.ndarray) -> np.ndarray:
    """Drop the row and output axes of ``values`` (n_rows, ..., n_outputs) that the game does not have."""
    if game.single_output:
        values = values[..., 0]
    return values[0] if game.n_rows is None else values

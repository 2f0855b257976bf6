"""Define what the three kinds of games share: shapes, masks, the value contract."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from exactshap.errors import BudgetError, InputError, message

__all__ = ["Game", "all_masks", "check_masks", "frozen", "n_coalitions", "squeeze"]

# Players: 2^24 masks of 24 booleans are 400 MiB.
MAX_ENUMERATED_PLAYERS = 24
# Players: a float ends at 2^1024.
MAX_COUNTED_PLAYERS = 1000


class Game(Protocol):
    """A batch of cooperative games over the same players: what solvers ask of a game.

    Attributes
    ----------
    n_players, n_outputs : int
    n_rows : int or None
        Games of the batch; None for a single game: its results have no row axis.
    single_output : bool
        Whether the output axis is dropped in public results.

    Examples
    --------
    >>> from exactshap.games import OracleGame
    >>> game: Game = OracleGame(lambda masks: masks.sum(axis=1) ** 2.0, 3)
    >>> game.value([True, True, False])
    array([4.])
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
        """Return v(S) for boolean ``masks`` of shape (n_masks, n_players). It has shape ([n_rows,] n_masks[, n_outputs])."""


def check_masks(masks: ArrayLike, n_players: int) -> np.ndarray:
    """Return ``masks`` as a boolean array.

    Parameters
    ----------
    masks : array of shape (n_masks, n_players) or (n_players,)
    n_players : int

    Returns
    -------
    masks : bool array of shape (n_masks, n_players)

    Raises
    ------
    InputError
        If the shape is another one.

    Examples
    --------
    >>> check_masks([1, 0], 2)
    array([[ True, False]])
    """
    array = np.atleast_2d(np.asarray(masks))
    if array.ndim != 2 or array.shape[1] != n_players:
        raise InputError(
            message(f"`masks` must have shape (n_masks, {n_players})", f"Got {np.shape(masks)}", "Pass one boolean per player")
        )
    return array.astype(bool, copy=False)


def n_coalitions(n_players: int) -> float:
    """Return 2^d, and 2^1000 beyond: such counts are only compared with limits."""
    return 2.0 ** min(n_players, MAX_COUNTED_PLAYERS)


def all_masks(n_players: int) -> np.ndarray:
    """Return all 2^d coalitions; bit j of the row number is player j.

    Parameters
    ----------
    n_players : int
        d.

    Returns
    -------
    masks : bool array of shape (2^d, d)

    Raises
    ------
    BudgetError
        If d > 24; nothing is allocated.

    Examples
    --------
    >>> all_masks(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    if n_players > MAX_ENUMERATED_PLAYERS:
        raise BudgetError(
            message(
                f"Enumerating all coalitions of {n_players} players is out of reach",
                f"2^{n_players} coalitions are 10^{math.log10(n_players) + (n_players - 40) * math.log10(2):.0f} TiB of masks; "
                f"the limit is {MAX_ENUMERATED_PLAYERS} players",
                "Use a game with structure, or a sampled solver with budget=",
            )
        )
    bits = np.arange(2**n_players)[:, None] >> np.arange(n_players)
    masks: np.ndarray = bits & 1 == 1
    return masks


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a read-only view."""
    view = array.view()
    view.setflags(write=False)
    return view


def squeeze(game: Game, values: np.ndarray) -> np.ndarray:
    """Drop the row and output axes that the game does not have. ``values`` have shape (n_rows, ..., n_outputs)."""
    if game.single_output:
        values = values[..., 0]
    return values[0] if game.n_rows is None else values

"""List the sets of players that get a value in a request of some order."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap.errors import BudgetError, InputError

# Sets: a tile of 32 terms for each set is 1 GiB of work space.
MAX_SETS = 4_000_000


def set_sizes(order: int) -> range:
    """Return the sizes 1..order of sets."""
    return range(1, order + 1)


def player_sets(n_players: int, order: int) -> tuple[tuple[int, ...], ...]:
    """Return all sets of 1..order players, by size and then lexicographically: the order of ``Solution.values``.

    >>> player_sets(3, 2)
    ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    """
    count_sets(n_players, order)  # refuses more than fit
    if order == 1:
        return _singles(int(n_players))
    return tuple(itertools.chain.from_iterable(itertools.combinations(range(n_players), size) for size in set_sizes(order)))


@functools.lru_cache(maxsize=256, typed=True)
def count_sets(n_players: int, order: int) -> int:
    """Return the number of :func:`player_sets` without making them, with the same refusals.

    It is cached, as a request needs it several times: to plan its memory, to allocate and to finish.

    >>> count_sets(3, 2)
    6
    """
    check_count("order", order)
    if order > n_players:
        raise InputError(f"The 'order' parameter must be at most the number of players, {n_players}", f"Got {order}")
    n_sets = sum(math.comb(n_players, size) for size in range(1, order + 1))
    if n_sets > MAX_SETS and order > 1:
        raise BudgetError(
            f"Interactions of order {order} among {n_players} players are out of reach",
            f"They are {n_sets:.3g} sets; the limit is {MAX_SETS:.3g}",
            "Ask for a lower order, or group columns into fewer players with groups=",
        )
    return n_sets


def sets_by_size(sets: Sequence[tuple[int, ...]], order: int) -> list[np.ndarray]:
    """Return the sets of each size 1..order, (n_sets of the size, size)."""
    return [np.array([players for players in sets if len(players) == size]) for size in set_sizes(order)]


@functools.lru_cache(maxsize=16)
def _singles(n_players: int) -> tuple[tuple[int, ...], ...]:
    """Return each player's set, cached as every call needs them."""
    return tuple((j,) for j in range(n_players))

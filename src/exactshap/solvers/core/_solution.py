"""What a solver returns, and the sets it returns it for."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from exactshap.errors import BudgetError, InputError, message

__all__ = ["Solution", "player_sets", "set_sizes"]

MAX_SETS = 4_000_000  # a tile of 32 terms for each set is 1 GiB of work space


@dataclass(frozen=True, eq=False)
class Solution:
    """Values of sets of players, with what is known of their error.

    Attributes
    ----------
    values : array of shape ([n_rows,] n_sets[, n_outputs])
        In the unit of the game. For order 1 the sets are the players, in order.
    sets : tuple of tuples of int
        The sets, by size and then lexicographically.
    empty, full : arrays of shape ([n_rows,][n_outputs])
        v(empty) and v(D).
    residual : array or None
        v(D) - v(empty) - sum(values), where the index is efficient; None elsewhere.
    std_error : array like ``values``, or None
        Standard error of sampled values; None (not 0) for exact ones.
    error_bound : array of shape ([n_rows]) or float
        A-priori bound on the quadrature error of each value; 0.0 where the rule is exact.
    scale : array of shape ([n_rows])
        Sum of the magnitudes that were added up: rounding errors are a small multiple of eps times this.
    method : str
        Which method ran, with its parameters.
    n_evaluations : int
        Calls of ``value`` on coalitions (0 for quadrature).
    covariance : array of shape (n_rows, n_players, n_players[, n_outputs]), or None
        Posterior covariance of the order-1 values of a Gaussian process; None for models without one.
    covariance_residual : array of shape (n_rows[, n_outputs]), or None
        The process's own variance of v(D) - v(empty) less the sum of all entries of ``covariance``; None where the values do not
        add up to that difference.
    set_std : array like ``values``, or None
        Posterior standard deviation of every set, for order 2.
    approximation_error : array of shape (n_rows,), or None
        Estimate of how far any v(S) of an approximated game is off; None for games that are not approximated.
    """

    values: np.ndarray
    sets: tuple[tuple[int, ...], ...]
    empty: np.ndarray
    full: np.ndarray
    residual: np.ndarray | None
    method: str
    std_error: np.ndarray | None = None
    error_bound: np.ndarray | float = 0.0
    scale: np.ndarray | float = 0.0
    n_evaluations: int = 0
    covariance: np.ndarray | None = None
    covariance_residual: np.ndarray | None = None
    set_std: np.ndarray | None = None
    approximation_error: np.ndarray | None = None

    @property
    def exact(self) -> bool:
        """Whether the values are exact up to rounding and the reported bound, neither sampled nor approximated."""
        return self.std_error is None and self.approximation_error is None


def set_sizes(order: int) -> range:
    """Return the sizes of the sets that a request of ``order`` returns: 1..order."""
    if not isinstance(order, (int, np.integer)) or order < 1:
        raise InputError(message("The 'order' parameter must be an int >= 1", f"Got {order!r}"))
    return range(1, int(order) + 1)


def player_sets(n_players: int, order: int) -> tuple[tuple[int, ...], ...]:
    """Return all sets of 1..order players, by size and then lexicographically: the order of ``Solution.values``.

    Parameters
    ----------
    n_players : int
    order : int
        At least 1, at most ``n_players``.

    Returns
    -------
    sets : tuple of tuples of int

    Raises
    ------
    InputError
        If the order is not one.
    BudgetError
        If there are more than 4 million sets.

    Examples
    --------
    >>> player_sets(3, 2)
    ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    """
    sizes = set_sizes(order)
    if order > n_players:
        raise InputError(message(f"The 'order' parameter must be at most the number of players, {n_players}", f"Got {order}"))
    n_sets = sum(math.comb(n_players, size) for size in sizes)
    if n_sets > MAX_SETS:
        raise BudgetError(
            message(
                f"Interactions of order {order} among {n_players} players are out of reach",
                f"They are {n_sets:.3g} sets; the limit is {MAX_SETS:.3g}",
                "Ask for a lower order, or group columns into fewer players with groups=",
            )
        )
    return tuple(itertools.chain.from_iterable(itertools.combinations(range(n_players), size) for size in sizes))

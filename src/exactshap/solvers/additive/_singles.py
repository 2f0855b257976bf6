"""Terms of one player each: linear models and main effects need no coalitions, only what the row adds to the background's mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from exactshap._native import kernel
from exactshap.solvers.core import player_sets

__all__ = ["Evaluated", "Scaled", "Singles", "add_evaluated", "add_singles", "fill_scaled"]

CACHED, FEWEST = 2**16, 64  # values of a piece of rows: 512 KiB; rows of it at least

add_singles = kernel("additive.add_singles(present, absent, weight, players, out, empty, full, scale)")
fill_scaled = kernel("additive.fill_scaled(X, by_column, coefficients, absent, weight, out, total, empty, full, scale)")


@dataclass(frozen=True, eq=False)
class Singles:
    """Terms of one player each.

    Attributes
    ----------
    subsets : tuple of tuples of int
        The player of each term.
    present : array of shape (n_rows, n_terms, n_outputs)
        Values of the terms with their player.
    absent : array of shape (n_terms, n_outputs)
        Their values without, the same for all rows.
    """

    subsets: tuple[tuple[int, ...], ...]
    present: np.ndarray
    absent: np.ndarray

    @property
    def tables(self) -> np.ndarray:
        """Both coalitions of each term, of shape (n_terms, n_rows, 2, n_outputs), as in a :class:`Stack`."""
        present = self.present.transpose(1, 0, 2)
        return np.stack([np.broadcast_to(self.absent[:, None, :], present.shape), present], axis=2)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Terms of one player each, whose values are made where they are added up, a piece of the rows at a time.

    Attributes
    ----------
    subsets : tuple of tuples of int
        The player of each term.
    rows : array of shape (n_rows, ...)
    function : callable
        ``function(rows) -> (n_rows, n_terms, n_outputs)``, no row of which depends on the others.
    absent : array of shape (n_terms, n_outputs)
        Their values without the player.
    """

    subsets: tuple[tuple[int, ...], ...]
    rows: np.ndarray
    function: Callable[[np.ndarray], np.ndarray]
    absent: np.ndarray

    @property
    def tables(self) -> np.ndarray:
        """Both coalitions of each term, as in a :class:`Stack`."""
        return Singles(self.subsets, self.function(self.rows), self.absent).tables


def add_evaluated(stack: Evaluated, weight: float, players: np.ndarray, *sums: np.ndarray) -> None:
    """Add terms to ``sums``, which are those of ``add_singles``."""
    absent, n_rows = np.ascontiguousarray(stack.absent, float), len(stack.rows)
    step = max(FEWEST, CACHED // max(1, absent.size))
    for start in range(0, n_rows, step):
        some = slice(start, min(start + step, n_rows))
        present = np.ascontiguousarray(stack.function(stack.rows[some]), float)
        add_singles(present, absent, weight, players, *(total[some] for total in sums))


@dataclass(frozen=True, eq=False)
class Scaled:
    """Terms of a linear model with one output: column l times ``coefficients[l]`` is the term of player l.

    Attributes
    ----------
    rows : array of shape (n_rows, n_terms)
    coefficients, absent : arrays of shape (n_terms,)
        ``absent`` are the values without the player.
    """

    rows: np.ndarray
    coefficients: np.ndarray
    absent: np.ndarray

    @property
    def singles(self) -> Singles:
        """The same terms with their values, of which none is kept here."""
        return Singles(player_sets(len(self.absent), 1), (self.rows * self.coefficients)[:, :, None], self.absent[:, None])

"""Terms that are products of one factor of each player (``src/native/additive/monomials.cpp``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from exactshap._native import Handle, kernel

__all__ = ["Factors", "Monomials", "add_monomials"]

add_monomials = kernel("additive.add_monomials(X, factors, sets, positions, out, empty, full, scale)")


class Factors(NamedTuple):
    """Monomials of k players with the background folded in: factor p of a term is the product of ``columns ** powers`` of its p-th player."""

    columns: np.ndarray  # (n_terms, k, n_columns_of_player)
    powers: np.ndarray  # 0 where there are fewer columns
    coefficients: np.ndarray  # (n_terms, n_outputs)
    moments: np.ndarray  # (n_terms, 2^k): the background's mean of the factors outside of each coalition


@dataclass(frozen=True, eq=False)
class Monomials:
    """Terms of equally many players, each a product of a factor of each of them; coalition values are made where they are used.

    Attributes
    ----------
    subsets : tuple of tuples of int
        The players of each term, k of them, 1 to ``MOST_PLAYERS``.
    rows : array of shape (n_rows, n_columns)
    factors : Handle of Factors
    made : callable
        ``made(rows)``: the coalition values, as in a :class:`Stack`.
    """

    MOST_PLAYERS: ClassVar[int] = 8
    TILE: ClassVar[int] = 64  # rows whose values are added up together, beside where they are kept, however few there are

    subsets: tuple[tuple[int, ...], ...]
    rows: np.ndarray
    factors: Handle
    made: Callable[[np.ndarray], np.ndarray]

    @property
    def tables(self) -> np.ndarray:
        return self.made(self.rows)

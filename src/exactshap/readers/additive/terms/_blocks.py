"""Terms of additive models, bound to a background: each kind knows how to get its coalition values cheaply.

A block holds terms of one kind. ``bind`` folds the background in once and gives an object whose ``stacks(rows)`` yields the
coalition values of the terms of some rows:

=================  =============================================  =================================================
block              a term                                         cost per row, after the background is folded in
=================  =============================================  =================================================
ColumnTerms        any function of one player's columns           one evaluation
MonomialTerms      a product of powers of columns                 2^k multiplications
BinnedTerms        a table over the bins of its columns           2^k look-ups
ProductTerms       a tensor on products of one-column bases       2^k contractions
FunctionTerms      any vectorised function                        (2^k - 2) n_background evaluations
=================  =============================================  =================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from exactshap.errors import BudgetError, message
from exactshap.solvers.additive import (
    Evaluated,
    Linear,
    LinearOutputs,
    LinearPlayers,
    LookedUp,
    Monomials,
    Scaled,
    Singles,
    Stack,
)

__all__ = [
    "BACKGROUND_CHUNK",
    "CHUNK_VALUES",
    "Bound",
    "BoundScaled",
    "Coalitions",
    "ColumnTerms",
    "Reference",
    "TermBlock",
    "by_size",
    "coalitions",
    "players_of_term",
    "row_products",
    "slices",
    "weighted_mean",
]

MAX_TERM_PLAYERS = 20  # 2^20 coalition values of one term and row are 8 MiB
CHUNK_VALUES = 2**19  # values of one chunk of hybrid rows or basis products: 4 MiB, what stays in a core's caches
BACKGROUND_CHUNK = 256  # background rows of one chunk of hybrids, fixed so that results do not depend on the block of rows


@dataclass(frozen=True, eq=False)
class Reference:
    """Background rows as the terms see them, with weights that sum to one."""

    rows: np.ndarray
    weights: np.ndarray


class Bound(Protocol):
    """A block bound to a background; where it has ``streams``, no value of a term is kept, so that rows need not be cut for it."""

    def stacks(self, rows: np.ndarray) -> Iterable[Stack | Singles | Evaluated | LookedUp | Monomials]:
        """Yield the coalition values of the terms for some encoded rows."""


class TermBlock(Protocol):
    """Terms of one kind: ``columns`` of each, their values, and how to bind them."""

    @property
    def columns(self) -> Sequence[tuple[int, ...]]: ...

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        """Return f_I(x_I), of shape (n_rows, n_terms, n_outputs)."""

    def bind(self, reference: Reference | None, owner: Sequence[int]) -> Bound:
        """Fold the background in; ``owner[j]`` is the player of column j."""


@dataclass(frozen=True, eq=False)
class Coalitions:
    """The coalitions of one term: its players, and which of its columns are inside, of shape (2^n_players, n_columns)."""

    players: tuple[int, ...]
    inside: np.ndarray


def players_of_term(columns: Sequence[int], owner: Sequence[int]) -> tuple[int, ...]:
    """Return the players of a term on ``columns`` (repeats allowed), in order of appearance; refuse too many.

    >>> players_of_term((4, 2, 3), owner=[0, 0, 1, 1, 2])
    (2, 1)
    """
    players = tuple(dict.fromkeys(owner[j] for j in columns))
    if len(players) > MAX_TERM_PLAYERS:
        digits, exponent = math.modf(len(players) * math.log10(2.0))  # 2^1024 is no float
        raise BudgetError(
            message(
                f"A term on {len(players)} players is out of reach",
                f"It has 2^{len(players)} = {10.0**digits:.3g}e+{exponent:02.0f} coalitions for each row; "
                f"the limit is {MAX_TERM_PLAYERS} players",
                "Group columns into fewer players with groups=, or explain model.predict as a black box",
            )
        )
    return players


def coalitions(columns: Sequence[int], owner: Sequence[int]) -> Coalitions:
    """Return the coalitions of a term, bit p of the code being its p-th player."""
    players = players_of_term(columns, owner)
    bits = np.array([players.index(owner[j]) for j in columns], int)
    return Coalitions(players, (np.arange(2 ** len(players))[:, None] >> bits) & 1 == 1)


def by_size(players: Iterable[tuple[int, ...]]) -> list[list[int]]:
    """Return the numbers of the terms with equally many players, fewest players first."""
    found: dict[int, list[int]] = {}
    for term, members in enumerate(players):
        found.setdefault(len(members), []).append(term)
    return [found[size] for size in sorted(found)]


def slices(n: int, step: int) -> Iterator[slice]:
    """Yield slices of at most ``step`` that cover 0..n."""
    return (slice(start, min(start + step, n)) for start in range(0, n, max(1, step)))


def weighted_mean(function: Callable[[np.ndarray], np.ndarray], reference: Reference, width: int) -> np.ndarray:
    """Return the weighted mean of ``function(rows)`` as first value plus mean deviation: exact where the rows are equal."""
    origin = function(reference.rows[:1])[0]
    total = np.zeros_like(origin)
    for part in slices(len(reference.rows), CHUNK_VALUES // max(1, width)):
        total += np.tensordot(reference.weights[part], function(reference.rows[part]) - origin, axes=1)
    return origin + total


def row_products(rows: np.ndarray, tensor: np.ndarray) -> np.ndarray:
    """Return rows (n, m) times tensor (m, n_outputs); a row's bits do not depend on the other rows, unlike BLAS."""
    return np.ascontiguousarray(rows[:, None, :] * tensor.T).sum(axis=2)


# -- one player each -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ColumnTerms:
    """Terms of one column each, evaluated together: ``function(rows) -> (n_rows, n_terms, n_outputs)``.

    ``coefficients (n_terms, n_outputs)`` where the terms are all columns in order, each times a number.
    """

    columns: tuple[tuple[int, ...], ...]
    function: Callable[[np.ndarray], np.ndarray]
    coefficients: np.ndarray | None = None

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        return self.function(rows)

    def bind(self, reference: Reference | None, owner: Sequence[int]) -> Bound:
        assert reference is not None
        players = tuple((owner[column],) for (column,) in self.columns)
        mean = weighted_mean(self.function, reference, len(self.columns))
        if self.coefficients is not None and self.coefficients.shape[1] == 1 and players == self.columns:
            return BoundScaled(np.ascontiguousarray(self.coefficients[:, 0]), np.ascontiguousarray(mean[:, 0]))
        return _BoundColumns(self, players, mean)


@dataclass(frozen=True, eq=False)
class BoundScaled:
    """A linear model whose columns are players."""

    coefficients: np.ndarray
    mean: np.ndarray
    streams: ClassVar[bool] = True

    def scaled(self, rows: np.ndarray) -> Scaled:
        return Scaled(rows, self.coefficients, self.mean)

    def at_once(self, constant: np.ndarray, growth: float, floor: float, sizes: np.ndarray) -> Linear:
        """Return the model as the solver answers it in one pass over the rows."""
        return Linear(self.coefficients, self.mean, float(constant[0]), growth, floor, sizes)

    def stacks(self, rows: np.ndarray) -> Iterator[Singles]:
        yield self.scaled(rows).singles


@dataclass(frozen=True, eq=False)
class _BoundColumns:
    """Terms of one column each, those of a linear model of several outputs among them."""

    block: ColumnTerms
    players: tuple[tuple[int, ...], ...]
    mean: np.ndarray
    streams: ClassVar[bool] = True

    def at_once(
        self, constant: np.ndarray, growth: float, floor: float, sizes: np.ndarray
    ) -> LinearOutputs | LinearPlayers | None:
        """Return the model as the solver answers it in one pass over the rows; None where it is none of its columns, or a sum."""
        if self.block.coefficients is None or len(sizes):
            return None
        coefficients, mean, ends = (np.ascontiguousarray(a, float) for a in (self.block.coefficients, self.mean, constant))
        if self.players == self.block.columns:
            return LinearOutputs(coefficients, mean, ends, growth, floor)
        return LinearPlayers(coefficients, mean, ends, np.array(self.players, np.int64)[:, 0], growth, floor)

    def stacks(self, rows: np.ndarray) -> Iterator[Evaluated]:
        yield Evaluated(self.players, rows, self.block.function, self.mean)

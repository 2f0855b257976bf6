"""Bind terms of additive models to a background, each kind with its own cheap coalition values.

A block holds terms of one kind. ``bind`` folds the background in once and gives an object with ``stacks(rows)``, which yields the
coalition values of the terms of some rows:

=================  =============================================  =================================================
block, or term     a term                                         cost per row, after the background is folded in
=================  =============================================  =================================================
LinearTerms        a column times a coefficient                   one multiplication
ColumnTerms        any function of one column                     one evaluation
MonomialTerms      a product of powers of columns                 2^k multiplications
BinnedTerms        a table over the bins of its columns           2^k look-ups
ProductTerm        a tensor on products of one-column bases       2^k contractions
FunctionTerm       any vectorised function                        (2^k - 2) n_background evaluations
=================  =============================================  =================================================
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from exactshap._native import Handle
from exactshap._runtime.cache import copied_state
from exactshap._runtime.slices import slices
from exactshap.errors import BudgetError
from exactshap.solvers.additive import Factors, Linear, Monomials, Stack

# Players: 2^20 coalition values of one term and row are 8 MiB.
MAX_TERM_PLAYERS = 20
# Values of one chunk of hybrid rows or basis products: 4 MiB, what stays in a core's caches.
CHUNK_VALUES = 2**19
# Background rows of one chunk of hybrids, fixed so that results do not depend on the block of rows.
BACKGROUND_CHUNK = 256


@dataclass(frozen=True, eq=False)
class Reference:
    """Hold encoded background rows with weights that sum to one."""

    rows: np.ndarray
    weights: np.ndarray


class Bound:
    """Hold a block of terms, bound to a background."""

    streams = False  # whether it stores no values of terms, so that rows need not be cut
    row_calls = 0.0  # evaluations for one row, of which forecasts know the time

    def stacks(self, rows: np.ndarray) -> Iterable[Stack | Monomials]:
        """Yield the coalition values of the terms for some encoded rows."""
        raise NotImplementedError

    def errors(self, rows: np.ndarray) -> np.ndarray | float:
        """Return a bound ([n_rows,]) on the errors of mixed coalitions' values besides rounding."""
        return 0.0


class TermBlock(Protocol):
    """Describe terms of one kind: ``columns`` of each, their values, and how to bind them."""

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
    """Return the players of a term, in order of appearance; refuse too many.

    >>> players_of_term((4, 2, 3), owner=[0, 0, 1, 1, 2])
    (2, 1)
    """
    players = tuple(dict.fromkeys(owner[j] for j in columns))
    if len(players) > MAX_TERM_PLAYERS:
        digits, exponent = math.modf(len(players) * math.log10(2.0))  # 2^1024 is no float
        raise BudgetError(
            f"A term on {len(players)} players is out of reach",
            f"It has 2^{len(players)} = {10.0**digits:.3g}e+{exponent:02.0f} coalitions for each row; "
            f"the limit is {MAX_TERM_PLAYERS} players",
            "Group columns into fewer players with groups=, or explain model.predict as a black box",
        )
    return players


def coalitions(columns: Sequence[int], owner: Sequence[int]) -> Coalitions:
    """Return the coalitions of a term: bit p is its p-th player."""
    players = players_of_term(columns, owner)
    bits = np.array([players.index(owner[j]) for j in columns], int)
    return Coalitions(players, (np.arange(2 ** len(players))[:, None] >> bits) & 1 == 1)


def by_size(players: Iterable[tuple[int, ...]]) -> list[list[int]]:
    """Return the terms with equally many players, fewest players first."""
    terms: dict[int, list[int]] = {}
    for term, members in enumerate(players):
        terms.setdefault(len(members), []).append(term)
    return [terms[size] for size in sorted(terms)]


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
class LinearTerms:
    """Multiply every column by a coefficient: ``coefficients (n_columns, n_outputs)``."""

    coefficients: np.ndarray

    @property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        return tuple((j,) for j in range(len(self.coefficients)))

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows[:, :, None] * self.coefficients)

    def bind(self, reference: Reference | None, owner: Sequence[int]) -> BoundLinear:
        assert reference is not None
        absent = weighted_mean(self.evaluate, reference, len(self.coefficients))
        coefficients, absent = (np.ascontiguousarray(values, float) for values in (self.coefficients, absent))
        means = reference.weights.astype(np.longdouble) @ reference.rows
        return BoundLinear(Handle(Linear(coefficients, absent, np.array(owner, np.int64))), means)


@dataclass(frozen=True, eq=False)
class BoundLinear(Bound):
    """Hold a linear model bound to a background; it has its own kernel."""

    linear: Handle
    means: np.ndarray  # of the background's columns, in extended precision
    streams = True

    def stacks(self, rows: np.ndarray) -> Iterator[Stack]:
        model = cast(Linear, self.linear.value)
        players = tuple((int(player),) for player in model.players)
        yield _of_one_player(players, rows[:, :, None] * model.coefficients, model.absent)


@dataclass(frozen=True, eq=False)
class ColumnTerms:
    """Evaluate terms of one column each together: ``function(rows) -> (n_rows, n_terms, n_outputs)``."""

    columns: tuple[tuple[int, ...], ...]
    function: Callable[[np.ndarray], np.ndarray]

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        return self.function(rows)

    def bind(self, reference: Reference | None, owner: Sequence[int]) -> Bound:
        assert reference is not None
        players = tuple((owner[column],) for (column,) in self.columns)
        return _BoundColumns(self, players, weighted_mean(self.function, reference, len(self.columns)))


@dataclass(frozen=True, eq=False)
class _BoundColumns(Bound):
    block: ColumnTerms
    players: tuple[tuple[int, ...], ...]
    mean: np.ndarray

    def stacks(self, rows: np.ndarray) -> Iterator[Stack]:
        yield _of_one_player(self.players, self.block.function(rows), self.mean)


def _of_one_player(players: tuple[tuple[int, ...], ...], present: np.ndarray, absent: np.ndarray) -> Stack:
    """Return terms of one player each: ``present (n_rows, n_terms, n_outputs)`` with it, ``absent`` without."""
    n_rows, n_terms, n_outputs = present.shape
    tables = np.empty((n_terms, n_rows, 2, n_outputs))
    tables[:, :, 0], tables[:, :, 1] = absent[:, None], present.transpose(1, 0, 2)
    return Stack(players, tables)


# -- products of powers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MonomialTerms:
    """Products of powers of columns: ``powers (n_terms, n_columns)``, ``coefficients (n_terms, n_outputs)``."""

    powers: np.ndarray
    coefficients: np.ndarray

    @property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(int(j) for j in np.flatnonzero(row)) for row in self.powers)

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        table, values = power_table(rows, self.powers), np.ones((len(rows), len(self.powers)))
        for j in range(self.powers.shape[1]):
            values *= table[:, j, self.powers[:, j]]
        return values[:, :, None] * self.coefficients

    def bind(self, reference: Reference | None, owner: Sequence[int]) -> Bound:
        assert reference is not None
        players = [players_of_term(columns, owner) for columns in self.columns]
        return _BoundMonomials(tuple(self._bind_size(chosen, players, reference, owner) for chosen in by_size(players)))

    def _bind_size(
        self, chosen: list[int], players: list[tuple[int, ...]], reference: Reference, owner: Sequence[int]
    ) -> _MonomialsOfSize:
        """Bind the terms of k players: factor p of a term is the product of the powers of its p-th player's columns."""
        k = len(players[chosen[0]])
        members = [[np.flatnonzero(self.powers[l] * (np.asarray(owner) == player)) for player in players[l]] for l in chosen]
        width = max(len(columns) for factors in members for columns in factors)
        columns, powers = np.zeros((2, len(chosen), k, width), np.int64)
        for place, l in enumerate(chosen):
            for p, used in enumerate(members[place]):
                columns[place, p, : len(used)], powers[place, p, : len(used)] = used, self.powers[l, used]
        subsets = tuple(players[l] for l in chosen)
        terms = _MonomialsOfSize(subsets, columns, powers, self.coefficients[chosen], np.zeros((len(chosen), 0)))
        outside = (np.arange(2**k)[:, None] >> np.arange(k)) & 1 == 0

        def absent(rows: np.ndarray) -> np.ndarray:
            return np.where(outside[None, None], terms.factors(rows)[:, :, None, :], 1.0).prod(axis=-1)

        return replace(terms, moments=weighted_mean(absent, reference, len(chosen) * 2**k * max(k, 1)))


def power_table(rows: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Return x^0, ..., x^degree of every column, up to the largest of the powers: (n_rows, n_columns, degree + 1)."""
    degree = int(powers.max(initial=0))
    table = np.ones((*rows.shape, degree + 1))
    for power in range(degree):
        table[:, :, power + 1] = table[:, :, power] * rows
    return table


@dataclass(frozen=True, eq=False)
class _MonomialsOfSize:
    """Monomials of k players: factor p of a term is the product of ``columns ** powers`` (n_terms, k, n_columns_of_player)."""

    players: tuple[tuple[int, ...], ...]
    columns: np.ndarray
    powers: np.ndarray
    coefficients: np.ndarray
    moments: np.ndarray

    __getstate__ = copied_state

    @functools.cached_property
    def handle(self) -> Handle:
        coefficients, moments = (np.ascontiguousarray(values, float) for values in (self.coefficients, self.moments))
        return Handle(Factors(self.columns, self.powers, coefficients, moments))

    @property
    def are_streamed(self) -> bool:
        """Say whether the solver computes the coalition values of that many players itself."""
        return 1 <= self.columns.shape[1] <= Monomials.MOST_PLAYERS

    def factors(self, rows: np.ndarray) -> np.ndarray:
        """Return the factor of each player, of shape (n_rows, n_terms, k)."""
        table = power_table(rows, self.powers)
        factors = table[:, self.columns[..., 0], self.powers[..., 0]]
        for q in range(1, self.columns.shape[2]):
            factors = factors * table[:, self.columns[..., q], self.powers[..., q]]
        return factors

    def tables(self, rows: np.ndarray) -> np.ndarray:
        factors, k = np.ascontiguousarray(self.factors(rows).transpose(1, 2, 0)), self.columns.shape[1]
        products = np.repeat(self.moments[:, None, :], len(rows), axis=1)
        for p in range(k):
            for code in np.flatnonzero((np.arange(2**k) >> p) & 1):
                products[:, :, code] *= factors[:, p]
        return products[..., None] * self.coefficients[:, None, None, :]


@dataclass(frozen=True, eq=False)
class _BoundMonomials(Bound):
    sizes: tuple[_MonomialsOfSize, ...]

    @property
    def streams(self) -> bool:  # type: ignore[override]
        return all(terms.are_streamed for terms in self.sizes)

    def stacks(self, rows: np.ndarray) -> Iterator[Stack | Monomials]:
        for terms in self.sizes:
            if terms.are_streamed:
                yield Monomials(terms.players, rows, terms.handle, terms.tables)
            else:
                yield Stack(terms.players, terms.tables(rows))

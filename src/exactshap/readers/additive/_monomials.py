"""Define terms as products of powers of columns."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from exactshap._native import Handle
from exactshap._runtime.cache import copied_state
from exactshap.readers.additive._terms import Bound, Reference, by_size, players_of_term, weighted_mean
from exactshap.solvers.additive import Factors, Monomials, Stack


@dataclass(frozen=True, eq=False)
class MonomialTerms:
    """Products of powers of columns: ``powers (n_terms, n_columns)``, ``coefficients (n_terms, n_outputs)``."""

    powers: np.ndarray
    coefficients: np.ndarray

    @property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(int(j) for j in np.flatnonzero(row)) for row in self.powers)

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        table, values = power_table(rows, int(self.powers.max(initial=0))), np.ones((len(rows), len(self.powers)))
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


def power_table(rows: np.ndarray, degree: int) -> np.ndarray:
    """Return x^0, ..., x^degree of every column, (n_rows, n_columns, degree + 1)."""
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
        table = power_table(rows, int(self.powers.max(initial=0)))
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
class _BoundMonomials:
    sizes: tuple[_MonomialsOfSize, ...]

    @property
    def streams(self) -> bool:
        return all(terms.are_streamed for terms in self.sizes)

    def stacks(self, rows: np.ndarray) -> Iterator[Stack | Monomials]:
        for terms in self.sizes:
            if terms.are_streamed:
                yield Monomials(terms.players, rows, terms.handle, terms.tables)
            else:
                yield Stack(terms.players, terms.tables(rows))

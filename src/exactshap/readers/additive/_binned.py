"""Define terms as tables over bins, with the background folded into one small table per coalition."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exactshap._native import Handle
from exactshap._runtime.cache import copied_state
from exactshap._runtime.types import Model
from exactshap.errors import InputError
from exactshap.readers.additive._terms import Bound, Coalitions, Reference, by_size, coalitions
from exactshap.solvers.additive import Bins, Lookups, Stack, fill_fold, fill_lookups


@dataclass(frozen=True, eq=False)
class BinnedTerms:
    """Hold tables over bins: ``scores[l]`` (n_bins, ..., n_outputs); a row has the number of its cell in each term (C order).

    ``training[l]``, if given, holds the weight of each cell, the default background.
    """

    columns: tuple[tuple[int, ...], ...]
    scores: tuple[np.ndarray, ...]
    training: tuple[np.ndarray, ...] | None = None

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        flat = [scores.reshape(-1, scores.shape[-1]) for scores in self.scores]
        return np.stack([values[rows[:, l]] for l, values in enumerate(flat)], axis=1)

    def hybrid(self, row: np.ndarray, rows: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return the cells of rows with the bins of one row (1, n_terms) in the ``chosen`` columns."""
        cells = rows.copy()
        for l, (columns, scores) in enumerate(zip(self.columns, self.scores, strict=True)):
            shape = scores.shape[:-1]
            pairs = zip(np.unravel_index(row[:, l], shape), np.unravel_index(rows[:, l], shape), columns, strict=True)
            bins = [np.broadcast_to(own, len(rows)) if chosen[j] else other for own, other, j in pairs]
            cells[:, l] = np.ravel_multi_index(bins, shape) if bins else 0
        return cells

    def bind(self, reference: Reference | None, owner: Sequence[int]) -> Bound:
        return _BoundBins(
            tuple(
                _bind_table(*term) for term in zip(self.scores, self._support(reference), self._coalitions(owner), strict=True)
            )
        )

    def _coalitions(self, owner: Sequence[int]) -> list[Coalitions]:
        return [coalitions(columns, owner) for columns in self.columns]

    def _support(self, reference: Reference | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the cells that the background visits, and their weights."""
        for l, scores in enumerate(self.scores):
            if reference is None:
                assert self.training is not None
                weights = self.training[l].reshape(-1)
            else:
                weights = np.bincount(reference.rows[:, l], reference.weights, minlength=int(np.prod(scores.shape[:-1])))
            cells = np.flatnonzero(weights)
            yield cells, weights[cells] / weights.sum()


def numeric_bins(model: Model) -> Bins | None:
    """Return the bins of an EBM of numeric columns, or None.

    ``bins_[j]`` holds the cuts of column j, for terms of one column, of two, ...: the last holds for all larger ones. A term's
    tables have a bin for missing values before, and one for unknown categories behind those between the cuts.
    """
    if any(kind != "continuous" for kind in model.feature_types_in_):
        return None
    used: list[list[int]] = []
    strides: list[np.ndarray] = []
    levels_of = [[(j, min(len(columns), len(model.bins_[j])) - 1) for j in columns] for columns in model.term_features_]
    ways = {level: w for w, level in enumerate(sorted({level for levels in levels_of for level in levels}))}  # by column
    for columns, levels, scores in zip(model.term_features_, levels_of, model.term_scores_, strict=True):
        used.append([ways[level] for level in levels])
        shape = np.array(scores.shape[: len(columns)], np.int64)
        if any(len(model.bins_[j][level]) + 3 != size for (j, level), size in zip(levels, shape, strict=True)):
            return None
        strides.append(_c_strides(shape))
    cuts = [np.asarray(model.bins_[j][level], float) for j, level in ways]
    starts = (np.cumsum([0, *map(len, parts)]) for parts in (cuts, used))
    column = np.array([j for j, _ in ways], np.int64)
    cut_start, way_start = (start.astype(np.int64) for start in starts)
    way = np.array([w for term in used for w in term], np.int64)
    stride = np.concatenate([*strides, way[:0]])
    return Bins(np.concatenate([*cuts, np.empty(0)]), cut_start, column, way_start, way, stride)


@dataclass(frozen=True, eq=False)
class _FoldedTable:
    players: tuple[int, ...]
    shape: np.ndarray
    strides: np.ndarray
    folded: np.ndarray


def _bind_table(scores: np.ndarray, support: tuple[np.ndarray, np.ndarray], own: Coalitions) -> _FoldedTable:
    """Fold the background into one table per coalition: T_A[x_A] = sum_z w_z f_I(x_A, z outside A)."""
    shape = np.array(scores.shape[:-1], np.int64)
    cells, weights = support
    bins = np.stack(np.unravel_index(cells, tuple(shape)), axis=1)
    flat = np.ascontiguousarray(scores.reshape(-1, scores.shape[-1]), float)
    strides = np.zeros((len(own.inside), 1 + len(shape)), np.int64)
    tables, start = [], 0
    for code, inside in enumerate(own.inside):
        table, strides[code, 1:] = _fold(flat, shape, inside, bins, weights)
        strides[code, 0] = start
        start += len(table)
        tables.append(table)
    return _FoldedTable(own.players, shape, strides, np.concatenate(tables))


def _fold(
    scores: np.ndarray, shape: np.ndarray, inside: np.ndarray, bins: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the table of one coalition, and its strides, 0 outside."""
    full_strides = _c_strides(shape)
    outside, index = np.unique(bins[:, ~inside] @ full_strides[~inside], return_inverse=True)
    # A constant background makes no rounding: its weight is exactly 1
    single = len(outside) == 1
    mass = np.ones(1) if single else np.bincount(index, weights)
    own = np.zeros(1, np.int64)  # where the cells of the columns inside begin, in C order
    for size, stride in zip(shape[inside], full_strides[inside], strict=True):
        own = (own[:, None] + stride * np.arange(size)).reshape(-1)
    table = np.empty((len(own), scores.shape[1]))
    fill_fold(scores, own, outside, mass, table)
    strides = np.zeros(len(shape), np.int64)
    strides[inside] = _c_strides(shape[inside])
    return table, strides


def _c_strides(shape: np.ndarray) -> np.ndarray:
    return np.append(np.cumprod(shape[:0:-1])[::-1], 1).astype(np.int64) if len(shape) else np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class _BoundBins:
    terms: tuple[_FoldedTable, ...]

    __getstate__ = copied_state

    @functools.cached_property
    def _sizes(self) -> tuple[tuple[tuple[tuple[int, ...], ...], Handle, int], ...]:
        """Group terms by their number of players: players, tables, number of outputs."""
        return tuple(self._of_size(chosen) for chosen in by_size(term.players for term in self.terms))

    def _of_size(self, chosen: list[int]) -> tuple[tuple[tuple[int, ...], ...], Handle, int]:
        terms = [self.terms[l] for l in chosen]
        n_codes, width = len(terms[0].strides), max(len(term.shape) for term in terms)
        shape, strides = np.ones((len(terms), width), np.int64), np.zeros((len(terms), n_codes, 1 + width), np.int64)
        start = 0
        for place, term in enumerate(terms):
            shape[place, : len(term.shape)] = term.shape
            strides[place, :, : 1 + len(term.shape)] = term.strides
            strides[place, :, 0] += start
            start += len(term.folded)
        folded = np.concatenate([term.folded for term in terms])
        if not np.isfinite(folded).all():
            raise InputError("Scores overflow where the background is summed over", do="Explain a model of smaller scores")
        lookups = Lookups(np.array(chosen, np.int64), shape, strides, folded)
        return tuple(term.players for term in terms), Handle(lookups), folded.shape[1]

    def stacks(self, rows: np.ndarray) -> Iterator[Stack]:
        for players, lookups, n_outputs in self._sizes:
            tables = np.empty((len(players), len(rows), 2 ** len(players[0]), n_outputs))
            fill_lookups(rows, lookups, tables)
            yield Stack(players, tables)

"""Hybrid rows of the certificate: the columns of a coalition from an explained row, the others from the background."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from exactshap.frames import Table, hybrid_cells, hybrid_columns, mixed_below, mixed_cells
from exactshap.readers import Reader, columns_of

__all__ = ["APART", "Hybrids", "Pool", "coalitions", "hybrids_of", "mixed_rows", "whose_of"]

APART = 1024  # explained rows from which on hybrids are a block of their own
FRAME_MASKS = 4  # coalitions at most for frames of several dtypes, whose rows cannot each take columns of their own


def coalitions(rng: np.random.Generator, n: int, n_players: int) -> np.ndarray:
    """Return random coalitions (n, n_players) of all sizes, the complement of each beside it: together they split any two players."""
    half = rng.random((-(-n // 2), n_players)) < rng.uniform(0.25, 0.75, (-(-n // 2), 1))
    return np.stack([half, ~half], axis=1).reshape(-1, n_players)[:n]


class Pool:
    """What hybrids are drawn from, with a fixed seed: coalitions, and the reference rows that the other columns come from.

    Parameters
    ----------
    reader : Reader
        With a background.
    size : int
        Number of coalitions, even.
    """

    def __init__(self, reader: Reader, size: int) -> None:
        assert reader.background is not None
        rng = np.random.default_rng(0)
        self._size, self._chance, self._background = size, random.Random(0).random, reader.background
        self._masks = coalitions(rng, size, reader.n_players)
        self._columns, self._references = columns_of(reader, self._masks), rng.integers(self._background.n_rows, size=size)
        self._others: np.ndarray | None = None  # the reference rows of an array of floats
        is_array = not (self._background.is_frame or self._background.is_sparse)
        if is_array and self._background.native.dtype.kind == "f":
            self._others = self._background.native[self._references]
            starts = range(0, size, 2)
            self._pairs = [(self._others[start : start + 2], self._columns[start : start + 2]) for start in starts]
        self._far = rng.integers(2**32, size=size).tolist()  # what rows are drawn by, from a random one on

    def drawn(self, n_rows: int, n_hybrids: int) -> tuple[np.ndarray, ...]:
        """Return random rows, and coalitions, their columns and reference rows; complements stay beside each other."""
        chosen = self._place(n_hybrids)
        return np.array(self._rows(n_rows, chosen)), self._masks[chosen], self._columns[chosen], self._references[chosen]

    def _place(self, n_hybrids: int) -> slice:
        """Return random neighbours among the coalitions, complements beside each other."""
        first = 2 * int(self._chance() * ((self._size - n_hybrids) // 2 + 1))
        return slice(first, first + n_hybrids)

    def _rows(self, n_rows: int, chosen: slice) -> list[int]:
        """Return random rows: a generator takes as long as all the rest, and arrays of a few numbers longer than a list."""
        first = int(self._chance() * n_rows)
        return [(far + first) % n_rows for far in self._far[chosen]]

    def mixed(self, table: Table, n_hybrids: int) -> tuple[Table | None, tuple[int, ...]]:
        """Return hybrids of rows of a table with those of the background, and whose they are; None where that is a guess.

        Those of an array of floats are made in few steps; two hybrids, of a coalition and its complement, are of one row.
        """
        native, n_rows = table.native, table.n_rows
        if self._others is None or table.names is not None or native.dtype.kind != "f":
            rows, _, columns, references = self.drawn(n_rows, n_hybrids)
            mixed = mixed_rows(table, self._background, rows, references, columns)
            return mixed, () if mixed is None else whose_of(rows.tolist())
        whose: tuple[int, ...]
        if n_hybrids == 2:
            row, pair = divmod(int(self._chance() * (n_rows * len(self._pairs))), len(self._pairs))
            here, whose, (others, columns) = native[row], (row,), self._pairs[pair]
        else:
            chosen = self._place(n_hybrids)
            drawn = self._rows(n_rows, chosen)
            whose, others, columns = whose_of(drawn), self._others[chosen], self._columns[chosen]
            by_row = native.flags.c_contiguous  # else all rows would be copied first
            here = native.take(drawn, axis=0) if by_row else native[drawn]
        if n_rows < APART:
            return mixed_below(table, here, others, columns), whose
        return Table(mixed_cells(native, here, others, columns), None, n_hybrids, table.n_columns), whose


def whose_of(rows: list[int]) -> tuple[int, ...]:
    """Return which explained rows hybrids are of, each once."""
    return tuple(sorted(set(rows)))


@dataclass(frozen=True, eq=False)
class Hybrids:
    """Hybrid rows: the coalition of each, and whose it is."""

    table: Table
    masks: np.ndarray
    rows: np.ndarray


def hybrids_of(
    background: Table, X: Table, rows: np.ndarray, references: np.ndarray, masks: np.ndarray, columns: np.ndarray
) -> list[Hybrids]:
    """Return rows that take the columns of their coalition from X, the others from the background: none where that is a guess."""
    mixed = mixed_rows(X, background, rows, references, columns)
    if mixed is not None and (not X.is_frame or X.has_one_dtype):
        return [Hybrids(mixed, masks, rows)]
    shares = _shares(len(rows))
    shared = np.concatenate([np.full(len(share), k) for k, share in enumerate(shares)])
    if mixed is not None:
        return [Hybrids(mixed, masks[shared], rows)]
    return [
        Hybrids(X.take(rows[share]).hybrid(background.take(references[share]), columns[k]), masks[shared[share]], rows[share])
        for k, share in enumerate(shares if X.is_frame else [])
    ]


def mixed_rows(X: Table, background: Table, rows: np.ndarray, references: np.ndarray, columns: np.ndarray) -> Table | None:
    """Return hybrids as one table; None where there is none.

    Where cells of several dtypes make a row, whole columns are replaced: a few coalitions are shared by all.
    """
    if (cells := hybrid_cells(X, background, rows, references, columns)) is not None:
        return cells
    shares = _shares(len(rows))
    of_shares = [rows[share] for share in shares], [references[share] for share in shares]
    return hybrid_columns(X, background, *of_shares, columns[: len(shares)])


def _shares(n: int) -> list[np.ndarray]:
    """Return which of n hybrids share a coalition: at least two."""
    return np.array_split(np.arange(n), min(-(-n // 2), FRAME_MASKS))

"""Batches in pieces of rows, for threads that take them one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from exactshap.solvers.core._solution import Solution

__all__ = ["in_pieces"]

PIECE_VALUES = 2**17  # values of a piece: 1 MiB, which stays in a core's caches


def in_pieces(batches: Iterable[Solution]) -> Iterator[tuple[int, Solution]]:
    """Yield the rows of batches that follow each other, in pieces that stay in a core's caches.

    Parameters
    ----------
    batches : iterable of Solution
        Of values (n_rows, n_sets[, n_outputs]); those that are small come as they are.

    Returns
    -------
    pieces : iterator of (int, Solution)
        The number of its first row, and the piece: views of the batch, whose calls are counted with its first piece.

    Examples
    --------
    >>> from exactshap.solvers import Solution, in_pieces
    >>> [(start, len(piece.values)) for start, piece in in_pieces([Solution.zeros(40_000, 4), Solution.zeros(2, 4)])]
    [(0, 32768), (32768, 7232), (40000, 2)]
    """
    start = 0
    for batch in batches:
        n_rows = len(batch.values)
        step = max(1, PIECE_VALUES // max(1, batch.values[:1].size))
        for first in range(0, n_rows, step):
            counted = {"n_evaluations": 0} if first else {}
            yield start + first, batch.rows(slice(first, first + step), **counted) if step < n_rows else batch
        start += n_rows

"""Hybrid rows of the certificate: the columns of a coalition from an explained row, the others from the background."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap.frames import Table, hybrid_cells, hybrid_columns

__all__ = ["Hybrids", "coalitions", "hybrids_of", "mixed_rows"]

FRAME_MASKS = 4  # coalitions at most for frames of several dtypes, whose rows cannot each take columns of their own


def coalitions(rng: np.random.Generator, n: int, n_players: int) -> np.ndarray:
    """Return random coalitions (n, n_players) of all sizes, the complement of each beside it: together they split any two players."""
    half = rng.random((-(-n // 2), n_players)) < rng.uniform(0.25, 0.75, (-(-n // 2), 1))
    return np.stack([half, ~half], axis=1).reshape(-1, n_players)[:n]


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

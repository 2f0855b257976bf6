"""The game of a tree ensemble written out, one term for each leaf: the reference implementation of the tree solvers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactshap.errors import BudgetError, message
from exactshap.games import ProductGame
from exactshap.trees import FlatTrees, inside, paths

__all__ = ["leaf_game"]

MAX_GAME_BYTES = 2.0**32


def leaf_game(
    trees: FlatTrees,
    players: Sequence[Sequence[int]],
    X: np.ndarray,
    background: np.ndarray | None,
    weights: np.ndarray | None,
) -> ProductGame:
    r"""Return the games of some rows.

    .. math:: v(S) = c + \sum_l v_l \prod_{j \in S} a_{lj} \prod_{j \notin S} b_{lj}

    a tells whether the row satisfies every split on player j on the path to leaf l; b is the product of the cover ratios of
    those splits (path-dependent), or the same as a for the background rows (interventional, baseline).
    """
    owner = np.zeros(trees.n_features, np.int32)
    for j, columns in enumerate(players):
        owner[list(columns)] = j
    where = paths(trees, owner)
    n_players = len(players)
    _check_size(where.n_leaves, n_players, len(X) + (1 if background is None else len(background)))
    if background is None:
        b = np.ones((1, where.n_leaves, n_players))
        leaf = np.repeat(np.arange(where.n_leaves), np.diff(where.start))
        b[0, leaf, where.player] = where.ratio
    else:
        b = _padded(inside(trees, where, background), n_players)
    a = _padded(inside(trees, where, X), n_players)
    value = trees.value[where.leaf]
    return ProductGame(value[:, 0] if trees.n_outputs == 1 else value, a, b, weights, trees.constant)


def _padded(a: np.ndarray, n_players: int) -> np.ndarray:
    """Add factors 1 for players after the last one that has a column."""
    missing = n_players - a.shape[2]
    return a if missing <= 0 else np.concatenate([a, np.ones((*a.shape[:2], missing))], axis=2)


def _check_size(n_leaves: int, n_players: int, n_rows: int) -> None:
    needed = 8.0 * n_leaves * n_players * n_rows
    if needed > MAX_GAME_BYTES:
        raise BudgetError(
            message(
                "The explicit game of this ensemble does not fit",
                f"{n_leaves} leaves x {n_players} players x {n_rows} rows would need {needed / 2**30:.3g} GiB",
                "Use fewer rows; Explainer(...)(X) does not need it",
            )
        )

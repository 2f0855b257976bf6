r"""Shapley values by their definition, in plain NumPy: the reference that ``verify`` holds every solver against.

.. math:: \phi_j = \sum_{S \not\ni j} \frac{|S|!\, (d - 1 - |S|)!}{d!} \bigl(v(S \cup j) - v(S)\bigr)

Beyond ten players a product game takes the integral of its multilinear extension, term by term, and an additive game the coalitions of
each of its terms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exactshap.games import AdditiveGame, ProductGame, all_masks

__all__ = ["ALL_COALITIONS", "reference_values"]

ALL_COALITIONS = 10  # players: up to here all 2^d coalitions are evaluated
FACTORS = 2**22  # of one tile of terms
MOST_FACTORS = 2**31  # of all of them at all nodes: half a minute


def reference_values(game: Any) -> np.ndarray | None:
    """Return values (n_rows, n_players[, n_outputs]) by the definition; None where that is out of reach."""
    if game.n_players <= ALL_COALITIONS:
        return by_coalitions(np.asarray(game.value(all_masks(game.n_players))), game.n_players)
    if isinstance(game, AdditiveGame) and max(map(len, game.subsets), default=0) <= ALL_COALITIONS:
        return _by_terms(game)
    return _by_quadrature(game) if isinstance(game, ProductGame) else None


def by_coalitions(values: np.ndarray, n_players: int) -> np.ndarray:
    """Return values (n_rows, n_players, ...) from v of all coalitions.

    They are (n_rows, 2^d, ...), in the order of ``all_masks``.
    """
    codes = np.arange(2**n_players)
    sizes = all_masks(n_players).sum(axis=1)
    share = np.array([math.factorial(s) * math.factorial(n_players - 1 - s) for s in range(n_players)]) / math.factorial(
        n_players
    )
    found = np.zeros((len(values), n_players, *values.shape[2:]))
    for j in range(n_players):
        without = codes[codes >> j & 1 == 0]
        gains = values[:, without | 1 << j] - values[:, without]
        found[:, j] = np.einsum("c,rc...->r...", share[sizes[without]], gains)
    return found


def _by_terms(game: AdditiveGame) -> np.ndarray:
    """Add up each term's values over the coalitions of its players."""
    tail = () if game.single_output else (game.n_outputs,)
    found = np.zeros((game.n_rows or 1, game.n_players, *tail))
    for subset, table in zip(game.subsets, game.tables, strict=True):
        values = np.asarray(table).reshape(-1, 2 ** len(subset), game.n_outputs)
        part = by_coalitions(values, len(subset)) if subset else np.zeros((len(values), 0, game.n_outputs))
        found[:, list(subset)] += part[..., 0] if game.single_output else part
    return found


def _by_quadrature(game: ProductGame) -> np.ndarray | None:
    """Integrate d/dt of the multilinear extension exactly, with ceil(d / 2) nodes."""
    n_rows, n_terms, d = game.a.shape
    if game.a.size * len(game.b) * (d // 2 + 1) > MOST_FACTORS:
        return None
    nodes, weights = np.polynomial.legendre.leggauss(d // 2 + 1)
    mixture = np.full(len(game.b), 1.0 / len(game.b)) if game.weights is None else game.weights
    found = np.zeros((n_rows, d, game.n_outputs))
    step = max(1, FACTORS // (len(game.b) * d))
    for i in range(n_rows):
        for start in range(0, n_terms, step):
            terms = slice(start, start + step)
            a, b, c = game.a[i, None, terms], game.b[:, terms], game.c[terms]
            for t, w in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
                factors = t * a + (1.0 - t) * b
                ones = np.ones_like(factors[..., :1])
                before = np.cumprod(np.concatenate([ones, factors[..., :-1]], axis=-1), axis=-1)
                after = np.cumprod(np.concatenate([ones, factors[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
                found[i] += w * np.einsum("m,mlj,lk->jk", mixture, (a - b) * before * after, c).real
    return found[..., 0] if game.single_output else found

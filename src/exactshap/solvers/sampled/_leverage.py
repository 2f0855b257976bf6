"""True leverage scores of the polynomial regression: how much each size of coalition decides, for any order."""

from __future__ import annotations

import functools
import math

import numpy as np

from exactshap.solvers.sampled._counts import kernel_weights, size_counts
from exactshap.solvers.sampled._frontier import additive_frontier, unanimity_columns


@functools.lru_cache(maxsize=64)
def leverage_scores(n_players: int, order: int) -> np.ndarray:
    r"""Return the probability of each size 1..d-1 under the leverage scores of the order-k problem, of shape (d - 1,).

    With :math:`A^\top A = \sum_S \mu(S) x_S x_S^\top` projected onto the efficiency constraint's null space, the score of S is
    :math:`\mu(S)\, x_S^\top (A^\top A)^+ x_S`, a function of ``|S|`` alone; the scores of all coalitions add up to the rank. Order 1
    gives equal sizes. Entries of :math:`A^\top A` follow from ``u = |T | T'|`` alone:
    :math:`\sum_{s \ge u} C(d - u, s - u) \mu(s)`.
    """
    d = n_players
    if order == 1 or d <= 2:
        return np.full(d - 1, 1.0 / (d - 1))
    sets = additive_frontier(d, order)
    members = unanimity_columns(np.eye(d, dtype=bool), tuple((j,) for j in range(d)))
    rows = np.array([members[list(players)].sum(axis=0) for players in sets])
    union = (rows.sum(axis=1)[:, None] + rows.sum(axis=1) - rows @ rows.T).astype(int)
    mu = kernel_weights(d)
    entry = np.array([sum(math.comb(d - u, s - u) * mu[s - 1] for s in range(max(u, 1), d)) for u in range(d + 1)])
    gram = entry[union]
    gram = gram - gram.mean(axis=0)
    gram = gram - gram.mean(axis=1, keepdims=True)
    inverse = np.linalg.pinv(gram, rcond=1e-11, hermitian=True)
    prefixes = np.tri(d - 1, d, dtype=bool)  # one coalition of each size: symmetry does the rest
    columns = unanimity_columns(prefixes, sets)
    columns = columns - columns.mean(axis=1, keepdims=True)
    scores = size_counts(d)[1:-1] * mu * np.einsum("sp,pq,sq->s", columns, inverse, columns)
    scores = scores / scores.sum()
    scores.setflags(write=False)
    return scores

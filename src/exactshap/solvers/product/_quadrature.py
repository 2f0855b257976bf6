r"""Solve product games by quadrature: exact, polynomial in the players, without cancellation.

.. math:: \phi_j = \int_0^1 \sum_l c_l\, (a_{lj} - b_{lj}) \prod_{k \ne j} \bigl(t\, a_{lk} + (1 - t)\, b_{lk}\bigr)\, \mathrm{d}\mu(t)

Functional games of exponential terms have b = 1, and factors that the compiled sweep makes as it needs them: no array holds them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap.games import ProductGame
from exactshap.semivalues import Measure, Semivalue, find
from exactshap.solvers.core import Part, RuleArrays, Solution, coarse_bound, count_sets, enough_nodes, set_sizes

# Half the time of `fill_interactions` with sets of one player: one sweep forwards and one backwards for all players.
fill_singles = kernel("product.fill_singles(a, b, c, weights, rows, nodes, node_weights, out)")
fill_interactions = kernel("product.fill_interactions(a, b, c, weights, size, nodes, node_weights, out)")
fill_ends = kernel("product.fill_ends(a, b, c, weights, empty, full, scale, spread)")

# Half the time of arrays of factors and `fill_singles` (an SVR of 600 rows and 8 to 60 columns, 300 explained), and no array of them.
fill_functional = kernel("product.fill_functional(X, expansion, rules, values, full, largest)")


def solve_product(game: ProductGame, semivalue: Semivalue, order: int, *, all_nodes: bool = False) -> Solution:
    r"""Solve a product game for every set of 1..order players.

    .. math:: \phi_T = \int_0^1 \sum_l c_l \prod_{j \in T} (a_{lj} - b_{lj})
              \prod_{k \notin T} \bigl(t\, a_{lk} + (1 - t)\, b_{lk}\bigr)\, \mathrm{d}\mu(t)

    The integrand has degree d - |T|, so that ceil((d - |T| + 1) / 2) Gauss-Jacobi nodes are exact. Fewer are used when the
    a-priori bound of ``_nodes`` puts the error below rounding, for sets of any size; ``all_nodes=True`` forbids it. Cost
    O(n_rows n_background n_terms n_nodes n_players) for order 1, times C(d, order) / d beyond.
    """
    count_sets(game.n_players, order)  # refuses what cannot fit
    dtype = np.complex128 if game.is_complex else np.float64
    a, b = (np.ascontiguousarray(array.transpose(0, 2, 1), dtype) for array in (game.a, game.b))
    c = np.ascontiguousarray(game.c.T, dtype)
    part = solve_terms(a, b, c, np.array(game.weights), semivalue, order, all_nodes=all_nodes)
    return part.finish_game(game, semivalue, order, constant=game.constant)


def solve_terms(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    weights: np.ndarray,
    semivalue: Semivalue,
    order: int,
    *,
    all_nodes: bool = False,
) -> Part:
    """Return the part of terms laid out for the kernels; readers that stream call this on one block of terms after another.

    ``a`` (n_rows, n_players, n_terms), ``b`` (n_background, n_players, n_terms) and ``c`` (n_outputs, n_terms) are C-contiguous, of one dtype. The number
    of nodes of a row depends on that row alone, so that results do not depend on the blocks of rows.
    """
    (n_rows, n_players, _), n_outputs = a.shape, c.shape[0]
    counts = [math.comb(n_players, size) for size in set_sizes(order)]
    empty, full = np.zeros((n_rows, n_outputs)), np.zeros((n_rows, n_outputs))
    scale, spread = np.empty(n_rows), np.empty(n_rows)
    fill_ends(a, b, c, weights, empty, full, scale, spread)
    values = np.zeros((n_rows, sum(counts), n_outputs))
    relative, most = np.zeros(n_rows), 0
    for size, offset in zip(set_sizes(order), np.cumsum([0, *counts[:-1]]), strict=True):
        measure, degree = semivalue.of_size(size, order), n_players - size
        # For each row the fewest nodes that truncate below rounding, 0 for exact rules
        exact = degree // 2 + 1
        fewest = np.array([exact if all_nodes else enough_nodes(float(s), degree, measure) for s in spread], int)
        needed = np.where(fewest < exact, fewest, 0)
        # Rows that need equally many nodes are solved together
        for n_nodes in sorted(set(needed.tolist())):
            rows = np.flatnonzero(needed == n_nodes)
            rule = measure.rule(2 * n_nodes - 1 if n_nodes else degree)
            nodes, node_weights = (np.asarray(part, float) for part in rule)
            block = np.zeros((len(rows), counts[size - 1], n_outputs))
            if size == 1:
                fill_singles(a, b, c, weights, rows, nodes, node_weights, block)
            else:
                part = a if len(rows) == n_rows else a[rows]
                fill_interactions(part, b, c, weights, size, nodes, node_weights, block)
            values[rows, offset : offset + counts[size - 1]] = block
            most = max(most, len(nodes))
            if n_nodes:
                relative[rows] = np.maximum(relative[rows], [coarse_bound(s, n_nodes, measure) for s in spread[rows]])
    error_bound = 2.0**order * relative * scale
    return Part(values, empty, full, "quadrature", error_bound=error_bound, scale=scale, n_nodes=most)


def set_sums(h: Sequence[np.ndarray], index: str | Semivalue = "shapley") -> list[np.ndarray]:
    """Return each player's value in the game prod_{k in S} (1 + h_k). The h_k are d arrays of one shape."""
    total: list[np.ndarray] = [np.zeros_like(one) for one in h]
    # Factors are computed twice, to hold few arrays of all rows by all rows in memory
    for t, weight in zip(*find(index).rule(degree=len(h) - 1), strict=True):
        # Products of all other factors from both sides, without division: 1 + t h may be zero
        before, after = [np.full_like(h[0], weight)], [np.ones_like(h[0])]
        for one, other in zip(h[:-1], h[:0:-1], strict=True):
            before.append(before[-1] * (1.0 + t * one))
            after.append(after[-1] * (1.0 + t * other))
        for found, left, right, one in zip(total, before, reversed(after), h, strict=True):
            found += left * right * one
    return total


class ExponentialTerms(NamedTuple):
    r"""Hold terms :math:`c_l \prod_k \exp(-\gamma_k u_{lk}^2 - \lambda_k |u_{lk}|)`, u = x - point."""

    points: np.ndarray  # (n_players, n_terms)
    squared: np.ndarray  # (n_players,): gamma, none of them negative
    absolute: np.ndarray  # (n_players,): lambda, likewise
    coefficients: np.ndarray  # (n_outputs, n_terms)


class GradedRules(NamedTuple):
    """Hold rules for the kernel, their numbers of nodes, and relative errors."""

    arrays: Handle
    sizes: np.ndarray
    errors: np.ndarray


@functools.lru_cache(maxsize=64)
def graded_rules(semivalue: Semivalue, n_players: int, order: int = 1, *, even: bool = False) -> GradedRules:
    """Return the rules for single players, the last one for every spread; ``even`` ones have a node of weight 0 more if need be."""
    degree, measure = n_players - 1, semivalue.of_size(1, order)
    counts: list[int] = []
    limits: list[float] = []
    # Even sizes only: half as many rules, with at most one node more than a strip needs
    for count in range(2, degree // 2 + 1, 2):
        limit = _largest_spread(count, degree, measure)
        if limit > 0.0:
            counts.append(count)
            limits.append(limit)
        if limit >= n_players / 2:  # the largest possible spread, as factors lie between 0 and 1
            break
    rules = [measure.rule(2 * count - 1) for count in counts]
    errors = [coarse_bound(limit, count, measure) for limit, count in zip(limits, counts, strict=True)]
    # The largest spread needs the exact rule
    if not limits or limits[-1] < n_players / 2:
        rules.append(measure.rule(degree))
        limits.append(np.inf)
        errors.append(0.0)
    if even:
        rules = [(np.append(n, 0.5), np.append(w, 0.0)) if len(n) % 2 else (n, w) for n, w in rules]
    # A row reports its largest rule, but a smaller one may have a larger error: hence the running maximum
    arrays = RuleArrays.of(rules, limits)
    return GradedRules(Handle(arrays), np.diff(arrays.offsets), np.maximum.accumulate(errors))


def _largest_spread(n_nodes: int, degree: int, measure: Measure) -> float:
    """Return the largest spread for which that many nodes are enough. It is at most half the number of players."""
    # In sixteenths, as ``coarse_bound`` rounds spreads: 8 (degree + 1) of them are half the players
    low, high = 0, 8 * (degree + 1) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough_nodes(middle / 16.0, degree, measure) <= n_nodes else (low, middle)
    return low / 16.0


def solve_functional(rules: GradedRules, X: np.ndarray, terms: ExponentialTerms) -> Part:
    r"""Solve the functional games of some rows (n_rows, n_players) for single players.

    .. math:: \phi_j = \int_0^1 \sum_l c_l (a_{lj} - 1) \prod_{k \ne j} \bigl(1 + t (a_{lk} - 1)\bigr)\, \mathrm{d}\mu(t)

    Strips of neighbouring terms use as few nodes as the a-priori bound allows, for each row. Cost
    O(n_rows n_terms n_nodes n_players), without further memory.
    """
    n_rows, n_outputs = len(X), len(terms.coefficients)
    values, full = np.zeros((n_rows, X.shape[1], n_outputs)), np.zeros((n_rows, n_outputs))
    largest = np.zeros(n_rows, np.int64)
    fill_functional(np.ascontiguousarray(X, dtype=float), terms, rules.arrays, values, full, largest)
    scale = np.full(n_rows, np.abs(terms.coefficients).max(axis=0, initial=0.0).sum())
    return Part(
        values,
        np.tile(terms.coefficients.sum(axis=1), (n_rows, 1)),
        full,
        "quadrature",
        error_bound=2.0 * rules.errors[largest] * scale,
        scale=scale,
        n_nodes=int(rules.sizes[largest].max(initial=0)),
    )

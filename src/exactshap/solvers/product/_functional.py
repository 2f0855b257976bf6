"""Solve functional games of exponential kernels without an array of factors."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap.semivalues import Measure, Semivalue
from exactshap.solvers.core import Part, RuleArrays, coarse_bound, enough_nodes

# Half the time of arrays of factors and `fill_singles` (an SVR of 600 rows and 8 to 60 columns, 300 explained), and no array of them.
fill_functional = kernel("product.fill_functional(X, expansion, rules, values, full, largest)")


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
def functional_rules(semivalue: Semivalue, n_players: int) -> GradedRules:
    """Return the rules for single players, the last one for every spread."""
    degree, measure = n_players - 1, semivalue.of_size(1, 1)
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

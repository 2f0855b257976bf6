"""Quadrature rules on [0, 1] that measures are made of: Gauss-Jacobi nodes and Chebyshev points."""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np

__all__ = ["Rule", "chebyshev_functionals", "chebyshev_points", "gauss_jacobi"]

Rule = tuple[np.ndarray, np.ndarray]


def chebyshev_points(n: int) -> np.ndarray:
    """Return the n + 1 points (1 + cos(pi j / n)) / 2, from 1 down to 0."""
    return np.cos(np.pi * np.arange(n + 1) / (2 * n)) ** 2


def chebyshev_functionals(moments: list[Fraction]) -> np.ndarray:
    """Return the functional of T_k(2 t - 1), k = 0, 1, ..., from its moments; T_k has whole coefficients."""
    found = []
    previous, current = [-1, 2], [1]  # T_1 = T_{-1} begins the recursion T_{k+1} = 2 (2 t - 1) T_k - T_{k-1}
    for _ in moments:
        found.append(float(sum((c * moment for c, moment in zip(current, moments, strict=False)), Fraction(0))))
        following = [0, *(4 * c for c in current)]
        for r, c in enumerate(current):
            following[r] -= 2 * c
        for r, c in enumerate(previous):
            following[r] -= c
        previous, current = current, following
    return np.array(found)


@functools.lru_cache(maxsize=1024)
def gauss_jacobi(n_nodes: int, p: float, q: float) -> Rule:
    """Return nodes and weights on [0, 1] for the density of Beta(p, q), read-only, exact up to degree ``2 n_nodes - 1``."""
    from scipy.special import roots_jacobi, roots_legendre

    if p == q == 1.0:
        x, weights = roots_legendre(n_nodes)
    else:
        x, weights = roots_jacobi(n_nodes, q - 1.0, p - 1.0)
    nodes, weights = (1.0 + x) / 2.0, weights / weights.sum()
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights

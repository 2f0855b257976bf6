"""Compiled evaluation of homogeneous functions from their piecewise polynomials on the faces of a cube."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["fill_hybrid_means", "fill_values"]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _evaluate(x, coefficients, degree, powers):
    r"""Return f(x) = r^p P(x / r): r the largest |x_j|, P the polynomial of its face's cell, by Horner's rule.

    ``coefficients (n_faces, n_cells, n_cells_1, n_powers, n_powers_1)``; the axes _1 have length 1 for two columns.
    ``powers (n_powers_1,)`` is working memory: Horner's rule in s runs for all powers of t side by side.
    """
    largest = 0
    for j in range(1, x.shape[0]):
        if abs(x[j]) > abs(x[largest]):
            largest = j
    r = abs(x[largest])
    if r == 0.0:
        return 0.0
    face = 2 * largest + (1 if x[largest] < 0.0 else 0)
    n_cells = coefficients.shape[1]
    u = (x[0 if largest != 0 else 1] / r + 1.0) * (0.5 * n_cells)
    cell = min(int(u), n_cells - 1)
    s = 2.0 * (u - cell) - 1.0
    other, t = 0, 0.0
    if x.shape[0] == 3:
        v = (x[2 if largest != 2 else 1] / r + 1.0) * (0.5 * n_cells)
        other = min(int(v), n_cells - 1)
        t = 2.0 * (v - other) - 1.0
    n_powers = coefficients.shape[3]
    width = powers.shape[0]
    for b in range(width):
        powers[b] = coefficients[face, cell, other, n_powers - 1, b]
    for a in range(n_powers - 2, -1, -1):
        for b in range(width):
            powers[b] = powers[b] * s + coefficients[face, cell, other, a, b]
    value = powers[width - 1]
    for b in range(width - 2, -1, -1):
        value = value * t + powers[b]
    return value if degree == 0 else value * r


@njit(nogil=True, cache=True, error_model="numpy")
def fill_values(X, coefficients, degree, out):
    """Set out (n_rows,) to f(x) for X (n_rows, n_columns)."""
    powers = np.empty(coefficients.shape[4])
    for i in range(X.shape[0]):
        out[i] = _evaluate(X[i], coefficients, degree, powers)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_hybrid_means(X, background, weights, inside, coefficients, degree, out):
    r"""Set out (n_rows, n_coalitions) to sum_z w_z f(x inside, z outside), as the first value plus the mean deviation from it.

    ``inside (n_coalitions, n_columns)``. The order of summation is that of the background: equal columns give exact zeros.
    """
    n_columns = X.shape[1]
    hybrid, powers = np.empty(n_columns), np.empty(coefficients.shape[4])
    for i in range(X.shape[0]):
        for S in range(inside.shape[0]):
            origin, deviation = 0.0, 0.0
            for z in range(background.shape[0]):
                for j in range(n_columns):
                    hybrid[j] = X[i, j] if inside[S, j] else background[z, j]
                value = _evaluate(hybrid, coefficients, degree, powers)
                if z == 0:
                    origin = value
                deviation += weights[z] * (value - origin)
            out[i, S] = origin + deviation

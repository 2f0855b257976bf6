"""Compiled passes of the process over coalitions: fused, so that memory traffic does not rival the factorisation."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["correct_curvature", "fill_singles", "fill_sum_and_difference", "fill_upper", "fill_weighted"]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_sum_and_difference(scale, mirrored_scale, exponential, difference):
    """Set ``exponential`` (n, n), e, to a e + b / e and ``difference`` to a e - b / e, of ``scale`` a and ``mirrored_scale`` b."""
    for i in range(exponential.shape[0]):
        for j in range(exponential.shape[1]):
            same, mirrored = scale * exponential[i, j], mirrored_scale / exponential[i, j]
            exponential[i, j] = same + mirrored
            difference[i, j] = same - mirrored


@njit(nogil=True, cache=True, error_model="numpy")
def fill_upper(summed, constant, diagonal, out):
    """Set the upper triangle of ``out`` (n, n) to summed + constant, plus ``diagonal`` on the diagonal."""
    for i in range(out.shape[0]):
        row, given = out[i, i:], summed[i, i:]
        for j in range(len(row)):
            row[j] = given[j] + constant
        row[0] += diagonal


@njit(nogil=True, cache=True, error_model="numpy")
def fill_weighted(inverse, dual, scaled, difference):
    """Set ``difference`` (n, n) to D times it, all of it above its diagonal, doubled.

    ``D = (n_outputs K^-1 - dual scaled^T) / 2``; only the upper triangle of ``inverse`` is read.
    """
    n, n_outputs = dual.shape
    room, columns = np.empty(n), dual.T.copy()
    for i in range(n):
        slope, above, row = (
            room[i:],
            inverse[i, i:],
            difference[i, i:],
        )  # from the diagonal on: indices from 0 become vector code
        for j in range(len(row)):
            slope[j] = n_outputs * above[j]
        for k in range(n_outputs):
            factor, column = scaled[i, k], columns[k, i:]
            for j in range(len(row)):
                slope[j] -= factor * column[j]
        for j in range(len(row)):
            row[j] *= slope[j]
        row[0] *= 0.5
        difference[i, :i] = 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def fill_singles(points, rho, nodes, weights, out):
    r"""Add :math:`\sum_q w_q\, 2 \rho_j x_j / (1 + \rho_j) \prod_{k \ne j} (1 + u_q \rho_k x_k) / (1 + \rho_k)` to ``out`` (n, d)."""
    d = points.shape[1]
    base, slope = 1.0 / (1.0 + rho), rho / (1.0 + rho)
    for i in range(points.shape[0]):
        for q in range(nodes.shape[0]):
            u = 2.0 * nodes[q] - 1.0
            product = weights[q]
            for k in range(d):
                product *= base[k] + u * slope[k] * points[i, k]
            for j in range(d):
                step = slope[j] * points[i, j]
                out[i, j] += product * 2.0 * step / (base[j] + u * step)  # the factor is positive: rho < 1


@njit(nogil=True, cache=True, error_model="numpy")
def correct_curvature(curvature, steps, turns, convex):
    r"""Update ``curvature`` (n, n) by each step s (n_steps, n) and turn y of the gradient on it: damped BFGS (Nocedal & Wright 2006, 18.2).

    .. math:: B \leftarrow B - \frac{B s s^\top B}{s^\top B s} + \frac{r r^\top}{s^\top r}, \qquad r = t y + (1 - t) B s

    with the largest t in [0, 1] that leaves :math:`s^\top r \ge c\, s^\top B s`, c = ``convex``: B stays positive definite.
    """
    n_steps, n = steps.shape
    old, mixed = np.empty(n), np.empty(n)
    for k in range(n_steps):
        supposed, seen = 0.0, 0.0
        for i in range(n):
            old[i] = 0.0
            for j in range(n):
                old[i] += curvature[i, j] * steps[k, j]
            supposed += steps[k, i] * old[i]
            seen += steps[k, i] * turns[k, i]
        share = 1.0 if seen >= convex * supposed else (1.0 - convex) * supposed / (supposed - seen)
        mixed[:] = share * turns[k] + (1.0 - share) * old
        gained = share * seen + (1.0 - share) * supposed
        for i in range(n):
            for j in range(n):
                curvature[i, j] += mixed[i] * mixed[j] / gained - old[i] * old[j] / supposed

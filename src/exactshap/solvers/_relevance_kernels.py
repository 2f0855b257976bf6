"""Compiled passes of the process over coalitions: fused, so that memory traffic does not rival the factorisation."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["correct_curvature", "fill_singles", "fill_sum_and_difference", "fill_upper", "fill_weighted"]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_sum_and_difference(scale, same, difference):
    """Set ``same`` (n, n) to K_s + K_m and ``difference`` to K_s - K_m, where K_s is what ``same`` was and K_m = ``scale`` / K_s."""
    for i in range(same.shape[0]):
        for j in range(same.shape[1]):
            mirrored = scale / same[i, j]
            difference[i, j] = same[i, j] - mirrored
            same[i, j] += mirrored


@njit(nogil=True, cache=True, error_model="numpy")
def fill_upper(summed, constant, diagonal, out):
    """Set the upper triangle of ``out`` (n, n) to summed + constant, plus ``diagonal`` on the diagonal."""
    for i in range(out.shape[0]):
        for j in range(i, out.shape[0]):
            out[i, j] = summed[i, j] + constant
        out[i, i] += diagonal


@njit(nogil=True, cache=True, error_model="numpy")
def fill_weighted(inverse, dual, scaled, summed, difference):
    r"""Set ``difference`` (n, n) to D times it, all of it above its diagonal, doubled; return :math:`\sum D \circ` ``summed`` and tr D.

    ``D = (n_outputs K^-1 - dual scaled^T) / 2`` is the slope of the negative log evidence in the covariance; only the upper triangle
    of ``inverse`` is read.
    """
    n, n_outputs = dual.shape
    total, trace = 0.0, 0.0
    for i in range(n):
        row_total = 0.0
        for j in range(i, n):
            slope = n_outputs * inverse[i, j]
            for k in range(n_outputs):
                slope -= scaled[i, k] * dual[j, k]
            row_total += slope * summed[i, j]
            if i == j:
                total -= 0.5 * slope * summed[i, i]
                trace += 0.5 * slope
                slope *= 0.5
            difference[i, j] *= slope
        difference[i, :i] = 0.0
        total += row_total
    return total, trace


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

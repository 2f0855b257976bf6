"""Compiled passes of the process over coalitions: fused, so that memory traffic does not rival the factorisation."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["fill_descent", "fill_lower", "fill_singles", "fill_weighted"]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_lower(same, mirrored, constant, diagonal, out):
    """Set the lower triangle of ``out`` (n, n) to same + mirrored + constant, plus ``diagonal`` on the diagonal."""
    for i in range(out.shape[0]):
        for j in range(i + 1):
            out[i, j] = same[i, j] + mirrored[i, j] + constant
        out[i, i] += diagonal


@njit(nogil=True, cache=True, error_model="numpy")
def fill_weighted(inverse, dual, scaled, same, mirrored):
    r"""Set ``same`` (n, n) to :math:`D \circ (K_s - K_m)`, all of it below its diagonal, doubled; return :math:`\sum D \circ (K_s + K_m)`, tr D.

    ``D = (n_outputs K^-1 - dual scaled^T) / 2`` is the slope of the negative log evidence in the covariance; only the lower triangle
    of ``inverse`` is read.
    """
    n, n_outputs = dual.shape
    total, trace = 0.0, 0.0
    for i in range(n):
        row_total = 0.0
        for j in range(i + 1):
            slope = n_outputs * inverse[i, j]
            for k in range(n_outputs):
                slope -= scaled[i, k] * dual[j, k]
            row_total += slope * (same[i, j] + mirrored[i, j])
            if i == j:
                total -= 0.5 * slope * (same[i, i] + mirrored[i, i])
                trace += 0.5 * slope
                slope *= 0.5
            same[i, j] = slope * (same[i, j] - mirrored[i, j])
        same[i, i + 1 :] = 0.0
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
def fill_descent(steps, turns, gradient, out):
    """Set ``out`` (n,) to minus the inverse Hessian that steps and turns (n_steps, n) tell of times the gradient.

    The two-loop recursion of limited-memory BFGS; without steps the gradient itself, of at most unit length in each coordinate.
    """
    n_steps, n = steps.shape
    out[:] = -gradient
    if n_steps == 0:
        out /= max(1.0, np.sqrt((gradient**2).sum() / n))
        return
    shares = np.empty(n_steps)
    for k in range(n_steps - 1, -1, -1):
        shares[k] = (steps[k] * out).sum() / (steps[k] * turns[k]).sum()
        out -= shares[k] * turns[k]
    out *= (steps[-1] * turns[-1]).sum() / (turns[-1] ** 2).sum()
    for k in range(n_steps):
        out += (shares[k] - (turns[k] * out).sum() / (steps[k] * turns[k]).sum()) * steps[k]

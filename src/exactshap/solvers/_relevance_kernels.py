"""Compiled passes over a covariance's lower triangle: fused, so that memory traffic does not rival the factorisation."""

from __future__ import annotations

from numba import njit

__all__ = ["fill_lower", "fill_weighted"]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_lower(same, mirrored, constant, diagonal, out):
    """Set the lower triangle of ``out`` (n, n) to same + mirrored + constant, plus ``diagonal`` on the diagonal."""
    for i in range(out.shape[0]):
        for j in range(i + 1):
            out[i, j] = same[i, j] + mirrored[i, j] + constant
        out[i, i] += diagonal


@njit(nogil=True, cache=True, error_model="numpy")
def fill_weighted(inverse, dual, scaled, same, mirrored, out):
    r"""Set ``out`` (n, n) to :math:`D \circ (K_s - K_m)` below its diagonal, doubled; return :math:`\sum D \circ (K_s + K_m)`, tr D.

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
            out[i, j] = slope * (same[i, j] - mirrored[i, j])
            row_total += slope * (same[i, j] + mirrored[i, j])
            if i == j:
                total -= 0.5 * slope * (same[i, i] + mirrored[i, i])
                trace += 0.5 * slope
                out[i, i] *= 0.5
        total += row_total
    return total, trace

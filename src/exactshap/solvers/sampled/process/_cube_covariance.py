"""Covariances of a process over coalitions, from the two sides of a pair, and their triangular factors."""

from __future__ import annotations

import numpy as np

from exactshap.solvers.sampled.process._relevance_kernels import fill_sum_and_difference, fill_upper

__all__ = ["JITTER", "covariance", "factorise", "invert_triangle", "sum_and_difference"]

JITTER = 1e-10  # relative to the kernel's variance of 1: far below any white part worth having
TRIANGLE_ROWS = 64  # rows of a triangle that is inverted at once
BELOW = np.tri(TRIANGLE_ROWS, dtype=bool)


def covariance(points: np.ndarray, others: np.ndarray, theta: np.ndarray, sign: int) -> np.ndarray:
    """Return (k(x, x') + sign k(x, -x')) / 2 for rows of -1 and 1, or k itself; all but the odd half get a free constant."""
    total = theta.sum()
    gram = (points * theta) @ others.T
    matrix = np.exp(0.5 * (gram - total))
    if sign:
        mirrored = np.exp(-0.5 * (gram + total), out=gram)
        mirrored *= sign
        matrix += mirrored
        matrix *= 0.5
    if sign >= 0:
        matrix += 1.0
    return matrix


def sum_and_difference(
    points: np.ndarray, theta: np.ndarray, sign: int, work: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return K_s + K_m and K_s - K_m, in ``work`` (2, n, n) if there is any.

    K_s = k(x, x') and K_m = sign k(x, -x'), halved where both count.
    """
    summed, difference = np.empty((2, len(points), len(points))) if work is None else work
    spread, share = theta.sum(), 0.5 if sign else 1.0
    np.matmul(points * (0.5 * theta), points.T, out=summed)
    if spread < 600.0:  # k(x, -x') = exp(-spread) / k(x, x'): nothing over- or underflows
        scale = share * np.exp(-0.5 * spread)
        fill_sum_and_difference(scale, sign * scale, np.exp(summed, out=summed), difference)
    else:
        mirrored = sign * share * np.exp(-summed - 0.5 * spread)
        summed[:] = share * np.exp(summed - 0.5 * spread)
        np.subtract(summed, mirrored, out=difference)
        summed += mirrored
    return summed, difference


def factorise(summed: np.ndarray, sign: int, white: float, out: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the lower Cholesky factor L, K = L L^T, of a covariance from K_s + K_m, in ``out``; above its diagonal is no zero."""
    from scipy.linalg import lapack

    fill_upper(summed, float(sign >= 0), white + JITTER, out)
    factor, failed = lapack.dpotrf(out.T, lower=1, clean=0, overwrite_a=1)  # the transpose is in LAPACK's order
    return factor, bool(failed)


def invert_triangle(lower: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Set the lower triangle of ``out``, zero above it, to the inverse of ``lower``; halves first, so that most are matrix products."""
    from scipy.linalg import blas, lapack

    n = len(lower)
    if n <= TRIANGLE_ROWS:
        np.copyto(out, lapack.dtrtri(lower, lower=1)[0], where=BELOW[:n, :n])
        return out
    first, last = slice(0, n // 2), slice(n // 2, n)
    product = blas.dtrmm(-1.0, invert_triangle(lower[first, first], out[first, first]), lower[last, first], side=1, lower=1)
    inverse = invert_triangle(lower[last, last], out[last, last])
    out[last, first] = blas.dtrmm(1.0, inverse, product, lower=1, overwrite_b=1)
    return out

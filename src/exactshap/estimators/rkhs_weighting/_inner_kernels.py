"""Inner products whose bits do not depend on how many rows are asked for, unlike those of BLAS."""

from __future__ import annotations

from numba import njit

__all__ = ["fill_inner"]

TERM_BLOCK = 1024  # 8 KiB of results and of each column of parameters: they stay in the first cache


@njit(nogil=True, cache=True, error_model="numpy")
def fill_inner(X, W, out):
    """Add X W to out (n_rows, n_terms), X (n_rows, n_columns), W (n_columns, n_terms): column by column, four to a pass."""
    n_terms, n_columns = W.shape[1], W.shape[0]
    for start in range(0, n_terms, TERM_BLOCK):
        stop = min(start + TERM_BLOCK, n_terms)
        for i in range(X.shape[0]):
            for j in range(0, n_columns - 3, 4):
                a, b, c, d = X[i, j], X[i, j + 1], X[i, j + 2], X[i, j + 3]
                for t in range(start, stop):
                    out[i, t] = (((out[i, t] + a * W[j, t]) + b * W[j + 1, t]) + c * W[j + 2, t]) + d * W[j + 3, t]
            for j in range(n_columns - n_columns % 4, n_columns):
                for t in range(start, stop):
                    out[i, t] += X[i, j] * W[j, t]

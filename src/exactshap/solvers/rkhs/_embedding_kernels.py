"""Compiled products of kernel factors: memory traffic, not arithmetic, is what they cost."""

from __future__ import annotations

from numba import njit

__all__ = ["fill_product", "mirror"]

TILE = 2048  # 16 KiB of results stay in the first cache while the factors stream by
SQUARE = 64  # rows and columns of a tile that is read across its grain: 32 KiB


@njit(nogil=True, cache=True, error_model="numpy")
def fill_product(factors, chosen, first, out):
    """Set ``out`` (n_values,) to the product of the rows ``chosen`` of ``factors`` (n_players, n_all) from column ``first`` on.

    Ones where none is chosen.
    """
    n_values = out.shape[0]
    for start in range(0, n_values, TILE):
        stop = min(start + TILE, n_values)
        if chosen.shape[0] == 0:
            out[start:stop] = 1.0
        else:
            out[start:stop] = factors[chosen[0], first + start : first + stop]
        for k in range(1, chosen.shape[0]):
            row = factors[chosen[k], first : first + n_values]
            for i in range(start, stop):
                out[i] *= row[i]


@njit(nogil=True, cache=True, error_model="numpy")
def mirror(matrix):
    """Copy what is above the diagonal of ``matrix`` (n, n) below it."""
    n = matrix.shape[0]
    for top in range(0, n, SQUARE):
        for left in range(top, n, SQUARE):
            for i in range(top, min(top + SQUARE, n)):
                for j in range(max(i + 1, left), min(left + SQUARE, n)):
                    matrix[j, i] = matrix[i, j]

"""Compiled products of kernel factors: memory traffic, not arithmetic, is what they cost."""

from __future__ import annotations

from numba import njit

__all__ = ["fill_product"]

TILE = 2048  # 16 KiB of results stay in the first cache while the factors stream by


@njit(nogil=True, cache=True, error_model="numpy")
def fill_product(factors, chosen, out):
    """Set ``out`` (n_values,) to the product of the rows ``chosen`` of ``factors`` (n_players, n_values); ones for none."""
    n_values = out.shape[0]
    for start in range(0, n_values, TILE):
        stop = min(start + TILE, n_values)
        if chosen.shape[0] == 0:
            out[start:stop] = 1.0
        else:
            out[start:stop] = factors[chosen[0], start:stop]
        for k in range(1, chosen.shape[0]):
            row = factors[chosen[k]]
            for i in range(start, stop):
                out[i] *= row[i]

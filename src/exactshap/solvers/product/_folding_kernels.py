"""Compiled sweeps over all coalitions of product games with a precomputed background (``src/native/product/folding.cpp``)."""

from __future__ import annotations

from exactshap._native import kernel

__all__ = ["LANES", "fill_coalitions", "fill_folded", "fill_set_values"]

LANES = 4  # `folded` has a multiple of so many terms

fill_folded = kernel("product.fill_folded(b, weights, n_low, out)")
fill_coalitions = kernel("product.fill_coalitions(a, folded, c, out)")
fill_set_values = kernel("product.fill_set_values(table, sets, weights, out)")

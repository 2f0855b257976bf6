"""Compiled sweeps over sums of small terms (``src/native/additive/terms.cpp``)."""

from __future__ import annotations

from exactshap._native import kernel

__all__ = ["fill_fold", "fill_lookups", "fill_sets"]

fill_sets = kernel("additive.fill_sets(tables, members, sizes, positions, weights, out, empty, full, scale)")
fill_fold = kernel("additive.fill_fold(scores, inside, outside, weights, out)")
fill_lookups = kernel("additive.fill_lookups(cells, shape, strides, folded, out)")

"""Compiled sweeps over product games (``src/native/product/quadrature.cpp``)."""

from __future__ import annotations

from exactshap._native import kernel

__all__ = ["fill_ends", "fill_interactions", "fill_singles"]

fill_singles = kernel("product.fill_singles(a, b, c, weights, rows, nodes, node_weights, out)")
fill_interactions = kernel("product.fill_interactions(a, b, c, weights, size, nodes, node_weights, out)")
fill_ends = kernel("product.fill_ends(a, b, c, weights, empty, full, scale, spread)")

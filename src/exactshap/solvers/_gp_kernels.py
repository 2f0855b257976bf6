"""Compiled sweeps for covariances under a Gaussian process (``src/native/product/gaussian_process.cpp``)."""

from __future__ import annotations

from exactshap._native import kernel

__all__ = ["fill_functionals", "fill_pair_functionals", "fill_prior", "fill_spread"]

fill_prior = kernel("product.fill_prior(corner, left, right, between, weights, nodes, node_weights, interactions, out)")
fill_functionals = kernel("product.fill_functionals(a, b, weights, nodes, node_weights, out)")
fill_pair_functionals = kernel("product.fill_pair_functionals(a, b, weights, nodes, node_weights, out)")
fill_spread = kernel("product.fill_spread(corner, cross, between, spread)")

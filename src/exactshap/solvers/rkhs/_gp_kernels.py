"""Compiled sweeps for covariances under a Gaussian process (``src/native/rkhs/gaussian_process.cpp``)."""

from __future__ import annotations

from exactshap._native import kernel

__all__ = ["fill_functionals", "fill_pair_functionals", "fill_prior", "fill_spread"]

fill_prior = kernel("rkhs.fill_prior(corner, left, right, between, weights, nodes, node_weights, interactions, out)")
fill_functionals = kernel("rkhs.fill_functionals(a, b, weights, nodes, node_weights, out)")
fill_pair_functionals = kernel("rkhs.fill_pair_functionals(a, b, weights, nodes, node_weights, out)")
fill_spread = kernel("rkhs.fill_spread(corner, cross, between, spread)")

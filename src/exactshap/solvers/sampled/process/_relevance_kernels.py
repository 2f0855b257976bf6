"""Compiled passes of the process over coalitions (``src/native/sampled/relevance.cpp``)."""

from __future__ import annotations

from exactshap._native import kernel

fill_covariance = kernel("sampled.fill_covariance(scale, mirrored_scale, constant, diagonal, exponential, difference)")
fill_sums = kernel("sampled.fill_sums(scale, mirrored_scale, constant, exponential)")
fill_weighted = kernel("sampled.fill_weighted(inverse, dual, scaled, difference)")
fill_singles = kernel("sampled.fill_singles(points, rho, nodes, weights, sign, out)")
correct_curvature = kernel("sampled.correct_curvature(curvature, steps, turns, convex)")

"""Compiled passes of the process over coalitions (``src/native/sampled/relevance.cpp``)."""

from __future__ import annotations

from exactshap._native import kernel

__all__ = ["correct_curvature", "fill_singles", "fill_sum_and_difference", "fill_upper", "fill_weighted"]

fill_sum_and_difference = kernel("sampled.fill_sum_and_difference(scale, mirrored_scale, exponential, difference)")
fill_upper = kernel("sampled.fill_upper(summed, constant, diagonal, out)")
fill_weighted = kernel("sampled.fill_weighted(inverse, dual, scaled, difference)")
fill_singles = kernel("sampled.fill_singles(points, rho, nodes, weights, out)")
correct_curvature = kernel("sampled.correct_curvature(curvature, steps, turns, convex)")

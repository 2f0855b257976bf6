"""Compute observational values of any model, by three named estimates of conditional means from the background."""

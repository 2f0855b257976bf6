"""Compiled products of kernel factors (``src/native/rkhs/embedding.cpp``)."""

from __future__ import annotations

from exactshap._native import kernel

__all__ = ["fill_product", "mirror"]

fill_product = kernel("rkhs.fill_product(factors, chosen, first, out)")
mirror = kernel("rkhs.mirror(matrix)")

"""Features of scikit-learn's bases (``src/native/additive/features.cpp``)."""

from __future__ import annotations

from exactshap._native import kernel

__all__ = ["fill_products_of_columns"]

fill_products_of_columns = kernel("additive.fill_products_of_columns(X, chains, out)")

"""Log densities of normal distributions, column by column (``src/native/additive/densities.cpp``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel

__all__ = ["Normals", "add_sizes", "fill_densities"]

fill_densities = kernel("additive.fill_densities(X, normals, is_margin, out)")
add_sizes = kernel("additive.add_sizes(X, normals, out)")


class Normals(NamedTuple):
    """Normal distributions of each class and column, all (n_classes, n_columns)."""

    mean: np.ndarray
    variance: np.ndarray
    constant: np.ndarray  # log(2 pi variance)

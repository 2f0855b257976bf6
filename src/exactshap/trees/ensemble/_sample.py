"""A forest that no data made: what speed is measured on."""

from __future__ import annotations

import numpy as np

from exactshap.trees.ensemble._build import RawTree, build
from exactshap.trees.ensemble._flat import FlatTrees

__all__ = ["complete_forest"]


def complete_forest(depth: int, n_trees: int, n_features: int) -> FlatTrees:
    """Return complete trees with random splits near the middle of standard normal columns."""
    rng = np.random.default_rng(0)
    place = np.arange(2 ** (depth + 1) - 1)
    is_split = place < 2**depth - 1
    raw = [
        RawTree(
            feature=np.where(is_split, rng.integers(0, n_features, len(place)), -1),
            threshold=rng.normal(size=len(place)) / 2.0,
            left=np.where(is_split, 2 * place + 1, -1),
            right=np.where(is_split, 2 * place + 2, -1),
            value=rng.normal(size=len(place)),
            cover=np.ones(len(place)),
        )
        for _ in range(n_trees)
    ]
    return build(raw, n_features=n_features, constant=np.zeros(1), less_equal=True, single_precision=False)

"""Random trees and rows with everything that the games of R2 meet."""

import numpy as np

from exactshap.trees import TreeModel, build
from trees_by_rule import random_raw

N_ROWS, N_FEATURES = 60, 5


def random_model(depth, n_trees=12, n_features=N_FEATURES, seed=0, every_rule=True, boosted=True, less_equal=True):
    rng, draw = np.random.default_rng(seed), lambda rng: round(rng.normal(), 1)
    raw = [random_raw(rng, n_features, depth, every_rule=every_rule, draw=draw, zero_covers=0.2) for _ in range(n_trees)]
    for tree in raw:
        tree.cover[np.flatnonzero(tree.left < 0)[-1]] += 1.0  # no tree is empty
    trees = build(raw, n_features=N_FEATURES, constant=np.array([0.3]), less_equal=less_equal, single_precision=True)
    outputs, stages = np.full(n_trees, -1, np.int32), np.arange(n_trees, dtype=np.int32) // 3
    return TreeModel(trees, "test", "random trees", "target", ("output",), True, outputs, stages, boosted=boosted)


def random_rows(seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES)).round(1)
    X[:, 2] = rng.integers(0, 6, N_ROWS)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X, rng.normal(size=N_ROWS), rng.random(N_ROWS).round(1)

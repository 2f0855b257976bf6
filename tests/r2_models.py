"""Random trees and rows with everything that the games of R2 meet."""

import numpy as np

from exactshap.trees import RawTree, TreeModel, build

N_ROWS, N_FEATURES = 60, 5


def random_tree(rng, depth, n_features, categories):
    """Grow a tree whose nodes stop early at times, split on few features, send NaN either way, and have empty children."""
    feature, threshold, left, right, value, cover, missing, sets = [], [], [], [], [], [], [], {}

    def grow(left_over):
        q = len(feature)
        split = left_over > 0 and rng.random() < 0.85
        j = int(rng.integers(n_features)) if split else -1
        feature.append(j)
        threshold.append(round(float(rng.normal()), 1) if split else 0.0)
        value.append(float(rng.normal()))
        cover.append(float(rng.integers(0, 6)))
        missing.append(int(rng.integers(0, 2)))
        left.append(-1), right.append(-1)
        if split:
            if categories and j == 2:
                sets[q] = np.array([rng.integers(1, 31)], np.uint32)
            left[q] = grow(left_over - 1)
            right[q] = grow(left_over - 1)
        return q

    grow(depth)
    arrays = (np.array(feature), np.array(threshold), np.array(left), np.array(right), np.array(value))
    return RawTree(*arrays, cover=np.array(cover), missing=np.array(missing, np.int8), categories=sets)


def random_model(depth, n_trees=12, n_features=N_FEATURES, seed=0, categories=False, boosted=True, less_equal=True):
    rng = np.random.default_rng(seed)
    raw = [random_tree(rng, depth, n_features, categories) for _ in range(n_trees)]
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

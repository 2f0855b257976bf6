"""Losses of boosted trees: tables and parabolas next to all coalitions of all columns, and next to Q-SHAP's game of the squared error.

python benchmarks/bench_loss.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from exactshap import decompose_r2
from exactshap.decompose import decompose_loss
from exactshap.games import all_masks
from exactshap.semivalues import find
from exactshap.trees import convert, inside, paths


def brute_force(model, X, y):
    """Return shares of the log loss over all 2^d coalitions of the columns, tree by tree, from the paths of the leaves."""
    trees, d = convert(model).trees, X.shape[1]
    where, masks = paths(trees), all_masks(d)
    a, b = inside(trees, where, X), np.ones((where.n_leaves, d))
    b[np.repeat(np.arange(where.n_leaves), np.diff(where.start)), where.player] = where.ratio
    met, shares = np.full(len(X), trees.constant[0]), np.zeros(d)
    weights = find("shapley").weights(d)
    for k in range(trees.n_trees):
        leaves = np.flatnonzero(where.tree == k)
        f = np.zeros((len(X), len(masks)))
        for leaf in leaves:
            terms = np.where(masks[None], a[:, None, leaf], b[leaf][None, None]).prod(axis=2)
            f += trees.value[where.leaf[leaf], 0] * terms
        table = (np.logaddexp(0.0, met[:, None] + f) - y[:, None] * (met[:, None] + f)).sum(axis=0)
        for j in range(d):
            without = np.flatnonzero(~masks[:, j])
            shares[j] += weights[masks[without].sum(axis=1)] @ (table[without | (1 << j)] - table[without])
        met = met + f[:, -1]
    return shares


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for d, depth in ((6, 2), (8, 3), (10, 4), (30, 3), (30, 6)):
        X, y = make_classification(500, d, n_informative=4, n_redundant=0, random_state=0)
        model = GradientBoostingClassifier(n_estimators=20, max_depth=depth, random_state=0).fit(X, y)
        line = f"d = {d:2}, depth {depth}"
        found = {}
        for method in ("tables", "parabolas"):
            if method == "tables" and depth > 4:
                continue
            started = time.perf_counter()
            found[method] = decompose_loss(model, X, y, method=method)
            line += f"; {method} {time.perf_counter() - started:.3f} s"
        line += f", bound {found['parabolas'].error_bound:.2g}"
        if "tables" in found:
            line += f", off by {np.abs(found['parabolas'].values - found['tables'].values).max():.1g}"
        if d <= 10:
            started = time.perf_counter()
            null = 500 * -(y.mean() * np.log(y.mean()) + (1 - y.mean()) * np.log(1 - y.mean()))
            expected = -brute_force(model, X, y) / null
            line += f"; all coalitions {time.perf_counter() - started:.2f} s, tables off by {np.abs(expected - found['tables'].values).max():.1g}"
        squared = GradientBoostingRegressor(n_estimators=20, max_depth=depth, random_state=0).fit(X, y)
        started = time.perf_counter()
        decompose_r2(squared, X, y)
        print(f"{line}; decompose_r2 of squared error {time.perf_counter() - started:.3f} s", flush=True)

"""Nested groups compared with shap's PartitionExplainer, which takes binary trees only; with enough evaluations its values are Winter's.

python benchmarks/bench_structures.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np


def nested_groups():
    """Return (name, seconds, calls, largest difference) for a function of 16 columns in a balanced binary tree."""
    import shap
    from sklearn.datasets import make_friedman1
    from sklearn.svm import SVR

    from exactshap import Explainer
    from exactshap.semivalues import owen

    X, y = make_friedman1(300, 16, random_state=0)
    model, background = SVR(C=10.0).fit(X, y), X[:20]
    first, n, rows = 0, 16, []
    for _ in range(4):
        for i in range(n // 2):
            rows.append([first + 2 * i, first + 2 * i + 1, len(rows) + 1.0, 32 // n])
        first, n = first + n, n // 2
    linkage = np.array(rows, float)
    tree = nested(linkage, len(linkage) - 1)
    explainer = Explainer(model, background)
    started = time.perf_counter()
    ours = explainer(X[20:25], index=owen(tree))
    seconds = time.perf_counter() - started
    peer = shap.PartitionExplainer(model.predict, shap.maskers.Partition(background, clustering=linkage, max_samples=100))
    started = time.perf_counter()
    theirs = peer(X[20:25], max_evals=2000, silent=True)
    other = time.perf_counter() - started
    exact = np.abs(ours.values - theirs.values).max()
    return [("ours, product form", seconds, 0.0), ("shap PartitionExplainer", other, exact)]


def nested(linkage, row):
    n = len(linkage) + 1
    return {str(k): (int(k) if k < n else nested(linkage, int(k) - n)) for k in linkage[row, :2]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, seconds, difference in nested_groups():
        print(f"{name:26} {seconds:8.4f} s for 5 rows, largest difference {difference:.2g}")

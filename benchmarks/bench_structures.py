"""Nested groups beside shap's PartitionExplainer, and tensor trains beside interpolation at d + 1 points (TN-SHAP).

    python benchmarks/bench_structures.py

``PartitionExplainer`` takes binary trees only; with enough evaluations its values are Winter's. TN-SHAP (arXiv 2510.22138) evaluates
the train at d + 1 points and solves a Vandermonde system for the coefficients of t; its recipe is rebuilt here in NumPy, with the same
left and right products as ours.
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


def chains(sizes=(5, 10, 20, 40, 80)):
    """Return (d, our seconds, our residual, seconds of interpolation, its largest error)."""
    from exactshap import solve
    from exactshap.games import TensorTrainGame

    rows = []
    for d in sizes:
        rng, rank = np.random.default_rng(0), 4
        shapes = [(1 if j == 0 else rank, 1 if j == d - 1 else rank) for j in range(d)]
        inside, outside = ([rng.dirichlet(np.ones(s[1]), s[0]) for s in shapes] for _ in range(2))
        inside[-1], outside[-1] = rng.normal(size=(rank, 1)), rng.normal(size=(rank, 1))
        started = time.perf_counter()
        ours = solve(TensorTrainGame(inside, outside))
        seconds = time.perf_counter() - started
        started = time.perf_counter()
        values = interpolated(inside, outside)
        rows.append((d, seconds, abs(ours.residual), time.perf_counter() - started, np.abs(values - ours.values).max()))
    return rows


def interpolated(inside, outside):
    """Return values from the monomial coefficients of each derivative, fitted at d equidistant points."""
    d = len(inside)
    t = np.linspace(0.0, 1.0, d)[:, None, None]
    cores = [t * a + (1 - t) * b for a, b in zip(inside, outside, strict=True)]
    left, right = [np.ones((d, 1, 1))], [np.ones((d, 1, 1))]
    for core in cores[:-1]:
        left.append(left[-1] @ core)
    for core in cores[:0:-1]:
        right.append(core @ right[-1])
    vandermonde = t[:, 0] ** np.arange(d)
    values = []
    for j, (a, b) in enumerate(zip(inside, outside, strict=True)):
        coefficients = np.linalg.solve(vandermonde, (left[j] @ (a - b) @ right[d - 1 - j])[:, 0, 0])
        values.append(coefficients @ (1.0 / np.arange(1, d + 1)))
    return np.array(values)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, seconds, difference in nested_groups():
        print(f"{name:26} {seconds:8.4f} s for 5 rows, largest difference {difference:.2g}")
    for d, seconds, residual, other, error in chains():
        print(f"chain of {d:3}: ours {seconds:.4f} s, residual {residual:.1g}; interpolation {other:.4f} s, off by {error:.1g}")

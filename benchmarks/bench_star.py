"""STAR-SHAP: the paper's synthetic 5-STAR models against Algorithm 1 in Python, and 3-STAR RWReLU on California housing.

The housing rows are read from ``benchmarks/papers/data`` (or the folder in ``EXACTSHAP_DATA``); they are left out where it is absent.
"""

from __future__ import annotations

import itertools
import math
import os
import resource
import time
from pathlib import Path

import numpy as np
from timing import best, row

from exactshap import Explainer
from exactshap.estimators import RKHSWeightingCV, RKHSWeightingRegressor
from exactshap.readers.additive import AdditiveModel

DATA = Path(os.environ.get("EXACTSHAP_DATA", Path(__file__).parent / "papers" / "data"))


def unanimity(n, k, n_terms, n_rows, rng):
    """Return the terms a 1[x_j = 1 for all j in I] and rows of -1 and 1 (section 5.1 of the paper)."""
    terms = []
    for _ in range(n_terms):
        a = rng.uniform()
        terms.append((tuple(rng.permutation(n)[:k].tolist()), lambda v, a=a: a * np.all(v == 1.0, axis=1)))
    return terms, rng.choice([-1.0, 1.0], size=(n_rows, n))


def algorithm_1(terms, X, background):
    """The published algorithm, line by line: one subset, one background row, one value at a time."""
    phi = np.zeros(X.shape)
    for i, x in enumerate(X):
        for z, (I, f) in itertools.product(background, terms):
            columns, k = list(I), len(I)
            baseline = (f(x[None, columns])[0] - f(z[None, columns])[0]) / k
            for j in columns:
                phi[i, j] += baseline
            for size in range(1, k):
                for A in itertools.combinations(columns, size):
                    hybrid = np.array([[x[j] if j in A else z[j] for j in columns]])
                    value = f(hybrid)[0]
                    for j in columns:
                        if j in A:
                            phi[i, j] += value / (size * math.comb(k, size))
                        else:
                            phi[i, j] -= value / ((size + 1) * math.comb(k, size + 1))
    return phi / len(background)


def synthetic():
    """50 terms of 5 columns, 10 rows, 10 background rows, from 10 to 1000 columns."""
    results, seconds = [], {}
    for n in (10, 100, 1000):
        terms, X = unanimity(n, 5, 50, 10, np.random.default_rng(n))
        explainer = Explainer(AdditiveModel(terms, n_features=n), X)
        seconds[n] = best(lambda e=explainer, x=X: e(x))
        started = time.perf_counter()
        reference = algorithm_1(terms, X, X)
        peer = time.perf_counter() - started
        error = np.abs(explainer(X).values - reference).max()
        what = f"5-STAR, 50 terms, {n} columns, 10 x 10 rows: Algorithm 1 in Python"
        results.append(row(what, seconds[n], peer, ">= 20 x", note=f"largest difference {error:.1g}"))
    results.append(row("5-STAR: 1000 columns (ours) against 10 columns (peer: ours)", seconds[1000], seconds[10], "flat"))
    return results


def housing(n_terms=5000):
    """3-STAR RWReLU on California housing: fit on 15,480 rows; read and explain 1000 rows against 1000."""
    path = DATA / "california_housing.parquet"
    if not path.exists():
        print(f"skipped: {path.name} is not in the data folder")
        return []
    import pandas as pd
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    frame = pd.read_parquet(path)
    X, y = frame.drop(columns="MedHouseVal").to_numpy(), frame[["MedHouseVal"]].to_numpy()
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    scale, scale_y = StandardScaler().fit(X), StandardScaler().fit(y)
    X, X_test, y, y_test = (
        scale.transform(X),
        scale.transform(X_test),
        scale_y.transform(y)[:, 0],
        scale_y.transform(y_test)[:, 0],
    )
    model = RKHSWeightingRegressor(subsets=3, n_terms=n_terms, alpha=1e-9, sigma=2.0 * math.sqrt(0.5), random_state=0)
    timed, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    fit, fit_cpu = time.perf_counter() - timed, time.process_time() - cpu
    rows, background = X_test[:1000], X[:1000]
    Explainer(model, background[:60])(rows[:2])  # imports
    timed, cpu = time.perf_counter(), time.process_time()
    explainer = Explainer(model, background, n_jobs=2)
    read = time.perf_counter() - timed
    explanation = explainer(rows)
    total, total_cpu = time.perf_counter() - timed, time.process_time() - cpu
    largest = np.abs(explanation.values).max()
    note = (
        f"read {read:.1f} s, processor time {total_cpu:.1f} s, residual {np.abs(explanation.residual).max():.1g}, proven error bound "
        f"{explanation.error_bound.max() / largest:.1g} of the largest value, "
        f"peak memory of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"
    )
    return [
        row(
            f"3-STAR RWReLU, housing, T = {n_terms}: fit on 15,480 rows",
            fit,
            None,
            "< 60 s",
            note=f"processor time {fit_cpu:.1f} s, test R2 {model.score(X_test, y_test):.3f}",
        ),
        row(f"3-STAR RWReLU, housing, T = {n_terms}: read and explain 1000 x 1000 rows", total, None, "< 60 s", note=note),
    ]


def cross_validation(n_rows=2000, n_terms=400):
    """Choose among 8 penalties by 5 folds: one pass over the features against GridSearchCV's 41."""
    from sklearn.model_selection import GridSearchCV

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 8))
    y = np.maximum(X[:, 0] + X[:, 1], 0.0) - np.abs(X[:, 2]) * X[:, 3] + 0.3 * rng.normal(size=n_rows)
    ours = RKHSWeightingCV(subsets=3, n_terms=n_terms, random_state=0)
    search = GridSearchCV(RKHSWeightingRegressor(subsets=3, n_terms=n_terms, random_state=0), {"alpha": ours.alphas}, cv=5)
    seconds, peer = best(lambda: ours.fit(X, y)), best(lambda: search.fit(X, y), repeat=1, warm_up=0)
    what = f"RKHSWeightingCV, 8 penalties, 5 folds, {n_rows} rows, T = {n_terms}: GridSearchCV"
    difference = abs(ours.best_score_ - search.best_score_)
    return [row(what, seconds, peer, ">= 5 x", note=f"difference of the best score {difference:.1g}")]


def run():
    return synthetic() + cross_validation() + housing()


if __name__ == "__main__":
    for result in run():
        print(result)

"""Shapley regression: all subsets from one triangular factor, next to one fit of scikit-learn for each subset.

``peer_seconds`` is ``LinearRegression.fit`` and ``score`` on 64 random subsets, times 2^p / 64. ``difference`` is the largest difference of
shares where all subsets were fitted so (p <= 10).
"""

import itertools
import math
import sys
import time

import numpy as np
from sklearn.linear_model import LinearRegression

from exactshap import decompose_r2

N_ROWS = 1000


def data(p):
    rng = np.random.default_rng(p)
    X = rng.normal(size=(N_ROWS, p)) + rng.normal(size=(N_ROWS, 1))
    return X, X @ rng.normal(size=p) + rng.normal(size=N_ROWS)


def own(X, y, columns):
    columns = list(columns)
    return LinearRegression().fit(X[:, columns], y).score(X[:, columns], y) if columns else 0.0


def fitted_shares(X, y):
    p = X.shape[1]
    value = {S: own(X, y, S) for s in range(p + 1) for S in itertools.combinations(range(p), s)}
    phi = np.zeros(p)
    for S, v in value.items():
        for j in range(p):
            s = len(S) - (j in S)
            weight = math.factorial(s) * math.factorial(p - s - 1) / math.factorial(p)
            phi[j] += weight * (v if j in S else -v)
    return phi


def main(most):
    print("p, seconds, peer_seconds, difference")
    for p in (p for p in (5, 10, 15, 20, 22, 25) if p <= most):
        X, y = data(p)
        start = time.perf_counter()
        shares = decompose_r2(LinearRegression(), X, y, game="refit")
        seconds = time.perf_counter() - start
        rng = np.random.default_rng(0)
        start = time.perf_counter()
        for _ in range(64):
            own(X, y, np.flatnonzero(rng.random(p) < 0.5))
        peer = (time.perf_counter() - start) * 2.0**p / 64
        difference = np.abs(shares.values - fitted_shares(X, y)).max() if p <= 10 else float("nan")
        print(f"{p}, {seconds:.3g}, {peer:.3g}, {difference:.1e}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 22)

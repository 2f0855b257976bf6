"""Linear leaves next to constant ones, in processor seconds; shap's permutations of the same predict next to both.

100 trees of 31 leaves (LightGBM), 100 background rows. ``ratio`` is a whole call of the linear model over one of the constant model, with
its certificate; ``peer_difference`` is the largest difference of shap's values (500 evaluations for each background row) to the exact
ones, relative to the largest value.
"""

import time

import numpy as np
from lightgbm import LGBMRegressor

from exactshap import Explainer


def seconds(explainer, rows, repeats):
    """Return the least processor time of a call; tables are filled in a call before."""
    explainer(rows)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        explainer(rows)
        times.append(time.process_time() - start)
    return min(times)


def main():
    import shap

    print("d, rows, linear_us_a_row, constant_us_a_row, ratio, residual, peer_ms_a_row, peer_difference")
    for d in (10, 30):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(4000, d))
        y = X[:, 0] * X[:, 1] + 2.0 * X[:, 2] + (X[:, 3] > 0) + X[:, 4] * X[:, 5] * X[:, 0] + np.sin(X[:, 6])
        y += rng.normal(size=len(y))
        settings = {"n_estimators": 100, "num_leaves": 31, "verbose": -1, "n_jobs": 1}
        linear, constant = (LGBMRegressor(linear_tree=is_linear, **settings).fit(X, y) for is_linear in (True, False))
        ours, other = Explainer(linear, X[:100]), Explainer(constant, X[:100])
        peer = shap.PermutationExplainer(linear.predict, shap.maskers.Independent(X[:100], max_samples=100), seed=0)
        peer(X[-1:], max_evals=500, silent=True)  # its first call compiles
        start = time.process_time()
        theirs = peer(X[-1:], max_evals=500, silent=True).values
        peer_ms = 1e3 * (time.process_time() - start)
        exact = ours(X[-1:])
        difference = np.abs(theirs - exact.values).max() / np.abs(exact.values).max()
        for n_rows in (1, 100, 1000, 4000):
            rows, repeats = X[-n_rows:], 3 if n_rows >= 1000 else 7
            each = [1e6 * seconds(explainer, rows, repeats) / n_rows for explainer in (ours, other)]
            residual = np.abs(ours(rows).residual).max()
            print(
                f"{d}, {n_rows}, {each[0]:.3g}, {each[1]:.3g}, {each[0] / each[1]:.2f}, {residual:.1e}, {peer_ms:.3g}, {difference:.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()

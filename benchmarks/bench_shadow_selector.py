"""Columns selected against shadows: false discoveries in simulations, and seconds next to BorutaShap's way.

    python benchmarks/bench_shadow_selector.py [DATA SETS]

False discoveries: data sets without any signal, and with four columns of signal among sixteen; independent columns. Boruta's rule (as in
BorutaShap: more hits than half of the trials by a binomial test, Bonferroni) judges the same trials. Seconds: one trial, the same fitted
forest and rows, explained here and by shap's TreeExplainer; BorutaShap's default forest has no limit on its leaves.
"""

import sys
import time

import numpy as np
from scipy.stats import binom
from sklearn.ensemble import RandomForestRegressor

from exactshap import Explainer
from exactshap.estimators import ShadowSelector

DATA_SETS, ROWS, COLUMNS, SIGNALS = 40, 200, 16, 4


def data(seed, n_signals):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, COLUMNS))
    y = rng.normal(size=ROWS)
    if n_signals:
        y += X[:, 0] + X[:, 1] + np.abs(X[:, 2]) * 1.5 + X[:, 3] * X[:, 0]
    return X, y


def borutas_rule(selector, level=0.05):
    """Return which columns have significantly more hits than half of the trials."""
    hits = (selector.importances_ > selector.shadow_importances_[:, None]).sum(axis=0)
    n_trials, d = selector.importances_.shape
    return binom.sf(hits - 1, n_trials, 0.5) * d <= level


def discoveries(n_data_sets):
    forest = RandomForestRegressor(50, max_leaf_nodes=20, max_features=1 / 3)
    for n_signals in (0, SIGNALS):
        rows = []
        for seed in range(n_data_sets):
            X, y = data(seed, n_signals)
            selector = ShadowSelector(forest, n_trials=30, random_state=seed).fit(X, y)
            for rule, kept in (("shadows", selector.support_), ("Boruta's rule", borutas_rule(selector))):
                rows.append((rule, kept[n_signals:].sum(), kept[:n_signals].sum()))
        for rule in ("shadows", "Boruta's rule"):
            false, true = np.array([row[1:] for row in rows if row[0] == rule]).T
            power = f", {true.mean():.2f} of {n_signals} signals kept" if n_signals else ""
            print(
                f"{n_signals} signals, {rule:13s}: any false discovery in {np.mean(false > 0):.3f} of {n_data_sets} data sets, "
                f"{false.mean():.2f} on average{power}",
                flush=True,
            )


def seconds():
    import shap

    rng = np.random.default_rng(0)
    for n_rows in (1000, 3000):
        X = rng.normal(size=(n_rows, 40))
        y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n_rows)
        for leaves in (50, None):
            begun = time.perf_counter()
            forest = RandomForestRegressor(max_leaf_nodes=leaves, max_features=1 / 3, random_state=0).fit(X, y)
            fitted = time.perf_counter()
            ours = Explainer(forest, progress=False)(X).values
            middle = time.perf_counter()
            few = slice(0, 300)  # shap's cost is linear in rows
            theirs = shap.TreeExplainer(forest, feature_perturbation="tree_path_dependent").shap_values(
                X[few], check_additivity=False
            )
            end = (time.perf_counter() - middle) * n_rows / 300
            fit, explain = fitted - begun, middle - fitted
            assert np.allclose(theirs, ours[few])
            print(
                f"{n_rows} rows, leaves {leaves}: fit {fit:.2f} s, values here {explain:.2f} s, shap {end:.2f} s ({end / explain:.0f}x); "
                f"a whole trial {(fit + end) / (fit + explain):.1f}x",
                flush=True,
            )


if __name__ == "__main__":
    seconds()
    discoveries(int(sys.argv[1]) if len(sys.argv) > 1 else DATA_SETS)

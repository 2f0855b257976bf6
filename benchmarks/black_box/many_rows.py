"""Mean magnitudes of 100 rows from 3,000 coalitions in all: rows alone and rows together.

    python benchmarks/black_box/many_rows.py [RUNS]

Of two models of a kind with 20 columns, 390 rows of which each run explains 100, against ten background rows. Printed: the largest error
of a mean magnitude of the rows explained and the size of single values' errors, in units of the largest magnitude; what two standard
errors of single values cover; what intervals of 95 % for all 390 rows cover. Values of the networks take ten minutes each.
"""

from __future__ import annotations

import os
import sys
import warnings

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from exactshap import Explainer, explain

TOGETHER = (None, 10, 25)
D, ROWS, BUDGET = 20, 100, 30


def models(seed):
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.svm import SVR

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(900, D))
    y = X @ (rng.exponential(size=D) * (rng.random(D) < 0.7)) + 2.0 * np.sin(2.0 * X[:, 0] * X[:, 1])
    y += np.abs(X[:, 2]) * X[:, 3] + np.maximum(X[:, 4] + X[:, 5], 0.0) ** 2 + 0.3 * rng.normal(size=900)
    kinds = {
        "random forest": RandomForestRegressor(100, random_state=seed),
        "network": MLPRegressor(hidden_layer_sizes=(64, 32), max_iter=400, random_state=seed),
        "SVR": SVR(C=10.0),
    }
    return {name: model.fit(X[:500], y[:500] / y.std()) for name, model in kinds.items()}, X


def known(name, model, rows, background):
    """Return the values of all rows: exact ones, or of so many calls that their errors do not matter."""
    if name == "network":
        return explain(model.predict, rows, background, budget=3000).values
    return Explainer(model, background)(rows).values


def run(model, rows, values, background, seed, together):
    # With replacement: of a quarter of all rows, drawn without, intervals of exact values would cover .98
    chosen = np.random.default_rng(seed).choice(len(rows), ROWS)
    found = explain(model.predict, rows[chosen], background, budget=BUDGET, random_state=seed, rows_together=together)
    means, largest = np.abs(values[chosen]).mean(axis=0), np.abs(values[chosen]).mean(axis=0).max()
    errors, importance, all_rows = found.values - values[chosen], found.importance(), np.abs(values).mean(axis=0)
    return (
        np.abs(np.abs(found.values).mean(axis=0) - means).max() / largest,
        np.sqrt(np.mean(errors**2)) / largest,
        np.mean(np.abs(errors) <= 2.0 * found.std_error),
        np.mean((importance.lower <= all_rows) & (all_rows <= importance.upper)),
    )


def main(n_runs=6):
    for seed in (0, 1):
        found, X = models(seed)
        background, rows = X[500:510], X[510:]
        for name, model in found.items():
            values = known(name, model, rows, background)
            for together in TOGETHER:
                runs = [run(model, rows, values, background, k, together) for k in range(n_runs)]
                error, size, covered, intervals = np.mean(runs, axis=0)
                text = f"error {error:.4f}, of one value {size:.3f}, covered {covered:.3f}, intervals {intervals:.3f}"
                print(f"{name} {seed}, together {together}: {text}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*map(int, sys.argv[1:]))

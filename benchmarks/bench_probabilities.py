"""Probabilities of a logistic regression: the largest error of a value, and milliseconds a row, beside sampled ones.

python benchmarks/bench_probabilities.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np

COLUMNS = (10, 30)
N_BACKGROUND, N_ROWS = 100, 3


def models():
    from sklearn.linear_model import LogisticRegression

    for d in COLUMNS:
        rng = np.random.default_rng(d)
        X = rng.normal(size=(600, d))
        y = X @ rng.normal(size=d) / np.sqrt(d) * 3.0 + rng.logistic(size=600) > 0
        yield d, LogisticRegression().fit(X, y), X[:N_BACKGROUND], X[N_BACKGROUND : N_BACKGROUND + N_ROWS]


def ours(model, background, rows):
    from exactshap import Explainer

    return Explainer(model, background, output="probability"), rows


def permutation(model, background, rows):
    import shap

    def predict(cells):
        return model.predict_proba(cells)[:, 1]

    return shap.PermutationExplainer(predict, shap.maskers.Independent(background, max_samples=N_BACKGROUND)), rows


def kernel(model, background, rows):
    import shap

    return shap.KernelExplainer(lambda cells: model.predict_proba(cells)[:, 1], background), rows


def timed(make, model, background, rows):
    """Return values and seconds a row, after a first call."""
    explainer, rows = make(model, background, rows)
    call = explainer if make is not kernel else lambda cells: explainer.shap_values(cells, silent=True)
    call(rows[:1])
    started = time.perf_counter()
    found = call(rows)
    seconds = (time.perf_counter() - started) / len(rows)
    return np.asarray(getattr(found, "values", found)), seconds


def run():
    warnings.simplefilter("ignore")
    table = []
    for d, model, background, rows in models():
        exact, seconds = timed(ours, model, background, rows)
        residual = np.abs(
            exact.sum(axis=1) + model.predict_proba(background)[:, 1].mean() - model.predict_proba(rows)[:, 1]
        ).max()
        table.append({"columns": d, "method": "exactshap", "error": residual, "ms a row": 1e3 * seconds})
        for name, make in (("shap Permutation", permutation), ("shap Kernel", kernel)):
            values, seconds = timed(make, model, background, rows)
            table.append({"columns": d, "method": name, "error": np.abs(values - exact).max(), "ms a row": 1e3 * seconds})
    return table


if __name__ == "__main__":
    for row in run():
        print(f"{row['columns']:4} columns  {row['method']:18} error {row['error']:.1e}  {row['ms a row']:9.1f} ms a row")

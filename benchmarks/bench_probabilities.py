"""Probabilities: errors of values, and milliseconds a row, next to shap's and shapiq's samplers and shap's own probabilities of trees.

python benchmarks/bench_probabilities.py [linear | pairs | trees | kernels]
"""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from functools import partial

import numpy as np

COLUMNS = (10, 30, 100)
N_BACKGROUND, N_ROWS = 100, 5
KERNEL_CALLS = (
    2048  # coalitions of shap's KernelExplainer and of shapiq; beyond 10 columns the default of the first is 2 d + 2,048
)


def linear(d):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(d)
    X = rng.normal(size=(600, d))
    y = X @ rng.normal(size=d) / np.sqrt(d) * 3.0 + rng.logistic(size=600) > 0
    return LogisticRegression().fit(X, y), X


def pairs(d):
    from interpret.glassbox import ExplainableBoostingClassifier

    rng = np.random.default_rng(d)
    X = rng.normal(size=(600, d))
    y = X[:, :3].sum(axis=1) + X[:, 0] * X[:, 1] + rng.logistic(size=600) > 0
    return ExplainableBoostingClassifier(interactions=10, max_rounds=100, outer_bags=1, n_jobs=1).fit(X, y), X


def trees(d):
    from xgboost import XGBClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, d))
    score = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + X[:, 3] * (X[:, 4] > 0) + 0.5 * X[:, 5:].sum(axis=1) / np.sqrt(d - 5)
    y = score + 0.5 * rng.logistic(size=2000) > 0
    return XGBClassifier(n_estimators=100, max_depth=6, learning_rate=0.1, n_jobs=1).fit(X, y.astype(int)), X


def kernels(d):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, d))
    y = X[:, 0] * X[:, 1] + X[:, 2:].sum(axis=1) / np.sqrt(d) + 0.3 * rng.logistic(size=600) > 0
    return CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y), X


def ours(model, background, rows, **settings):
    from exactshap import Explainer

    explainer = Explainer(model, background, output="probability", **settings)
    return lambda: explainer(rows).values


def permutation(model, background, rows):
    import shap

    masker = shap.maskers.Independent(background, max_samples=N_BACKGROUND)
    explainer = shap.PermutationExplainer(lambda cells: model.predict_proba(cells)[:, 1], masker)
    evaluations = max(500, 2 * rows.shape[1] + 1)
    return lambda: explainer(rows, max_evals=evaluations).values


def kernel(model, background, rows):
    import shap

    explainer = shap.KernelExplainer(lambda cells: model.predict_proba(cells)[:, 1], background)
    return lambda: explainer.shap_values(rows, silent=True, nsamples=KERNEL_CALLS)


def shapiq_marginal(model, background, rows):
    from shapiq import TabularExplainer

    settings = {"imputer": "marginal", "sample_size": N_BACKGROUND, "index": "SV", "max_order": 1, "random_state": 0}
    explainer = TabularExplainer(lambda cells: model.predict_proba(cells)[:, 1], background, **settings)
    budget = min(KERNEL_CALLS, 2 ** rows.shape[1])
    return lambda: [explainer.explain(row, budget=budget).get_n_order_values(1) for row in rows]


def tree_probability(model, background, rows):
    import shap

    explainer = shap.TreeExplainer(model, background, model_output="probability")
    return lambda: explainer.shap_values(rows)


METHODS = {
    "linear": {"exactshap": ours, "shap Permutation": permutation, "shap Kernel": kernel, "shapiq": shapiq_marginal},
    "pairs": {
        "exactshap": ours,
        "exactshap, 200 calls": partial(ours, budget=200),
        "shap Permutation": permutation,
        "shapiq": shapiq_marginal,
    },
    "trees": {
        "exactshap": ours,
        "exactshap, 200 calls": partial(ours, budget=200),
        "shap Permutation": permutation,
        "shap Kernel": kernel,
        "shapiq": shapiq_marginal,
        "shap Tree, its own probability": tree_probability,
    },
}
METHODS["kernels"] = {name: make for name, make in METHODS["trees"].items() if make is not tree_probability}
MODELS = {"linear": linear, "pairs": pairs, "trees": trees, "kernels": kernels}


def reference(model, background, rows):
    """Return exact values, or those of other and many more orders, whose own relative squared error is some 2e-6."""
    from exactshap import Explainer

    explanation = Explainer(model, background, output="probability")(rows)
    if explanation.exact:
        return explanation.values
    return Explainer(model, background, output="probability", budget=400 * rows.shape[1], random_state=1)(rows).values


def without_missing(methods):
    """Leave out the methods of a library that is not installed."""
    if importlib.util.find_spec("shapiq"):
        return methods
    print("shapiq is not installed: its rows are skipped")
    return {name: make for name, make in methods.items() if make is not shapiq_marginal}


def run(kinds=tuple(MODELS), columns=COLUMNS):
    warnings.simplefilter("ignore")
    for kind in kinds:
        for d in columns if kind != "pairs" else [d for d in columns if d < 100]:
            model, X = MODELS[kind](d)
            background, rows = X[:N_BACKGROUND], X[N_BACKGROUND : N_BACKGROUND + N_ROWS]
            exact = reference(model, background, rows)
            for name, make in without_missing(METHODS[kind]).items():
                call = make(model, background, rows)
                call()
                started = time.perf_counter()
                values = np.asarray(call())
                seconds = (time.perf_counter() - started) / N_ROWS
                missed = values - exact
                residual = exact.sum(axis=1) + model.predict_proba(background)[:, 1].mean() - model.predict_proba(rows)[:, 1]
                yield {
                    "model": kind,
                    "columns": d,
                    "method": name,
                    "largest error": float(np.abs(missed).max() if missed.any() else np.abs(residual).max()),
                    "relative squared error": float((missed**2).sum() / (exact**2).sum()),
                    "ms a row": 1e3 * seconds,
                }


if __name__ == "__main__":
    for row in run(sys.argv[1:] or tuple(MODELS)):
        print(
            f"{row['model']:6} {row['columns']:4} columns  {row['method']:31} largest error {row['largest error']:.1e}"
            f"  relative squared {row['relative squared error']:.1e}  {row['ms a row']:9.1f} ms a row",
            flush=True,
        )

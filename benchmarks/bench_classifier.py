"""RKHS weightings as classifiers next to random Fourier features and scikit-learn's machines.

Random features (Rahimi and Recht) with a logistic loss are the nearest published method: random functions, a convex loss, one weight each.
Every figure is a mean over random splits into halves, with its standard error; 20 rows of the first split are explained.

    python benchmarks/bench_classifier.py [SPLITS]
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from exactshap import explain
from exactshap.estimators import RKHSWeightingClassifier
from exactshap.estimators.rkhs_weighting import connected_subsets

N_TERMS = 1000  # random functions of a weighting, and random features of its peer


def data_sets():
    """Name, rows, labels, subsets of the weighting."""
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", X, y, 2
    X, y = load_wine(return_X_y=True)
    yield "wine, second class", X, (y == 1).astype(int), 2
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (3, 8))
    yield "digits 3 and 8", X[chosen], (y[chosen] == 8).astype(int), connected_subsets(3, grid=(8, 8))


def models(subsets, n_columns: int, seed: int) -> dict:
    settings = {"subsets": subsets, "n_terms": N_TERMS, "alpha": 1e-8, "ridge": 1e-13, "random_state": seed}
    features = RBFSampler(gamma=1 / n_columns, n_components=N_TERMS, random_state=seed)
    return {
        "weighting, logistic": RKHSWeightingClassifier(**settings),
        "weighting, hinge": RKHSWeightingClassifier(loss="hinge", **settings),
        "random features, logistic": make_pipeline(features, LogisticRegression(max_iter=5000)),
        "logistic regression": LogisticRegression(max_iter=5000),
        "SVC, Gaussian kernel": SVC(),
    }


def score(model, split) -> dict:
    """Accuracy, area under the curve and log loss on the held-out half, and the seconds of fitting."""
    X, X_test, y, y_test = split
    started = time.perf_counter()
    model.fit(X, y)
    figures = {"fit s": time.perf_counter() - started, "accuracy": accuracy_score(y_test, model.predict(X_test))}
    figures["area"] = roc_auc_score(y_test, model.decision_function(X_test))
    if hasattr(model, "predict_proba"):
        figures["log loss"] = log_loss(y_test, model.predict_proba(X_test))
    return figures


def explained(model, split) -> str:
    """Seconds of explaining 20 rows with 50 background rows, and the largest residual."""
    started = time.perf_counter()
    explanation = explain(model, split[1][:20], split[0][:50])
    return f"explained in {time.perf_counter() - started:.2f} s, residual {np.abs(explanation.residual).max():.1g}"


def splits(X, y, n: int):
    """Random halves, scaled by the first."""
    for seed in range(n):
        X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
        scaler = StandardScaler().fit(X_fit)
        yield scaler.transform(X_fit), scaler.transform(X_test), y_fit, y_test


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for name, X, y, subsets in data_sets():
        runs: dict[str, list[dict]] = {}
        for seed, split in enumerate(splits(X, y, n)):
            for label, model in models(subsets, X.shape[1], seed).items():
                runs.setdefault(label, []).append(score(model, split))
                if seed == 0 and label.startswith("weighting"):
                    print(f"{name:18} {label:26} {explained(model, split)}", flush=True)
        for label, figures in runs.items():
            columns = {key: np.array([run[key] for run in figures]) for key in figures[0]}
            cells = [f"{key} {values.mean():.3g} +- {values.std(ddof=1) / np.sqrt(n):.1g}" for key, values in columns.items()]
            print(f"{name:18} {label:26} {', '.join(cells)}", flush=True)

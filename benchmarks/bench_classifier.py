"""RKHS weightings as classifiers beside scikit-learn's: accuracy on held-out rows, seconds of fitting, seconds of explaining 20 rows.

python benchmarks/bench_classifier.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from exactshap import explain
from exactshap.estimators import RKHSWeightingClassifier, RKHSWeightingRegressor
from exactshap.estimators.rkhs_weighting import connected_subsets, grid_edges


def data_sets():
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", X, y, 2
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (3, 8))
    yield "digits 3 and 8", X[chosen], (y[chosen] == 8).astype(int), connected_subsets(grid_edges(8, 8), 3)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, X, y, subsets in data_sets():
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
        settings = {"subsets": subsets, "n_terms": 1000, "random_state": 0, "ridge": 1e-13}
        models = {
            "weighting, logistic": RKHSWeightingClassifier(alpha=1e-8, **settings),
            "weighting, hinge": RKHSWeightingClassifier(loss="hinge", alpha=1e-8, **settings),
            "weighting, least squares": RKHSWeightingRegressor(alpha=1e-8, fit_intercept=True, **settings),
            "logistic regression": LogisticRegression(max_iter=5000),
            "SVC, Gaussian kernel": SVC(),
        }
        for label, model in models.items():
            started = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - started
            score = model.predict(X_test)
            right = np.mean((score > 0.5) == y_test)
            line = f"{name:16} {label:26} accuracy {right:.3f}, fit {seconds:.2f} s"
            if label.startswith("weighting"):
                started = time.perf_counter()
                explanation = explain(model, X_test[:20], X[:50])
                line += f", 20 rows explained in {time.perf_counter() - started:.2f} s, residual {np.abs(explanation.residual).max():.1g}"
            print(line, flush=True)

"""Models and tables that the tests of exactshap.scale share."""

import functools
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer

NAMES = ["age", "bmi", "s1", "s2"]


def table(n_rows=60, seed=0):
    X = pd.DataFrame(np.random.default_rng(seed).normal(size=(n_rows, 4)), columns=NAMES)
    return X.assign(id=np.arange(n_rows) + 1000)


def target(X):
    return X["age"] * X["bmi"] + X["s1"]


@functools.cache
def _svr():
    X = table(40, 9)[NAMES]
    model = make_pipeline(StandardScaler(), SVR(C=5.0)).fit(X, target(X))
    return model, X, Explainer(model, X[:10])


def svr(**settings):
    model, X, plain = _svr()
    return Explainer(model, X[:10], **settings) if settings else plain


@functools.cache
def trees():
    X = table(200, 9)[NAMES]
    return Explainer(HistGradientBoostingRegressor(max_iter=12, random_state=0).fit(X, target(X)), X[:10])


@functools.cache
def outputs():
    X = table(40, 9)[NAMES]
    return Explainer(Ridge().fit(X, np.stack([X["age"], X["bmi"]], axis=1)), X[:10])


def encoded():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"colour": rng.choice(["red", "blue"], 40), "size": rng.normal(size=40)})
    steps = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["size"]))
    return Explainer(make_pipeline(steps, Ridge()).fit(X, X["size"]), X[:10]), X


def product(rows):
    """Stand for a black box of 14 columns, too many to enumerate by default."""
    rows = np.asarray(rows)
    return rows[:, 0] * rows[:, 1] + np.tanh(rows[:, 2:]).sum(axis=1)


def rough(rows):
    """Stand for a black box in which all columns act together, so that the budget shows."""
    return np.sin(2.0 * np.asarray(rows).sum(axis=1))


def black_box(budget=120, function=product):
    background = np.random.default_rng(3).normal(size=(6, 14))
    return Explainer(function, background, budget=budget, feature_names=[f"f{j}" for j in range(14)])


class Recorded:
    """A function that leaves the number of its process in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, rows):
        Path(self.folder, str(os.getpid())).touch()
        return rows[:, 0] * rows[:, 1] + rows[:, 2]

"""Additive models: EBM with pairs, STAR models from 10 to 1000 columns, linear, polynomial and pyGAM models.

Peers run in the same process on the same rows. Where a peer is too slow for all rows it runs on a few, and the row says so
in ``note``; errors of inexact peers are relative to the largest value.
"""

import itertools
import math
import time
import warnings

import numpy as np
from timing import best, row

from exactshap import Explainer
from exactshap.readers.additive import AdditiveModel


def once(function):
    started = time.perf_counter()
    result = function()
    return result, time.perf_counter() - started


def ebm():
    """20 columns, 10 pairs, 1000 rows, 1000 background rows: against predict, shap's Additive and shap's Permutation."""
    try:
        from interpret.glassbox import ExplainableBoostingRegressor
    except ImportError:
        return []
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3] * X[:, 4] + 0.1 * rng.normal(size=3000)
    model = ExplainableBoostingRegressor(interactions=10, outer_bags=2, max_rounds=300, n_jobs=1, random_state=0).fit(X, y)
    rows, background = X[:1000], X[1000:2000]
    explainer, reading = once(lambda: Explainer(model, background))
    predict = best(lambda: model.predict(rows), 60)
    ours = best(lambda: explainer(rows), 60)
    values = explainer(rows).values
    note = (
        f"reading the model: {reading * 1e3:.0f} ms; pairs of k-SII: {best(lambda: explainer(rows, 'k-sii', 2)) * 1e3:.1f} ms"
    )
    what = "EBM, 20 columns, 10 pairs, 1000 x 1000 rows"
    results = [
        row(
            f"{what}: model.predict",
            ours,
            predict,
            "ours <= 20 ms and <= 20 x predict",
            note=note,
            times_predict=ours / predict,
        )
    ]
    try:
        import shap
    except ImportError:
        return results
    for name, n_rows in (("Additive", 1000), ("Permutation", 4)):
        masker = shap.maskers.Independent(background, max_samples=1000)
        peer, seconds = once(
            lambda n=name, m=masker, k=n_rows: _quietly(getattr(shap.explainers, n)(model.predict, m), rows[:k])
        )
        error = np.abs(peer - values[:n_rows]).max() / np.abs(values).max()
        note = f"error {error:.2g} of the largest value; {n_rows} rows, scaled to 1000"
        results.append(row(f"{what}: shap {name}", ours, seconds * 1000 / n_rows, "faster", note=note))
    return results


def _quietly(explainer, rows):
    silent = {"silent": True} if type(explainer).__name__.startswith("Permutation") else {}
    return explainer(rows, **silent).values


def star_reference(terms, X, Z):
    """The published sum as it is written: every term, background row and subset in Python (STAR-SHAP, Algorithm 1)."""
    values = np.zeros(X.shape)
    for columns, function in terms:
        k, columns = len(columns), np.array(columns)
        for i, z in itertools.product(range(len(X)), Z):
            x, rest = X[i, columns], z[columns]
            share = (function(x[None])[0] - function(rest[None])[0]) / k
            values[i, columns] += share / len(Z)
            for size in range(1, k):
                for A in itertools.combinations(range(k), size):
                    hybrid = rest.copy()
                    hybrid[list(A)] = x[list(A)]
                    value = function(hybrid[None])[0] / len(Z)
                    inside = np.isin(np.arange(k), A)
                    values[i, columns[inside]] += value / (size * math.comb(k, size))
                    values[i, columns[~inside]] -= value / ((size + 1) * math.comb(k, size + 1))
    return values


def star():
    """50 terms on 5 columns each, 10 rows, 10 background rows, from 10 to 1000 columns."""
    results, seconds = [], {}
    for n in (10, 100, 1000):
        rng = np.random.default_rng(n)
        terms = []
        for _ in range(50):
            weights = rng.normal(size=5)
            terms.append((tuple(rng.permutation(n)[:5].tolist()), lambda v, w=weights: np.maximum(v @ w, 0.0)))
        X, Z = rng.normal(size=(10, n)), rng.normal(size=(10, n))
        explainer = Explainer(AdditiveModel(terms, n_features=n), Z)
        seconds[n] = best(lambda e=explainer, x=X: e(x))
        reference, peer = once(lambda t=terms, x=X, z=Z: star_reference(t, x, z))
        error = np.abs(explainer(X).values - reference).max() / np.abs(reference).max()
        results.append(
            row(
                f"STAR, 50 terms of 5 columns among {n}: the published loop in Python",
                seconds[n],
                peer,
                ">= 20 x",
                note=f"largest difference {error:.1g}",
            )
        )
    results.append(row("STAR: 1000 columns against 10 columns", seconds[1000], seconds[10], "flat", note="peer: ours with 10"))
    return results


def scikit_learn():
    """Linear, polynomial and spline models, 1000 rows, 100 background rows, against the model's own predict and shap."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

    from exactshap.frames import as_table
    from exactshap.readers import Request, read
    from exactshap.semivalues import find

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 20))
    y, rows, background = X[:, 0] * X[:, 1] + X[:, 2], X[:1000], X[1000:1100]
    linear = Ridge().fit(X, y)
    explainer = Explainer(linear, background)
    results = [row("Ridge, 20 columns: predict", best(lambda: explainer(rows)), best(lambda: linear.predict(rows)), "-")]
    try:
        import shap

        quick = shap.LinearExplainer(linear, background).shap_values  # a bare array
        results.append(row("Ridge, 20 columns: shap Linear", best(lambda: explainer(rows)), best(lambda: quick(rows)), "-"))
    except ImportError:
        pass
    for name, basis in (("degree 2", PolynomialFeatures(2)), ("splines", SplineTransformer())):
        pipeline = make_pipeline(basis, Ridge()).fit(X, y)
        reader = read(pipeline, Request(background=as_table(background)))
        table, shapley = as_table(rows), find("shapley")
        ours = best(lambda r=reader, t=table, s=shapley: r.solve(t, s, 1))
        results.append(row(f"{name} + Ridge, 20 columns: predict", ours, best(lambda p=pipeline: p.predict(rows)), "-"))
    return results


def gam():
    """A pyGAM model with a tensor term, 1000 rows, 1000 background rows, against its own predict."""
    try:
        from pygam import LinearGAM, s, te
    except ImportError:
        return []
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    model = LinearGAM(s(0) + s(1) + te(2, 3)).fit(X, np.sin(X[:, 0]) + X[:, 2] * X[:, 3])
    explainer = Explainer(model, X[1000:])
    ours, peer = best(lambda: explainer(X[:1000]), 3), best(lambda: model.predict(X[:1000]), 3)
    return [row("pyGAM, 2 splines, 1 tensor, 1000 x 1000 rows: predict", ours, peer, "-")]


def run():
    """Return all measurements, one dict each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*ebm(), *star(), *scikit_learn(), *gam()]


if __name__ == "__main__":
    for result in run():
        print({key: float(f"{value:.3g}") if isinstance(value, float) else value for key, value in result.items()})

"""Explanations made by hand: linear and bilinear games whose values are known in closed form."""

import json
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from exactshap.results.explanation import Explanation


def linear(X, *, names=None, seed=0, n_outputs=None, **changes):
    """Explain f(x) = w . x + 1 at the baseline 0: the value of player j is w_j x_j."""
    X = np.asarray(X, float)
    n, d = X.shape
    weights = np.random.default_rng(seed).normal(size=(d,) if n_outputs is None else (d, n_outputs))
    values = X * weights if n_outputs is None else X[:, :, None] * weights
    baseline = np.ones((n,) if n_outputs is None else (n, n_outputs))
    prediction = baseline + values.sum(axis=1)
    settings = {
        "values": values,
        "baseline": baseline,
        "prediction": prediction,
        "residual": prediction - baseline - values.sum(axis=1),
        "tolerance": 1e-12,
        "feature_names": names or [f"x{j}" for j in range(d)],
        "output_names": None if n_outputs is None else [f"class {k}" for k in range(n_outputs)],
        "value_function": "baseline",
        "model_name": "LinearModel",
        "method": "closed form",
        "data": X,
        "seconds": 0.25,
    }
    return Explanation(**(settings | changes))


def bilinear(n=4, d=5, seed=0, index="stii", **changes):
    """Explain f(x) = sum_j x_j + sum_{j<k} x_j x_k at the baseline 0: dividends are the terms themselves."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    pairs = [(j, k) for j in range(d) for k in range(j + 1, d)]
    set_values = np.column_stack([X, *(X[:, j] * X[:, k] for j, k in pairs)])
    prediction = set_values.sum(axis=1)
    settings = {
        "values": X,
        "baseline": np.zeros(n),
        "prediction": prediction,
        "residual": prediction - set_values.sum(axis=1),
        "tolerance": 1e-12,
        "feature_names": [f"x{j}" for j in range(d)],
        "value_function": "baseline",
        "index": index,
        "order": 2,
        "sets": tuple((j,) for j in range(d)) + tuple(pairs),
        "set_values": set_values,
        "data": X,
        "model_name": "Bilinear",
    }
    return Explanation(**(settings | changes))


def facts(explanation):
    """Return the metadata that a saved explanation has."""
    with tempfile.TemporaryDirectory() as folder:
        explanation.save(Path(folder) / "e.npz")
        with zipfile.ZipFile(Path(folder) / "e.npz") as archive:
            return json.loads(archive.read("metadata.json"))


def rewritten(path, explanation, *, method=zipfile.ZIP_DEFLATED, **entries):
    """Save an explanation, then replace entries of the file by others, by functions of them, or by none.

    Keys have "__" for the full stop.
    """
    explanation.save(path)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    for name, change in entries.items():
        name = name.replace("__", ".")
        contents[name] = change(contents.get(name)) if callable(change) else change
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in contents.items():
            if content is not None:
                archive.writestr(name, content)
    return path

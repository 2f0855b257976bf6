"""Gaussian processes with radial kernels: the largest error of a value and milliseconds a row, next to sampled values and RBF.

python benchmarks/bench_radial.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np

COLUMNS = (10, 30, 100)
N_TRAINING, N_BACKGROUND, N_ROWS = 200, 50, 3


def models():
    """Yield columns, name, model, background and rows."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

    for d in COLUMNS:
        rng = np.random.default_rng(d)
        X = rng.normal(size=(N_TRAINING + N_ROWS, d))
        y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=len(X))
        width = np.sqrt(d)
        kernels = {
            "RBF": RBF(width),
            "Matern 5/2": Matern(width, nu=2.5),
            "Matern 3/2": Matern(width, nu=1.5),
            "Matern 1/2": Matern(width, nu=0.5),
            "RationalQuadratic": RationalQuadratic(width, alpha=1.0),
        }
        for name, kernel in kernels.items():
            model = GaussianProcessRegressor(kernel, alpha=1e-2, optimizer=None).fit(X[:N_TRAINING], y[:N_TRAINING])
            yield d, name, model, X[:N_BACKGROUND], X[N_TRAINING:]


def ours(model, background):
    from exactshap import Explainer

    return Explainer(model, background, uncertainty=False)


def functional(model, background):
    from exactshap import Explainer

    return Explainer(model)


def permutation(model, background):
    import shap

    return shap.PermutationExplainer(model.predict, shap.maskers.Independent(background, max_samples=len(background)))


def kernel(model, background):
    import shap

    explainer = shap.KernelExplainer(model.predict, background)
    return lambda rows: explainer.shap_values(rows, silent=True)


def timed(explainer, rows):
    """Return what an explainer answers and its processor seconds a row, after a first call."""
    explainer(rows[:1])
    started = time.process_time()
    found = explainer(rows)
    return found, (time.process_time() - started) / len(rows)


def run():
    warnings.simplefilter("ignore")
    for d, name, model, background, rows in models():
        exact, seconds = timed(ours(model, background), rows)
        row = {"columns": d, "kernel": name}
        bound = float(np.max(exact.error_bound))
        yield row | {"method": "exactshap", "error": np.abs(exact.residual).max(), "bound": bound, "seconds": seconds}
        found, seconds = timed(functional(model, background), rows)
        bound = float(np.max(found.error_bound))
        yield row | {"method": "functional", "error": np.abs(found.residual).max(), "bound": bound, "seconds": seconds}
        for method, make in (("shap Permutation", permutation), ("shap Kernel", kernel)) if name == "Matern 5/2" else ():
            found, seconds = timed(make(model, background), rows)
            error = np.abs(np.asarray(getattr(found, "values", found)) - exact.values).max()
            yield row | {"method": method, "error": error, "bound": np.nan, "seconds": seconds}


if __name__ == "__main__":
    times = {}
    for row in run():
        key = row["columns"], row["method"]
        if row["kernel"] == "RBF":
            times[key] = row["seconds"]
        ratio = f"{row['seconds'] / times[key]:6.1f} times RBF" if key in times else ""
        print(
            f"{row['columns']:4} columns  {row['kernel']:18} {row['method']:18} error {row['error']:.1e}  "
            f"bound {row['bound']:.1e}  {1e3 * row['seconds']:9.1f} ms a row {ratio}",
            flush=True,
        )

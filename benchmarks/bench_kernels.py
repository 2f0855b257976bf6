"""Kernel machines: functional and interventional values of a support vector machine against shapiq and shap."""

import subprocess
import sys
import time
import tracemalloc

import numpy as np
from sklearn.svm import SVR
from timing import best, row

from exactshap import Explainer


def machine(d, n=1000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] * X[:, 1 % d] + np.sin(X).sum(axis=1)
    return SVR(C=10.0, epsilon=1e-3).fit(X, y), X


def functional(d, target, rows=64):
    """Seconds a row, one thread, against shapiq and against NumPy evaluating the n * d kernel factors themselves."""
    model, X = machine(d)
    explainer = Explainer(model)
    ours = best(lambda: explainer(X[:rows])) / rows
    columns = np.ascontiguousarray(X[model.support_].T)
    factors = best(lambda: [np.exp(-model._gamma * (x[:, None] - columns) ** 2) for x in X[:rows]]) / rows
    peer, difference = shapiq_row(model, X[0], explainer(X[:1]).values[0])
    return row(
        f"functional, d = {d}, n = 1000, a row",
        ours,
        peer,
        target,
        over_factors=ours / factors,
        method=explainer(X[:1]).method,
        largest_difference=difference,
    )


def shapiq_row(model, x, values):
    try:
        from shapiq.explainer.product_kernel import ProductKernelExplainer
    except ImportError:
        return None, None
    explainer = ProductKernelExplainer(model=model, index="SV", min_order=1, max_order=1)
    started = time.perf_counter()
    theirs = explainer.explain(x)
    seconds = time.perf_counter() - started
    return seconds, float(np.abs([theirs[(j,)] - value for j, value in enumerate(values)]).max() / np.abs(values).max())


def interventional(d, n_background, target="reported"):
    """A row of an n = 1000 machine: exact, next to the sweep over the background and shap.KernelExplainer (2048 samples at most)."""
    import shap

    model, X = machine(d, n=1200)
    explainer, background = Explainer(model, X[:n_background]), X[:n_background]
    started = time.perf_counter()
    explainer(X[1000:1001])
    first = time.perf_counter() - started
    ours = best(lambda: explainer(X[1000:1064]), 3) / 64
    exact = explainer(X[1000:1002])
    sweep = Explainer(model, background)
    sweep.reader.strategy.pays = lambda *_: False
    before = best(lambda: sweep(X[1000:1002]), 2) / 2
    difference = np.abs(sweep(X[1000:1002]).values - exact.values).max() / np.abs(exact.values).max()
    shown = background[:100]  # its time is that of its calls, proportional to the background: the rest is scaled
    peer = shap.KernelExplainer(model.predict, shown)
    started = time.perf_counter()
    theirs = peer.shap_values(X[1000:1001], nsamples=2048, silent=True)
    seconds = (time.perf_counter() - started) * n_background / len(shown)
    error = np.abs(theirs - exact.values[:1]).max() / np.abs(exact.values[:1]).max() if n_background == len(shown) else None
    return row(
        f"interventional, {n_background} background rows, d = {d}, n = 1200, a row",
        ours,
        seconds,
        target,
        method=exact.method,
        sweep=before,
        sweep_ratio=before / ours,
        first_row=first,
        difference_to_sweep=difference,
        residual=float(np.abs(exact.residual).max()),
        peer_error=error,
    )


def many_rows():
    """100,000 rows, d = 8, 100 background rows, n = 300, one thread."""
    model, X = machine(8, n=300)
    rows = np.random.default_rng(1).normal(size=(100_000, 8))
    explainer = Explainer(model, X[:100])
    explainer(rows[:10])
    started = time.perf_counter()
    explanation = explainer(rows)
    seconds = time.perf_counter() - started
    return row(
        "interventional, 100,000 rows, 100 background rows, d = 8, n = 300",
        seconds,
        None,
        "reported",
        rows_a_second=1e5 / seconds,
        residual=float(np.abs(explanation.residual).max()),
    )


def wide(d):
    model, X = machine(d)
    explainer = Explainer(model)
    return row(
        f"functional, d = {d}, n = 1000, a row",
        best(lambda: explainer(X[:4]), 3) / 4,
        None,
        "works",
        method=explainer(X[:1]).method,
    )


def imports():
    """Wall time of ``import exactshap`` in a fresh process, against ``import numpy``."""

    def fresh(code):
        return best(lambda: subprocess.run([sys.executable, "-c", code], check=True), 7)

    empty = fresh("pass")
    ours, numpy = fresh("import exactshap") - empty, fresh("import numpy") - empty
    return row("import exactshap (numpy next to it)", ours, numpy, "<= 1.3x numpy", over_numpy=ours / numpy)


def memory():
    """Peak of Python and NumPy allocations beyond the result while 100,000 rows x 50 features are explained."""
    model, _ = machine(50, n=300)
    rows = np.random.default_rng(1).normal(size=(100_000, 50))
    explainer = Explainer(model)
    explainer(rows[:10])
    tracemalloc.start()
    started = time.perf_counter()
    explanation = explainer(rows)
    seconds = time.perf_counter() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = explanation.values.nbytes
    return row(
        "100,000 rows x 50 features, n = 300",
        seconds,
        None,
        "<= 1 GB beyond the result",
        megabytes_beyond_result=(peak - result) / 1e6,
    )


def run():
    return [
        functional(20, "reported"),
        functional(100, ">= 500x shapiq, <= 10x the factors"),
        functional(200, ">= 2000x shapiq, <= 10x the factors"),
        wide(1000),
        wide(5000),
        interventional(8, 100),
        interventional(8, 1000),
        interventional(12, 100),
        interventional(12, 1000),
        interventional(20, 100, ">= 100x, residual <= 1e-10"),
        interventional(20, 1000),
        many_rows(),
        imports(),
        memory(),
    ]


if __name__ == "__main__":
    for line in run():
        print(line)

"""Forecasts against what was measured: reader x background x order x rows, in one process on one thread.

``python benchmarks/plan.py [words]`` prints a table of the cases whose name holds all words, and writes
``benchmarks/RESULTS_plan.md`` where there are no words. Times are of the processor, the best of three runs, each of a new
explainer. Memory is the peak of what Python and NumPy allocate during the call; below 1 MiB the interpreter's own objects count.
"""

import gc
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np

from exactshap import Explainer

TIME, MEMORY, FLOOR = 3.0, 1.5, 2.0**20
PLANNING, SHARE = 0.05, 0.02  # seconds, or share of the work, that a plan may take
RNG = np.random.default_rng(0)


def data(n_rows, n_features):
    """Return rows and targets."""
    X = RNG.normal(size=(n_rows, n_features))
    return X, X[:, 0] * X[:, 1] + np.sin(X).sum(axis=1)


def kernel_machine(d, n=400):
    from sklearn.svm import SVR

    return SVR(C=10.0).fit(*data(n, d))


def gaussian_process(d):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    return GaussianProcessRegressor(RBF(3.0), alpha=0.1, optimizer=None).fit(*data(200, d))


def pipeline(d):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    return make_pipeline(StandardScaler(), SVR(C=10.0)).fit(*data(400, d))


def splines(d):
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    return make_pipeline(PolynomialFeatures(2), Ridge()).fit(*data(400, d))


def forest(d, **settings):
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(**{"n_estimators": 50, "max_depth": 8, "random_state": 0, **settings}).fit(*data(1000, d))


def boosting(d):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=100, random_state=0).fit(*data(1000, d))


def linear(d):
    from sklearn.linear_model import Ridge

    return Ridge().fit(*data(400, d))


def functions(d):
    from exactshap.readers import AdditiveModel

    terms = [((j, (j + 1) % d), lambda rows: np.tanh(rows[:, 0] * rows[:, 1])) for j in range(d)]
    return AdditiveModel(terms)


def function(d):
    """Return a function that needs little memory of its own, which no forecast can know."""
    weights = RNG.normal(size=d)
    return lambda rows: np.tanh(np.asarray(rows) @ weights)


# name: (model, columns, background rows, order, explained rows, settings)
CASES = {}
for _rows in (1, 20, 500):
    CASES |= {
        f"SVR, functional, {_rows} rows": (kernel_machine, 10, None, 1, _rows, {}),
        f"SVR, 100 background rows, {_rows} rows": (kernel_machine, 20, 100, 1, min(_rows, 100), {}),
        f"SVR, folded background, {_rows} rows": (kernel_machine, 8, 200, 1, _rows, {}),
        f"SVR, one reference row, {_rows} rows": (kernel_machine, 10, 1, 1, _rows, {}),
        f"SVR, pairs, {_rows} rows": (kernel_machine, 10, None, 2, _rows, {}),
        f"pipeline of SVR, {_rows} rows": (pipeline, 10, 100, 1, _rows, {}),
        f"Gaussian process, {_rows} rows": (gaussian_process, 6, 10, 1, min(_rows, 100), {"uncertainty": True}),
        f"Gaussian process, mean only, {_rows} rows": (gaussian_process, 10, None, 1, _rows, {}),
        f"forest, path-dependent, {_rows} rows": (forest, 10, None, 1, _rows, {}),
        f"forest, 100 background rows, {_rows} rows": (forest, 10, 100, 1, _rows, {}),
        f"forest, pairs, {_rows} rows": (forest, 10, None, 2, _rows, {}),
        f"boosting, path-dependent, {_rows} rows": (boosting, 20, None, 1, _rows, {}),
        f"boosting, 1000 background rows, {_rows} rows": (boosting, 20, 1000, 1, _rows, {}),
        f"linear, {_rows} rows": (linear, 30, 100, 1, _rows, {}),
        f"polynomial, {_rows} rows": (splines, 10, 100, 1, _rows, {}),
        f"functions of pairs, {_rows} rows": (functions, 10, 300, 1, min(_rows, 200), {}),
        f"black box, enumerated, {_rows} rows": (function, 8, 50, 1, min(_rows, 50), {}),
    }
CASES |= {
    "SVR, 20000 background rows, 1 row": (kernel_machine, 20, 20_000, 1, 1, {}),
    "SVR, 50 columns, 20 rows": (kernel_machine, 50, None, 1, 20, {}),
    "deep forest, path-dependent, 100 rows": (lambda d: forest(d, max_depth=None), 30, None, 1, 100, {}),
    "deep forest, 100 background rows, 5 rows": (lambda d: forest(d, max_depth=None), 30, 100, 1, 5, {}),
    "SVR, observational, 50 rows": (lambda d: kernel_machine(d, 200), 8, None, 1, 50, {"value_function": "observational"}),
    "SVR, observational, 1 row": (lambda d: kernel_machine(d, 200), 8, None, 1, 1, {"value_function": "observational"}),
    "SVR, triples, 5 rows": (kernel_machine, 8, None, 3, 5, {}),
    "black box, sampled, 1 row": (function, 16, 50, 1, 1, {}),
    "black box, sampled, 5 rows": (function, 16, 50, 1, 5, {}),
}


def measured(name):
    """Return what was forecast and what came, or None where the case is cut short."""
    make, d, n_background, order, n_rows, settings = CASES[name]
    model, X = make(d), data(n_rows, d)[0]
    background = None if n_background is None else data(n_background, d)[0]
    explainer = lambda: Explainer(model, background, progress=False, **settings)  # noqa: E731
    index = "k-sii" if order > 1 else "shapley"
    explainer().plan(X, index, order)  # measures the rates of this machine, once
    explainer()(X, index, order)
    plans, planning, seconds = [], [], []
    for _ in range(3):
        fresh = explainer()
        started = time.process_time()
        plans.append(fresh.plan(X, index, order))
        planning.append(time.process_time() - started)
        fresh = explainer()
        started = time.process_time()
        fresh(X, index, order)
        seconds.append(time.process_time() - started)
    fresh = explainer()
    gc.collect()
    tracemalloc.start()
    fresh(X, index, order)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    plan = sorted(plans, key=lambda plan: plan.seconds)[1]
    return plan.seconds, min(seconds), min(planning), plan.memory + plan.result, float(peak)


def line(name):
    """Return one line of the table, and whether time, memory and planning are within their bounds."""
    said, took, planning, memory, peak = measured(name)
    factor, share = max(said / took, took / said), max(memory, FLOOR) / max(peak, FLOOR)
    verdicts = factor <= TIME, 1 / MEMORY <= share <= MEMORY, planning <= max(PLANNING, SHARE * took)
    marks = ["" if verdict else " (!)" for verdict in verdicts]
    text = (
        f"| {name} | {1e3 * said:.3g} | {1e3 * took:.3g} | {said / took:.2f}{marks[0]} | {memory / 2**20:.2f} |"
        f" {peak / 2**20:.2f} | {share:.2f}{marks[1]} | {1e3 * planning:.2g}{marks[2]} |"
    )
    return text, verdicts


def main(words):
    names = [name for name in CASES if all(word in name for word in words)]
    head = [
        "| case | ms, forecast | ms, measured | ratio | MiB, forecast | MiB, measured | ratio | ms to plan |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(head), flush=True)
    lines, verdicts = [], []
    for name in names:
        text, verdict = line(name)
        print(text, flush=True)
        lines.append(text)
        verdicts.append(verdict)
    time_, memory, planning = np.mean(verdicts, axis=0)
    summary = (
        f"{len(names)} cases: {time_:.0%} within a factor of {TIME:g} of the time, {memory:.0%} within {MEMORY:g} of the memory,"
        f" {planning:.0%} planned within {1e3 * PLANNING:g} ms or {SHARE:.0%} of the work."
    )
    print(summary)
    if not words:
        page = ["# Forecasts", "", (__doc__ or "").split("\n\n")[1].replace("\n", " "), "", summary, "", *head, *lines, ""]
        Path(__file__).with_name("RESULTS_plan.md").write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])

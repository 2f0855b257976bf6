"""Forecasts against what was measured: models, value functions, orders, columns, rows and backgrounds, in cold and warm processes.

``python benchmarks/forecasts.py [words]`` prints a table of the cases whose name holds all words, and writes
``benchmarks/RESULTS_forecasts.md`` where there are no words. Each case runs in processes of its own, forked from one that has fitted
the models and explained nothing. Times are of the processor, on one thread, of a new explainer's ``plan`` and of its first call: in a
process where both are the first ("cold"), and where the same call was made before ("warm"), the best of two. Of R2 the forecast is
that of the result. Memory is the peak of what Python and NumPy allocate during the call, the result included; below 4 MiB
nothing is short.
"""

import contextlib
import gc
import multiprocessing
import sys
import time
import tracemalloc
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from exactshap import Explainer, decompose_r2

OFF = 3.0  # times that a forecast may be off by
QUICK, SMALL = 1e-3, 2.0**22  # seconds and bytes below which all is one: nobody waits, nothing is short
PLANNING, OF_THE_WORK = 0.05, 0.05  # seconds, or part of the work, that a plan may take


def data(n_rows, n_columns, seed=0):
    """Return rows and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, :6]).sum(axis=1) + 0.1 * rng.normal(size=n_rows)


# -- models ------------------------------------------------------------------------------------------------------------


def svr(d, n=400):
    from sklearn.svm import SVR

    return SVR(C=10.0).fit(*data(n, d))


def gaussian_process(d, kernel=None):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    return GaussianProcessRegressor(kernel or RBF(3.0), alpha=0.1, optimizer=None).fit(*data(200, d))


def matern(d):
    from sklearn.gaussian_process.kernels import Matern

    return gaussian_process(d, Matern(3.0, nu=1.5))


def rational_quadratic(d):
    from sklearn.gaussian_process.kernels import RationalQuadratic

    return gaussian_process(d, RationalQuadratic(3.0, 1.0))


def scaled_svr(d):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    return make_pipeline(StandardScaler(), SVR(C=10.0)).fit(*data(400, d))


def polynomial(d):
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    return make_pipeline(PolynomialFeatures(2), Ridge()).fit(*data(400, d))


def splines(d):
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    return make_pipeline(SplineTransformer(), Ridge()).fit(*data(400, d))


def ridge(d):
    from sklearn.linear_model import Ridge

    return Ridge().fit(*data(400, d))


def logistic(d):
    from sklearn.linear_model import LogisticRegression

    X, y = data(400, d)
    return LogisticRegression().fit(X, y > 0)


def naive_bayes(d):
    from sklearn.naive_bayes import GaussianNB

    X, y = data(400, d)
    return GaussianNB().fit(X, y > 0)


def network(d):
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(hidden_layer_sizes=(30,), activation="tanh", max_iter=50).fit(*data(300, d))


def forest(d, **settings):
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(**{"n_estimators": 50, "max_depth": 8, "random_state": 0, **settings}).fit(*data(1000, d))


def deep_forest(d):
    return forest(d, max_depth=None)


def histogram(d):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=100, random_state=0).fit(*data(1000, d))


def xgboost(d, depth=6, n_trees=100):
    import xgboost

    return xgboost.XGBRegressor(n_estimators=n_trees, max_depth=depth, n_jobs=1).fit(*data(2000, d))


def deep_xgboost(d):
    return xgboost(d, depth=10)


def many_classes(d):
    import xgboost

    X, y = data(2000, d)
    labels = np.argsort(np.argsort(y)) * 8 // len(y)
    return xgboost.XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1).fit(X, labels)


def lightgbm(d):
    import lightgbm

    return lightgbm.LGBMRegressor(n_estimators=100, n_jobs=1, verbose=-1).fit(*data(1000, d))


def lightgbm_classifier(d):
    import lightgbm

    X, y = data(1000, d)
    return lightgbm.LGBMClassifier(n_estimators=50, n_jobs=1, verbose=-1).fit(X, y > 0)


def pairs_of_columns(d):
    from exactshap.readers import AdditiveModel

    terms = [((j, (j + 1) % d), lambda rows: np.tanh(rows[:, 0] * rows[:, 1])) for j in range(d)]
    return AdditiveModel(terms)


def function(d):
    """Return a function that costs next to nothing."""
    weights = np.random.default_rng(1).normal(size=d)
    return lambda rows: np.tanh(np.asarray(rows) @ weights)


def slow_function(d):
    """Return a function that costs what a model does: of several layers, without a reader."""
    rng = np.random.default_rng(1)
    layers = [rng.normal(size=(d, 200)), rng.normal(size=(200, 200)), rng.normal(size=200)]

    def predict(rows):
        hidden = np.asarray(rows)
        for layer in layers[:-1]:
            hidden = np.maximum(hidden @ layer, 0.0)
        return np.tanh(hidden @ layers[-1] / 100.0)

    return predict


# -- cases -------------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """One request, and its model."""

    make: object
    d: int
    n_background: int | None = None
    n_rows: int = 1
    order: int = 1
    index: str = ""
    settings: dict = field(default_factory=dict)

    @property
    def name(self):
        background = "" if self.n_background is None else f", {self.n_background} background rows"
        question = f", {self.asked}" * (self.asked != "shapley") + f", order {self.order}" * (self.order > 1)
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        return f"{self.make.__name__}, {self.d} columns{background}, {self.n_rows} rows{question}{settings}"

    @property
    def asked(self):
        return self.index or ("k-sii" if self.order > 1 else "shapley")

    def explain(self, model):
        """Return a function that plans and explains, once, and what is known after either."""
        X = data(self.n_rows, self.d, seed=2)[0]
        background = None if self.n_background is None else data(self.n_background, self.d, seed=3)[0]
        explainer = Explainer(model, background, progress=False, **self.settings)
        return lambda: explainer.plan(X, self.asked, self.order), lambda: explainer(X, self.asked, self.order)


@dataclass
class R2Case(Case):
    """A decomposition of R2, whose result holds its forecast."""

    @property
    def name(self):
        return f"R2 of {self.make.__name__}, {self.d} columns, {self.n_rows} rows{''.join(f', {k}={v}' for k, v in self.settings.items())}"

    def explain(self, model):
        X, y = data(self.n_rows, self.d, seed=2)
        return None, lambda: decompose_r2(model, X, y, **self.settings)


def cases():
    """Return all cases."""
    every = []

    def add(make, d, backgrounds=(None,), rows=(1,), orders=(1,), index="", **settings):
        every.extend(Case(make, d, m, n, o, index, settings) for m in backgrounds for n in rows for o in orders)

    add(svr, 10, (None, 1), (1, 20, 500))
    add(svr, 20, (100,), (1, 20, 100))
    add(svr, 8, (200,), (1, 500))
    add(svr, 20, (20_000,))
    add(svr, 10, (None,), (1, 20, 500), (2,))
    add(svr, 10, (50,), (1, 20), (2,))
    add(svr, 8, (None,), (5,), (3,))
    add(svr, 50, (None,), (20, 1000))
    add(svr, 200, (None, 20), (20,))
    add(svr, 1000, (None,), (1, 100))
    add(svr, 100, (None,), (20,), (2,))
    add(svr, 10, (None, 50), (20,), index="banzhaf")
    add(svr, 8, (None,), (1, 50), value_function="observational")
    add(scaled_svr, 10, (100,), (1, 20, 500))
    add(gaussian_process, 6, (10,), (1, 20, 100), uncertainty=True)
    add(gaussian_process, 10, (None,), (1, 500))
    add(matern, 8, (20,), (1, 20))
    add(matern, 30, (20,), (1,))
    add(rational_quadratic, 8, (None, 20), (1, 20))
    add(forest, 10, (None, 100), (1, 20, 500))
    add(forest, 10, (None, 100), (1, 100), (2,))
    add(deep_forest, 30, (None, 100), (5, 100))
    add(histogram, 20, (None, 1000), (1, 20, 500, 20_000))
    add(xgboost, 12, (None, 100), (1, 10_000))
    add(xgboost, 12, (None, 100), (1, 100), (2,))
    add(xgboost, 12, (None,), (10,), (3,))
    add(xgboost, 12, (None,), (100,), index="banzhaf")
    add(xgboost, 300, (None, 50), (1, 1000))
    add(xgboost, 100, (None, 50), (200,), (2,))
    add(xgboost, 1000, (None,), (200,), (2,))
    add(deep_xgboost, 12, (None, 100), (1, 100), (1, 2))
    add(many_classes, 12, (None, 100), (1, 1000), output="all")
    add(lightgbm, 20, (None, 200), (1, 1000))
    add(lightgbm_classifier, 8, (50,), (1, 10), output="probability")
    add(lightgbm_classifier, 20, (50,), (1,), output="probability")
    add(ridge, 30, (100,), (1, 500, 50_000))
    add(ridge, 1000, (100,), (1, 200), (1, 2))
    add(polynomial, 10, (100,), (1, 20, 500))
    add(polynomial, 10, (100,), (200,), (2,))
    add(splines, 20, (100,), (1, 1000))
    add(splines, 100, (100,), (200,), (2,))
    add(logistic, 10, (100,), (1, 100), output="probability")
    add(logistic, 100, (50,), (10,), output="probability")
    add(naive_bayes, 10, (50,), (20,), output="probability")
    add(network, 10, (20,), (1, 20))
    add(network, 50, (20,), (5,))
    add(network, 10, (20,), (5,), (2,))
    add(pairs_of_columns, 10, (300,), (1, 20, 200))
    add(pairs_of_columns, 200, (50,), (200,), (2,))
    add(function, 4, (10, 1000), (1, 100))
    add(function, 8, (50,), (1, 20, 50))
    add(function, 10, (50,), (1, 20))
    add(function, 12, (50,), (1, 5))
    add(function, 13, (50,), (1, 5))
    add(function, 10, (50,), (5,), (2,))
    add(function, 16, (50,), (1, 5))
    add(function, 40, (50,), (1,))
    add(function, 200, (20,), (1,))
    add(function, 16, (50,), (2,), (2,))
    add(function, 30, (50,), (2,), budget=500)
    add(slow_function, 10, (20,), (1, 5))
    add(slow_function, 20, (20,), (1,))
    for make, d, n_rows in (
        (forest, 10, 500),
        (forest, 10, 5000),
        (xgboost, 12, 1000),
        (xgboost, 100, 1000),
        (lightgbm, 20, 1000),
    ):
        every.append(R2Case(make, d, None, n_rows))
    every.append(R2Case(xgboost, 12, None, 500, settings={"per_row": True}))
    return every


# -- measuring ---------------------------------------------------------------------------------------------------------


def cold(case, model):
    """Return (forecast, seconds of the call, seconds of planning) of the first call in this process."""
    plan, call = case.explain(model)
    return _timed(plan, call)


def warm(case, model):
    """Return the same after another call, and the bytes (forecast, allocated)."""
    with contextlib.suppress(TypeError):
        case.explain(model)[0]()
    case.explain(model)[1]()
    forecast, seconds, planning = min((_timed(*case.explain(model)) for _ in range(2)), key=lambda times: times[1])
    plan, call = case.explain(model)
    gc.collect()
    if plan is None or case.make is slow_function:  # R2 says no bytes; what a function allocates itself no forecast knows
        return forecast, seconds, planning, None
    said = plan()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    return forecast, seconds, planning, (said.memory + said.result, float(peak))


def _timed(plan, call):
    started = time.process_time()
    said = None if plan is None else plan().seconds
    planned = time.process_time()
    found = call()
    took = time.process_time() - planned
    return found.details["forecast_seconds"] if plan is None else said, took, planned - started


def in_a_fork(function, *arguments):
    """Return what a function returns in a process of its own."""
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)

    def run():
        warnings.simplefilter("ignore")
        with threadpool_limits(1):
            theirs.send(function(*arguments))

    process = context.Process(target=run)
    process.start()
    theirs.close()
    try:
        return mine.recv()
    finally:
        process.join()


def factor(said, took, floor):
    return max(said, floor) / max(took, floor)


def line(case, model):
    """Return one line of the table, and whether times and memory are within their bounds."""
    cells, verdicts = [case.name], []
    first = min((in_a_fork(cold, case, model) for _ in range(2)), key=lambda times: times[1])
    *again, memory = in_a_fork(warm, case, model)
    for said, took, planning in (first, again):
        ratio = factor(said, took, QUICK)
        verdicts += [("time", 1 / OFF <= ratio <= OFF), ("planning", planning <= max(PLANNING, OF_THE_WORK * took))]
        cells += [f"{1e3 * said:.3g}", f"{1e3 * took:.3g}", f"{ratio:.2f}{'' if verdicts[-2][1] else ' (!)'}"]
    if memory is None:
        cells += ["-"] * 3
    else:
        ratio = factor(*memory, SMALL)
        verdicts.append(("memory", 1 / OFF <= ratio <= OFF))
        cells += [*(f"{size / 2**20:.3g}" for size in memory), f"{ratio:.2f}{'' if verdicts[-1][1] else ' (!)'}"]
    cells.append(f"{1e3 * first[2]:.2g} / {1e3 * again[2]:.2g}")
    return f"| {' | '.join(cells)} |", verdicts


def main(words):
    warnings.simplefilter("ignore")
    head = [
        "| case | cold: ms, forecast | measured | ratio | warm: ms, forecast | measured | ratio | MiB, forecast | allocated | ratio | ms to plan |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(head), flush=True)
    chosen, models, lines, verdicts = [case for case in cases() if all(word in case.name for word in words)], {}, [], []
    in_a_fork(warm, chosen[0], chosen[0].make(chosen[0].d))  # rates of this machine that were never measured
    for case in chosen:
        key = case.make, case.d
        if key not in models:
            models[key] = case.make(case.d)
        text, verdict = line(case, models[key])
        print(text, flush=True)
        lines.append(text)
        verdicts += verdict
    held = {kind: [verdict for what, verdict in verdicts if what == kind] for kind in ("time", "memory", "planning")}
    summary = (
        f"{len(chosen)} cases: {np.mean(held['time']):.0%} of {len(held['time'])} times and"
        f" {np.mean(held['memory']):.0%} of {len(held['memory'])} peaks of memory within {OFF:g} times, {np.mean(held['planning']):.0%} planned within"
        f" {1e3 * PLANNING:g} ms or {OF_THE_WORK:.0%} of the work."
    )
    print(summary)
    if not words:
        page = ["# Forecasts", "", (__doc__ or "").split("\n\n")[1].replace("\n", " "), "", summary, "", *head, *lines, ""]
        Path(__file__).with_name("RESULTS_forecasts.md").write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    with threadpool_limits(1):
        main(sys.argv[1:])

"""Mean magnitudes of 100 rows from 3,000 coalitions in all: rows alone, rows together, and one process over rows and coalitions.

    python benchmarks/black_box/many_rows.py RUNS VALUES.npz [MODEL]    write results/black_box_rows.md, or print what one model gives
    python benchmarks/black_box/many_rows.py slow                       add models that take about a second a call

Of two models of a kind with 20 columns, 390 rows of which each run explains 100, against ten background rows. Exact values are read from
forests, SVRs and the Gaussian process; of networks and classifiers they are estimates of 1,000 coalitions a row, which take some
minutes a model and are kept in VALUES.npz.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from exactshap import Explainer, explain

RESULTS = Path(__file__).parents[1] / "results" / "black_box_rows.md"
WAYS = {
    "alone": {},
    "10 together": {"rows_together": 10},
    "25 together": {"rows_together": 25},
    "pooled": {"rows_together": 100, "estimator": "pooled"},
}
D, ROWS, BUDGET, KNOWN = 20, 100, 30, 1000
SLOW = "<!-- slow -->"


class Called:
    """A function that counts its calls and their seconds."""

    def __init__(self, function):
        self.function, self.n_calls, self.seconds = function, 0, 0.0

    def __call__(self, rows):
        start = time.perf_counter()
        answers = self.function(rows)
        self.n_calls, self.seconds = self.n_calls + 1, self.seconds + time.perf_counter() - start
        return answers


def data_of(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(900, D))
    y = X @ (rng.exponential(size=D) * (rng.random(D) < 0.7)) + 2.0 * np.sin(2.0 * X[:, 0] * X[:, 1])
    y += np.abs(X[:, 2]) * X[:, 3] + np.maximum(X[:, 4] + X[:, 5], 0.0) ** 2 + 0.3 * rng.normal(size=900)
    return X, y / y[:500].std()


def models(seed):
    """Return {name: (model, the function that is explained, whether a reader knows its values)}, and the rows."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    from sklearn.neural_network import MLPRegressor
    from sklearn.svm import SVR

    X, y = data_of(seed)
    kernel = RBF(np.full(D, 5.0)) + WhiteKernel(0.1)
    regressors = {
        "random forest": RandomForestRegressor(100, random_state=seed),
        "SVR": SVR(C=10.0),
        "Gaussian process": GaussianProcessRegressor(kernel, random_state=seed),
        "network": MLPRegressor(hidden_layer_sizes=(64, 32), max_iter=400, random_state=seed),
    }
    found = {name: model.fit(X[:500], y[:500]) for name, model in regressors.items()}
    functions = {name: (model, model.predict, name != "network") for name, model in found.items()}
    of_classes = GaussianProcessClassifier(RBF(5.0), random_state=seed).fit(X[:300], y[:300] > 0)
    functions["process, classifier"] = (of_classes, lambda rows: of_classes.predict_proba(rows)[:, 1], False)
    return functions, X


def known(file, key, chosen, rows, background):
    """Return the values of all rows: exact ones, or of so many calls that their errors do not matter."""
    model, predict, is_read = chosen
    if is_read:
        return Explainer(model, background)(rows).values
    stored = dict(np.load(file)) if Path(file).exists() else {}
    if key not in stored:
        found = explain(predict, rows, background, budget=KNOWN)
        largest = np.abs(found.values).mean(axis=0).max()
        print(f"{key}: standard errors of known values {np.sqrt(np.mean(found.std_error**2)) / largest:.4f}", flush=True)
        stored[key] = found.values
        np.savez(file, **stored)
    return stored[key]


def run(predict, rows, values, background, seed, way):
    # With replacement: of a quarter of all rows, drawn without, intervals of exact values would cover .98
    chosen = np.random.default_rng(seed).choice(len(rows), ROWS)
    called, start = Called(predict), time.process_time()
    found = explain(called, rows[chosen], background, budget=BUDGET, random_state=seed, **way)
    seconds = time.process_time() - start
    means, largest = np.abs(values[chosen]).mean(axis=0), np.abs(values[chosen]).mean(axis=0).max()
    errors, importance, all_rows = found.values - values[chosen], found.importance(), np.abs(values).mean(axis=0)
    return (
        np.abs(np.abs(found.values).mean(axis=0) - means).max() / largest,
        np.sqrt(np.mean(errors**2)) / largest,
        np.mean(np.abs(errors) <= 2.0 * found.std_error),
        np.mean((importance.lower <= all_rows) & (all_rows <= importance.upper)),
        called.n_calls,
        seconds,
    )


def main(n_runs, file, only=None):
    lines = [
        "# Many rows for the price of few",
        "",
        f"{ROWS} rows of 390, {D} columns, {BUDGET} coalitions a row, {n_runs} draws of rows (`benchmarks/black_box/many_rows.py`), two models of a kind.",
        "`error`: the largest of a mean magnitude of the rows explained, and `of one value` the root mean square of single values, in units",
        "of the largest mean magnitude. `covered`: what two standard errors of single values cover; `intervals`: what intervals of 95 %",
        "for all 390 rows cover. `calls`: of the function, for all rows; a model of a second a call takes as many seconds. `seconds`: of one",
        "processor, those of the model included.",
        "",
        "<!-- rows -->",
        "",
        "| model | rows | error | of one value | covered | intervals | calls | seconds |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for seed in (0, 1):
        found, X = models(seed)
        background, rows = X[500:510], X[510:]
        for name, chosen in found.items():
            if only not in (None, name):
                continue
            values = known(file, f"{name}/{seed}", chosen, rows, background)
            for way, settings in WAYS.items():
                runs = np.mean([run(chosen[1], rows, values, background, k, settings) for k in range(n_runs)], axis=0)
                numbers = "{:.4f} | {:.3f} | {:.3f} | {:.3f} | {:.0f} | {:.2g}".format(*runs)
                lines.append(f"| {name} {seed} | {way} | {numbers} |")
                print(lines[-1], flush=True)
    if only is None:
        RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def slow():
    """Add two models that take about a second a call, whose exact values readers know."""
    from sklearn.ensemble import BaggingRegressor, RandomForestRegressor
    from sklearn.svm import SVR

    X, y = data_of(0)
    background, rows = X[500:510], X[510 : 510 + ROWS]
    lines = [
        SLOW,
        "",
        f"Models of about a second a call, one draw of {ROWS} rows. `a call` and `explain`: seconds on the clock, of one call and of the whole, the model included.",
        "",
        "| model | rows | error | of one value | covered | calls | a call | explain |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, model in {
        "forest of 2,000 trees": RandomForestRegressor(2000, random_state=0),
        "60 SVRs": BaggingRegressor(SVR(C=10.0), n_estimators=60, random_state=0),
    }.items():
        values = Explainer(model.fit(X[:500], y[:500]), background)(rows).values
        means = np.abs(values).mean(axis=0)
        for way in ("25 together", "pooled"):
            called, start = Called(model.predict), time.perf_counter()
            found = explain(called, rows, background, budget=BUDGET, random_state=0, **WAYS[way])
            seconds, errors = time.perf_counter() - start, found.values - values
            numbers = [
                f"{np.abs(np.abs(found.values).mean(axis=0) - means).max() / means.max():.4f}",
                f"{np.sqrt(np.mean(errors**2)) / means.max():.3f}",
                f"{np.mean(np.abs(errors) <= 2.0 * found.std_error):.3f}",
                f"{called.n_calls}",
                f"{called.seconds / called.n_calls:.2g}",
                f"{seconds:.3g}",
            ]
            lines.append(f"| {name} | {way} | {' | '.join(numbers)} |")
            print(lines[-1], flush=True)
    text = RESULTS.read_text(encoding="utf-8").split(SLOW)[0].rstrip()
    RESULTS.write_text("\n".join([text, "", *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "slow":
        slow()
    else:
        main(int(sys.argv[1]), *sys.argv[2:])

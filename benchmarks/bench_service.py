"""A service that explains single rows, one after the other: median and 99th percentile of 20,000 calls, and how memory grows.

``ours`` is the median; "fixed" is what a call costs beyond the model's own predict of the row. Run ``python benchmarks/bench_service.py``
for the table alone.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
from timing import best, row

from exactshap import Explainer

CALLS, WARM_UP = 20_000, 500
PERCENTILE, TARGET = 99, "p99 <= 3 p50, no growth"


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3:10] @ rng.normal(size=7)


def models():
    """Yield a name, an explainer and the rows that come, one at a time."""
    from sklearn.svm import SVR

    X, y = data()
    yield "SVR, 300 support vectors", Explainer(SVR().fit(X[:300], y[:300])), X
    try:
        from xgboost import XGBRegressor

        yield "XGBoost, 100 trees of depth 6", Explainer(XGBRegressor(n_estimators=100, max_depth=6, n_jobs=1).fit(X, y)), X
    except ImportError:
        pass
    try:
        from interpret.glassbox import ExplainableBoostingRegressor

        ebm = ExplainableBoostingRegressor(interactions=5, outer_bags=1, max_rounds=100, n_jobs=1, random_state=0)
        yield "EBM, 5 pairs", Explainer(ebm.fit(X, y)), X
    except ImportError:
        pass
    yield from one_hot()


def one_hot():
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y = data()
    rng, names = np.random.default_rng(1), [f"x{j}" for j in range(20)]
    frame = pd.DataFrame(X, columns=names).assign(x0=rng.choice(list("abcd"), 3000), x1=rng.choice(list("xyz"), 3000))
    steps = make_column_transformer((OneHotEncoder(), ["x0", "x1"]), (StandardScaler(), names[2:]))
    yield "one-hot pipeline, frame", Explainer(make_pipeline(steps, Ridge()).fit(frame, y), frame[:100]), frame


def resident_mib():
    """Return the resident memory of this process; not a number where the system does not tell it."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20 if statm.exists() else float("nan")


def loop(explainer, rows):
    """Return the seconds of each call, and the memory after a warm-up and at the end."""
    some = [rows[i : i + 1] for i in range(1000)]
    for i in range(WARM_UP):
        explainer(some[i % 1000])
    before, seconds = resident_mib(), np.empty(CALLS)
    for i in range(CALLS):
        started = time.perf_counter()
        explainer(some[i % 1000])
        seconds[i] = time.perf_counter() - started
    return seconds, before, resident_mib()


def run():
    results = []
    for name, explainer, rows in models():
        seconds, before, after = loop(explainer, rows)
        half, tail = np.percentile(seconds, [50, PERCENTILE])
        one = explainer._checked(rows[:1])
        own = best(lambda e=explainer, r=one: e.reader.predict(r), 200)
        facts = {"p99_ms": tail * 1e3, "p99_over_p50": tail / half, "growth_MiB": after - before, "own_predict_ms": own * 1e3}
        results.append(row(f"{name}: {CALLS:,} single rows", half, target=TARGET, **facts))
        print(results[-1], file=sys.stderr, flush=True)
    return results


if __name__ == "__main__":
    run()

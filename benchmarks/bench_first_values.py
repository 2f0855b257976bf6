"""The first values of a fresh process with empty caches, for each model of the README's table.

    python benchmarks/bench_first_values.py [name ...]             print seconds
    python benchmarks/bench_first_values.py --profile [name ...]   print what they went to

Each model gets a process of its own. Its library is imported and the model fitted beforehand; the clock runs from the first call of
exactshap to its return. The package is compiled to bytecode before, as pip leaves it.
"""

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import row

import exactshap

FITS = {
    "xgboost": "from xgboost import XGBRegressor; model = XGBRegressor(n_estimators=100, max_depth=6, n_jobs=1).fit(X, y)",
    "lightgbm": "from lightgbm import LGBMRegressor; model = LGBMRegressor(n_jobs=1, verbose=-1).fit(X, y)",
    "catboost": (
        "from catboost import CatBoostRegressor; "
        "model = CatBoostRegressor(iterations=100, verbose=0, thread_count=1, allow_writing_files=False).fit(X, y)"
    ),
    "forest": "from sklearn.ensemble import RandomForestRegressor as F; model = F(50, max_depth=8, random_state=0).fit(X, y)",
    "ebm": (
        "from interpret.glassbox import ExplainableBoostingRegressor as E; "
        "model = E(interactions=3, outer_bags=2, n_jobs=1).fit(X, y)"
    ),
    "linear": "from sklearn.linear_model import Ridge; model = Ridge().fit(X, y)",
    "svr": "from sklearn.svm import SVR; model = SVR(C=10.0).fit(X, y)",
    "gp": (
        "from sklearn.gaussian_process import GaussianProcessRegressor as G; from sklearn.gaussian_process.kernels import RBF; "
        "model = G(RBF(3.0), alpha=0.1, optimizer=None).fit(X, y)"
    ),
    "pipeline": (
        "from sklearn.pipeline import make_pipeline; from sklearn.preprocessing import StandardScaler; from sklearn.svm import SVR; "
        "model = make_pipeline(StandardScaler(), SVR()).fit(X, y)"
    ),
    "black_box": "model = lambda rows: rows[:, 0] * rows[:, 1] + rows[:, 2]",
    "r2": "from xgboost import XGBRegressor; model = XGBRegressor(n_estimators=50, max_depth=3, n_jobs=1).fit(X, y)",
    "mmd": "from sklearn.svm import SVR",
    "hsic": "from sklearn.svm import SVR",
}
CALLS = {
    "linear": "exactshap.explain(model, X[:10], X[:50])",
    "svr": "exactshap.explain(model, X[:10], X[:50])",
    "black_box": "exactshap.explain(model, X[:2], X[:20])",
    "pipeline": "exactshap.explain(model, X[:10], X[:50])",
    "r2": "exactshap.decompose_r2(model, X, y)",
    "mmd": "exactshap.decompose_mmd(X[:200], X[200:400])",
    "hsic": "exactshap.decompose_hsic(X[:200], y[:200, None])",
}
DATA = """
import time, warnings
import numpy as np
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 10))
y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.normal(size=500)
"""
TIMED = """
import exactshap
started, worked = time.perf_counter(), time.process_time()
{call}
print(time.perf_counter() - started, time.process_time() - worked)
"""
PROFILED = """
import cProfile, pstats, exactshap
profile = cProfile.Profile()
profile.runcall(lambda: {call})
pstats.Stats(profile).sort_stats("cumulative").print_stats(70)
"""


def printed(name: str, code: str) -> str:
    """Return what a fresh process with empty caches prints."""
    script = DATA + FITS[name] + code.format(call=CALLS.get(name, "exactshap.explain(model, X[:10])"))
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "XDG_CACHE_HOME": empty}
        return subprocess.run(
            [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True, check=True
        ).stdout


def seconds(name: str) -> tuple[float, float]:
    """Return the seconds of a first call, and those of them on the CPU."""
    compileall.compile_dir(Path(exactshap.__file__).parent, quiet=2)
    wall, of_cpu = map(float, printed(name, TIMED).split())
    return wall, of_cpu


def run() -> list[dict]:
    """Time three processes of each model: the first and the quickest of them."""
    results = []
    for name in FITS:
        found = [seconds(name)[0] for _ in range(3)]
        results.append(row(name.replace("_", " "), found[0], None, "<= 0.5 s", best_of_three=min(found)))
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(FITS), metavar="name")
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    for name in asked.names:
        if asked.profile:
            print(printed(name, PROFILED))
        else:
            print("{:10} {:.2f} s, {:.2f} s of them on the CPU".format(name, *seconds(name)), flush=True)

"""What the checks of v(S) cost: an explanation of 1 to 1000 rows next to the same call with the checks patched out (``peer``).

``ours`` is CPU time, a quartile of many calls on ever other rows, the two kinds in turn in one process; the first explanation,
which checks the background's rows, is before the clock starts. Run ``python benchmarks/bench_checks.py ridge svr`` for some of the table alone.
"""

import sys
import time
from contextlib import nullcontext
from unittest import mock

import numpy as np
from timing import row

from exactshap import Explainer
from exactshap.explainer._certify import Check

N_ROWS = (1, 10, 100, 1000)
SECONDS, FEWEST = 0.5, 2  # CPU time of both kinds of calls together; pairs of calls at least
ROWS = {
    "SVR": (500, 100),
    "SVR after StandardScaler": (500, 100),
    "small SVR": (60, 20),
    "GP": (60, 20),
}  # of fit and background
LONGEST = 2.5  # seconds of one call
QUANTILE = 0.25  # of the calls: others on the machine slow some of them down


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3:10] @ rng.normal(size=7)


def models(chosen):
    """Yield names and explainers of the families, with a background of 100 rows where they take one."""
    X, y = data()
    for name, make in {**sklearn_models(), **boosters()}.items():
        if not chosen or any(word.lower() in name.lower() for word in chosen):
            try:
                model = make()
            except ImportError:
                continue
            n, background = ROWS.get(name, (len(X), 100))
            yield name, Explainer(model.fit(X[:n], y[:n]), None if "path-dependent" in name else X[:background]), X


def sklearn_models():
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    return {
        "Ridge": Ridge,
        "StandardScaler, Ridge, scaled target": lambda: TransformedTargetRegressor(
            make_pipeline(StandardScaler(), Ridge()), transformer=StandardScaler()
        ),
        "SVR": lambda: SVR(epsilon=0.3),
        "small SVR": SVR,
        "SVR after StandardScaler": lambda: make_pipeline(StandardScaler(), SVR(epsilon=0.3)),
        "GP": lambda: GaussianProcessRegressor(4.0 * RBF(4.0), alpha=0.1, optimizer=None),
        "random forest": lambda: RandomForestRegressor(100, max_depth=6, n_jobs=1),
        "random forest, path-dependent": lambda: RandomForestRegressor(100, max_depth=6, n_jobs=1),
        "gradient boosting": GradientBoostingRegressor,
        "histogram boosting": lambda: HistGradientBoostingRegressor(max_depth=6),
    }


def boosters():
    def xgboost():
        from xgboost import XGBRegressor

        return XGBRegressor(n_estimators=100, max_depth=6, n_jobs=1)

    def lightgbm():
        from lightgbm import LGBMRegressor

        return LGBMRegressor(n_estimators=100, n_jobs=1, verbose=-1)

    def catboost():
        from catboost import CatBoostRegressor

        return CatBoostRegressor(iterations=100, depth=6, verbose=0, thread_count=1, allow_writing_files=False)

    def ebm():
        from interpret.glassbox import ExplainableBoostingRegressor

        return ExplainableBoostingRegressor(interactions=5, outer_bags=1, max_rounds=100, n_jobs=1, random_state=0)

    return {
        "EBM, 5 pairs": ebm,
        "XGBoost": xgboost,
        "XGBoost, path-dependent": xgboost,
        "LightGBM": lightgbm,
        "CatBoost": catboost,
    }


def unchecked(explainer):
    """Return what replaces the checks of an explainer by none."""
    nothing = {"check_rows": lambda table: None, "_check": lambda *rest, **names: Check()}
    return mock.patch.multiple(explainer._certifier, **nothing)


def both(explainer, X, n_rows):
    """Return the CPU seconds of an explanation with its checks and without, each of other rows than the one before; None: too long."""
    kinds, rng = (nullcontext(), unchecked(explainer)), np.random.default_rng(0)
    explainer(X[:n_rows])
    started = time.process_time()
    explainer(X[:n_rows])
    if time.process_time() - started > LONGEST:
        return None
    found = [], []
    started = time.process_time()
    while time.process_time() - started < SECONDS or len(found[-1]) < FEWEST:
        for kind, seconds in zip(kinds, found, strict=True):
            first = int(rng.integers(len(X) - n_rows))
            rows = X[first : first + n_rows]
            with kind:
                before = time.process_time()
                explainer(rows)
                seconds.append(time.process_time() - before)
    return tuple(float(np.quantile(seconds, QUANTILE)) for seconds in found)


def run(chosen=()):
    return list(lines(chosen))


def lines(chosen):
    for name, explainer, X in models(chosen):
        for n_rows in N_ROWS:
            if (found := both(explainer, X, n_rows)) is None:
                continue
            ours, peer = found
            share = f"{100.0 * (ours / peer - 1.0):.1f} %"
            yield row(f"{name}, n = {n_rows}", ours, peer, "<= 5 % more", share=share, extra_ms=1e3 * (ours - peer))


if __name__ == "__main__":
    for line in lines(sys.argv[1:]):
        print(
            f"{line['what']:45s} {1e3 * line['ours']:10.3f} ms {line['extra_ms']:10.3f} ms more {line['share']:>8s}", flush=True
        )

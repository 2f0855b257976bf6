"""Compare two source trees by calls of a millisecond and more that users wait for: ``python benchmarks/house.py OLD NEW``.

OLD and NEW are checkouts, each with its native library built (``python src/native/build.py``). One process for each holds the models;
they are called in turn, so that what else the machine does meets both. Printed are the best seconds of each and their ratio: above 1
the new tree is slower. ``--only TEXT`` limits the table to cases with TEXT in their names; ``--cpu`` counts the processes' own time,
which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROUNDS = 7  # pairs of calls; the best of each counts
LONG, FEW_ROUNDS = 3.0, 3  # seconds of a call beyond which so many pairs will do


def cases() -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    """Yield names, and what fits a model and returns the call to time."""
    import numpy as np
    from sklearn.base import is_classifier
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    import exactshap

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 12))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3:8].sum(axis=1)

    def explained(model: Any, n_fit: int, n_rows: int, n_background: int = 0, **asked: Any) -> Callable[[], Callable[[], Any]]:
        def make() -> Callable[[], Any]:
            target = (y > 0).astype(int) if is_classifier(model) else y
            fitted = model.fit(X[:n_fit], target[:n_fit])
            explainer = exactshap.Explainer(fitted, X[:n_background] if n_background else None)
            return lambda: explainer(X[-n_rows:], **asked)

        return make

    forest = RandomForestRegressor(50, max_depth=8, random_state=0)
    scaled = make_pipeline(StandardScaler(), SVR())
    process = GaussianProcessRegressor(4.0 * kernels.RBF(3.0), alpha=0.1, optimizer=None)
    yield "forest, 2,000 rows", explained(forest, 3000, 2000)
    yield "forest, 1,000 rows, background of 100", explained(forest, 3000, 1000, 100)
    yield "SVR behind a scaler, 1 row, background of 100", explained(scaled, 1000, 1, 100)
    yield "SVR behind a scaler, 1,000 rows", explained(scaled, 1000, 1000)
    yield "SVR, 1,000 rows, background of 50", explained(SVR(), 500, 1000, 50)
    yield "GP, 1,000 rows", explained(process, 300, 1000)
    yield "GP, 1 row, background of 50", explained(process, 300, 1, 50)
    radial = GaussianProcessRegressor(kernels.Matern(3.0, nu=1.5), alpha=1.0, optimizer=None)
    yield "GP of a Matern kernel, 20 rows, background of 50", explained(radial, 300, 20, 50)
    yield "Ridge, 20,000 rows", explained(Ridge(), 3000, 20_000, 100)
    yield "Ridge behind a scaler, 20,000 rows", explained(make_pipeline(StandardScaler(), Ridge()), 3000, 20_000, 100)
    yield "MMD of 2 x 2,000 rows", lambda: lambda: exactshap.decompose_mmd(X[:2000], X[2000:4000])
    yield "HSIC of 2,000 rows", lambda: lambda: exactshap.decompose_hsic(X[:2000], y[:2000])
    yield (
        "R2 of a forest, 5,000 rows",
        lambda: (lambda m: lambda: exactshap.decompose_r2(m, X[:5000], y[:5000]))(
            RandomForestRegressor(20, max_depth=6, random_state=0).fit(X[:3000], y[:3000])
        ),
    )
    yield "function, 5 rows of 10 columns, background of 50", lambda: _function(X[:, :10], 5, 50)
    yield "function, 5 rows of 20 columns, sampled", lambda: _function(np.hstack([X, X[:, :8]]), 5, 50, budget=500)
    yield from boosters(explained)


def _function(X: Any, n_rows: int, n_background: int, **settings: Any) -> Callable[[], Any]:
    import numpy as np

    import exactshap

    def function(rows: Any) -> Any:
        return np.tanh(rows[:, 0] * rows[:, 1]) + rows[:, 2:].sum(axis=1) * rows[:, 3]

    explainer = exactshap.Explainer(function, X[:n_background], **settings)
    return lambda: explainer(X[-n_rows:])


def boosters(explained: Callable[..., Any]) -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    try:
        from xgboost import XGBClassifier

        trees = XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1)
        yield "XGBoost, 1 row", explained(trees, 3000, 1)
        yield "XGBoost, 5,000 rows", explained(trees, 3000, 5000)
        yield "XGBoost, 1,000 rows, background of 100", explained(trees, 3000, 1000, 100)
    except ImportError:
        pass
    try:
        from lightgbm import LGBMRegressor

        yield "LightGBM, 2,000 rows", explained(LGBMRegressor(n_estimators=100, n_jobs=1, verbose=-1), 3000, 2000)
    except ImportError:
        pass
    try:
        from interpret.glassbox import ExplainableBoostingRegressor

        machine = ExplainableBoostingRegressor(interactions=5, outer_bags=1, max_rounds=100, n_jobs=1, random_state=0)
        yield "EBM, 5,000 rows, background of 100", explained(machine, 2000, 5000, 100)
    except ImportError:
        pass


def work(clock: Callable[[], float]) -> None:
    """Answer each name on standard input with the seconds of one call."""
    warnings.simplefilter("ignore")
    answers, sys.stdout = sys.stdout, sys.stderr
    makers, name, call = dict(cases()), "", None
    print("\t".join(makers), file=answers, flush=True)
    for line in sys.stdin:
        if line.strip() != name or call is None:
            name = line.strip()
            call = makers[name]()
            call()
        started = clock()
        call()
        print(clock() - started, file=answers, flush=True)


class Worker:
    """A process on the sources of one tree."""

    def __init__(self, tree: str, cpu: bool) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(tree).resolve() / "src")}
        command = [sys.executable, __file__, "--work", *["--cpu"] * cpu]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.names = self._line().split("\t")

    def seconds(self, name: str) -> float:
        assert self.process.stdin is not None
        print(name, file=self.process.stdin, flush=True)
        return float(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            raise SystemExit("A worker has ended; its message is above")
        return line.rstrip("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", metavar="OLD NEW")
    parser.add_argument("--only", default="")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        return work(time.process_time if chosen.cpu else time.perf_counter)
    if len(chosen.trees) != 2:
        parser.error("two source trees are compared")
    old, new = (Worker(tree, chosen.cpu) for tree in chosen.trees)
    for name in old.names:
        if chosen.only in name:
            pairs = [(old.seconds(name), new.seconds(name))]
            rounds = FEW_ROUNDS if max(pairs[0]) > LONG else ROUNDS
            pairs += [(old.seconds(name), new.seconds(name)) for _ in range(rounds - 1)]
            before, now = map(min, zip(*pairs, strict=True))
            print(f"{name:50s} {1e3 * before:10.2f} ms {1e3 * now:10.2f} ms {now / before:6.2f}", flush=True)


if __name__ == "__main__":
    main()

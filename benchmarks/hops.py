"""Follow one warm row through the library: calls, files, changes of file, depth.

Run ``python benchmarks/hops.py``; with ``--trail NAME`` it prints where the row of that case goes. A call to a function of another
file than that of the call before it is a change of file: rows should cross each room once, downwards, and come back.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import exactshap

ROOT = str(Path(exactshap.__file__).parent) + os.sep


def walk(call: Callable[[], Any]) -> tuple[list[tuple[str, str]], int]:
    """Return (file, function) of each call inside the package, in order, and the depth of the deepest."""
    trail: list[tuple[str, str]] = []
    depth = deepest = 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(ROOT):
            return
        depth += 1 if event == "call" else -1
        deepest = max(deepest, depth)
        if event == "call":
            trail.append((code.co_filename[len(ROOT) :], getattr(code, "co_qualname", code.co_name)))

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return trail, deepest


def cases() -> Iterator[tuple[str, exactshap.Explainer, np.ndarray]]:
    from sklearn.svm import SVR

    rng = np.random.default_rng(0)
    X, wide = rng.normal(size=(300, 8)), rng.normal(size=(300, 20))
    few, many = SVR().fit(X, X[:, 0] * X[:, 1]), SVR().fit(wide, wide[:, 0] * wide[:, 1])
    yield "SVR functional", exactshap.Explainer(few), X[:1]
    yield "SVR interventional", exactshap.Explainer(few, X[:100]), X[:1]
    yield "SVR interventional, 20 columns", exactshap.Explainer(many, wide[:100]), wide[:1]
    yield (
        "black box auto",
        exactshap.Explainer(lambda rows: many.predict(rows), wide[:20], random_state=0, budget=500),
        wide[:1],
    )
    try:
        from xgboost import XGBRegressor
    except ImportError:
        return
    trees = XGBRegressor(n_estimators=50, max_depth=6).fit(X, X[:, 0] * X[:, 1])
    yield "XGBoost path-dependent", exactshap.Explainer(trees), X[:1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trail", metavar="NAME", help="print the trail of the cases whose name starts so")
    wanted = parser.parse_args().trail
    warnings.simplefilter("ignore")
    for name, explainer, row in cases():
        for _ in range(3):  # tables are kept
            explainer(row)
        trail, deepest = walk(lambda: explainer(row))  # noqa: B023
        files = [file for file, _ in trail]
        changes = sum(one != other for one, other in itertools.pairwise(files))
        print(f"{name:32} {len(trail):4} calls {len(set(files)):3} files {changes:4} changes of file {deepest:3} deep")
        if wanted is not None and name.startswith(wanted):
            print("\n".join(f"    {file} {function}" for file, function in trail))


if __name__ == "__main__":
    main()

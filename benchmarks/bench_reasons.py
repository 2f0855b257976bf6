"""Seconds of a million rows' reasons: an XGBoost model, explained and reduced in blocks of rows.

python benchmarks/bench_reasons.py [ROWS]
"""

import sys
import time

import numpy as np
import pandas as pd
from xgboost import XGBClassifier

from exactshap import Explainer

BLOCK, COLUMNS = 50_000, 20


def main(n_rows=1_000_000):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, COLUMNS)), columns=[f"column {j}" for j in range(COLUMNS)])
    y = (X["column 0"] * X["column 1"] + X["column 2"] + rng.normal(size=n_rows) > 0).astype(int)
    model = XGBClassifier(n_estimators=200, max_depth=6, n_jobs=2).fit(X[:50_000], y[:50_000])
    explainer = Explainer(model, n_jobs=2, progress=False)
    explaining = reducing = 0.0
    for start in range(0, n_rows, BLOCK):
        begun = time.perf_counter()
        explanation = explainer(X[start : start + BLOCK])
        middle = time.perf_counter()
        frame = explanation.reasons(4, adverse="positive").to_frame()
        explaining, reducing = explaining + middle - begun, reducing + time.perf_counter() - middle
        assert len(frame) == explanation.n_rows
    total = explaining + reducing
    print(
        f"{n_rows:,} rows, {COLUMNS} columns, 200 trees of depth 6, 2 threads: {total:.0f} s ({3600 * n_rows / total:,.0f} rows an hour)"
    )
    print(f"explained in {explaining:.0f} s; reasons, hashes and frames in {reducing:.1f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

"""What STAR-SHAP's Tables 6 and 8 need besides: EBM as it comes, and the training R2 of cells whose run kept the test R2 only.

    python benchmarks/papers/star_extra.py ebm [PATTERN]       # of data sets, for example "wine"
    python benchmarks/papers/star_extra.py train [PATTERN]     # of cells of Table 8, for example "FacesUCR/*"

``ebm`` chooses nothing, neither as the authors nor as we did for the tables, and writes ``results/star_ebm.json``. ``train`` fits stored choices again,
requires the stored test R2 to come back, and adds training R2 and the seconds of that fit to ``results/star_table8.json``.
"""

from __future__ import annotations

import fnmatch
import json
import sys
import time
import warnings

from star import N_TERMS, PRINTED_8, SERIES, SMALL_FIRST, table
from star_data import load, stored, structure, write


def ebm_defaults(pattern):
    """Run EBM with the defaults of the installed interpret: nothing in it was fitted to the printed tables."""
    import interpret
    from interpret.glassbox import ExplainableBoostingRegressor

    for column in SMALL_FIRST:
        done = column in stored("star_ebm.json")
        if done or not fnmatch.fnmatchcase(column, pattern) or (data := load(column)) is None:
            continue
        started = time.perf_counter()
        model = ExplainableBoostingRegressor(n_jobs=1).fit(*data[:2])
        scores = {"test": float(model.score(*data[2:])), "train": float(model.score(*data[:2]))}
        run = scores | {"seconds": time.perf_counter() - started, "interpret": interpret.__version__}
        print(column, run, flush=True)
        write("star_ebm.json", json.dumps(stored("star_ebm.json") | {column: run}, indent=0))  # as others left it meanwhile


def training_scores(pattern):
    """Add training R2 and the seconds of one fit to the stored cells of Table 8."""
    found = stored("star_table8.json")
    for key, run in found.items():
        whole = "fit_seconds" in run or key.endswith("/EBM")  # EBM is fitted once: `star.py --only` kept both
        if whole or not fnmatch.fnmatchcase(key, pattern) or (data := load(key.split("/")[0])) is None:
            continue
        started = time.process_time()
        model = again(key, run["settings"]).fit(*data[:2])
        run["fit_seconds"] = time.process_time() - started
        test = float(model.score(*data[2:]))
        if abs(test - run["test"]) > 1e-4:
            raise ValueError(f"{key}: test R2 {test} now, {run['test']} stored")
        run["train"] = float(model.score(*data[:2]))
        print(key, run, flush=True)
        write("star_table8.json", json.dumps(found, indent=0))
    write("star_table8.md", table("table8", SERIES, PRINTED_8, found))


def again(key, settings):
    """Return the model of a stored cell, not yet fitted."""
    from exactshap.estimators import RKHSWeightingRegressor

    column, name = key.split("/")
    base, subsets = structure(name)
    return RKHSWeightingRegressor(
        base=base, subsets=subsets, sequence=column in SERIES, n_terms=N_TERMS, random_state=0, **settings
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"ebm": ebm_defaults, "train": training_scores}[sys.argv[1]](*(sys.argv[2:] or ["*"]))

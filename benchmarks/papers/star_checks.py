"""Hold the notes on STAR-SHAP's Tables 6 and 8 against the tables, and run what the notes on data and seeds rest on.

    python benchmarks/papers/star_checks.py [list] [runs]

``list`` names every cell whose test R2 is more than 0.02 from the printed one and ends with status 1 if a note is missing or has no
cell; ``runs`` writes ``results/star_checks.md``. What the notes say of the regulariser is run by ``star_published.py``.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from paper_data import require
from star import DATASETS, PRINTED_6, PRINTED_8, SERIES
from star_data import RESULTS, load, regression_data, sigma, standardised, stored, structure, write

LIMIT = 0.02
TABLES = {"star_table6": (DATASETS, PRINTED_6), "star_table8": (SERIES, PRINTED_8)}


def differences(name):
    """Return {"dataset, model": (ours, printed)} of the cells that differ by more than the limit, and the cells not run."""
    found, missing = {}, []
    columns, printed = TABLES[name]
    runs = stored(f"{name}.json")
    for model, numbers in printed.items():
        for column, number in zip(columns, numbers, strict=True):
            run = runs.get(f"{column}/{model}")
            if run is None:
                missing.append(f"{column}, {model}")
            elif abs(run["test"] - number) > LIMIT:
                found[f"{column}, {model}"] = (run["test"], number)
    return found, missing


def noted(name):
    """Return the cells that the notes explain: the first entry of every row of their tables, "dataset, model"."""
    lines = (RESULTS / f"{name}_notes.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[1].strip() for line in lines if line.startswith("| ")]
    return {row for row in rows if row.split(",")[0] in (*DATASETS, *SERIES)}


def compare():
    """Print every difference; return whether the notes name exactly those."""
    agree = True
    for name in TABLES:
        found, missing = differences(name)
        for cell, (ours, number) in found.items():
            print(f"{name}: {cell}: {ours:.3f} / {number:.3f}{'' if cell in noted(name) else '   NOT EXPLAINED'}")
        stale = sorted(noted(name) - set(found))
        print(f"{name}: {len(found)} differences; not run: {missing}; explained without a difference: {stale}")
        agree &= noted(name) == set(found) and not missing
    return agree


# -- runs ----------------------------------------------------------------------------------------------------------------


def tree_on_concrete():
    """Ties between splits are broken at random: the seeds of one tree."""
    from sklearn.tree import DecisionTreeRegressor

    X, y, X_test, y_test = load("concrete")
    scores = [DecisionTreeRegressor(max_depth=10, random_state=i).fit(X, y).score(X_test, y_test) for i in range(50)]
    return f"DecisionTreeRegressor, concrete, depth 10 (theirs and ours), 50 seeds: test R2 {np.min(scores):.3f} to {np.max(scores):.3f}"


def sample_of(fraction, split, X, y):
    from sklearn.model_selection import train_test_split

    X, X_test, y, y_test = train_test_split(X, y, train_size=0.75, random_state=split)
    n = int(fraction * len(X))
    return standardised(X[:n], y[:n], X_test, y_test)


def conductivity_models():
    from interpret.glassbox import ExplainableBoostingRegressor
    from sklearn.svm import SVR
    from sklearn.tree import DecisionTreeRegressor

    from exactshap.estimators import RKHSWeightingRegressor

    boosting = {"max_bins": 256, "learning_rate": 0.1, "max_rounds": 1000, "outer_bags": 1, "interactions": 0, "n_jobs": 1}
    models = {
        "DecisionTreeRegressor": DecisionTreeRegressor(max_depth=20, random_state=0),
        "SVR": SVR(C=50),
        "EBM (one bag, no pairs, 10 x the rate)": ExplainableBoostingRegressor(**boosting, random_state=0),
    }
    name, theta = "RWSign 1-STAR", 0.9
    base, subsets = structure(name)
    settings = {"subsets": subsets, "sigma": sigma(base, theta), "max_theta": theta, "alpha": 1e-7, "random_state": 0}
    models[f"{name} (T = 1000)"] = RKHSWeightingRegressor(base, n_terms=1000, **settings)
    return models


def conductivity_curve(fractions=(0.25, 0.5, 1.0), n_splits=5):
    """What more rows do: the sample has a fifth of the rows that the paper has."""
    data = regression_data("conductivity")
    if data is None:
        return []
    lines = [f"Conductivity, test R2 over {n_splits} splits of the sample, by training rows.", ""]
    lines += ["| model | " + " | ".join(str(int(f * 3189)) for f in fractions) + " |", "|---" * (len(fractions) + 1) + "|"]
    for name, model in conductivity_models().items():
        n = 2 if name.startswith("EBM") else n_splits
        scores = [[_score(model, *sample_of(f, split, *data)) for split in range(n)] for f in fractions]
        cells = [f"{np.mean(s):.3f} ± {np.std(s, ddof=1):.3f}" for s in scores]
        lines.append(f"| {name}{' (2 splits)' if n == 2 else ''} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def _score(model, X, y, X_test, y_test):
    return model.fit(X, y).score(X_test, y_test)


def runs():
    require("concrete.csv.gz", "conductivity_sample20.parquet")
    lines = ["# STAR-SHAP, Table 6: seeds and sizes behind the notes", "", tree_on_concrete(), "", *conductivity_curve(), ""]
    write("star_checks.md", "\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts = sys.argv[1:] or ["list", "runs"]
    if "runs" in parts:
        runs()
    if "list" in parts and not compare():
        sys.exit(1)

"""Q-SHAP's simulation and its healthcare table (Jiang, Zhang & Zhang): theoretical R2 recovered from data, insurance shares.

    python benchmarks/papers/qshap.py                     both, in about a minute
    python benchmarks/papers/qshap.py --repeats 100       more data sets for the simulation

Writes ``results/qshap_table6.md`` and ``results/qshap_table3.md``. The insurance data are read from the folder in
EXACTSHAP_DATA; without them that part is skipped and says so.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import pathlib

import numpy as np

from exactshap import decompose_r2

RESULTS = pathlib.Path(__file__).parent / "results"
DATA = pathlib.Path(os.environ.get("EXACTSHAP_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"))
PROBABILITIES = (0.6, 0.7, 0.5)
MODELS = {
    "a": lambda x: 4 * x[0] - 5 * x[1] + 6 * x[2],
    "b": lambda x: 4 * x[0] - 5 * x[1] + 6 * x[2] + 3 * x[0] * x[1] - x[0] * x[2],
    "c": lambda x: 4 * x[0] - 5 * x[1] + 6 * x[2] + 3 * x[0] * x[1] - x[0] * x[1] * x[2],
}
DEPTH = {"a": 1, "b": 2, "c": 3}  # section 5
# Table 6: total, X1, X2, X3
PRINTED = {
    ("a", 0.5): (0.9864, 0.2094, 0.2863, 0.4907), ("a", 1.0): (0.9477, 0.2012, 0.2750, 0.4715),
    ("a", 1.5): (0.8894, 0.1888, 0.2581, 0.4425), ("b", 0.5): (0.9860, 0.4390, 0.1341, 0.4129),
    ("b", 1.0): (0.9459, 0.4212, 0.1286, 0.3961), ("b", 1.5): (0.8860, 0.3945, 0.1205, 0.3710),
    ("c", 0.5): (0.9868, 0.4288, 0.1450, 0.4130), ("c", 1.0): (0.9491, 0.4124, 0.1395, 0.3972),
    ("c", 1.5): (0.8925, 0.3878, 0.1312, 0.3735),
}  # fmt: skip
# Table 1 (n = 1000, p = 100, sigma = 1.5): bias and standard error of X1, X2, X3 and the sum
TABLE_1 = {
    "a": ((0.006, 0.011), (0.008, 0.014), (0.015, 0.015), (0.031, 0.014)),
    "b": ((0.008, 0.017), (0.002, 0.009), (0.009, 0.016), (0.024, 0.019)),
    "c": ((0.005, 0.017), (0.002, 0.009), (0.005, 0.015), (0.021, 0.016)),
}
# Table 3, column Q-SHAP
INSURANCE = {
    "smoker_yes": 0.481, "age": 0.323, "children": 0.026, "bmi": 0.021, "sex_male": 0.003, "region_southwest": 0.002,
    "region_southeast": 0.001, "region_northwest": 0.000,
}  # fmt: skip


def theory(model, sigma):
    """Total R2 and the shares of X1, X2, X3: Shapley values of S -> Var E[f | X_S] / Var Y, by enumeration."""
    cells = np.array(list(itertools.product((0, 1), repeat=3)), float)
    mass = np.prod(np.where(cells == 1, PROBABILITIES, 1 - np.array(PROBABILITIES)), axis=1)
    f = MODELS[model](cells.T)
    mean = mass @ f

    def explained(S):
        keys = [tuple(cell[list(S)]) for cell in cells]
        parts = {key: [l for l, k in enumerate(keys) if k == key] for key in keys}
        return sum(mass[part].sum() * (mass[part] @ f[part] / mass[part].sum() - mean) ** 2 for part in parts.values())

    variance = explained((0, 1, 2)) + sigma**2
    shares = []
    for j in range(3):
        others = [k for k in range(3) if k != j]
        subsets = [S for size in range(3) for S in itertools.combinations(others, size)]
        weight = {0: 1 / 3, 1: 1 / 6, 2: 1 / 3}
        shares.append(sum(weight[len(S)] * (explained((*S, j)) - explained(S)) for S in subsets) / variance)
    return (explained((0, 1, 2)) / variance, *shares)


def simulated(model, sigma, rng, n=1000, p=100):
    X = (rng.random((n, p)) < np.append(PROBABILITIES, np.full(p - 3, 0.5))).astype(float)
    return X, MODELS[model](X.T) + sigma * rng.normal(size=n)


def tuned_trees(model, sigma, rng):
    """Number of trees by 5-fold cross-validation on one data set, as the paper does on each (learning rate 0.1)."""
    import xgboost

    X, y = simulated(model, sigma, rng)
    settings = {"max_depth": DEPTH[model], "learning_rate": 0.1, "nthread": 1}
    scores = xgboost.cv(settings, xgboost.DMatrix(X, y), 300, nfold=5, seed=0)["test-rmse-mean"].to_numpy()
    grid = [50, 100, 200, 300]
    return min(grid, key=lambda size: scores[size - 1])


def table_6(repeats):
    """Mean estimates over data sets (n = 1000, p = 100) beside the theory, for both games."""
    from xgboost import XGBRegressor

    lines = ["| model | sigma | T | | total or sum | X1 | X2 | X3 |", "|---|---|---|---|---|---|---|---|"]
    worst = 0.0
    for (model, sigma), printed in PRINTED.items():
        rng = np.random.default_rng([ord(model), int(10 * sigma)])
        exact = theory(model, sigma)
        worst = max(worst, max(abs(one - other) for one, other in zip(exact, printed, strict=True)))
        n_trees = tuned_trees(model, sigma, rng)
        found = {"residual": [], "ensemble": []}
        for _ in range(repeats):
            X, y = simulated(model, sigma, rng)
            fitted = XGBRegressor(n_estimators=n_trees, max_depth=DEPTH[model], learning_rate=0.1, n_jobs=1).fit(X, y)
            for game, rows in found.items():
                shares = decompose_r2(fitted, X, y, game=game)
                rows.append((shares.values.sum(), *shares.values[:3]))
        lines.append(f"| {model} | {sigma} | {n_trees} | theory | " + " | ".join(f"{value:.4f}" for value in exact) + " |")
        for game, rows in found.items():
            bias, spread = np.mean(rows, axis=0) - exact, np.std(rows, axis=0, ddof=1)
            cells = [f"{b:+.3f} ({s:.3f})" for b, s in zip(bias, spread, strict=True)]
            lines.append(f"| | | | {game}: bias (SE) | " + " | ".join(cells) + " |")
        if sigma == 1.5:
            x1, x2, x3, total = TABLE_1[model]
            cells = [f"{b:+.3f} ({s:.3f})" for b, s in (total, x1, x2, x3)]
            lines.append("| | | | Table 1: bias (SE) | " + " | ".join(cells) + " |")
    text = (
        f"# Table 6: theoretical R2 recovered from data\n\n{repeats} data sets of n = 1000, p = 100 each; XGBoost of depth 1, 2, 3 for "
        "models a, b, c, learning rate 0.1, number of trees by 5-fold cross-validation on one data set (the paper: on each of "
        "1000, also over the learning rate). SE is the standard deviation over data sets, as in the paper.\n\n"
        f"Theory recomputed by enumeration; largest difference from the printed Table 6: {worst:.1e}.\n\n"
    )
    (RESULTS / "qshap_table6.md").write_text(text + "\n".join(lines) + "\n", encoding="utf-8")
    return text + "\n".join(lines)


def insurance():
    """The healthcare data, with the target as it is and as its logarithm, beside the printed Table 3."""
    import pandas
    from xgboost import XGBRegressor

    path = DATA / "insurance.csv.gz"
    if not path.exists():
        return f"Table 3 skipped: {path} is not there (set EXACTSHAP_DATA)"
    frame = pandas.read_csv(path)
    X = pandas.get_dummies(frame.drop(columns="charges"), drop_first=True).astype(float)
    columns, totals = {}, {}
    for name, y in (("charges", frame["charges"]), ("log charges", np.log(frame["charges"]))):
        best_trees = _cross_validated(X, y)
        fitted = XGBRegressor(n_estimators=best_trees, max_depth=4, learning_rate=0.05, n_jobs=1).fit(X, y)
        for game in ("residual", "ensemble"):
            shares = decompose_r2(fitted, X, y, game=game)
            columns[f"{name}, {game}"] = dict(zip(shares.feature_names, shares.values, strict=True))
            totals[f"{name}, {game}"] = shares.total
    heads = list(columns)
    lines = ["| feature | printed | " + " | ".join(heads) + " |", "|---" * (len(heads) + 2) + "|"]
    for feature, value in INSURANCE.items():
        cells = [f"{columns[head][feature]:.3f} ({_rank(columns[head], feature)})" for head in heads]
        lines.append(f"| {feature} | {value:.3f} ({_rank(INSURANCE, feature)}) | " + " | ".join(cells) + " |")
    lines.append("| total R2 | 0.86 | " + " | ".join(f"{totals[head]:.3f}" for head in heads) + " |")
    text = (
        "# Table 3: insurance\n\nShares of R2 with their ranks; XGBoost of depth 4, learning rate 0.05, number of trees by 5-fold "
        "cross-validation.\n\n" + "\n".join(lines) + "\n\n" + _explanation(columns, _ranges(X, frame["charges"]))
    )
    (RESULTS / "qshap_table3.md").write_text(text + "\n", encoding="utf-8")
    return text


def _explanation(columns, ranges):
    """Say which target the printed shares are closest to, from the numbers."""
    distance = {head: math.sqrt(sum((shares[f] - v) ** 2 for f, v in INSURANCE.items())) for head, shares in columns.items()}
    nearest = min(distance, key=distance.__getitem__)
    listed = ", ".join(f"{head} {value:.3f}" for head, value in distance.items())
    low_age, high_age, low_bmi, high_bmi = ranges
    return (
        f"Distance of the shares from the printed column: {listed}. The nearest is **{nearest}**. The paper does not say that the "
        f"target was transformed; on the raw charges, over depths 1 to 6 with 50 and 500 trees at learning rate 0.05, `age` holds "
        f"{low_age:.3f} to {high_age:.3f} and `bmi` {low_bmi:.3f} to {high_bmi:.3f}, and no single setting comes near the printed "
        "0.323 of `age`, so the printed shares look like those of the logarithm. What remains is the choice of trees (the paper's random search is not "
        "printed) and its 8-field copy of the data."
    )


def _ranges(X, y):
    """Smallest and largest share of age and of bmi over depths and numbers of trees of the paper's grid."""
    from xgboost import XGBRegressor

    found = []
    for depth, n_trees in itertools.product(range(1, 7), (50, 500)):
        fitted = XGBRegressor(n_estimators=n_trees, max_depth=depth, learning_rate=0.05, n_jobs=1).fit(X, y)
        shares = decompose_r2(fitted, X, y)
        found.append([shares.values[shares.feature_names.index(name)] for name in ("age", "bmi")])
    (low_age, low_bmi), (high_age, high_bmi) = np.min(found, axis=0), np.max(found, axis=0)
    return low_age, high_age, low_bmi, high_bmi


def _rank(shares, feature):
    return 1 + sum(value > shares[feature] for value in shares.values())


def _cross_validated(X, y):
    import xgboost

    settings = {"max_depth": 4, "learning_rate": 0.05, "nthread": 1}
    scores = xgboost.cv(settings, xgboost.DMatrix(X, y), 500, nfold=5, seed=0)["test-rmse-mean"].to_numpy()
    return min([50, 100, 500], key=lambda size: scores[size - 1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    RESULTS.mkdir(exist_ok=True)
    print(insurance())
    print(table_6(parser.parse_args().repeats))

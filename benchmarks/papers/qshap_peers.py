"""SAGE and SPVIM next to Q-SHAP: Table 1 (simulation), Tables 2 and 3 (insurance) and 5 (S&P 500).

    python benchmarks/papers/qshap_peers.py [table1] [table3] [table5] [fresh] [seeds] [package]

``fresh`` and ``seeds`` look for reasons: the R2 of Table 1's models on rows that they have not seen (less the theory's), and SPVIM with other
draws of vimpy. ``package`` times the authors' own package, ``qshap``, on the model of Table 3, and asks for the same shares.

Needs ``sage-importance``, ``vimpy`` and, for vimpy, numpy < 2.4. SAGE: permutations with the marginal imputer, all rows. SPVIM: five folds, one subset for each row;
vimpy 2.0 to 2.1 takes the number of columns from the rows (``p_ = x.shape[0]``), which is set right here. Table 5 needs ``sp500_close.parquet``:
closes of the stocks that traded on all days of Kaggle's camnugent/sandp500. Adds to ``results/qshap_peers.json``, seconds are of the CPU.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
import warnings

import numpy as np
from paper_data import DATA, missing, require
from qshap_tables import DEPTH, MODELS, RESULTS, simulated, theory

from exactshap import decompose_r2

FOUND = RESULTS / "qshap_peers.json"
PARAMETERS = ("n_estimators", "max_depth", "learning_rate")
REPEATS, SEEDS = 3, 4  # data sets of Table 1; draws of vimpy


def sage(model, X, y, background, n_permutations=None):
    """Return SAGE values of the squared error over the variance of the target."""
    from sage import MarginalImputer, PermutationEstimator

    booster, rows = model.get_booster(), np.random.default_rng(0).choice(len(X), background, replace=False)
    estimator = PermutationEstimator(
        MarginalImputer(lambda z: booster.inplace_predict(z)[:, None], X[rows]), "mse", random_state=0
    )
    settings = {"n_permutations": n_permutations, "detect_convergence": n_permutations is None}
    return estimator(X, y[:, None], bar=False, **settings).values / y.var()


def spvim(model, X, y, seed=0):
    """Return SPVIM's shares of the cross-validated R2; ``model`` is fitted again on every subset and fold."""
    from vimpy.spvim import spvim

    np.random.seed(seed)  # noqa: NPY002 - vimpy draws from the global generator
    found, p = spvim(y, X, "r_squared", 5, model), X.shape[1]
    found.p_, found.G_ = p, np.vstack((np.eye(p + 1)[0], 1.0 - np.eye(p + 1)[0]))
    return found.get_point_est().vimp_[1:, 0]


def timed(function, *arguments, **settings):
    started = time.process_time()
    values = function(*arguments, **settings)
    return np.asarray(values, float), time.process_time() - started


def design(model, repeat):
    """Return a model of Table 1, not yet fitted, with its data set and the parameters that ``qshap_figures.py`` chose."""
    from xgboost import XGBRegressor

    stored = json.loads((RESULTS / "qshap_figures.json").read_text(encoding="utf-8"))[f"{model},1.5,1000,100"]
    rng = np.random.default_rng([ord(model), 15, 1000, 100])
    X, y = [simulated(model, 1.5, rng) for _ in range(repeat + 1)][-1]
    rate, trees = stored["parameters"][repeat]
    settings = {"max_depth": DEPTH[model], "learning_rate": rate, "tree_method": "hist", "max_bin": 4, "n_jobs": 1}
    return XGBRegressor(n_estimators=trees, **settings), X, y


def table_1(found):
    """Yield sum, X1, X2 and X3 at n = 1000, p = 100, sigma = 1.5, on the first data sets and models of ``qshap_figures.json``."""
    for repeat, model in itertools.product(range(REPEATS), MODELS):
        rows = found.setdefault(model, {"SAGE": [], "SPVIM": []})
        if len(rows["SAGE"]) > repeat:
            continue
        regressor, X, y = design(model, repeat)
        for name, values in (("SAGE", sage(regressor.fit(X, y), X, y, 128, 2048)), ("SPVIM", spvim(regressor, X, y))):
            rows[name].append([float(values.sum()), *values[:3].tolist()])
        print(model, {name: values[-1] for name, values in rows.items()}, flush=True)
        yield found


def compared(model, X, y, names, n_background, n_permutations=None):
    """Yield shares and seconds of the three methods, one method more each time; ``model`` is fitted."""
    methods = {
        "Q-SHAP": lambda: decompose_r2(model, X, y).values,
        "SAGE": lambda: sage(model, X, y, n_background, n_permutations),
        "SPVIM": lambda: spvim(model, X, y),
    }
    found = {"shares": {}, "seconds": {}}
    for method, function in methods.items():
        values, found["seconds"][method] = timed(function)
        found["shares"][method] = dict(zip(names, values.tolist(), strict=True))
        print(method, found["seconds"][method], flush=True)
        yield found


def insurance():
    """Return the table of features and the expenses."""
    import pandas

    require("insurance.csv.gz")
    frame = pandas.read_csv(DATA / "insurance.csv.gz")
    return pandas.get_dummies(frame.drop(columns="charges"), drop_first=True).astype(float), frame["charges"].to_numpy()


def of_insurance(X, y, target):
    """Return Table 3's model of a target, not yet fitted: as its run chose it, or chosen now."""
    from xgboost import XGBRegressor

    stored = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    parameters = stored.get("table3", {}).get(target, {}).get("parameters")
    return searched(X, y, range(1, 7), (0.01, 0.05, 0.1)) if parameters is None else XGBRegressor(**parameters, n_jobs=1)


def table_3(found):
    """Yield shares of the expenses and of their logarithm, by the model that five folds like best on the paper's whole grid."""
    X, charges = insurance()
    for name, y in (("charges", charges), ("log charges", np.log(charges))):
        model = searched(X.to_numpy(), y, range(1, 7), (0.01, 0.05, 0.1))
        parameters = {key: model.get_params()[key] for key in PARAMETERS}
        for one in compared(model.fit(X.to_numpy(), y), X.to_numpy(), y, list(X), 512):
            found[name] = one | {"parameters": parameters, "R2": float(model.score(X.to_numpy(), y))}
            yield found


def returns():
    """Return daily returns of the other stocks, of NVIDIA, and names."""
    import pandas

    require("sp500_close.parquet")
    moves = pandas.read_parquet(DATA / "sp500_close.parquet").pct_change().iloc[1:]
    return moves.drop(columns="NVDA").to_numpy(), moves["NVDA"].to_numpy(), [name for name in moves if name != "NVDA"]


def searched(X, y, depths=(2, 4), rates=(0.05,), **settings):
    """Return the model that five folds like best: trees of the paper's grid, and all of its depths and rates unless fewer are named."""
    import xgboost

    best = []
    for depth, rate in itertools.product(depths, rates):
        chosen = {"max_depth": depth, "learning_rate": rate, "nthread": 1, **settings}
        scores = xgboost.cv(chosen, xgboost.DMatrix(X, y), 3000, nfold=5, seed=0, early_stopping_rounds=50)
        scores = scores["test-rmse-mean"].to_numpy()
        print(depth, rate, len(scores), scores.min(), flush=True)
        sizes = (50, 100, *range(500, 3001, 500))
        best += [(scores[size - 1], size, depth, rate) for size in sizes if size <= len(scores)]
    _, trees, depth, rate = min(best)
    return xgboost.XGBRegressor(n_estimators=trees, max_depth=depth, learning_rate=rate, n_jobs=1, **settings)


def table_5(found):
    """Q-SHAP on all stocks, then the three methods on models of the 100 stocks that it ranks highest."""
    X, y, names = returns()
    first = decompose_r2(searched(X, y, max_bin=32).fit(X, y), X, y).values
    top = np.argsort(-first)[:100]
    model = searched(X[:, top], y, max_bin=32)
    for found in compared(model.fit(X[:, top], y), X[:, top], y, [names[j] for j in top], 128, 2048):
        found["parameters"] = {key: model.get_params()[key] for key in PARAMETERS}
        found["shares"]["Q-SHAP, original model"] = dict(zip(names, first.tolist(), strict=True))
        yield found


def fresh_rows(found):
    """Yield R2 of Table 1's models on their rows and on 20,000 fresh ones, and of least squares, the best additive fit, over eight data sets."""
    from sklearn.linear_model import LinearRegression

    for model in MODELS:
        others, rows = simulated(model, 1.5, np.random.default_rng(5), 20_000, 100), []
        for repeat in range(8):
            regressor, X, y = design(model, repeat)
            regressor.fit(X, y)
            rows.append([regressor.score(X, y), regressor.score(*others), LinearRegression().fit(X, y).score(X, y)])
        means = np.mean(rows, axis=0) - theory(model, 1.5)[0]
        found[model] = dict(zip(("own rows", "fresh rows", "least squares"), means.tolist(), strict=True))
        yield found


def other_seeds(found):
    """Yield SPVIM's shares of Tables 3 (logarithm) and 5, where its data are here, with other seeds of vimpy."""
    X, charges = insurance()
    runs = {"table3": (of_insurance(X.to_numpy(), np.log(charges), "log charges"), X.to_numpy(), np.log(charges), list(X))}
    if not missing(["sp500_close.parquet"]):
        runs["table5"] = of_stocks()
    for table, (model, X, y, names) in runs.items():
        rows = found.setdefault(table, [])
        for seed in range(len(rows) + 1, SEEDS + 1):
            rows.append(dict(zip(names, spvim(model, X, y, seed).tolist(), strict=True)))
            print(table, seed, sum(rows[-1].values()), flush=True)
            yield found


def of_stocks():
    """Return Table 5's model of the hundred stocks, not yet fitted, its rows and names."""
    from xgboost import XGBRegressor

    stored, (X, y, names) = json.loads(FOUND.read_text(encoding="utf-8"))["table5"], returns()
    top = list(stored["shares"]["Q-SHAP"])
    model = XGBRegressor(**stored["parameters"], max_bin=32, n_jobs=1)
    return model, X[:, [names.index(name) for name in top]], y, top


def authors_package(found):
    """Yield seconds of ``qshap`` and of ours on the model of Table 3, the best of three each, and the largest difference of shares."""
    from qshap import __version__, gazer

    X, charges = insurance()
    X, y = X.to_numpy(), np.log(charges)
    model = of_insurance(X, y, "log charges").fit(X, y)
    runs = {
        "package": lambda: gazer(model).rsq(X, y, progress_bar=False),
        "ours": lambda: decompose_r2(model, X, y).values,
    }
    found |= {name: min(timed(function)[1] for _ in range(3)) for name, function in runs.items()}
    shares = [timed(function)[0] for function in runs.values()]
    found |= {"difference": float(np.abs(shares[0] - shares[1]).max()), "version": __version__}
    print(found, flush=True)
    yield found


PARTS = {"table1": table_1, "table3": table_3, "table5": table_5, "fresh": fresh_rows, "seeds": other_seeds}
PARTS["package"] = authors_package

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    for part in sys.argv[1:] or PARTS:
        for one in PARTS[part](found.get(part, {})):
            found[part] = one
            FOUND.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

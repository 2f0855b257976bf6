"""Random models on awkward data, held against brute force: ``python tests/campaign.py --minutes 20 --seed 0``.

Each round draws a model, an oddity of its data, a value function and an index, and runs :func:`exactshap.testing.check_reader`: values
against enumeration, v(S) against the model on rows masked by hand, residuals, single rows against batches, pickles. Prints counts; the
seed of each failure repeats it with ``--round``. Exit code 1 if anything failed.
"""

from __future__ import annotations

import argparse
import collections
import time
import traceback
import warnings

import numpy as np

from exactshap import errors
from exactshap.testing import check_reader
from golden_models import MODELS

KERNELS = ("SVR", "SVC", "NuSVR", "KernelRidge", "GP sum of kernels")
MISSING = (
    "histogram boosting",
    "XGBoost",
    "XGBoost three classes",
    "LightGBM",
    "LightGBM three classes",
    "CatBoost",
)  # take NaN
TREES = ("tree", "random forest", "random forest classifier", "gradient boosting", "gradient boosting classifier", *MISSING)
NAMES = (*KERNELS, *TREES, "LinearRegression", "LogisticRegression", "PoissonRegressor")  # of the golden record
INDICES = ("shapley", "banzhaf", "sii", "k-sii", "stii", "fsii", "banzhaf-interaction", "moebius", "leave-one-out")
ODDITIES = ("plain", "ties", "constant column", "tiny", "huge", "far from zero", "missing", "duplicate column", "one-row background",
            "weights", "groups", "frame", "float32", "integers", "one column", "x in background")  # fmt: skip


def data(rng, oddity, takes_missing):
    """Return rows, background and settings with one thing that is awkward about them."""
    d = 1 if oddity == "one column" else int(rng.integers(2, 7))
    X = rng.normal(size=(120, d))
    settings: dict = {}
    if oddity == "ties":
        X = np.round(X)
    elif oddity == "constant column":
        X[:, 0] = 3.0
    elif oddity in ("tiny", "huge", "far from zero"):
        X = {"tiny": 1e-8 * X, "huge": 1e6 * X, "far from zero": 1e5 + X}[oddity]
    elif oddity == "missing" and takes_missing:
        X[rng.random(X.shape) < 0.3] = np.nan
    elif oddity == "duplicate column":
        X[:, -1] = X[:, 0]
    elif oddity == "float32":
        X = X.astype(np.float32)
    elif oddity == "integers":
        X = np.round(3 * X).astype(int)
    elif oddity == "groups" and d > 2:
        settings["groups"] = {"both": [0, d - 1]}
    m = 1 if oddity == "one-row background" else int(rng.integers(2, 12))
    rows, background = X[100:103], X[:m]
    if oddity == "x in background":
        background = np.concatenate([background, rows[:1]])
    if oddity == "weights":
        settings["background_weights"] = rng.random(len(background)) + 0.01
    return X, rows, background, settings


def played(rng, name, background, settings):
    """Draw a value function: (its name for the counts, background or None)."""
    weighted = "background_weights" in settings
    if not weighted and rng.random() < 0.3:
        if name in TREES:
            return "path_dependent", None
        if name in KERNELS:
            return str(rng.choice(["functional", "normalized"])), None
    if len(background) == 1 and rng.random() < 0.5:
        return "baseline", background
    return "interventional", background


def one_round(seed, number):
    """Check one random combination; return its names and what happened."""
    rng = np.random.default_rng([seed, number])
    name, oddity = str(rng.choice(NAMES)), str(rng.choice(ODDITIES))
    indices = tuple(map(str, rng.choice(INDICES, 2, replace=False)))
    X, rows, background, settings = data(rng, oddity, name in MISSING)
    value_function, background = played(rng, name, background, settings)
    names = (name, oddity, value_function, *indices)
    filled = np.nan_to_num(np.asarray(X, float))
    z = (filled - filled.mean(axis=0)) / (filled.std(axis=0) + 1e-300)
    y = z[:, 0] * z[:, -1] + np.sin(z).sum(axis=1)
    target = MODELS[name].target if name in MODELS else ""
    y = {"two": y > np.quantile(y, 0.4), "three": np.digitize(y, np.quantile(y, [0.4, 0.7])), "counts": np.abs(y)}.get(
        target, y
    )
    try:
        model = MODELS[name].make()
        if oddity == "frame":
            import pandas as pd

            columns = [f"column {j}".replace(" ", "_") for j in range(X.shape[1])]
            X, rows = pd.DataFrame(X, columns=columns), pd.DataFrame(rows, columns=columns)
            background = None if background is None else pd.DataFrame(background, columns=columns)
        model.fit(X, y)
    except (ImportError, KeyError):
        return names, "not installed", ""
    except Exception as error:  # the model's own refusal is no concern of ours
        return names, "not fitted", f"{type(error).__name__}: {error}"
    try:
        check_reader(model, rows, background, indices=indices, value_function=value_function, **settings)
    except (errors.ExactnessError, AssertionError) as error:
        return names, "WRONG", f"{error}"
    except errors.ExactshapError as error:
        return names, "refused", f"{type(error).__name__}: {error}"
    except Exception:
        return names, "RAW ERROR", traceback.format_exc(limit=-3)
    return names, "agreed", ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--round", type=int, help="repeat this one only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: collections.Counter = collections.Counter()
    ended, number = time.monotonic() + 60.0 * options.minutes, options.round or 0
    while time.monotonic() < ended:
        names, verdict, text = one_round(options.seed, number)
        counts[verdict] += 1
        counts.update((verdict, name) for name in names)
        if verdict in ("WRONG", "RAW ERROR", "refused") or options.round is not None:
            print(f"round {number}: {verdict} {names} {text}", flush=True)
        number += 1
        if options.round is not None:
            break
    for key, count in sorted(counts.items(), key=lambda item: (isinstance(item[0], tuple), str(item[0]))):
        print(f"{count:7,}  {key if isinstance(key, str) else ' with '.join(key)}")
    return 1 if counts["WRONG"] or counts["RAW ERROR"] else 0


if __name__ == "__main__":
    raise SystemExit(main())

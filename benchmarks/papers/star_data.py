"""Data sets of STAR-SHAP (paper 000), as its authors prepare them, and the numbers that they print and publish."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
from paper_data import DATA, DATA_SETS, say_missing

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DATASETS = ("abalone", "diabetes", "housing", "concrete", "conductivity", "wine")
SERIES = ("ChlorineConcentration", "Computers", "ECG5000", "FacesUCR", "LargeKitchenAppliances", "MelbournePedestrian")
FILES = {"housing": "california_housing", "diabetes": "diabetes_scaled", "conductivity": "conductivity_sample20"}
TARGETS = {
    "housing": "MedHouseVal",
    "abalone": "Rings",
    "diabetes": "target",
    "concrete": "strength",
    "conductivity": "critical_temp",
    "wine": "class",
}
MIX = [1, 2, 3, 4, 5]


def load(name):
    """Return X, y, X_test, y_test of one data set or series, standardised on the training rows, or None without the file."""
    return series(name) if name in SERIES else regression(name)


def regression(name):
    """Return one data set of Table 5: 75/25 split with seed 0."""
    from sklearn.model_selection import train_test_split

    data = regression_data(name)
    if data is None:
        return None
    X, X_test, y, y_test = train_test_split(*data, train_size=0.75, random_state=0)
    return standardised(X, y, X_test, y_test)


def regression_data(name):
    """Return X, y of one data set of Table 5, or None where the file is absent."""
    import pandas as pd

    stem = FILES.get(name, name)
    for path, reader in ((DATA / f"{stem}.csv.gz", pd.read_csv), (DATA / f"{stem}.parquet", pd.read_parquet)):
        if path.exists():
            frame = reader(path)
            X = pd.get_dummies(frame.drop(columns=TARGETS[name]), dtype=float)
            return X.to_numpy(float), frame[TARGETS[name]].to_numpy(float)
    say_missing([name for name in DATA_SETS if name.split(".")[0] == stem])
    return None


def series(name):
    """Return one series of Table 7: its own training and test part, cut into windows."""
    path = DATA / f"ucr_{name}.npz"
    if not path.exists():
        say_missing([path.name])
        return None
    with np.load(path, allow_pickle=False) as file:
        names = {n.lower(): n for n in file.files}
        train, test = (windows(file[names[f"x_{part}"]]) for part in ("train", "test"))
    return standardised(*train, *test)


def windows(series):
    """Cut series into windows of 11: consecutive ones, and one at the end if enough of the series is left over."""
    import pandas as pd

    series = pd.DataFrame(series[1:]).interpolate(limit_direction="both").to_numpy()
    length = series.shape[1]
    starts = [11 * i for i in range(length // 11)]
    if length % 11 > min(length // 11 / 2, 2):
        starts.append(length - 11)
    cut = np.concatenate([series[:, start : start + 11] for start in starts])
    return cut[:, :10], cut[:, 10]


def standardised(X, y, X_test, y_test):
    from sklearn.preprocessing import StandardScaler

    scale, scale_y = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
    return (
        scale.transform(X),
        scale_y.transform(y[:, None])[:, 0],
        scale.transform(X_test),
        scale_y.transform(y_test[:, None])[:, 0],
    )


def structure(name):
    """Return the base predictor and the subsets behind a name such as "RWRelu 3-STAR"."""
    base, _, kind = name.partition(" ")
    kind = kind.removesuffix("-STAR")
    return "relu" if base == "RWRelu" else "sign", None if not kind else MIX if kind.startswith("[") else int(kind)


def sigma(base, theta):
    """Return the deviation of the parameters in the authors' code: 2 sqrt(c) for relu (not in the paper), else 1."""
    return 2.0 * math.sqrt(theta) if base == "relu" else 1.0


def published():
    """Return the runs behind the printed tables: {(dataset, model): hyper-parameters chosen, test and train R2, norm}.

    From ``results/regression-final.csv`` and ``results/time-series-final.csv`` of gadub44/star-rkhs-weightings.
    """
    with open(HERE / "printed" / "star_authors.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = ("max_theta", "alpha", "test", "train", "norm")
    return {(row["dataset"], row["model"]): {key: float(row[key]) for key in numbers} for row in rows}


def stored(name):
    """Return the finished cells of an earlier run of the same script: delete the file to run them again."""
    path = RESULTS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(name, text):
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(text, encoding="utf-8")

"""Write the ONNX files of tests/data/onnx, as skl2onnx and onnxmltools make them and by hand.

Run with: python tests/onnx_models.py (needs skl2onnx, onnxmltools, xgboost, lightgbm).
"""

import itertools
import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "data" / "onnx"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)).astype(np.float32)
Y = X[:, 0] * X[:, 1] + X[:, 2]
TWO, THREE = (Y > 0).astype(int), np.digitize(Y, [-0.5, 0.5])
TOWNS = RNG.choice(["x", "y", "z"], len(X))


def frame():
    """Return the rows of the files with an input for each column."""
    import pandas as pd

    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": TOWNS, "n": np.arange(len(X)) % 4})


def of_scikit_learn():
    """Yield name and file of models and pipelines of scikit-learn."""
    from skl2onnx import to_onnx
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, OrdinalEncoder, StandardScaler
    from sklearn.svm import SVC, SVR, LinearSVC

    few = {"n_estimators": 4, "max_depth": 2, "random_state": 0}
    mixed = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
        (OneHotEncoder(handle_unknown="ignore"), ["town"]),
        (OneHotEncoder(), ["n"]),
    )
    ordinal = make_column_transformer((OrdinalEncoder(), ["town"]), remainder="passthrough")
    by_number = make_column_transformer((StandardScaler(), [0, 1]), (MinMaxScaler(), [2]), remainder="passthrough")
    models = {
        "forest": (RandomForestRegressor(**few), X, Y),
        "forest_targets": (RandomForestRegressor(**few), X, np.column_stack([Y, -Y])),
        "forest_classes": (RandomForestClassifier(**few), X, THREE),
        "boosting": (GradientBoostingRegressor(**few), X, Y),
        "boosting_two": (GradientBoostingClassifier(**few), X, TWO),
        "boosting_three": (GradientBoostingClassifier(**few), X, THREE),
        "pipeline": (make_pipeline(SimpleImputer(), StandardScaler(), GradientBoostingRegressor(**few)), X, Y),
        "pipeline_columns": (make_pipeline(by_number, RandomForestClassifier(**few)), X, TWO),
        "pipeline_frame": (make_pipeline(mixed, GradientBoostingClassifier(**few)), frame(), TWO),
        "pipeline_ordinal": (make_pipeline(ordinal, RandomForestRegressor(**few)), frame(), Y),
        "ridge": (make_pipeline(MinMaxScaler(), Ridge()), X, Y),
        "logistic_two": (LogisticRegression(), X, TWO),
        "logistic_three": (LogisticRegression(), X, THREE),
        "linear_svc": (LinearSVC(random_state=0), X, TWO),
        "svr": (make_pipeline(StandardScaler(), SVR()), X[:25], Y[:25]),
        "svc": (SVC(kernel="poly", degree=2), X[:25], TWO[:25]),
        "refused_normalizer": (make_pipeline(Normalizer(), Ridge()), X, Y),
    }
    for name, (model, rows, target) in models.items():
        yield name, to_onnx(model.fit(rows, target), rows[:1])


def of_boosters():
    """Yield name and file of XGBoost's and LightGBM's models."""
    from lightgbm import LGBMClassifier, LGBMRegressor
    from onnxmltools import convert_lightgbm, convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType
    from xgboost import XGBClassifier, XGBRegressor

    few = {"n_estimators": 4, "max_depth": 2}
    table = [("X", FloatTensorType([None, 4]))]
    missing = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    for name, model, target in (
        ("xgboost", XGBRegressor(**few), Y),
        ("xgboost_two", XGBClassifier(**few), TWO),
        ("xgboost_three", XGBClassifier(**few), THREE),
        ("xgboost_poisson", XGBRegressor(objective="count:poisson", **few), TWO),
    ):
        yield name, convert_xgboost(model.fit(missing, target), initial_types=table)
    for name, model, target in (
        ("lightgbm", LGBMRegressor(verbose=-1, **few), Y),
        ("lightgbm_two", LGBMClassifier(verbose=-1, **few), TWO),
        ("lightgbm_three", LGBMClassifier(verbose=-1, **few), THREE),
        ("lightgbm_forest", LGBMRegressor(boosting_type="rf", subsample=0.5, subsample_freq=1, verbose=-1, **few), Y),
    ):
        yield name, convert_lightgbm(model.fit(missing, target), initial_types=table, zipmap=False)


def graph(kind, *, dtype=1, version=3, width=4, outputs=("y",), **attributes):
    """Return a file of one operator on a table."""
    from onnx import helper

    node = helper.make_node(kind, ["X"], list(outputs), domain="ai.onnx.ml", **attributes)
    made = [helper.make_tensor_value_info("X", dtype, [None, width])]
    shown = [helper.make_tensor_value_info("y", dtype if version == 5 else 1, None)]
    versions = [helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 18)]
    return helper.make_model(helper.make_graph([node], "graph", made, shown), opset_imports=versions, ir_version=9)


def stumps(modes, values, tracks=None, **more):
    """Return the attributes of stumps, one for each mode, on the columns in turn."""
    n = len(modes)
    one = {
        "nodes_treeids": [[k] * 3 for k in range(n)],
        "nodes_nodeids": [[0, 1, 2]] * n,
        "nodes_featureids": [[k % 4, 0, 0] for k in range(n)],
        "nodes_modes": [[mode, "LEAF", "LEAF"] for mode in modes],
        "nodes_values": [[value, 0.0, 0.0] for value in values],
        "nodes_truenodeids": [[1, 0, 0]] * n,
        "nodes_falsenodeids": [[2, 0, 0]] * n,
        "nodes_missing_value_tracks_true": [[int(track), 0, 0] for track in tracks or [0] * n],
    }
    leaves = {
        "target_treeids": [k for k in range(n) for _ in range(2)],
        "target_nodeids": [1, 2] * n,
        "target_ids": [0] * (2 * n),
        "target_weights": [float(2.0**k) * (1 + side) for k in range(n) for side in range(2)],
    }
    return {name: list(itertools.chain(*lists)) for name, lists in one.items()} | leaves | {"n_targets": 1} | more


def by_hand():
    """Yield files of what the converters do not write."""
    from onnx import numpy_helper

    every = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
    values = [float(X[0, k]) for k in range(4)]  # rows lie on the thresholds
    yield "modes", graph("TreeEnsembleRegressor", **stumps(every, values, [1, 0, 1, 0]))
    yield "modes_strict", graph("TreeEnsembleRegressor", **stumps(["BRANCH_LT", "BRANCH_GTE"] * 2, values, [0, 1, 1, 0]))
    yield (
        "average",
        graph("TreeEnsembleRegressor", **stumps(every[:1] * 4, values, aggregate_function="AVERAGE", base_values=[100.0])),
    )
    yield "double", graph("TreeEnsembleRegressor", dtype=11, **stumps(every, values))
    yield "refused_equal", graph("TreeEnsembleRegressor", **stumps(["BRANCH_EQ"] * 4, values))

    def tensor(array, name):
        return numpy_helper.from_array(np.asarray(array), name)

    for name, dtype in (("ensemble", np.float32), ("ensemble_double", np.float64)):
        yield (
            name,
            graph(
                "TreeEnsemble",
                dtype=1 if dtype is np.float32 else 11,
                version=5,
                n_targets=2,
                aggregate_function=1,
                post_transform=0,
                tree_roots=[0, 2],
                nodes_modes=tensor(np.array([0, 3, 1], np.uint8), "modes"),
                nodes_featureids=[0, 1, 2],
                nodes_splits=tensor(np.array(values[:3], dtype), "splits"),
                nodes_truenodeids=[1, 0, 3],
                nodes_trueleafs=[0, 1, 1],
                nodes_falsenodeids=[1, 2, 4],
                nodes_falseleafs=[1, 1, 1],
                nodes_missing_value_tracks_true=[0, 1, 0],
                leaf_targetids=[0, 0, 1, 1, 0],
                leaf_weights=tensor(np.array([1.0, 2.0, 4.0, 8.0, 16.0], dtype), "weights"),
            ),
        )


def rows_of(path):
    """Return the rows that a file takes: a frame, or an array."""
    if "frame" in path.name or "ordinal" in path.name:
        return frame()
    rows = X.copy()
    if path.name.startswith(("xgboost", "lightgbm", "modes")):
        rows[5:9, 1:3] = np.nan
    return rows.astype(float) if "double" in path.name else rows


def files():
    """Return the paths of all files that are read."""
    return sorted(path for path in FOLDER.glob("*.onnx") if not path.name.startswith("refused"))


def main():
    FOLDER.mkdir(exist_ok=True, parents=True)
    sizes = {}
    for source in (of_scikit_learn, of_boosters, by_hand):
        for name, model in source():
            content = model.SerializeToString()
            (FOLDER / f"{name}.onnx").write_bytes(content)
            sizes[name] = len(content)
    print(json.dumps(sizes))


if __name__ == "__main__":
    main()

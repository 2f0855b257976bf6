"""Write the golden tree models of this folder with the libraries that are installed: ``python make.py``."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import xgboost

HERE = Path(__file__).parent


def data(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 3)
    X[:, 3] = rng.integers(0, 7, n)
    X[rng.random(n) < 0.15, 0] = np.nan
    X[rng.random(n) < 0.15, 1] = 0.0
    y = np.nan_to_num(X[:, 0]) + X[:, 1] * X[:, 2] + np.isin(X[:, 3], [1, 4, 5]) + 0.1 * rng.normal(size=n)
    return X, y


def expect(name, X, margin):
    rows = [[v if isinstance(v, (str, int)) else None if np.isnan(v) else float(v) for v in row] for row in X]
    content = {"X": rows, "margin": np.asarray(margin, float).tolist()}
    (HERE / f"{name}.expected.json").write_text(json.dumps(content) + "\n")


def make_xgboost(X, y):
    kinds = ["q", "q", "q", "c"]
    models = {
        "xgboost_regression.json": xgboost.XGBRegressor(
            n_estimators=3, max_depth=3, enable_categorical=True, feature_types=kinds, max_cat_to_onehot=2
        ).fit(X, y),
        "xgboost_multiclass.ubj": xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(X, np.digitize(y, [-0.5, 0.8])),
        "xgboost_dart.ubj": xgboost.XGBRegressor(n_estimators=4, max_depth=2, booster="dart", rate_drop=0.5).fit(X, y),
        "xgboost_poisson.json": xgboost.XGBRegressor(n_estimators=2, max_depth=2, objective="count:poisson").fit(X, np.abs(y)),
        "xgboost_vector_leaf.ubj": xgboost.XGBRegressor(n_estimators=2, max_depth=2, multi_strategy="multi_output_tree").fit(
            X, np.c_[y, y**2]
        ),
    }
    for name, model in models.items():
        model.save_model(HERE / name)
        expect(name, X[:20], model.predict(X[:20], output_margin=True))
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(
        d=pd.Categorical(np.array(list("uvwxyzt"))[X[:, 3].astype(int)])
    )
    named = xgboost.XGBRegressor(n_estimators=2, max_depth=3, enable_categorical=True).fit(frame, y)
    named.save_model(HERE / "xgboost_named.ubj")
    codes = np.c_[X[:20, :3], frame.d.cat.codes[:20]]
    expect("xgboost_named.ubj", codes, named.predict(frame[:20], output_margin=True))


def make_lightgbm(X, y):
    import lightgbm

    quiet = {"verbose": -1, "min_child_samples": 5, "num_leaves": 6}
    models = {
        "lightgbm_regression.txt": lightgbm.LGBMRegressor(
            n_estimators=3, categorical_feature=[3], min_data_per_group=1, cat_smooth=1, max_cat_to_onehot=2, **quiet
        ).fit(X, y),
        "lightgbm_multiclass.txt": lightgbm.LGBMClassifier(n_estimators=2, **quiet).fit(X, np.digitize(y, [-0.5, 0.8])),
        "lightgbm_linear.txt": lightgbm.LGBMRegressor(n_estimators=3, linear_tree=True, **quiet).fit(X, y),
        "lightgbm_zero_missing.txt": lightgbm.LGBMRegressor(n_estimators=2, zero_as_missing=True, **quiet).fit(X, y),
    }
    for name, model in models.items():
        model.booster_.save_model(HERE / name)
        expect(name, X[:20], model.predict(X[:20], raw_score=True))


def make_catboost(X, y):
    import catboost

    quiet = {"verbose": 0, "allow_writing_files": False, "depth": 3}
    models = {
        "catboost_oblivious.json": catboost.CatBoostRegressor(iterations=3, **quiet).fit(X, y),
        "catboost_depthwise.json": catboost.CatBoostRegressor(iterations=2, grow_policy="Depthwise", **quiet).fit(X, y),
        "catboost_multiclass.json": catboost.CatBoostClassifier(iterations=2, **quiet).fit(X, np.digitize(y, [-0.5, 0.8])),
    }
    for name, model in models.items():
        save_catboost(name, model, X[:20])


def save_catboost(name, model, rows):
    model.save_model(str(HERE / name), format="json")
    document = json.loads((HERE / name).read_text())
    document["model_info"] = {k: document["model_info"][k] for k in ("class_params",) if k in document["model_info"]} | {
        "params": {"loss_function": document["model_info"]["params"]["loss_function"]}
    }
    (HERE / name).write_text(json.dumps(document) + "\n")
    expect(name, rows, model.predict(rows, prediction_type="RawFormulaVal"))


def make_catboost_categories(X, y):
    """Text, whole numbers and a two-valued column; rows 15 to 19 hold categories that training did not."""
    import catboost

    cells = X.astype(object)
    cells[:, 1] = np.array(["Oslo", "Zürich", ""])[np.digitize(X[:, 2], [-0.4, 0.5])]
    cells[:, 2] = np.where(X[:, 1] > 0.2, "yes", "no")
    cells[:, 3] = X[:, 3].astype(int)
    y = y + (cells[:, 1] == "Oslo") * (X[:, 3] % 2) + 2.0 * (cells[:, 2] == "yes") * np.nan_to_num(X[:, 0])
    rows = cells[:20].copy()
    rows[15:, 1], rows[15:, 3] = "Rome", 10**12
    quiet = {"verbose": 0, "allow_writing_files": False, "cat_features": [1, 2, 3], "random_seed": 0}
    simple = catboost.CatBoostRegressor(iterations=4, depth=3, max_ctr_complexity=1, **quiet).fit(cells, y)
    save_catboost("catboost_categories.json", simple, rows)
    combined = catboost.CatBoostRegressor(iterations=12, depth=4, learning_rate=0.3, max_ctr_complexity=3, **quiet).fit(
        cells, y
    )
    save_catboost("catboost_combined.json", combined, rows)


if __name__ == "__main__":
    import catboost
    import lightgbm

    X, y = data()
    make_xgboost(X, y)
    make_lightgbm(X, y)
    make_catboost(X, y)
    make_catboost_categories(X, y)
    versions = {library.__name__: library.__version__ for library in (xgboost, lightgbm, catboost)}
    (HERE / "versions.json").write_text(json.dumps(versions) + "\n")

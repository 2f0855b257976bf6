"""Write the models of format 3.4, for which XGBoost needs a newer Python: ``python make_newer.py`` with xgboost>=3.4."""

import numpy as np
import pandas as pd
from make import HERE, data, expect
from xgboost import XGBClassifier, XGBRegressor


def models(X, y):
    tree = {"n_estimators": 2, "max_depth": 2}
    codes = {"enable_categorical": True, "feature_types": ["q", "q", "q", "c"], "max_cat_to_onehot": 2}
    stopped = XGBRegressor(n_estimators=40, max_depth=2, learning_rate=0.9, early_stopping_rounds=3)
    return {
        "xgboost34_categories.json": XGBRegressor(n_estimators=3, max_depth=3, **codes).fit(X, y),
        "xgboost34_dart.ubj": XGBRegressor(n_estimators=4, max_depth=2, rate_drop=0.5).fit(X, y),
        "xgboost34_early.json": stopped.fit(X[:60], y[:60], eval_set=[(X[60:], y[60:])], verbose=False),
        "xgboost34_multiclass.ubj": XGBClassifier(**tree).fit(X, np.digitize(y, [-0.5, 0.8])),
        "xgboost34_vector_leaf.ubj": XGBRegressor(**tree, multi_strategy="multi_output_tree").fit(X, np.c_[y, y**2]),
        "xgboost34_expectile.json": XGBRegressor(**tree, objective="reg:expectileerror", expectile_alpha=[0.2, 0.8]).fit(X, y),
    }


if __name__ == "__main__":
    X, y = data()
    for name, model in models(X, y).items():
        model.save_model(HERE / name)
        expect(name, X[:20], model.predict(X[:20], output_margin=True))
    letters = pd.Categorical(np.array(list("uvwxyzt"))[X[:, 3].astype(int)])
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(d=letters)
    named = XGBRegressor(n_estimators=2, max_depth=3, enable_categorical=True).fit(frame, y)
    named.save_model(HERE / "xgboost34_named.ubj")
    expect("xgboost34_named.ubj", np.c_[X[:20, :3], letters.codes[:20]], named.predict(frame[:20], output_margin=True))
    XGBRegressor(n_estimators=2, booster="gblinear").fit(np.nan_to_num(X), y).save_model(HERE / "xgboost34_gblinear.json")

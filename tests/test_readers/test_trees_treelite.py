"""treelite's models: margins of GTIL, games by brute force, the values of the library that fitted them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn import ensemble

from exactshap import explain
from exactshap.errors import InputTypeError
from exactshap.testing import check_reader
from tree_models import data

treelite = pytest.importorskip("treelite")
X, HOLES, Y = data()
BINARY, TERNARY = (Y > 0.5).astype(int), np.digitize(Y, [0.0, 1.0])
CODES = np.c_[HOLES[:, :4], np.random.default_rng(0).integers(0, 40, len(Y))]


def of_sklearn(model):
    return treelite.sklearn.import_model(model), model


def of_xgboost(rows, y, objective, **settings):
    xgboost = pytest.importorskip("xgboost")
    types = ["q"] * 4 + ["c" if rows is CODES else "q"]
    matrix = xgboost.DMatrix(rows, y, feature_types=types, enable_categorical=True)
    booster = xgboost.train({"objective": objective, "max_depth": 3, "max_cat_to_onehot": 1, **settings}, matrix, 4)
    return treelite.frontend.from_xgboost(booster), booster


def of_lightgbm(rows, y, objective, **settings):
    lightgbm = pytest.importorskip("lightgbm")
    columns = [4] if rows is CODES else "auto"
    settings = {"min_data_per_group": 5, "cat_smooth": 1.0, "min_data_in_leaf": 3, "verbose": -1, **settings}
    booster = lightgbm.train({"objective": objective, **settings}, lightgbm.Dataset(rows, y, categorical_feature=columns), 5)
    return treelite.frontend.from_lightgbm(booster), booster


SMALL, HALVES = {"max_depth": 3, "random_state": 0}, {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
CASES = {
    "forest": (lambda: of_sklearn(ensemble.RandomForestClassifier(4, **SMALL).fit(X, BINARY)), X, "probability of class 1"),
    "forest of three": (lambda: of_sklearn(ensemble.RandomForestClassifier(4, **SMALL).fit(X, TERNARY)), X, "probability"),
    "labels": (
        lambda: of_sklearn(ensemble.RandomForestClassifier(4, **SMALL).fit(X, np.c_[BINARY, TERNARY])),
        X,
        "probability",
    ),
    "targets": (lambda: of_sklearn(ensemble.ExtraTreesRegressor(4, **SMALL).fit(X, np.c_[Y, Y**2])), X, "target"),
    "boosting": (
        lambda: of_sklearn(ensemble.GradientBoostingClassifier(n_estimators=4).fit(X, TERNARY)),
        X,
        "score before the softmax",
    ),
    "histograms": (lambda: of_sklearn(ensemble.HistGradientBoostingRegressor(max_iter=4).fit(HOLES, Y)), HOLES, "target"),
    "isolation": (lambda: of_sklearn(ensemble.IsolationForest(n_estimators=4).fit(X)), X, "average path length"),
    "xgboost classes": (lambda: of_xgboost(HOLES, TERNARY, "multi:softprob", num_class=3), HOLES, "score before the softmax"),
    "xgboost counts": (lambda: of_xgboost(HOLES, TERNARY, "count:poisson"), HOLES, "log of the target"),
    "xgboost categories": (lambda: of_xgboost(CODES, Y + CODES[:, 4] % 3, "reg:squarederror"), CODES, "target"),
    "lightgbm categories": (lambda: of_lightgbm(CODES, BINARY ^ (CODES[:, 4] % 2 == 0), "binary"), CODES, "log-odds"),
    "lightgbm classes": (lambda: of_lightgbm(HOLES, TERNARY, "multiclass", num_class=3), HOLES, "score before the softmax"),
    "lightgbm forest": (lambda: of_lightgbm(HOLES, Y, "regression", **HALVES), HOLES, "target"),
}


@pytest.mark.parametrize("name", CASES)
def test_games_and_values(name):
    make, rows, unit = CASES[name]
    model, _ = make()
    check_reader(model, rows[:6], rows[20:32])
    check_reader(model, rows[:6], n_masks=2)
    explanation = explain(model, rows[:5], rows[20:32])
    assert (explanation.unit, explanation.exact) == (unit, True)
    own = treelite.gtil.predict(model, rows[:5].astype(model.input_type), pred_margin=True)
    found = explanation.prediction.reshape(5, -1)
    assert np.isclose(own.reshape(5, -1)[:, :, None], found[:, None, :], rtol=0, atol=1e-300).any(axis=1).all()


@pytest.mark.parametrize("name", ["boosting", "histograms", "xgboost classes", "lightgbm categories"])
def test_path_dependent_values_are_those_of_the_library_that_fitted(name):
    make, rows, _ = CASES[name]
    model, original = make()
    cells = rows[:5].astype(np.float32).astype(float)  # scikit-learn rounds rows to float32, treelite does not
    values, expected = explain(model, cells).values, explain(original, cells).values
    np.testing.assert_allclose(values, expected, rtol=0, atol=64 * np.finfo(model.output_type).eps * np.abs(expected).max())


def test_frames_are_taken_and_sparse_rows_refused():
    model, _ = CASES["forest"][0]()
    frame = pd.DataFrame(X, columns=list("abcde"))
    assert explain(model, frame[:3], frame[20:30]).feature_names == tuple("abcde")
    with pytest.raises(InputTypeError, match=r"dense rows. Got a sparse matrix. Pass X.toarray\(\)"):
        explain(model, scipy.sparse.csr_matrix(X[:3]), scipy.sparse.csr_matrix(X[20:30]))

"""Polynomials of some columns, in a ColumnTransformer or FeatureUnion, in front of linear models."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge, SGDClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVR

from exactshap import explain
from exactshap.errors import UnsupportedStructureError
from exactshap.testing import check_reader
from oracles import interventional_values
from reader_checks import check_answers
from tolerances import INVERTED, RESPONSE

RNG = np.random.default_rng(0)
X = pd.DataFrame({name: RNG.normal(size=80) * scale + 2.0 for name, scale in zip("abcd", [1.0, 3.0, 10.0, 1.0], strict=True)})
X["town"], X["sex"] = RNG.choice(list("xyz"), 80), RNG.choice(list("mf"), 80)
Y = X["a"] * X["b"] + X["c"] * (X["town"] == "x") + RNG.normal(size=80)
POLYNOMIALS = [
    PolynomialFeatures(2),
    PolynomialFeatures(3, interaction_only=True, include_bias=False),
    make_pipeline(StandardScaler(), PolynomialFeatures((2, 2)), RobustScaler()),
    make_pipeline(SimpleImputer(), PolynomialFeatures(2), VarianceThreshold(), PCA(2)),
    make_pipeline(KBinsDiscretizer(3), PolynomialFeatures(2, interaction_only=True)),
    make_pipeline(SplineTransformer(n_knots=3), PolynomialFeatures(2)),
    make_union(PolynomialFeatures(2), StandardScaler()),
    make_pipeline(SimpleImputer(), make_column_transformer((PolynomialFeatures(2), [1, 0]), remainder=StandardScaler())),
]
CODES = [OneHotEncoder(), OrdinalEncoder(), make_pipeline(OneHotEncoder(drop="first"), PolynomialFeatures(2))]
AFTER = [[], [], [MaxAbsScaler()], [SelectKBest(f_regression, k=4)]]
MODELS = [
    (Ridge(), Y),
    (Ridge(), np.c_[Y, -Y]),
    (LinearRegression(), Y),
    (PLSRegression(2), Y),
    (PoissonRegressor(), np.exp(Y / 20.0)),
    (LogisticRegression(), Y > 5.0),
    (LogisticRegression(), np.digitize(Y, [0.0, 6.0])),
    (SGDClassifier(max_iter=20, random_state=0), Y > 5.0),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def picked(rng, candidates):
    return candidates[rng.integers(len(candidates))]


def own_call(model):
    if hasattr(model, "decision_function"):
        return model.decision_function
    return (lambda rows: np.log(model.predict(rows))) if isinstance(model[-1], PoissonRegressor) else model.predict


@pytest.mark.parametrize("seed", range(12))
def test_values_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    columns = list(map(str, rng.permutation(["a", "b", "c"])[: rng.integers(2, 4)]))
    parts = [("numbers", picked(rng, POLYNOMIALS), columns), ("codes", picked(rng, CODES), ["town", "sex"])]
    front = ColumnTransformer(parts[:: picked(rng, [1, -1])], sparse_threshold=picked(rng, [0.0, 1.0]))
    if rng.random() < 0.3:
        front = make_union(front, make_column_transformer((PolynomialFeatures(2), ["d", "a"]), remainder="drop"))
    last, y = picked(rng, MODELS)
    model = make_pipeline(front, *picked(rng, AFTER[: 5 - y.ndim]), last).fit(X, y)
    check_answers(model, own_call(model), X[:3], X[20:27], INVERTED, contract=seed == 0)


def test_remainders_and_probabilities():
    front = make_column_transformer((PolynomialFeatures(2), ["a", "b"]), remainder="passthrough")
    model = make_pipeline(front, StandardScaler(), LogisticRegression()).fit(X[["b", "d", "a"]], Y > 5.0)
    rows, background = X[["b", "d", "a"]][:3], X[["b", "d", "a"]][20:27]
    check_reader(model, rows, background, background_weights=np.arange(1.0, 8.0))
    check_reader(model, rows, background, groups={"g": ["a", "d"]})
    found = explain(model, rows, background, output="probability")
    assert found.exact
    brute = interventional_values(lambda table: model.predict_proba(table)[:, 1], rows, background)
    np.testing.assert_allclose(found.values, brute, atol=RESPONSE)


def test_weights_of_parts_are_those_of_the_transformer():
    of_numbers = [
        make_pipeline(StandardScaler(), PolynomialFeatures(2)),
        FeatureUnion([("one", PolynomialFeatures(2)), ("two", PCA(1))], transformer_weights={"two": -3.0}),
    ]
    for part in of_numbers:
        parts = [("numbers", part, ["a", "b"]), ("codes", OneHotEncoder(), ["town"]), ("plain", StandardScaler(), ["a"])]
        weights = {"numbers": 0.5, "codes": 7.0, "remainder": 2.0}
        front = ColumnTransformer(parts, remainder="passthrough", transformer_weights=weights)
        columns = ["a", "b", "town", "d"]
        model = make_pipeline(front, StandardScaler(with_mean=False), Ridge()).fit(X[columns], Y)
        check_answers(model, model.predict, X[columns][:3], X[columns][20:27], INVERTED)


def test_what_is_not_linear_behind_them_is_refused():
    front = make_column_transformer((PolynomialFeatures(2), ["a", "b"]), (OneHotEncoder(), ["town"]))
    with pytest.raises(UnsupportedStructureError, match="PolynomialFeatures is not known to work column by column"):
        explain(make_pipeline(front, SVR()).fit(X, Y), X[:3], X[20:27])

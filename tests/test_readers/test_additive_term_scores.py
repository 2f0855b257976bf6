"""Scores of terms: what interpret's explain_local shows, and what other additive models consist of; objects with partial models."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer, explain
from exactshap.errors import ExactnessError, InputError, UnknownNameError, UnsupportedModelError, UnsupportedStructureError
from exactshap.readers.additive import AdditiveModel, AdditiveReader, explain_terms
from tolerances import assert_close, roundings

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore:.*:FutureWarning", "ignore:.*:DeprecationWarning")
RNG = np.random.default_rng(0)
X = pd.DataFrame({"size": RNG.normal(size=200), "age": RNG.uniform(0, 60, 200), "city": RNG.choice(["Oslo", "Rome"], 200)})
X.loc[::9, "age"] = np.nan
Y = (X["size"] * (X["city"] == "Rome") + np.sin(X["age"].fillna(0.0) / 10)).to_numpy()
ROWS = X[:12].assign(city=["Paris", *X["city"][1:12]])  # a category that the model never saw
TARGETS = {
    "regression": ("ExplainableBoostingRegressor", Y),
    "two classes": ("ExplainableBoostingClassifier", np.where(Y > 0, "yes", "no")),
    "three classes": ("ExplainableBoostingClassifier", np.digitize(Y, [-0.5, 0.5])),
}


@pytest.mark.parametrize("case", TARGETS)
def test_terms_are_those_of_explain_local(case):
    glassbox = pytest.importorskip("interpret.glassbox")
    name, y = TARGETS[case]
    model = getattr(glassbox, name)(interactions=2, outer_bags=1, max_rounds=60, n_jobs=1).fit(X, y)
    scores = explain_terms(model, ROWS)
    assert scores.names == tuple(model.term_names_)
    pairs = any(len(columns) == 2 for columns in scores.columns)
    assert pairs or case == "three classes"  # where interpret 0.6 has no pairs
    local = model.explain_local(ROWS)
    for i in range(len(ROWS)):
        theirs = local.data(i)
        order = [theirs["names"].index(term) for term in scores.names]
        np.testing.assert_allclose(scores.values[i], np.array(theirs["scores"])[order], rtol=roundings(10))
        np.testing.assert_allclose(scores.intercept, theirs["extra"]["scores"][0], rtol=roundings(10))
    own = model.predict(ROWS) if case == "regression" else model.decision_function(ROWS)
    np.testing.assert_array_equal(scores.prediction, own)
    total = scores.intercept + scores.values.sum(axis=1)
    np.testing.assert_allclose(total, own, rtol=roundings(20), atol=roundings(20))
    assert (scores.output_names is None) == (case != "three classes")


def test_terms_without_pairs_are_shapley_values_but_for_their_means():
    glassbox = pytest.importorskip("interpret.glassbox")
    model = glassbox.ExplainableBoostingRegressor(interactions=0, outer_bags=1, max_rounds=60, n_jobs=1).fit(X, Y)
    scores, explanation = explain_terms(model, X), Explainer(model, X)(X)
    np.testing.assert_allclose(scores.values - scores.values.mean(axis=0), explanation.values, atol=roundings(2_000))


def test_terms_of_your_own_model_and_of_a_linear_one():
    own = AdditiveModel(
        [("a", lambda v: v[:, 0] ** 2), (("a", "b"), lambda v: v[:, 0] * v[:, 1])], intercept=1.0, feature_names=["a", "b"]
    )
    table = pd.DataFrame(RNG.normal(size=(5, 2)), columns=["a", "b"])
    scores = explain_terms(own, table)
    assert scores.names == ("a", "a & b")
    np.testing.assert_array_equal(scores.values, np.stack([table["a"] ** 2, table["a"] * table["b"]], axis=1))
    linear = LinearRegression().fit(table, table["a"] - 2.0 * table["b"])
    found = explain_terms(linear, table)
    np.testing.assert_allclose(found.values, table.to_numpy() * linear.coef_, rtol=roundings(10))
    assert repr(found) == "TermScores of 5 rows: 2 terms (a, b)"


def test_models_without_terms_of_their_columns_are_refused():
    numbers = X[["size", "city"]]
    with pytest.raises(UnsupportedModelError, match=r"SVR is not a sum of terms of its own columns. Explain its columns"):
        explain_terms(SVR().fit(X[["size"]], Y), X[["size"]])
    piped = make_pipeline(OneHotEncoder(), StandardScaler(with_mean=False), LinearRegression()).fit(numbers, Y)
    with pytest.raises(UnsupportedModelError, match="Pipeline is not a sum of terms"):
        explain_terms(piped, numbers)
    with pytest.raises(UnknownNameError, match=r"Unknown index 'terms'. .*explain_terms\(model, X\)"):
        Explainer(LinearRegression().fit(X[["size"]], Y), X[["size"]])(X[["size"]], "terms")
    with pytest.raises(InputError, match="minimum of 1 is required"):
        explain_terms(LinearRegression().fit(X[["size"]], Y), X[["size"]][:0])


@pytest.mark.parametrize("row", [0, 2])
def test_a_missing_number_is_named_where_it_is(row):
    X = np.ones((3, 2))
    X[row, 1] = np.nan
    with pytest.raises(InputError, match=rf"Input X contains NaN \(first at row {row}, column 1\)"):
        explain_terms(LinearRegression().fit(np.eye(2), [0.0, 1.0]), X)


def test_terms_that_do_not_add_up_are_refused(monkeypatch):
    model = AdditiveModel([(0, lambda v: v[:, 0])], n_features=1)
    own = AdditiveReader.predict
    jumps = lambda reader, rows: own(reader, rows) + (rows.native[:, 0] > 1.0)  # noqa: E731
    monkeypatch.setattr("exactshap.readers.additive._additive.AdditiveReader.predict", jumps)
    with pytest.raises(ExactnessError, match=r"terms of AdditiveModel do not add up to its prediction. Row 1 is off by 1"):
        explain_terms(model, [[0.0], [2.0]])


# --- objects with partial(columns) and get_all_unique_fs() are read term by term --------------------------------------


GENERATOR = np.random.default_rng(0)
POINTS, BACKGROUND = GENERATOR.normal(size=(3, 5)), GENERATOR.normal(size=(20, 5))
TERMS = {
    (0, 2): lambda v: np.exp(v[:, 0] * v[:, 1]),
    (3,): lambda v: v[:, 0] ** 2,
    (0, 1, 3): lambda v: v[:, 0] * np.sin(v[:, 1]) + v[:, 2],
    (): lambda v: np.full(len(v), 7.0),
}
SCALE = 20.0  # the largest prediction of the rows and of mixtures with the background


class Structured:
    """The interface of the authors' models: partial models take whole rows."""

    def __init__(self, wrong=0.0):
        self.wrong = wrong

    def get_all_unique_fs(self):
        return [list(subset) for subset in TERMS]

    def partial(self, fs):
        return lambda rows: TERMS[tuple(fs)](rows[:, list(fs)])

    def __call__(self, rows):
        return sum(self.partial(fs)(rows) for fs in self.get_all_unique_fs()) + self.wrong


def test_values_are_those_of_the_function():
    found = explain(Structured(), POINTS, BACKGROUND)
    by_enumeration = explain(lambda rows: Structured()(rows), POINTS, BACKGROUND)
    assert by_enumeration.exact
    assert_close(found.values, by_enumeration.values, SCALE, n_terms=32 * len(BACKGROUND), n_players=5)
    assert found.exact
    assert found.certificate().passed
    assert not found.values[:, 4].any()  # in no term


def test_many_columns_are_exact():
    """Twenty columns more, in no term: as a function the values would be sampled."""
    wide = [np.hstack([rows, GENERATOR.normal(size=(len(rows), 20))]) for rows in (POINTS, BACKGROUND)]
    found = explain(Structured(), *wide)
    assert found.exact
    assert_close(found.values[:, :5], explain(Structured(), POINTS, BACKGROUND).values, SCALE, n_terms=len(BACKGROUND))


def test_terms_that_do_not_add_up_to_the_model_are_refused():
    with pytest.raises(UnsupportedStructureError, match="does not predict the sum"):
        explain(Structured(wrong=0.1), POINTS, BACKGROUND)


class AnswersEveryName:
    """Hand on any call to the models of its folds, as LightGBM's ``CVBooster`` does."""

    def __getattr__(self, name):
        return lambda *args: [name]


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_objects_that_answer_every_name_have_no_terms(kind):
    with pytest.raises(UnsupportedModelError, match="No exact reader"):
        explain(AnswersEveryName(), kind(POINTS), kind(BACKGROUND))

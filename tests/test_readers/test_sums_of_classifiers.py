"""Soft votes, bags, several targets and AdaBoost: by brute force over their own probabilities and scores."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from exactshap import Explainer, explain
from exactshap.errors import UnsupportedModelError, UnsupportedStructureError
from exactshap.testing import check_reader
from oracles import interventional_values
from tolerances import roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 4)), columns=list("abcd"))
SCORE = X.a * X.b + X.c
BINARY, TERNARY = np.where(SCORE > 0, "yes", "no"), np.digitize(SCORE, [-0.7, 0.7])
ROWS, BACKGROUND = X[:4], X[50:62]
FORESTS = [("forest", RandomForestClassifier(4, max_depth=3, random_state=0)), ("extra", ExtraTreesClassifier(3, max_depth=3))]
LOGIT = ("logit", make_pipeline(StandardScaler(), LogisticRegression()))

MODELS = {
    "forests": (lambda: VotingClassifier(FORESTS, voting="soft"), BINARY),
    "weighted forests": (lambda: VotingClassifier([*FORESTS, LOGIT], voting="soft", weights=[1, 2, 5]), BINARY),
    "forests of three": (lambda: VotingClassifier(FORESTS, voting="soft"), TERNARY),
    "bag of trees": (lambda: BaggingClassifier(DecisionTreeClassifier(max_depth=3), 4, random_state=0), TERNARY),
    "bag of columns": (lambda: BaggingClassifier(LogisticRegression(), 4, max_features=0.5, random_state=0), BINARY),
    "targets": (lambda: MultiOutputClassifier(RandomForestClassifier(3, max_depth=3)), np.c_[TERNARY, BINARY == "yes"]),
    "logits of targets": (lambda: MultiOutputClassifier(LogisticRegression()), np.c_[TERNARY > 1, BINARY == "yes"]),
}


def own(model, rows):
    shares = model.predict_proba(rows)
    return np.concatenate(shares, axis=1) if isinstance(shares, list) else shares


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_sums(name):
    make, y = MODELS[name]
    model = make().fit(X, y)
    check_reader(model, ROWS, BACKGROUND)
    every = explain(model, ROWS, BACKGROUND, output="all")
    np.testing.assert_allclose(every.prediction, own(model, ROWS), rtol=roundings(16))
    assert every.exact
    assert every.unit == "probability"
    assert Explainer(model, BACKGROUND).verify(ROWS).passed
    sampled = explain(model.predict_proba, ROWS, BACKGROUND, exact_owner=False)
    np.testing.assert_allclose(every.values, sampled.values, rtol=0, atol=roundings(200))
    assert every.output_names == sampled.output_names


@pytest.mark.parametrize("name", ["forests", "weighted forests"])
def test_two_classes_are_explained_by_the_second(name):
    make, y = MODELS[name]
    model = make().fit(X, y)
    explanation = explain(model, ROWS, BACKGROUND)
    assert explanation.unit == "probability of class yes"
    np.testing.assert_array_equal(explanation.values, explain(model, ROWS, BACKGROUND, output="probability").values)
    no = explain(model, ROWS, BACKGROUND, output="no")
    np.testing.assert_allclose(explanation.values, -no.values, rtol=0, atol=roundings(100))


def test_in_a_pipeline():
    model = make_pipeline(StandardScaler(), VotingClassifier(FORESTS, voting="soft")).fit(X, BINARY)
    explanation = explain(model, ROWS, BACKGROUND)
    np.testing.assert_allclose(explanation.prediction, model.predict_proba(ROWS)[:, 1], rtol=roundings(16))


@pytest.mark.parametrize("y", [BINARY, TERNARY], ids=["two", "three"])
def test_votes_of_boosted_trees(y):
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6, random_state=0).fit(X, y)
    check_reader(model, ROWS, BACKGROUND)
    check_reader(model, ROWS, n_masks=2)
    explanation = explain(model, ROWS, BACKGROUND)
    np.testing.assert_allclose(explanation.prediction, model.decision_function(ROWS), rtol=roundings(64))
    assert explanation.unit.startswith("decision function")
    k = 1 if explanation.n_outputs > 1 else 0
    values = interventional_values(lambda rows: model.decision_function(rows).reshape(len(rows), -1)[:, k], ROWS, BACKGROUND)
    found = explanation.values.reshape(*values.shape, -1)[:, :, k]
    np.testing.assert_allclose(found, values, rtol=0, atol=roundings(200))
    assert Explainer(model, BACKGROUND).verify(ROWS).passed


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: VotingClassifier(FORESTS, voting="hard"), "vote of labels.*voting='soft'"),
        (lambda: VotingClassifier([("a", KNeighborsClassifier())], voting="soft"), "model.predict_proba"),
        (lambda: MultiOutputClassifier(KNeighborsClassifier()), "model.predict_proba"),
        (lambda: BaggingClassifier(SVC(), 2), "vote of labels"),
        (lambda: AdaBoostClassifier(LogisticRegression(), n_estimators=3), "model.decision_function"),
    ],
    ids=["hard", "neighbours", "neighbours of targets", "machines", "linear"],
)
def test_refusals(make, text):
    model = make()
    y = np.c_[TERNARY > 1, BINARY == "yes"] if isinstance(model, MultiOutputClassifier) else (SCORE > 0).astype(int)
    with pytest.raises((UnsupportedModelError, UnsupportedStructureError), match=text):
        explain(model.fit(X, y), ROWS, BACKGROUND)
    for way in ("predict_proba", "decision_function", "predict"):
        if f"model.{way}" in text:
            assert explain(getattr(model, way), ROWS, BACKGROUND).certificate().passed

"""Texts: a column of them is one player; words are players of the last step, or of a function."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from exactshap import Explainer, explain
from exactshap.errors import InputError, UnknownNameError

TEXTS = np.array(["the cat sat", "a dog barked", "the dog sat", "a cat purred", "cat and dog", "bird sang"] * 5)
LABELS = np.array([0, 1, 1, 0, 1, 0] * 5)
FORMS = {
    "list": lambda: TEXTS.tolist(),
    "array": lambda: TEXTS,
    "objects": lambda: TEXTS.astype(object),
    "column": lambda: TEXTS.reshape(-1, 1),
    "series": lambda: pd.Series(TEXTS),
    "named": lambda: pd.Series(TEXTS, name="text"),
    "frame": lambda: pd.DataFrame({"text": TEXTS}),
    "polars": lambda: pytest.importorskip("polars").DataFrame({"text": TEXTS}),
}
VECTORIZERS = {"tf-idf": TfidfVectorizer, "counts": CountVectorizer, "hashes": lambda: HashingVectorizer(n_features=64)}


@pytest.mark.parametrize("background", ["list", "series", "named", "frame"])
@pytest.mark.parametrize(("form", "vectorizer"), [(form, list(VECTORIZERS)[k % 3]) for k, form in enumerate(FORMS)])
def test_a_column_of_texts_is_one_player(form, vectorizer, background):
    """Rows and background may come in different containers; functions take them as they were passed."""
    last = LinearSVC() if form in ("list", "series", "objects") else LogisticRegression()
    model = make_pipeline(VECTORIZERS[vectorizer](), last).fit(TEXTS, LABELS)
    rows, others = FORMS[form]()[:3], FORMS["polars" if form == "polars" else background]()[10:20]
    explainer, scores = Explainer(model, others), model.decision_function(TEXTS)
    found = explainer(rows)
    assert found.certificate().passed
    assert found.exact
    assert explainer.verify(rows).passed
    np.testing.assert_allclose(found.values[:, 0], scores[:3] - scores[10:20].mean())
    if not {form, background} & {"column", "frame", "polars"}:
        for function in (model.decision_function, lambda texts: model.decision_function(list(texts))):
            found = explain(function, rows, others, exact_owner=False)
            np.testing.assert_allclose(found.prediction, scores[:3])


def test_series_of_two_names_are_refused():
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, LABELS)
    with pytest.raises(UnknownNameError, match=r"Missing: \['other'\]; unexpected: \['review'\]"):
        explain(model, pd.Series(TEXTS[:3], name="review"), pd.Series(TEXTS[10:20], name="other"))


def test_texts_beside_numbers_are_a_player():
    frame = pd.DataFrame({"text": TEXTS, "length": [float(len(text)) for text in TEXTS]})
    columns = make_column_transformer((TfidfVectorizer(), "text"), remainder="passthrough")
    model = make_pipeline(columns, LinearSVC()).fit(frame, LABELS)
    found = explain(model, frame[:3], frame[10:20])
    np.testing.assert_allclose(found.values, explain(lambda X: model.decision_function(X), frame[:3], frame[10:20]).values)


def test_words_are_players_of_the_last_step():
    model = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(TEXTS, LABELS)
    words, weights = model[0].get_feature_names_out(), model[:-1].transform(TEXTS)
    found = explain(model[-1], weights[:3], weights[10:20], feature_names=words)
    assert found.feature_names == tuple(words)
    by_hand = model[-1].coef_ * (weights[:3].toarray() - weights[10:20].toarray().mean(axis=0))
    np.testing.assert_allclose(found.values, by_hand, atol=np.finfo(float).eps)


def test_what_is_wrong_is_said():
    with pytest.raises(NotFittedError, match="TfidfVectorizer instance is not fitted yet"):
        explain(make_pipeline(TfidfVectorizer(), LinearSVC()), TEXTS[:2], TEXTS[10:])
    model = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(TEXTS, LABELS)
    frame = pd.DataFrame({"text": TEXTS, "other": TEXTS})
    with pytest.raises(InputError, match=r"takes one column of texts\. Got a background of 2 columns"):
        explain(model, frame[:2], frame[10:])
    assert explain(model, frame[["text"]][:2], frame[["text"]][10:]).exact


RIDGE = make_pipeline(TfidfVectorizer(), Ridge())
WRAPPED = {
    "search": lambda: GridSearchCV(make_pipeline(TfidfVectorizer(), LinearSVC()), {"linearsvc__C": [1.0]}, cv=2),
    "threshold": lambda: TunedThresholdClassifierCV(make_pipeline(TfidfVectorizer(), LogisticRegression()), cv=2),
    "vote": lambda: VotingRegressor([("a", RIDGE), ("b", clone(RIDGE))]),
    "stack": lambda: StackingRegressor([("a", RIDGE), ("b", clone(RIDGE))], LinearRegression(), cv=2),
    "scaled target": lambda: TransformedTargetRegressor(RIDGE, transformer=StandardScaler()),
}


@pytest.mark.parametrize(("name", "kind"), [(name, ["list", "series", "frame"][k % 3]) for k, name in enumerate(WRAPPED)])
def test_what_holds_a_pipeline_of_texts_takes_them_too(name, kind):
    texts = pd.Series(["good and kind", "bad and late", "late but kind", "good", "bad", "kind", "late"] * 5, name="text")
    model = WRAPPED[name]().fit(texts, np.arange(35) % 7 % 2)
    take = {"list": pd.Series.tolist, "series": pd.Series.copy, "frame": pd.Series.to_frame}[kind]
    explanation = explain(model, take(texts[:3]), take(texts[7:20]))
    own = model.decision_function if name in ("search", "threshold") else model.predict
    if name == "threshold":
        own = model.estimator_.decision_function
    np.testing.assert_allclose(explanation.prediction, own(texts[:3]))
    assert explanation.certificate().passed

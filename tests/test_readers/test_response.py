"""Probabilities and rates of additive scores, against brute force with the model's own predict_proba and predict."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge, SGDClassifier, TweedieRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from exactshap import Explainer, explain, solve
from exactshap.errors import UnknownNameError, UnsupportedStructureError
from oracles import interventional_values
from tolerances import RESPONSE

RNG = np.random.default_rng(1)
X = pd.DataFrame(RNG.normal(size=(200, 4)), columns=list("abcd"))
CLASSES = np.where(X.a + X.b * X.c + 0.3 * RNG.normal(size=200) > 0, "yes", "no")
COUNTS = RNG.poisson(np.exp(0.5 * X.a - 0.3 * X.b))
ROWS, BACKGROUND = X[100:104], X[:25]


def ebm(**settings):
    glassbox = pytest.importorskip("interpret.glassbox")
    return glassbox.ExplainableBoostingClassifier(interactions=0, max_rounds=50, outer_bags=1, n_jobs=1, **settings)


def gam(name):
    return getattr(pytest.importorskip("pygam"), name)()


CLASSIFIERS = {
    "logistic": lambda: LogisticRegression(C=10.0),
    "separated": lambda: LogisticRegression(C=1e6, max_iter=1000),
    "stochastic": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "discriminant": LinearDiscriminantAnalysis,
    "naive bayes": GaussianNB,
    "ebm": ebm,
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "search": lambda: GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2
    ),
    "forest": lambda: RandomForestClassifier(5, max_depth=3, random_state=0),
}


def second_class(model):
    return lambda rows: model.predict_proba(rows)[:, 1]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_are_those_of_brute_force(name):
    model = CLASSIFIERS[name]().fit(X, CLASSES)
    explainer = Explainer(model, BACKGROUND, output="probability")
    explanation = explainer(ROWS)
    own = interventional_values(second_class(model), ROWS, BACKGROUND)
    np.testing.assert_allclose(explanation.values, own, atol=RESPONSE)
    np.testing.assert_allclose(explanation.prediction, second_class(model)(ROWS), atol=RESPONSE)
    assert explanation.unit == "probability of class yes"
    assert explanation.exact
    assert explanation.certificate().passed
    assert explainer.verify(ROWS).passed


@pytest.mark.parametrize("make", [PoissonRegressor, GammaRegressor, lambda: TweedieRegressor(power=1.5), Ridge])
def test_means_of_generalised_linear_models_are_those_of_brute_force(make):
    model = make().fit(X, COUNTS + 0.5)
    explanation = explain(model, ROWS, BACKGROUND, output="response")
    np.testing.assert_allclose(explanation.values, interventional_values(model.predict, ROWS, BACKGROUND), atol=RESPONSE)
    assert explanation.unit == "target"
    assert explanation.certificate().passed


@pytest.mark.parametrize(("name", "target"), [("LogisticGAM", CLASSES == "yes"), ("PoissonGAM", COUNTS), ("LinearGAM", COUNTS)])
def test_means_of_pygam_are_those_of_brute_force(name, target):
    model = gam(name).fit(X.to_numpy(), target)
    explanation = explain(model, ROWS.to_numpy(), BACKGROUND.to_numpy(), output="response")
    own = interventional_values(lambda rows: model.predict_mu(rows.to_numpy()), ROWS, BACKGROUND)
    np.testing.assert_allclose(explanation.values, own, atol=RESPONSE)


@pytest.mark.parametrize(("index", "order"), [("banzhaf", 1), ("sii", 2), ("k-sii", 2), ("moebius", 2), ("fsii", 2)])
@pytest.mark.parametrize("one_row", [True, False])
def test_every_index_order_and_background(index, order, one_row):
    model = LogisticRegression().fit(X, CLASSES)
    background = BACKGROUND[:1] if one_row else BACKGROUND
    explainer = Explainer(
        model, background, output="probability", value_function="baseline" if one_row else "auto", groups={"cd": ["c", "d"]}
    )
    explanation = explainer(ROWS[:1], index=index, order=order)

    def value(masks):
        found = []
        for mask in masks:
            mixed = background.copy()
            for name, inside in zip(
                ["cd", "a", "b"], mask[[explainer.reader.player_names.index(p) for p in ("cd", "a", "b")]], strict=True
            ):
                for column in name if inside else "":
                    mixed[column] = ROWS[column].iloc[0]
            found.append(second_class(model)(mixed).mean())
        return np.array(found)

    from exactshap.games import OracleGame

    own = solve(OracleGame(value, 3), index, order, method="enumeration")
    got = explanation.values[0] if order == 1 else explanation.set_values[0]
    np.testing.assert_allclose(got, own.values, atol=RESPONSE)


def test_weights_of_the_background_count():
    model, weights = LogisticRegression().fit(X, CLASSES), np.arange(1.0, 26.0)
    explanation = explain(model, ROWS, BACKGROUND, output="probability", background_weights=weights)
    repeated = BACKGROUND.loc[np.repeat(BACKGROUND.index, np.arange(1, 26))].reset_index(drop=True)
    np.testing.assert_allclose(explanation.values, explain(model, ROWS, repeated, output="probability").values, atol=RESPONSE)


@pytest.mark.parametrize("scale", [1.0, 100.0, 700.0])
def test_saturated_probabilities_are_exact(scale):
    model = LogisticRegression().fit(X, CLASSES)
    model.coef_, model.intercept_ = model.coef_ * scale / np.abs(model.coef_).sum(), model.intercept_ * 0.0
    explanation = explain(model, ROWS, BACKGROUND, output="probability")
    own = interventional_values(second_class(model), ROWS, BACKGROUND)
    np.testing.assert_allclose(explanation.values, own, atol=20 * RESPONSE)
    assert explanation.certificate().passed


def test_rows_do_not_depend_on_others():
    model = LogisticRegression(C=1e4, max_iter=1000).fit(X, CLASSES)
    explainer = Explainer(model, BACKGROUND, output="probability", n_jobs=2)
    together = explainer(X)
    for i in (0, 7, 101):
        np.testing.assert_array_equal(explainer(X[i : i + 1]).values[0], together.values[i])


def test_many_columns():
    rows = RNG.normal(size=(60, 40))
    model = LogisticRegression().fit(rows, rows[:, 0] + rows[:, 39] > 0)
    explanation = explain(model, rows[:3], rows[30:], output="probability")
    np.testing.assert_allclose(
        explanation.baseline + explanation.values.sum(axis=1), model.predict_proba(rows[:3])[:, 1], atol=RESPONSE
    )


def test_a_sparse_encoder_in_front():
    frame = X.assign(town=RNG.choice(list("uvw"), 200))
    front = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(front, LogisticRegression()).fit(frame, CLASSES)
    explanation = explain(model, frame[:3], frame[50:60], output="probability")
    own = interventional_values(second_class(model), frame[:3], frame[50:60])
    np.testing.assert_allclose(explanation.values, own, atol=RESPONSE)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression().fit(X, RNG.integers(3, size=200)),
        GaussianNB().fit(X, RNG.integers(3, size=200)),
        SGDClassifier(loss="modified_huber").fit(X, CLASSES),
        SVC().fit(X, CLASSES),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_no_function_of_one_sum_is_refused_with_a_way_out(model):
    with pytest.raises(
        (UnsupportedStructureError, UnknownNameError),
        match=r"(not known from its score.*Call the model|no output 'probability'.*are sampled): explain\(model\.",
    ):
        explain(model, ROWS, BACKGROUND, output="probability")
    if hasattr(model, "predict_proba"):
        assert explain(model.predict_proba, ROWS[:1], BACKGROUND[:5]).certificate().passed


def test_pairs_are_refused_unless_one_player_holds_them():
    glassbox = pytest.importorskip("interpret.glassbox")
    model = glassbox.ExplainableBoostingClassifier(interactions=[("b", "c")], max_rounds=30, outer_bags=1, n_jobs=1).fit(
        X, CLASSES
    )
    with pytest.raises(UnsupportedStructureError, match=r"A term joins 'b' and 'c'.*one group with groups="):
        explain(model, ROWS, BACKGROUND, output="probability")
    explanation = explain(model, ROWS, BACKGROUND, output="probability", groups={"bc": ["b", "c"]})
    assert explanation.certificate().passed


def test_the_training_rows_of_an_ebm_are_no_background_of_its_probability():
    model = ebm().fit(X, CLASSES)
    with pytest.raises(UnsupportedStructureError, match="needs reference rows"):
        explain(model, ROWS, output="probability")


def test_a_forest_of_regressions_predicts_its_response():
    model = RandomForestRegressor(5, random_state=0).fit(X, COUNTS)
    np.testing.assert_array_equal(explain(model, ROWS, output="response").values, explain(model, ROWS).values)


def test_a_calibrated_classifier_says_what_to_do():
    model = CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, CLASSES)
    with pytest.raises(Exception, match="predict_proba"):
        explain(model, ROWS, BACKGROUND, output="probability")


@pytest.mark.parametrize("model", [Ridge(), RandomForestRegressor(3), PoissonRegressor()])
def test_regressions_have_no_probability(model):
    with pytest.raises(UnknownNameError, match="no output 'probability'"):
        explain(model.fit(X, COUNTS), ROWS, BACKGROUND, output="probability")

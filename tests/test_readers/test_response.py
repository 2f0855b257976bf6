"""Probabilities and rates of additive scores, against brute force with the model's own predict_proba and predict."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.covariance import EllipticEnvelope
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge, SGDClassifier, TweedieRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from additive_oracle import masked_games, values_of
from exactshap import Explainer, explain
from exactshap.errors import BudgetError, InputError, UnknownNameError, UnsupportedStructureError
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
    "quadratic": QuadraticDiscriminantAnalysis,
    "ebm": ebm,
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "polynomial": lambda: make_pipeline(StandardScaler(), PolynomialFeatures(3), LogisticRegression()),
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


@pytest.mark.parametrize(
    "make",
    [
        PoissonRegressor,
        GammaRegressor,
        lambda: TweedieRegressor(power=1.5),
        Ridge,
        lambda: make_pipeline(PolynomialFeatures(2), PoissonRegressor()),
    ],
)
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
    way = "baseline" if one_row else "auto"
    explainer = Explainer(model, background, output="probability", value_function=way, groups={"cd": ["c", "d"]})
    explanation = explainer(ROWS[:1], index=index, order=order)
    players = [[list(X).index(column) for column in name] for name in explainer.reader.traits.player_names]
    own = values_of(masked_games(second_class(model), ROWS[:1], background, players=players), 3, index, order)
    np.testing.assert_allclose(explanation.values if order == 1 else explanation.set_values, own, atol=RESPONSE)


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


@pytest.mark.parametrize("n_columns", [4, 12])
def test_rows_do_not_depend_on_others(n_columns):
    rows = np.random.default_rng(0).normal(size=(200, n_columns))
    model = LogisticRegression(C=1e4, max_iter=1000).fit(rows, CLASSES)
    explainer = Explainer(model, rows[:25], output="probability", n_jobs=2)
    together = explainer(rows)
    for i in (0, 7, 101):
        np.testing.assert_array_equal(explainer(rows[i : i + 1]).values[0], together.values[i])


def wide(scale=1.0):
    """Return a model of 12 columns, which is expanded, its function, rows and a background."""
    rows = np.random.default_rng(0).normal(size=(80, 12))
    model = LogisticRegression().fit(rows, rows[:, 0] + rows[:, 1] > 0)
    model.coef_ = scale * model.coef_ / np.abs(model.coef_).sum()
    return model, lambda cells: model.predict_proba(cells)[:, 1], rows[:2], rows[40:50]


@pytest.mark.parametrize(("index", "order"), [("shapley", 1), ("banzhaf", 1), ("k-sii", 2), ("moebius", 2), ("fsii", 2)])
@pytest.mark.parametrize("value_function", ["interventional", "baseline"])
def test_expansions_are_those_of_all_coalitions(index, order, value_function):
    model, function, rows, background = wide(5.0)
    background = background[:1] if value_function == "baseline" else background
    explainer = Explainer(model, background, output="probability", value_function=value_function)
    explanation = explainer(rows, index=index, order=order)
    assert "quadrature" in explanation.method
    assert 0.0 < explanation.error_bound.max() < RESPONSE
    own = explain(function, rows, background, index=index, order=order)
    assert own.exact
    np.testing.assert_allclose(explanation.values, own.values, atol=RESPONSE)
    if order > 1:
        np.testing.assert_allclose(explanation.set_values, own.set_values, atol=RESPONSE)
    assert explainer.verify(rows[:1]).passed


@pytest.mark.parametrize("scale", [1e-300, 1.0, 100.0, 700.0])
def test_saturated_expansions_are_exact(scale):
    model, function, rows, background = wide(scale)
    explanation = explain(model, rows, background, output="probability")
    own = explain(function, rows, background)
    np.testing.assert_allclose(explanation.values, own.values, atol=20 * RESPONSE)


def test_a_background_of_far_larger_scores_is_within_tolerance():
    """A variance of 1e-9 makes scores of 1e9 at the background, whose rounding hybrids of ordinary rows have, too."""
    rows = X.assign(a=np.where((X.index < 100) & (CLASSES == "no"), 0.0, np.abs(X.a)))
    model = GaussianNB().fit(rows[:100], CLASSES[:100])
    near = rows[rows.a == 0.0]
    for index, order in [("shapley", 1), ("k-sii", 3)]:
        assert explain(model, near[:5], rows[100:110], output="probability", index=index, order=order).certificate().passed


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
        SGDClassifier(loss="modified_huber").fit(X, CLASSES),
        SVC().fit(X, CLASSES),
        EllipticEnvelope().fit(X),
        make_pipeline(PolynomialFeatures(2), LinearSVC()).fit(X, CLASSES),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_no_function_of_one_sum_is_refused_with_a_way_out(model):
    with pytest.raises(
        (UnsupportedStructureError, UnknownNameError),
        match=r"(no known function of its score.*Call the model|no output 'probability'.*are sampled): explain\(model\.",
    ):
        explain(model, ROWS, BACKGROUND, output="probability")
    if hasattr(model, "predict_proba"):
        assert explain(model.predict_proba, ROWS[:1], BACKGROUND[:5]).certificate().passed


def pairs_of(n_columns, pairs, **settings):
    """Return an EBM with pairs, rows and their classes."""
    glassbox = pytest.importorskip("interpret.glassbox")
    rng = np.random.default_rng(n_columns)
    rows = pd.DataFrame(rng.normal(size=(300, n_columns)), columns=[f"c{j}" for j in range(n_columns)])
    score = rows.to_numpy()[:, :3].sum(axis=1) + sum(rows[f"c{a}"] * rows[f"c{b}"] for a, b in pairs)
    settings = {"interactions": pairs, "max_rounds": 30, "outer_bags": 1, "n_jobs": 1, **settings}
    return glassbox.ExplainableBoostingClassifier(**settings).fit(rows, score > 0), rows


@pytest.mark.parametrize(("index", "order"), [("shapley", 1), ("banzhaf", 1), ("k-sii", 2)])
def test_pairs_are_exact_by_elimination(index, order):
    model, rows = pairs_of(11, [(0, 1), (1, 2), (0, 2), (3, 4), (9, 10)])
    explainer = Explainer(model, rows[:5], output="probability", background_weights=[1.0, 2.0, 3.0, 1.0, 1.0])
    explanation = explainer(rows[100:101], index=index, order=order)
    assert explanation.method.startswith("variable elimination of width 2")
    assert explanation.exact
    assert 0.0 < explanation.error_bound.max() < 1e-12
    assert explanation.certificate().passed
    game = explainer.reader.game(explainer.reader.traits.background)  # its definition, which ``verify`` holds against the model
    assert game.n_players == 11
    own = Explainer(model, rows[:5], output="probability", background_weights=[1.0, 2.0, 3.0, 1.0, 1.0], budget=2**11)
    other = own(rows[100:101], index=index, order=order)
    assert "enumeration" in other.method
    np.testing.assert_allclose(explanation.values, other.values, atol=RESPONSE)
    assert explainer.verify(rows[100:102]).passed


def test_few_players_with_pairs_are_those_of_brute_force():
    model, rows = pairs_of(4, [(0, 1), (1, 2)])
    explanation = explain(model, rows[:3], rows[50:60], output="probability")
    own = interventional_values(second_class(model), rows[:3], rows[50:60])
    np.testing.assert_allclose(explanation.values, own, atol=RESPONSE)
    assert explanation.exact
    grouped = explain(model, rows[:3], rows[50:60], output="probability", groups={"p": ["c0", "c1", "c2"]})
    assert grouped.method == "enumeration (2^2 coalitions)"


def test_tensors_of_a_gam():
    pygam = pytest.importorskip("pygam")
    rows = RNG.normal(size=(200, 3))
    model = pygam.LogisticGAM(pygam.s(0) + pygam.te(1, 2, n_splines=5)).fit(rows, rows[:, 0] + rows[:, 1] * rows[:, 2] > 0)
    explanation = explain(model, rows[:3], rows[50:60], output="probability")
    own = interventional_values(
        lambda cells: model.predict_mu(np.asarray(cells)), pd.DataFrame(rows[:3]), pd.DataFrame(rows[50:60])
    )
    np.testing.assert_allclose(explanation.values, own, atol=RESPONSE)


def test_rates_with_pairs():
    glassbox = pytest.importorskip("interpret.glassbox")
    rows = pd.DataFrame(RNG.normal(size=(300, 12)), columns=[f"c{j}" for j in range(12)])
    counts = RNG.poisson(np.exp(0.4 * rows.c0 * rows.c1))
    settings = {
        "objective": "poisson_deviance",
        "interactions": [(0, 1), (1, 2)],
        "max_rounds": 30,
        "outer_bags": 1,
        "n_jobs": 1,
    }
    model = glassbox.ExplainableBoostingRegressor(**settings).fit(rows, counts)
    explanation = explain(model, rows[:2], rows[50:56], output="response")
    assert explanation.method.startswith("variable elimination")
    assert explanation.certificate().passed
    other = explain(model, rows[:2], rows[50:56], output="response", budget=2**12)
    np.testing.assert_allclose(explanation.values, other.values, atol=100 * RESPONSE)


def test_dense_graphs_are_sampled_around_the_exact_score_and_say_so():
    pairs = [(a, b) for a in range(14) for b in range(a)]
    model, rows = pairs_of(15, pairs, max_rounds=2)
    explanation = explain(model, rows[:1], rows[50:60], output="probability")
    assert not explanation.exact
    assert "a graph of width 13, above 12; exact values of the score as control variate" in explanation.method
    assert explanation.certificate().passed
    exact = explain(model, rows[:1], rows[50:60], output="probability", budget=2**15)
    assert np.mean(np.abs(explanation.values - exact.values) <= 2.0 * explanation.std_error) >= 0.8


MANY_CLASSES = {
    "logistic": lambda: LogisticRegression(),
    "stochastic": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "discriminant": LinearDiscriminantAnalysis,
    "naive bayes": GaussianNB,
    "quadratic": QuadraticDiscriminantAnalysis,
    "ebm": ebm,
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "polynomial": lambda: make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(max_iter=1000)),
    "one against the rest": lambda: OneVsRestClassifier(LogisticRegression()),
    "scaled against the rest": lambda: make_pipeline(StandardScaler(), OneVsRestClassifier(SGDClassifier(loss="log_loss"))),
}


@pytest.mark.parametrize("name", MANY_CLASSES)
def test_probabilities_of_three_classes_are_those_of_brute_force(name):
    model = MANY_CLASSES[name]().fit(X, np.array(["u", "v", "w"])[np.digitize(X.a + X.b, [-0.5, 0.5])])
    explanation = explain(model, ROWS, BACKGROUND, output="probability")
    for k in range(3):
        own = interventional_values(lambda rows, k=k: model.predict_proba(rows)[:, k], ROWS, BACKGROUND)
        np.testing.assert_allclose(explanation.values[:, :, k], own, atol=RESPONSE)
    assert explanation.unit == "probability"
    assert explanation.certificate().passed


def test_one_of_two_classes_against_the_rest():
    model = OneVsRestClassifier(LogisticRegression()).fit(X, X.a > 0)
    explanation = explain(model, ROWS, BACKGROUND, output="probability")
    own = interventional_values(lambda rows: model.predict_proba(rows)[:, 1], ROWS, BACKGROUND)
    np.testing.assert_allclose(explanation.values, own, atol=RESPONSE)
    assert explanation.unit == "probability of class True"
    squared = OneVsRestClassifier(SGDClassifier(loss="modified_huber")).fit(X, X.a > 0)
    with pytest.raises(UnknownNameError, match=r"has no output 'probability'.*model\.predict_proba"):
        explain(squared, ROWS, BACKGROUND, output="probability")


def test_many_classes_of_many_columns_are_sampled_and_cover():
    rows = RNG.normal(size=(200, 14))
    model = LogisticRegression().fit(rows, np.digitize(rows[:, 0] + rows[:, 1], [-0.5, 0.5]))
    exact = explain(model, rows[:3], rows[50:60], output="probability", budget=2**14)
    sampled = explain(model, rows[:3], rows[50:60], output="probability", budget=150)
    assert "the softmax joins the scores of all classes; exact values of the score as control variate" in sampled.method
    assert np.mean(np.abs(sampled.values - exact.values) <= 2.0 * sampled.std_error) > 0.9
    assert ((sampled.values - exact.values) ** 2).sum() < 1e-4 * (exact.values**2).sum()


def test_the_training_rows_of_an_ebm_are_no_background_of_its_probability():
    model = ebm().fit(X, CLASSES)
    with pytest.raises(UnsupportedStructureError, match="needs reference rows"):
        explain(model, ROWS, output="probability")


def test_a_forest_of_regressions_predicts_its_response():
    model = RandomForestRegressor(5, random_state=0).fit(X, COUNTS)
    np.testing.assert_array_equal(explain(model, ROWS, output="response").values, explain(model, ROWS).values)


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        LinearSVC,
        lambda: SGDClassifier(random_state=0),
        lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["machine", "stochastic", "pipeline"],
)
def test_calibrated_sums_are_exact(make, ensemble):
    model = CalibratedClassifierCV(make(), cv=3, ensemble=ensemble).fit(X, CLASSES)
    for output in ("probability", "auto"):
        explainer = Explainer(model, BACKGROUND, output=output)
        explanation = explainer(ROWS)
        own = interventional_values(second_class(model), ROWS, BACKGROUND)
        np.testing.assert_allclose(explanation.values, own, atol=RESPONSE)
        assert explanation.unit == "probability of class yes"
        assert explanation.exact
        assert explanation.certificate().passed
        assert explainer.verify(ROWS).passed
    outer = make_pipeline(StandardScaler(), CalibratedClassifierCV(make(), cv=2, ensemble=ensemble)).fit(X, CLASSES)
    own = interventional_values(second_class(outer), ROWS, BACKGROUND)
    np.testing.assert_allclose(
        explain(outer, ROWS, BACKGROUND, groups={"ab": ["a", "b"]}).values.sum(axis=1), own.sum(axis=1), atol=RESPONSE
    )


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("make", [LogisticRegression, LinearSVC, lambda: make_pipeline(StandardScaler(), LogisticRegression())])
def test_isotonic_calibrations_are_exact(make, ensemble):
    model = CalibratedClassifierCV(make(), method="isotonic", cv=3, ensemble=ensemble).fit(X, CLASSES)
    explainer = Explainer(model, BACKGROUND, output="probability")
    explanation = explainer(ROWS)
    own = interventional_values(second_class(model), ROWS, BACKGROUND)
    np.testing.assert_allclose(explanation.values, own, atol=10 * RESPONSE)
    assert (explanation.unit, explanation.exact) == ("probability of class yes", True)
    assert "middle" in explanation.method
    assert explanation.certificate().passed
    assert explainer.verify(ROWS).passed
    pairs = explainer(ROWS[:1], index="k-sii", order=2)
    by_call = explain(second_class(model), ROWS[:1], BACKGROUND, index="k-sii", order=2)
    np.testing.assert_allclose(pairs.set_values, by_call.set_values, atol=10 * RESPONSE)
    assert np.array_equal(explainer(ROWS[1:2]).values[0], explanation.values[1])


def test_isotonic_calibrations_of_many_columns():
    rows = np.random.default_rng(0).normal(size=(300, 34))
    model = CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=2).fit(rows[:200], rows[:200, 0] > 0)
    with pytest.raises(BudgetError, match=r"groups=, or sample: explain\(model.predict_proba"):
        explain(model, rows[:1], rows[250:252])
    groups = {f"pair {j}": [j, j + 17] for j in range(17)}
    explanation = explain(model, rows[:2], rows[250:255], groups=groups)
    assert explanation.certificate().passed
    assert explanation.tolerance.max() < 1e-6
    constant = CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=2).fit(X, RNG.random(200) > 0.5)
    own = interventional_values(second_class(constant), ROWS, BACKGROUND)
    np.testing.assert_allclose(explain(constant, ROWS, BACKGROUND).values, own, atol=10 * RESPONSE)


def test_other_calibrated_classifiers_say_what_to_do():
    three = np.array(["u", "v", "w"])[np.digitize(X.a + X.b, [-0.5, 0.5])]
    for model in (
        CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=2).fit(X, three),
        CalibratedClassifierCV(SVC(), method="isotonic", cv=2).fit(X, CLASSES),
        CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, three),
        CalibratedClassifierCV(SVC(), cv=2).fit(X, CLASSES),
        CalibratedClassifierCV(GaussianNB(), cv=2).fit(X, CLASSES),
    ):
        with pytest.raises(UnsupportedStructureError, match=r"Call the model: explain\(model.predict_proba, X, background\)"):
            explain(model, ROWS, BACKGROUND, output="probability")
    assert explain(model.predict_proba, ROWS[:1], BACKGROUND[:5]).certificate().passed
    sigmoid = CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, CLASSES)
    with pytest.raises(InputError, match=r"needs reference rows.*Pass background="):
        explain(sigmoid, ROWS)


@pytest.mark.parametrize("model", [Ridge(), RandomForestRegressor(3), PoissonRegressor()])
def test_regressions_have_no_probability(model):
    with pytest.raises(UnknownNameError, match="no output 'probability'"):
        explain(model.fit(X, COUNTS), ROWS, BACKGROUND, output="probability")


def test_values_of_a_score_say_how_to_get_probabilities():
    model = LogisticRegression().fit(X, CLASSES)
    assert 'For probabilities pass output="probability"' in " ".join(repr(explain(model, ROWS, BACKGROUND)).split())
    assert "For probabilities" not in repr(explain(model, ROWS, BACKGROUND, output="probability"))
    rates = repr(explain(PoissonRegressor().fit(X, COUNTS), ROWS, BACKGROUND))
    assert 'Without the logarithm: output="response"' in " ".join(rates.split())


@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        VotingRegressor([("a", Ridge()), ("b", SVR())]),
        make_pipeline(StandardScaler(), SVR()),
        GaussianProcessRegressor(normalize_y=True),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore:No exact reader")
def test_the_response_of_a_model_of_its_target_is_what_it_predicts(model):
    model.fit(X, COUNTS)
    found, plain = (explain(model, ROWS, BACKGROUND, output=output) for output in ("response", "auto"))
    assert (found.unit, found.exact) == (plain.unit, True)
    assert np.array_equal(found.values, plain.values)


def test_scores_of_other_units_have_no_response():
    with pytest.raises(UnknownNameError, match=r"explain\(model.predict"):
        explain(SVC().fit(X, CLASSES), ROWS, BACKGROUND, output="response")

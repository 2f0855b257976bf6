"""Probabilities and rates of additive scores, against brute force with the model's own predict_proba and predict."""

import numpy as np
import pandas as pd
import pytest
from sklearn import discriminant_analysis, linear_model
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from additive_oracle import masked_games, values_of
from exactshap import Explainer, explain
from exactshap.errors import BudgetError, ExactshapError, InputError, UnknownNameError, UnsupportedStructureError
from oracles import interventional_values
from reader_checks import check_answers, second_class
from tolerances import PROBABILITY, RESPONSE

RNG = np.random.default_rng(1)
X = pd.DataFrame(RNG.normal(size=(200, 4)), columns=list("abcd"))
CLASSES = np.where(X.a + X.b * X.c + 0.3 * RNG.normal(size=200) > 0, "yes", "no")
THREE = np.array(["u", "v", "w"])[np.digitize(X.a + X.b, [-0.5, 0.5])]
COUNTS = RNG.poisson(np.exp(0.5 * X.a - 0.3 * X.b))
ROWS, BACKGROUND = X[100:103], X[:15]
FEW = {"max_rounds": 30, "outer_bags": 1, "n_jobs": 1}


def ebm(name="ExplainableBoostingClassifier", interactions=0, **settings):
    glassbox = pytest.importorskip("interpret.glassbox")
    return getattr(glassbox, name)(interactions=interactions, **{**FEW, **settings})


def gam(name, tensor=False):
    pygam = pytest.importorskip("pygam")
    return getattr(pygam, name)(*[pygam.s(0) + pygam.te(1, 2, n_splines=5)] * tensor)


CLASSIFIERS = {
    "logistic": lambda: LogisticRegression(C=10.0),
    "separated": lambda: LogisticRegression(C=1e6, max_iter=1000),
    "stochastic": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "discriminant": discriminant_analysis.LinearDiscriminantAnalysis,
    "naive bayes": GaussianNB,
    "quadratic": discriminant_analysis.QuadraticDiscriminantAnalysis,
    "ebm": ebm,
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "polynomial": lambda: make_pipeline(StandardScaler(), PolynomialFeatures(3), LogisticRegression(max_iter=1000)),
    "interactions": lambda: make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(max_iter=1000)),
    "search": lambda: GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {}, cv=2),
    "forest": lambda: RandomForestClassifier(5, max_depth=3, random_state=0),
    "one against the rest": lambda: OneVsRestClassifier(LogisticRegression()),
    "scaled against the rest": lambda: make_pipeline(StandardScaler(), OneVsRestClassifier(SGDClassifier(loss="log_loss"))),
}


@pytest.mark.parametrize("labels", [CLASSES, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_are_those_of_brute_force(name, labels):
    model = CLASSIFIERS[name]().fit(X, labels)
    own = second_class(model) if labels is CLASSES else model.predict_proba
    found = check_answers(model, own, ROWS, BACKGROUND, RESPONSE, contract=labels is CLASSES, output="probability")
    assert found.unit == ("probability of class yes" if labels is CLASSES else "probability")


RATES = {  # (model, target, unit)
    "poisson": (PoissonRegressor, COUNTS + 0.5, "target"),
    "gamma": (linear_model.GammaRegressor, COUNTS + 0.5, "target"),
    "tweedie": (lambda: linear_model.TweedieRegressor(power=1.5), COUNTS, "target"),
    "no link": (Ridge, COUNTS, "target"),
    "polynomial": (lambda: make_pipeline(PolynomialFeatures(2), PoissonRegressor()), COUNTS, "target"),
    "a log-odds of pygam": (lambda: gam("LogisticGAM"), CLASSES == "yes", "probability"),
    "a tensor of pygam": (lambda: gam("LogisticGAM", tensor=True), CLASSES == "yes", "probability"),
    "a rate of pygam": (lambda: gam("PoissonGAM"), COUNTS, "target"),
    "no link of pygam": (lambda: gam("LinearGAM"), COUNTS, "target"),
}


@pytest.mark.parametrize("name", RATES)
def test_means_are_those_of_brute_force(name):
    make, target, unit = RATES[name]
    if "pygam" in name:
        model = make().fit(X.to_numpy(), target)
        assert (
            check_answers(model, model.predict_mu, ROWS.to_numpy(), BACKGROUND.to_numpy(), RESPONSE, output="response").unit
            == unit
        )
        return
    model = make().fit(X, target)
    assert check_answers(model, model.predict, ROWS, BACKGROUND, RESPONSE, output="response").unit == unit


@pytest.mark.parametrize(("index", "order"), [("banzhaf", 1), ("sii", 2), ("k-sii", 2), ("moebius", 2), ("fsii", 2)])
@pytest.mark.parametrize("one_row", [True, False])
def test_every_index_order_and_background(index, order, one_row):
    model, weights = LogisticRegression().fit(X, CLASSES), None if one_row else np.arange(1.0, 16.0)
    background, settings = (BACKGROUND[:1], {"value_function": "baseline"}) if one_row else (BACKGROUND, {})
    settings |= {"output": "probability", "groups": {"cd": ["c", "d"]}, "background_weights": weights}
    explainer = Explainer(model, background, **settings)
    explanation = explainer(ROWS[:1], index=index, order=order)
    players = [[list(X).index(column) for column in name] for name in explainer.reader.traits.player_names]
    own = values_of(masked_games(second_class(model), ROWS[:1], background, weights, players), 3, index, order)
    np.testing.assert_allclose(explanation.values if order == 1 else explanation.set_values, own, atol=RESPONSE)


# -- many columns: the expansion -----------------------------------------------------------------------------------------


def wide(scale=1.0, n_columns=12):
    """Return a model of many columns, which is expanded, its function, rows and a background."""
    rows = np.random.default_rng(0).normal(size=(80, n_columns))
    model = LogisticRegression().fit(rows, rows[:, 0] + rows[:, 1] > 0)
    model.coef_ = scale * model.coef_ / np.abs(model.coef_).sum()
    return model, second_class(model), rows[:2], rows[40:50]


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
    found = explain(model, rows, background, output="probability")
    np.testing.assert_allclose(found.values, explain(function, rows, background).values, atol=20 * RESPONSE)


def test_rows_of_an_expansion_do_not_depend_on_others_and_add_up_for_forty_columns():
    rows = np.random.default_rng(0).normal(size=(200, 12))
    model = LogisticRegression(C=1e4, max_iter=1000).fit(rows, CLASSES)
    explainer = Explainer(model, rows[:25], output="probability", n_jobs=2)
    together = explainer(rows)
    for i in (0, 7, 101):
        np.testing.assert_array_equal(explainer(rows[i : i + 1]).values[0], together.values[i])
    model, function, rows, background = wide(5.0, 40)
    found = explain(model, rows, background, output="probability")
    np.testing.assert_allclose(found.baseline + found.values.sum(axis=1), function(rows), atol=RESPONSE)


def test_a_background_of_far_larger_scores_is_within_tolerance():
    """A variance of 1e-9 makes scores of 1e9 at the background, whose rounding hybrids of ordinary rows have, too."""
    rows = X.assign(a=np.where((X.index < 100) & (CLASSES == "no"), 0.0, np.abs(X.a)))
    model = GaussianNB().fit(rows[:100], CLASSES[:100])
    near = rows[rows.a == 0.0]
    for index, order in [("shapley", 1), ("k-sii", 3)]:
        assert explain(model, near[:5], rows[100:110], output="probability", index=index, order=order).certificate().passed


def test_a_sparse_encoder_in_front():
    frame = X.assign(town=RNG.choice(list("uvw"), 200))
    front = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(front, LogisticRegression()).fit(frame, CLASSES)
    check_answers(model, second_class(model), frame[:3], frame[50:60], RESPONSE, output="probability")


# -- pairs: variable elimination -----------------------------------------------------------------------------------------


def pairs_of(n_columns, pairs, **settings):
    """Return an EBM with pairs, and rows."""
    rng = np.random.default_rng(n_columns)
    rows = pd.DataFrame(rng.normal(size=(300, n_columns)), columns=[f"c{j}" for j in range(n_columns)])
    score = rows.to_numpy()[:, :3].sum(axis=1) + sum(rows[f"c{a}"] * rows[f"c{b}"] for a, b in pairs)
    return ebm(interactions=pairs, **settings).fit(rows, score > 0), rows


@pytest.mark.parametrize(("index", "order"), [("shapley", 1), ("banzhaf", 1), ("k-sii", 2)])
def test_pairs_are_exact_by_elimination(index, order):
    model, rows = pairs_of(11, [(0, 1), (1, 2), (0, 2), (3, 4), (9, 10)])
    settings = {"output": "probability", "background_weights": [1.0, 2.0, 3.0, 1.0, 1.0]}
    explainer = Explainer(model, rows[:5], **settings)
    explanation = explainer(rows[100:101], index=index, order=order)
    assert explanation.method.startswith("variable elimination of width 2")
    assert explanation.exact
    assert 0.0 < explanation.error_bound.max() < RESPONSE
    assert explanation.certificate().passed
    other = Explainer(model, rows[:5], **settings, budget=2**11)(rows[100:101], index=index, order=order)
    assert "enumeration" in other.method
    np.testing.assert_allclose(explanation.values, other.values, atol=RESPONSE)
    assert explainer.verify(rows[100:102]).passed


def test_few_players_with_pairs_are_those_of_brute_force():
    model, rows = pairs_of(4, [(0, 1), (1, 2)])
    check_answers(model, second_class(model), rows[:3], rows[50:60], RESPONSE, output="probability")
    grouped = explain(model, rows[:3], rows[50:60], output="probability", groups={"p": ["c0", "c1", "c2"]})
    assert grouped.method == "enumeration (2^2 coalitions)"


def test_rates_with_pairs():
    rows = pd.DataFrame(RNG.normal(size=(300, 12)), columns=[f"c{j}" for j in range(12)])
    model = ebm("ExplainableBoostingRegressor", [(0, 1), (1, 2)], objective="poisson_deviance")
    model.fit(rows, RNG.poisson(np.exp(0.4 * rows.c0 * rows.c1)))
    explanation = explain(model, rows[:2], rows[50:56], output="response")
    assert explanation.method.startswith("variable elimination")
    assert explanation.certificate().passed
    other = explain(model, rows[:2], rows[50:56], output="response", budget=2**12)
    np.testing.assert_allclose(explanation.values, other.values, atol=100 * RESPONSE)


# -- sampled around the exact score --------------------------------------------------------------------------------------


def test_dense_graphs_are_sampled_around_the_exact_score_and_say_so():
    model, rows = pairs_of(15, [(a, b) for a in range(14) for b in range(a)], max_rounds=2)
    explanation = explain(model, rows[:1], rows[50:60], output="probability")
    assert not explanation.exact
    assert "a graph of width 13, above 12; exact values of the score as control variate" in explanation.method
    assert explanation.certificate().passed
    exact = explain(model, rows[:1], rows[50:60], output="probability", budget=2**15)
    assert np.mean(np.abs(explanation.values - exact.values) <= 2.0 * explanation.std_error) >= 0.8


def test_many_classes_of_many_columns_are_sampled_and_cover():
    rows = RNG.normal(size=(200, 14))
    model = LogisticRegression().fit(rows, np.digitize(rows[:, 0] + rows[:, 1], [-0.5, 0.5]))
    exact = explain(model, rows[:3], rows[50:60], output="probability", budget=2**14)
    sampled = explain(model, rows[:3], rows[50:60], output="probability", budget=150)
    assert "the softmax joins the scores of all classes; exact values of the score as control variate" in sampled.method
    assert np.mean(np.abs(sampled.values - exact.values) <= 2.0 * sampled.std_error) > 0.9
    assert ((sampled.values - exact.values) ** 2).sum() < 1e-4 * (exact.values**2).sum()


# -- calibrations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    "make",
    [LinearSVC, lambda: SGDClassifier(random_state=0), lambda: make_pipeline(StandardScaler(), LogisticRegression())],
    ids=["machine", "stochastic", "pipeline"],
)
def test_calibrated_sums_are_exact(make, method, ensemble):
    model = CalibratedClassifierCV(make(), method=method, cv=3, ensemble=ensemble).fit(X, CLASSES)
    contract = not ensemble and method == "isotonic"
    found = check_answers(model, second_class(model), ROWS, BACKGROUND, 10 * RESPONSE, contract=contract)
    assert found.unit == "probability of class yes"
    assert ("middle" in found.method) == (method == "isotonic")
    np.testing.assert_array_equal(explain(model, ROWS, BACKGROUND, output="probability").values, found.values)
    outer = make_pipeline(StandardScaler(), CalibratedClassifierCV(make(), method=method, cv=2, ensemble=ensemble))
    check_answers(outer.fit(X, CLASSES), second_class(outer), ROWS[:2], BACKGROUND[:9], 10 * RESPONSE, contract=False)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    "make",
    [LinearSVC, lambda: make_pipeline(StandardScaler(), LogisticRegression()), lambda: RandomForestClassifier(5)],
    ids=["machine", "pipeline", "forest"],
)
def test_calibrations_of_three_classes_are_divided_by_their_sum(make, method):
    model = CalibratedClassifierCV(make(), cv=3, method=method).fit(X, THREE)
    found = check_answers(model, model.predict_proba, ROWS, BACKGROUND, 10 * RESPONSE, contract=False)
    assert found.output_names == tuple(model.classes_)
    one = explain(model, ROWS, BACKGROUND, output=model.classes_[1])
    assert one.unit == f"probability of class {model.classes_[1]}"
    np.testing.assert_array_equal(one.values, found.values[:, :, 1])
    alone = CalibratedClassifierCV(make(), ensemble=False, method=method).fit(X, THREE)
    check_answers(alone, alone.predict_proba, ROWS, BACKGROUND, 10 * RESPONSE, contract=False, output="probability")


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    "make",
    [
        GaussianNB,
        lambda: MLPClassifier((3,), max_iter=30, random_state=0),
        discriminant_analysis.QuadraticDiscriminantAnalysis,
        lambda: make_pipeline(PolynomialFeatures(2), LinearSVC()),
    ],
    ids=["densities", "network", "quadratic", "polynomial"],
)
def test_calibrations_of_what_joins_columns_are_those_of_brute_force(make, method):
    model = CalibratedClassifierCV(make(), cv=2, method=method).fit(X, CLASSES)
    check_answers(model, second_class(model), ROWS, BACKGROUND, 100 * RESPONSE, contract=False)


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: CalibratedClassifierCV(model, cv=2)])
@pytest.mark.parametrize(
    ("make", "scale", "shift"),
    [
        (lambda: make_pipeline(PolynomialFeatures(2), LogisticRegression()), 1.0, 1e3),
        (lambda: MLPClassifier((4,), max_iter=30, random_state=1), 1e3, 0.0),
    ],
    ids=["polynomials that cancel", "a saturated network"],
)
def test_scores_that_cancel_or_saturate_are_no_reason_to_refuse(make, scale, shift, wrap):
    rows = X.to_numpy() * scale + shift
    model = wrap(make()).fit(rows, CLASSES)
    found = explain(model, rows[100:103], rows[:15], output="probability")
    wanted = interventional_values(second_class(model), rows[100:103], rows[:15])
    # Squares of a thousand leave ten digits
    np.testing.assert_allclose(found.values, wanted, atol=1e3**2 * RESPONSE)
    assert found.tolerance.max() < PROBABILITY


def calibrated_by(target, method="sigmoid", **attributes):
    model = CalibratedClassifierCV(LogisticRegression(), method=method, cv=2, ensemble=False).fit(X, target)
    for calibrator in model.calibrated_classifiers_[0].calibrators:
        for name, value in attributes.items():
            setattr(calibrator, name, value)
        if method == "isotonic":
            calibrator._build_f(calibrator.X_thresholds_, calibrator.y_thresholds_)
    return model


def test_sigmoids_that_vanish_for_all_classes_are_shared_equally():
    model = calibrated_by(THREE, a_=-300.0, b_=1200.0)
    chances = model.predict_proba(X)
    assert (chances == 1.0 / 3.0).all(axis=1).any()
    check_answers(model, model.predict_proba, ROWS, BACKGROUND, 100 * RESPONSE, contract=False)


def test_a_calibration_that_jumps_is_that_of_brute_force():
    knots, heights = np.array([-1.0, 0.0, 4e-15, 1.0]), np.array([0.1, 0.2, 0.7, 0.9])
    # Hinges of a slope of 1e14 cancel to two digits; scores of four decimals tie but for their rounding
    model = calibrated_by(CLASSES, "isotonic", X_thresholds_=knots, y_thresholds_=heights, X_min_=-1.0, X_max_=1.0)
    found = explain(model, ROWS, BACKGROUND)
    wanted = interventional_values(second_class(model), ROWS, BACKGROUND)
    np.testing.assert_allclose(found.values, wanted, atol=RESPONSE)


def test_settings_of_a_calibration_are_refused_by_their_names_and_a_budget_samples():
    model = CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=2).fit(X, CLASSES)
    with pytest.raises(UnknownNameError, match=r"no setting 'budgte'"):
        explain(model, ROWS, BACKGROUND, budgte=100)
    with pytest.raises(InputError, match="'budget' parameter must be"):
        explain(model, ROWS, BACKGROUND, budget="many")
    assert "enumeration" in explain(model, ROWS, BACKGROUND, budget=2**12).method


def test_isotonic_calibrations_of_many_columns_and_of_a_constant():
    rows, calibrated = np.random.default_rng(0).normal(size=(300, 34)), {"method": "isotonic", "cv": 2}
    model = CalibratedClassifierCV(LogisticRegression(), **calibrated).fit(rows[:200], rows[:200, 0] > 0)
    with pytest.raises(BudgetError, match=r"groups=, or sample: explain\(model, X, background, budget=500\)"):
        explain(model, rows[:1], rows[250:252])
    assert (explain(model, rows[:1], rows[250:252], budget=500).std_error > 0.0).all()
    explanation = explain(model, rows[:2], rows[250:255], groups={f"pair {j}": [j, j + 17] for j in range(17)})
    assert explanation.certificate().passed
    assert explanation.tolerance.max() < 1e-6
    constant = CalibratedClassifierCV(LogisticRegression(), **calibrated).fit(X, RNG.random(200) > 0.5)
    check_answers(constant, second_class(constant), ROWS, BACKGROUND, 10 * RESPONSE)


# -- what has no probability or response ---------------------------------------------------------------------------------

REFUSED = {
    "kernels": (SVC(), CLASSES),
    "an envelope": (EllipticEnvelope(), None),
    "hinges of polynomials": (make_pipeline(PolynomialFeatures(2), LinearSVC()), CLASSES),
}
CALLED = {
    "squared hinges": (SGDClassifier(loss="modified_huber"), CLASSES),
    "squared hinges against the rest": (OneVsRestClassifier(SGDClassifier(loss="modified_huber")), CLASSES == "yes"),
    "sigmoid of bags": (CalibratedClassifierCV(BaggingClassifier(LogisticRegression(), 2), cv=2), CLASSES),
    "neighbours": (KNeighborsClassifier(), THREE),
    "a process behind a scaler": (make_pipeline(StandardScaler(), GaussianProcessClassifier()), THREE),
    "a stack": (StackingClassifier([("a", LogisticRegression())], cv=2), CLASSES),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_function_of_one_sum_is_refused_with_a_way_out(name):
    model, target = REFUSED[name]
    model.fit(X, target)
    with pytest.raises((UnsupportedStructureError, UnknownNameError), match=r"explain\(model(\.\w+)?, X, background") as caught:
        explain(model, ROWS, BACKGROUND, output="probability")
    assert any(words in str(caught.value) for words in ("no known function of its score", "no output 'prob", "Call the model"))
    if hasattr(model, "decision_function"):  # whose labels a function of them would return
        assert "explain(model.predict, " not in str(caught.value)


def test_margins_that_predict_proba_returns_are_no_probabilities():
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=5, objective="binary:logitraw").fit(X, CLASSES == "yes")
    assert np.abs(model.predict_proba(BACKGROUND)).max() > 1.0
    with pytest.raises(UnsupportedStructureError, match="XGBClassifier"):
        explain(model, ROWS, BACKGROUND, output="probability")


@pytest.mark.parametrize("name", CALLED)
def test_other_classifiers_are_called_for_their_probabilities(name):
    model, target = CALLED[name]
    model.fit(X, target)
    of_two = len(model.classes_) == 2
    own = second_class(model) if of_two else lambda rows: model.predict_proba(rows)
    found = check_answers(model, own, ROWS, BACKGROUND, 10 * RESPONSE, contract=False, output="probability")
    assert found.model_name.endswith(".predict_proba")
    assert found.unit == (f"probability of {model.classes_[1]}" if of_two else "probability")
    with pytest.raises(UnknownNameError, match="no setting 'budgte'"):
        explain(model, ROWS, BACKGROUND, output="probability", budgte=100)
    with pytest.raises(ExactshapError, match=r"explain\(model.predict_proba, X, background|reference rows"):
        explain(model, ROWS, output="probability")


def test_what_stops_a_call_for_probabilities_is_said():
    with pytest.raises(InputError, match="is not fitted yet"):
        explain(KNeighborsClassifier(), ROWS, BACKGROUND, output="probability")


def test_probabilities_need_reference_rows():
    with pytest.raises(UnsupportedStructureError, match="needs reference rows"):
        explain(ebm().fit(X, CLASSES), ROWS, output="probability")  # the training rows are no background of it
    with pytest.raises(InputError, match=r"needs reference rows.*Pass background="):
        explain(CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, CLASSES), ROWS)
    with pytest.raises(
        UnsupportedStructureError, match=r"Got BaggingClassifier of 2 classes. Call the model: explain\(model.predict_proba"
    ):
        explain(CalibratedClassifierCV(BaggingClassifier(LogisticRegression(), 2), cv=2).fit(X, CLASSES), ROWS)


@pytest.mark.parametrize("model", [Ridge(), RandomForestRegressor(3), PoissonRegressor()], ids=str)
def test_regressions_have_no_probability(model):
    with pytest.raises(UnknownNameError, match="no output 'probability'"):
        explain(model.fit(X, COUNTS), ROWS, BACKGROUND, output="probability")


OF_THEIR_TARGET = [
    RandomForestRegressor(5, random_state=0),
    VotingRegressor([("a", Ridge()), ("b", SVR())]),
    make_pipeline(StandardScaler(), SVR()),
    GaussianProcessRegressor(normalize_y=True),
]


@pytest.mark.parametrize("model", OF_THEIR_TARGET, ids=lambda model: type(model).__name__)
def test_the_response_of_a_model_of_its_target_is_what_it_predicts(model):
    model.fit(X, COUNTS)
    found, plain = (explain(model, ROWS, BACKGROUND, output=output) for output in ("response", "auto"))
    assert (found.unit, found.exact) == (plain.unit, True)
    np.testing.assert_array_equal(found.values, plain.values)

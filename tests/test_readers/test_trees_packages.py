"""Trees of NGBoost, quantile-forest, Perpetual, YDF and imodels, by brute force over the models' own calls."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge

from exactshap import explain
from exactshap.errors import (
    ExplanationWarning,
    InputError,
    ModelFormatError,
    UnknownNameError,
    UnsupportedModelError,
    UnsupportedStructureError,
)
from exactshap.testing import check_reader
from exactshap.trees import convert
from oracles import interventional_values
from reader_checks import check_answers, second_class
from tolerances import PROBABILITY, SINGLE_RESPONSE, roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 4)), columns=["age", "power", "bonus", "density"])
SCORE = np.asarray(X.age * X.power + X.bonus + 0.1 * rng.normal(size=150))
LABEL, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-1.0, 1.0])
WORDS, LETTERS = np.array(["no", "yes"])[LABEL], np.array(["u", "v", "w"])[THREE]
ROWS, BACKGROUND = X[:3], X[50:56]
HOLES = X.mask(rng.random(X.shape) < 0.2)
TOWNS = X.assign(town=rng.choice(list("uvwxyz"), size=150))
OF_TOWNS = SCORE + 3 * (TOWNS.town == "u")
SUM_OF_TREES = roundings(256)  # some ten trees in double precision, and 16 coalitions
FEW = {"n_estimators": 8, "verbose": False, "random_state": 0}


def check(model, own, atol=SUM_OF_TREES, covers=True, **settings):
    return check_answers(model, own, ROWS, BACKGROUND, atol, covers=covers, **settings)


def refused_with_a_way(words, model, function, rows=ROWS, background=BACKGROUND, **settings):
    """The function that the refusal names is explained."""
    with pytest.raises((UnsupportedStructureError, UnsupportedModelError), match=words):
        explain(model, rows, background, **settings)
    way = explain(function, rows, background)
    assert way.certificate().passed
    return way


def log_odds(model, first=False):
    """Log-odds of the second of two classes, or of each class against the first."""

    def own(rows):
        shares = model.predict_proba(np.asarray(rows) if first else rows)
        return np.log(shares[:, 1:] / shares[:, :1])

    return own


# -- NGBoost: each parameter of the distribution, as it is boosted ---------------------------------------------------------

POSITIVE = np.exp(SCORE)
PARAMETERS = {  # (target, names, what the exponential of the predictions is called)
    "Normal": (SCORE, ("loc", "log of scale"), None),
    "Laplace": (SCORE, ("loc", "log of scale"), None),
    "T": (SCORE, ("loc", "log of scale", "log of the degrees of freedom"), None),
    "LogNormal": (POSITIVE, ("mean of the logarithm", "log of its deviation"), None),
    "Gamma": (POSITIVE, ("log of alpha", "log of beta"), ("alpha", "beta")),
    "Weibull": (POSITIVE, ("log of shape", "log of scale"), ("shape", "scale")),
    "Exponential": (POSITIVE, "log of scale of Exponential", None),
    "Poisson": (POSITIVE.round(), "log of the rate of Poisson", None),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_of_ngboost(name):
    ngboost, (y, names, logs) = pytest.importorskip("ngboost"), PARAMETERS[name]
    model = ngboost.NGBRegressor(Dist=getattr(ngboost.distns, name), col_sample=0.75, minibatch_frac=0.8, **FEW).fit(X, y)
    explanation = check(model, lambda rows: model.pred_param(np.asarray(rows)))
    assert (explanation.output_names or explanation.unit) == names
    parameters = {key: np.ravel(value) for key, value in model.pred_dist(ROWS).params.items()}
    if logs:  # the names say what the numbers are
        np.testing.assert_allclose(np.exp(explanation.prediction), np.stack([parameters[key] for key in logs], axis=1))
    if name == "Normal":
        np.testing.assert_allclose(explanation.prediction, np.c_[parameters["loc"], np.log(parameters["scale"])])
        one = explain(model, ROWS, BACKGROUND, output="loc")
        assert one.unit == explanation.output("loc").unit == "loc of Normal"
        np.testing.assert_array_equal(one.values, explanation.values[:, :, 0])
        np.testing.assert_allclose(one.prediction, model.predict(ROWS))


def test_classifiers_survival_and_other_learners_of_ngboost():
    ngboost = pytest.importorskip("ngboost")
    two = ngboost.NGBClassifier(**FEW).fit(X, LABEL)
    assert check(two, log_odds(two, first=True), atol=PROBABILITY).unit == "log-odds of class 1"
    probability = explain(two, ROWS, BACKGROUND, output="probability")
    np.testing.assert_allclose(probability.prediction, two.predict_proba(ROWS)[:, 1])
    three = ngboost.NGBClassifier(Dist=ngboost.distns.k_categorical(3), **FEW).fit(X, THREE)
    explanation = check(three, lambda rows: three.pred_param(np.asarray(rows)))
    assert explanation.unit == "log-odds against the first class"
    np.testing.assert_allclose(explanation.prediction, log_odds(three)(ROWS))
    called = explain(three, ROWS, BACKGROUND, output="probability")
    np.testing.assert_allclose(called.prediction, three.predict_proba(ROWS))
    times = ngboost.NGBSurvival(**FEW).fit(np.asarray(X), np.exp(SCORE), LABEL)
    assert check(times, lambda rows: times.pred_param(np.asarray(rows))).output_names[0] == "mean of the logarithm"
    lines = ngboost.NGBRegressor(Base=Ridge(), **FEW).fit(X, SCORE)
    refused_with_a_way(r"Got Ridge.*explain\(lambda rows: model.predict\(rows\)", lines, lambda rows: lines.predict(rows))


# -- quantile forests: means are sums of trees where each tree counts as much ----------------------------------------------


@pytest.mark.parametrize("name", ["RandomForestQuantileRegressor", "ExtraTreesQuantileRegressor"])
def test_means_of_quantile_forests(name):
    kind = functools.partial(getattr(pytest.importorskip("quantile_forest"), name), 6, min_samples_leaf=4, random_state=0)
    model = kind().fit(X, SCORE)
    assert check(model, lambda rows: model.predict(rows, quantiles="mean"), output="mean").unit == "target"
    kept = kind(max_samples_leaf=None).fit(X, SCORE)
    mean_of_leaves = lambda rows: kept.predict(rows, quantiles="mean", aggregate_leaves_first=False)  # noqa: E731
    check(kept, mean_of_leaves, output="mean of leaves")
    words = r"Pass output='mean of leaves', .*quantiles='mean'\), X, background"
    ratio_of_sums = lambda rows: kept.predict(rows, quantiles="mean")  # noqa: E731
    pooled = refused_with_a_way(words, kept, ratio_of_sums, output="mean")
    assert np.abs(pooled.prediction - mean_of_leaves(ROWS)).max() > 1e-6
    two = kind(default_quantiles="mean").fit(X, np.c_[SCORE, X.age])
    assert check(two, two.predict).output_names == ("target 0", "target 1")
    quantiles = kind().fit(X, SCORE)
    words = r"predicts quantiles.*explain\(lambda rows: model.predict\(rows\), X"
    refused_with_a_way(words, quantiles, lambda rows: quantiles.predict(rows))
    with pytest.raises(UnknownNameError, match="'mean' or 'mean of leaves'"):
        explain(model, ROWS, BACKGROUND, output="median")
    rising = kind(monotonic_cst=[1, 0, 0, 0]).fit(X, SCORE)
    with pytest.raises(UnsupportedStructureError, match="clips the means"):
        explain(rising, ROWS, BACKGROUND, output="mean")


# -- Perpetual: trees that send missing values either way ------------------------------------------------------------------


def perpetual(y, rows=X, **settings):
    model = pytest.importorskip("perpetual").PerpetualBooster(budget=0.4, **{"objective": "SquaredLoss", **settings})
    model.fit(rows, y)
    return model


def test_scores_of_perpetual():
    model = perpetual(SCORE)
    assert check(model, model.predict).unit == "target"
    upper = perpetual(SCORE, objective="QuantileLoss", quantile=0.9)
    check_answers(upper, upper.predict, ROWS, BACKGROUND, SUM_OF_TREES, contract=False)  # Perpetual cannot unpickle this loss
    holed = perpetual(SCORE, HOLES)
    check_reader(holed, HOLES[:6], HOLES[50:70])
    check_answers(holed, holed.predict, HOLES[:3], HOLES[50:56], SUM_OF_TREES)
    lists = type(model).get_node_lists
    cut = lambda self, **settings: [nodes[: len(nodes) // 2 + 1] for nodes in lists(self, **settings)]  # noqa: E731
    model.__class__ = type("Cut", (type(model),), {"get_node_lists": cut})
    with pytest.raises(ModelFormatError, match="lacks nodes"):
        convert(model)


def test_log_odds_and_categories_of_perpetual():
    model = perpetual(LABEL, objective="LogLoss")
    assert check(model, log_odds(model), atol=PROBABILITY).unit == "log-odds of class 1"
    probability = explain(model, ROWS, BACKGROUND, output="probability")
    np.testing.assert_allclose(probability.prediction, model.predict_proba(ROWS)[:, 1], rtol=PROBABILITY)
    three = perpetual(THREE, objective="LogLoss")
    refused_with_a_way(r"LogLoss with 3 outputs.*model\.predict_proba", three, three.predict_proba)
    towns = TOWNS.astype({"town": "category"})
    model = perpetual(OF_TOWNS, towns)
    words = r"splits on categories.*explain\(lambda rows: model.predict\(rows\)"
    refused_with_a_way(words, model, lambda rows: model.predict(rows), towns[:3], towns[50:56])


# -- YDF: forests and boosted trees, which take a dictionary of columns ----------------------------------------------------


def ydf(learner, y, rows=X, **settings):
    library = pytest.importorskip("ydf")
    library.verbose(0)
    task = library.Task.REGRESSION if np.asarray(y).dtype.kind == "f" else library.Task.CLASSIFICATION
    settings = {"num_trees": 6} | settings if learner != "CartLearner" else settings
    return getattr(library, learner)(label="y", task=task, **settings).train(rows.assign(y=y))


@pytest.mark.parametrize("learner", ["GradientBoostedTreesLearner", "RandomForestLearner", "CartLearner"])
def test_targets_of_ydf(learner):
    model = ydf(learner, SCORE)
    explanation = check(model, model.predict, atol=SINGLE_RESPONSE)
    assert (explanation.unit, explanation.feature_names) == ("target", tuple(X.columns))
    with pytest.raises(InputError):
        explain(model, ROWS.iloc[:, 1:], BACKGROUND)
    if learner == "CartLearner":
        return
    check_reader(ydf(learner, SCORE, HOLES), HOLES[:6], HOLES[50:70])
    own = type(model)
    model.__class__ = type("Mine", (own,), {})
    np.testing.assert_array_equal(explain(model, ROWS, BACKGROUND).values, explanation.values)
    model.__class__ = type("Twice", (own,), {"predict": lambda self, rows: 2.0 * own.predict(self, rows)})
    with pytest.warns(ExplanationWarning, match="has its own predict"):
        values = explain(model, ROWS, BACKGROUND).values
    np.testing.assert_allclose(values, 2.0 * explanation.values, rtol=0, atol=10 * SINGLE_RESPONSE)


def test_rates_of_ydf():
    model = ydf("GradientBoostedTreesLearner", np.round(np.exp(SCORE - np.max(SCORE)) * 9.0), loss="POISSON")
    explanation = check(model, lambda rows: np.log(model.predict(rows)), atol=10 * SINGLE_RESPONSE)
    assert explanation.unit == "log of the target"
    response = explain(model, ROWS, BACKGROUND, output="response")
    np.testing.assert_allclose(response.prediction, model.predict(ROWS), rtol=SINGLE_RESPONSE)


@pytest.mark.parametrize("y", [LABEL, LETTERS], ids=["two", "three"])
def test_boosted_classes_of_ydf(y):
    model = ydf("GradientBoostedTreesLearner", y)
    response = explain(model, ROWS, BACKGROUND, output="response")
    np.testing.assert_allclose(response.prediction, model.predict(ROWS), rtol=SINGLE_RESPONSE)

    def scores(rows):
        share = np.asarray(model.predict(rows), float)
        return np.log(share) - np.log(share).mean(axis=1, keepdims=True) if share.ndim == 2 else np.log(share / (1.0 - share))

    if y is LABEL:
        # log-odds of a probability in single precision
        assert check(model, scores, atol=10 * SINGLE_RESPONSE).unit == "log-odds of class 1"
        return
    check_reader(model, ROWS, BACKGROUND)
    explanation = explain(model, ROWS, BACKGROUND)
    centred = explanation.prediction - explanation.prediction.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(centred, scores(ROWS), rtol=0, atol=10 * SINGLE_RESPONSE)
    assert explanation.output_names == ("u", "v", "w")


@pytest.mark.parametrize("settings", [{}, {"winner_take_all": False}], ids=["votes", "shares"])
@pytest.mark.parametrize("y", [LABEL, THREE], ids=["two", "three"])
def test_forests_of_classes_of_ydf(y, settings):
    model = ydf("RandomForestLearner", y, **settings)
    assert check(model, model.predict, atol=SINGLE_RESPONSE).unit.startswith("probability")


def test_other_splits_and_tasks_of_ydf_are_refused():
    oblique = ydf("RandomForestLearner", SCORE, split_axis="SPARSE_OBLIQUE")
    refused_with_a_way("NumericalSparseOblique", oblique, lambda rows: oblique.predict(rows))
    model = ydf("RandomForestLearner", OF_TOWNS, TOWNS)
    words = r"CategoricalIsIn.*explain\(lambda rows: model.predict\(rows\), X"
    refused_with_a_way(words, model, lambda rows: model.predict(rows), TOWNS[:3], TOWNS[50:56])
    isolation = pytest.importorskip("ydf").IsolationForestLearner(num_trees=4).train(X)
    with pytest.raises(Exception, match=r"explain\((lambda rows: )?model\.predict"):
        explain(isolation, ROWS, BACKGROUND)


# -- imodels: rules are trees that are zero off one path -------------------------------------------------------------------

CV = {"n_rules_list": [4], "n_trees_list": [3], "depth_list": [2], "cv": 2}
RULES, BOOSTED = {"n_estimators": 20, "random_state": 0}, GradientBoostingClassifier(n_estimators=5, random_state=0)
IMODELS = {  # (class, settings, target, unit)
    "FIGS": ("FIGSRegressor", {"max_rules": 8}, SCORE, "target"),
    "FIGS searched": ("FIGSRegressorCV", CV, SCORE, "target"),
    "RuleFit": ("RuleFitRegressor", RULES, SCORE, "target"),
    "RuleFit, plain lines": ("RuleFitRegressor", RULES | {"lin_standardise": False}, SCORE, "target"),
    "RuleFit without lines": ("RuleFitRegressor", RULES | {"include_linear": False}, SCORE, "target"),
    "shrunken tree": ("HSTreeRegressor", {}, SCORE, "target"),
    "shrunken forest": ("HSTreeRegressor", {"estimator_": RandomForestRegressor(5, random_state=0)}, SCORE, "target"),
    "shrunken boosting": ("HSTreeRegressor", {"estimator_": GradientBoostingRegressor(n_estimators=5)}, SCORE, "target"),
    "greedy tree": ("GreedyTreeRegressor", {"max_depth": 3}, SCORE, "target"),
    "FIGS of two": ("FIGSClassifier", {"max_rules": 8}, WORDS, "log-odds of class yes"),
    "FIGS of three": ("FIGSClassifier", {"max_rules": 8}, LETTERS, "log-odds against the first class"),
    "RuleFit of two": ("RuleFitClassifier", RULES, WORDS, "log-odds of class yes"),
    "shrunken boosting of two": ("HSTreeClassifier", {"estimator_": BOOSTED}, WORDS, "log-odds of class yes"),
    "rule list": ("GreedyRuleListClassifier", {}, WORDS, "probability of class yes"),
    "one rule": ("OneRClassifier", {}, WORDS, "probability of class yes"),
    "shrunken tree of two": ("HSTreeClassifier", {}, WORDS, "probability of class yes"),
    "greedy tree of two": ("GreedyTreeClassifier", {}, WORDS, "probability of class yes"),
}


@pytest.mark.parametrize("name", IMODELS)
def test_rules_and_trees_of_imodels(name):
    kind, settings, y, unit = IMODELS[name]
    model = getattr(pytest.importorskip("imodels"), kind)(**settings).fit(X, y)
    logs = unit.startswith("log-odds")
    own = log_odds(model) if logs else model.predict if unit == "target" else second_class(model)
    explanation = check(model, own, atol=PROBABILITY if logs else SUM_OF_TREES, covers=not kind.startswith("RuleFit"))
    assert explanation.unit == unit
    if unit.startswith("probability"):
        both = explain(model, ROWS, BACKGROUND, output="all")
        np.testing.assert_array_equal(both.values[:, :, 1], explanation.values)
    elif y is WORDS:
        shares = explain(model, ROWS, BACKGROUND, output="probability")
        np.testing.assert_allclose(shares.prediction, second_class(model)(ROWS), rtol=roundings(64))
    elif y is LETTERS:
        assert explanation.output_names == ("v", "w")


def test_thresholds_of_imodels_are_compared_as_the_model_does():
    imodels = pytest.importorskip("imodels")
    whole = X.round()  # cells that equal thresholds
    rules = imodels.GreedyRuleListClassifier().fit(whole, LABEL)
    rules.rules_[0]["cutoff"] = float(whole.iloc[0, rules.rules_[0]["index_col"]])
    values = explain(rules, whole[:3], whole[50:56]).values
    right = interventional_values(second_class(rules), whole[:3], whole[50:56])
    np.testing.assert_allclose(values, right, rtol=0, atol=SUM_OF_TREES)
    boosted = imodels.BoostedRulesClassifier().fit(X, LABEL)
    check(boosted, boosted.decision_function)


def test_what_imodels_does_not_give_is_refused():
    imodels = pytest.importorskip("imodels")
    with pytest.raises(UnsupportedModelError, match=r"explain\(model.predict, X, background\)"):
        explain(imodels.BoostedRulesRegressor().fit(X, SCORE), ROWS, BACKGROUND)
    holes = ROWS.assign(bonus=[0.0, np.nan, 0.0])
    with pytest.raises(InputError, match=r"NaN \(first at row 1, column 'bonus'"):
        explain(imodels.FIGSRegressor(max_rules=8).fit(X, SCORE), holes, BACKGROUND)
    with pytest.raises(UnsupportedStructureError, match="background=X_reference"):
        explain(imodels.RuleFitRegressor(**RULES).fit(X, SCORE), ROWS)
    towns = X.assign(town=np.where(X.age > 0, "a", "b"))
    coded = imodels.FIGSRegressor(max_rules=4).fit(towns, SCORE, categorical_features=["town"])
    with pytest.raises(UnsupportedStructureError, match=r"categorical_features=\['town'\].*explain\(model.predict"):
        convert(coded)


# -- boosters of distributions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosters_of_distributions(library):
    """Both LSS packages keep a booster whose margins are the parameters, less their starts, before the response functions."""
    lss = pytest.importorskip(f"{library}lss.model")
    gaussian = pytest.importorskip(f"{library}lss.distributions.Gaussian").Gaussian(response_fn="exp")
    settings = {"eta": 0.1, "max_depth": 3, "verbosity" if library == "xgboost" else "verbose": 0}
    module = pytest.importorskip(library)
    table = module.DMatrix if library == "xgboost" else module.Dataset
    model = (lss.XGBoostLSS if library == "xgboost" else lss.LightGBMLSS)(gaussian)
    model.train(settings, table(X, label=SCORE), num_boost_round=8)
    own = model.predict(table(ROWS) if library == "xgboost" else ROWS, pred_type="parameters")
    explanation = explain(model.booster, ROWS, BACKGROUND)
    assert (explanation.exact, explanation.certificate().passed) == (True, True)
    parameters = explanation.baseline + explanation.values.sum(axis=1) + model.start_values
    np.testing.assert_allclose(parameters, np.c_[own["loc"], np.log(own["scale"])], rtol=0, atol=SINGLE_RESPONSE)

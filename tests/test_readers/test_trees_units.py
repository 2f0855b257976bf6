"""What the outputs of tree models are called: the unit in which trees add up, classes, levels of quantiles."""

import functools
import json

import numpy as np
import pytest
from sklearn import ensemble

from exactshap import Explainer, explain
from exactshap.decompose import decompose_loss, decompose_r2
from exactshap.errors import UnsupportedStructureError
from exactshap.testing import check_reader
from exactshap.trees import convert, loads
from tolerances import assert_close

X = np.random.default_rng(0).normal(size=(300, 3))
Y = np.exp(X[:, 0] / 2.0 + X[:, 1] * X[:, 2] / 4.0)
LABELS, RANKS, QUERIES = np.where(Y > 1.0, "yes", "no"), np.round(np.clip(Y, 0, 3)), np.repeat(np.arange(30), 10)
TWICE = np.c_[Y, Y]


def xgb(objective, target=Y, **settings):
    library = pytest.importorskip("xgboost")
    given = library.DMatrix(X, None if objective == "survival:aft" else target)
    if objective == "survival:aft":
        given.set_float_info("label_lower_bound", target)
        given.set_float_info("label_upper_bound", target)
    if objective.startswith("rank"):
        given.set_group([10] * 30)
    return library.train({"objective": objective, "max_depth": 2, "nthread": 1, **settings}, given, 3)


def lgb(objective, target=Y, **settings):
    library = pytest.importorskip("lightgbm")
    groups = {"group": [10] * 30} if objective == "lambdarank" else {}
    given = library.Dataset(X, target, **groups)
    return library.train({"objective": objective, "verbose": -1, "num_threads": 1, **settings}, given, 3)


def cat(loss, target=Y, **settings):
    library = pytest.importorskip("catboost")
    quiet = {"iterations": 3, "depth": 2, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    if loss in ("YetiRank", "QueryRMSE"):
        return library.CatBoostRanker(loss_function=loss, **quiet).fit(library.Pool(X, target, group_id=QUERIES))
    return library.CatBoost({"loss_function": loss, **quiet, **settings}).fit(X, target)


def cats(*losses):
    """The sum of CatBoost's models, which keeps the loss that they share and no other parameters."""
    parts = [cat(loss, Y > 1.0 if loss == "Logloss" else Y) for loss in losses]
    return pytest.importorskip("catboost").sum_models(parts, weights=[1.0 / len(parts)] * len(parts))


def skl(name, target=Y, **settings):
    few = {"max_iter": 3} if name.startswith("Hist") else {"n_estimators": 3}
    return getattr(ensemble, name)(random_state=0, **few, **settings).fit(X, target)


def custom(predictions, data):
    return predictions - data.get_label(), np.ones_like(predictions)


LOG, HAZARD, TIME, SOFTMAX = "log of the target", "log hazard", "log of the survival time", "score before the softmax"
LEVELS, TARGETS, THREE = ("quantile 0.1", "quantile 0.9"), ("target 0", "target 1"), ("class 0", "class 1", "class 2")
ROOT, SOFTPLUS = "signed square root of the target", "inverse softplus of the intensity"
UNCERTAIN = "mean of the target and log of its standard deviation"
AFT = "SurvivalAft:dist=Normal;scale=1.0"
UNITS = {  # name: (model, unit, names of the outputs where there are several or classes)
    "xgboost": (lambda: xgb("reg:squarederror"), "target", None),
    "xgboost counts": (lambda: xgb("count:poisson"), LOG, None),
    "xgboost classes": (lambda: xgb("multi:softprob", RANKS, num_class=4), SOFTMAX, (*THREE, "class 3")),
    "xgboost log-odds": (lambda: xgb("binary:logistic", Y > 1.0), "log-odds", None),
    "xgboost cox": (lambda: xgb("survival:cox"), HAZARD, None),
    "xgboost aft": (lambda: xgb("survival:aft"), TIME, None),
    "xgboost gamma": (lambda: xgb("reg:gamma"), LOG, None),
    "xgboost ranks": (lambda: xgb("rank:ndcg", RANKS), "score", None),
    "xgboost quantile": (lambda: xgb("reg:quantileerror", quantile_alpha=0.4), "quantile 0.4 of the target", ("quantile 0.4",)),
    "xgboost quantiles": (lambda: xgb("reg:quantileerror", quantile_alpha=[0.1, 0.9]), "target", LEVELS),
    "lightgbm counts": (lambda: lgb("poisson"), LOG, None),
    "lightgbm classes": (lambda: lgb("multiclass", np.clip(RANKS, 0, 2), num_class=3), SOFTMAX, THREE),
    "lightgbm log-odds": (lambda: lgb("binary", Y > 1.0), "log-odds", None),
    "lightgbm intensity": (lambda: lgb("cross_entropy_lambda", Y / (1 + Y)), SOFTPLUS, None),
    "lightgbm quantile": (lambda: lgb("quantile", alpha=0.8), "quantile 0.8 of the target", ("quantile 0.8",)),
    "lightgbm ranks": (lambda: lgb("lambdarank", RANKS), "score", None),
    "lightgbm root": (lambda: lgb("regression", reg_sqrt=True), ROOT, None),
    "lightgbm mape": (lambda: lgb("mape"), "target", None),
    **{
        f"lightgbm root, {objective}": (functools.partial(lgb, objective, reg_sqrt=True), ROOT, None)
        for objective in ("regression_l1", "fair", "mape")
    },
    "lightgbm root, quantile": (lambda: lgb("quantile", reg_sqrt=True), ROOT, ("quantile 0.9",)),
    "lightgbm root, ignored": (lambda: lgb("huber", reg_sqrt=True), "target", None),
    "lightgbm root, of counts": (lambda: lgb("poisson", reg_sqrt=True), LOG, None),
    "lightgbm, own objective": (lambda: lgb(custom), "raw score", None),
    "catboost counts": (lambda: cat("Poisson"), LOG, None),
    "catboost classes": (lambda: cat("MultiClass", np.clip(RANKS, 0, 2)), SOFTMAX, ("0.0", "1.0", "2.0")),
    "catboost cox": (lambda: cat("Cox", boost_from_average=False), HAZARD, None),
    "catboost aft": (lambda: cat(AFT, TWICE), TIME, None),
    "catboost ranks": (lambda: cat("YetiRank", RANKS), "score", None),
    "catboost query": (lambda: cat("QueryRMSE", RANKS), "score", None),
    "catboost quantile": (lambda: cat("Quantile:alpha=0.3"), "quantile 0.3 of the target", ("quantile 0.3",)),
    "catboost quantiles": (lambda: cat("MultiQuantile:alpha=0.1,0.9"), "target", LEVELS),
    "catboost uncertainty": (lambda: cat("RMSEWithUncertainty"), UNCERTAIN, ("mean", "log standard deviation")),
    "catboost targets": (lambda: cat("MultiRMSE", TWICE), "target", TARGETS),
    "catboost sum": (lambda: cats("RMSE", "RMSE"), "target", None),
    "catboost sum of counts": (lambda: cats("Poisson", "Poisson"), LOG, None),
    "catboost sum of log-odds": (lambda: cats("Logloss", "Logloss"), "log-odds of class True", ("True",)),
    "catboost sum of quantiles": (lambda: cats(*["Quantile:alpha=0.3"] * 2), "quantile 0.3 of the target", ("quantile 0.3",)),
    "catboost sum of losses": (lambda: cats("RMSE", "Poisson"), "raw score", None),
    "boosting quantile": (
        lambda: skl("GradientBoostingRegressor", loss="quantile", alpha=0.7),
        "quantile 0.7 of the target",
        ("quantile 0.7",),
    ),
    "histogram quantile": (
        lambda: skl("HistGradientBoostingRegressor", loss="quantile", quantile=0.2),
        "quantile 0.2 of the target",
        ("quantile 0.2",),
    ),
    "histogram counts": (lambda: skl("HistGradientBoostingRegressor", loss="poisson"), LOG, None),
    "boosting classes": (lambda: skl("GradientBoostingClassifier", LABELS), "log-odds of class yes", ("yes",)),
    "boosting numbers": (lambda: skl("GradientBoostingClassifier", Y > 1.0), "log-odds of class True", ("True",)),
    "forest of two classes": (lambda: skl("RandomForestClassifier", LABELS), "probability of class yes", ("no", "yes")),
    "forest of targets": (lambda: skl("RandomForestRegressor", TWICE), "target", TARGETS),
    "isolation forest": (lambda: ensemble.IsolationForest(n_estimators=3).fit(X), "average path length", ("path length",)),
}


@pytest.mark.parametrize("name", UNITS)
def test_units_and_names(name):
    make, unit, names = UNITS[name]
    model = make()
    assert Explainer(model).reader.traits.unit == unit
    assert convert(model).output_names == (names or ("output",))


@pytest.mark.parametrize(
    ("name", "output", "unit"),
    [
        ("catboost uncertainty", "mean", "mean of the target"),
        ("catboost uncertainty", 1, "log standard deviation of the target"),
        ("xgboost quantiles", "quantile 0.9", "quantile 0.9 of the target"),
        ("forest of two classes", "no", "probability of class no"),
    ],
)
def test_an_output_that_was_picked_says_which_it_is(name, output, unit):
    model = UNITS[name][0]()
    assert Explainer(model, output=output).reader.traits.unit == unit
    every = explain(model, X[:2])
    if every.output_names:  # picked afterwards
        assert every.output(output).unit == unit


def test_the_response_of_a_root_is_not_the_root():
    model = pytest.importorskip("lightgbm").LGBMRegressor(objective="mape", reg_sqrt=True, n_estimators=3, verbose=-1).fit(X, Y)
    with pytest.raises(UnsupportedStructureError, match="unit of its score: signed square root of the target"):
        Explainer(model, X[:5], output="response")
    with pytest.raises(UnsupportedStructureError, match="add up to a signed square root"):
        decompose_r2(model, X, Y)


EARLY = {"pred_early_stop": True, "pred_early_stop_margin": 0.2, "pred_early_stop_freq": 2, "n_estimators": 15, "verbose": -1}


@pytest.mark.parametrize("target", [Y > 1.0, np.clip(RANKS, 0, 2)], ids=["two", "three"])
def test_predictions_that_leave_out_trees_are_no_sums_of_trees(target):
    model = pytest.importorskip("lightgbm").LGBMClassifier(n_jobs=1, **EARLY).fit(X, target)
    with pytest.raises(UnsupportedStructureError, match=r"pred_early_stop=True.*set_params.*explain\(model.predict_proba"):
        Explainer(model, X[:5])
    called = explain(model.predict_proba, X[:2], X[5:9])
    np.testing.assert_array_equal(called.prediction, model.predict_proba(X[:2]))
    check_reader(model.set_params(pred_early_stop=False), X[:2], X[5:9])


def test_trees_of_regressions_are_never_left_out():
    check_reader(pytest.importorskip("lightgbm").LGBMRegressor(n_jobs=1, **EARLY).fit(X, Y), X[:2], X[5:9])


def test_a_raw_score_may_still_have_an_r2():
    assert np.isfinite(decompose_r2(lgb(custom), X, Y).values).all()


@pytest.mark.parametrize("name", ["xgboost cox", "xgboost aft", "catboost cox"])
def test_hazards_and_survival_times_are_no_means_of_the_target(name):
    model = UNITS[name][0]()
    with pytest.raises(UnsupportedStructureError, match=r"add up to a log (hazard|of the survival time)"):
        decompose_r2(model, X, Y)
    with pytest.raises(UnsupportedStructureError, match="no sum of boosted trees with one margin and a link"):
        decompose_loss(model, X, Y)


@pytest.mark.parametrize("name", [name for name in UNITS if name.startswith("lightgbm root")])
def test_scores_are_called_targets_only_where_they_are_what_lightgbm_predicts(name):
    model = UNITS[name][0]()
    scores, predicted = model.predict(X, raw_score=True), model.predict(X)
    response = {ROOT: np.sign(scores) * scores**2, LOG: np.exp(scores), "target": scores}[UNITS[name][1]]
    assert_close(response, predicted, np.abs(predicted).max(), 1, 1)


@pytest.mark.parametrize("name", ["xgboost quantiles", "xgboost cox", "lightgbm quantile", "lightgbm root, quantile"])
def test_files_have_the_same_names(name):
    make, unit, names = UNITS[name]
    model = make()
    loaded = loads(bytes(model.save_raw("json")) if name.startswith("xgboost") else model.model_to_string().encode())
    assert (Explainer(loaded).reader.traits.unit, loaded.output_names) == (unit, names or ("output",))


@pytest.mark.parametrize("level", ["[1E-1]", "[0.1,\u0661]", "", "[[", "0.1,x"])
def test_levels_that_do_not_fit_are_left_out(level):
    document = json.loads(bytes(UNITS["xgboost quantiles"][0]().save_raw("json")))
    document["learner"]["objective"]["quantile_loss_param"]["quantile_alpha"] = level
    assert loads(json.dumps(document).encode()).output_names == TARGETS


def test_an_isolation_forest_of_one_column():
    model = ensemble.IsolationForest(n_estimators=5, random_state=0).fit(X[:, :1])
    check_reader(model, X[:4, :1], X[10:20, :1])
    explanation = Explainer(model, X[:20, :1])(X[:4, :1])
    length = np.mean([tree.decision_path(X[:4, :1].astype(np.float32)).sum(axis=1) - 1 for tree in model.estimators_], axis=0)
    assert (explanation.prediction >= np.ravel(length)).all()
    assert_close(explanation.values[:, 0], explanation.prediction - explanation.baseline, 1.0, 100, 1)


def counts(**settings):
    few = {"objective": "count:poisson", "n_estimators": 5, "max_depth": 2, "n_jobs": 1}
    return pytest.importorskip("xgboost").XGBRegressor(**few | settings).fit(X, RANKS)


def by_function():
    library = pytest.importorskip("xgboost")
    return library.train({"max_depth": 2, "nthread": 1}, library.DMatrix(X, Y), 5, obj=custom)


WITHOUT_OFFSETS = [
    counts,
    lambda: counts(base_score=0.5),
    lambda: counts(subsample=0.5),
    lambda: counts(num_parallel_tree=3, colsample_bytree=0.5),
    lambda: counts(objective=lambda y, margin: (margin - y, np.ones(len(y)))),
    lambda: counts().fit(X, RANKS, sample_weight=np.random.default_rng(1).uniform(0.5, 3.0, len(X))),
    lambda: xgb("reg:squarederror", 1e6 * Y),
    lambda: xgb("binary:logistic", Y > 1.5),
    lambda: xgb("binary:logistic", Y > 1.5, scale_pos_weight=3.0),
    lambda: xgb("reg:absoluteerror"),
    lambda: xgb("multi:softprob", RANKS, num_class=4),
    by_function,
]


@pytest.mark.filterwarnings("error::exactshap.errors.ExplanationWarning")
@pytest.mark.parametrize("make", WITHOUT_OFFSETS)
def test_models_without_offsets_are_not_warned_of(make):
    Explainer(make())(X[:2])

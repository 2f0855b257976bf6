"""What the outputs of tree models are called: the unit in which trees add up, classes, levels of quantiles."""

import json

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)

from exactshap import Explainer
from exactshap.decompose import decompose_loss, decompose_r2
from exactshap.errors import ExplanationWarning, UnsupportedStructureError
from exactshap.testing import check_reader
from exactshap.trees import convert, loads
from tolerances import FLOAT32_MARGIN, assert_close

X = np.random.default_rng(0).normal(size=(300, 3))
Y = np.exp(X[:, 0] / 2.0 + X[:, 1] * X[:, 2] / 4.0)
LABELS, RANKS, QUERIES = np.where(Y > 1.0, "yes", "no"), np.round(np.clip(Y, 0, 3)), np.repeat(np.arange(30), 10)
FEW = {"n_estimators": 3, "random_state": 0}


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


def custom(predictions, data):
    return predictions - data.get_label(), np.ones_like(predictions)


UNITS = {  # name: (model, unit, names of the outputs)
    "xgboost cox": (lambda: xgb("survival:cox"), "log hazard", ("output",)),
    "xgboost aft": (lambda: xgb("survival:aft"), "log of the survival time", ("output",)),
    "xgboost gamma": (lambda: xgb("reg:gamma"), "log of the target", ("output",)),
    "xgboost ranks": (lambda: xgb("rank:ndcg", RANKS), "score", ("output",)),
    "xgboost quantile": (
        lambda: xgb("reg:quantileerror", quantile_alpha=0.4),
        "quantile 0.4 of the target",
        ("quantile 0.4",),
    ),
    "xgboost quantiles": (
        lambda: xgb("reg:quantileerror", quantile_alpha=[0.1, 0.9]),
        "target",
        ("quantile 0.1", "quantile 0.9"),
    ),
    "lightgbm intensity": (
        lambda: lgb("cross_entropy_lambda", Y / (1 + Y)),
        "inverse softplus of the intensity",
        ("output",),
    ),
    "lightgbm quantile": (lambda: lgb("quantile", alpha=0.8), "quantile 0.8 of the target", ("quantile 0.8",)),
    "lightgbm ranks": (lambda: lgb("lambdarank", RANKS), "score", ("output",)),
    "lightgbm root": (
        lambda: lgb("regression", reg_sqrt=True),
        "signed square root of the target",
        ("output",),
    ),
    "lightgbm mape": (lambda: lgb("mape"), "target", ("output",)),
    "catboost cox": (lambda: cat("Cox", boost_from_average=False), "log hazard", ("output",)),
    "catboost aft": (lambda: cat("SurvivalAft:dist=Normal;scale=1.0", np.c_[Y, Y]), "log of the survival time", ("output",)),
    "catboost ranks": (lambda: cat("YetiRank", RANKS), "score", ("output",)),
    "catboost query": (lambda: cat("QueryRMSE", RANKS), "score", ("output",)),
    "catboost quantile": (lambda: cat("Quantile:alpha=0.3"), "quantile 0.3 of the target", ("quantile 0.3",)),
    "catboost quantiles": (
        lambda: cat("MultiQuantile:alpha=0.1,0.9"),
        "target",
        ("quantile 0.1", "quantile 0.9"),
    ),
    "catboost uncertainty": (
        lambda: cat("RMSEWithUncertainty"),
        "mean of the target and log of its standard deviation",
        ("mean", "log standard deviation"),
    ),
    "catboost targets": (lambda: cat("MultiRMSE", np.c_[Y, Y]), "target", ("target 0", "target 1")),
    "boosting quantile": (
        lambda: GradientBoostingRegressor(loss="quantile", alpha=0.7, **FEW).fit(X, Y),
        "quantile 0.7 of the target",
        ("quantile 0.7",),
    ),
    "histogram quantile": (
        lambda: HistGradientBoostingRegressor(loss="quantile", quantile=0.2, max_iter=3).fit(X, Y),
        "quantile 0.2 of the target",
        ("quantile 0.2",),
    ),
    "boosting classes": (lambda: GradientBoostingClassifier(**FEW).fit(X, LABELS), "log-odds of class yes", ("yes",)),
    "boosting numbers": (lambda: GradientBoostingClassifier(**FEW).fit(X, Y > 1.0), "log-odds of class True", ("True",)),
    "forest of two classes": (
        lambda: RandomForestClassifier(**FEW).fit(X, LABELS),
        "probability of class yes",
        ("no", "yes"),
    ),
    "forest of targets": (lambda: RandomForestRegressor(**FEW).fit(X, np.c_[Y, Y]), "target", ("target 0", "target 1")),
}


@pytest.mark.parametrize("name", UNITS)
def test_units_and_names(name):
    make, unit, names = UNITS[name]
    model = make()
    reader = Explainer(model).reader
    assert reader.traits.unit == unit
    assert convert(model).output_names == names


def test_an_output_that_was_picked_says_which_it_is():
    uncertain, quantiles = UNITS["catboost uncertainty"][0](), UNITS["xgboost quantiles"][0]()
    assert Explainer(uncertain, output="mean").reader.traits.unit == "mean of the target"
    assert Explainer(uncertain, output=1).reader.traits.unit == "log standard deviation of the target"
    assert Explainer(quantiles, output="quantile 0.9").reader.traits.unit == "quantile 0.9 of the target"
    forest = UNITS["forest of two classes"][0]()
    assert Explainer(forest, output="no").reader.traits.unit == "probability of class no"


def test_a_custom_objective_is_a_raw_score_which_may_still_have_an_r2():
    library = pytest.importorskip("lightgbm")
    model = library.train({"objective": custom, "verbose": -1, "num_threads": 1}, library.Dataset(X, Y), 3)
    assert Explainer(model).reader.traits.unit == "raw score"
    assert np.isfinite(decompose_r2(model, X, Y).values).all()


@pytest.mark.parametrize("name", ["xgboost cox", "xgboost aft", "catboost cox"])
def test_hazards_and_survival_times_are_no_means_of_the_target(name):
    model = UNITS[name][0]()
    with pytest.raises(UnsupportedStructureError, match=r"add up to a log (hazard|of the survival time)"):
        decompose_r2(model, X, Y)
    with pytest.raises(UnsupportedStructureError, match="no sum of boosted trees with one margin and a link"):
        decompose_loss(model, X, Y)


def test_files_have_the_same_names():
    for name in ("xgboost quantiles", "xgboost cox"):
        model = UNITS[name][0]()
        loaded = loads(bytes(model.save_raw("json")))
        assert (Explainer(loaded).reader.traits.unit, loaded.output_names) == UNITS[name][1:]
    model = UNITS["lightgbm quantile"][0]()
    assert loads(model.model_to_string().encode()).output_names == ("quantile 0.8",)


@pytest.mark.parametrize("level", ["[1E-1]", "[0.1,\u0661]", "", "[[", "0.1,x"])
def test_levels_that_do_not_fit_are_left_out(level):
    document = json.loads(bytes(UNITS["xgboost quantiles"][0]().save_raw("json")))
    document["learner"]["objective"]["quantile_loss_param"]["quantile_alpha"] = level
    assert loads(json.dumps(document).encode()).output_names == ("target 0", "target 1")


def test_an_isolation_forest_of_one_column():
    model = IsolationForest(n_estimators=5, random_state=0).fit(X[:, :1])
    check_reader(model, X[:4, :1], X[10:20, :1])
    explanation = Explainer(model, X[:20, :1])(X[:4, :1])
    length = np.mean([tree.decision_path(X[:4, :1].astype(np.float32)).sum(axis=1) - 1 for tree in model.estimators_], axis=0)
    assert (explanation.prediction >= np.ravel(length)).all()
    assert_close(explanation.values[:, 0], explanation.prediction - explanation.baseline, 1.0, 100, 1)


def test_the_text_of_a_model_is_one_line():
    model = convert(UNITS["forest of targets"][0]())
    assert repr(model) == (
        f"<TreeModel 'RandomForestRegressor' of scikit-learn: <FlatTrees: 3 trees, {model.trees.n_nodes} nodes, 3 columns,"
        " 2 outputs>, 'target 0', 'target 1' (target)>"
    )


def counts(**fit):
    library = pytest.importorskip("xgboost")
    settings = {"objective": "count:poisson", "n_estimators": 5, "max_depth": 2, "n_jobs": 1}
    return library.XGBRegressor(**settings | fit.pop("settings", {})).fit(X, RANKS, **fit)


def test_offsets_that_a_model_was_fitted_with_are_told():
    library = pytest.importorskip("xgboost")
    if tuple(map(int, library.__version__.split(".")[:2])) < (3, 1):
        pytest.skip("base_score is estimated from 3.1 on")
    exposure = np.random.default_rng(1).uniform(0.5, 3.0, len(X))
    model = counts(base_margin=np.log(exposure))
    with pytest.warns(ExplanationWarning, match="do not start from its base_score: it was fitted with base_margin="):
        explanation = Explainer(model)(X[:9])
    alone = model.predict(X[:9], base_margin=np.zeros(9), output_margin=True)
    baseline = explanation.baseline - (model.predict(X[:9], output_margin=True) - alone) + np.log(exposure[:9])
    offset = model.predict(X[:9], base_margin=np.log(exposure[:9]), output_margin=True)
    assert np.abs(baseline + explanation.values.sum(axis=1) - offset).max() < FLOAT32_MARGIN * 10


@pytest.mark.filterwarnings("error::exactshap.errors.ExplanationWarning")
def test_models_without_offsets_are_not_warned_of():
    pytest.importorskip("xgboost")
    weights = np.random.default_rng(1).uniform(0.5, 3.0, len(X))
    for model in (
        counts(),
        counts(sample_weight=weights),
        counts(settings={"base_score": 0.5}),
        counts(settings={"subsample": 0.5}),
        counts(settings={"num_parallel_tree": 3, "colsample_bytree": 0.5}),
        xgb("reg:squarederror", 1e6 * Y),
        xgb("binary:logistic", (Y > 1.5).astype(float)),
        xgb("binary:logistic", (Y > 1.5).astype(float), scale_pos_weight=3.0),
        xgb("reg:absoluteerror"),
        xgb("multi:softprob", RANKS, num_class=4),
        counts(settings={"objective": lambda y, margin: (margin - y, np.ones(len(y)))}),
        by_an_objective_of_its_own(),
    ):
        Explainer(model)(X[:2])


def by_an_objective_of_its_own():
    library = pytest.importorskip("xgboost")
    settings = {"max_depth": 2, "nthread": 1}
    data = library.DMatrix(X, Y)
    return library.train(settings, data, 5, obj=lambda margin, rows: (margin - rows.get_label(), np.ones(len(margin))))

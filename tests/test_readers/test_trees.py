"""Trees of every library in one table: margins value by value, games by brute force, ties, extremes, stages, refusals."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, tree
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import BaggingRegressor, RandomForestClassifier, StackingRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactshap import Explainer, decompose_r2, explain, trees
from exactshap.errors import BudgetError, ExplanationWarning, InputError, UnknownNameError, UnsupportedStructureError
from exactshap.frames import as_table
from exactshap.testing import check_reader
from exactshap.trees import convert
from tolerances import FLOAT32_MARGIN, assert_close, exact, roundings
from tree_models import check_path_dependent, data

X, HOLES, Y = data()
BINARY, TERNARY, BOTH = (Y > 0.5).astype(int), np.digitize(Y, [0.0, 1.0]), np.c_[Y, Y**2]
WORDS = np.array(["low", "mid", "top"])[TERNARY]
SPARSE = np.where(np.random.default_rng(1).random(X.shape) < 0.3, 0.0, HOLES)
CODED = np.c_[HOLES, np.tile([3.0, 5.0, 9.0, np.nan], 40)]
CODES = np.c_[HOLES, np.tile([0.0, 1.0, 5.0, np.nan, 40.0], 32)]
OF_CODES = Y + 2.0 * np.isin(CODES[:, 5], [1.0, 40.0])
DEEP, FEW = {"max_depth": 4, "random_state": 0}, {"n_estimators": 5, "random_state": 0}
DEFAULTS = {
    "xgboost": {"n_estimators": 4, "max_depth": 3, "n_jobs": 1},
    "lightgbm": {"n_estimators": 4, "num_leaves": 6, "min_child_samples": 5, "verbose": -1, "n_jobs": 1},
    "catboost": {"iterations": 4, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0},
    "ensemble": {},
    "tree": {},
}


def of(library, rows, kind, y=Y, fit=None, **settings):
    """Return what makes a fitted model of a library, and its rows."""

    def make():
        module = {"ensemble": ensemble, "tree": tree}.get(library) or pytest.importorskip(library)
        return getattr(module, kind)(**{**DEFAULTS[library], **settings}).fit(rows, y, **(fit or {}))

    return make, rows


DECISION, FOREST, BOOSTING = (
    functools.partial(of, *first) for first in (("tree", HOLES), ("ensemble", HOLES), ("ensemble", X))
)
HIST = functools.partial(FOREST, max_iter=4, max_leaf_nodes=7, min_samples_leaf=5)
XGB, CAT = functools.partial(of, "xgboost", HOLES), functools.partial(of, "catboost", HOLES)
LGB = functools.partial(of, "lightgbm", SPARSE)
LINEAR = functools.partial(of, "lightgbm", HOLES, min_child_samples=8, linear_tree=True)
HALVES = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
CATEGORICAL = {"min_data_per_group": 1, "cat_smooth": 1, "max_cat_to_onehot": 1, "fit": {"categorical_feature": [5]}}

MODELS = {
    "tree": DECISION("DecisionTreeRegressor", **DEEP),
    "tree of one leaf": DECISION("DecisionTreeRegressor", max_depth=1, min_samples_leaf=100),
    "tree, best first": DECISION("DecisionTreeRegressor", max_leaf_nodes=6, random_state=0),
    "tree, weighted": DECISION("DecisionTreeRegressor", fit={"sample_weight": np.arange(len(Y)) % 4}, **DEEP),
    "tree of two classes": DECISION("DecisionTreeClassifier", BINARY, **DEEP),
    "forest": FOREST("RandomForestRegressor", n_estimators=4, **DEEP),
    "forest of two targets": FOREST("RandomForestRegressor", BOTH, n_estimators=3, **DEEP),
    "extra trees": FOREST("ExtraTreesRegressor", n_estimators=4, **DEEP),
    "forest of two classes": FOREST("RandomForestClassifier", BINARY, n_estimators=4, **DEEP),
    "forest of two labels": FOREST("RandomForestClassifier", np.c_[BINARY, TERNARY], n_estimators=3, **DEEP),
    "extra trees of classes": FOREST("ExtraTreesClassifier", WORDS, n_estimators=4, **DEEP),
    "boosting": BOOSTING("GradientBoostingRegressor", **FEW),
    "boosting from zero": BOOSTING("GradientBoostingRegressor", init="zero", subsample=0.5, **FEW),
    "boosting from a median": BOOSTING("GradientBoostingRegressor", init=DummyRegressor(strategy="median"), **FEW),
    "boosting of two classes": BOOSTING("GradientBoostingClassifier", BINARY, **FEW),
    "boosting of three classes": BOOSTING("GradientBoostingClassifier", TERNARY, **FEW),
    "isolation forest": BOOSTING("IsolationForest", **FEW),
    "isolation forest of few columns": BOOSTING("IsolationForest", max_features=0.6, max_samples=20, **FEW),
    "hist": HIST("HistGradientBoostingRegressor"),
    "hist, no missing in training": (BOOSTING("HistGradientBoostingRegressor", max_iter=4)[0], HOLES),
    "hist, categories": of(
        "ensemble", CODED, "HistGradientBoostingRegressor", Y + 2.0 * (CODED[:, 5] == 5.0), max_iter=4, categorical_features=[5]
    ),
    "hist, poisson": HIST("HistGradientBoostingRegressor", np.abs(Y), loss="poisson"),
    "hist of two classes": HIST("HistGradientBoostingClassifier", Y > 0),
    "hist of three classes": HIST("HistGradientBoostingClassifier", TERNARY),
    "xgboost": XGB("XGBRegressor"),
    "xgboost, no trees": XGB("XGBRegressor", n_estimators=0),
    "xgboost, one leaf": XGB("XGBRegressor", gamma=1e9),
    "xgboost, base score": XGB("XGBRegressor", base_score=0.25),
    "xgboost, margins in training": XGB("XGBRegressor", fit={"base_margin": np.sin(Y)}),
    "xgboost, dart": XGB("XGBRegressor", booster="dart", rate_drop=0.5, seed=0),
    "xgboost, parallel trees": XGB("XGBRegressor", num_parallel_tree=2, subsample=0.5),
    "xgboost forest": XGB("XGBRFRegressor"),
    "xgboost of two classes": XGB("XGBClassifier", Y > 0),
    "xgboost of three classes": XGB("XGBClassifier", TERNARY),
    "xgboost of two targets": XGB("XGBRegressor", BOTH),
    "xgboost, vector leaf": XGB("XGBRegressor", BOTH, multi_strategy="multi_output_tree"),
    "xgboost, missing": of("xgboost", np.nan_to_num(HOLES, nan=-999.0), "XGBRegressor", missing=-999.0),
    "xgboost, codes": of(
        "xgboost", CODES, "XGBRegressor", OF_CODES, enable_categorical=True, max_cat_to_onehot=1, feature_types=[*"qqqqq", "c"]
    ),
    "lightgbm": LGB("LGBMRegressor"),
    "lightgbm, zero is missing": LGB("LGBMRegressor", zero_as_missing=True),
    "lightgbm, missing unused": LGB("LGBMRegressor", use_missing=False),
    "lightgbm, no missing in training": (of("lightgbm", X, "LGBMRegressor")[0], SPARSE),
    "lightgbm forest": LGB("LGBMRegressor", **HALVES),
    "lightgbm, dart": LGB("LGBMRegressor", boosting_type="dart", drop_rate=0.5),
    "lightgbm, one leaf": LGB("LGBMRegressor", min_child_samples=1000),
    "lightgbm, poisson": LGB("LGBMRegressor", np.abs(Y), objective="poisson"),
    "lightgbm, square root": LGB("LGBMRegressor", reg_sqrt=True),
    "lightgbm of two classes": LGB("LGBMClassifier", Y > 0),
    "lightgbm of three classes": LGB("LGBMClassifier", TERNARY),
    "lightgbm, one against all": LGB("LGBMClassifier", TERNARY, objective="multiclassova"),
    "lightgbm, codes": of("lightgbm", CODES, "LGBMRegressor", OF_CODES, **CATEGORICAL),
    "linear": LINEAR("LGBMRegressor"),
    "linear, complete": of("lightgbm", X, "LGBMRegressor", linear_tree=True),
    "linear forest": LINEAR("LGBMRegressor", **HALVES),
    "linear of three classes": LINEAR("LGBMClassifier", TERNARY),
    "linear, codes": of("lightgbm", CODES, "LGBMRegressor", OF_CODES, linear_tree=True, **CATEGORICAL),
    "linear, one leaf": LINEAR("LGBMRegressor", min_child_samples=1000),
    "catboost": CAT("CatBoostRegressor"),
    "catboost, repeated splits": CAT("CatBoostRegressor", depth=6, border_count=6),
    "catboost, few borders": CAT("CatBoostRegressor", border_count=2),
    "catboost, missing are largest": CAT("CatBoostRegressor", nan_mode="Max"),
    "catboost, depth-wise": CAT("CatBoostRegressor", grow_policy="Depthwise"),
    "catboost, leaf-wise": CAT("CatBoostRegressor", grow_policy="Lossguide", max_leaves=6),
    "catboost, one leaf": CAT("CatBoostRegressor", grow_policy="Depthwise", min_data_in_leaf=200),
    "catboost, poisson": CAT("CatBoostRegressor", np.abs(Y), loss_function="Poisson"),
    "catboost of two targets": CAT("CatBoostRegressor", BOTH, loss_function="MultiRMSE"),
    "catboost of two classes": CAT("CatBoostClassifier", np.where(Y > 0, "yes", "no")),
    "catboost of three classes": CAT("CatBoostClassifier", TERNARY),
    "catboost of classes, depth-wise": CAT("CatBoostClassifier", TERNARY, grow_policy="Depthwise"),
}
NAMES = [name for name in MODELS if not name.startswith("isolation")]
RELEASE = functools.partial(lambda: tuple(map(int, pytest.importorskip("xgboost").__version__.split(".")[:2])))


@functools.cache
def fitted(name):
    return MODELS[name][0]()


def own(model, rows):
    """The margin by the documented call of its library."""
    library = type(model).__module__.partition(".")[0]
    if library == "xgboost":
        return model.predict(rows, output_margin=True)
    if library == "lightgbm":
        return model.predict(rows, raw_score=getattr(model, "boosting_type", "") != "rf")  # a forest predicts the mean
    if library == "catboost":
        return model.predict(rows, prediction_type="RawFormulaVal")
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    if not hasattr(model, "predict_proba"):
        return np.log(model.predict(rows)) if getattr(model, "loss", "") in ("poisson", "gamma") else model.predict(rows)
    shares = model.predict_proba(rows)
    return np.concatenate(shares, axis=1) if isinstance(shares, list) else shares


def check_margin(model, rows, margin, ensemble=None):
    got = (ensemble or convert(model)).predict(rows)
    assert got.shape == margin.shape
    single = type(model).__module__.startswith("xgboost")
    limit = FLOAT32_MARGIN * max(1.0, np.abs(margin).max()) if single else exact(np.abs(margin).max() + 1.0, 100)
    assert np.abs(got - margin).max() <= limit


@pytest.mark.parametrize("name", NAMES)
def test_margins_and_predictions_are_the_documented_call(name):
    model, rows = fitted(name), MODELS[name][1]
    check_margin(model, rows, own(model, rows))
    for booster in ("get_booster", "booster_"):
        if hasattr(model, booster) and name != "xgboost, missing":  # what is missing is known to the estimator alone
            inner = getattr(model, booster)
            check_margin(model, rows, own(model, rows), convert(inner() if callable(inner) else inner))
    needs_rows = name.startswith(("linear", "xgboost, vector"))  # XGBoost 2 wrote no covers of vectors
    reader = Explainer(model, rows[:3] if needs_rows else None, output="all").reader
    layouts = [rows, rows[:1], rows.astype(np.float32), np.asfortranarray(rows)[::-2]]
    for some in layouts if "catboost" in name else [*layouts, np.where(np.isnan(rows), -999.0, rows)]:
        np.testing.assert_array_equal(reader.predict(as_table(some)), own(model, some))


@pytest.mark.parametrize("name", MODELS)
def test_games_and_values(name):
    model, rows = fitted(name), MODELS[name][1]
    check_reader(model, rows[:5], rows[20:30])
    if name.startswith("linear"):
        groups = {"pair": [0, 3]}
        check_reader(model, X[:3] if rows is HOLES else rows[:3], rows[20:27], groups=groups, background_weights=np.arange(7.0))
    elif name != "xgboost, vector leaf" or convert(model).trees.cover.any():
        check_reader(model, rows[:5], n_masks=2, indices=("shapley",))
    else:
        assert RELEASE() < (3, 2)  # XGBoost 2 wrote no covers of them
        with pytest.raises(UnsupportedStructureError, match="keeps no training weights in its nodes"):
            explain(model, rows[:5])


BRUTE = ["tree", "tree, weighted", "extra trees", "boosting", "isolation forest", "hist", "hist of two classes", "xgboost"]
BRUTE += ["xgboost, dart", "xgboost of two classes", "xgboost, parallel trees", "lightgbm", "lightgbm, zero is missing"]
BRUTE += ["lightgbm, codes", "catboost", "catboost, few borders", "catboost, depth-wise", "catboost of two classes"]


@pytest.mark.parametrize("name", [*BRUTE, "hist, categories"])
def test_path_dependent_values_by_brute_force(name):
    rows = coded = MODELS[name][1][:2]
    if name == "hist, categories":  # which the trees number from 0
        coded = rows.copy()
        coded[:, 5] = np.select([rows[:, 5] == v for v in (3.0, 5.0, 9.0)], [0.0, 1.0, 2.0], np.nan)
    check_path_dependent(fitted(name), rows, coded)


THREE_BY_STAGE = [0, 1, 2] * 4, np.repeat(np.arange(4), 3), True
STAGES = {  # outputs of the trees, their stages, whether each corrects those before it
    "boosting of three classes": ([0, 1, 2] * 5, np.repeat(np.arange(5), 3), True),
    **{f"{name} of three classes": THREE_BY_STAGE for name in ("hist", "xgboost", "lightgbm")},
    "xgboost, parallel trees": ([-1] * 8, np.repeat(np.arange(4), 2), True),
    "xgboost forest": ([-1] * 4, [0] * 4, True),
    "forest": ([-1] * 4, [0] * 4, False),
    "lightgbm forest": ([-1] * 4, range(4), False),
}


@pytest.mark.parametrize("name", STAGES)
def test_stages(name):
    converted = convert(fitted(name))
    outputs, stages, boosted = STAGES[name]
    assert (converted.tree_output.tolist(), converted.tree_stage.tolist()) == (outputs, list(stages))
    assert converted.boosted == boosted


EXTREMES = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 1e-45, 1e-35, -1e-35, 1.1e-35, 0.0, -0.0]


TRIED = ["hist", "xgboost", "lightgbm", "lightgbm, zero is missing", "lightgbm, missing unused", "catboost"]
TRIED += ["lightgbm, no missing in training", "catboost, missing are largest", "catboost, depth-wise"]


@pytest.mark.parametrize("name", TRIED)
def test_margins_of_extremes(name):
    model, converted = fitted(name), convert(fitted(name))
    for value in EXTREMES:
        for column in range(4 if "catboost" in name else 5):
            rows = np.where(np.arange(5) == column, value, MODELS[name][1])
            check_margin(model, rows, own(model, rows), converted)


@pytest.mark.parametrize("name", ["xgboost, codes", "lightgbm, codes"])
def test_codes_outside_the_sets(name):
    """Negative, fractional, unknown and huge codes take the branch that the library gives them."""
    model, converted = fitted(name), convert(fitted(name))
    assert (converted.trees.category_start >= 0).any()
    huge = [2.0**24, 1e9] if name.startswith("xgboost") else [1e9, 1e10]
    for value in (-0.5, -1.0, -3.0, 0.0, 0.7, 2.0, 41.0, np.inf, -np.inf, np.nan, *huge):
        rows = np.where(np.arange(6) == 5, value, CODES)
        check_margin(model, rows, own(model, rows), converted)


@pytest.mark.parametrize("value", [4.0, -1.0, 2.5, 1e9])
def test_unseen_categories_of_histograms_are_missing(value):
    rows, model = np.where(np.arange(6) == 5, value, CODED), fitted("hist, categories")
    with pytest.warns(ExplanationWarning, match=r"column 5 holds categories that the model has not seen. Got"):
        check_margin(model, rows, own(model, rows))


@pytest.mark.parametrize("name", ["tree", "xgboost", "lightgbm", "catboost"])
def test_ties_and_precision_of_thresholds(name):
    """Cells at a threshold and next to it, in single and double precision, go where the library sends them."""
    model, flat = fitted(name), convert(fitted(name)).pick().trees
    nodes = np.flatnonzero((flat.feature >= 0) & np.isfinite(flat.threshold))  # a split on missingness alone has none
    rows = np.resize(np.nan_to_num(HOLES), (7 * len(nodes), 5))
    for k, node in enumerate(nodes):
        theta = flat.threshold[node]
        single = [np.nextafter(np.float32(theta), np.float32(end)) for end in (-np.inf, np.inf)]
        double = [np.nextafter(theta, end) for end in (-np.inf, np.inf)]
        rows[7 * k : 7 * k + 7, flat.feature[node]] = [theta, *single, *double, theta * (1 - 1e-12), theta * (1 + 1e-12)]
    check_margin(model, rows, own(model, rows))


@pytest.mark.parametrize("name", ["isolation forest", "isolation forest of few columns"])
def test_isolation_forests_give_the_path_length(name):
    """The mean depth is counted from the decision paths; the score follows from it by the published formula."""
    model, length = fitted(name), np.zeros(len(X))
    for part, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        path = part.tree_.decision_path(X[:, columns].astype(np.float32))
        reached = part.tree_.n_node_samples[part.tree_.apply(X[:, columns].astype(np.float32))]
        unseen = [0.0 if n == 1 else 1.0 if n == 2 else 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n for n in reached]
        length += (np.asarray(path.sum(axis=1)).ravel() - 1.0 + unseen) / len(model.estimators_)
    assert_close(convert(model).predict(X), length, 20.0, 10)
    n = model.max_samples_
    normal = 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n
    np.testing.assert_allclose(model.score_samples(X), -(2.0 ** (-length / normal)), rtol=roundings(500))


def test_outputs_of_classifiers():
    model = fitted("forest of two classes")
    auto, both = Explainer(model)(HOLES[:4]), Explainer(model, output="all")(HOLES[:4])
    np.testing.assert_array_equal(both.values[..., 1], auto.values)
    assert_close(Explainer(model, output="0")(HOLES[:4]).values, -auto.values, 1.0, 10, 5)
    for name, last in (("extra trees of classes", "top"), ("lightgbm of three classes", "2")):
        model, rows = fitted(name), MODELS[name][1][:4]
        for output in (last, 2, -1):
            np.testing.assert_array_equal(Explainer(model, output=output)(rows).values, Explainer(model)(rows).values[..., 2])
        with pytest.raises(InputError, match=rf"{type(model).__name__} has 3 outputs. Got output=4"):
            Explainer(model, output=4)
    with pytest.raises(UnknownNameError, match=r"has no output 'tip'. Did you mean 'top'\?"):
        Explainer(fitted("extra trees of classes"), output="tip")


# -- names of columns ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["XGB", "LGBM", "CatBoost"])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_columns_are_known_by_their_names(library):
    """LightGBM stores 'mean radius' as 'mean_radius': both are the same column, another order is not."""
    frame = pd.DataFrame(HOLES, columns=["mean radius", "b", "c", "d", "e"])
    module = {"XGB": "xgboost", "LGBM": "lightgbm", "CatBoost": "catboost"}[library]
    model = of(module, frame, f"{library}Regressor")[0]()
    check_reader(model, frame[:5], frame[20:30])
    for wrong in (frame[["b", "mean radius", "c", "d", "e"]], frame.rename(columns={"d": "x"})):
        with pytest.raises(UnknownNameError, match=r"same order|Missing"):
            explain(model, wrong)
    np.testing.assert_array_equal(explain(model, HOLES[:5]).values, explain(model, frame[:5]).values)
    np.testing.assert_array_equal(explain(fitted(module), frame[:5]).values, explain(fitted(module), HOLES[:5]).values)
    mixed = frame.assign(b=np.arange(len(Y)) + 2**25, c=frame["c"] > 0, d=frame["d"].astype(np.float32))
    model = of(module, mixed, f"{library}Regressor")[0]()
    np.testing.assert_array_equal(Explainer(model).reader.predict(as_table(mixed)), own(model, mixed))


WRAPPERS = {
    "search": lambda model: GridSearchCV(model, {}, cv=2),
    "search of a pipeline": lambda model: GridSearchCV(make_pipeline(model), {}, cv=2),
    "scaled target": lambda model: TransformedTargetRegressor(model, transformer=StandardScaler()),
    "vote": lambda model: VotingRegressor([("trees", model), ("line", LinearRegression())]),
    "stack": lambda model: StackingRegressor([("line", LinearRegression()), ("trees", model)], LinearRegression()),
    "bag": lambda model: BaggingRegressor(model, n_estimators=2, random_state=0),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_of_lightgbm_hand_on_its_names(name):
    """They say 'mean_radius' and take frames with 'mean radius' only; other names are refused by the model inside."""
    lightgbm = pytest.importorskip("lightgbm")
    frame = pd.DataFrame(np.nan_to_num(HOLES), columns=["mean radius", "b", "c", "d", "e"])
    model = WRAPPERS[name](lightgbm.LGBMRegressor(n_estimators=4, min_child_samples=5, verbose=-1)).fit(frame, Y)
    check_reader(model, frame[:5], frame[20:30])
    for wrong in (frame[["b", "mean radius", "c", "d", "e"]], frame.rename(columns={"d": "x"})):
        for background in (frame[20:30], wrong[20:30]):
            with pytest.raises(UnknownNameError, match=r"same order|Missing"):
                explain(model, wrong, background)


# -- peculiarities of XGBoost --------------------------------------------------------------------------------------------

OBJECTIVES = ["squarederror", "squaredlogerror", "logistic", "pseudohubererror", "absoluteerror", "quantileerror"]
OBJECTIVES = [*(f"reg:{name}" for name in OBJECTIVES), "reg:gamma", "reg:tweedie", "binary:logistic", "binary:logitraw"]
OBJECTIVES += ["binary:hinge", "count:poisson", "survival:cox", "rank:pairwise"]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_base_score_of_every_objective(objective):
    xgboost = pytest.importorskip("xgboost")
    if objective == "binary:logitraw" and RELEASE() < (3, 1):
        pytest.skip("refused: the meaning of its base_score was another one")
    target = (Y > 0).astype(float) if objective.startswith(("binary", "rank")) else 0.9 * np.abs(Y) / np.abs(Y).max() + 0.01
    settings = {"objective": objective, "max_depth": 2, "nthread": 1}
    settings |= {"quantile_alpha": 0.4} if objective == "reg:quantileerror" else {}
    groups = {"group": [len(Y)]} if objective.startswith("rank") else {}
    for given in ({}, {"base_score": 0.3}):
        booster = xgboost.train(settings | given, xgboost.DMatrix(HOLES, target, **groups), 2)
        check_margin(booster, HOLES, booster.predict(xgboost.DMatrix(HOLES), output_margin=True))


@pytest.mark.parametrize("method", ["exact", "hist"])
def test_columns_of_whole_numbers_are_held_against_the_dump(method):
    """The dump of XGBoost rounds their thresholds up, and writes none for truth values."""
    frame = pd.DataFrame({"count": np.round(3.0 * X[:, 0]).astype(int), "is": X[:, 1] > 0, "size": X[:, 2]})
    model = of("xgboost", frame, "XGBRegressor", tree_method=method)[0]()
    types, before = model.get_booster().feature_types, model.get_booster().save_raw("json")
    verification = Explainer(model, frame[:3]).verify(frame[:3])
    assert verification.passed, str(verification)
    assert verification.reading_difference <= FLOAT32_MARGIN
    assert model.get_booster().feature_types == types
    assert model.get_booster().save_raw("json") == before


@pytest.mark.parametrize("names", [["a", "b", "é"], ["éa", "éb", "c"], ["ßü", "b", "cc"]])
def test_names_that_are_not_ascii_keep_their_codes_in_the_order_of_the_fit(names, tmp_path):
    if RELEASE() < (3, 1):
        pytest.skip("XGBoost remembers the names of categories from 3.1 on")
    # XGBoost 3.2 cuts their bytes at lengths of characters, as it would here.
    column = lambda order: pd.Categorical(names * 10, categories=order)  # noqa: E731
    frame = pd.DataFrame({"c": column(names), "x": np.arange(30.0)})
    model = of("xgboost", frame, "XGBRegressor", frame.c.cat.codes + 0.01 * frame.x, enable_categorical=True)[0]()
    model.save_model(tmp_path / "model.ubj")
    loaded = trees.load(tmp_path / "model.ubj")
    check_reader(model, frame[:3], frame[3:6])
    np.testing.assert_array_equal(explain(loaded, frame[:3], frame[3:6]).values, explain(model, frame[:3], frame[3:6]).values)
    if convert(model).categories[0] != tuple(names):
        for one in (model, loaded):
            with pytest.raises(InputError, match="beyond ASCII"):
                explain(one, frame.assign(c=column(names[::-1])))


# -- peculiarities of LightGBM -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", [None, X[:5]], ids=["path_dependent", "interventional"])
def test_one_class_has_a_probability_of_one(background):
    found = explain(RandomForestClassifier(2).fit(X, np.full(len(X), 3)), X[:4], background)
    assert found.unit == "probability of class 3"
    assert not found.values.any()
    np.testing.assert_array_equal(found.prediction, 1.0)


@pytest.mark.parametrize("background", [None, slice(100, 110)])
def test_splits_of_missing_values_alone(background):
    """Their threshold is infinite in the model's text and 1e300 in the dump that checks read."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2))
    rows[rng.random(200) < 0.4, 0] = np.nan
    settings = {"n_estimators": 2, "num_leaves": 3, "min_child_samples": 20}
    model = of("lightgbm", rows, "LGBMRegressor", np.isnan(rows[:, 0]) + 0.01 * rows[:, 1], **settings)[0]()
    assert np.isinf(convert(model).trees.threshold).any()
    check_reader(model, rows[:20], None if background is None else rows[background])


# -- refusals ------------------------------------------------------------------------------------------------------------


def texts():
    cells = np.c_[X.astype(object), np.resize(["a word", "two words", "three more words"], len(X))]
    return of("catboost", cells, "CatBoostClassifier", Y > 0, text_features=[5])[0]()


REFUSED = {  # (model, background, words)
    "embedding": (
        lambda: ensemble.RandomTreesEmbedding(n_estimators=2).fit(X),
        X[:3],
        "RandomTreesEmbedding has no prediction",
    ),
    "initial model": (
        lambda: ensemble.GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(X, Y),
        X[:3],
        "starts from another model, init=LinearRegression",
    ),
    "isolation of one row": (lambda: ensemble.IsolationForest(n_estimators=2, max_samples=1).fit(X), X[:3], "max_samples_=1"),
    "linear leaves": (lambda: fitted("linear"), None, r"linear functions in leaves: cover ratios do not.*background=X_ref"),
    "texts": (texts, None, r"does not export this model as JSON. .*text features"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    make, background, words = REFUSED[name]
    with pytest.raises(UnsupportedStructureError, match=words):
        Explainer(make(), background)


def test_tables_of_leaves_that_do_not_fit_are_refused():
    reader, rows = Explainer(fitted("forest"), HOLES[:20]).reader, as_table(np.tile(HOLES[:2], (2_000_000, 1)))
    with pytest.raises(BudgetError, match=r"\d+ leaves x 5 players x 4000020 rows would need .* GiB. Use fewer rows"):
        reader.game(rows)


def test_a_class_that_predicts_otherwise_is_noticed(monkeypatch):
    predict = ensemble.RandomForestRegressor.predict
    monkeypatch.setattr(ensemble.RandomForestRegressor, "predict", lambda self, rows: 2.0 * predict(self, rows))
    model = ensemble.RandomForestRegressor(3, **DEEP).fit(X, Y)
    with pytest.raises(ArithmeticError, match=r"were not read as the library reads them.*Background row"):
        Explainer(model, X[:5])
    with pytest.raises(ArithmeticError, match="Values do not add up"):
        Explainer(model)(X[:5])


# -- linear leaves -------------------------------------------------------------------------------------------------------


def test_linear_leaves_of_files_and_batches():
    model = fitted("linear")
    batch = explain(model, HOLES, HOLES[:40])
    assert "linear leaves" in batch.method
    np.testing.assert_array_equal(explain(model.booster_, HOLES[:5], HOLES[:40]).values, batch.values[:5])
    loaded = trees.loads(model.booster_.model_to_string().encode())
    assert_close(explain(loaded, HOLES, HOLES[:40]).values, batch.values, 20.0, 100, 5)
    verification = Explainer(fitted("linear of three classes"), HOLES[:9]).verify(HOLES[20:24])
    assert verification.passed
    assert "of nodes to the library's dump" in str(verification)


def test_what_linear_leaves_do_not_take():
    model, infinite = fitted("linear"), X[:2].copy()
    infinite[1] = np.inf
    with pytest.raises(InputError, match=r"`X` holds an infinite value that leaves multiply \(row 1"):
        explain(model, infinite, X[:9])
    with pytest.raises(InputError, match="`background` holds an infinite value that leaves multiply"):
        explain(model, X[:2], infinite)
    with pytest.raises(UnsupportedStructureError, match="cover ratios do not say what an absent column's value is there"):
        explain(model, X[:2], X[:9], value_function="path_dependent")
    with pytest.raises(UnknownNameError, match="functional"):
        explain(model, X[:2], X[:9], value_function="functional")
    with pytest.raises(UnsupportedStructureError, match="The game of R2 is made of constant ones"):
        decompose_r2(model, X, Y)

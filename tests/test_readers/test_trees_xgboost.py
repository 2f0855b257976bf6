"""XGBoost: margins value by value for every objective and booster, categories, missing values, refusals."""

import pickle

import numpy as np
import pandas as pd
import pytest

from exactshap import Explainer, explain, trees
from exactshap.errors import InputError, UnknownNameError, UnsupportedStructureError
from exactshap.testing import check_reader
from exactshap.trees import convert, flatten
from tolerances import FLOAT32_MARGIN
from tree_models import check_path_dependent, data, mixed_frame

xgboost = pytest.importorskip("xgboost")
RELEASE = tuple(int(part) for part in xgboost.__version__.split(".")[:2])
remembers_names = pytest.mark.skipif(RELEASE < (3, 1), reason="XGBoost remembers the names of categories from 3.1 on")
X, HOLES, Y = data()
TERNARY = np.digitize(Y, [0.0, 1.0])
SMALL = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1}


def regressor(**settings):
    return xgboost.XGBRegressor(**{**SMALL, **settings})


def classifier(**settings):
    return xgboost.XGBClassifier(**{**SMALL, **settings})


MODELS = {
    "plain": regressor().fit(HOLES, Y),
    "exact": regressor(tree_method="exact").fit(HOLES, Y),
    "approx": regressor(tree_method="approx").fit(HOLES, Y),
    "pruned": regressor(tree_method="exact", gamma=30.0).fit(HOLES, Y),
    "leaf-wise": regressor(grow_policy="lossguide", max_leaves=6, max_depth=0).fit(HOLES, Y),
    "no trees": regressor(n_estimators=0).fit(HOLES, Y),
    "stumps": regressor(max_depth=1).fit(HOLES, Y),
    "one leaf": regressor(gamma=1e9).fit(HOLES, Y),
    "given base score": regressor(base_score=0.25).fit(HOLES, Y),
    "dart": regressor(booster="dart", rate_drop=0.5, seed=0).fit(HOLES, Y),
    "parallel trees": regressor(num_parallel_tree=2, subsample=0.5).fit(HOLES, Y),
    "classifying forest": xgboost.XGBRFClassifier(**SMALL).fit(HOLES, Y > 0),
    "random forest": xgboost.XGBRFRegressor(n_estimators=4, max_depth=3, n_jobs=1).fit(HOLES, Y),
    "binary": classifier().fit(HOLES, Y > 0),
    "ternary": classifier().fit(HOLES, TERNARY),
    "two targets": regressor().fit(HOLES, np.c_[Y, Y**2]),
    "vector leaf": regressor(multi_strategy="multi_output_tree").fit(HOLES, np.c_[Y, Y**2]),
    "ranking": xgboost.XGBRanker(**SMALL).fit(HOLES, TERNARY, qid=np.repeat(np.arange(8), 20)),
}


def check_margin(model, rows, margin):
    got = convert(model).predict(rows)
    assert got.shape == margin.shape
    assert np.abs(got - margin).max() <= FLOAT32_MARGIN * max(1.0, np.abs(margin).max())


@pytest.mark.parametrize("name", MODELS)
def test_margins(name):
    check_margin(MODELS[name], HOLES, MODELS[name].predict(HOLES, output_margin=True))
    booster = MODELS[name].get_booster()
    check_margin(
        booster,
        HOLES,
        booster.inplace_predict(HOLES, predict_type="margin").reshape(MODELS[name].predict(HOLES, output_margin=True).shape),
    )


@pytest.mark.parametrize("name", MODELS)
def test_games_and_values(name):
    check_reader(MODELS[name], HOLES[:5], HOLES[20:30])
    if name != "vector leaf" or flatten(MODELS[name]).cover.any():
        check_reader(MODELS[name], HOLES[:5], n_masks=2)
    else:
        assert RELEASE < (3, 2)  # XGBoost 2 wrote no covers of them
        with pytest.raises(UnsupportedStructureError, match="keeps no training weights in its nodes"):
            explain(MODELS[name], HOLES[:5])


OBJECTIVES = [
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:logistic",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "reg:quantileerror",
    "binary:logistic",
    "binary:logitraw",
    "binary:hinge",
    "count:poisson",
    "survival:cox",
    "reg:gamma",
    "reg:tweedie",
    "rank:pairwise",
]


@pytest.mark.parametrize("base_score", [None, 0.3])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_base_score_of_every_objective(objective, base_score):
    if objective == "binary:logitraw" and RELEASE < (3, 1):
        pytest.skip("refused: the meaning of its base_score was another one")
    target = (Y > 0).astype(float) if objective.startswith(("binary", "rank")) else 0.9 * np.abs(Y) / np.abs(Y).max() + 0.01
    settings = {"objective": objective, "max_depth": 2, "nthread": 1}
    if objective == "reg:quantileerror":
        settings["quantile_alpha"] = 0.4
    if base_score is not None:
        settings["base_score"] = base_score
    groups = {"group": [len(Y)]} if objective.startswith("rank") else {}
    booster = xgboost.train(settings, xgboost.DMatrix(HOLES, target, **groups), 2)
    check_margin(booster, HOLES, booster.predict(xgboost.DMatrix(HOLES), output_margin=True))


def test_units():
    units = {"plain": "target", "binary": "log-odds", "ternary": "score before the softmax", "ranking": "score"}
    assert {name: convert(MODELS[name]).unit for name in units} == units
    assert convert(regressor(objective="count:poisson").fit(X, np.abs(Y))).unit == "log of the target"
    assert convert(MODELS["binary"]).output_names == convert(MODELS["classifying forest"]).output_names == ("1",)
    assert convert(MODELS["two targets"]).output_names == ("target 0", "target 1")


@pytest.mark.parametrize("method", ["exact", "hist"])
def test_columns_of_whole_numbers_are_held_against_the_dump(method):
    """The dump of XGBoost rounds their thresholds up, and writes none for truth values."""
    frame = pd.DataFrame({"count": np.round(3.0 * X[:, 0]).astype(int), "is": X[:, 1] > 0, "size": X[:, 2]})
    model = xgboost.XGBRegressor(n_estimators=5, max_depth=3, tree_method=method).fit(frame, Y)
    types = model.get_booster().feature_types
    verification = Explainer(model, frame[:3]).verify(frame[:3])
    assert verification.passed, str(verification)
    assert verification.reading_difference <= FLOAT32_MARGIN
    assert model.get_booster().feature_types == types


def test_stages():
    ensemble = convert(MODELS["ternary"])
    assert ensemble.tree_output.tolist() == [0, 1, 2] * 4
    assert ensemble.tree_stage.tolist() == np.repeat(np.arange(4), 3).tolist()
    assert convert(MODELS["parallel trees"]).tree_stage.tolist() == np.repeat(np.arange(4), 2).tolist()
    assert convert(MODELS["random forest"]).tree_stage.tolist() == [0] * 4


def test_best_iteration_is_honoured():
    model = regressor(n_estimators=60, learning_rate=0.9, early_stopping_rounds=2)
    model.fit(HOLES[:80], Y[:80], eval_set=[(HOLES[80:], Y[80:])], verbose=False)
    assert convert(model).trees.n_trees == model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    check_margin(model, HOLES, model.predict(HOLES, output_margin=True))
    assert explain(model, HOLES[:9]).certificate().passed
    booster = model.get_booster()
    assert convert(booster).trees.n_trees == booster.num_boosted_rounds()
    check_margin(booster, HOLES, booster.predict(xgboost.DMatrix(HOLES), output_margin=True))
    assert explain(booster, HOLES[:9], HOLES[20:30]).certificate().passed


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300, -1e300, 1e-45, 0.0, -0.0, np.nan])
@pytest.mark.parametrize("column", range(5))
def test_margins_of_extremes(value, column):
    rows = np.where(np.arange(5) == column, value, HOLES)
    check_margin(MODELS["plain"], rows, MODELS["plain"].predict(rows, output_margin=True))


def test_ties_go_right_at_single_precision():
    trees = flatten(MODELS["plain"])
    q = np.flatnonzero(trees.feature >= 0)
    rows = np.resize(X, (3 * len(q), 5))
    for k, node in enumerate(q):
        theta = trees.threshold[node]
        below = np.nextafter(np.float32(theta), np.float32(-np.inf))
        rows[3 * k : 3 * k + 3, trees.feature[node]] = [theta, theta - 1e-12 * abs(theta), below]
    check_margin(MODELS["plain"], rows, MODELS["plain"].predict(rows, output_margin=True))


def test_missing_setting():
    coded = np.where(np.isnan(HOLES), -999.0, HOLES)
    model = regressor(missing=-999.0).fit(coded, Y)
    check_margin(model, coded, model.predict(coded, output_margin=True))
    assert np.abs(model.predict(coded) - regressor().fit(coded, Y).predict(coded)).max() > 0.01
    check_reader(model, coded[:5], coded[20:30])


@remembers_names
@pytest.mark.parametrize("one_hot", [1, 10])
def test_named_categories(one_hot):
    frame, y = mixed_frame()
    model = regressor(enable_categorical=True, max_cat_to_onehot=one_hot).fit(frame, y)
    assert (flatten(model).category_start >= 0).any()
    check_margin(model, frame, model.predict(frame, output_margin=True))
    shuffled = frame.assign(
        city=frame.city.cat.reorder_categories(list("zyxwvu")), kind=frame.kind.cat.reorder_categories([11, 5, 7])
    )
    check_margin(model, shuffled, model.predict(frame, output_margin=True))
    check_reader(model, frame[:5], frame[50:60])
    np.testing.assert_array_equal(explain(model, shuffled[:9]).values, explain(model, frame[:9]).values)


@remembers_names
def test_unseen_names_are_refused_because_the_library_guesses():
    frame, y = mixed_frame()
    model = regressor(enable_categorical=True).fit(frame, y)
    with pytest.raises(InputError, match=r"column 'city' holds categories that the model has not seen. Got 'new'"):
        explain(model, frame.assign(city=frame.city.cat.rename_categories({"u": "new"})))


CODES = np.c_[HOLES, np.tile([0.0, 1.0, 5.0, np.nan, 40.0], 32)]


@pytest.mark.parametrize("value", [-0.5, -3.0, 0.0, 0.7, 2.0, 41.0, 2.0**24, 1e9, np.inf, -np.inf, np.nan])
def test_codes(value):
    """Codes outside the sets, negative and fractional ones take the branch that XGBoost gives them."""
    model = regressor(enable_categorical=True, max_cat_to_onehot=1, feature_types=[*"qqqqq", "c"])
    model.fit(CODES, Y + 2.0 * np.isin(CODES[:, 5], [1.0, 40.0]))
    assert (flatten(model).category_start >= 0).any()
    rows = np.where(np.arange(6) == 5, value, CODES)
    check_margin(model, rows, model.predict(rows, output_margin=True))


@pytest.mark.parametrize("name", ["plain", "dart", "binary", "parallel trees"])
def test_path_dependent_values_by_brute_force(name):
    check_path_dependent(MODELS[name], HOLES[:2])


def test_path_dependent_values_of_categories_by_brute_force():
    frame, y = mixed_frame()
    model = regressor(enable_categorical=True, max_cat_to_onehot=1).fit(frame, y)
    coded = np.c_[frame.a, frame.city.cat.codes.replace(-1, np.nan), frame.b, frame.kind.cat.codes]
    check_path_dependent(model, frame[:8], coded[:8])


@pytest.mark.peer
@pytest.mark.parametrize("name", ["plain", "dart", "parallel trees", "binary"])
def test_agrees_with_its_own_contributions(name):
    """They use the stored covers in float32, and break down on deep trees only."""
    theirs = MODELS[name].get_booster().predict(xgboost.DMatrix(HOLES[:20]), pred_contribs=True)
    ours = explain(MODELS[name], HOLES[:20])
    assert np.abs(ours.values - theirs[:, :-1]).max() <= 10 * FLOAT32_MARGIN
    assert np.abs(ours.baseline - theirs[:, -1]).max() <= 10 * FLOAT32_MARGIN


def test_frames_permuted_and_arrays():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(HOLES, columns=list("abcde"))
    model = regressor().fit(frame, Y)
    check_reader(model, frame[:5], frame[20:30])
    with pytest.raises(UnknownNameError, match="Feature names must be in the same order"):
        explain(model, frame[list("edcba")])
    with pytest.warns(UserWarning, match="X does not have valid feature names, but XGBRegressor was fitted with feature names"):
        from_array = explain(model, HOLES[:5])
    np.testing.assert_array_equal(from_array.values, explain(model, frame[:5]).values)


def test_refusals():
    linear = regressor(booster="gblinear", max_depth=None).fit(X, Y)
    with pytest.raises(InputError, match=r"XGBRegressor needs reference rows. Got background=None"):
        Explainer(linear)
    with pytest.raises(InputError, match=r"XGBClassifier has 3 outputs. Got output=4"):
        Explainer(MODELS["ternary"], output=4)


def test_readers_pickle_and_leave_the_model_alone():
    before = MODELS["plain"].get_booster().save_raw("json")
    explainer = Explainer(MODELS["plain"], HOLES[:20])
    clone = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(clone(HOLES[:9]).values, explainer(HOLES[:9]).values)
    assert MODELS["plain"].get_booster().save_raw("json") == before


@remembers_names
@pytest.mark.parametrize("names", [["a", "b", "é"], ["éa", "éb", "c"], ["ßü", "b", "cc"]])
def test_names_that_are_not_ascii_keep_their_codes_in_the_order_of_the_fit(names, tmp_path):
    # XGBoost 3.2 cuts their bytes at lengths of characters, as it would here.
    column = lambda order: pd.Categorical(names * 10, categories=order)  # noqa: E731
    frame = pd.DataFrame({"c": column(names), "x": np.arange(30.0)})
    y = frame.c.cat.codes + 0.01 * frame.x
    model = xgboost.XGBRegressor(n_estimators=3, max_depth=3, enable_categorical=True).fit(frame, y)
    model.save_model(tmp_path / "model.ubj")
    loaded = trees.load(tmp_path / "model.ubj")
    check_reader(model, frame[:3], frame[3:6])
    np.testing.assert_array_equal(explain(loaded, frame[:3], frame[3:6]).values, explain(model, frame[:3], frame[3:6]).values)
    if convert(model).categories[0] != tuple(names):
        for one in (model, loaded):
            with pytest.raises(InputError, match="beyond ASCII"):
                explain(one, frame.assign(c=column(names[::-1])))

"""LightGBM: raw scores value by value for every missing type, categories, modes; refusals."""

import numpy as np
import pytest

from exactshap import Explainer, explain
from exactshap.errors import ExplanationWarning, InputError, UnknownNameError, UnsupportedStructureError
from exactshap.testing import check_reader
from exactshap.trees import convert, flatten
from tolerances import assert_close, roundings
from tree_models import check_path_dependent, data, mixed_frame

lightgbm = pytest.importorskip("lightgbm")
X, HOLES, Y = data()
TERNARY = np.digitize(Y, [0.0, 1.0])
SPARSE = np.where(np.random.default_rng(1).random(X.shape) < 0.3, 0.0, HOLES)
SMALL = {"n_estimators": 4, "num_leaves": 6, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
FREE = {"min_data_per_group": 1, "cat_smooth": 1}


def regressor(**settings):
    return lightgbm.LGBMRegressor(**{**SMALL, **settings})


MODELS = {
    "plain": regressor().fit(SPARSE, Y),
    "zero is missing": regressor(zero_as_missing=True).fit(SPARSE, Y),
    "missing unused": regressor(use_missing=False).fit(SPARSE, Y),
    "no missing in training": regressor().fit(X, Y),
    "random forest": regressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5).fit(SPARSE, Y),
    "dart": regressor(boosting_type="dart", drop_rate=0.5).fit(SPARSE, Y),
    "goss": regressor(data_sample_strategy="goss").fit(SPARSE, Y),
    "extra trees": regressor(extra_trees=True).fit(SPARSE, Y),
    "one leaf": regressor(min_child_samples=1000).fit(SPARSE, Y),
    "poisson": regressor(objective="poisson").fit(SPARSE, np.abs(Y)),
    "square root": regressor(reg_sqrt=True).fit(SPARSE, Y),
    "weighted": regressor().fit(SPARSE, Y, sample_weight=1.0 + np.arange(len(Y)) % 3),
    "binary": lightgbm.LGBMClassifier(**SMALL).fit(SPARSE, Y > 0),
    "ternary": lightgbm.LGBMClassifier(**SMALL).fit(SPARSE, TERNARY),
    "one against all": lightgbm.LGBMClassifier(objective="multiclassova", **SMALL).fit(SPARSE, TERNARY),
    "ranking": lightgbm.LGBMRanker(**SMALL).fit(SPARSE, TERNARY, group=[80, 80]),
}


def raw(model, rows):
    score = model.predict(rows, raw_score=True)
    return score / convert(model).trees.n_trees if not convert(model).boosted else score


@pytest.mark.parametrize("name", MODELS)
def test_margins(name):
    score = raw(MODELS[name], SPARSE)
    for model in (MODELS[name], MODELS[name].booster_):
        assert_close(convert(model).predict(SPARSE), score, np.abs(score).max(), 12)


def test_random_forests_are_means():
    """LightGBM's raw score is the sum of the trees there; its prediction, which we explain, is their mean."""
    model = MODELS["random forest"]
    np.testing.assert_allclose(convert(model).predict(SPARSE), model.predict(SPARSE), rtol=roundings(500))
    assert not convert(model).boosted


@pytest.mark.parametrize("name", MODELS)
def test_games_and_values(name):
    check_reader(MODELS[name], SPARSE[:5], SPARSE[20:30])
    check_reader(MODELS[name], SPARSE[:5], n_masks=2)


@pytest.mark.parametrize("background", [None, slice(100, 110)])
def test_splits_of_missing_values_alone(background):
    """Their threshold is infinite in the model's text and 1e300 in the dump that checks read."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2))
    rows[rng.random(200) < 0.4, 0] = np.nan
    model = lightgbm.LGBMRegressor(n_estimators=2, num_leaves=3, verbose=-1, n_jobs=1)
    model.fit(rows, np.isnan(rows[:, 0]) + 0.01 * rows[:, 1])
    assert np.isinf(convert(model).trees.threshold).any()
    check_reader(model, rows[:20], None if background is None else rows[background])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-35, -1e-35, 1.1e-35, 1e-300, 1e300])
@pytest.mark.parametrize("name", ["plain", "zero is missing", "missing unused", "no missing in training"])
def test_margins_of_extremes(name, value):
    for column in range(5):
        rows = np.where(np.arange(5) == column, value, SPARSE)
        np.testing.assert_array_equal(convert(MODELS[name]).predict(rows), MODELS[name].predict(rows, raw_score=True))


def test_ties_go_left_at_double_precision():
    model = MODELS["plain"]
    trees = flatten(model)
    q = np.flatnonzero(trees.feature >= 0)
    rows = np.resize(X, (2 * len(q), 5))
    for k, node in enumerate(q):
        rows[2 * k : 2 * k + 2, trees.feature[node]] = [trees.threshold[node], np.nextafter(trees.threshold[node], np.inf)]
    np.testing.assert_array_equal(convert(model).predict(rows), model.predict(rows, raw_score=True))


def test_best_iteration_is_honoured():
    model = regressor(n_estimators=60, learning_rate=0.9)
    model.fit(HOLES[:80], Y[:80], eval_set=[(HOLES[80:], Y[80:])], callbacks=[lightgbm.early_stopping(2, verbose=False)])
    assert convert(model).trees.n_trees == model.best_iteration_ < 60
    assert explain(model, HOLES[:9]).certificate().passed
    assert explain(model.booster_, HOLES[:9]).certificate().passed


@pytest.mark.parametrize("one_hot", [1, 10])
def test_frames_with_categories(one_hot):
    pd = pytest.importorskip("pandas")
    frame, y = mixed_frame()
    frame["size"] = pd.Categorical(np.resize(list("lmh"), len(y)), categories=list("lmh"), ordered=True)
    model = regressor(max_cat_to_onehot=one_hot, **FREE).fit(frame, y + frame["size"].cat.codes)
    assert (flatten(model).category_start >= 0).any()
    for fitted in (model, model.booster_):
        np.testing.assert_array_equal(convert(fitted).predict(frame), model.predict(frame, raw_score=True))
    shuffled = frame.assign(city=frame.city.cat.reorder_categories(list("zyxwvu")))
    np.testing.assert_array_equal(convert(model).predict(shuffled), model.predict(frame, raw_score=True))
    check_reader(model, frame[:5], frame[50:60])
    unseen = frame.assign(city=frame.city.cat.rename_categories({"u": "new"}))
    with pytest.warns(ExplanationWarning, match="column 'city' holds categories that the model has not seen. Got 'new'"):
        np.testing.assert_array_equal(convert(model).predict(unseen), model.predict(unseen, raw_score=True))
    with pytest.raises(InputError, match=r"fitted with 3 columns of categorical dtype. Got 2"):
        explain(model, frame.assign(kind=frame.kind.cat.codes))


CODES = np.c_[HOLES, np.tile([0.0, 1.0, 5.0, np.nan, 40.0], 32)]
CODED = regressor(max_cat_to_onehot=1, **FREE).fit(CODES, Y + 2.0 * np.isin(CODES[:, 5], [1.0, 40.0]), categorical_feature=[5])


@pytest.mark.parametrize("value", [-0.5, -1.0, -3.0, 0.0, 0.7, 2.0, 41.0, 1e9, 1e10, np.inf, -np.inf, np.nan])
def test_codes(value):
    assert (flatten(CODED).category_start >= 0).any()
    rows = np.where(np.arange(6) == 5, value, CODES)
    np.testing.assert_array_equal(convert(CODED).predict(rows), CODED.predict(rows, raw_score=True))


@pytest.mark.parametrize(("model", "rows"), [(MODELS["plain"], SPARSE), (MODELS["zero is missing"], SPARSE), (CODED, CODES)])
def test_path_dependent_values_by_brute_force(model, rows):
    check_path_dependent(model, rows[:3])


@pytest.mark.peer
@pytest.mark.parametrize(("model", "rows"), [(MODELS["plain"], SPARSE), (MODELS["binary"], SPARSE), (CODED, CODES)])
def test_agrees_with_its_own_contributions(model, rows):
    theirs = model.predict(rows[:20], pred_contrib=True)
    ours = explain(model, rows[:20])
    np.testing.assert_allclose(ours.values, theirs[:, :-1], atol=roundings(500))
    np.testing.assert_allclose(ours.baseline, theirs[:, -1], atol=roundings(500))


def test_names_with_white_space():
    """LightGBM stores 'mean radius' as 'mean_radius': both are the same column, another order is not."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(HOLES, columns=["mean radius", "b c", "d", "e", "f"])
    model = regressor().fit(frame, Y)
    check_reader(model, frame[:5])
    for wrong in (frame[["b c", "mean radius", "d", "e", "f"]], frame.rename(columns={"d": "x"})):
        with pytest.raises(UnknownNameError, match="same order"):
            explain(model, wrong)


def test_stages_units_and_outputs():
    ensemble = convert(MODELS["ternary"])
    assert ensemble.tree_output.tolist() == [0, 1, 2] * 4
    assert ensemble.tree_stage.tolist() == np.repeat(np.arange(4), 3).tolist()
    assert ensemble.output_names == ("0", "1", "2")
    units = {
        "plain": "target",
        "poisson": "log of the target",
        "binary": "log-odds",
        "ranking": "score",
        "square root": "signed square root of the target",
    }
    assert {name: convert(MODELS[name]).unit for name in units} == units
    assert convert(MODELS["binary"]).output_names == ("True",)
    assert Explainer(MODELS["ternary"], output="1")(SPARSE[:3]).values.shape == (3, 5)


def test_refusals():
    with pytest.raises(
        UnsupportedStructureError, match=r"linear functions in leaves: cover ratios do not say.*background=X_ref"
    ):
        Explainer(regressor(linear_tree=True).fit(X, Y))

"""CatBoost: raw formula values value by value, symmetric and other trees, missing values, refusals."""

import numpy as np
import pytest

from exactshap import Explainer, explain
from exactshap.errors import UnknownNameError, UnsupportedStructureError
from exactshap.testing import check_reader
from exactshap.trees import convert, flatten
from tolerances import assert_close, roundings
from tree_models import check_path_dependent, data

catboost = pytest.importorskip("catboost")
X, HOLES, Y = data()
TERNARY = np.digitize(Y, [0.0, 1.0])
SMALL = {"iterations": 4, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}


def regressor(**settings):
    return catboost.CatBoostRegressor(**{**SMALL, **settings})


def classifier(**settings):
    return catboost.CatBoostClassifier(**{**SMALL, **settings})


MODELS = {
    "plain": regressor().fit(HOLES, Y),
    "repeated splits": regressor(depth=6, border_count=6).fit(HOLES, Y),
    "few borders": regressor(depth=3, border_count=2).fit(HOLES, Y),
    "missing are largest": regressor(nan_mode="Max").fit(HOLES, Y),
    "stumps": regressor(depth=1).fit(HOLES, Y),
    "depth-wise": regressor(grow_policy="Depthwise").fit(HOLES, Y),
    "leaf-wise": regressor(grow_policy="Lossguide", max_leaves=6).fit(HOLES, Y),
    "poisson": regressor(loss_function="Poisson").fit(HOLES, np.abs(Y)),
    "two targets": regressor(loss_function="MultiRMSE").fit(HOLES, np.c_[Y, Y**2]),
    "binary": classifier().fit(HOLES, np.where(Y > 0, "yes", "no")),
    "ternary": classifier().fit(HOLES, TERNARY),
    "ternary depth-wise": classifier(grow_policy="Depthwise").fit(HOLES, TERNARY),
    "plain CatBoost": catboost.CatBoost({**SMALL, "loss_function": "RMSE"}).fit(HOLES, Y),
}


def raw(model, rows):
    return model.predict(rows, prediction_type="RawFormulaVal")


@pytest.mark.parametrize("name", MODELS)
def test_margins(name):
    margin = raw(MODELS[name], HOLES)
    assert_close(convert(MODELS[name]).predict(HOLES), margin, np.abs(margin).max(), 4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 0.0])
@pytest.mark.parametrize("name", ["plain", "missing are largest", "depth-wise"])
def test_margins_of_extremes(name, value):
    for column in range(4):
        rows = np.where(np.arange(5) == column, value, HOLES)
        assert_close(convert(MODELS[name]).predict(rows), raw(MODELS[name], rows), 5.0, 4)


def test_ties_at_single_precision():
    trees = flatten(MODELS["plain"])
    q = np.flatnonzero(trees.feature >= 0)
    rows = np.resize(X, (3 * len(q), 5))
    for k, node in enumerate(q):
        theta = trees.threshold[node]
        above = np.nextafter(np.float32(theta), np.float32(np.inf))
        rows[3 * k : 3 * k + 3, trees.feature[node]] = [theta, theta + 1e-12 * abs(theta), above]
    assert_close(convert(MODELS["plain"]).predict(rows), raw(MODELS["plain"], rows), 5.0, 4)


@pytest.mark.parametrize("name", MODELS)
def test_games_and_values(name):
    check_reader(MODELS[name], HOLES[:5], HOLES[20:30])
    check_reader(MODELS[name], HOLES[:5], n_masks=2)


@pytest.mark.parametrize("name", ["plain", "few borders", "depth-wise", "binary"])
def test_path_dependent_values_by_brute_force(name):
    check_path_dependent(MODELS[name], HOLES[:2])


@pytest.mark.peer
@pytest.mark.parametrize("name", ["plain", "stumps", "missing are largest", "binary"])
def test_agrees_with_its_own_contributions(name):
    """On symmetric trees; on others its contributions differ from the definition where columns repeat."""
    theirs = MODELS[name].get_feature_importance(catboost.Pool(HOLES[:20]), type="ShapValues", thread_count=1)
    ours = explain(MODELS[name], HOLES[:20])
    np.testing.assert_allclose(ours.values, theirs[:, :-1], atol=roundings(500))
    np.testing.assert_allclose(ours.baseline, theirs[:, -1], atol=roundings(500))


def test_best_iteration_is_honoured():
    model = regressor(iterations=60, learning_rate=0.9).fit(HOLES[:80], Y[:80], eval_set=(HOLES[80:], Y[80:]))
    assert convert(model).trees.n_trees == model.tree_count_ < 60
    assert explain(model, HOLES[:9], HOLES[20:30]).certificate().passed


def test_names_units_and_outputs():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(HOLES, columns=list("abcde"))
    model = regressor().fit(frame, Y)
    assert convert(model).feature_names == tuple("abcde")
    check_reader(model, frame[:5], frame[20:30])
    with pytest.raises(UnknownNameError, match="Feature names must be in the same order"):
        explain(model, frame[list("edcba")])
    assert convert(MODELS["binary"]).output_names == ("yes",)
    assert convert(MODELS["ternary"]).output_names == ("0", "1", "2")
    units = {"plain": "target", "poisson": "log of the target", "ternary": "score before the softmax"}
    assert {name: convert(MODELS[name]).unit for name in units} == units


def test_refusals():
    texts = np.c_[X.astype(object), np.resize(["a word", "two words", "three more words"], len(X))]
    model = classifier(text_features=[5]).fit(texts, Y > 0)
    with pytest.raises(UnsupportedStructureError, match=r"does not export this model as JSON. .*text features"):
        Explainer(model)


def test_trees_without_splits():
    model = regressor(min_data_in_leaf=200, grow_policy="Depthwise").fit(HOLES, Y)
    assert_close(convert(model).predict(HOLES[:5]), raw(model, HOLES[:5]), 5.0, 4)
    symmetric = classifier(iterations=60, depth=6, monotone_constraints=[0, 0, 0, 0, 0], l2_leaf_reg=1e-3).fit(
        X[:12], Y[:12] > 0
    )
    assert_close(convert(symmetric).predict(HOLES[:5]), raw(symmetric, HOLES[:5]), 50.0, 60)

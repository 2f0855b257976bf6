"""Histogram gradient boosting: missing values, categories, links."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from exactshap import explain
from exactshap.errors import ExplanationWarning
from exactshap.testing import check_reader
from exactshap.trees import convert
from tolerances import assert_close
from tree_models import check_path_dependent, data, mixed_frame

X, HOLES, Y = data()
SMALL = {"max_iter": 4, "max_leaf_nodes": 7, "min_samples_leaf": 5}
CODED = np.c_[HOLES, np.tile([3.0, 5.0, 9.0, np.nan], 40)]
TARGET = Y + 2.0 * (CODED[:, 5] == 5.0)
MODELS = {
    "missing": (HistGradientBoostingRegressor(**SMALL).fit(HOLES, Y), HOLES),
    "no missing in training": (HistGradientBoostingRegressor(**SMALL).fit(X, Y), HOLES),
    "categories": (HistGradientBoostingRegressor(categorical_features=[5], **SMALL).fit(CODED, TARGET), CODED),
    "all categorical": (
        HistGradientBoostingRegressor(categorical_features=[0, 1], **SMALL).fit(CODED[:, [5, 5]], Y),
        CODED[:, [5, 5]],
    ),
    "poisson": (HistGradientBoostingRegressor(loss="poisson", **SMALL).fit(HOLES, np.abs(Y)), HOLES),
    "gamma": (HistGradientBoostingRegressor(loss="gamma", **SMALL).fit(HOLES, np.abs(Y) + 0.1), HOLES),
    "quantile": (HistGradientBoostingRegressor(loss="quantile", quantile=0.8, **SMALL).fit(HOLES, Y), HOLES),
    "binary": (HistGradientBoostingClassifier(**SMALL).fit(HOLES, Y > 0), HOLES),
    "ternary": (HistGradientBoostingClassifier(**SMALL).fit(HOLES, np.digitize(Y, [0.0, 1.0])), HOLES),
}


def own(model, rows):
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    return np.log(model.predict(rows)) if model.loss in ("poisson", "gamma") else model.predict(rows)


@pytest.mark.parametrize("name", MODELS)
def test_margins(name):
    model, rows = MODELS[name]
    margin = own(model, rows)
    assert_close(convert(model).predict(rows), margin, np.abs(margin).max(), 30)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300, -0.0, np.nan])
def test_margins_of_extremes(value):
    model, rows = MODELS["missing"]
    rows = np.where(np.arange(5) == 1, value, rows)
    np.testing.assert_array_equal(convert(model).predict(rows), model.predict(rows))


@pytest.mark.parametrize("value", [4.0, -1.0, 2.5, 1e9, np.nan])
def test_unseen_categories_are_missing(value):
    model, _ = MODELS["categories"]
    rows = np.where(np.arange(6) == 5, value, CODED)
    if np.isnan(value):
        got = convert(model).predict(rows)
    else:
        with pytest.warns(ExplanationWarning, match=r"column 5 holds categories that the model has not seen. Got"):
            got = convert(model).predict(rows)
    np.testing.assert_array_equal(got, model.predict(rows))


@pytest.mark.parametrize("name", MODELS)
def test_games_and_values(name):
    model, rows = MODELS[name]
    check_reader(model, rows[:5], rows[20:30])
    check_reader(model, rows[:5], n_masks=2)


@pytest.mark.parametrize("name", ["missing", "categories", "binary"])
def test_path_dependent_values_by_brute_force(name):
    model, rows = MODELS[name]
    coded = rows[:2].copy()
    if name == "categories":
        coded[:, 5] = np.select([rows[:2, 5] == v for v in (3.0, 5.0, 9.0)], [0.0, 1.0, 2.0], np.nan)
    check_path_dependent(model, rows[:2], coded)


def test_frames_with_categories():
    frame, y = mixed_frame()
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", **SMALL).fit(frame, y)
    np.testing.assert_array_equal(convert(model).predict(frame), model.predict(frame))
    explanation = explain(model, frame[:9])
    assert explanation.certificate().passed
    assert np.abs(explanation.values[:, 1]).max() > 0.1
    check_reader(model, frame[:5], frame[50:60])
    renamed = frame.assign(city=frame.city.cat.rename_categories({"u": "new"}))
    with pytest.warns(ExplanationWarning, match="column 'city' holds categories that the model has not seen. Got 'new'"):
        assert explain(model, renamed[:20]).certificate().passed


def test_units_names_and_refusals():
    assert convert(MODELS["poisson"][0]).unit == "log of the target"
    assert convert(MODELS["ternary"][0]).output_names == ("0", "1", "2")
    assert convert(MODELS["ternary"][0]).tree_output.tolist() == [0, 1, 2] * 4

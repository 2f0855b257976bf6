"""The prediction that trees are held against is the model's documented call, as the model is now."""

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, HistGradientBoostingRegressor

from exactshap import Explainer
from exactshap.errors import ExactnessError, InputError
from exactshap.frames import as_table
from tree_models import data

xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")
X, HOLES, Y = data()
TERNARY = np.digitize(Y, [0.0, 1.0])
XGB = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1}
LGB = {"n_estimators": 6, "num_leaves": 6, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
BOOSTING = {"n_estimators": 12, "random_state": 0}


def xgb(**settings):
    return xgboost.XGBRegressor(**{**XGB, **settings})


def lgb(**settings):
    return lightgbm.LGBMRegressor(**{**LGB, **settings})


def margin(model, rows):
    return model.predict(rows, output_margin=True)


def raw_score(model, rows):
    return model.predict(rows, raw_score=True)


def decision(model, rows):
    return model.decision_function(rows)


def predict(model, rows):
    return model.predict(rows)


STOPPED = {"eval_set": [(HOLES[100:], -Y[100:])]}
MODELS = {
    "xgboost": (xgb().fit(HOLES, Y), margin),
    "xgboost, no trees": (xgb(n_estimators=0).fit(HOLES, Y), margin),
    "xgboost, margins in training": (xgb().fit(HOLES, Y, base_margin=np.sin(Y)), margin),
    "xgboost, dart": (xgb(booster="dart", rate_drop=0.5, seed=0).fit(HOLES, Y), margin),
    "xgboost, two targets": (xgb().fit(HOLES, np.c_[Y, Y**2]), margin),
    "xgboost, stopped": (xgb(early_stopping_rounds=2).fit(HOLES[:100], Y[:100], **STOPPED, verbose=False), margin),
    "xgboost, missing": (xgb(missing=-999.0).fit(np.nan_to_num(HOLES, nan=-999.0), Y), margin),
    "xgboost, ternary": (xgboost.XGBClassifier(**XGB).fit(HOLES, TERNARY), margin),
    "xgboost, booster": (
        xgb().fit(HOLES, Y).get_booster(),
        lambda model, rows: model.inplace_predict(rows, predict_type="margin"),
    ),
    "lightgbm": (lgb().fit(HOLES, Y), raw_score),
    "lightgbm, zero is missing": (lgb(zero_as_missing=True).fit(HOLES, Y), raw_score),
    "lightgbm, forest": (lgb(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5).fit(HOLES, Y), predict),
    "lightgbm, ternary": (lightgbm.LGBMClassifier(**LGB).fit(HOLES, TERNARY), raw_score),
    "lightgbm, stopped": (
        lgb().fit(HOLES[:100], Y[:100], **STOPPED, callbacks=[lightgbm.early_stopping(2, verbose=False)]),
        raw_score,
    ),
    "lightgbm, booster": (lgb().fit(HOLES, Y).booster_, raw_score),
    "boosting": (GradientBoostingRegressor(loss="huber", **BOOSTING).fit(X, Y), predict),
    "boosting from a median": (
        GradientBoostingRegressor(init=DummyRegressor(strategy="median"), **BOOSTING).fit(X, Y),
        predict,
    ),
    "boosting of three classes": (GradientBoostingClassifier(**BOOSTING).fit(X, TERNARY), decision),
    "histogram boosting": (HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5).fit(HOLES, Y), predict),
}


@pytest.mark.parametrize("name", MODELS)
def test_prediction_is_the_documented_call(name):
    model, documented = MODELS[name]
    reader = Explainer(model, output="all").reader
    rows = X if "boosting" in name and "histogram" not in name else HOLES
    for some in (
        rows,
        rows[:1],
        rows.astype(np.float32),
        np.asfortranarray(rows)[::-2],
        np.where(np.isnan(rows), -999.0, rows),
    ):
        np.testing.assert_array_equal(reader.predict(as_table(some)), documented(model, some))


@pytest.mark.parametrize("family", [xgb, lgb])
def test_frames_of_any_dtype(family):
    frame = pd.DataFrame(HOLES, columns=list("abcde"))
    frame = frame.assign(b=np.arange(len(Y)) + 2**25, c=frame["c"] > 0, d=frame["d"].astype(np.float32))
    model = family().fit(frame, Y)
    documented = margin if family is xgb else raw_score
    np.testing.assert_array_equal(Explainer(model).reader.predict(as_table(frame)), documented(model, frame))


def test_a_model_fitted_to_an_array_takes_frames():
    model, frame = MODELS["xgboost"][0], pd.DataFrame(HOLES, columns=list("abcde"))
    np.testing.assert_array_equal(Explainer(model)(frame).prediction, margin(model, HOLES))


@pytest.mark.parametrize("family", [xgb, lgb, lambda: GradientBoostingRegressor(**BOOSTING)])
def test_a_method_that_was_replaced_is_called(family):
    model = family().fit(X, Y)
    explainer = Explainer(model)
    explainer(X[:1])
    own = model.predict
    model.predict = lambda rows, **settings: own(rows, **settings) + 1.0
    with pytest.raises(ExactnessError, match="has changed since it was read"):
        explainer(X[:1])


def test_a_model_that_goes_on_learning_is_called_as_it_is():
    model = xgb().fit(HOLES, Y)
    explainer = Explainer(model)
    explainer(HOLES[:2])
    model.get_booster().update(xgboost.DMatrix(HOLES, Y), 6)
    with pytest.raises(ExactnessError, match="has changed since it was read"):
        explainer(HOLES[:2])
    np.testing.assert_array_equal(explainer.reader.predict(as_table(HOLES[:2])), margin(model, HOLES[:2]))


def test_early_stops_of_predictions_are_seen():
    model = lightgbm.LGBMClassifier(pred_early_stop=True, pred_early_stop_margin=0.01, pred_early_stop_freq=1, **LGB)
    model.fit(HOLES, Y > 0)
    np.testing.assert_array_equal(Explainer(model).reader.predict(as_table(HOLES)), raw_score(model, HOLES))
    with pytest.raises(ExactnessError, match="do not add up"):
        Explainer(model)(HOLES)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_cells_that_the_model_refuses_are_named(value):
    rows = X.copy()
    rows[150, 2] = value
    messages = set()
    for n_jobs in (1, 2):
        with pytest.raises(InputError, match="row 150, column 2") as raised:
            Explainer(MODELS["boosting"][0], n_jobs=n_jobs)(rows)
        messages.add(str(raised.value))
    assert len(messages) == 1
    with pytest.raises(InputError, match=r"columns|features"):
        Explainer(MODELS["boosting"][0])(X[:, :4])

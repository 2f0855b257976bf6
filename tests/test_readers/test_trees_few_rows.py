"""Few rows of a booster: the direct call gives the documented call's bits, or is not taken."""

import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from exactshap import Explainer
from exactshap.errors import ExactnessError
from exactshap.frames import as_table
from exactshap.readers import _own_prediction
from exactshap.readers.trees import _xgboost_call, xgboost_prediction
from exactshap.trees import convert
from few_rows import check_bits
from tree_models import data, mixed_frame

xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")
X, HOLES, Y = data()
CODES = np.c_[HOLES[:, :2], np.arange(len(Y)) % 5]
OF_CODES = xgboost.XGBRegressor(n_estimators=3, n_jobs=1, enable_categorical=True, feature_types=["q", "q", "c"])
SMALL = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1}
QUIET = {"n_estimators": 6, "num_leaves": 6, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}


def xgb(**settings):
    return xgboost.XGBRegressor(**{**SMALL, **settings})


def stopped(model, **settings):
    return model.fit(HOLES[:100], Y[:100], eval_set=[(HOLES[100:], -Y[100:])], **settings)


XGBOOST = {
    "plain": xgb().fit(HOLES, Y),
    "depth 10": xgb(max_depth=10).fit(HOLES, Y),
    "no trees": xgb(n_estimators=0).fit(HOLES, Y),
    "base score": xgb(base_score=0.25).fit(HOLES, Y),
    "margins in training": xgb().fit(HOLES, Y, base_margin=np.sin(Y)),
    "dart": xgb(booster="dart", rate_drop=0.5, seed=0).fit(HOLES, Y),
    "parallel": xgb(num_parallel_tree=2, subsample=0.5).fit(HOLES, Y),
    "forest": xgboost.XGBRFRegressor(**SMALL).fit(HOLES, Y),
    "two targets": xgb().fit(HOLES, np.c_[Y, Y**2]),
    "vector leaf": xgb(multi_strategy="multi_output_tree").fit(HOLES, np.c_[Y, Y**2]),
    "stopped": stopped(xgb(early_stopping_rounds=2, n_estimators=20), verbose=False),
    "missing": xgb(missing=-999.0).fit(np.nan_to_num(HOLES, nan=-999.0), Y),
    "codes": OF_CODES.fit(CODES, Y),
    "ternary": xgboost.XGBClassifier(**SMALL).fit(HOLES, np.digitize(Y, [0.0, 1.0])),
    "ranking": xgboost.XGBRanker(**SMALL).fit(HOLES, np.digitize(Y, [0.0, 1.0]), qid=np.repeat(np.arange(8), 20)),
    "booster": xgb().fit(HOLES, Y).get_booster(),
}
for name in ("reg:logistic", "reg:tweedie", "count:poisson", "reg:absoluteerror", "binary:logistic", "binary:hinge"):
    XGBOOST[name] = xgb(objective=name).fit(HOLES, Y > 0)
LIGHTGBM = {
    "plain": lightgbm.LGBMRegressor(**QUIET).fit(HOLES, Y),
    "zero is missing": lightgbm.LGBMRegressor(zero_as_missing=True, **QUIET).fit(HOLES, Y),
    "forest": lightgbm.LGBMRegressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5, **QUIET).fit(HOLES, Y),
    "codes": lightgbm.LGBMRegressor(**QUIET).fit(CODES, Y, categorical_feature=[2]),
    "ternary": lightgbm.LGBMClassifier(**QUIET).fit(HOLES, np.digitize(Y, [0.0, 1.0])),
    "ranking": lightgbm.LGBMRanker(**QUIET).fit(HOLES, np.digitize(Y, [0.0, 1.0]), group=[80, 80]),
    "stopped": stopped(
        lightgbm.LGBMRegressor(**{**QUIET, "n_estimators": 20}), callbacks=[lightgbm.early_stopping(2, verbose=False)]
    ),
    "booster": lightgbm.LGBMRegressor(**QUIET).fit(HOLES, Y).booster_,
    "parameters set": lightgbm.LGBMRegressor().set_params(**QUIET).fit(HOLES, Y),
}
MODELS = {
    f"{library} {name}": model for library, of in (("xgboost", XGBOOST), ("lightgbm", LIGHTGBM)) for name, model in of.items()
}


def own_margin(model, background=None):
    return Explainer(model, background, output="all").reader._own_margin


@pytest.mark.parametrize("name", MODELS)
def test_bits(name):
    background = HOLES[:9] if "vector" in name else None  # XGBoost 2 keeps no training weights in such leaves
    own, rows = own_margin(MODELS[name], background), CODES if "codes" in name else HOLES
    own(as_table(rows[:1]))
    for n in (1, 40, 3, len(rows)):  # growing and shrinking
        check_bits(own, rows[:n])
        check_bits(own, rows[:n].astype(np.float32))
    check_bits(own, np.asfortranarray(rows)[::-2])
    check_bits(own, np.where(np.isnan(rows), -999.0, rows))
    if "codes" not in name:
        frame = pd.DataFrame(rows, columns=list("abcde"))
        check_bits(own, frame)
        check_bits(own, frame.assign(b=np.arange(len(rows)) + 2**25, c=frame["c"] > 0, d=frame["d"].astype(np.float32)))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_frames_with_categories_are_left_to_the_library(library):
    frame, y = mixed_frame()
    model = xgboost.XGBRegressor(enable_categorical=True, **SMALL) if library == "xgboost" else lightgbm.LGBMRegressor(**QUIET)
    own = own_margin(model.fit(frame, y))
    assert own._cells(as_table(frame[:2])) is None
    np.testing.assert_array_equal(own(as_table(frame[:9])), own._documented(own._model, frame[:9]))


def test_a_model_that_goes_on_learning_is_asked_as_it_is():
    model = xgb().fit(HOLES, Y)
    own, before = own_margin(model), model.predict(HOLES[:2], output_margin=True)
    check_bits(own, HOLES[:2])
    model.get_booster().update(xgboost.DMatrix(HOLES, Y), 6)
    check_bits(own, HOLES[:2])
    assert not np.array_equal(own(as_table(HOLES[:2])), before)
    model.get_booster().set_attr(best_iteration="1")
    check_bits(own, HOLES[:2])
    model.fit(HOLES, -Y)
    check_bits(own, HOLES[:2])


@pytest.mark.parametrize("model", [XGBOOST["ternary"], LIGHTGBM["ternary"]], ids=["xgboost", "lightgbm"])
def test_pickles_and_threads(model):
    explainer = Explainer(model, output="all")
    wanted = explainer(HOLES).prediction
    copied = pickle.loads(pickle.dumps(explainer))
    assert copied.reader._own_margin._compared is None
    np.testing.assert_array_equal(copied(HOLES[:3]).prediction, wanted[:3])
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: explainer.reader.predict(as_table(HOLES[: i % 7 + 1])), range(400)))
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(part, wanted[: i % 7 + 1])


def _in_child(connection, explainer):
    connection.send(explainer(HOLES[:3]).values)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks():
    explainer = Explainer(XGBOOST["plain"])
    wanted = explainer(HOLES[:3]).values
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_in_child, args=(there, explainer))
    child.start()
    assert here.poll(30)
    np.testing.assert_array_equal(here.recv(), wanted)
    child.join()


@pytest.mark.parametrize("family", [xgb, lambda: lightgbm.LGBMRegressor(**QUIET)], ids=["xgboost", "lightgbm"])
def test_a_method_that_was_replaced_is_asked(family):
    model = family().fit(HOLES, Y)
    explainer = Explainer(model)
    explainer(HOLES[:1])
    own = model.predict
    model.predict = lambda rows, **settings: own(rows, **settings) + 1.0
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(HOLES[:1])


def test_a_release_without_the_call_is_asked_by_its_documented_one(monkeypatch):
    def missing():
        raise AttributeError("XGBoosterPredictFromDense")

    monkeypatch.setattr(_xgboost_call, "_library", missing)
    model = XGBOOST["plain"]
    own = own_margin(model)
    np.testing.assert_array_equal(own(as_table(HOLES[:2])), model.predict(HOLES[:2], output_margin=True))
    assert not own._agrees(own._direct)


def test_other_bits_are_not_taken():
    own = own_margin(XGBOOST["plain"])
    own._direct = lambda model, rows: np.nextafter(own._documented(model, rows), np.float32(np.inf))
    np.testing.assert_array_equal(own(as_table(HOLES[:2])), XGBOOST["plain"].predict(HOLES[:2], output_margin=True))
    assert not own._agrees(own._direct)


def test_early_stops_of_predictions_are_left_to_the_estimator():
    model = lightgbm.LGBMClassifier(pred_early_stop=True, pred_early_stop_margin=0.01, pred_early_stop_freq=1, **QUIET)
    own = own_margin(model.fit(HOLES, Y > 0))
    assert own._direct(model, HOLES[:2]) is None
    np.testing.assert_array_equal(own(as_table(HOLES[:9])), model.predict(HOLES[:9], raw_score=True))


def test_of_an_objective_one_model_speaks_for_the_others(monkeypatch):
    monkeypatch.setattr(_own_prediction, "_of_kinds", {})
    rows, own = as_table(HOLES[:3]), xgboost.XGBRegressor.predict
    names = ["plain", "depth 10", "reg:absoluteerror"]
    first, other, third = (xgboost_prediction(XGBOOST[name], convert(XGBOOST[name])) for name in names)
    asked = []
    for number, one in enumerate((first, other, third), start=1):
        monkeypatch.setattr(one, "_documented", lambda model, rows, number=number: asked.append(number) or own(model, rows))
    np.testing.assert_array_equal(first(rows), XGBOOST["plain"].predict(HOLES[:3]))
    np.testing.assert_array_equal(other(rows), XGBOOST["depth 10"].predict(HOLES[:3]))
    assert asked == [1], "one trial for both"
    np.testing.assert_array_equal(third(rows), XGBOOST["reg:absoluteerror"].predict(HOLES[:3]))
    assert asked == [1, 3], "another objective may have another link"
    monkeypatch.setattr(xgboost.XGBRegressor, "predict", lambda self, rows, **settings: own(self, rows, **settings) + 1.0)
    other(rows)
    assert asked == [1, 3, 2], "the class' method is another one now: it is asked itself"


def test_a_margin_that_is_no_prediction_is_not_taken(monkeypatch):
    monkeypatch.setattr(_own_prediction, "_of_kinds", {})
    model = XGBOOST["count:poisson"]
    own = xgboost_prediction(model, convert(model))
    np.testing.assert_array_equal(own(as_table(HOLES[:3])), model.predict(HOLES[:3]))
    assert not own._agrees(own._direct)

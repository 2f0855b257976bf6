"""LightGBM's linear trees: its own predictions of all hybrids, missing cells, files, probabilities; what is refused."""

import pickle

import numpy as np
import pytest

from exactshap import Explainer, decompose_r2, explain
from exactshap.errors import InputError, UnknownNameError, UnsupportedStructureError
from exactshap.testing import check_reader
from exactshap.trees import convert, loads
from oracles import interventional_values
from tolerances import assert_close
from tree_models import data

lightgbm = pytest.importorskip("lightgbm")
X, HOLES, Y = data()
SMALL = {"n_estimators": 4, "num_leaves": 6, "min_child_samples": 8, "linear_tree": True, "verbose": -1, "n_jobs": 1}
MODELS = {
    "plain": lightgbm.LGBMRegressor(**SMALL).fit(X, Y),
    "holes": lightgbm.LGBMRegressor(**SMALL).fit(HOLES, Y),
    "ridge": lightgbm.LGBMRegressor(linear_lambda=5.0, **SMALL).fit(HOLES, Y),
    "forest": lightgbm.LGBMRegressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5, **SMALL).fit(HOLES, Y),
    "dart": lightgbm.LGBMRegressor(boosting_type="dart", drop_rate=0.5, **SMALL).fit(HOLES, Y),
    "poisson": lightgbm.LGBMRegressor(objective="poisson", **SMALL).fit(HOLES, np.abs(Y)),
    "two classes": lightgbm.LGBMClassifier(**SMALL).fit(HOLES, Y > 0),
    "three classes": lightgbm.LGBMClassifier(**SMALL).fit(HOLES, np.digitize(Y, [0.0, 1.0])),
    "category": lightgbm.LGBMRegressor(min_data_per_group=1, **SMALL).fit(
        np.c_[HOLES[:, :4], np.arange(len(X)) % 4], Y + np.arange(len(X)) % 4, categorical_feature=[4]
    ),
    "one leaf": lightgbm.LGBMRegressor(**{**SMALL, "min_child_samples": 1000}).fit(X, Y),
}


def score(name, rows):
    model, ensemble = MODELS[name], convert(MODELS[name])
    own = model.predict(rows, raw_score=True)
    return own if ensemble.boosted else own / ensemble.trees.n_trees


@pytest.mark.parametrize("name", MODELS)
def test_margins(name):
    for rows in (X, HOLES, np.where(np.random.default_rng(1).random(X.shape) < 0.2, 0.0, HOLES)):
        own = score(name, rows)
        assert_close(convert(MODELS[name]).predict(rows), own, np.abs(own).max() + 10.0, 12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("background", [X[:7], HOLES[:7]], ids=["complete", "missing"])
def test_readers_hold(name, background):
    check_reader(MODELS[name], HOLES[20:26], background)
    check_reader(MODELS[name], X[20:23], background, groups={"pair": [0, 3]})


def test_baseline_weights_and_groups():
    background, weights = HOLES[:6], np.arange(6.0)
    explanation = Explainer(MODELS["holes"], background, background_weights=weights)(X[9:10])
    parts = [explain(MODELS["holes"], X[9:10], background[[m]], value_function="baseline").values for m in range(6)]
    assert_close(explanation.values, np.average(parts, axis=0, weights=weights), 20.0, 100, 5)
    joined = explain(MODELS["holes"], X[9:10], background, groups={"all": list(range(5))})
    assert_close(joined.values[:, 0], joined.prediction - joined.baseline, 20.0, 100)


def test_a_missing_cell_takes_the_constant_value():
    """LightGBM's rule: the function of a leaf is left out where a column of it is missing."""
    model = MODELS["holes"]
    gone = X[:3].copy()
    gone[:, 0] = np.nan
    assert np.abs(model.predict(gone) - convert(model).predict(gone)).max() < 1e-12
    assert_close(
        explain(model, gone, X[:9]).values.sum(axis=1), model.predict(gone) - model.predict(X[:9]).mean(), 20.0, 100, 5
    )


def test_batches_files_and_pickles():
    explainer = Explainer(MODELS["holes"], HOLES[:40])
    batch = explainer(HOLES)
    assert (explainer(HOLES[50:51]).values == batch.values[50:51]).all()
    assert (pickle.loads(pickle.dumps(explainer))(HOLES).values == batch.values).all()
    loaded = loads(MODELS["holes"].booster_.model_to_string().encode())
    assert_close(explain(loaded, HOLES, HOLES[:40]).values, batch.values, 20.0, 100, 5)
    assert "linear leaves" in batch.method
    booster = MODELS["holes"].booster_
    assert (explain(booster, HOLES[:5], HOLES[:40]).values == batch.values[:5]).all()


def test_the_dump_is_compared_with_the_functions():
    verification = Explainer(MODELS["three classes"], HOLES[:9]).verify(HOLES[20:24])
    assert verification.passed
    assert "of nodes to the library's dump" in str(verification)


@pytest.mark.parametrize("name", ["two classes", "three classes"])
def test_probabilities_of_all_coalitions(name):
    """Five players: all coalitions are enumerated from the scores of hybrids."""
    rows, background = HOLES[30:32], HOLES[:9]
    explanation = explain(MODELS[name], rows, background, output="probability")
    for o in range(1 if name == "two classes" else 3):
        column = o + 1 if name == "two classes" else o
        expected = interventional_values(lambda cells, c=column: MODELS[name].predict_proba(cells)[:, c], rows, background)
        got = explanation.values if name == "two classes" else explanation.values[..., o]
        assert_close(got, expected, 5.0, 100, 5)


def test_rates_of_joined_players():
    rows, background = HOLES[30:32], HOLES[:9]
    explanation = explain(MODELS["poisson"], rows, background, output="response")
    expected = interventional_values(MODELS["poisson"].predict, rows, background)
    assert_close(explanation.values, expected, 20.0, 100, 5)


def test_refusals():
    model = MODELS["plain"]
    infinite = X[:2].copy()
    infinite[1] = np.inf
    with pytest.raises(InputError, match=r"`X` holds an infinite value that leaves multiply \(row 1"):
        explain(model, infinite, X[:9])
    with pytest.raises(InputError, match="`background` holds an infinite value that leaves multiply"):
        explain(model, X[:2], infinite)
    for settings in ({}, {"background": X[:9], "value_function": "path_dependent"}):
        with pytest.raises(UnsupportedStructureError, match="cover ratios do not say what an absent column's value is there"):
            explain(model, X[:2], **settings)
    with pytest.raises(UnknownNameError, match="functional"):
        explain(model, X[:2], X[:9], value_function="functional")
    with pytest.raises(UnsupportedStructureError, match="The game of R2 is made of constant ones"):
        decompose_r2(model, X, Y)

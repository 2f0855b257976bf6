"""A file is the model that its library's estimator makes of it: rounds, weights, links and formats, against live models."""

import contextlib
import functools
import json
import operator
import re
import warnings
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import pandas
import pytest
import xgboost

import reference_ubj
from command import run
from exactshap import Explainer, explain
from exactshap.cli import main
from exactshap.errors import ExplanationWarning, ModelFormatError, UnsupportedStructureError
from exactshap.trees import convert, load, loads
from exactshap.trees.formats import _xgboost_layout
from exactshap.trees.formats._ubj import read_ubj
from exactshap.trees.formats.xgboost import from_document
from tolerances import FLOAT32_MARGIN, assert_close

FOLDER = Path(__file__).parents[1] / "data" / "trees"
RNG = np.random.default_rng(5)
X = np.round(RNG.normal(size=(160, 4)), 3)
Y = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * RNG.normal(size=160)
CLASSES = np.digitize(Y, [-0.7, 0.7])
HERE, THERE = slice(0, 80), slice(80, 160)
STOPPING = {"n_estimators": 60, "max_depth": 3, "learning_rate": 0.6, "early_stopping_rounds": 3}


def close(found, expected):
    assert np.shape(found) == np.shape(expected)
    assert np.abs(found - expected).max() <= FLOAT32_MARGIN * max(1.0, np.abs(expected).max())


# --- XGBoost ----------------------------------------------------------------------------------------------------------


def stopped(kind, y, **settings):
    """Return an estimator of XGBoost that stopped early, some rounds after its best."""
    model = getattr(xgboost, kind)(**{**STOPPING, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[HERE], y[HERE], eval_set=[(X[THERE], y[THERE])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    return model


STOPPED = {
    "regression": ("XGBRegressor", Y, {}),
    "dart": ("XGBRegressor", Y, {"booster": "dart", "rate_drop": 0.2}),
    "forest": ("XGBRegressor", Y, {"num_parallel_tree": 3, "subsample": 0.7}),
    "vector leaves": ("XGBRegressor", np.c_[Y, Y**2], {"multi_strategy": "multi_output_tree"}),
    "poisson": ("XGBRegressor", np.exp(Y), {"objective": "count:poisson"}),
    "two classes": ("XGBClassifier", (Y > 0).astype(int), {}),
    "three classes": ("XGBClassifier", CLASSES, {}),
}


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("name", STOPPED)
def test_early_stopped_files_predict_as_the_estimator_that_loads_them(name, suffix, tmp_path):
    kind, y, settings = STOPPED[name]
    model = stopped(kind, y, **settings)
    path = tmp_path / f"model.{suffix}"
    model.save_model(path)
    again = type(model)()
    again.load_model(path)
    found = load(path)
    close(found.predict(X), again.predict(X, output_margin=True))
    booster, rounds = model.get_booster(), model.get_booster().num_boosted_rounds()
    assert found.reading == f"the first {model.best_iteration + 1} of {rounds} boosting rounds (best_iteration)"
    assert found.reading in explain(found, X[:3], X[80:90]).method
    for n_stages in (1, rounds, rounds + 7):
        chosen = (0, min(n_stages, rounds))
        said = f"above the number of boosting rounds. Got n_stages={n_stages}, the file holds {rounds}. All {rounds} are read."
        with pytest.warns(ExplanationWarning, match=said) if n_stages > rounds else contextlib.nullcontext():
            found = load(path, n_stages=n_stages)
        close(found.predict(X), booster.inplace_predict(X, predict_type="margin", iteration_range=chosen))
        assert found.reading == ("" if n_stages >= rounds else f"the first 1 of {rounds} boosting rounds (n_stages)")
    assert found.reading not in ("", None) or "rounds" not in explain(found, X[:2], X[80:90]).method
    close(convert(model).predict(X), model.predict(X, output_margin=True))
    close(convert(booster).predict(X), booster.inplace_predict(X, predict_type="margin"))
    for live in (model, booster):
        found = explain(live, X[:3], X[80:90])
        assert found.certificate().passed
        assert ("best_iteration" in found.method) == (live is model)


def test_rounds_beyond_the_file_are_refused():
    """The library's estimator cannot predict with them either."""
    content = json.loads((FOLDER / "xgboost34_early.json").read_text())
    content["learner"]["attributes"]["best_iteration"] = "99"
    text = json.dumps(content).encode()
    with pytest.raises(ModelFormatError, match=r"best_iteration is 99\. .* 7 boosting rounds\. Say how many with n_stages="):
        loads(text)
    assert loads(text, n_stages=5).trees.n_trees == 5
    content["learner"]["attributes"]["best_iteration"] = "many"
    with pytest.raises(ModelFormatError, match="best_iteration must be a whole number"):
        loads(json.dumps(content).encode())


def test_the_command_says_which_rounds_it_reads(tmp_path, monkeypatch, capsys):
    model = stopped("XGBRegressor", Y)
    rounds = model.get_booster().num_boosted_rounds()
    monkeypatch.chdir(tmp_path)
    model.save_model("model.json")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    frame.to_csv("rows.csv", index=False)
    frame.assign(y=Y).to_csv("target.csv", index=False)
    best = f"the first {model.best_iteration + 1} of {rounds} boosting rounds (best_iteration)"
    of_rows = [[name, "model.json", "rows.csv"] for name in ("explain", "check", "report")]
    commands = [*of_rows, ["r2", "model.json", "target.csv", "--target", "y"]]
    for command in commands:
        for arguments, said in [([], best), (["--n-stages", "2"], f"the first 2 of {rounds} boosting rounds (n_stages)")]:
            assert not run(*command, *arguments)
            assert f"model.json: {said}; --n-stages reads another number" in capsys.readouterr().out
        with pytest.raises(SystemExit):
            main([*command, "--n-stages", str(rounds)])
        assert "boosting rounds" not in capsys.readouterr().out
        assert not run(*command, "--n-stages", "999")
        beyond = f"--n-stages is above the number of boosting rounds. Got --n-stages 999, the file holds {rounds}"
        assert beyond in capsys.readouterr().err
    (tmp_path / "model.skops").write_bytes(b"")
    assert run("explain", "model.skops", "rows.csv", "--n-stages", "2")
    assert "--n-stages is for the files of boosters. Got model.skops" in re.sub(r"\s+", " ", capsys.readouterr().err)


# --- LightGBM: what is saved is what predicts --------------------------------------------------------------------------


def lightgbm_stopped(**settings):
    data, other = lightgbm.Dataset(X[HERE], Y[HERE]), lightgbm.Dataset(X[THERE], Y[THERE])
    quiet = {"verbose": -1, "num_leaves": 5, "learning_rate": 0.6, **settings}
    return lightgbm.train(
        quiet, data, 60, valid_sets=[other], callbacks=[lightgbm.early_stopping(3, verbose=False)], keep_training_booster=True
    )


@pytest.mark.parametrize("saved", [None, -1, 2])
def test_lightgbm_files_hold_the_rounds_that_their_booster_uses(saved, tmp_path):
    live = lightgbm_stopped()
    assert live.best_iteration < live.num_trees()
    path = tmp_path / "model.txt"
    live.save_model(path, num_iteration=saved)
    again = lightgbm.Booster(model_file=path)
    found = load(path)
    assert found.trees.n_trees == again.num_trees() == {None: live.best_iteration, -1: live.num_trees(), 2: 2}[saved]
    assert_close(found.predict(X), again.predict(X), np.abs(Y).max(), 60)
    assert found.reading == ""
    assert_close(load(path, n_stages=1).predict(X), again.predict(X, num_iteration=1), np.abs(Y).max(), 60)
    assert "the first 1 of" in load(path, n_stages=1).reading


def test_live_lightgbm_models_stop_at_their_best_round(tmp_path):
    live = lightgbm_stopped()
    model = lightgbm.LGBMRegressor(n_estimators=60, learning_rate=0.6, num_leaves=5, verbose=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[HERE], Y[HERE], eval_set=[(X[THERE], Y[THERE])], callbacks=[lightgbm.early_stopping(3, verbose=False)])
    for fitted in (live, model):
        assert_close(convert(fitted).predict(X), fitted.predict(X), np.abs(Y).max(), 60)
        assert explain(fitted, X[:3], X[80:90]).certificate().passed
    model.booster_.save_model(tmp_path / "model.txt")
    assert_close(load(tmp_path / "model.txt").predict(X), model.predict(X), np.abs(Y).max(), 60)


# --- CatBoost: what is left after shrinking is what is saved ------------------------------------------------------------


@pytest.mark.parametrize("shrink", ["best model", "no", "by hand"])
def test_catboost_files_hold_the_trees_that_their_model_uses(shrink, tmp_path):
    quiet = {"iterations": 60, "learning_rate": 0.9, "depth": 3, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(early_stopping_rounds=3, use_best_model=shrink == "best model", **quiet)
    model.fit(X[HERE], Y[HERE], eval_set=(X[THERE], Y[THERE]))
    if shrink == "by hand":
        model.shrink(2)
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json")
    again = catboost.CatBoostRegressor().load_model(str(path), format="json")
    found = load(path)
    assert found.trees.n_trees == model.tree_count_
    assert (shrink == "no") == (model.tree_count_ > model.best_iteration_ + 1)
    for live in (model, again):
        assert_close(found.predict(X), live.predict(X), np.abs(Y).max(), 60)
    assert_close(convert(model).predict(X), model.predict(X), np.abs(Y).max(), 60)
    assert_close(load(path, n_stages=1).predict(X), model.predict(X, ntree_end=1), np.abs(Y).max(), 60)


# --- XGBoost's newer formats ------------------------------------------------------------------------------------------


def content_of(name):
    data = (FOLDER / name).read_bytes()
    return json.loads(data) if name.endswith("json") else reference_ubj.read_ubj(data)


NEWER = sorted(path.name for path in FOLDER.glob("xgboost34_*") if "expected" not in path.name and "gblinear" not in path.name)


@pytest.fixture
def unwarned():
    _xgboost_layout._warn_of_newer.cache_clear()
    yield
    _xgboost_layout._warn_of_newer.cache_clear()


@pytest.mark.parametrize("name", NEWER)
def test_a_newer_minor_format_is_read_with_one_warning(name, unwarned):
    content = content_of(name)
    expected = from_document(content).trees
    content["version"] = [3, 9, 0]
    with pytest.warns(ExplanationWarning, match=r"XGBoost format 3.9 is newer than 3.4.* All its entries are known") as caught:
        again, twice = from_document(content).trees, from_document(content).trees
    assert len(caught) == 1
    for trees in (again, twice):
        np.testing.assert_array_equal(trees.value, expected.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_document(content, live=True)  # which has predictions of its own to be held against


MODEL = ["learner", "gradient_booster", "model"]
PLACES = {  # what messages call a part of a file, and the way to it
    **{"": [], "learner": MODEL[:1], "learner_model_param": ["learner", "learner_model_param"], "gradient_booster": MODEL[:2]},
    **{"model": MODEL, "gbtree_model_param": [*MODEL, "gbtree_model_param"], "cats": [*MODEL, "cats"]},
    **{"trees": [*MODEL, "trees", 1], "tree_param": [*MODEL, "trees", 1, "tree_param"]},
}


@pytest.mark.parametrize("place", PLACES)
def test_unknown_entries_of_newer_formats_are_refused_by_name(place, unwarned):
    content = content_of("xgboost34_early.json")
    content["version"] = [3, 9, 0]
    functools.reduce(operator.getitem, PLACES[place], content)["leaf_twist"] = [1.0]
    name = f"{place}.leaf_twist".lstrip(".")
    for live in (False, True):
        with pytest.raises(ModelFormatError, match=f"XGBoost format 3.9 has an entry '{name}' that format 3.4 does not have"):
            from_document(content, live=live)


def test_unknown_entries_are_found_in_bytes_too(unwarned):
    data = (FOLDER / "xgboost34_multiclass.ubj").read_bytes()
    assert data.count(b"loss_changes") == 6
    content = read_ubj(data.replace(b"loss_changes", b"leaf_twister"))
    content["version"] = [3, 9, 0]
    with pytest.raises(ModelFormatError, match=r"has an entry 'trees.leaf_twister'"):
        from_document(content)


def test_dropout_weights_of_format_3_4_count():
    """From 3.4 on the tree booster holds them; there is no booster of the name dart."""
    content = content_of("xgboost34_dart.ubj")
    booster = content["learner"]["gradient_booster"]
    assert booster["name"] == "gbtree"
    weights = np.asarray(booster["model"]["weight_drop"])
    assert (weights < 1.0).any()
    booster["model"]["weight_drop"] = [0.0, 0.0, 0.0, 0.0]
    trees = from_document(content).trees
    assert not trees.value.any()
    booster["model"]["weight_drop"] = [1.0]
    with pytest.raises(ModelFormatError, match="weight_drop must hold 4 numbers"):
        from_document(content)


def test_other_objectives_boosters_and_rounds_are_refused():
    content = content_of("xgboost34_early.json")
    content["learner"]["objective"]["name"] = "reg:twisted"
    with pytest.raises(ModelFormatError, match=r"This objective of XGBoost is not known\. Got 'reg:twisted'"):
        from_document(content)
    with pytest.raises(UnsupportedStructureError, match="gblinear booster has no trees"):
        load(FOLDER / "xgboost34_gblinear.json")


def test_expectiles_cannot_cross():
    """Margins of XGBoost's expectile loss are steps: the values add up to them, and the unit says so."""
    model = load(FOLDER / "xgboost34_expectile.json")
    assert model.unit == "target of the lowest expectile, then the inverse softplus of each step to the next"
    assert Explainer(model, X[80:90])(X[:3]).certificate().passed

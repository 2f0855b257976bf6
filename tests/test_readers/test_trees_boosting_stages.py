"""Gradient boosting of scikit-learn on threads: tree by tree with the documented method's bits, or by that method."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactshap import Explainer
from exactshap._runtime import threads
from exactshap._runtime.crew import map_with_help
from exactshap.errors import ExactnessError, InputError
from exactshap.frames import as_table
from exactshap.readers.trees import _boosting_stages
from exactshap.trees import convert
from few_rows import check_bits
from tree_models import data

X, _, Y = data(n=400)
TERNARY = np.digitize(Y, [0.0, 1.0])
SMALL = {"n_estimators": 12, "random_state": 0}
FIELDS = ("values", "baseline", "prediction", "residual", "tolerance")


def regressor(**settings):
    return GradientBoostingRegressor(**{**SMALL, **settings})


def classifier(**settings):
    return GradientBoostingClassifier(**{**SMALL, **settings})


MODELS = {
    **{loss: regressor(loss=loss).fit(X, Y) for loss in ("squared_error", "absolute_error", "huber", "quantile")},
    "from zero": regressor(init="zero").fit(X, Y),
    "from a mean": regressor(init=DummyRegressor(strategy="median")).fit(X, Y),
    "subsample": regressor(subsample=0.5, max_features=2).fit(X, Y),
    "rate": regressor(learning_rate=1, max_depth=6).fit(X, Y),
    "stopped": regressor(n_iter_no_change=2, tol=0.1).fit(X, Y),
    "one leaf": regressor(min_samples_leaf=300).fit(X, Y),
    "single precision": regressor().fit(X.astype(np.float32), Y),
    "binary": classifier().fit(X, Y > 0.5),
    "exponential": classifier(loss="exponential").fit(X, Y > 0.5),
    "ternary": classifier().fit(X, TERNARY),
    "ternary from zero": classifier(init="zero").fit(X, TERNARY),
}


@pytest.fixture(autouse=True)
def of_few_rows(monkeypatch):
    for place, name, value in ((threads, "SECONDS", 0.0), (threads, "LEAST", 0.0), (_boosting_stages, "MANY", 1)):
        monkeypatch.setattr(place, name, value)


def own_margin(model):
    """Return the prediction of a model, all of its outputs."""
    return Explainer(model, output="all").reader._own_margin.args[1]


def in_company(function):
    """Return ``function()`` as a task of two that threads share."""
    return next(iter(map_with_help(lambda call: call(), [function, int], 2)))


def is_direct(model, rows, own=None):
    """Say whether trees are asked for these rows one by one, where other threads work; the bits are the same anyway."""
    own, calls = own or own_margin(model), []
    documented, own._documented = own._documented, lambda *given: calls.append(1) or documented(*given)
    own._compared = own._compared or (own._tried(own._direct) and own._methods()) if own._direct else None
    calls.clear()
    found = in_company(lambda: own(as_table(rows)))
    own._documented = documented
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(found, documented(model, rows))
    return not calls


@pytest.mark.parametrize("name", MODELS)
def test_bits(name):
    def compare():
        for rows in (X, X[:3], X.astype(np.float32), np.asfortranarray(X)[::-2], 100.0 * X):
            check_bits(own, rows)

    own = own_margin(MODELS[name])
    in_company(compare)


@pytest.mark.parametrize("name", ["squared_error", "ternary"])
@pytest.mark.parametrize("background", [None, X[:9]])
def test_any_number_of_threads(name, background, monkeypatch):
    model, asked, original = MODELS[name], [], _boosting_stages._tree_by_tree
    monkeypatch.setattr(_boosting_stages, "_tree_by_tree", lambda own, rows: asked.append(len(rows)) or original(own, rows))
    one = Explainer(model, background, output="all")(X)
    assert not asked, "one thread asks the documented method"
    for n_jobs in (2, 3):
        for block_rows in (4096, 50):  # pieces of a block, and blocks
            explainer = Explainer(model, background, output="all", n_jobs=n_jobs)
            explainer.reader.block_rows = block_rows
            for _ in range(2):  # the pace is unknown, and known
                asked.clear()
                found = explainer(X)
                assert len([n for n in asked if n != _boosting_stages.TRIED]) > 1
                for field in FIELDS:
                    np.testing.assert_array_equal(getattr(found, field), getattr(one, field))


def test_frames():
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        b=np.arange(len(X)) + 2**25, c=X[:, 2] > 0, d=X[:, 3].astype(np.float32)
    )
    model = regressor().fit(frame, Y)
    assert is_direct(model, frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names
        assert not is_direct(model, X)
        assert not is_direct(MODELS["huber"], frame)
    assert not is_direct(model, frame.assign(a=frame["a"].astype("Float64"))), "of extension types"
    if np.dtype(np.longdouble).itemsize > 8:
        assert not is_direct(model, frame.assign(a=frame["a"].astype(np.longdouble)))


def test_few_rows_and_a_thread_alone_take_the_documented_method():
    model, calls = MODELS["huber"], []
    own = own_margin(model)
    own(as_table(X))
    assert own._compared is None, "nothing was tried"
    direct, own._direct = own._direct, lambda *given: calls.append(1) or direct(*given)
    for enough in (False, True):
        own._shared_from = len(X) + 1 - enough
        in_company(lambda: own(as_table(X)))
        assert bool(calls) == enough
    calls.clear()
    np.testing.assert_array_equal(own(as_table(X)), model.predict(X))
    assert not calls


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_what_the_model_refuses_is_refused_as_before(value):
    rows = X.copy()
    rows[390, 2] = value
    messages = []
    for n_jobs in (1, 2):
        for _ in range(2):
            with pytest.raises(InputError) as raised:
                Explainer(MODELS["huber"], n_jobs=n_jobs)(rows)
            messages.append(str(raised.value))
    assert len({*messages}) == 1
    assert "row 390, column 2" in messages[0]
    with pytest.raises(InputError, match=r"columns|features"):
        Explainer(MODELS["huber"], n_jobs=2)(X[:, :4])


def test_a_model_is_asked_as_it_is_now():
    model = regressor(warm_start=True).fit(X, Y)
    own = own_margin(model)
    assert is_direct(model, X, own)
    model.learning_rate = 0.37
    assert is_direct(model, X, own)
    model.set_params(n_estimators=15).fit(X, Y)
    assert is_direct(model, X, own)
    model.estimators_ = model.estimators_[:7]
    assert is_direct(model, X, own)
    model.init_ = DummyRegressor(strategy="constant", constant=3.0).fit(X, Y)
    assert is_direct(model, X, own)
    model.init_ = RandomForestRegressor(3).fit(X, Y)
    assert is_direct(model, X, own), "which its own method asks"
    model.set_params(warm_start=False).fit(X, -Y)
    assert is_direct(model, X, own)
    model.estimators_[2, 0] = RandomForestRegressor(1).fit(X, Y).estimators_[0]
    assert is_direct(model, X, own)
    assert is_direct(pickle.loads(pickle.dumps(model)), X)


def test_trees_of_another_kind_are_left_to_the_model():
    model = regressor().fit(X, Y)
    own = own_margin(model)
    wide = regressor().fit(np.c_[X, X], Y)
    rows = X.astype(np.float32)
    assert own._direct(model, rows) is not None
    model.estimators_[0, 0] = wide.estimators_[0, 0]
    assert own._direct(model, rows) is None
    model.estimators_ = model.estimators_.tolist()
    assert own._direct(model, rows) is None
    del model.estimators_
    assert own._direct(model, rows) is None


def test_methods_that_are_not_the_librarys_own_are_asked():
    class Other(GradientBoostingRegressor):
        def _raw_predict(self, rows):
            return super()._raw_predict(rows) + (rows[:, :1] > 1.0)

    other = Other(**SMALL).fit(X, Y)
    assert not _boosting_stages.boosted_margin(other, convert(other)).is_direct
    model = regressor().fit(X, Y)
    explainer = Explainer(model, n_jobs=2)
    explainer(X)
    assert explainer.reader.predicts_in_pieces
    predict = model.predict
    model.predict = lambda rows: predict(rows) + 1.0
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(X)


def test_a_release_with_other_bits_is_not_taken(monkeypatch):
    original, model = _boosting_stages._tree_by_tree, MODELS["huber"]
    monkeypatch.setattr(
        _boosting_stages, "_tree_by_tree", lambda model, rows: np.nextafter(original(model, rows), np.inf, dtype=float)
    )
    assert not is_direct(model, X)
    found = Explainer(model, n_jobs=2)(X)
    np.testing.assert_array_equal(found.prediction, model.predict(X))


@pytest.mark.parametrize("name", MODELS)
def test_the_trial_reaches_the_leaves(name):
    own = own_margin(MODELS[name])
    rows = own._trial()
    assert np.isfinite(rows).all()
    trees = [estimator.tree_ for estimator in MODELS[name].estimators_.ravel()]
    reached = [len(np.unique(tree.apply(rows))) for tree in trees]
    assert sum(reached) > 0.5 * sum(tree.n_leaves for tree in trees)


def test_behind_a_scaler():
    model = make_pipeline(StandardScaler(), regressor()).fit(X, Y)
    one = Explainer(model, X[:9])(X)
    for _ in range(2):
        two = Explainer(model, X[:9], n_jobs=2)(X)
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(two, field), getattr(one, field))

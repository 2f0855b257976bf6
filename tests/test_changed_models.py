"""Models that change after they were read: what they hold is compared, not only what they predict."""

from __future__ import annotations

import copy
import functools
import pickle
from dataclasses import replace

import numpy as np
import polars
import pytest
import xgboost
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC
from sklearn.tree import DecisionTreeRegressor

from exactshap import Explainer
from exactshap.errors import ExactnessError, ExplanationWarning
from exactshap.explainer._certify import Check
from exactshap.readers import ModelState
from golden_models import unfitted
from injected_faults import spoil

RNG = np.random.default_rng(0)
X = RNG.integers(0, 5, (200, 4)).astype(float)
Y = X @ [1.0, -2.0, 0.5, 1.5] + np.sin(X[:, 0]) * X[:, 1] + 0.1 * RNG.normal(size=200)
OTHER = Y[::-1].copy()
CHANGED = "has changed since it was read"


def booster():
    return unfitted("XGBoost")


GOLDEN = ("XGBoost", "LightGBM", "gradient boosting", "histogram boosting", "random forest", "scaler, SVR")
MODELS = {
    "sparse": lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), booster()),
    **{name: functools.partial(unfitted, name) for name in GOLDEN},
    "ridge": lambda: make_pipeline(ColumnTransformer([("a", StandardScaler(), [0, 1, 2, 3])]), Ridge()),
    "sgd": lambda: SGDRegressor(random_state=0),
}


def unchanged_predictions(explainer, monkeypatch):
    """Let the reader predict as a copy of the model as it was: what the model holds is all that shows a change."""
    before = pickle.loads(pickle.dumps(explainer.reader))
    monkeypatch.setattr(explainer.reader, "predict", before.predict)


@pytest.mark.parametrize("n_background", [0, 1, 2, 40])
@pytest.mark.parametrize("name", MODELS)
def test_what_a_model_holds_shows_a_fit_that_no_prediction_shows(name, n_background, monkeypatch):
    if name in ("scaler, SVR", "sgd", "ridge") and not n_background:
        pytest.skip("nothing is left without a background, or no rows are compared")
    model = MODELS[name]().fit(X, Y)
    explainer = Explainer(model, X[:n_background] if n_background else None)
    assert explainer(X[50:53]).certificate().passed
    unchanged_predictions(explainer, monkeypatch)
    model.fit(X, OTHER)
    with pytest.raises(ExactnessError, match=CHANGED):
        explainer(X[50:51])
    with pytest.raises(ExactnessError, match=CHANGED):
        explainer.verify(X[50:51])
    explainer.on_inexact = "warn"
    with pytest.warns(ExplanationWarning, match=CHANGED):
        explanation = explainer(X[50:51])
    assert not explanation.certificate().passed


PARTS = {
    "values of a tree": ("random forest", lambda model: model.estimators_[2].tree_.value.__imul__(1.5)),
    "a tree": ("random forest", lambda model: model.estimators_.__setitem__(2, model.estimators_[0])),
    "fewer trees": ("random forest", lambda model: vars(model).update(estimators_=model.estimators_[:3])),
    "more rounds": ("XGBoost", lambda model: model.get_booster().update(xgboost.DMatrix(X, OTHER), 10)),
    "a leaf of LightGBM": ("LightGBM", lambda model: model.booster_.set_leaf_output(0, 0, 50.0)),
}


@pytest.mark.parametrize(("name", "change"), PARTS.values(), ids=PARTS)
def test_parts_of_ensembles_are_seen(name, change):
    model = MODELS[name]().fit(X, Y)
    state = ModelState(model)
    assert state.change() is None
    change(model)
    assert state.change() is not None


# -- other predictions ---------------------------------------------------------------------------------------------------


GPC = GaussianProcessClassifier(optimizer=None)
READ = {  # a model, and the cuts of the target that make its classes
    "scaled ridge": (make_pipeline(StandardScaler(), Ridge()), []),
    "scaled svr": (make_pipeline(StandardScaler(), SVR()), []),
    "scaled tree": (make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=4)), []),
    "components": (make_pipeline(PCA(2), Ridge()), []),
    "landmarks": (make_pipeline(Nystroem(n_components=20, random_state=0), Ridge()), []),
    "Fourier features": (make_pipeline(RBFSampler(n_components=20, random_state=0), Ridge()), []),
    "sparse": (make_pipeline(OneHotEncoder(handle_unknown="ignore"), booster()), []),
    "alone": (make_pipeline(SVR()), []),
    "search": (GridSearchCV(SVR(), {"C": [1.0, 2.0]}, cv=2), []),
    "SVC": (SVC(decision_function_shape="ovo"), [-1.0, 1.0]),
    "NuSVC": (NuSVC(nu=0.1), [-1.0, 1.0]),
    "GPC": (GPC, [-1.0, 1.0]),
    "scaled SVC": (make_pipeline(StandardScaler(), SVC()), [-1.0, 1.0]),
    "scaled GPC": (make_pipeline(StandardScaler(), GPC), [-1.0, 1.0]),
    "search of SVC": (GridSearchCV(SVC(), {}, cv=2), [-1.0, 1.0]),
    "search of GPC": (GridSearchCV(GPC, {}, cv=2), [-1.0, 1.0]),
    "search of scaled SVC": (GridSearchCV(make_pipeline(StandardScaler(), SVC()), {}, cv=2), [-1.0, 1.0]),
    "search in a pipeline": (make_pipeline(StandardScaler(), GridSearchCV(SVC(), {}, cv=2)), [-1.0, 1.0]),
    "threshold": (FixedThresholdClassifier(SVC()), [0.0]),
}


def _refit(model, y):
    (model[-1] if isinstance(model, Pipeline) else model).fit(X[:80], y[::-1])


def _refit_first(model, y):
    model[0].partial_fit(5.0 * X + 3.0)


def _first(model, y):
    name, step = model.steps[0]
    model.steps[0] = name, clone(step).fit(5.0 * X[:80] + 3.0, y)


def _last(model, y):
    front, (name, step) = model[:-1], model.steps[-1]
    model.steps[-1] = name, clone(step).fit(front.transform(X[:80]) if len(front) else X[:80], y[::-1])


def _predict(model, y):
    model.predict = lambda rows: np.full(len(rows), 7.0)


def _scores(model, y):
    model.decision_function = lambda rows: np.full(len(rows), 7.0)


CHANGES = {
    **dict.fromkeys(("scaled ridge", "scaled svr", "scaled tree"), (_refit_first, _first, _predict)),
    **dict.fromkeys(("SVC", "NuSVC", "GPC"), (_refit,)),
    **dict.fromkeys(("components", "landmarks", "sparse"), (_first, _last, _predict)),
    **dict.fromkeys(("Fourier features", "alone"), (_last,)),
    "search": (_predict,),
    "scaled SVC": (_first, _last, _scores),
    "scaled GPC": (_first, _last),
}
SEARCHES = ("search of SVC", "search of GPC", "search of scaled SVC", "search in a pipeline", "threshold")
CASES = [  # model, change, rows of the background, rows explained, and their kind
    *((name, change, 7, n, "array") for name, changes in CHANGES.items() for change in changes for n in (1, 30)),
    *((name, _refit, n, 10, "array") for name in SEARCHES for n in (0, 7)),
    *(("scaled ridge", _refit_first, 7, n, "polars") for n in (1, 3, 30)),  # which do not mix with the background
]


@pytest.mark.parametrize(("name", "change", "n_background", "n_rows", "kind"), CASES)
def test_a_model_that_predicts_otherwise_than_it_was_read_is_noticed(name, change, n_background, n_rows, kind):
    unfitted, cuts = READ[name]
    rows = polars.DataFrame(X, schema=list("abcd")) if kind == "polars" else X
    y = np.digitize(Y[:80], cuts) if cuts else Y[:80]
    model = clone(unfitted).fit(rows[:80], y)
    explainer = Explainer(model, rows[:n_background] if n_background else None)
    if n_rows > 1:
        assert explainer(rows[100:110]).certificate().passed
    change(model, y)
    for _ in range(2):
        with pytest.raises(ExactnessError):
            explainer(rows[100 : 100 + n_rows])


@pytest.mark.parametrize(
    ("place", "n_background"), [("step", 0), ("step", 7), ("part", 0), ("step of a part", 0), ("union", 0)]
)
def test_a_method_that_was_set_on_a_step_is_noticed(place, n_background):
    parts = [("a", StandardScaler(), [0, 1]), ("b", make_pipeline(StandardScaler(), MinMaxScaler()), [2, 3])]
    first = {"step": StandardScaler(), "union": make_union(StandardScaler(), MinMaxScaler())}.get(
        place, ColumnTransformer(parts)
    )
    model = make_pipeline(first, SVR()).fit(X, Y)
    explainer = Explainer(model, X[:n_background] if n_background else None)
    assert explainer(X[:3]).certificate().passed
    changed = {
        "step": lambda: first,
        "part": lambda: first.named_transformers_["a"],
        "step of a part": lambda: first.named_transformers_["b"][0],
        "union": lambda: first.transformer_list[1][1],
    }[place]()
    changed.transform = lambda cells, **_: 3.0 * cells[:, ::-1]  # columns change places, which a sum need not show
    with pytest.raises(ExactnessError, match=CHANGED):
        explainer(X[:3])
    del changed.transform
    assert explainer(X[:3]).certificate().passed


# -- what a model holds --------------------------------------------------------------------------------------------------


class Base:
    def predict(self, rows):
        return rows[:, 0]


class Holder(Base):
    def __init__(self):
        self.table, self.parts = {"a": 1.0, "b": 1.0}, np.array([[object(), object()]], dtype=object)[:, ::-1]
        self.limit, self.n_jobs, self.items = np.arange(3.0), None, [np.ones(2), "x"]

    def predict(self, rows):
        return 2.0 * super().predict(rows)


HELD = {
    "Holder.table.c": lambda held: held.table.update(c=1.0),
    "Holder.table.a": lambda held: held.table.update(c=held.table.pop("a")),
    "Holder.table.b": lambda held: held.table.update(b=2.0),
    "Holder.parts": lambda held: held.parts.__setitem__((0, 1), object()),
    "Holder.items": lambda held: held.items.__setitem__(0, np.zeros(2)),
    "Holder.limit": lambda held: setattr(held, "limit", np.zeros(3)),
    "Holder.predict": lambda held: setattr(held, "predict", len),
    "Base.predict": lambda held: setattr(Base, "predict", lambda self, rows: rows[:, 1]),
    None: lambda held: vars(held).update(limit=np.arange(3.0), n_jobs=2, items=[np.ones(2), "x"], last=0),
}


@pytest.mark.parametrize("name", HELD)
def test_what_is_another_one_is_named_and_equal_things_are_not(name, monkeypatch):
    held = Holder()
    monkeypatch.setattr(Base, "predict", Base.predict)
    state = ModelState(held)
    assert state.change() is None
    HELD[name](held)
    assert state.change() == name


@pytest.mark.parametrize("name", MODELS)
def test_what_changes_no_number_is_no_change(name):
    model = MODELS[name]().fit(X, Y)
    state, twin = ModelState(model), pickle.loads(pickle.dumps(model))
    model.predict(X)
    model.set_params(**{key: 2 for key in model.get_params() if key.rpartition("__")[2] in ("n_jobs", "verbose")})
    model.note = "of the user"
    assert state.change() is None
    assert ModelState(twin).change() is None


def test_a_fit_to_the_same_rows_is_accepted():
    model = MODELS["sparse"]().fit(X, Y)
    explainer = Explainer(model, X[:5])
    wanted = explainer(X[10:13])
    model.fit(X, Y)
    np.testing.assert_array_equal(explainer(X[10:13]).values, wanted.values)
    assert explainer(X[10:13]).certificate().passed


class Counting(RegressorMixin, BaseEstimator):
    """A model of the user with a counter and a cache."""

    def fit(self, rows, targets):
        self.inner_, self.calls_, self.last_ = Ridge().fit(rows, targets), 0, None
        self.n_features_in_ = rows.shape[1]
        return self

    def transform(self, rows):
        self.calls_, self.last_ = self.calls_ + 1, rows.copy()
        return 2.0 * rows


def test_counters_and_caches_are_no_changes():
    model = make_pipeline(Counting().fit(X, Y), Ridge())
    model[-1].fit(model[0].transform(X), Y)
    explainer = Explainer(model, X[:5])
    for _ in range(3):
        assert explainer(X[:2]).certificate().passed
    # Left out after the first call, so that the model is not read anew each time
    assert explainer._changes.seen() is None


def test_a_cache_is_not_named_in_an_error_of_another_cause():
    model = MODELS["XGBoost"]().fit(X, Y)
    explainer = Explainer(model)
    model.cache_ = {"n": 0}
    explainer._changes._state = ModelState(model)
    solve = explainer.reader.solve

    def wrong(*arguments):
        solution = solve(*arguments)
        return replace(solution, part=replace(solution.part, values=solution.part.values + 1.0))

    def both_wrong(*arguments):
        check = type(explainer._changes).compared(explainer._changes, *arguments)
        return Check(0.0, 0.0, 1) if is_cache else check

    explainer.reader.solve, explainer._changes.compared = wrong, both_wrong
    model.cache_["n"] = 1
    for is_cache in (True, False):
        with pytest.raises(ExactnessError) as caught:
            explainer(X[:2])
        assert ("cache_" in str(caught.value)) != is_cache


def test_a_changed_model_is_refused_before_all_rows_are_solved(monkeypatch):
    model = SVR().fit(X, Y)
    explainer, solved = Explainer(model, X[:10]), []
    explainer(X[:1])
    spoil(monkeypatch, type(explainer.reader), lambda values: solved.append(len(values)) or values)
    model.fit(X, OTHER)
    with pytest.raises(ExactnessError, match=CHANGED):
        explainer(X)
    assert max(solved) < len(X)


def test_a_changed_model_is_so_after_pickle_and_copies():
    model = MODELS["random forest"]().fit(X, Y)
    explainer = Explainer(model, X[:1])
    explainer(X[:2])
    for twin in (pickle.loads(pickle.dumps(explainer)), copy.deepcopy(explainer)):
        assert twin(X[:2]).certificate().passed
        assert twin._changes.seen() is None
    model.fit(X, OTHER)
    for twin in (pickle.loads(pickle.dumps(explainer)), copy.deepcopy(explainer)):
        with pytest.raises(ExactnessError, match=CHANGED):
            twin(X[:2])


def test_a_change_that_is_undone_is_forgotten():
    model = MODELS["scaler, SVR"]().fit(X, Y)
    explainer, mean = Explainer(model, X[:7]), model[0].mean_
    explainer(X[:3])
    model[0].mean_ = mean + 1.0
    with pytest.raises(ExactnessError, match=r"Its StandardScaler.mean_ is another one"):
        explainer(X[:3])
    model[0].mean_ = mean
    assert explainer(X[:3]).certificate().passed


def test_values_by_background_row_are_those_of_the_model():
    model = MODELS["ridge"]().fit(X, Y)
    explainer = Explainer(model, X[:4])
    explainer.background_values(X[:2])
    model.fit(X, OTHER)
    with pytest.raises(ExactnessError, match=CHANGED):
        explainer.background_values(X[:2])


def test_a_copy_does_without_a_model_that_the_reader_holds_in_another_form():
    class OfLibrary(SVR):
        def __reduce__(self):
            raise TypeError("does not pickle, like models of compiled libraries")

    explainer, held = Explainer(SVR().fit(X, Y), X[:7]), OfLibrary().fit(X, Y)
    explainer._changes = type(explainer._changes)(held, explainer._request, explainer.reader)
    twin = pickle.loads(pickle.dumps(explainer))
    assert twin._changes.seen() is None
    assert twin(X[:3]).certificate().passed
    held.fit(X, OTHER)
    with pytest.raises(ExactnessError, match=CHANGED):
        pickle.loads(pickle.dumps(explainer))(X[:3])


@pytest.mark.parametrize(("release", "targets", "asked"), [("2.1.4", 2, False), ("2.1.4", 1, True), ("3.0.0", 2, True)])
def test_scores_of_several_targets_are_not_asked_of_xgboost_2(monkeypatch, release, targets, asked):
    calls = []
    settings = {"n_estimators": 2, "max_depth": 2, "tree_method": "hist", "multi_strategy": "multi_output_tree"}
    model = xgboost.XGBRegressor(**settings).fit(X, np.column_stack([Y, -Y])[:, :targets])
    monkeypatch.setattr(xgboost, "__version__", release)
    monkeypatch.setattr(xgboost.Booster, "get_score", lambda booster, **_: calls.append(booster) or {})
    assert ModelState(model).change() is None
    assert bool(calls) == asked

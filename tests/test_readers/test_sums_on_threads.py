"""Sums of models on threads: the bits of one thread, and the ensemble's own prediction, or its documented method."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LassoCV, LinearRegression, LogisticRegression, Ridge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVC

from exactshap import Explainer
from exactshap._runtime import threads
from exactshap.errors import ExactnessError, ExplanationWarning, InputError
from exactshap.frames import as_table
from exactshap.readers import _stages, _steps
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.wrappers import _member, _sum, sklearn_multiclass, sklearn_sums
from exactshap.readers.wrappers._member import Member, total_of
from exactshap.readers.wrappers._sum import SumReader
from exactshap.semivalues import find
from tolerances import assert_close

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(3500, 5)) * [1.0, 10.0, 0.1, 3.0, 1.0]
Y = X[:, 0] * X[:, 4] + X[:, 1] + np.sin(X[:, 3])
BOTH, CLASSES, FEW = np.c_[Y, -(Y**2)], np.digitize(Y, [-3.0, 3.0]), slice(0, 300)
FRAME = pd.DataFrame(X, columns=list("abcde"))
BACKGROUND = X[:9]
FIELDS = ("values", "baseline", "prediction", "residual", "tolerance")


def boosting():
    return GradientBoostingRegressor(n_estimators=8, random_state=0)


MEMBERS = [("l", Ridge()), ("b", boosting())]
ENSEMBLES = {
    "vote": VotingRegressor([*MEMBERS, ("d", "drop")], weights=[1.0, 2.0, 3.0]),
    "vote without weights": VotingRegressor(MEMBERS),
    "vote of a vote": VotingRegressor([("v", VotingRegressor(MEMBERS)), ("s", make_pipeline(StandardScaler(), boosting()))]),
    "uneven vote": VotingRegressor([*MEMBERS, ("f", RandomForestRegressor(3, max_depth=3, random_state=0))]),
    "stack": StackingRegressor(MEMBERS, Ridge(), cv=2),
    "stack of linear models": StackingRegressor([("l", Ridge()), ("o", LinearRegression())], Ridge(), cv=2),
    "stack with the rows": StackingRegressor(MEMBERS, LinearRegression(), passthrough=True, cv=2),
    "bag": BaggingRegressor(Ridge(), 4, random_state=0),
    "bag of some columns": BaggingRegressor(Ridge(), 4, max_features=0.6, bootstrap_features=True, random_state=0),
    "bag of boosting": BaggingRegressor(boosting(), 3, random_state=0),
}
ENSEMBLES = {name: model.fit(X[FEW], Y[FEW]) for name, model in ENSEMBLES.items()}
LINEAR = {
    "targets": MultiOutputRegressor(Ridge()).fit(X[FEW], BOTH[FEW]),
    "targets of frames": MultiOutputRegressor(LassoCV(cv=2)).fit(FRAME[FEW], BOTH[FEW]),
    "single precision": MultiOutputRegressor(Ridge()).fit(X[FEW].astype(np.float32), BOTH[FEW].astype(np.float32)),
    "against the rest": OneVsRestClassifier(LinearSVC()).fit(X[FEW], CLASSES[FEW]),
    "of two classes": OneVsRestClassifier(LogisticRegression()).fit(X[FEW], CLASSES[FEW] > 0),
    "against each other": OneVsOneClassifier(LogisticRegression()).fit(X[FEW], CLASSES[FEW]),
}
OTHERS = {
    "boosting for each target": MultiOutputRegressor(boosting()).fit(X[FEW], BOTH[FEW]),
    "boosting against the rest": OneVsRestClassifier(GradientBoostingClassifier(n_estimators=4)).fit(X[FEW], CLASSES[FEW]),
}
BAG_OF_TWO = BaggingRegressor(Ridge(), 3, random_state=0).fit(X[FEW], BOTH[FEW])


@pytest.fixture
def of_few_rows(monkeypatch):
    for place, name, value in (
        (threads, "SECONDS", 0.0),
        (threads, "LEAST", 0.0),
        (_steps, "STAGED", 1),
        (_stages, "LEAST", 64),
        (_stages, "ALONE", 1),  # and pieces of as few as there are
        (_stages, "TOGETHER", 1),
    ):
        monkeypatch.setattr(place, name, value)


def own_of(model, background=BACKGROUND):
    """Return the own prediction of an ensemble."""
    return own_inside(Explainer(model, background).reader)


def own_inside(reader):
    again = reader.form.predict_again.args[0] if isinstance(reader, AdditiveReader) else reader._again
    return again.args[0]


def is_direct(own, rows):
    """Say whether the regressors' readers are asked; the bits are the same anyway."""
    calls, documented = [], own._documented
    own._compared = own._compared or (own._tried(own._direct) and own._methods()) if own._direct else None
    own._documented = lambda *given: calls.append(1) or documented(*given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = own(as_table(rows))
        own._documented = documented
        np.testing.assert_array_equal(found, own._model.predict(rows))
    return not calls


# -- the same bits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ENSEMBLES, *OTHERS, *LINEAR, "bag of two targets"])
def test_any_number_of_threads(name, of_few_rows, monkeypatch):
    model = {**ENSEMBLES, **OTHERS, **LINEAR, "bag of two targets": BAG_OF_TWO}[name]
    rows, background = (FRAME, FRAME[:9]) if name == "targets of frames" else (X, BACKGROUND)
    one = Explainer(model, background)(rows)
    for most in (2**14, 1024):  # pieces of a block, and blocks
        monkeypatch.setattr(_sum, "MOST_ROWS", most)
        for n_jobs in (1, 2, 3):
            explainer = Explainer(model, background, n_jobs=n_jobs)
            for _ in range(2):  # the pace is unknown, and known
                found = explainer(rows)
                for field in FIELDS:
                    np.testing.assert_array_equal(getattr(found, field), getattr(one, field))


@pytest.mark.parametrize("name", ENSEMBLES)
def test_any_cut(name, monkeypatch):
    reader = Explainer(ENSEMBLES[name], BACKGROUND).reader
    whole = reader.solve(as_table(X), find("shapley"), 1)
    monkeypatch.setattr(_sum, "FEWEST_ROWS", 7)
    monkeypatch.setattr(_stages, "ALONE", 5 * 100)
    cut = reader.solve(as_table(X), find("shapley"), 1)
    for field in ("values", "empty", "full", "scale"):
        np.testing.assert_array_equal(getattr(cut, field), getattr(whole, field))


@pytest.mark.parametrize(
    "weights", [np.array([[0.3]]), np.array([[1.0]]), np.array([[0.0, 0.0, 1.0]]), 0.25 * np.eye(3), 0.5 * np.eye(3)[:, [2, 0]]]
)
def test_sums_are_products_with_the_weights(weights):
    class One:
        single_output = len(weights) == 1

    shape = (7, 4) if One.single_output else (7, 4, 3)
    arrays = [GENERATOR.normal(size=shape) for _ in range(3)]
    members = [Member(One, weights)] * 3
    expected = sum((array[..., None] if One.single_output else array) @ weights for array in arrays)
    np.testing.assert_array_equal(total_of(members, arrays), expected)
    np.testing.assert_array_equal(total_of(members, arrays, np.ones(len(weights[0]))), expected + 1.0)


# -- the ensemble's own prediction ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENSEMBLES)
def test_regressors_are_asked_with_the_bits_of_the_documented_method(name):
    own = own_of(ENSEMBLES[name])
    for rows in (X, X[:3], X[:1], np.asfortranarray(X)[::-2], 100.0 * X):
        assert is_direct(own, rows)
    assert not is_direct(own, X.astype(np.float32))
    assert is_direct(pickle.loads(pickle.dumps(own)), X)
    assert not is_direct(own, X.astype(int))


@pytest.mark.parametrize("name", ENSEMBLES)
def test_frames(name):
    model = pickle.loads(pickle.dumps(ENSEMBLES[name])).fit(FRAME[FEW], Y[FEW])
    own = own_of(model, FRAME[:9])
    assert is_direct(own, FRAME)
    assert is_direct(own, FRAME.assign(a=FRAME["a"].astype(np.float32))) == (not name.startswith("bag"))
    assert not is_direct(own, X), "it warns of names"
    assert not is_direct(own_of(ENSEMBLES[name]), FRAME)


def test_what_has_other_bits_is_not_taken(of_few_rows, monkeypatch):
    original = _member._Inside._added_up
    monkeypatch.setattr(_member._Inside, "_added_up", lambda *given: np.nextafter(original(*given), np.inf))
    for name, model in ENSEMBLES.items():
        assert not is_direct(own_of(model), X), name
        for n_jobs in (1, 2):
            np.testing.assert_array_equal(
                Explainer(model, BACKGROUND, n_jobs=n_jobs)(X).prediction[:1024], model.predict(X)[:1024]
            )


@pytest.mark.parametrize("name", ENSEMBLES)
def test_a_model_is_asked_as_it_is_now(name):
    model = pickle.loads(pickle.dumps(ENSEMBLES[name]))
    explainer = Explainer(model, BACKGROUND, n_jobs=2)
    own = own_inside(explainer.reader)
    assert is_direct(own, X)
    model.estimators_[0], kept = Ridge().fit(X[FEW], -Y[FEW]), model.estimators_[0]
    if not name.startswith("bag of some"):
        assert not is_direct(own, X), "another regressor"
        with pytest.raises(ExactnessError, match="do not add up"):
            explainer(X)
    model.estimators_[0] = kept
    assert is_direct(own, X)
    predict = model.predict
    model.predict = lambda rows: predict(rows) + 1.0
    assert not is_direct(own, X)
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(X)


def test_regressors_that_are_edited_are_asked_as_they_are_now():
    model = pickle.loads(pickle.dumps(ENSEMBLES["vote"]))
    own, explainer = own_of(model), Explainer(model, BACKGROUND, n_jobs=2)
    explainer(X)
    model.estimators_[0].coef_ = model.estimators_[0].coef_ + 1.0
    assert is_direct(own, X)
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(X)


def test_a_class_whose_method_is_replaced_is_asked(monkeypatch):
    own, original = own_of(ENSEMBLES["vote"]), VotingRegressor._predict
    assert is_direct(own, X)
    monkeypatch.setattr(VotingRegressor, "_predict", lambda self, rows: 2.0 * original(self, rows))
    assert not is_direct(own, X)


def test_a_bag_that_works_in_parallel_is_asked_itself():
    model = BaggingRegressor(Ridge(), 3, n_jobs=2).fit(X[FEW], Y[FEW])
    assert not is_direct(own_of(model), X[:50])


def test_a_function_inside_is_not_tried():
    class Clipped(Ridge):
        calls = 0

        def predict(self, rows):
            Clipped.calls += len(rows)
            return super().predict(rows).clip(0.0)

    model = VotingRegressor([("c", Clipped()), ("b", boosting())]).fit(X[FEW], Y[FEW])
    with pytest.warns(ExplanationWarning, match="has its own predict"):
        reader = Explainer(model, BACKGROUND).reader
    assert not own_inside(reader).is_direct
    assert reader.threads_pay() is None
    assert reader.stages(as_table(X)) is None


@pytest.mark.parametrize("name", [*ENSEMBLES, *OTHERS, "targets", "against the rest"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_the_models_refuse_is_refused_as_on_one_thread(name, value, of_few_rows):
    rows = X.copy()
    rows[3333, 2] = value
    messages = []
    for n_jobs in (1, 2):
        explainer = Explainer({**ENSEMBLES, **OTHERS, **LINEAR}[name], BACKGROUND, n_jobs=n_jobs)
        for _ in range(2):
            with pytest.raises(InputError, match="row 3333, column") as raised:
                explainer(rows)
            messages.append(str(raised.value))
    assert len({*messages}) == 1


# -- linear models side by side ------------------------------------------------------------------------------------------


def same_of_both(found, expected, rows, **counts):
    """Return explanations by one linear model and by the sum of its parts, which say the same."""
    assert isinstance(expected.reader, SumReader)
    for fact in ("model_name", "unit", "output_names", "feature_names", "players", "player_names", "single_output"):
        assert getattr(found.reader, fact) == getattr(expected.reader, fact)
    ours, theirs = found(rows), expected(rows)
    np.testing.assert_array_equal(ours.prediction, theirs.prediction)
    size = np.abs(theirs.values).max()
    assert_close(ours.values, theirs.values, size, **counts)
    assert_close(ours.baseline, theirs.baseline, size, **counts)
    return ours, theirs


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize(
    "settings", [{}, {"groups": {"g": [0, 3]}}, {"background_weights": np.arange(1.0, 10.0)}, {"output": 0}], ids=str
)
def test_linear_models_side_by_side_are_one(name, settings, monkeypatch):
    model = LINEAR[name]
    rows, background = (FRAME[:200], FRAME[:9]) if name == "targets of frames" else (X[:200], BACKGROUND)
    if name == "targets of frames" and "groups" in settings:
        settings = {"groups": {"g": ["a", "d"]}}
    found = Explainer(model, background, **settings)
    assert isinstance(found.reader, AdditiveReader)
    assert found.verify(rows[:5]).passed
    monkeypatch.setattr(sklearn_multiclass, "linear_side_by_side", lambda *_, **__: None)
    ours, theirs = same_of_both(found, Explainer(model, background, **settings), rows, n_terms=5, n_players=5)
    assert (ours.tolerance <= theirs.tolerance).all()


def test_names_that_the_models_do_not_know():
    for model in (LINEAR["targets"], LINEAR["against the rest"]):
        by_name = Explainer(model, FRAME[:9])
        assert by_name.reader.feature_names == tuple("abcde")
        np.testing.assert_array_equal(by_name(FRAME[:50]).values, Explainer(model, BACKGROUND)(X[:50]).values)
        bad = FRAME[:50].assign(c=np.nan)
        with pytest.raises(InputError, match=r"row 0, column 'c'.*\n?.*(Ridge|LinearSVC) does not accept"):
            by_name(bad)


def test_models_in_single_precision_are_judged_at_the_precision_of_the_worst():
    rows = FRAME.astype(np.float32)
    model = MultiOutputRegressor(Ridge()).fit(rows[FEW], BOTH[FEW])
    model.estimators_[0] = Ridge().fit(FRAME[FEW], BOTH[FEW, 0])
    explainer = Explainer(model, rows[:9])
    assert isinstance(explainer.reader, AdditiveReader)
    assert explainer(rows).certificate().passed


def test_other_models_side_by_side_are_sums():
    for inner in (make_pipeline(StandardScaler(), Ridge()), SVR(), RandomForestRegressor(2)):
        model = MultiOutputRegressor(inner).fit(X[FEW], BOTH[FEW])
        assert not isinstance(Explainer(model, BACKGROUND).reader, AdditiveReader)
    mixed = MultiOutputRegressor(Ridge()).fit(X[FEW], BOTH[FEW])
    mixed.estimators_[1] = RandomForestRegressor(2, random_state=0).fit(X[FEW], BOTH[FEW, 1])
    explainer = Explainer(mixed, BACKGROUND)
    assert isinstance(explainer.reader, SumReader)
    np.testing.assert_array_equal(explainer(X[:9]).prediction, mixed.predict(X[:9]))


def test_a_linear_part_is_asked_as_it_is_now():
    model = pickle.loads(pickle.dumps(LINEAR["targets"]))
    for n_jobs in (1, 2):
        explainer = Explainer(model, BACKGROUND, n_jobs=n_jobs)
        explainer(X)
        part = model.estimators_[1]
        part.predict = lambda rows, part=part: Ridge.predict(part, rows) + 1.0
        with pytest.raises(ExactnessError, match="do not add up"):
            explainer(X)
        del part.predict


@pytest.mark.parametrize("inner", [Ridge(), boosting(), SVR(), make_pipeline(StandardScaler(), boosting())], ids=str)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_parts_that_took_the_place_of_others_are_asked(inner, n_jobs, of_few_rows):
    model = MultiOutputRegressor(inner).fit(X[FEW], BOTH[FEW])
    explainer = Explainer(model, BACKGROUND, n_jobs=n_jobs)
    explainer(X)
    model.fit(X[FEW], BOTH[FEW])  # the same once more
    np.testing.assert_array_equal(explainer(X).prediction, model.predict(X))
    model.fit(X[FEW], BOTH[FEW] + X[FEW, :1])
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(X)


# -- players without columns ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [[0], [0, 1], [1, 2]])
def test_linear_models_of_some_columns(kept):
    model = make_pipeline(make_column_transformer((StandardScaler(), kept)), Ridge()).fit(X[FEW, :3], Y[FEW])
    explainer = Explainer(model, BACKGROUND[:, :3])
    values = explainer(X[:50, :3]).values
    assert values.shape == (50, 3)
    assert not values[:, [j for j in range(3) if j not in kept]].any()
    assert explainer.verify(X[:5, :3]).passed
    bag = BaggingRegressor(Ridge(), 4, max_features=0.5, random_state=0).fit(X[FEW, :2], Y[FEW])
    assert Explainer(bag, BACKGROUND[:, :2]).verify(X[:5, :2]).passed


# -- linear models added up ----------------------------------------------------------------------------------------------

ADDED_UP = {name: ENSEMBLES[name] for name in ("stack of linear models", "bag")}
ADDED_UP["bag of two targets"] = BAG_OF_TWO
ADDED_UP["vote"] = VotingRegressor([("r", Ridge()), ("l", LinearRegression())], weights=[3.0, 1.0]).fit(X[FEW], Y[FEW])
ADDED_UP["stack with the rows"] = StackingRegressor(
    [("r", Ridge()), ("l", LinearRegression())], LinearRegression(), passthrough=True, cv=2
).fit(X[FEW], Y[FEW])
ADDED_UP["bag of columns drawn twice"] = BaggingRegressor(Ridge(), 3, max_features=9, bootstrap_features=True, random_state=1)
ADDED_UP["bag of columns drawn twice"].fit(X[FEW][:, [0, 1, 2, 3, 4, 0, 1, 2, 3]], Y[FEW])


@pytest.mark.parametrize("name", ADDED_UP)
@pytest.mark.parametrize(
    "settings",
    [{}, {"groups": {"g": [0, 3]}}, {"groups": {"g": [0, 2, 4], "h": [1, 3]}}, {"background_weights": np.arange(1.0, 10.0)}],
    ids=str,
)
def test_linear_models_added_up_are_one(name, settings, monkeypatch):
    model = ADDED_UP[name]
    rows = X[:200, np.arange(model.n_features_in_) % 5]
    background = rows[-9:] + 1.0
    found = Explainer(model, background, **settings)
    if "drawn" not in name:  # some players have no column in some of the models
        assert isinstance(found.reader, AdditiveReader)
    assert found.verify(rows[:5]).passed
    monkeypatch.setattr(sklearn_sums, "sum_of_linear", lambda *_, **__: None)
    ours, _ = same_of_both(found, Explainer(model, background, **settings), rows, n_terms=25, n_players=9)
    assert ours.certificate().passed


def opposites(size, seed):
    """Return a vote of two linear models that all but cancel, and what is left of them."""
    rng = np.random.default_rng(seed)
    vote = VotingRegressor([("one", LinearRegression()), ("other", LinearRegression())]).fit(X[FEW], Y[FEW])
    left, (one, other) = rng.normal(size=5), vote.estimators_
    one.coef_ = size * rng.normal(size=5)
    other.coef_, one.intercept_, other.intercept_ = left - one.coef_, size, -size
    return vote, left


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [1.0, 1e6, 1e12])
def test_what_cancels_between_models_is_not_taken_for_an_error(size, seed):
    vote, _ = opposites(size, seed)
    for n_jobs in (1, 2):
        found = Explainer(vote, BACKGROUND, n_jobs=n_jobs)(X)
        assert found.certificate().passed
        assert (np.abs(found.residual) <= found.tolerance).all()


def test_a_row_of_the_background_far_from_the_others_counts_for_what_cancels():
    for seed in range(20):
        vote, _ = opposites(1e3, seed)
        far = 1e9 * np.random.default_rng(seed).normal(size=(1, 5))
        bound = Explainer(vote, BACKGROUND).reader.bound_to(as_table(far))
        assert bound.answer(as_table(X[:50]), find("shapley"), 1).is_within
        found = Explainer(vote, np.concatenate([far, -far]))(X[:50])
        assert found.certificate().passed


def test_columns_drawn_twice_are_added_up():
    rows = X[FEW][:, [0, 1, 2, 3, 4, 0, 1, 2, 3]]
    bag = BaggingRegressor(Ridge(), 3, max_features=9, bootstrap_features=True, random_state=1).fit(rows, Y[FEW])
    assert any(len(np.unique(columns)) < 9 for columns in bag.estimators_features_)
    explainer = Explainer(bag, rows[:9], groups={"one": [0, 1, 2, 3, 4], "other": [5, 6, 7, 8]})
    assert isinstance(explainer.reader, AdditiveReader)
    assert explainer.verify(rows[20:40]).passed


def test_what_does_not_cancel_is():
    vote, left = opposites(1.0, 0)
    explainer = Explainer(vote, BACKGROUND)
    assert isinstance(explainer.reader, AdditiveReader)
    expected = 0.5 * (X[:5] - BACKGROUND.mean(axis=0)) * left
    assert_close(explainer(X[:5]).values, expected, np.abs(expected).max(), n_terms=25, n_players=9)
    vote.estimators_[0].coef_ = vote.estimators_[0].coef_ + 1e-9
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(X)

"""Sums of models: the bits of one thread, the ensemble's own prediction as it is now, and what cancels between models."""

import pickle
from types import SimpleNamespace

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
from exactshap.errors import ExactnessError, InputError
from exactshap.explainer._certify import tolerance_of
from exactshap.frames import as_table
from exactshap.readers.wrappers._sum import Member, total_of
from exactshap.semivalues import find
from tolerances import assert_close

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(3500, 5)) * [1.0, 10.0, 0.1, 3.0, 1.0]
Y = X[:, 0] * X[:, 4] + X[:, 1] + np.sin(X[:, 3])
BOTH, CLASSES, FEW = np.c_[Y, -(Y**2)], np.digitize(Y, [-3.0, 3.0]), slice(0, 300)
FRAME = pd.DataFrame(X, columns=list("abcde"))
BACKGROUND = X[:9]


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


# -- the same bits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ENSEMBLES, *OTHERS, *LINEAR, "bag of two targets"])
def test_any_number_of_threads(name):
    model = {**ENSEMBLES, **OTHERS, **LINEAR, "bag of two targets": BAG_OF_TWO}[name]
    rows, background = (FRAME, FRAME[:9]) if name == "targets of frames" else (X, BACKGROUND)
    one = Explainer(model, background)(rows)
    for settings in ({"n_jobs": 2}, {"memory_limit": 2.0**23}, {"memory_limit": 2.0**23, "n_jobs": 2}):
        found = Explainer(model, background, **settings)(rows)
        np.testing.assert_array_equal(found.values, one.values)
        np.testing.assert_array_equal(found.baseline, one.baseline)


@pytest.mark.parametrize(
    "weights", [np.array([[0.3]]), np.array([[1.0]]), np.array([[0.0, 0.0, 1.0]]), 0.25 * np.eye(3), 0.5 * np.eye(3)[:, [2, 0]]]
)
def test_sums_are_products_with_the_weights(weights):
    single = len(weights) == 1
    reader = SimpleNamespace(traits=SimpleNamespace(single_output=single))
    shape = (7, 4) if single else (7, 4, 3)
    arrays = [GENERATOR.normal(size=shape) for _ in range(3)]
    members = [Member(reader, weights)] * 3
    expected = sum((array[..., None] if single else array) @ weights for array in arrays)
    np.testing.assert_array_equal(total_of(members, arrays), expected)
    np.testing.assert_array_equal(total_of(members, arrays, np.ones(len(weights[0]))), expected + 1.0)


# -- the ensemble's own prediction ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENSEMBLES)
def test_a_model_is_asked_as_it_is_now(name):
    model = pickle.loads(pickle.dumps(ENSEMBLES[name]))
    explainer, rows = Explainer(model, BACKGROUND, n_jobs=2), X[:100]
    np.testing.assert_array_equal(explainer(rows).prediction, model.predict(rows))
    if not name.startswith("bag of some"):
        model.estimators_[0], kept = Ridge().fit(X[FEW], -Y[FEW]), model.estimators_[0]
        with pytest.raises(ExactnessError, match="has changed since it was read"):
            explainer(rows)
        model.estimators_[0] = kept
    predict = model.predict
    model.predict = lambda cells: predict(cells) + 1.0
    with pytest.raises(ExactnessError, match="has changed since it was read"):
        explainer(rows)


def test_regressors_that_are_edited_are_asked_as_they_are_now():
    model = pickle.loads(pickle.dumps(ENSEMBLES["vote"]))
    explainer = Explainer(model, BACKGROUND, n_jobs=2)
    explainer(X)
    model.estimators_[0].coef_ = model.estimators_[0].coef_ + 1.0
    with pytest.raises(ExactnessError, match="has changed since it was read"):
        explainer(X)


@pytest.mark.parametrize("name", [*ENSEMBLES, *OTHERS, "targets", "against the rest"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_the_models_refuse_is_refused_as_on_one_thread(name, value):
    rows = X.copy()
    rows[3333, 2] = value
    messages = []
    for n_jobs in (1, 2):
        explainer = Explainer({**ENSEMBLES, **OTHERS, **LINEAR}[name], BACKGROUND, n_jobs=n_jobs)
        with pytest.raises(InputError, match="row 3333, column") as raised:
            explainer(rows)
        messages.append(str(raised.value))
    assert len({*messages}) == 1


# -- linear models side by side ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize(
    "settings", [{}, {"groups": {"g": [0, 3]}}, {"background_weights": np.arange(1.0, 10.0)}, {"output": 0}], ids=str
)
def test_linear_models_side_by_side(name, settings):
    model = LINEAR[name]
    rows, background = (FRAME[:200], FRAME[:9]) if name == "targets of frames" else (X[:200], BACKGROUND)
    if name == "targets of frames" and "groups" in settings:
        settings = {"groups": {"g": ["a", "d"]}}
    explainer = Explainer(model, background, **settings)
    assert explainer.verify(rows[:5]).passed
    found = explainer(rows).values
    outputs = [0] if settings.get("output") == 0 else range(len(model.estimators_))
    plain = {key: value for key, value in settings.items() if key != "output"}
    for place, k in enumerate(outputs):
        part = Explainer(model.estimators_[k], background, **plain)(rows).values
        assert_close(found[..., place] if found.ndim == 3 else found, part, np.abs(part).max(), n_terms=5, n_players=5)


def test_names_that_the_models_do_not_know():
    for model in (LINEAR["targets"], LINEAR["against the rest"]):
        by_name = Explainer(model, FRAME[:9])
        assert by_name.reader.traits.feature_names == tuple("abcde")
        np.testing.assert_array_equal(by_name(FRAME[:50]).values, Explainer(model, BACKGROUND)(X[:50]).values)
        bad = FRAME[:50].assign(c=np.nan)
        with pytest.raises(
            InputError, match=r"row 0, column 'c'.*\n?.*(MultiOutputRegressor|OneVsRestClassifier) does not accept"
        ):
            by_name(bad)


def test_models_in_single_precision_are_judged_at_the_precision_of_the_worst():
    rows = FRAME.astype(np.float32)
    model = MultiOutputRegressor(Ridge()).fit(rows[FEW], BOTH[FEW])
    model.estimators_[0] = Ridge().fit(FRAME[FEW], BOTH[FEW, 0])
    explainer = Explainer(model, rows[:9])
    assert explainer(rows).certificate().passed


@pytest.mark.parametrize("inner", [make_pipeline(StandardScaler(), Ridge()), SVR(), RandomForestRegressor(2)], ids=str)
def test_other_models_side_by_side(inner):
    model = MultiOutputRegressor(inner).fit(X[FEW], BOTH[FEW])
    assert Explainer(model, BACKGROUND).verify(X[:5]).passed
    model.estimators_[1] = Ridge().fit(X[FEW], BOTH[FEW, 1])
    explainer = Explainer(model, BACKGROUND)
    if not isinstance(inner, SVR):  # kernel machines beside others have nothing in common
        assert explainer.verify(X[:5]).passed
        np.testing.assert_array_equal(explainer(X[:9]).prediction, model.predict(X[:9]))


@pytest.mark.parametrize("inner", [Ridge(), boosting(), SVR(), make_pipeline(StandardScaler(), boosting())], ids=str)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_parts_that_took_the_place_of_others_are_asked(inner, n_jobs):
    model = MultiOutputRegressor(inner).fit(X[FEW], BOTH[FEW])
    explainer, rows = Explainer(model, BACKGROUND, n_jobs=n_jobs), X[:400]
    explainer(rows)
    model.fit(X[FEW], BOTH[FEW])  # the same once more
    np.testing.assert_array_equal(explainer(rows).prediction, model.predict(rows))
    model.fit(X[FEW], BOTH[FEW] + X[FEW, :1])
    with pytest.raises(ExactnessError, match="has changed since it was read"):
        explainer(rows)


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
def test_linear_models_added_up(name, settings):
    model = ADDED_UP[name]
    rows = X[:200, np.arange(model.n_features_in_) % 5]
    background = rows[-9:] + 1.0
    explainer = Explainer(model, background, **settings)
    assert explainer.verify(rows[:5]).passed
    found = explainer(rows)
    assert found.certificate().passed
    if not settings:  # the textbook, by the model's own predictions one column at a time
        n_columns = model.n_features_in_
        slopes = model.predict(np.eye(n_columns)) - model.predict(np.zeros((n_columns, n_columns)))
        moved = (rows - background.mean(axis=0)).reshape(len(rows), n_columns, *(1,) * (slopes.ndim - 1))
        size = np.abs(moved).max() * np.abs(model.predict(np.eye(n_columns))).max()
        assert_close(found.values, moved * slopes, 16.0 * size, n_terms=25, n_players=9)


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
        bound = Explainer(vote, BACKGROUND).reader.bind(as_table(far))
        rows = as_table(X[:50])
        solution = bound.solve(rows, find("shapley"), 1)
        residual = bound.predict(rows) - solution.empty - solution.values.sum(axis=1)
        assert (np.abs(residual) <= tolerance_of(bound, bound.predict(rows), solution)).all()
        found = Explainer(vote, np.concatenate([far, -far]))(X[:50])
        assert found.certificate().passed


def test_what_does_not_cancel_is():
    vote, left = opposites(1.0, 0)
    explainer = Explainer(vote, BACKGROUND)
    expected = 0.5 * (X[:5] - BACKGROUND.mean(axis=0)) * left
    assert_close(explainer(X[:5]).values, expected, np.abs(expected).max(), n_terms=25, n_players=9)
    vote.estimators_[0].coef_ = vote.estimators_[0].coef_ + 1e-9
    with pytest.raises(ExactnessError, match="has changed since it was read"):
        explainer(X)

"""Few rows of an explainable boosting machine: its own search alone gives its own bits, or is not taken."""

import ctypes
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from exactshap import Explainer
from exactshap.errors import ExactnessError
from exactshap.frames import as_table
from exactshap.readers.additive import _native_search
from few_rows import check_bits

glassbox = pytest.importorskip("interpret.glassbox")
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore:.*:FutureWarning", "ignore:.*:DeprecationWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5)).round(2)
X[RNG.random(X.shape) < 0.1] = np.nan
Y = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2]) + 0.1 * RNG.normal(size=200)
ODD = np.r_[
    X[:40], np.full((1, 5), np.inf), np.full((1, 5), -np.inf), np.full((1, 5), np.nan), np.zeros((1, 5)), -np.zeros((1, 5))
]
CODES = np.c_[np.nan_to_num(X[:, :2]), np.arange(200) % 4]


def fitted(cls, X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**({"outer_bags": 2, "max_rounds": 40, "n_jobs": 1, "random_state": 0, "interactions": 3} | settings)).fit(
            X, y
        )


def regressor(**settings):
    return fitted(glassbox.ExplainableBoostingRegressor, X, Y, **settings)


def classifier(y, **settings):
    return fitted(glassbox.ExplainableBoostingClassifier, X, y, **settings)


MODELS = {
    "pairs": regressor,
    "triples and more": lambda: regressor(interactions=[(0, 1), (1, 2, 3), (0, 1, 3, 4)], max_interaction_bins=6),
    "no pairs": lambda: regressor(interactions=0),
    "a column in no term": lambda: regressor(exclude=[(2,)], interactions=[(0, 1)]),
    "few bins": lambda: regressor(max_bins=4, max_interaction_bins=3),
    "two classes": lambda: classifier(Y > 0),
    "three classes": lambda: classifier(np.digitize(Y, [-0.5, 0.5]), interactions=0),
    "three classes and pairs": lambda: classifier(np.digitize(Y, [-0.5, 0.5]), interactions=[(0, 1), (3, 2)]),
    "smoothed": lambda: regressor(smoothing_rounds=20),
}
LINKED = {
    "log link": lambda: fitted(glassbox.ExplainableBoostingRegressor, X, np.exp(Y), objective="poisson_deviance"),
    "categories": lambda: fitted(
        glassbox.ExplainableBoostingRegressor, CODES, Y, feature_types=["continuous", "continuous", "nominal"]
    ),
}


def check(own, rows):
    """Check the direct call where this release of interpret adds terms up in their order; older ones are asked by their own method."""
    if adds_in_order(own):
        check_bits(own, rows)
    else:
        np.testing.assert_array_equal(own(as_table(rows)), own._documented(own._model, rows))


def adds_in_order(own):
    model = own._model
    terms, documented = model.eval_terms(X), own._documented(model, X)
    total = np.full(documented.shape, model.intercept_, float)
    for l in range(len(model.term_features_)):
        total += terms[:, l]
    return np.array_equal(total, documented)


def own_scores(model):
    return Explainer(model, output="all").reader.form.predict.args[0]


@pytest.mark.parametrize("name", MODELS)
def test_bits(name):
    own = own_scores(MODELS[name]())
    for n in (1, 40, 3, len(ODD)):
        check(own, ODD[-n:])
        check(own, ODD[-n:].astype(np.float32))
    check(own, np.asfortranarray(ODD)[::-2])
    frame = pd.DataFrame(ODD, columns=[f"feature_{j:04}" for j in range(5)])
    check(own, frame)
    check(own, frame.assign(feature_0001=np.arange(len(ODD)), feature_0002=frame["feature_0002"] > 0))


@pytest.mark.parametrize("name", MODELS)
def test_bits_of_many_rows_and_of_stages(name):
    own, rows = own_scores(MODELS[name]()), np.tile(ODD, (12, 1))
    assert len(rows) > _native_search.MANY
    assert len(own._trial) >= _native_search.MANY > own._few > 0, "both ways are tried"
    check(own, rows)
    check_stages(own, rows)
    check_stages(own, ODD.astype(np.float32)[::-2])
    check_stages(own, pd.DataFrame(ODD, columns=[f"feature_{j:04}" for j in range(5)]))


@pytest.mark.parametrize("n_rows", [1535, 1536, 4095, 4096])
def test_bits_around_the_numbers_of_rows_that_are_searched_as_more(n_rows):
    """Among more than 510 cuts, which only columns of many values have."""
    many = RNG.normal(size=(4000, 5))
    model = fitted(glassbox.ExplainableBoostingRegressor, many, many[:, 0] * many[:, 1], outer_bags=1, max_rounds=5)
    own, rows = own_scores(model), RNG.choice(np.r_[many.ravel(), np.nan, np.inf, -np.inf], size=(n_rows, 5))
    assert max(len(cuts) for levels in model.bins_ for cuts in levels) > _native_search.LONG
    if n_rows < _native_search.AT_ONCE:
        check(own, rows)
    check_stages(own, rows)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_model_without_terms_predicts_its_constant(n_jobs):
    model = regressor(exclude="mains", interactions=0)
    assert not model.term_features_
    rows = np.tile(X, (10, 1))
    explanation = Explainer(model, X[:9], n_jobs=n_jobs)(rows)
    assert explanation.certificate().passed
    assert not explanation.values.any()
    np.testing.assert_array_equal(explanation.prediction, model.predict(rows))


@pytest.mark.parametrize("n_rows", [2, 1535, 1536, 4095, 4096])
def test_a_search_reads_and_writes_no_more_than_its_room(n_rows):
    many = RNG.normal(size=(4096, 3))
    model = fitted(glassbox.ExplainableBoostingRegressor, many, many[:, 0], outer_bags=1, max_rounds=5)
    plan, seen = _native_search._Plan(model), []
    search, room, rows = plan.search, plan.empty(many[:n_rows]), many[:n_rows]
    if search is None:
        pytest.skip("this release of interpret has another search")
    whole = room if room.base is None else room.base
    end = whole.ctypes.data + whole.nbytes

    def seen_by(n, values, n_cuts, cuts, out):
        seen.append(np.frombuffer(ctypes.string_at(values, 8 * n)))
        assert whole.ctypes.data <= out <= end - 8 * n
        return search(n, values, n_cuts, cuts, out)

    plan.search = seen_by
    assert plan.fill(room, rows, slice(None))
    assert plan.fill(room, rows, slice(1, None))
    assert {len(values) for values in seen} <= {n_rows, _native_search._n_searched(n_rows)}
    assert max(map(len, seen)) == (4096 if n_rows >= 1536 else n_rows)
    assert not any(values[n_rows:].any() for values in seen), "what follows in memory"


def test_a_method_that_was_replaced_has_no_stages():
    model = regressor()
    own = own_scores(model)
    assert (own.stages(as_table(X)) is not None) == adds_in_order(own)
    model.predict = lambda rows: np.ones(len(rows))
    assert own.stages(as_table(X)) is None


def check_stages(own, rows):
    """Check the parts in another order than theirs; there are none of releases that add terms up in another order."""
    stages = own.stages(as_table(rows))
    if not adds_in_order(own):
        assert stages is None
        return
    assert len(stages.columns) > 1
    assert all(part() for part in reversed(stages.columns))
    np.testing.assert_array_equal(stages.finish(), own._documented(own._model, rows))


def test_tables_of_another_shape_than_their_cuts_say_are_looked_up_as_the_model_does():
    model = regressor(interactions=[(0, 1)])
    own, rows = own_scores(model), np.tile(ODD, (12, 1))
    check(own, rows)
    model.term_scores_[-1] = np.pad(model.term_scores_[-1], ((0, 0), (0, 2)), mode="edge")
    check(own, rows)
    check_stages(own, rows)
    model.term_scores_[-1] = model.term_scores_[-1][:, :2]
    for predict in (model.predict, lambda rows: own(as_table(rows))):
        with pytest.raises(IndexError):
            predict(rows)


@pytest.mark.parametrize("name", LINKED)
def test_what_is_more_than_a_search_is_left_to_the_model(name):
    model = LINKED[name]()
    assert own_scores(model)._direct is None
    assert own_scores(model).stages(as_table(X)) is None
    Explainer(model)((CODES if name == "categories" else X)[:3])


def test_a_model_that_was_edited_or_fitted_again_is_asked_as_it_is():
    model = regressor()
    own, before = own_scores(model), model.predict(ODD[:2])
    model.term_scores_[0][...] += 1.0  # in place
    check(own, ODD)
    model.term_scores_[1] = model.term_scores_[1] * 2.0
    model.intercept_ = model.intercept_ + 3.0
    check(own, ODD)
    model.bins_[0] = [cuts + 0.25 for cuts in model.bins_[0]]
    check(own, ODD)
    model.remove_terms([1])
    check(own, ODD)
    model.fit(X, -Y)
    check(own, ODD)
    assert not np.array_equal(own(as_table(ODD[:2])), before)


def test_an_edited_model_is_refused():
    model = regressor()
    explainer = Explainer(model)
    explainer(X[:1])
    model.term_scores_[0][...] *= 1.01
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(X[5:6])


def test_a_method_that_was_replaced_is_asked():
    model = regressor()
    explainer, own = Explainer(model), model.predict
    explainer(X[:1])
    model.predict = lambda rows: own(rows) + 1.0
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(X[:1])


def test_a_search_that_finds_other_bins_is_not_taken(monkeypatch):
    found = _native_search._Plan.bins
    monkeypatch.setattr(_native_search._Plan, "bins", lambda self, rows: found(self, np.nextafter(rows, np.inf)))
    model = regressor()
    own = own_scores(model)
    np.testing.assert_array_equal(own(as_table(ODD)), model.predict(ODD))
    assert not own._agrees(own._direct)


@pytest.mark.parametrize("argument", [None, [int]])
def test_a_release_without_the_search_is_asked_by_its_own_method(monkeypatch, argument):
    monkeypatch.setattr(_native_search, "ARGUMENTS", argument)
    model = regressor()
    own = own_scores(model)
    assert own._direct(model, X) is None
    assert own.stages(as_table(X)) is None
    np.testing.assert_array_equal(own(as_table(X)), model.predict(X))


def test_pickles_and_threads():
    model = classifier(Y > 0)
    explainer = Explainer(model)
    wanted = explainer(ODD).prediction
    copied = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(copied(ODD[:3]).prediction, wanted[:3])
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: explainer.reader.predict(as_table(ODD[: i % 7 + 1])), range(400)))
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(part, wanted[: i % 7 + 1])


@pytest.mark.parametrize("columns", [0, 4, 6])
def test_rows_of_other_widths_reach_no_search(columns):
    model = regressor()
    assert own_scores(model)._direct(model, np.zeros((1, columns))) is None
    assert own_scores(model)._direct.stages(model, np.zeros((1, columns))) is None

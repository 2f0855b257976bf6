import dataclasses
import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import exactshap
from exactshap import Explainer, explain, semivalues
from exactshap._runtime import threads
from exactshap.errors import BudgetError, ExactnessError, ExplanationWarning, InputError, UnknownNameError
from exactshap.explainer import _explainer, _plan, _solve
from exactshap.frames import as_table
from exactshap.readers import _base, _steps
from tolerances import HALF_THE_DIGITS, conditioned, roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
y = X["a"] * X["b"] + np.sin(3 * X["c"]) + X["d"]
MODEL = SVR(C=5).fit(X, y)


def test_shapes_of_one_output_and_of_many():
    one = explain(MODEL, X[:7])
    assert one.values.shape == (7, 6)
    assert one.baseline.shape == one.prediction.shape == one.residual.shape == (7,)
    many = explain(SVC().fit(X, np.digitize(y, [-1, 1])), X[:7])
    assert many.values.shape == (7, 6, 3)
    assert many.baseline.shape == many.prediction.shape == (7, 3)
    assert len(many.output_names) == 3


@pytest.mark.parametrize("order", [1, 2])
def test_no_rows_give_empty_results(order):
    explanation = explain(MODEL, X[:0], order=order)
    assert explanation.values.shape == (0, 6)
    assert explanation.certificate().passed


@pytest.mark.parametrize("background", [None, X[200:240]])
@pytest.mark.parametrize("order", [1, 2])
def test_same_bits_for_every_number_of_threads_and_every_block(background, order):
    reference = Explainer(MODEL, background)(X[:100], order=order)
    for settings in ({"n_jobs": 2}, {"n_jobs": -1, "memory_limit": 2.0**27}, {"memory_limit": 2.0**27 - 12345}):
        again = Explainer(MODEL, background, **settings)(X[:100], order=order)
        for name in ("values", "baseline", "residual", "tolerance"):
            np.testing.assert_array_equal(getattr(again, name), getattr(reference, name))
        if order == 2:
            np.testing.assert_array_equal(again.set_values, reference.set_values)


def _models():
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.linear_model import Ridge

    rows = X.to_numpy()
    return {
        "svr": (SVR().fit(rows, y), rows[200:230]),
        "gp": (GaussianProcessRegressor(alpha=0.1).fit(rows[:50], y[:50]), None),
        "forest": (RandomForestRegressor(5, max_depth=5, random_state=0).fit(rows, y), None),
        "forest with background": (RandomForestRegressor(5, max_depth=5, random_state=0).fit(rows, y), rows[200:220]),
        "ridge": (Ridge().fit(rows, y), rows[200:230]),
        "pipeline": (make_pipeline(StandardScaler(), SVR()).fit(rows, y), rows[200:220]),
        "function": (lambda table: np.tanh(table[:, 0] * table[:, 1]) + table[:, 2], rows[200:210]),
    }


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", ["svr", "gp", "forest with background", "pipeline", "function"])
def test_what_a_solver_made_is_what_the_checking_constructor_holds(name, order):
    model, background = _models()[name]
    quick = Explainer(model, background)(X[:3].to_numpy(), order=order)
    names = [field.name for field in dataclasses.fields(quick)]
    checked = type(quick)(**{name: getattr(quick, name) for name in names})
    for field in names:
        ours, theirs = getattr(quick, field), getattr(checked, field)
        assert type(ours) is type(theirs), field
        if isinstance(ours, np.ndarray):
            assert ours.dtype == theirs.dtype, field
            assert not ours.flags.writeable or field == "data"
            np.testing.assert_array_equal(ours, theirs)
        else:
            assert ours is theirs or ours == theirs, field


def test_a_reader_whose_arrays_do_not_fit_is_told_which():
    explainer = Explainer(MODEL)
    explainer.reader.predict = lambda rows: np.zeros((rows.n_rows, 2))
    with pytest.raises((InputError, ValueError), match=r"does not fit|broadcast"):
        explainer(X[:3])


def test_a_small_request_is_cut_once(monkeypatch):
    explainer = Explainer(MODEL, X[200:240], memory_limit=2.0**26)
    asked = []
    memory = type(explainer.reader).memory
    monkeypatch.setattr(type(explainer.reader), "memory", lambda *given: asked.append(given) or memory(*given))
    explainer(X[:1])
    first = len(asked)
    explainer(X[1:2])
    assert 0 < first == len(asked)
    explainer.memory_limit = 1.0
    with pytest.raises(BudgetError, match="memory_limit"):
        explainer(X[:1])


@pytest.mark.parametrize("name", ["svr", "gp", "forest", "forest with background", "ridge", "pipeline", "function"])
def test_the_rows_of_one_block_share_the_threads_with_the_same_bits(name, monkeypatch):
    model, background = _models()[name]
    reference = Explainer(model, background)(X.to_numpy()[:43])
    pieces = []
    monkeypatch.setattr(threads, "SECONDS", 0.0)  # any work is worth threads
    monkeypatch.setattr(threads, "LEAST", 0.0)
    original = threads.map_in_threads
    monkeypatch.setattr(threads, "map_in_threads", lambda f, tasks, n: pieces.append(n) or original(f, tasks, n))
    again = Explainer(model, background, n_jobs=2)(X.to_numpy()[:43])
    assert name == "function" or (2 in pieces) == (name != "ridge")  # many blocks of few rows; rows that wait for memory
    for field in ("values", "baseline", "prediction", "residual", "tolerance"):
        np.testing.assert_array_equal(getattr(again, field), getattr(reference, field))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("asks_itself", [False, True])
def test_threads_hold_their_pieces_against_the_models_own_prediction(asks_itself, monkeypatch):
    """A prediction that is off for one row is told with its number, whichever piece it is in; all fields are put in place."""
    monkeypatch.setattr(threads, "SECONDS", 0.0)
    monkeypatch.setattr(threads, "LEAST", 0.0)
    monkeypatch.setattr(_steps, "HELD_ROWS", 40)
    explainer, held = Explainer(MODEL, n_jobs=2), []
    explainer.reader.predicts_in_pieces = asks_itself
    explainer(X)
    predict, tolerance = explainer.reader.predict, explainer.reader.tolerance
    explainer.reader.predict = lambda table: predict(table) + 1e-3 * (table.numeric() == X.to_numpy()[229]).all(axis=1)

    def overflowing(own, part):
        held.append(len(own))
        return tolerance(own, part) * np.isinf(np.full(len(own), 1e308) * 10.0)  # no thread warns of that

    explainer.reader.tolerance = overflowing
    with pytest.raises(ExactnessError, match=r"residual 0.001 at row 229"):
        explainer(X)
    assert sum(held) == 300
    assert max(held) <= (150 if asks_itself else 40)


def test_threads_have_blocks_of_their_own_where_they_may_ask_the_model(monkeypatch):
    glassbox = pytest.importorskip("interpret.glassbox")
    rows = X.to_numpy()
    model = glassbox.ExplainableBoostingRegressor(max_rounds=20, outer_bags=1, interactions=1, n_jobs=1).fit(rows, y)
    asked_for = [(40_000, 1), (150_000, 1), (5_000, 2), (40_000, 2), (150_000, 2), (10**6, 2)]
    cuts = [Explainer(model, n_jobs=n)._cut(Explainer(model).reader, n_rows, 1).blocks for n_rows, n in asked_for]
    assert [len(blocks) for blocks in cuts] == [1, 15, 1, 4, 14, 98], "as many for each thread"
    assert all(blocks[0].stop - (blocks[-1].stop - blocks[-1].start) < 100 for blocks in cuts), "of even size"
    monkeypatch.setattr(_plan, "FEW_AT_ONCE", 7)
    monkeypatch.setattr(_plan, "CACHED_BLOCK", 8)
    reference, explainer, asked = Explainer(model)(rows[:43]), Explainer(model, n_jobs=2), []
    explainer(rows[:43])
    predict = explainer.reader.form.predict
    object.__setattr__(explainer.reader.form, "predict", lambda table: asked.append(table.n_rows) or predict(table))
    again = explainer(rows[:43])
    assert sorted(asked) == [3, 8, 8, 8, 8, 8]
    for field in ("values", "baseline", "prediction", "residual", "tolerance"):
        np.testing.assert_array_equal(getattr(again, field), getattr(reference, field))


def _boosting_machine(is_frame, monkeypatch):
    """Return rows, an explanation of 43 of them on one thread, and an explainer with two, for which any work is enough."""
    glassbox = pytest.importorskip("interpret.glassbox")
    rows = X if is_frame else X.to_numpy()
    model = glassbox.ExplainableBoostingRegressor(max_rounds=20, outer_bags=1, interactions=1, n_jobs=1).fit(rows, y)
    reference, explainer = Explainer(model, rows[50:60])(rows[:43]), Explainer(model, rows[50:60], n_jobs=2)
    monkeypatch.setattr(threads, "SECONDS", 0.0)
    monkeypatch.setattr(threads, "LEAST", 0.0)
    return rows, reference, explainer


@pytest.mark.parametrize("is_frame", [True, False])
def test_threads_that_share_few_rows_of_a_model_that_they_ask_predict_their_own(is_frame, monkeypatch):
    rows, reference, explainer = _boosting_machine(is_frame, monkeypatch)
    asked = []
    predict, at_pace, paces = explainer.reader.form.predict, _explainer.at_pace, []
    object.__setattr__(explainer.reader.form, "predict", lambda table: asked.append(table.n_rows) or predict(table))
    object.__setattr__(explainer.reader.form, "stages", None)  # as of rows that the model alone can read
    monkeypatch.setattr(_explainer, "at_pace", lambda pace, n_rows: paces.append(pace) or at_pace(pace, n_rows))
    for few in (4096, 10):  # pieces of the rows and two hybrids; all of them, while others are solved
        monkeypatch.setattr(_base, "FEW_AT_ONCE", few)
        explainer(rows[:43])
        asked.clear()
        again = explainer(rows[:43])
        assert sum(asked) == 45
        assert (len(asked) > 1) == (few > 45)
        for field in ("values", "baseline", "prediction", "residual", "tolerance"):
            np.testing.assert_array_equal(getattr(again, field), getattr(reference, field))
    assert [paces.index(pace) for pace in paces] == [0, 0, 2, 2], "rows that are predicted as well take longer"


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("is_frame", [True, False])
def test_threads_search_columns_of_a_model_that_is_quick_at_many_rows_alone(is_frame, refuses, monkeypatch):
    rows, reference, explainer = _boosting_machine(is_frame, monkeypatch)
    asked = []
    monkeypatch.setattr(_steps, "STAGED", 43)
    form, shared = explainer.reader.form, []
    predict, stages = form.predict, form.stages

    def seen(table):
        found = stages(table)
        columns = [lambda part=part: shared.append(table.n_rows) or (part() and not refuses) for part in found.columns]
        return found._replace(columns=columns)

    object.__setattr__(form, "predict", lambda table: asked.append(table.n_rows) or predict(table))
    object.__setattr__(form, "stages", seen)
    explainer(rows[:43])  # and more hybrids
    explainer._kept.clear()
    for _ in range(2):  # the pace is unknown, and known
        asked.clear()
        shared.clear()
        again = explainer(rows[:43])
        assert len(shared) > 1
        assert {*shared} == {45}, "two hybrids"
        assert sum(asked) == (45 if refuses else 0)
        for field in ("values", "baseline", "prediction", "residual", "tolerance"):
            np.testing.assert_array_equal(getattr(again, field), getattr(reference, field))
        assert again.certificate().passed


def test_threads_that_share_a_block_share_its_predictions_where_these_take_as_long(monkeypatch):
    lightgbm = pytest.importorskip("lightgbm")
    rows = X.to_numpy()
    model = lightgbm.LGBMRegressor(n_estimators=8, n_jobs=1, verbose=-1).fit(rows, y)
    assert not Explainer(lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(rows, y)).reader.predicts_in_pieces
    reference, explainer, asked = Explainer(model, rows[50:60])(rows[:43]), Explainer(model, rows[50:60], n_jobs=2), []
    monkeypatch.setattr(threads, "SECONDS", 0.0)
    monkeypatch.setattr(threads, "LEAST", 0.0)
    predict = explainer.reader._own_margin
    explainer.reader._own_margin = lambda table: asked.append(table.n_rows) or predict(table)
    for block_rows, largest in ((4096, 42), (10, 8)):  # one block, whose rows share the threads; as many for each, of one size
        explainer.reader.block_rows = block_rows
        explainer._kept.clear()
        explainer(rows[:43])
        asked.clear()
        again = explainer(rows[:43])
        assert 1 < len(asked) <= 20
        assert max(asked) <= largest
        for field in ("values", "baseline", "prediction", "residual", "tolerance"):
            np.testing.assert_array_equal(getattr(again, field), getattr(reference, field))


# of the time in calls, none of which is 0 % or more than all; or seconds of a row between them
@pytest.mark.parametrize(("share", "seconds"), [(0.0, np.inf), (2.0, np.inf), (2.0, 0.0)])
@pytest.mark.parametrize("n_rows", [3, 40])
def test_a_function_that_is_called_gets_threads_where_calls_or_matrices_take_the_time(n_rows, share, seconds, monkeypatch):
    rows, background = X.to_numpy()[:n_rows], X.to_numpy()[50:55]
    monkeypatch.setattr(threads, "PAYS", share)
    monkeypatch.setattr(threads, "MATRICES", seconds)
    monkeypatch.setattr(threads, "SECONDS", 0.0)
    monkeypatch.setattr(threads, "LEAST", 0.0)
    workers = []
    for place in (threads, _solve):
        original = place.map_in_threads
        monkeypatch.setattr(place, "map_in_threads", lambda f, tasks, n, go=original: workers.append(n) or go(f, tasks, n))
    explainer = Explainer(lambda A: np.tanh(A).sum(axis=1), background, n_jobs=2)
    assert explainer.reader.threads_pay() is None
    ours = explainer(rows).values
    assert (2 in workers) == explainer.reader.threads_pay() == (share == 0.0 or seconds == 0.0)
    np.testing.assert_array_equal(ours, Explainer(lambda A: np.tanh(A).sum(axis=1), background)(rows).values)


def test_rows_of_a_function_go_one_by_one_past_the_ends_of_blocks(monkeypatch):
    """Of each block the function predicts all rows in one call, whoever solves them: a prediction may depend on its company."""

    def function(A):
        return np.tanh(A).sum(axis=1) + 1e-16 * len(A)

    for name, value in {"SECONDS": 0.0, "LEAST": 0.0, "PAYS": 0.0}.items():
        monkeypatch.setattr(threads, name, value)
    tasks, seen, original = [], [], _solve.map_in_threads
    monkeypatch.setattr(_solve, "map_in_threads", lambda f, steps, n: tasks.append((len(steps), n)) or original(f, steps, n))
    rows, background = X.to_numpy()[:15], X.to_numpy()[50:55]
    serial = Explainer(function, background)(rows)
    explainer = Explainer(function, background, n_jobs=2, progress=lambda done, total: seen.append((done, total)))
    for _ in range(2):
        threaded = explainer(rows)
        for field in ("values", "baseline", "prediction", "residual", "tolerance"):
            np.testing.assert_array_equal(getattr(threaded, field), getattr(serial, field))
    assert tasks == [(11 + 3, 2), (15 + 4, 2)]  # the first block of all told the pace
    assert seen == 2 * [(4, 15), (8, 15), (12, 15), (15, 15)]


def test_no_thread_goes_on_after_an_error(monkeypatch):
    for name, value in {"SECONDS": 0.0, "LEAST": 0.0, "PAYS": 0.0}.items():
        monkeypatch.setattr(threads, name, value)
    calls = []

    def function(A):
        calls.append(len(A))
        time.sleep(0.002)
        return np.tanh(A).sum(axis=1)

    def failing(*arguments, **settings):
        raise RuntimeError("as asked")

    rows = np.random.default_rng(0).normal(size=(120, 4))
    explainer = Explainer(function, rows[:5], n_jobs=2)
    explainer.reader.block_rows = 20
    explainer(rows)
    monkeypatch.setattr(_solve, "certified", failing)
    with pytest.raises(RuntimeError, match="as asked") as kept:  # a traceback holds what was under way
        explainer(rows)
    n_calls = len(calls)
    time.sleep(0.2)
    assert kept.value is not None
    assert len(calls) == n_calls


@pytest.mark.parametrize("bad", [2, 9, 14])
def test_a_row_of_a_later_block_is_named_by_its_place_in_the_table(bad, monkeypatch):
    for name, value in {"SECONDS": 0.0, "LEAST": 0.0, "PAYS": 0.0}.items():
        monkeypatch.setattr(threads, name, value)
    rows, background = X.to_numpy()[:15].copy(), X.to_numpy()[50:55]
    explainer = Explainer(lambda A: np.where((A == 77.0).any(axis=1), np.nan, A.sum(axis=1)), background, n_jobs=2)
    explainer(rows)
    rows[bad, 0] = 77.0
    with pytest.raises(InputError, match=f"for row {bad}"):
        explainer(rows)


def test_rows_that_share_no_work_are_taken_one_by_one_if_they_take_long(monkeypatch):
    monkeypatch.setattr(threads, "SECONDS", 0.0)

    def sizes(**settings):
        taken = []
        with threads.using_jobs(2, of_a_block=2):
            threads.rows_in_threads(taken.append, 40, lambda: None, **settings)
        assert sorted(i for rows in taken for i in range(rows.start, rows.stop)) == list(range(40))
        return sorted(rows.stop - rows.start for rows in taken)

    monkeypatch.setattr(threads, "LEAST", 0.0)
    assert sizes(one_by_one=True) == [1] * 38 + [2]  # the first two told the pace
    assert len(sizes()) < 20
    monkeypatch.setattr(threads, "LEAST", np.inf)
    assert sizes(one_by_one=True) == [2, 38]


def test_what_solving_raises_comes_before_what_the_model_does():
    def function(rows):
        if rows.start > 2:
            raise InputError("ours")
        return rows

    def beside():
        raise ValueError("the model's")

    with pytest.MonkeyPatch.context() as patch, threads.using_jobs(2, of_a_block=2):
        patch.setattr(threads, "SECONDS", 0.0)
        patch.setattr(threads, "LEAST", 0.0)
        with pytest.raises(InputError, match="ours"):
            threads.rows_in_threads(function, 40, beside)
        with pytest.raises(ValueError, match="the model's"):
            threads.rows_in_threads(lambda rows: rows, 40, beside)
        pieces, found = threads.rows_in_threads(lambda rows: rows, 40, lambda: 7)
    assert found == 7
    assert [i for rows in pieces for i in range(rows.start, rows.stop)] == list(range(40))


def test_threads_really_run_blocks(monkeypatch):
    monkeypatch.setattr("exactshap.readers.kernel_machines._streamed.BLOCK_ROWS", (10, 10))
    seen = []
    explanation = Explainer(MODEL, n_jobs=2, progress=lambda done, total: seen.append((done, total)))(X[:35])
    assert seen == [(10, 35), (20, 35), (30, 35), (35, 35)]
    np.testing.assert_array_equal(explanation.values, explain(MODEL, X[:35]).values)


def test_interactions_are_symmetric_and_add_up():
    explanation = explain(MODEL, X[:5], X[100:120], index="k-sii", order=2)
    matrix = explanation.interactions
    assert matrix.shape == (5, 6, 6)
    np.testing.assert_array_equal(matrix, matrix.transpose(0, 2, 1))
    total = np.triu(matrix).sum(axis=(1, 2))
    np.testing.assert_allclose(total, explanation.prediction - explanation.baseline, atol=roundings(50_000))
    assert np.abs(explanation.residual).max() < roundings(50_000)


def test_higher_orders_are_named_sets():
    explanation = explain(MODEL, X[:2], index="stii", order=3)
    assert explanation.sets[0] == (0,)
    assert explanation.sets[-1] == (3, 4, 5)
    assert explanation.set_values.shape == (2, len(explanation.sets))
    np.testing.assert_allclose(
        explanation.set_values.sum(axis=1), explanation.prediction - explanation.baseline, atol=roundings(50_000)
    )


def test_a_user_semivalue_through_the_front_door():
    mine = semivalues.Semivalue("mine", semivalues.Atom(0.5))
    np.testing.assert_array_equal(explain(MODEL, X[:3], index=mine).values, explain(MODEL, X[:3], index="banzhaf").values)


def test_values_that_are_not_shares_are_certified_by_the_prediction():
    explanation = explain(MODEL, X[:3], index="banzhaf")
    assert explanation.certificate().passed
    assert "v(all players)" in explanation.certificate().checks


def test_names_come_from_the_model_the_background_or_the_call():
    bare = SVR().fit(X.to_numpy(), y)
    assert explain(bare, X.to_numpy()[:2]).feature_names == ("x0", "x1", "x2", "x3", "x4", "x5")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert explain(bare, X[:2], X[:3]).feature_names == tuple("abcdef")
    assert explain(bare, X.to_numpy()[:2], feature_names=list("uvwxyz")).feature_names == tuple("uvwxyz")
    with pytest.raises(InputError, match="must hold 6 names"):
        explain(bare, X.to_numpy()[:2], feature_names=["u"])


def test_columns_in_another_order_are_refused_or_aligned_on_request():
    shuffled = X[list("fedcba")]
    with pytest.raises(UnknownNameError, match="must be in the same order"):
        explain(MODEL, shuffled[:2])
    np.testing.assert_array_equal(explain(MODEL, shuffled[:2], align=True).values, explain(MODEL, X[:2]).values)
    aligned = explain(MODEL, X[:2], shuffled[:9], align=True)
    np.testing.assert_array_equal(aligned.values, explain(MODEL, X[:2], X[:9]).values)


def test_arrays_for_a_model_fitted_on_frames_warn_in_scikit_learns_words():
    with pytest.warns(UserWarning, match="X does not have valid feature names, but SVR was fitted with feature names"):
        explain(MODEL, X.to_numpy()[:2])


def test_the_background_is_copied_and_hashed():
    background = X.to_numpy()[:20].copy()
    model = SVR().fit(X.to_numpy(), y)
    explainer = Explainer(model, background)
    before = explainer(X.to_numpy()[:3])
    background[:] = 0.0
    after = explainer(X.to_numpy()[:3])
    np.testing.assert_array_equal(after.values, before.values)
    assert after.background_size == 20
    assert after.background_hash == before.background_hash
    assert after.background_hash != Explainer(model, background)(X.to_numpy()[:1]).background_hash


@pytest.mark.filterwarnings("ignore")
def test_rows_and_background_of_different_kinds_of_tables_are_verified_by_hand():
    pl = pytest.importorskip("polars")
    kinds = {"array": X.to_numpy(), "pandas": X, "polars": pl.from_pandas(X), "arrow": pl.from_pandas(X).to_arrow()}
    expected = explain(MODEL, X[:3], X[5:9]).values
    for rows in kinds.values():
        for background in kinds.values():
            explainer = Explainer(MODEL, background[5:9])
            np.testing.assert_array_equal(explainer(rows[:3]).values, expected)
            assert explainer.verify(rows[:3]).passed


def test_weights_of_the_background_count_as_copies_of_rows():
    weighted = explain(MODEL, X[:3], X[10:13], background_weights=[1, 2, 0])
    copies = explain(MODEL, X[:3], X.iloc[[10, 11, 11]])
    np.testing.assert_allclose(weighted.values, copies.values, atol=roundings(500))


def test_explainers_pickle():
    explainer = Explainer(make_pipeline(StandardScaler(), SVR()).fit(X, y), X[:9], groups={"ab": ["a", "b"]})
    clone = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(clone(X[:3]).values, explainer(X[:3]).values)


def test_explanations_share_nothing_that_can_be_changed():
    explainer = Explainer(MODEL, groups={"ab": ["a", "b"], "rest": ["c", "d", "e"]})
    first, second = explainer(X[:2]), explainer(X[:2])
    first.groups.clear()
    assert dict(second.groups) == dict(explainer(X[:2]).groups) == {"ab": ("a", "b"), "rest": ("c", "d", "e")}


def test_groups_are_reported():
    explanation = explain(MODEL, X[:2], groups={"ab": ["a", "b"], "rest": ["c", "d", "e"]})
    assert explanation.feature_names == ("ab", "rest", "f")
    assert dict(explanation.groups) == {"ab": ("a", "b"), "rest": ("c", "d", "e")}


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ({"g": ["a", "nope"]}, "unknown column 'nope'"),
        ({"g": ["a"], "h": ["a"]}, "in more than one group"),
        ({"g": []}, "has no columns"),
        ({"c": ["a", "b"]}, "has the name of a column outside it"),
        ({"g": [17]}, "names column 17"),
    ],
)
def test_bad_groups_are_refused(groups, text):
    with pytest.raises(InputError, match=text):
        Explainer(MODEL, groups=groups)


def test_plan_tells_before_running():
    forecast = Explainer(MODEL, X[:50]).plan(X)
    assert forecast.exact
    assert forecast.method == explain(MODEL, X, X[:50]).method
    assert 0 < forecast.seconds < 60
    assert forecast.result == 8 * 300 * 6
    assert "working memory" in str(forecast)


def test_verify_sees_credit_given_to_the_wrong_column():
    """A reading that swaps two columns still adds up; only the mask check can see it."""
    explainer = Explainer(MODEL, X[:20])
    assert explainer.verify(X[:5]).passed
    players = list(explainer.reader.players)
    game = explainer.reader.game
    explainer.reader.game = lambda table: _swapped(game(table))
    verification = explainer.verify(X[:5])
    assert not verification.passed
    assert verification.max_residual < verification.tolerance
    assert verification.max_mask_difference > 1e-3
    assert players == list(explainer.reader.players)


def _swapped(game):
    from exactshap.games import ProductGame

    order = [1, 0, 2, 3, 4, 5]
    return ProductGame(game.c[:, 0], game.a[:, :, order], game.b[:, :, order], game.weights, game.constant)


def test_an_inexact_result_raises_or_warns_and_keeps_its_residual():
    explainer = Explainer(MODEL)
    predict = explainer.reader._predict
    explainer.reader._predict = lambda table: predict(table) + 1e-6
    with pytest.raises(ExactnessError, match="Values do not add up: residual 1e-06"):
        explainer(X[:3])
    explainer.on_inexact = "warn"
    with pytest.warns(ExplanationWarning, match="Values do not add up"):
        explanation = explainer(X[:3])
    np.testing.assert_allclose(explanation.residual, 1e-6, rtol=conditioned(1e11))
    with pytest.raises(InputError, match="must be 'raise' or 'warn'"):
        Explainer(MODEL, on_inexact="ignore")


def test_requests_that_cannot_fit_are_refused_with_numbers():
    with pytest.raises(BudgetError, match=r"It would need .* GiB; the limit is"):
        Explainer(MODEL, memory_limit=1000)(X[:3])
    wide = SVR().fit(rng.normal(size=(20, 300)), rng.normal(size=20))
    with pytest.raises(BudgetError, match="sets; the limit is"):
        Explainer(wide)(np.zeros((1, 300)), order=4)


def test_the_public_door_is_small_and_complete():
    assert set(exactshap.__all__) <= set(dir(exactshap))
    assert len([name for name in exactshap.__all__ if not name.startswith("_")]) <= 12
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        exactshap.nope


@pytest.mark.parametrize("value_function", ["interventional", "baseline"])
def test_the_stability_bound_holds_and_needs_its_game(value_function):
    background = X[200:230] if value_function == "interventional" else X[200:201]
    explainer = Explainer(MODEL, background, value_function=value_function)
    explanation = explainer(X[:20])
    for delta in (0.0, 0.01, 0.3):
        found = explanation.stability(delta)
        for sign in (1.0, -1.0):
            moved = np.abs(explainer(X[:20] + sign * delta).values - explanation.values).max()
            assert moved <= found.bound[0] + 1e-12
    assert explanation.stability(0.0).bound[0] == pytest.approx(0.0, abs=HALF_THE_DIGITS * explanation.stability(1.0).bound[0])
    norm = np.sqrt(
        MODEL.dual_coef_
        @ np.exp(-MODEL._gamma * ((MODEL.support_vectors_[:, None] - MODEL.support_vectors_) ** 2).sum(2))
        @ MODEL.dual_coef_.T
    )
    assert explanation.stability(0.1).rkhs_norm[0] == pytest.approx(norm.item(), rel=conditioned(1e5))
    with pytest.raises(InputError, match="has no stability bound"):
        explain(MODEL, X[:2]).stability(0.1)
    with pytest.raises(InputError, match="finite float >= 0"):
        explanation.stability(-1.0)


def test_a_real_explanation_survives_its_file(tmp_path):
    explanation = explain(MODEL, X[:9], X[200:230], index="k-sii", order=2, groups={"ab": ["a", "b"]})
    explanation.save(tmp_path / "values.npz")
    loaded = exactshap.Explanation.load(tmp_path / "values.npz")
    np.testing.assert_array_equal(loaded.values, explanation.values)
    np.testing.assert_array_equal(loaded.interactions, explanation.interactions)
    assert loaded.certificate() == explanation.certificate()
    assert loaded.feature_names == ("ab", "c", "d", "e", "f")


def test_values_that_overflow_are_refused_and_an_infinite_tolerance_allows_nothing():
    model = LinearRegression().fit(np.eye(3), [1.0, 2.0, 3.0])
    model.coef_ = np.array([1e308, 1.0, 1.0])  # 1.5e308 and -1.5e308 are numbers, their difference is none
    X, background = np.array([[1.5, 0.0, 0.0]]), np.array([[-1.5, 0.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ExactnessError, match="overflow float64"):
            explain(model, X, background)
    with pytest.warns(ExplanationWarning, match="overflow"):
        kept = Explainer(model, background, on_inexact="warn")(X)
    assert not kept.certificate().passed
    assert "FAILED" in kept.facts()["residual"]
    assert not kept.rows_within_tolerance.any()


def test_bounds_of_rows_are_added_to_their_tolerance():
    reader = Explainer(MODEL).reader
    explained = reader.answer(as_table(X.to_numpy()), semivalues.find("shapley"), 1)
    bounds = np.arange(300.0)
    exact, loose = (reader.tolerance(explained.prediction, explained.with_(error_bound=bound)) for bound in (0.0, bounds))
    np.testing.assert_array_equal(loose, exact + bounds)

import dataclasses
import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVC, SVR

import exactshap
import golden_models
from exactshap import Explainer, explain, semivalues
from exactshap.errors import BudgetError, ExactnessError, ExplanationWarning, InputError
from exactshap.explainer._certify import tolerance_of
from exactshap.explainer._plan import cut_rows
from exactshap.frames import as_table
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


def test_a_reader_whose_arrays_do_not_fit_is_told_which():
    explainer = Explainer(MODEL)
    explainer.reader.predict = lambda rows: np.zeros((rows.n_rows, 2))
    with pytest.raises(InputError, match="does not predict one number for each row"):
        explainer(X[:3])


@pytest.mark.parametrize(
    ("name", "n_background"),
    [
        ("SVR", 30),
        ("GP", 0),
        ("random forest", 0),
        ("random forest", 20),
        ("LinearRegression", 30),
        ("scaler, SVR", 20),
        ("formula", 10),
    ],
)
def test_threads_share_the_rows_of_one_block_and_change_no_bit(name, n_background):
    data = golden_models.Data()
    model, background = golden_models.MODELS[name].fitted(data), data.X[60 : 60 + n_background] if n_background else None
    rows = data.X[:43]
    reference, threaded = Explainer(model, background)(rows), Explainer(model, background, n_jobs=2)(rows)
    for field in ("values", "baseline", "prediction", "residual", "tolerance"):
        np.testing.assert_array_equal(getattr(threaded, field), getattr(reference, field))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_prediction_that_is_off_for_one_row_is_named_by_its_number(n_jobs):
    explainer = Explainer(MODEL, n_jobs=n_jobs)
    predict = explainer.reader.predict
    explainer.reader.predict = lambda table: predict(table) + 1e-3 * (table.numeric() == X.to_numpy()[229]).all(axis=1)
    with pytest.raises(ExactnessError, match=r"residual 0.001 at row 229"):
        explainer(X)


def test_the_model_predicts_each_block_in_one_call_for_every_number_of_threads():
    """A prediction may depend on the rows that are predicted with it."""

    def function(A):
        return np.tanh(A).sum(axis=1) + 1e-16 * len(A)

    seen = []
    rows, background = X.to_numpy()[:15], X.to_numpy()[50:55]
    serial = Explainer(function, background)(rows)
    explainer = Explainer(function, background, n_jobs=2, progress=lambda done, total: seen.append((done, total)))
    for _ in range(2):
        threaded = explainer(rows)
        for field in ("values", "baseline", "prediction", "residual", "tolerance"):
            np.testing.assert_array_equal(getattr(threaded, field), getattr(serial, field))
    assert seen == 2 * [(4, 15), (8, 15), (12, 15), (15, 15)]


def test_no_thread_goes_on_after_an_error():
    calls = []

    def function(A):
        calls.append(len(A))
        time.sleep(0.002)
        return np.tanh(A).sum(axis=1)

    rows = np.random.default_rng(0).normal(size=(120, 4))
    explainer = Explainer(function, rows[:5], n_jobs=2)
    explainer.reader.traits = replace(explainer.reader.traits, block_rows=20)
    explainer(rows)
    solve = explainer.reader.solve

    def failing(table, *question):
        if (table.numeric() == rows[30]).all(axis=1).any():
            raise RuntimeError("as asked")
        return solve(table, *question)

    explainer.reader.solve = failing
    with pytest.raises(RuntimeError, match="as asked") as kept:  # a traceback holds what was under way
        explainer(rows)
    n_calls = len(calls)
    time.sleep(0.2)
    assert kept.value is not None
    assert len(calls) == n_calls


@pytest.mark.parametrize("bad", [2, 9, 14])
def test_a_row_of_a_later_block_is_named_by_its_place_in_the_table(bad):
    rows, background = X.to_numpy()[:15].copy(), X.to_numpy()[50:55]
    explainer = Explainer(lambda A: np.where((A == 77.0).any(axis=1), np.nan, A.sum(axis=1)), background, n_jobs=2)
    explainer(rows)
    rows[bad, 0] = 77.0
    with pytest.raises(InputError, match=f"for row {bad}"):
        explainer(rows)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_what_solving_raises_comes_before_what_the_model_does(n_jobs):
    rows = X.to_numpy()[:40].copy()
    rows[7, 2] = np.nan
    with pytest.raises(InputError, match="first at row 7, column 2"):
        Explainer(SVR().fit(X.to_numpy(), y), n_jobs=n_jobs)(rows)


@pytest.mark.parametrize(
    ("n_rows", "n_jobs", "limit"), [(10, 2, 2.0**30), (5000, 2, 2.0**30), (5000, 3, 2.0**21), (1, 2, 2.0**30)]
)
def test_cuts_cover_all_rows_and_blocks_do_not_depend_on_threads(n_rows, n_jobs, limit):
    reader = Explainer(MODEL, X[:20]).reader
    cut, alone = (cut_rows(reader, n_rows, 1, limit, n) for n in (n_jobs, 1))
    assert cut.blocks == alone.blocks
    assert alone.workers == 1
    assert [i for block in cut.blocks for rows in cut.pieces(block) for i in range(rows.start, rows.stop)] == list(
        range(n_rows)
    )
    assert cut.workers * reader.memory(cut.piece_rows, 1) <= limit
    assert cut.workers == (1 if n_rows == 1 else n_jobs)


def test_higher_orders_are_named_sets():
    explanation = explain(MODEL, X[:2], index="stii", order=3)
    assert explanation.sets[0] == (0,)
    assert explanation.sets[-1] == (3, 4, 5)
    assert explanation.set_values.shape == (2, len(explanation.sets))
    np.testing.assert_allclose(
        explanation.set_values.sum(axis=1), explanation.prediction - explanation.baseline, atol=roundings(50_000)
    )


def test_a_users_semivalue_is_certified_by_the_prediction():
    mine = explain(MODEL, X[:3], index=semivalues.Semivalue("mine", semivalues.Atom(0.5)))
    np.testing.assert_array_equal(mine.values, explain(MODEL, X[:3], index="banzhaf").values)
    assert mine.certificate().passed
    assert "v(all players)" in mine.certificate().checks


def test_names_come_from_the_model_the_background_or_the_call():
    bare = SVR().fit(X.to_numpy(), y)
    assert explain(bare, X.to_numpy()[:2]).feature_names == ("x0", "x1", "x2", "x3", "x4", "x5")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert explain(bare, X[:2], X[:3]).feature_names == tuple("abcdef")
    assert explain(bare, X.to_numpy()[:2], feature_names=list("uvwxyz")).feature_names == tuple("uvwxyz")
    with pytest.raises(InputError, match="must hold 6 names"):
        explain(bare, X.to_numpy()[:2], feature_names=["u"])
    assert Explainer(MODEL, feature_names=iter("abcdef")).reader.traits.feature_names == tuple("abcdef")
    with pytest.raises(InputError, match="fitted with feature names of its own"):
        Explainer(MODEL, feature_names=list("uvwxyz"))


@pytest.mark.filterwarnings("ignore")
def test_rows_and_background_of_different_kinds_of_tables_are_verified_by_hand():
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


def test_groups_are_reported_and_shared_with_no_other_explanation():
    explainer = Explainer(MODEL, groups={"ab": ["a", "b"], "rest": ["c", "d", "e"]})
    first, second = explainer(X[:2]), explainer(X[:2])
    assert first.feature_names == ("ab", "rest", "f")
    first.groups.clear()
    assert dict(second.groups) == dict(explainer(X[:2]).groups) == {"ab": ("a", "b"), "rest": ("c", "d", "e")}


def test_plan_tells_before_running():
    forecast = Explainer(MODEL, X[:50]).plan(X)
    assert forecast.exact
    assert forecast.method == explain(MODEL, X, X[:50]).method
    assert 0 < forecast.seconds < 60
    assert forecast.result == 8 * 300 * (6 + 5)  # values; baseline, prediction, residual, tolerance and error bound
    assert "working memory" in str(forecast)


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
    reader, table = Explainer(MODEL).reader, as_table(X.to_numpy())
    solution, prediction = reader.solve(table, semivalues.find("shapley"), 1), reader.predict(table)
    bounds = np.arange(300.0)
    exact, loose = (
        tolerance_of(
            reader, prediction, dataclasses.replace(solution, part=dataclasses.replace(solution.part, error_bound=bound))
        )
        for bound in (0.0, bounds)
    )
    np.testing.assert_array_equal(loose, exact + bounds)

import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import is_classifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.svm import SVC, SVR

import exactshap
from exactshap import Explainer, explain, semivalues
from exactshap.errors import BudgetError, ExactnessError, ExplanationWarning, InputError, InputTypeError, UnknownNameError
from exactshap.explainer._certify import tolerance_of
from exactshap.explainer._plan import cut_rows
from exactshap.frames import as_table
from exactshap.games import OracleGame, ProductGame, all_masks
from exactshap.readers import AdditiveModel
from exactshap.solvers import choose, solve
from tolerances import assert_close, conditioned, roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
y = X["a"] * X["b"] + np.sin(3 * X["c"]) + X["d"]
MODEL = SVR(C=5).fit(X, y)


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


@pytest.mark.parametrize(
    ("n_rows", "n_jobs", "limit"), [(10, 2, 2.0**30), (5000, 2, 2.0**30), (5000, 3, 2.0**21), (1, 2, 2.0**30)]
)
def test_cuts_cover_all_rows_and_blocks_do_not_depend_on_threads(n_rows, n_jobs, limit):
    reader = Explainer(MODEL, X[:20]).reader
    cut, alone = (cut_rows(reader, n_rows, 1, limit, n) for n in (n_jobs, 1))
    assert cut.blocks == alone.blocks
    assert alone.workers == 1
    assert [i for block in cut.blocks for rows in cut.pieces(block) for i in range(rows.start, rows.stop)] == [*range(n_rows)]
    assert cut.workers * reader.memory(cut.piece_rows, 1) <= limit
    assert cut.workers == (1 if n_rows == 1 else n_jobs)


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
@pytest.mark.parametrize(
    "model",
    [LinearRegression(), KernelRidge(kernel="rbf"), RandomForestRegressor(2), RandomForestClassifier(2), SVC()],
    ids=str,
)
def test_one_output_of_several_is_named_in_its_unit(model):
    X = np.random.default_rng(0).normal(size=(30, 3))
    model.fit(X, np.arange(30) % 3 if is_classifier(model) else X[:, :2])
    every = explain(model, X[:2], X[:5])
    for k, name in enumerate(every.output_names):
        picked = [every.output(k), *(explain(model, X[:2], X[:5], output=one) for one in (k, name))]
        assert {one.unit for one in picked} == {f"{every.unit} of {name}"}
    reasons = [explain(model, X[:2], X[:5], output=k).reasons(1, adverse="positive").hashes() for k in (0, 1)]
    assert not set(reasons[0]) & set(reasons[1])


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
    predict = explainer.reader.predict
    explainer.reader.predict = lambda table: predict(table) + 1e-6
    with pytest.raises(ExactnessError, match="Values do not add up: residual 1e-06"):
        explainer(X[:3])
    explainer.on_inexact = "warn"
    with pytest.warns(ExplanationWarning, match="Values do not add up"):
        explanation = explainer(X[:3])
    np.testing.assert_allclose(explanation.residual, 1e-6, rtol=conditioned(1e11))


def test_requests_that_cannot_fit_are_refused_with_numbers():
    with pytest.raises(BudgetError, match=r"It would need .* GiB; the limit is .*, or group columns with groups=\.$"):
        Explainer(MODEL, memory_limit=1000)(X[:3])
    with pytest.raises(BudgetError, match=r"at order 2 .*, or group columns with groups=; a lower order= needs less\.$"):
        Explainer(MODEL, memory_limit=1000)(X[:3], order=2)
    wide = SVR().fit(rng.normal(size=(20, 300)), rng.normal(size=20))
    with pytest.raises(BudgetError, match="sets; the limit is"):
        Explainer(wide)(np.zeros((1, 300)), order=4)


def test_the_public_door_is_small_and_complete():
    assert set(exactshap.__all__) <= set(dir(exactshap))
    assert len([name for name in exactshap.__all__ if not name.startswith("_")]) <= 12
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        exactshap.nope


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

    def tolerance(bound):
        return tolerance_of(reader, prediction, replace(solution, part=replace(solution.part, error_bound=bound)))

    np.testing.assert_array_equal(tolerance(bounds), tolerance(0.0) + bounds)


# --- windows, pictures and several inputs: players along named axes ---------------------------------------------------


random = np.random.default_rng(0)
WINDOWS = random.normal(size=(20, 4, 3))
SHAPE = {"time": 4, "variable": ["load", "wind", "price"]}
PLACE = np.arange(12).reshape(4, 3)


def network(windows):
    assert windows.shape[1:] == (4, 3)
    return windows[:, -1, 0] * windows[:, :, 1].mean(axis=1) + np.tanh(windows[:, 0, 2])


def by_hand(groups):
    flat = WINDOWS.reshape(20, 12)
    return explain(lambda rows: network(rows.reshape(-1, 4, 3)), flat[:2], flat[5:], groups=groups)


PATCHES = {
    f"time {2 * k} to time {2 * k + 1}, {name}": PLACE[2 * k : 2 * k + 2, columns].ravel()
    for k in range(2)
    for name, columns in (("load to wind", slice(0, 2)), ("price", slice(2, 3)))
}
PLAYERS = {
    "variables": ("variable", {"load": PLACE[:, 0], "wind": PLACE[:, 1], "price": PLACE[:, 2]}),
    "times": (["time"], {f"time {k}": PLACE[k] for k in range(4)}),
    "windows": ({"time": 3}, {"time 0 to time 2": PLACE[:3].ravel(), "time 3": PLACE[3]}),
    "patches": ({"time": 2, "variable": 2}, PATCHES),
    "one player": ([], {"all": PLACE.ravel()}),
    "cells": (None, {f"time {t}, {name}": PLACE[t, [k]] for t in range(4) for k, name in enumerate(SHAPE["variable"])}),
}


@pytest.mark.parametrize("kind", PLAYERS)
def test_players_along_axes(kind):
    groups, columns = PLAYERS[kind]
    explanation = explain(network, WINDOWS[:2], WINDOWS[5:], shape=SHAPE, groups=groups)
    expected = by_hand({name: list(map(int, members)) for name, members in columns.items()})
    assert explanation.feature_names == tuple(columns)
    np.testing.assert_array_equal(explanation.values, expected.values)
    assert explanation.exact
    assert explanation.certificate().passed


def test_groups_of_cells_and_flat_rows():
    groups = {"last load": ["time 3, load"], "wind": [f"time {k}, wind" for k in range(4)]}
    explainer = Explainer(network, WINDOWS[5:], shape=SHAPE, groups=groups, budget=300)
    explanation = explainer(WINDOWS[:2])
    np.testing.assert_array_equal(explainer(WINDOWS[:2].reshape(2, 12)).values, explanation.values)
    assert {"last load", "wind", "time 0, price"} <= {*explanation.feature_names}
    assert explainer.verify(WINDOWS[:2]).passed
    assert explanation.model_name == "network"


def test_several_inputs_in_lists_and_mappings():
    tables = random.normal(size=(20, 2)).astype(np.float32)

    def function(inputs):
        return network(inputs[0]) + inputs[1][:, 0] * inputs[1][:, 1]

    shape = {"window": SHAPE, "customer": {"column": ["age", "tariff"]}}
    settings = {"shape": shape, "groups": {"window": "variable", "customer": []}}
    explanation = explain(function, [WINDOWS[:2], tables[:2]], [WINDOWS[5:], tables[5:]], **settings)
    assert explanation.feature_names == ("window: load", "window: wind", "window: price", "customer")
    assert explanation.certificate().passed
    rows = {"customer": tables[:2], "window": WINDOWS[:2]}
    np.testing.assert_array_equal(explain(function, rows, [WINDOWS[5:], tables[5:]], **settings).values, explanation.values)
    both = explain(function, rows, [WINDOWS[5:], tables[5:]], shape=shape, groups={"window": []}, budget=50)
    assert both.feature_names == ("window", "customer: age", "customer: tariff")


@pytest.mark.parametrize(
    ("rows", "settings", "error", "text"),
    [
        (WINDOWS[0], {}, InputError, r"`X` must have shape \(n_rows, 4, 3\).*Pass X\[None\] for one row"),
        (WINDOWS[:2, :3], {}, InputError, r"Got \(2, 3, 3\)"),
        (WINDOWS[:2], {"groups": {"time": 0}}, InputError, "length of at least 1. Got 0"),
        (WINDOWS[:2], {"groups": "tim"}, UnknownNameError, "no axis 'tim'.*'time'"),
        (WINDOWS[:2], {"shape": (4, 3)}, InputTypeError, "must map names of axes"),
        (WINDOWS[:2], {"shape": {"time": 4, "variable": ["a", "a", "b"]}}, InputError, "must differ"),
        (WINDOWS[:2], {"shape": {"time": 0, "variable": 3}}, InputTypeError, "length or labels. Got 0"),
        (WINDOWS[:2], {"shape": {"window": SHAPE, "time": 4}}, InputTypeError, "mixes axes and inputs"),
    ],
)
def test_wrong_shapes(rows, settings, error, text):
    with pytest.raises(error, match=text):
        explain(network, rows, WINDOWS[5:], **{"shape": SHAPE, **settings})
    with pytest.raises(InputTypeError, match=r"Got a Ridge. Pass its function: model.predict"):
        explain(Ridge(), WINDOWS[:2], WINDOWS[5:], shape=SHAPE)


# --- more than 1023 players: 2^d is no float --------------------------------------------------------------------------


D = 1500
WIDE = np.random.default_rng(0).normal(size=(20, D))
SUM = OracleGame(lambda masks: masks.sum(axis=1), D)


@pytest.mark.parametrize("value_function", ["functional", "baseline", "interventional"])
def test_kernel_machines_of_many_columns(value_function):
    rows = WIDE[:, :1100]
    model = KernelRidge(kernel="rbf", gamma=1e-3).fit(rows, rows[:, 0])
    background = {"baseline": rows[:1], "interventional": rows[:3]}.get(value_function)
    explainer = exactshap.Explainer(model, background, value_function=value_function)
    explanation = explainer(rows[4:6])
    assert np.all(np.abs(explanation.residual) <= explanation.tolerance)
    assert explainer.verify(rows[4:5], n_masks=2).passed
    assert "quadrature" in explainer.plan(rows[4:6]).method


def test_values_of_a_product_of_many_columns_are_those_of_its_few_players_that_matter():
    four = np.random.default_rng(1).normal(size=(2, 2, 4))
    inside, outside = np.ones((2, 2, D))
    inside[:, :4], outside[:, :4] = four
    found = solve(ProductGame([1.0, 2.0], inside, outside)).values
    few = solve(ProductGame([1.0, 2.0], *four), method="enumeration").values
    assert_close(found[:4], few, 3.0 * np.abs(four).max() ** 4, n_terms=2, n_players=D)
    assert np.all(found[4:] == 0.0)


@pytest.mark.parametrize(("d", "order"), [(300, 2), (50, 3), (12, 5)])
def test_interactions_of_many_columns_add_up(d, order):
    model = KernelRidge(kernel="rbf", gamma=1e-3).fit(WIDE[:, :d], WIDE[:, 0])
    explanation = exactshap.explain(model, WIDE[:1, :d], WIDE[:2, :d], index="k-sii", order=order)
    assert np.all(np.abs(explanation.residual) <= explanation.tolerance)


def test_forests_of_many_columns():
    model = RandomForestRegressor(3, random_state=0).fit(WIDE, WIDE[:, 0])
    explanation = exactshap.explain(model, WIDE[:2], WIDE[:3])
    assert np.all(np.abs(explanation.residual) <= explanation.tolerance)


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda: all_masks(D), r"coalitions of 1500 players is out of reach\. 2\^1500 coalitions are 10\^443 TiB"),
        (lambda: solve(SUM, method="enumeration"), "Enumerating all coalitions of 1500 players is out of reach"),
        (lambda: explain(AdditiveModel([(range(D), lambda a: a.sum(1))]), WIDE[:2], WIDE[:3]), r"2\^1500 = 3\.51e\+451 coal"),
    ],
)
def test_what_is_out_of_reach_is_refused_with_its_number(ask, text):
    with pytest.raises(BudgetError, match=text):
        ask()


def test_plans_count_beyond_floats():
    assert choose(SUM, method="enumeration").cost.bytes > 2.0**1000

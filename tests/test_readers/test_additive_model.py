import functools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from additive_oracle import largest, masked_games, values_of
from exactshap.errors import BudgetError, InputError, InputTypeError, UnknownNameError, UnsupportedStructureError
from exactshap.explainer import Explainer
from exactshap.readers.additive import AdditiveModel
from exactshap.semivalues import available
from exactshap.testing import check_reader
from tolerances import assert_close, roundings

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(3, 5)), RNG.normal(size=(7, 5))
WEIGHTS = np.arange(1.0, 8.0)


def square(v):
    return v[:, 0] ** 2


def wave(v):
    return np.sin(v[:, 0] - 2.0 * v[:, 1])


def ratio(v):
    return v[:, 0] * v[:, 1] / (1.0 + v[:, 2] ** 2)


TERMS = [(0, square), ((0, 1), wave), ((4, 0, 2), ratio), ((1,), np.ravel), ((2, 4), wave)]
MODEL = AdditiveModel(TERMS, intercept=1.5)


def both(v):
    return np.stack([v[:, 0] * v[:, 1], np.cos(v[:, 0])], axis=1)


PAIR = AdditiveModel([((0, 1), both), ((1, 2), both)], intercept=[1.0, -2.0], output_names=("a", "b"))


def test_prediction_is_the_sum_by_hand():
    by_hand = 1.5 + X[:, 0] ** 2 + np.sin(X[:, 0] - 2 * X[:, 1]) + X[:, 4] * X[:, 0] / (1 + X[:, 2] ** 2) + X[:, 1]
    np.testing.assert_allclose(MODEL.predict(X), by_hand + np.sin(X[:, 2] - 2 * X[:, 4]), rtol=roundings(50))
    assert MODEL.n_features == 5


@pytest.mark.parametrize(
    "settings", [{}, {"background_weights": WEIGHTS}, {"groups": {"g": [0, 4]}}, {"groups": {"g": [0, 1, 2, 4]}}], ids=str
)
def test_contract(settings):
    check_reader(MODEL, X, Z, **settings)


def test_contract_of_several_outputs():
    check_reader(PAIR, X[:, :3], Z[:, :3])
    check_reader(PAIR, X[:, :3], Z[:, :3], output="b")


@pytest.mark.parametrize("index", ["shapley", "banzhaf", "k-sii", "stii", "moebius"])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("players", [None, ((0, 4), (1,), (2,), (3,))], ids=["columns", "group"])
def test_against_hand_masked_predictions_value_by_value(index, order, players):
    groups = None if players is None else {"g": [0, 4]}
    games = masked_games(MODEL.predict, X, Z, WEIGHTS, players)
    expected = values_of(games, len(players or range(5)), index, order)
    explanation = Explainer(MODEL, Z, background_weights=WEIGHTS, groups=groups)(X, index, order)
    values = explanation.values if order == 1 else explanation.set_values
    assert_close(values, expected, 2.0 ** (order + 2) * largest(games), 5 * 7, 5)


def test_large_backgrounds_stream_and_equal_rows_are_merged():
    many = RNG.integers(0, 3, size=(1000, 5)).astype(float)
    check_reader(MODEL, X, many, n_masks=3)
    bound = Explainer(MODEL, many).reader._bound[0]
    assert [len(term.reference.rows) for term in bound.terms] == [3, 9, 27, 3, 9]


@pytest.mark.parametrize("index", available())
def test_constant_columns_and_rows_of_the_background_get_exactly_nothing(index):
    constant = Z.copy()
    constant[:, 1] = X[0, 1]
    assert Explainer(MODEL, constant)(X[:1], index).values[0, 1] == 0.0
    assert not Explainer(MODEL, X[:1])(X[:1], index).values.any()


def test_frames_names_and_polars():
    names = ["a", "b", "c", "d", "e"]
    model = AdditiveModel(
        [("a", square), (("a", "b"), wave), (("e", "a", "c"), ratio), ("b", np.ravel), (("c", "e"), wave)],
        intercept=1.5,
        feature_names=names,
    )
    expected = Explainer(MODEL, Z)(X).values
    for frame in (pd.DataFrame, functools.partial(pl.DataFrame, orient="row")):
        rows, background = (
            frame(X, columns=names) if frame is pd.DataFrame else frame(X, schema=names),
            (frame(Z, columns=names) if frame is pd.DataFrame else frame(Z, schema=names)),
        )
        explanation = Explainer(model, background)(rows)
        np.testing.assert_array_equal(explanation.values, expected)
        assert explanation.feature_names == tuple(names)
    with pytest.raises(UnknownNameError, match="same order as they were in fit"):
        Explainer(model, pd.DataFrame(Z, columns=names)[names[::-1]])
    with pytest.raises(UnknownNameError, match=r"Missing: \['e'\]; unexpected: \['z'\]"):
        model.predict(pd.DataFrame(Z, columns=["a", "b", "c", "d", "z"]))


def test_columns_in_no_term_are_dummies():
    model = AdditiveModel([(0, square)], n_features=3)
    explanation = Explainer(model, Z[:, :3])(X[:, :3])
    assert not explanation.values[:, 1:].any()
    assert explanation.values[:, 0].all()


def test_cost_is_flat_in_the_number_of_columns():
    """Five-player terms among 400 columns: the rows that are evaluated depend on the terms alone."""
    calls = []

    def counted(v):
        calls.append(len(v))
        return v.prod(axis=1)

    counts = []
    for n in (10, 400):
        calls.clear()
        rows = np.random.default_rng(1).normal(size=(20, n))
        model = AdditiveModel([(tuple(range(l, l + 5)), counted) for l in range(5)], n_features=n)
        Explainer(model, rows[10:])(rows[:10])
        counts.append(sum(calls))
    assert counts[0] == counts[1]


def test_forecast_and_summary():
    explainer = Explainer(MODEL, Z)
    assert explainer.plan(X).method == "per-term enumeration (5 terms)"
    assert explainer.plan(X).seconds > 0
    explanation = explainer(X)
    assert explanation.value_function == "interventional"
    assert explanation.unit == "target"
    assert explanation.exact
    assert pickle.loads(pickle.dumps(explainer)).reader.traits.n_players == 5


def test_nan_is_passed_to_functions_that_know_it():
    model = AdditiveModel([((0, 1), lambda v: np.nan_to_num(v, nan=9.0).prod(axis=1))])
    rows = np.array([[np.nan, 2.0]])
    explanation = Explainer(model, Z[:, :2])(rows)
    assert explanation.certificate().passed
    assert explanation.prediction[0] == 18.0


# -- bad input -----------------------------------------------------------------------------------------------------------


def wide(v):
    return np.stack([v[:, 0]] * 2, axis=1)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda v: 1.0, r"Term 0 on columns \(0, 1\) returned shape \(\) for \d+ rows. It must return \(n_rows,\)"),
        (lambda v: v[:3, 0], r"returned shape \(3,\) for 7 rows"),
        (wide, r"returned shape \(7, 2\) for 7 rows"),
        (
            lambda v: np.where(v[:, 0] > 0, np.nan, 1.0),
            r"Term 0 on columns \(0, 1\) returned NaN or infinity. First for the values \[",
        ),
        (lambda v: v[:, 0] * np.inf, "returned NaN or infinity"),
        (lambda v: v[:, 0].astype(str), "must return real numbers. Got dtype"),
        (lambda v: v[:, 7], r"Term 0 on columns \(0, 1\) raised IndexError for \d+ rows"),
    ],
)
def test_functions_that_misbehave_are_named(function, text):
    model = AdditiveModel([((0, 1), function)])
    with pytest.raises(InputError, match=text):
        Explainer(model, Z[:, :2])(X[:, :2])


def test_functions_that_write_into_their_input_change_nothing():
    def vandal(v):
        v *= 0.0
        return v[:, 0]

    rows = X[:, :2].copy()
    Explainer(AdditiveModel([((0, 1), vandal)]), Z[:, :2])(rows)
    np.testing.assert_array_equal(rows, X[:, :2])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"terms": []}, InputError, "needs terms within its columns. Got 0 terms"),
        ({"terms": [square]}, InputTypeError, r"Term 0 must be a pair \(columns, function\)"),
        ({"terms": [(0, 3.0)]}, InputTypeError, "The function of term 0 must be callable. Got float"),
        ({"terms": [((), square)]}, InputError, "Term 0 needs distinct columns, at least one"),
        ({"terms": [((0, 0), square)]}, InputError, "Term 0 needs distinct columns, at least one"),
        ({"terms": [(-1, square)]}, InputError, "Term 0 names column -1"),
        ({"terms": [("a", square)]}, InputError, "Term 0 names an unknown column 'a'"),
        ({"terms": [(2, square)], "feature_names": ["a", "b"]}, InputError, "Term 0 names column 2"),
        ({"terms": [(2, square)], "n_features": 2}, InputError, "needs terms within its columns"),
        ({"terms": [(0, square)], "intercept": np.nan}, InputError, "`intercept` must be finite and hold 1 or 1 numbers"),
        ({"terms": [(0, square)], "intercept": [1.0, 2.0]}, InputError, "`intercept` must be finite"),
    ],
)
def test_bad_models_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        AdditiveModel(**arguments)


@pytest.mark.parametrize(
    ("background", "settings", "error", "text"),
    [
        (None, {}, InputError, "AdditiveModel needs reference rows. Got background=None. Pass background="),
        (Z[:0], {}, InputError, r"Found array `background` with 0 sample\(s\)"),
        (Z[:, :3], {}, InputError, "background has 3 features, but AdditiveModel is expecting 5"),
        (Z, {"value_function": "functional"}, UnknownNameError, "AdditiveModel has no value function 'functional'"),
        (Z, {"value_function": "baseline"}, InputError, "exactly one reference row. Got 7"),
        (Z, {"eta": 1.0}, UnknownNameError, "AdditiveModel has no setting 'eta'"),
        (Z, {"output": "b"}, UnknownNameError, "AdditiveModel has no output 'b'"),
        (Z, {"background_weights": [1.0]}, InputError, r"Background weights must have shape \(7,\)"),
        (Z, {"groups": {"g": [9]}}, InputError, "Group 'g' names column 9"),
    ],
)
def test_bad_requests_are_refused(background, settings, error, text):
    with pytest.raises(error, match=text):
        Explainer(MODEL, background, **settings)


def test_wrong_columns_are_refused():
    with pytest.raises(InputError, match="X has 4 features, but AdditiveModel is expecting 5"):
        Explainer(MODEL, Z)(X[:, :4])


def test_a_term_on_too_many_players_is_refused_with_the_number():
    rows = RNG.normal(size=(2, 24))
    model = AdditiveModel([(tuple(range(24)), square)])
    with pytest.raises(BudgetError, match=r"A term on 24 players is out of reach. It has 2\^24 = 1.68e\+07 coalitions"):
        Explainer(model, rows)
    assert Explainer(model, rows, groups={"first": list(range(12))}).reader.traits.n_players == 13


def test_a_model_that_predicts_something_else_is_refused(monkeypatch):
    own = AdditiveModel.predict
    monkeypatch.setattr(AdditiveModel, "predict", lambda self, rows: own(self, rows) + 1.0)
    with pytest.raises(
        UnsupportedStructureError,
        match=r"AdditiveModel does not predict the sum of its terms\. For background row 0 it predicts",
    ):
        Explainer(AdditiveModel(TERMS), Z)

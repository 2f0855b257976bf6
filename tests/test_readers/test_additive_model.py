import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVR, LinearSVC

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


def test_contract():
    check_reader(MODEL, X, Z)
    check_reader(MODEL, X, Z, background_weights=WEIGHTS, groups={"g": [0, 4]})
    check_reader(MODEL, X, Z, groups={"g": [0, 1, 2, 4]})
    check_reader(PAIR, X[:, :3], Z[:, :3])
    check_reader(PAIR, X[:, :3], Z[:, :3], output="b")


QUESTIONS = itertools.product(("shapley", "banzhaf", "k-sii", "stii", "moebius"), (1, 3))


@pytest.mark.parametrize(("index", "order"), [*QUESTIONS, ("k-sii", 2), ("stii", 2)])
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
    for frame in (lambda rows: pd.DataFrame(rows, columns=names), lambda rows: pl.DataFrame(rows, schema=names, orient="row")):
        explanation = Explainer(model, frame(Z))(frame(X))
        np.testing.assert_array_equal(explanation.values, expected)
        assert explanation.feature_names == tuple(names)
    with pytest.raises(UnknownNameError, match="same order as they were in fit"):
        Explainer(model, pd.DataFrame(Z, columns=names)[names[::-1]])
    with pytest.raises(UnknownNameError, match=r"Missing: \['e'\]; unexpected: \['z'\]"):
        model.predict(pd.DataFrame(Z, columns=["a", "b", "c", "d", "z"]))


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


def model_of(terms, **settings):
    return lambda: AdditiveModel(terms, **settings)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (model_of([]), InputError, "needs terms within its columns. Got 0 terms"),
        (model_of([square]), InputTypeError, r"Term 0 must be a pair \(columns, function\)"),
        (model_of([(0, 3.0)]), InputTypeError, "The function of term 0 must be callable. Got float"),
        (model_of([((), square)]), InputError, "Term 0 needs distinct columns, at least one"),
        (model_of([((0, 0), square)]), InputError, "Term 0 needs distinct columns, at least one"),
        (model_of([(-1, square)]), InputError, "Term 0 names column -1"),
        (model_of([("a", square)]), InputError, "Term 0 names an unknown column 'a'"),
        (model_of([(2, square)], feature_names=["a", "b"]), InputError, "Term 0 names column 2"),
        (model_of([(2, square)], n_features=2), InputError, "needs terms within its columns"),
        (model_of([(0, square)], intercept=np.nan), InputError, "`intercept` must be finite and hold 1 or 1 numbers"),
        (model_of([(0, square)], intercept=[1.0, 2.0]), InputError, "`intercept` must be finite"),
        (lambda: Explainer(MODEL), InputError, "AdditiveModel needs reference rows. Got background=None. Pass background="),
        (lambda: Explainer(MODEL, Z, value_function="functional"), UnknownNameError, "has no value function 'functional'"),
        (lambda: Explainer(MODEL, Z, output="b"), UnknownNameError, "AdditiveModel has no output 'b'"),
    ],
)
def test_bad_models_and_requests_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_term_on_too_many_players_is_refused_with_the_number():
    rows = RNG.normal(size=(2, 24))
    model = AdditiveModel([(tuple(range(24)), square)])
    with pytest.raises(BudgetError, match=r"A term on 24 players is out of reach. It has 2\^24 = 1.68e\+07 coalitions"):
        Explainer(model, rows)
    assert Explainer(model, rows, groups={"first": list(range(12))}).reader.traits.n_players == 13


# -- additive basis ------------------------------------------------------------------------------------------------------

BASIS_RNG = np.random.default_rng(0)
BASIS_X = BASIS_RNG.normal(size=(120, 4)) * [1.0, 3.0, 0.5, 1.0] + [0.0, 2.0, 0.0, 1.0]
Y = BASIS_X[:, 0] * BASIS_X[:, 1] + np.sin(BASIS_X[:, 2]) + BASIS_X[:, 3] ** 2 * BASIS_X[:, 0]
ROWS, BASIS_Z, BASIS_WEIGHTS = BASIS_X[:4], BASIS_X[20:30], np.arange(10) + 1.0

PIPELINES = {
    "degree 2": (make_pipeline(PolynomialFeatures(2), Ridge()), Y),
    "degree 3": (make_pipeline(PolynomialFeatures(3), Ridge()), Y),
    "interactions only": (make_pipeline(PolynomialFeatures(3, interaction_only=True, include_bias=False), Ridge()), Y),
    "degrees 2 to 3": (make_pipeline(PolynomialFeatures((2, 3)), Ridge()), Y),
    "scaled first": (make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge()), Y),
    "scaled twice": (make_pipeline(RobustScaler(), PolynomialFeatures(2), MinMaxScaler(), MaxAbsScaler(), Ridge()), Y),
    "components of them": (make_pipeline(PolynomialFeatures(2), StandardScaler(), PCA(6), MinMaxScaler(), Ridge()), Y),
    "the best of them": (make_pipeline(PolynomialFeatures(3), VarianceThreshold(), SelectKBest(k=9), Ridge()), Y > 0),
    "inside": (make_pipeline(make_pipeline(PolynomialFeatures(2)), make_pipeline(StandardScaler(), Ridge())), Y),
    "uncentred": (make_pipeline(PolynomialFeatures(2), StandardScaler(with_mean=False), Ridge()), Y),
    "clipped first": (make_pipeline(MinMaxScaler(clip=True), PolynomialFeatures(2), Ridge()), Y),
    "passthrough": (make_pipeline("passthrough", PolynomialFeatures(2), Ridge()), Y),
    "discriminant": (make_pipeline(PolynomialFeatures(2), LinearDiscriminantAnalysis()), Y > 0),
    "targets": (make_pipeline(PolynomialFeatures(2), Ridge()), np.stack([Y, BASIS_X[:, 0]], axis=1)),
    "classes": (make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression()), np.digitize(Y, [0.0, 3.0])),
    "log link": (make_pipeline(StandardScaler(), PolynomialFeatures(2), PoissonRegressor()), np.abs(Y)),
    "linear support vectors": (make_pipeline(StandardScaler(), PolynomialFeatures(2), LinearSVC()), Y > 0),
}


@pytest.mark.parametrize("case", PIPELINES)
def test_contract_of_basis(case):
    pipeline, y = PIPELINES[case]
    pipeline.fit(BASIS_X, y)
    check_reader(pipeline, ROWS, BASIS_Z)
    check_reader(pipeline, ROWS, BASIS_Z, groups={"g": [0, 3]}, background_weights=BASIS_WEIGHTS)


def test_frames_in_and_out_of_the_steps():
    frame = pd.DataFrame(BASIS_X, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(2), StandardScaler(), Ridge()).set_output(transform="pandas")
    check_reader(pipeline.fit(frame, Y), frame.iloc[:4], frame.iloc[20:30])


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(PCA(), PolynomialFeatures(2), Ridge()),
        make_pipeline(PolynomialFeatures(2), MinMaxScaler(clip=True), Ridge()),
        make_pipeline(PolynomialFeatures(2), SVR()),
        make_pipeline(PolynomialFeatures(2), RandomForestRegressor()),
        make_pipeline(PolynomialFeatures(2), SplineTransformer(), Ridge()),
    ],
    ids=str,
)
def test_what_is_no_sum_of_monomials_is_refused(pipeline):
    with pytest.raises(UnsupportedStructureError):
        Explainer(pipeline.fit(BASIS_X, Y), BASIS_Z)

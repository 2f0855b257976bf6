import functools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
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
from exactshap.frames import as_table
from exactshap.games import ProductGame
from exactshap.readers import Request
from exactshap.readers.additive import AdditiveModel, read_basis
from exactshap.readers.additive._binned import BinnedTerms
from exactshap.readers.additive._functions import FunctionTerm, FunctionTerms, ProductTerm, ProductTerms
from exactshap.readers.additive._monomials import MonomialTerms
from exactshap.readers.additive._terms import ColumnTerms, Reference, coalitions
from exactshap.semivalues import available
from exactshap.solvers import solve
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


# -- Every kind of term against its own definition: the mean over background rows of the term on hybrid rows -------------

D = 5
some = settings(max_examples=15, deadline=None)


def drawn(seed):
    """Rows, background with repeated rows, weights (one of them zero), and the players of the columns."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(4, D)), rng.normal(size=(6, D)).round(1)
    Z[4] = Z[1]
    weights = rng.random(6)
    weights[2] = 0.0
    owner = [0, 1, 2, 3, 4] if seed % 2 else [int(p) for p in rng.integers(0, 3, D)]
    owner = [sorted(set(owner)).index(p) for p in owner]
    return rng, X, Reference(Z, weights / weights.sum()), owner


def columns_of(rng, repeats=False):
    return tuple(
        int(j) for j in (rng.integers(0, D, rng.integers(1, 4)) if repeats else rng.permutation(D)[: rng.integers(1, 4)])
    )


def column_terms(rng, n_outputs):
    slopes = rng.normal(size=(D, n_outputs))
    return ColumnTerms(tuple((j,) for j in range(D)), lambda rows: np.sin(rows)[:, :, None] * slopes)


def monomial_terms(rng, n_outputs):
    powers = np.zeros((6, D), int)
    for term in powers:
        term[list(columns_of(rng))] = rng.integers(1, 4)
    return MonomialTerms(powers, rng.normal(size=(6, n_outputs)))


def product_terms(rng, n_outputs):
    basis = {1: lambda x: x[:, None], 2: lambda x: np.stack([np.cos(x), x**2], axis=1)}
    terms = []
    for _ in range(4):
        columns = columns_of(rng, repeats=True)
        sizes = rng.integers(1, 3, len(columns))
        terms.append(ProductTerm(columns, tuple(basis[s] for s in sizes), rng.normal(size=(*sizes, n_outputs))))
    return ProductTerms(tuple(terms))


def function_terms(rng, n_outputs):
    terms = []
    for _ in range(4):
        columns = columns_of(rng)
        w = rng.normal(size=(len(columns), n_outputs))
        terms.append(FunctionTerm(columns, lambda v, w=w: np.tanh(v @ w) + v.prod(axis=1)[:, None], "term", n_outputs))
    return FunctionTerms(tuple(terms))


def by_definition(evaluate, block, X, reference, owner):
    """{term: (players, table)} with all hybrids of a coalition at a time."""
    tables = {}
    for l, columns in enumerate(block.columns):
        own = coalitions(columns, owner)
        table = np.zeros((len(X), 2 ** len(own.players), evaluate(X[:1]).shape[2]))
        for code in range(table.shape[1]):
            inside = np.isin(owner, [p for place, p in enumerate(own.players) if (code >> place) & 1])
            hybrids = np.where(inside, X[:, None], reference.rows)
            values = evaluate(hybrids.reshape(-1, D))[:, l].reshape(*hybrids.shape[:2], -1)
            table[:, code] = np.einsum("z,izo->io", reference.weights, values)
        tables[l] = own.players, table
    return tables


def compare(stacks, expected):
    """Stacks hold the terms by their number of players, in order within each."""
    ordered = sorted(expected, key=lambda l: (len(expected[l][0]), l))
    found = [(players, table) for stack in stacks for players, table in zip(stack.subsets, stack.tables, strict=True)]
    assert [players for players, _ in found] == [expected[l][0] for l in ordered]
    for (_, table), l in zip(found, ordered, strict=True):
        assert_close(table, expected[l][1], 64 * max(1.0, np.abs(expected[l][1]).max()), 40, 4)


@pytest.mark.parametrize("kind", [column_terms, monomial_terms, product_terms, function_terms])
@pytest.mark.parametrize("n_outputs", [1, 3])
@given(seed=st.integers(0, 10_000))
@some
def test_coalition_values_by_definition(kind, n_outputs, seed):
    rng, X, reference, owner = drawn(seed)
    block = kind(rng, n_outputs)
    compare(block.bind(reference, owner).stacks(X), by_definition(block.evaluate, block, X, reference, owner))


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("from_training", [False, True])
@given(seed=st.integers(0, 10_000))
@some
def test_binned_coalition_values_by_definition(n_outputs, from_training, seed):
    rng, _, reference, owner = drawn(seed)
    n_bins = rng.integers(1, 5, D)
    X, Z = (rng.integers(0, n_bins, (n, D)) for n in (4, 6))
    columns = tuple(columns_of(rng) for _ in range(4))
    scores = tuple(rng.normal(size=(*n_bins[list(term)], n_outputs)) for term in columns)

    def cells(bins):
        return np.stack([np.ravel_multi_index(tuple(bins[:, list(t)].T), tuple(n_bins[list(t)])) for t in columns], axis=1)

    counts = tuple(np.bincount(cells(Z)[:, l], reference.weights, minlength=scores[l][..., 0].size) for l in range(4))
    training = tuple(3.0 * c.reshape(s.shape[:-1]) for c, s in zip(counts, scores, strict=True)) if from_training else None
    block = BinnedTerms(columns, scores, training)
    background = None if from_training else Reference(cells(Z), reference.weights)
    expected = by_definition(lambda rows: block.evaluate(cells(rows)), block, X, Reference(Z, reference.weights), owner)
    compare(block.bind(background, owner).stacks(cells(X)), expected)


def test_the_chunks_of_large_backgrounds_add_up():
    rng = np.random.default_rng(0)
    rows, X = rng.normal(size=(700, D)), rng.normal(size=(3, D))
    block = function_terms(rng, 2)
    owner = list(range(D))
    whole = list(block.bind(Reference(rows, np.full(700, 1 / 700)), owner).stacks(X))
    halves = [list(block.bind(Reference(part, np.full(350, 1 / 350)), owner).stacks(X)) for part in (rows[:350], rows[350:])]
    for stack, first, second in zip(whole, *halves, strict=True):
        assert_close(stack.tables, (first.tables + second.tables) / 2, 64 * np.abs(stack.tables).max(), 700, 4)


def test_players_of_terms():
    own = coalitions((4, 2, 3), owner=[0, 0, 1, 1, 2])
    assert own.players == (2, 1)
    assert own.inside.astype(int).tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]]
    with pytest.raises(BudgetError, match=r"It has 2\^21 = 2.1e\+06 coalitions for each row; the limit is 20 players"):
        coalitions(range(21), owner=list(range(21)))


# -- additive basis ------------------------------------------------------------------------------------------------------

BASIS_RNG = np.random.default_rng(0)
BASIS_X = BASIS_RNG.normal(size=(120, 4)) * [1.0, 3.0, 0.5, 1.0] + [0.0, 2.0, 0.0, 1.0]
Y = BASIS_X[:, 0] * BASIS_X[:, 1] + np.sin(BASIS_X[:, 2]) + BASIS_X[:, 3] ** 2 * BASIS_X[:, 0]
ROWS, BASIS_Z, BASIS_WEIGHTS = BASIS_X[:4], BASIS_X[20:30], np.arange(10) + 1.0

PIPELINES = {
    "degree 2": (make_pipeline(PolynomialFeatures(2), Ridge()), Y),
    "degree 3": (make_pipeline(PolynomialFeatures(3), Ridge()), Y),
    "interactions only": (
        make_pipeline(PolynomialFeatures(3, interaction_only=True, include_bias=False), LinearRegression()),
        Y,
    ),
    "degrees 2 to 3": (make_pipeline(PolynomialFeatures((2, 3)), Ridge()), Y),
    "scaled first": (make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge()), Y),
    "scaled after": (make_pipeline(PolynomialFeatures(2), StandardScaler(), Ridge()), Y),
    "scaled twice": (
        make_pipeline(
            RobustScaler(), MinMaxScaler(), PolynomialFeatures(2), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), Ridge()
        ),
        Y,
    ),
    "uncentred": (
        make_pipeline(
            PolynomialFeatures(2),
            StandardScaler(with_mean=False),
            RobustScaler(with_centering=False, with_scaling=False),
            Ridge(),
        ),
        Y,
    ),
    "clipped first": (make_pipeline(MinMaxScaler(clip=True), PolynomialFeatures(2), Ridge()), Y),
    "passthrough": (make_pipeline("passthrough", PolynomialFeatures(2), Ridge()), Y),
    "discriminant": (make_pipeline(PolynomialFeatures(2), LinearDiscriminantAnalysis()), Y > 0),
    "targets": (make_pipeline(PolynomialFeatures(2), Ridge()), np.stack([Y, BASIS_X[:, 0]], axis=1)),
    "classes": (make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression()), np.digitize(Y, [0.0, 3.0])),
    "log link": (make_pipeline(StandardScaler(), PolynomialFeatures(2), PoissonRegressor()), np.abs(Y)),
    "linear support vectors": (make_pipeline(StandardScaler(), PolynomialFeatures(2), LinearSVC()), Y > 0),
}


def read(pipeline, background, **settings):
    return read_basis(pipeline, Request(background=as_table(background), **settings))


@pytest.mark.parametrize("case", PIPELINES)
@pytest.mark.parametrize(
    "settings", [{}, {"groups": {"g": [0, 3]}, "background_weights": BASIS_WEIGHTS}], ids=["plain", "groups"]
)
def test_contract_of_basis(case, settings):
    pipeline, y = PIPELINES[case]
    pipeline.fit(BASIS_X, y)
    assert read(pipeline, BASIS_Z) is not None
    check_reader(pipeline, ROWS, BASIS_Z, **settings)


@pytest.mark.parametrize("index", ["shapley", "banzhaf", "fsii", "chaining"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_polynomials_are_product_games_too(index, order):
    """A monomial is a product of powers: c = coefficients, a = x^p, b = z^p. Another solver, the same values."""
    pipeline = PIPELINES["degree 3"][0].fit(BASIS_X, Y)
    powers, coefficients = pipeline[0].powers_, pipeline[1].coef_
    a, b = ROWS[:, None, :] ** powers, BASIS_Z[:, None, :] ** powers
    game = ProductGame(coefficients, a, b, BASIS_WEIGHTS, pipeline[1].intercept_)
    explanation = Explainer(pipeline, BASIS_Z, background_weights=BASIS_WEIGHTS)(ROWS, index, order)
    values = explanation.values if order == 1 else explanation.set_values
    scale = (np.abs(coefficients) * np.maximum(np.abs(a).max(axis=0), np.abs(b).max(axis=0)).prod(axis=1)).sum()
    assert_close(values, solve(game, index, order).values, 2.0 ** (order + 1) * scale, 35 * 10, 4)


def test_one_monomial_by_hand():
    """f = 2 x0 x1^2 at one background row: 2 (x0 x1^2 - z0 z1^2) is split by the two orders of arrival."""
    terms = MonomialTerms(np.array([[1, 2]]), np.array([[2.0]]))
    x, z = np.array([[3.0, 5.0]]), np.array([[1.0, 2.0]])
    (stack,) = terms.bind(Reference(z, np.ones(1)), [0, 1]).stacks(x)
    assert stack.subsets == ((0, 1),)
    assert stack.tables[0, 0, :, 0].tolist() == [2 * 1 * 4, 2 * 3 * 4, 2 * 1 * 25, 2 * 3 * 25]
    np.testing.assert_array_equal(terms.evaluate(x), [[[150.0]]])


def test_powers_of_grouped_columns_are_one_player():
    terms = MonomialTerms(np.array([[1, 2, 1]]), np.array([[1.0]]))
    (stack,) = terms.bind(Reference(np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 4.0]]), np.array([0.25, 0.75])), [0, 1, 0]).stacks(
        np.array([[5.0, 6.0, 7.0]])
    )
    assert stack.subsets == ((0, 1),)
    moment = 0.25 * 1 * 3 + 0.75 * 2 * 4
    assert stack.tables[0, 0, :, 0].tolist() == [4 * moment, 4 * 35, 36 * moment, 36 * 35]


def test_frames_keep_their_names():
    frame = pd.DataFrame(BASIS_X, columns=list("abcd"))
    pipeline = PIPELINES["scaled first"][0].fit(frame, Y)
    check_reader(pipeline, frame.iloc[:4], frame.iloc[20:30])
    assert Explainer(pipeline, frame)(frame.iloc[:1]).feature_names == ("a", "b", "c", "d")


def test_frames_in_and_out_of_the_steps():
    frame = pd.DataFrame(BASIS_X, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(2), StandardScaler(), Ridge()).set_output(transform="pandas")
    check_reader(pipeline.fit(frame, Y), frame.iloc[:4], frame.iloc[20:30])


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(StandardScaler(), Ridge()),
        make_pipeline(PCA(), PolynomialFeatures(2), Ridge()),
        make_pipeline(PolynomialFeatures(2), PCA(), Ridge()),
        make_pipeline(PolynomialFeatures(2), MinMaxScaler(clip=True), Ridge()),
        make_pipeline(PolynomialFeatures(2), SVR()),
        make_pipeline(PolynomialFeatures(2), RandomForestRegressor()),
        make_pipeline(PolynomialFeatures(2), SplineTransformer(), Ridge()),
        make_pipeline(SplineTransformer(), Ridge()),
        make_pipeline(type("Odd", (PolynomialFeatures,), {"transform": lambda self, rows: rows})(), Ridge()),
    ],
    ids=str,
)
def test_other_pipelines_are_not_recognised(pipeline):
    assert read(pipeline, BASIS_Z) is None


def test_unfitted_pipelines_are_refused():
    with pytest.raises(NotFittedError, match="PolynomialFeatures instance is not fitted"):
        read(make_pipeline(PolynomialFeatures(2), Ridge()), Z)

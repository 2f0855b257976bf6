import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
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

from exactshap.errors import UnsupportedStructureError
from exactshap.explainer import Explainer
from exactshap.frames import as_table
from exactshap.games import ProductGame
from exactshap.readers import Request
from exactshap.readers.additive import sklearn_basis
from exactshap.readers.additive.terms import MonomialTerms, Reference
from exactshap.solvers import solve
from exactshap.testing import check_reader
from tolerances import assert_close

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)) * [1.0, 3.0, 0.5, 1.0] + [0.0, 2.0, 0.0, 1.0]
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3] ** 2 * X[:, 0]
ROWS, Z, WEIGHTS = X[:4], X[20:30], np.arange(10) + 1.0

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
    "targets": (make_pipeline(PolynomialFeatures(2), Ridge()), np.stack([Y, X[:, 0]], axis=1)),
    "classes": (make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression()), np.digitize(Y, [0.0, 3.0])),
    "log link": (make_pipeline(StandardScaler(), PolynomialFeatures(2), PoissonRegressor()), np.abs(Y)),
    "linear support vectors": (make_pipeline(StandardScaler(), PolynomialFeatures(2), LinearSVC()), Y > 0),
}


def read(pipeline, background, **settings):
    return sklearn_basis.read_basis(pipeline, Request(background=as_table(background), **settings))


@pytest.mark.parametrize("case", PIPELINES)
@pytest.mark.parametrize("settings", [{}, {"groups": {"g": [0, 3]}, "background_weights": WEIGHTS}], ids=["plain", "groups"])
def test_contract(case, settings):
    pipeline, y = PIPELINES[case]
    pipeline.fit(X, y)
    assert sklearn_basis.is_basis(pipeline)
    check_reader(pipeline, ROWS, Z, **settings)


@pytest.mark.parametrize("index", ["shapley", "banzhaf", "fsii", "chaining"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_polynomials_are_product_games_too(index, order):
    """A monomial is a product of powers: c = coefficients, a = x^p, b = z^p. Another solver, the same values."""
    pipeline = PIPELINES["degree 3"][0].fit(X, Y)
    powers, coefficients = pipeline[0].powers_, pipeline[1].coef_
    a, b = ROWS[:, None, :] ** powers, Z[:, None, :] ** powers
    game = ProductGame(coefficients, a, b, WEIGHTS, pipeline[1].intercept_)
    explanation = Explainer(pipeline, Z, background_weights=WEIGHTS)(ROWS, index, order)
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
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = PIPELINES["scaled first"][0].fit(frame, Y)
    check_reader(pipeline, frame.iloc[:4], frame.iloc[20:30])
    assert Explainer(pipeline, frame)(frame.iloc[:1]).feature_names == ("a", "b", "c", "d")


def test_frames_in_and_out_of_the_steps():
    frame = pd.DataFrame(X, columns=list("abcd"))
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
    assert not sklearn_basis.is_basis(pipeline)
    with pytest.raises(UnsupportedStructureError, match="This Pipeline is not a basis of single columns and a linear model"):
        read(pipeline, Z)

"""Weightings as additive games: brute force on hand-masked predictions, Algorithm 1 as it is written, and the interpolant's twin."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import erf

from exactshap import Explainer, explain
from exactshap.errors import BudgetError, InputError, UnknownNameError
from exactshap.estimators import RKHSWeightingClassifier, RKHSWeightingRegressor
from exactshap.estimators.rkhs_weighting import MonteCarlo
from exactshap.estimators.rkhs_weighting._instantiations import Relu, Sign
from exactshap.estimators.rkhs_weighting._problem import WeightingTerm
from exactshap.frames import as_table
from exactshap.readers.additive import _homogeneous, rkhs_weighting
from exactshap.readers.additive._homogeneous import Growth, interpolate
from exactshap.readers.additive.rkhs_weighting import _growth
from exactshap.testing import check_game, check_reader
from tolerances import RESPONSE, conditioned, roundings

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))
Y = np.maximum(X[:, 0] + X[:, 1], 0.0) - np.abs(X[:, 2])
MANY, FEW = X[10:110], X[10:20]  # with many background rows functions are interpolated, with few they are called
SETTINGS = [
    {"subsets": [1, 2, 3]},
    {"subsets": 3, "base": "sign"},
    {"subsets": 4, "fit_intercept": True},
    {"subsets": 2, "base": "stump"},
    {"base": "stump"},
    {"subsets": 2, "base": "uniform-stump", "sigma": 0.7},
    {"subsets": [1, 2], "base": "polynomial-sign"},
    {"subsets": 3, "base": "exponential-sign", "gamma": 2.0},
    {"subsets": 2, "sequence": True},
    {},
]


def fitted(**settings):
    return RKHSWeightingRegressor(**{"n_terms": 100, "random_state": 0, **settings}).fit(X, Y)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_contract(settings):
    model = fitted(**settings)
    check_reader(model, X[:3], FEW, groups={"g": [0, 3]}, background_weights=np.arange(1.0, 11.0))
    check_reader(model, X[:3], MANY, n_masks=2, indices=("shapley",))


@pytest.mark.parametrize("background", [FEW, MANY], ids=["few", "many"])
def test_which_functions_are_interpolated(background):
    (block,) = Explainer(fitted(subsets=3), background).reader.form.blocks
    assert {term.interpolant is not None for term in block.terms} == {background is MANY}


def test_games_hold_for_every_index():
    check_game(Explainer(fitted(subsets=[2, 3]), MANY).reader.game(as_table(X[:2])))


@pytest.mark.parametrize(("base", "max_theta"), [("relu", 0.2), ("relu", 0.9), ("sign", 0.5)])
def test_interpolated_values_are_the_direct_ones(base, max_theta, monkeypatch):
    """Value by value within the bound that is reported, which is below 1e-8 of the largest value."""
    model = fitted(base=base, subsets=[2, 3], n_terms=300, max_theta=max_theta)
    fast = Explainer(model, MANY)(X[:5])
    monkeypatch.setattr(rkhs_weighting, "PAID_ROWS", 0)
    slow = Explainer(model, MANY)(X[:5])
    assert np.all(fast.error_bound > 0)
    assert not np.any(slow.error_bound)
    difference = np.abs(fast.values - slow.values).max(axis=1)
    assert np.all(difference <= fast.error_bound)
    assert difference.max() > 0  # two different paths ran
    assert np.max(fast.error_bound) <= conditioned(1e7) * np.abs(slow.values).max()
    assert np.abs(fast.residual).max() <= roundings(5_000) * max(1.0, np.max(rkhs_weighting._magnitude(model.terms_, X)))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("base", [Relu(max_theta=0.3), Sign(max_theta=0.6)], ids=str)
def test_interpolants_hold_their_bound_everywhere(base, k):
    rng = np.random.default_rng(k)
    term = WeightingTerm(tuple(range(k)), base.sample(rng, k, 30), rng.normal(size=30), base)
    interpolant = interpolate(term, _growth(term))
    axis = np.eye(k)[rng.integers(k, size=500)] * rng.choice([-1.0, 1.0], size=(500, 1))
    points = np.concatenate(
        [
            rng.normal(size=(20_000, k)),
            1e3 * rng.normal(size=(100, k)),
            1e-200 * rng.normal(size=(100, k)),
            axis + 10.0 ** rng.uniform(-16, 0, size=(500, 1)) * rng.normal(size=(500, k)),
            rng.choice([-1.0, 0.0, 1e-9, 1.0, 1.0 + 1e-15], size=(500, k)),  # edges and corners of the cube, and the origin
        ]
    )
    difference = np.abs(interpolant(points) - term(points))
    assert np.all(difference <= interpolant.errors(np.abs(points).max(axis=1)))


def test_functions_that_no_grid_resolves_are_called():
    narrow = Relu(gamma=1e-3)  # kinks one thousandth wide
    term = WeightingTerm((0, 1), np.array([[1.0, 1.0]]), np.ones(1), narrow)
    assert interpolate(term, _growth(term)) is None
    assert interpolate(lambda v: np.zeros(len(v)), Growth(2, 1, 0.0, lambda radius, tilt: 1.0, 2.0)) is not None
    wavy = replace(_growth(WeightingTerm((0, 1), np.ones((1, 2)), np.ones(1), Relu())), norm=10.0)
    assert interpolate(lambda v: np.abs(v[:, 0] - 0.3 * v[:, 1]), wavy) is None  # not what the growth is of


def complex_expectation(base, W, x):
    """E_w[K(u, w) phi(w, x)] of complex x, from the closed form with a complex error function; of shape (n_terms,)."""
    gamma, N = base.width(W.shape[1]), np.sqrt(np.sum(x * x))
    zeta = 1.0 / math.sqrt(base.sigma**-2 + gamma**-2)
    C = (1.0 + base.sigma**2 / gamma**2) ** (-W.shape[1] / 2) * np.exp(-(W**2).sum(axis=1) / 2 / (base.sigma**2 + gamma**2))
    S = W @ x * base.sigma**2 / (base.sigma**2 + gamma**2) / (math.sqrt(2.0) * zeta * N)
    if isinstance(base, Sign):
        return C * erf(S)
    return C * zeta * N / math.sqrt(2.0 * math.pi) * (np.exp(-S * S) + math.sqrt(math.pi) * S * (1.0 + erf(S)))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("base", [Relu(0.7, max_theta=0.4), Sign(1.3, max_theta=0.6)], ids=str)
def test_theta_of_complex_rows_is_the_largest_value_of_a_function_of_norm_one(base, k):
    """sup |f(x)| over a' G a <= 1 is sqrt(psi^H G^-1 psi), which grows to theta with the number of terms."""
    rng = np.random.default_rng(0)
    W, real = base.sample(rng, k, 500), rng.normal(size=k)
    found, expected = complex_expectation(base, W, real.astype(complex)), base.expectation(W, real[None])[0]
    np.testing.assert_allclose(found, expected, rtol=conditioned(1e6), atol=roundings(5))
    inverse = np.linalg.pinv(base.kernel(W, W, k), rcond=1e-8, hermitian=True)
    for imaginary in (0.0, 0.2, 0.35):
        x = np.array([1.0, *rng.uniform(-1, 1, size=k - 1)], complex)
        x[1] += 1j * imaginary
        squared, tilt = abs(np.sum(x * x)), np.sum(np.abs(x) ** 2) / abs(np.sum(x * x))
        assert tilt <= base.largest_tilt(k)
        psi, theta = complex_expectation(base, W, x), base.theta(k, math.sqrt(squared), tilt)
        found = math.sqrt((psi.conj() @ inverse @ psi).real)
        assert 0.999 * theta < found < theta * (1.0 + 1e-6)


@pytest.mark.parametrize(("n", "half_width"), [(6, 1.0), (12, 1.0), (8, 0.25)])
def test_the_bound_of_interpolation_holds_and_is_no_guess(n, half_width):
    """The plain error of polynomial interpolation of kernel functions on cells of one edge, against the formula."""
    base, rng = Relu(max_theta=0.5), np.random.default_rng(0)
    nodes, fine = np.polynomial.chebyshev.chebpts1(n), np.linspace(-1.0, 1.0, 2000)
    ratios = []
    for _ in range(30):
        term = WeightingTerm((0, 1), base.sample(rng, 2, 5), rng.normal(size=5), base)
        bound = _growth(term).interpolation_error(n, half_width)
        center = rng.uniform(half_width - 1.0, 1.0 - half_width)
        edge = lambda s, t=term, c=center: t(np.column_stack([np.ones_like(s), c + half_width * s]))  # noqa: E731
        fit = np.polynomial.chebyshev.Chebyshev.fit(nodes, edge(nodes), n - 1, domain=[-1, 1])
        ratios.append(np.abs(fit(fine) - edge(fine)).max() / bound)
    assert 1e-4 < max(ratios) <= 1.0


def test_a_wrong_interpolant_is_caught(monkeypatch):
    """Break a coefficient: the verification against hand-masked predictions must see it."""
    model = fitted(subsets=[3])
    genuine = _homogeneous._coefficients

    def broken(*arguments):
        coefficients = genuine(*arguments)
        coefficients[0] *= 1.0 + 1e-6
        return coefficients

    explainer = Explainer(model, MANY)
    assert explainer.verify(X[:5]).passed
    for smooth in explainer.reader._bound[0].terms:
        smooth.term.interpolant.coefficients[...] *= 1.0 + 1e-6
    assert not explainer.verify(X[:5]).passed
    monkeypatch.setattr(_homogeneous, "_coefficients", broken)
    assert interpolate(model.terms_[0], _growth(model.terms_[0])) is None


def test_monte_carlo_weightings_are_explained_as_they_predict():
    base = MonteCarlo(
        lambda W, X: np.cos(X @ W.T),
        lambda U, W: np.exp(-((U[:, None] - W[None]) ** 2).sum(axis=2) / 2.0),
        lambda rng, size, n: rng.normal(size=(n, size)),
        n_draws=64,
    )
    model = fitted(base=base, subsets=2, n_terms=20, alpha=1e-2)
    explanation = Explainer(model, FEW)(X[:3])
    assert explanation.certificate().passed


def test_bad_input_is_named():
    model = fitted(subsets=2)
    with pytest.raises(InputError, match="row 1"):
        Explainer(model, FEW)(np.where(np.arange(10).reshape(2, 5) == 7, np.nan, 1.0))
    with pytest.raises(InputError, match="reference rows"):
        Explainer(model)
    wide = RNG.normal(size=(40, 24))
    full = RKHSWeightingRegressor(n_terms=5, random_state=0).fit(wide, wide[:, 0])
    with pytest.raises(BudgetError, match=r"2\^24"):
        Explainer(full, wide)


@pytest.mark.parametrize("settings", [{}, {"base": "stump"}, {"subsets": [1, 2]}], ids=str)
def test_the_probability_of_a_classifier(settings):
    rng = np.random.default_rng(0)
    for d, n_background in ((4, 3), (9, 1)):
        rows = rng.normal(size=(60, d))
        background = rows[30 : 30 + n_background]
        model = RKHSWeightingClassifier(n_terms=20, **settings).fit(rows, rows[:, 0] > 0)
        explanation = explain(model, rows[:1], background, output="probability")
        own = explain(lambda cells, model=model: model.predict_proba(cells)[:, 1], rows[:1], background)
        np.testing.assert_allclose(explanation.values, own.values, atol=RESPONSE)
        assert (explanation.unit, explanation.exact) == ("probability of class True", True)


def test_outputs_that_a_classifier_does_not_have():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    for settings, output in (({}, "nonsense"), ({"loss": "hinge"}, "probability")):
        model = RKHSWeightingClassifier(**settings).fit(rows, rows[:, 0] > 0)
        with pytest.raises(UnknownNameError, match=f"no output '{output}'"):
            explain(model, rows[:1], rows[10:], output=output)

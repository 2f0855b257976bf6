"""Gaussian processes with functional components: every closed form against sums over all sets of columns."""

import itertools

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactshap import Explainer, explain
from exactshap.errors import InputError
from exactshap.estimators import FanovaGaussianProcess
from exactshap.estimators.fanova_process import log_rule, squared_shares
from oracles import shapley_of
from tolerances import roundings

CLOSE = 1e-11
"""Of squared units of the target: eps times the condition of K + noise (1e4 here), as its inverse is formed for the reference."""


@parametrize_with_checks([FanovaGaussianProcess()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 4))
    y = 3.0 + 2.0 * X[:, 0] + X[:, 0] * X[:, 1] + 0.05 * rng.normal(size=60)
    return FanovaGaussianProcess().fit(X, y), X, y


def games(model, X, y, x):
    """Return v(S) of all coalitions as the mean vector and covariance of linear functionals, with everything inverted."""
    d = X.shape[1]

    def kernel(a, b, S):
        factors = [_factor(model, j, a[:, j], b[:, j]) for j in S]
        return np.prod([np.ones((len(a), len(b))), *factors], axis=0)

    inverse = np.linalg.inv(model.variance_ * kernel(X, X, range(d)) + model.noise_ * np.eye(len(X)))
    sets = [S for size in range(d + 1) for S in itertools.combinations(range(d), size)]
    sections = np.array([model.variance_ * kernel(x, X, S)[0] for S in sets])
    common = [[sorted(set(S) & set(T)) for T in sets] for S in sets]
    prior = np.array([[model.variance_ * kernel(x, x, S)[0, 0] for S in row] for row in common])
    mean = sections @ inverse @ (y - y.mean()) + y.mean()
    return sets, mean, prior - sections @ inverse @ sections.T


def _factor(model, j, a, b):
    """1 + c k~_j, from the words: a Gaussian less its means over the training rows."""
    gauss = lambda s, t: np.exp(-0.5 * (s[:, None] - t[None]) ** 2 / model.length_scale_[j] ** 2)  # noqa: E731
    z = model.X_fit_[:, j]
    centred = gauss(a, b) - np.outer(gauss(a, z).mean(axis=1), gauss(b, z).mean(axis=1)) / gauss(z, z).mean()
    return 1.0 + model.strength_ * centred


def test_values_and_covariance_are_those_of_all_coalitions(fitted):
    model, X, y = fitted
    found, shared = model.shapley_values(X[:2] + 0.3), model.shapley_values(X[:2] + 0.3, "normalized")
    for row in range(2):
        sets, mean, covariance = games(model, X, y, X[row : row + 1] + 0.3)
        weights = shapley_of(lambda S, sets=sets: np.eye(len(sets))[sets.index(S)], 4)
        np.testing.assert_allclose(found.values[row], weights @ mean, atol=CLOSE)
        np.testing.assert_allclose(found.covariance[row], weights @ covariance @ weights.T, atol=CLOSE)
        assert np.isclose(found.baseline, mean[0])
        equal = weights.copy()
        equal[:, 0] += 0.25  # v(S) - v(empty) + v(empty) |S| / d
        np.testing.assert_allclose(shared.values[row], equal @ mean, atol=CLOSE)
        np.testing.assert_allclose(shared.covariance[row], equal @ covariance @ equal.T, atol=CLOSE)
    for one in (found, shared):
        assert np.abs(one.residual).max() < CLOSE
        assert np.abs(one.covariance_residual).max() < CLOSE
        assert np.linalg.eigvalsh(one.covariance).min() > -CLOSE


def test_effects_are_the_variance_split(fitted):
    model, X, _ = fitted
    effects = model.shapley_effects()
    grid = np.array(list(itertools.product(range(60), repeat=2)))
    parts = {}
    factors = model.factors(X) - 1.0
    for size in (1, 2, 3, 4):
        for U in itertools.combinations(range(4), size):
            grams = np.prod([factors[j].T @ factors[j] / 60 for j in U], axis=0)
            parts[U] = model.dual_coef_ @ grams @ model.dual_coef_
    expected = [sum(value / len(U) for U, value in parts.items() if j in U) for j in range(4)]
    np.testing.assert_allclose(effects.of_mean, expected, atol=CLOSE)
    # one component by hand, on the product of two columns
    by_hand = np.array([(factors[0][a] * factors[1][b]) @ model.dual_coef_ for a, b in grid])
    assert np.isclose(parts[0, 1], (by_hand**2).mean())
    assert np.isclose(effects.of_mean.sum(), effects.total_of_mean)
    assert np.isclose(effects.expected.sum(), effects.expected_total)
    assert np.all(effects.expected >= effects.of_mean - CLOSE)


def test_expected_effects_are_the_mean_over_posterior_functions(fitted):
    _, X, y = fitted
    X = X[:12]
    points = np.array(list(itertools.product(range(12), repeat=2)))
    two = FanovaGaussianProcess(length_scale=1.0, strength=1.0, noise=0.1).fit(X[:, :2], y[:12])
    grid = np.stack([X[points[:, 0], 0], X[points[:, 1], 1]], axis=1)  # the product of both columns' distributions
    kernel = lambda a, b: two.variance_ * np.prod([_factor(two, j, a[:, j], b[:, j]) for j in range(2)], axis=0)  # noqa: E731
    sections = kernel(grid, X[:, :2])
    solved = np.linalg.solve(kernel(X[:, :2], X[:, :2]) + two.noise_ * np.eye(12), sections.T)
    covariance = kernel(grid, grid) - sections @ solved
    mean = solved.T @ (y[:12] - y[:12].mean())
    centred = np.eye(144) - 1.0 / 144
    total = mean @ centred @ mean / 144 + np.trace(centred @ covariance) / 144  # E of the variance over the grid
    assert np.isclose(two.shapley_effects().expected_total, total)


def test_the_rule_of_the_logarithm_is_exact():
    for n in (1, 2, 7, 30):
        nodes, weights = log_rule(n)
        moments = [(weights * nodes**k).sum() * (k + 1) ** 2 for k in range(2 * n)]
        np.testing.assert_allclose(moments, 1.0, atol=roundings(5_000))
    assert squared_shares(np.ones((1, 200))).shape == (1, 200, 200)


def test_explanations_agree_with_the_mean_over_independent_columns(fitted):
    model, X, _ = fitted
    explanation = explain(model, X[:5])
    assert explanation.value_function == "functional"
    assert explanation.certificate().passed
    independent = explain(model, X[:5], X, value_function="interventional-independent")
    np.testing.assert_allclose(explanation.values, independent.values, atol=CLOSE)
    np.testing.assert_allclose(explanation.std, model.shapley_values(X[:5]).std, atol=CLOSE)
    pairs = Explainer(model, groups={"both": [0, 1]})(X[:5], order=2, index="k-sii")
    assert pairs.certificate().passed
    assert pairs.covariances is None


BAD = [{"length_scale": bad} for bad in (-1.0, 1e300, [1.0, 2.0], {"x": 1.0}, "wide")]
BAD += [{name: bad} for name in ("strength", "noise") for bad in (0.0, -0.1, np.inf, [1.0], None, "much")]


@pytest.mark.parametrize("settings", BAD, ids=str)
def test_settings_are_checked(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        FanovaGaussianProcess(**settings).fit(np.eye(3), np.arange(3.0))


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_targets_without_a_variance_in_float64_are_refused(unit):
    with pytest.raises(InputError, match="variance of `y`"):
        FanovaGaussianProcess().fit(np.eye(3), np.arange(3.0) * unit)


def test_other_value_functions_name_their_route(fitted):
    with pytest.raises(InputError, match="background"):
        fitted[0].shapley_values(fitted[1][:2], "interventional")

"""RKHS weightings: closed forms against quadrature and sampling, solvers against independent computations, the contract."""

import itertools
import math
import pickle
import re

import mpmath
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactshap.errors import InputError
from exactshap.estimators import RKHSWeightingRegressor
from exactshap.estimators.rkhs_weighting import Instantiation, MonteCarlo, PolynomialSign, UniformStump
from exactshap.estimators.rkhs_weighting._instantiations import ExponentialSign, Relu, Sign, Stump, _relu_bracket
from exactshap.estimators.rkhs_weighting._subsets import Full, GivenSubsets, SubsetDistribution, UniformSubsets
from tolerances import COORDINATE_DESCENT, EPS, HALF_THE_DIGITS, ITERATED, chance, conditioned, roundings

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.maximum(X[:, 0] + X[:, 1], 0.0) - np.abs(X[:, 2])
WEIGHTS = RNG.integers(1, 4, size=60)
NEW_BASES = [UniformStump(-0.7, 1.2, 0.9), UniformStump(), PolynomialSign(0.8, 1), PolynomialSign(0.6, 4)]
NEW_BASES += [ExponentialSign(0.8, 1.1)]
BASES = [Relu(0.8, None, 0.5), Relu(1.3, 2.0), Sign(0.8, None, 0.3), Sign(1.3, 0.7), Stump(0.8, 1.1), Stump(1.0), *NEW_BASES]


def model(**settings):
    return RKHSWeightingRegressor(**{"n_terms": 40, "random_state": 0, "subsets": [1, 2], "alpha": 1e-3, **settings})


@parametrize_with_checks(
    [
        RKHSWeightingRegressor(random_state=0),
        RKHSWeightingRegressor("sign", random_state=0, subsets=[1], solver="lasso"),
        RKHSWeightingRegressor("stump", random_state=0, fit_intercept=True),
        RKHSWeightingRegressor(random_state=0, solver="greedy"),
        RKHSWeightingRegressor(random_state=0, solver="gradient", n_terms=30),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# -- closed forms --------------------------------------------------------------------------------------------------------


def mean_of_directions(base, u, x):
    """E_w[K(u, w) phi(w, x)] for w ~ N(0, sigma^2 I) and two columns: Gauss-Hermite across x, tanh-sinh along it, cut at the kink."""
    along = x / np.linalg.norm(x)
    across, (nodes, weights) = np.array([-along[1], along[0]]), np.polynomial.hermite_e.hermegauss(80)

    def density(s):
        w = float(s) * along + base.sigma * nodes[:, None] * across
        slice_mean = weights @ (base.kernel(u[None], w, 2)[0] * base.predictor(w, x[None])[0]) / math.sqrt(2 * math.pi)
        return mpmath.npdf(s, 0, base.sigma) * float(slice_mean)

    reach = 12 * base.sigma
    return float(mpmath.quad(density, [-reach, -reach / 3, 0]) + mpmath.quad(density, [0, reach / 3, reach]))


@pytest.mark.parametrize("base", [*BASES[:4], *NEW_BASES[2:]], ids=str)
def test_expectations_over_directions_are_the_integrals(base):
    for u, x in [((0.3, -1.2), (0.7, 2.0)), ((1.5, 0.2), (-3.0, 0.1)), ((0.0, 0.0), (1e-3, 2e-3))]:
        found = base.expectation(np.array([u]), np.array([x]))[0, 0]
        assert found == pytest.approx(
            mean_of_directions(base, np.array(u), np.array(x)), rel=HALF_THE_DIGITS, abs=roundings(5e3)
        )
    if not isinstance(base, Relu):
        assert base.expectation(np.array([u]), np.zeros((1, 2)))[0, 0] == 0.0


@pytest.mark.parametrize("at", [-3.0, -0.2, 0.9, 5.0])
@pytest.mark.parametrize("base", [Stump(0.8, 1.1), Stump(1.0), *NEW_BASES[:2]], ids=str)
def test_expectations_over_thresholds_are_the_integrals_along_their_column(base, at):
    """Of three columns one is drawn, and then a threshold w with its density."""
    u, x = np.array([[1, 0.4]]), np.array([[9.0, at, 7.0]])
    uniform = isinstance(base, UniformStump)
    low, high = (base.low, base.high) if uniform else (-8 * base.sigma, 8 * base.sigma)
    density = (lambda w: 1 / (high - low)) if uniform else (lambda w: mpmath.npdf(w, 0, base.sigma))

    def value(w):
        parameters = np.array([[1, float(w)]])
        # the kernel of three columns is that of the one that is drawn, whatever the others
        return density(w) * float(base.kernel(u, parameters, 3)[0, 0] * base.predictor(parameters, x)[0, 0])

    cuts = sorted({low, min(max(at, low), high), 0.4, high})
    assert base.expectation(u, x)[0, 0] == pytest.approx(float(mpmath.quad(value, cuts)) / 3, rel=HALF_THE_DIGITS)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("base", BASES, ids=str)
def test_expectation_and_theta_against_sampling(base, size):
    rng = np.random.default_rng(size)
    parameters, rows = base.sample(rng, size, 2), rng.normal(size=(3, size))
    draws = base.sample(rng, size, 10_000)
    samples = base.predictor(draws, rows)[:, None, :] * base.kernel(parameters, draws, size)[None]
    errors = samples.std(axis=2) / 100.0
    assert np.all(np.abs(base.expectation(parameters, rows) - samples.mean(axis=2)) <= 5.0 * errors + 1e-12)
    far = np.full((1, size), 50.0)  # stumps reach their supremum far away; the others scale with the radius or do not change
    phi, other = base.predictor(draws[:2000], far)[0], base.predictor(draws[2000:4000], far)[0]
    pairs = base.kernel(draws[:2000], draws[2000:4000], size) * phi[:, None] * other
    spread = 2.0 * pairs.mean(axis=1).std() / math.sqrt(2000.0)
    assert abs(base.theta(size, 50.0 * math.sqrt(size)) ** 2 - pairs.mean()) <= 5.0 * spread


def test_bracket_is_accurate_for_every_sign_and_size():
    S = np.concatenate([np.linspace(-20.0, 8.0, 113), [0.0]])
    with mpmath.workdps(200):
        exact = [float(mpmath.exp(-(mpmath.mpf(s) ** 2)) + mpmath.sqrt(mpmath.pi) * s * mpmath.erfc(-mpmath.mpf(s))) for s in S]
    # the square in the exponent is off by eps / 2, hence e^(-s^2) by s^2 eps / 2; erfc loses 2 s^2 eps to cancellation above -4
    np.testing.assert_allclose(_relu_bracket(S), exact, rtol=EPS * 4 * 20.0**2)
    assert _relu_bracket(np.array([-1e200, -1e5]))[0] == 0.0
    assert _relu_bracket(np.array([1e200]))[0] == pytest.approx(2.0 * math.sqrt(math.pi) * 1e200)


@pytest.mark.parametrize("base", BASES[:4], ids=str)
def test_expectations_survive_zero_tiny_and_huge_rows(base):
    W = np.array([[1.0, -2.0], [30.0, 40.0]])
    rows = np.array([[0.0, 0.0], [1e-300, 2e-300], [1e300, -1e300], [1.0, 2.0]])
    with np.errstate(all="raise", under="ignore"):
        values = base.expectation(W, rows)
    assert np.isfinite(values).all()
    assert not values[0].any()
    scaled = base.expectation(W, rows[3:] * 1e200)
    np.testing.assert_allclose(scaled, values[3:] * (1e200 if isinstance(base, Relu) else 1.0), rtol=roundings(5_000))


def test_width_makes_the_constant_what_was_asked_for():
    for sigma, k, c in itertools.product((0.8, 1.0, 2.5), (1, 7), (0.1, 0.5, 0.9)):
        gamma = Relu(sigma, None, c).width(k)
        assert (1.0 + 2.0 * sigma**2 / gamma**2) ** (-k / 4.0) == pytest.approx(c, rel=roundings(5_000))


@pytest.mark.parametrize("n_columns", [4, 17, 83])
@pytest.mark.parametrize("base", BASES, ids=str)
def test_rows_have_the_same_bits_alone_and_in_company(base, n_columns):
    rng = np.random.default_rng(1)
    W, rows = base.sample(rng, n_columns, 37), rng.normal(size=(60, n_columns))
    together = base.expectation(W, rows)
    for part in (slice(0, 1), slice(59, 60), slice(3, 36)):
        np.testing.assert_array_equal(base.expectation(W, rows[part]), together[part])
        np.testing.assert_array_equal((base.expectation(W, rows[part]) * 0.3).sum(axis=1), (together * 0.3).sum(axis=1)[part])


# -- subsets -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "distribution",
    [Full(), UniformSubsets((1, 3)), UniformSubsets((2, 3), True), GivenSubsets(((0, 1), (3,)), (0.25, 0.75))],
    ids=str,
)
def test_subsets_are_drawn_with_the_probability_they_claim(distribution):
    support = list(distribution.support(5))
    probabilities = [distribution.probability(subset, 5) for subset in support]
    assert sum(probabilities) == pytest.approx(1.0, rel=roundings(5_000))
    drawn = distribution.sample(np.random.default_rng(0), 5, 4000)
    for subset, p in zip(support, probabilities, strict=True):
        assert abs(drawn.count(subset) - 4000 * p) <= 5.0 * math.sqrt(4000 * p * (1 - p)) + 1e-9
    assert distribution.masses(5) == pytest.approx(SubsetDistribution.masses(distribution, 5), rel=roundings(5_000))
    masses = SubsetDistribution.masses(distribution, 5, 2)
    assert distribution.masses(5, 2) == pytest.approx(masses, rel=roundings(5_000))


def test_sequences_are_adjacent():
    fitted = model(subsets=2, sequence=True).fit(X, Y)
    assert {term.subset for term in fitted.terms_} <= {(0, 1), (1, 2), (2, 3)}


# -- solvers -------------------------------------------------------------------------------------------------------------


def features_of(fitted, X):
    """Phi and G term by term from the formulas: p(I_t) E[...] and K(w_t, w_s) where I_t = I_s."""
    n, terms = len(X), [(term, w) for term in fitted.terms_ for w in term.parameters]
    columns, G = np.zeros((n, len(terms))), np.zeros((len(terms), len(terms)))
    distribution = UniformSubsets((1, 2))
    for t, (term, w) in enumerate(terms):
        I = list(term.subset)
        columns[:, t] = distribution.probability(term.subset, 4) * term.base.expectation(w[None], X[:, I])[:, 0]
        for s, (other, v) in enumerate(terms):
            if other.subset == term.subset:
                G[t, s] = math.exp(-((w - v) ** 2).sum() / (2.0 * term.base.width(len(I)) ** 2))
    return columns, G


@pytest.mark.parametrize("n_terms", [40, 300], ids=["by terms", "by rows"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_least_squares_is_equation_64(weights, n_terms):
    fitted = model(ridge=1e-6, n_terms=n_terms).fit(X, Y, weights)
    w = np.ones(60) if weights is None else weights.astype(float)
    Phi, G = features_of(fitted, X)
    m = w.sum()
    a = np.linalg.solve(Phi.T @ (w[:, None] * Phi) + m * 1e-3 * G + m * 1e-6 * np.eye(len(G)), Phi.T @ (w * Y))
    np.testing.assert_allclose(fitted.coef_, a, rtol=HALF_THE_DIGITS, atol=conditioned(1e6) * np.abs(a).max())
    np.testing.assert_allclose(fitted.predict(X), Phi @ a, rtol=0, atol=conditioned(1e6))
    assert fitted.rkhs_norm_ == pytest.approx(math.sqrt(a @ G @ a), rel=HALF_THE_DIGITS)


def test_the_authors_penalty_has_the_width_of_the_whole_input():
    """The penalty alone changes: features, and with them the norm that bounds the values, keep the width of their subset."""
    plain, fitted = model(ridge=1e-6).fit(X, Y), model(ridge=1e-6, penalty_width="input").fit(X, Y)
    Phi, G = features_of(fitted, X)
    base = fitted.terms_[0].base
    wide = np.zeros_like(G)
    starts = np.cumsum([0, *(len(term.parameters) for term in fitted.terms_)])
    for term, start, stop in zip(fitted.terms_, starts, starts[1:], strict=False):
        apart = ((term.parameters[:, None] - term.parameters) ** 2).sum(axis=2)
        wide[start:stop, start:stop] = np.exp(-apart / (2.0 * base.width(4) ** 2))
    a = np.linalg.solve(Phi.T @ Phi + 60 * (1e-3 * wide + 1e-6 * np.eye(len(G))), Phi.T @ Y)
    np.testing.assert_allclose(fitted.coef_, a, rtol=HALF_THE_DIGITS, atol=conditioned(1e6) * np.abs(a).max())
    assert fitted.rkhs_norm_ == pytest.approx(math.sqrt(a @ G @ a), rel=HALF_THE_DIGITS)
    assert np.abs(fitted.predict(X) - plain.predict(X)).max() > 0.01


@pytest.mark.parametrize("solver", ["least_squares", "lasso"])
def test_weights_are_repetitions(solver):
    repeated = model(solver=solver).fit(np.repeat(X, WEIGHTS, axis=0), np.repeat(Y, WEIGHTS))
    weighted = model(solver=solver).fit(X, Y, WEIGHTS)
    np.testing.assert_allclose(
        weighted.predict(X), repeated.predict(X), rtol=0, atol=COORDINATE_DESCENT if solver == "lasso" else conditioned(1e6)
    )


def test_one_step_of_greedy_and_of_gradient_by_hand():
    settings = {"n_terms": 1, "subsets": [(0, 1)], "alpha": 0.0, "ridge": 0.0}
    step = model(**settings, solver="greedy").fit(X, Y)
    (term,) = step.terms_
    (w,) = term.parameters
    phi, h = np.maximum(X[:, :2] @ w, 0.0), term.base.expectation(term.parameters, X[:, :2])[:, 0]
    assert step.coef_[0] == pytest.approx((h @ Y) / (h @ h), rel=roundings(5_000))
    theta, kappa = math.sqrt((phi * h).max()), math.sqrt((phi**2).max())
    eta = math.sqrt(60) / theta / (np.abs(Y).max() * kappa)
    bound = math.sqrt(60) / theta
    found = model(**settings, solver="gradient").fit(X, Y)
    np.testing.assert_array_equal(found.terms_[0].parameters, term.parameters)
    assert found.coef_[0] == pytest.approx(np.clip(eta * np.mean(Y * phi), -bound, bound))


@pytest.mark.parametrize("base", BASES, ids=str)
def test_kappa_is_the_second_moment_of_the_predictor(base):
    x = np.array([[1.0, -2.0, 0.5]])
    W = base.sample(np.random.default_rng(0), 3, 40_000)
    itself = np.concatenate([np.diag(base.kernel(part, part, 3)) for part in np.split(W, 1_600)])
    squares = itself * base.predictor(W, x)[0] ** 2
    error = squares.std() / math.sqrt(len(squares)) + roundings(50)
    assert squares.mean() == pytest.approx(base.kappa(3, np.linalg.norm(x)) ** 2, abs=chance(4.5, error))
    fitted = model(base=base, subsets=[1, 2]).fit(X, Y)
    largest = np.sqrt(np.sort(X**2, axis=1)[:, ::-1].cumsum(axis=1).max(axis=0))
    assert fitted.kappa_**2 == pytest.approx(0.5 * base.kappa(1, largest[0]) ** 2 + 0.5 * base.kappa(2, largest[1]) ** 2)


def test_lasso_is_scikit_learns_on_the_features():
    fitted = model(solver="lasso", alpha=1e-2).fit(X, Y)
    dense = model().fit(X, Y)  # the same terms, all of them
    Phi, _ = features_of(dense, X)
    expected = Lasso(alpha=1e-2, fit_intercept=False, max_iter=50_000, tol=1e-10).fit(Phi, Y)
    np.testing.assert_allclose(fitted.predict(X), expected.predict(Phi), rtol=0, atol=COORDINATE_DESCENT)
    assert len(fitted.coef_) == np.count_nonzero(expected.coef_) < len(dense.coef_)


def test_intercept_is_the_mean_that_is_left():
    fitted = model(fit_intercept=True).fit(X, Y + 100.0, WEIGHTS)
    assert np.average(Y + 100.0 - fitted.predict(X), weights=WEIGHTS) == pytest.approx(0.0, abs=conditioned(1e6))
    assert fitted.intercept_ == pytest.approx(100.0, abs=chance(4.5, Y.std()))
    assert model().fit(X, Y).intercept_ == 0.0


@pytest.mark.parametrize("base", ["relu", "sign", "stump"])
def test_evaluations_are_within_theta_times_the_norm(base):
    fitted = model(base=base, alpha=1e-6).fit(X, Y)
    assert np.abs(fitted.predict(X)).max() <= fitted.theta_ * fitted.rkhs_norm_
    assert fitted.generalization_bound(X, Y) >= np.mean(np.abs(Y - fitted.predict(X)))
    assert fitted.generalization_bound(X, Y, loss="squared", delta=0.01) > fitted.generalization_bound(X, Y, loss="squared")


def test_theta_bounds_the_norm_of_every_row():
    """theta^2 >= sum_I p(I)^2 theta_I(|x_I|)^2 for each training row, by a visit to every subset (Eq. 60)."""
    fitted = model(subsets=[1, 2, 3]).fit(X, Y)
    distribution, base = UniformSubsets((1, 2, 3)), Relu()
    squares = [
        sum(
            distribution.probability(I, 4) ** 2 * base.theta(len(I), float(np.linalg.norm(x[list(I)]))) ** 2
            for I in distribution.support(4)
        )
        for x in X
    ]
    assert max(squares) <= fitted.theta_**2 <= 10.0 * max(squares)


# -- pruning -------------------------------------------------------------------------------------------------------------


def test_safe_pruning_keeps_predictions():
    fitted = model(n_terms=80, alpha=1e-2).fit(X, Y)
    pruned = fitted.prune("safe", tolerance=0.5)
    assert 0 < len(pruned.coef_) < len(fitted.coef_)
    assert np.abs(pruned.predict(X) - fitted.predict(X)).max() <= 0.5


def test_sure_pruning_is_one_lasso_whose_penalty_keeps_predictions():
    fitted = model(n_terms=80, alpha=1e-2).fit(X, Y)
    pruned = fitted.prune("sure", tolerance=2.0)
    beta = 2.0**2 / (2 * 80 * fitted.theta_**2 * np.abs(fitted.coef_).sum())
    np.testing.assert_array_equal(pruned.coef_, fitted.prune(beta).coef_)
    assert 0 < len(pruned.coef_) < len(fitted.coef_)
    assert np.abs(pruned.predict(X) - fitted.predict(X)).max() <= 2.0
    assert len(pruned.prune("sure", tolerance=1e-9).coef_) == len(pruned.coef_)


def test_smart_pruning_keeps_the_loss():
    fitted = model(n_terms=80).fit(X, Y)
    pruned = fitted.prune(X=X, y=Y, tolerance=0.02)
    losses = [np.mean((m.predict(X) - Y) ** 2) for m in (fitted, pruned)]
    assert len(pruned.coef_) < len(fitted.coef_)
    assert losses[1] <= 1.02 * losses[0]
    assert len(fitted.coef_) == 80  # a copy was pruned


def test_pruning_is_the_lasso_in_the_norm_of_the_space():
    fitted = model().fit(X, Y)
    _, G = features_of(fitted, X)
    root, T, beta = np.linalg.cholesky(G + 1e-8 * np.eye(40)).T, 40, 1e-3
    lasso = Lasso(alpha=beta, fit_intercept=False, max_iter=100_000, tol=1e-12).fit(root, root @ fitted.coef_)
    pruned = fitted.prune(beta)
    assert len(pruned.coef_) == np.count_nonzero(lasso.coef_) < T
    np.testing.assert_allclose(
        pruned.coef_, lasso.coef_[lasso.coef_ != 0], rtol=0, atol=COORDINATE_DESCENT * np.abs(lasso.coef_).max()
    )


# -- instantiations of one's own -----------------------------------------------------------------------------------------


def draw(rng, size, n):
    return rng.normal(size=(n, size))


def relu(W, X):
    return np.maximum(X @ W.T, 0.0)


def gaussian(U, W):
    return np.exp(-((U[:, None] - W[None]) ** 2).sum(axis=2) / 2.0)


def wave(W, X):
    return np.cos(X @ W.T)


def test_monte_carlo_reports_its_error():
    exact, sampled = Relu(1.0, 1.0), MonteCarlo(relu, gaussian, draw, n_draws=4000)
    W = exact.sample(np.random.default_rng(2), 3, 5)
    scores = (sampled.expectation(W, X[:, :3]) - exact.expectation(W, X[:, :3])) / sampled.error(W, X[:, :3])
    assert np.abs(scores).max() <= 5.0
    assert 0.2 <= np.mean(scores**2) <= 3.0
    np.testing.assert_array_equal(sampled.expectation(W, X[:, :3]), sampled.expectation(W, X[:, :3]))


@pytest.mark.parametrize("subsets", [2, [1, 2]], ids=str)
def test_monte_carlo_reports_the_error_of_predictions(subsets):
    """Against the closed form with the same coefficients: one seed is one average, so its errors are one draw for all rows."""
    exact, squares = Relu(1.0, 1.0), []
    for seed in range(40):
        fitted = model(base=MonteCarlo(relu, gaussian, draw, n_draws=300, seed=seed), subsets=subsets, n_terms=20).fit(X, Y)
        closed = sum(
            (exact.expectation(t.parameters, X[:3, list(t.subset)]) * t.coefficients).sum(axis=1) for t in fitted.terms_
        )
        squares.append(((fitted.predict(X[:3]) - closed) / fitted.monte_carlo_error(X[:3])) ** 2)
    spread = np.mean(squares, axis=0)  # 1 on average where all terms have one size, else at most 1; sd sqrt(2 / 40) = 0.22
    assert np.all(spread < 2.2)
    assert subsets != 2 or np.all(spread > 0.3)
    assert not model().fit(X, Y).monte_carlo_error(X).any()


def test_monte_carlo_can_be_fitted():
    fitted = model(base=MonteCarlo(wave, gaussian, draw, n_draws=300), n_terms=60, alpha=1e-6).fit(X, np.cos(X[:, 0] + X[:, 1]))
    assert fitted.score(X, np.cos(X[:, 0] + X[:, 1])) > 0.8
    assert math.isnan(fitted.theta_)
    with pytest.raises(InputError, match="The bound needs theta"):
        fitted.generalization_bound(X, Y)
    with pytest.raises(InputError, match="penalty='safe' needs theta"):
        fitted.prune("safe")


class Cosine(Instantiation):
    """cos <w, x> with w ~ N(0, I) and the kernel 1: E = exp(-|x|^2 / 2)."""

    def sample(self, rng, size, n):
        return rng.normal(size=(n, size))

    def kernel(self, U, W, size):
        return np.ones((len(U), len(W)))

    def expectation(self, W, X):
        return np.repeat(np.exp(-(X**2).sum(axis=1) / 2.0)[:, None], len(W), axis=1)

    def predictor(self, W, X):
        return np.cos(X @ W.T)


def test_users_write_instantiations_and_subsets():
    target = np.exp(-(X[:, [0, 2]] ** 2).sum(axis=1) / 2.0)
    fitted = RKHSWeightingRegressor(Cosine(), subsets=GivenSubsets(((0, 2),)), n_terms=3, random_state=0).fit(X, target)
    np.testing.assert_allclose(fitted.predict(X), target, rtol=0, atol=ITERATED)


# -- around --------------------------------------------------------------------------------------------------------------


def test_grid_search_names_and_reproducibility():
    frame = pd.DataFrame(X, columns=list("abcd"))
    search = GridSearchCV(model(), {"alpha": [1e-4, 1.0], "max_theta": [0.3, 0.6]}, cv=3).fit(frame, Y)
    assert search.best_params_["alpha"] == 1e-4
    assert list(search.best_estimator_.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(model().fit(X, Y).coef_, model().fit(X, Y).coef_)


def test_pickles_and_skops():
    skops = pytest.importorskip("skops.io")
    fitted = model().fit(X, Y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    data = skops.dumps(fitted)
    unknown = skops.get_untrusted_types(data=data)
    assert all(name.startswith("exactshap.estimators.") for name in unknown)
    np.testing.assert_array_equal(skops.loads(data, trusted=unknown).predict(X), fitted.predict(X))


class Drawn(SubsetDistribution):
    """A user's distribution that draws what it is told to."""

    def __init__(self, drawn, probability=0.5):
        self.drawn, self.mass = drawn, probability

    def sample(self, rng, n_features, n):
        return (self.drawn * n)[:n] if self.drawn else []

    def probability(self, subset, n_features):
        return self.mass

    def support(self, n_features):
        yield from ((0, 1), (2,))


def test_columns_of_a_subset_count_in_any_order():
    sorted_, turned = (model(subsets=Drawn(drawn)).fit(X, Y) for drawn in ([(0, 1), (2,)], [(1, 0), (2,)]))
    np.testing.assert_array_equal(turned.predict(X), sorted_.predict(X))


MISSHAPEN = ("expectation", "kernel", "sample")


class Misshapen(Relu):
    """An instantiation whose method gives one value where many are wanted."""

    def __init__(self, method):
        super().__init__()
        object.__setattr__(self, "method", method)

    def __getattribute__(self, name):
        right = super().__getattribute__(name)
        if name not in MISSHAPEN or super().__getattribute__("method") != name:
            return right
        return lambda *arguments: right(*arguments)[:, :1] if name != "sample" else right(*arguments)[:1]


def test_subsets_may_be_arrays():
    expected = model(subsets=[1, 2]).fit(X, Y).predict(X)
    np.testing.assert_array_equal(model(subsets=np.array([1, 2])).fit(X, Y).predict(X), expected)
    pairs = model(subsets=np.array([[0, 1], [2, 3]])).fit(X, Y)
    assert {term.subset for term in pairs.terms_} == {(0, 1), (2, 3)}


@pytest.mark.parametrize("use", ["generalization_bound", "prune"])
def test_targets_are_one_column_of_as_many_rows(use):
    fitted = model().fit(X, Y)

    def result(y):
        return fitted.generalization_bound(X, y) if use == "generalization_bound" else len(fitted.prune(X=X, y=y).coef_)

    assert result(Y[:, None]) == result(Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        result(Y[:5])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        result(np.where(np.arange(60) == 3, np.nan, Y))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"base": "tanh"}, "'base' parameter of RKHSWeightingRegressor must be 'relu', 'sign', 'polynomial-sign'"),
        ({"n_terms": 0}, "'n_terms' parameter of RKHSWeightingRegressor must be an int >= 1. Got 0"),
        ({"n_terms": 2.5}, "'n_terms' parameter"),
        ({"alpha": -1.0}, "'alpha' parameter of RKHSWeightingRegressor must be a float >= 0"),
        ({"ridge": np.nan}, "'ridge' parameter"),
        ({"alpha": "small"}, "'alpha' parameter"),
        ({"n_terms": True}, "'n_terms' parameter"),
        ({"subsets": True}, "'subsets' parameter"),
        ({"sequence": "yes"}, "'sequence' parameter of RKHSWeightingRegressor must be a bool"),
        ({"fit_intercept": 1}, "'fit_intercept' parameter"),
        ({"base": MonteCarlo(lambda W, X: np.ones(3), gaussian, draw)}, r"`phi` of MonteCarlo returned shape \(3,\)"),
        ({"base": MonteCarlo(relu, lambda U, W: np.ones(len(U)), draw)}, "`similarity` of MonteCarlo returned shape"),
        ({"base": MonteCarlo(relu, gaussian, lambda rng, size, n: np.ones(n))}, "`draw` of MonteCarlo returned shape"),
        (
            {"base": MonteCarlo(lambda W, X: np.full((len(X), len(W)), np.nan), gaussian, draw)},
            "`phi` of MonteCarlo returned NaN or infinity",
        ),
        ({"solver": "newton"}, "'solver' parameter of RKHSWeightingRegressor must be one of"),
        ({"subsets": 5}, "between 1 and the number of features, 4"),
        ({"subsets": [0, 1]}, "between 1 and the number of features, 4"),
        ({"subsets": "all"}, "'subsets' parameter"),
        ({"subsets": [(0, 4)]}, "distinct columns between 0 and 3"),
        ({"subsets": GivenSubsets(((0,), (1,)), (0.5, 0.6))}, "must be positive and sum to 1"),
        ({"sigma": 0.0}, "`sigma` and `gamma` must be > 0"),
        ({"gamma": -1.0}, "`sigma` and `gamma` must be > 0"),
        ({"base": "uniform-stump", "sigma": -1.0}, "`sigma` and `gamma` must be > 0"),
        ({"base": "uniform-stump", "gamma": 0.0}, "`sigma` and `gamma` must be > 0"),
        ({"base": "polynomial-sign", "gamma": 1.0}, "has no `gamma`"),
        ({"base": "exponential-sign", "gamma": 1.0}, "`gamma` must be above `sigma`"),
        ({"base": "stump", "sigma": -1.0}, "`sigma` and `gamma` must be > 0"),
        ({"max_theta": 1.0}, r"`max_theta` must be in \[1e-50, 1\)"),
        ({"max_theta": 1e-300}, r"`max_theta` must be in \[1e-50, 1\)"),
        ({"sigma": 1e300}, "squares that neither overflow nor vanish"),
        ({"gamma": 1e-300}, "squares that neither overflow nor vanish"),
        ({"solver": ["lasso"]}, "The 'solver' parameter"),
        ({"n_terms": 2**70}, "The 'n_terms' parameter"),
        ({"max_theta": "half"}, r"`max_theta` must be in \[1e-50, 1\)"),
        ({"sigma": "wide"}, "`sigma` and `gamma` must be > 0 and finite"),
        ({"gamma": np.inf}, "`sigma` and `gamma` must be > 0 and finite.* Got 1.0 and inf"),
        *(({"base": Misshapen(name), "subsets": None}, f"`{name}` of Misshapen returned shape") for name in MISSHAPEN),
        ({"subsets": Drawn([])}, "Drawn.sample must return 40 subsets. Got 0"),
        *(
            ({"subsets": Drawn([(0, 1), drawn])}, rf"must return distinct columns between 0 and 3. Got {re.escape(str(drawn))}")
            for drawn in ((0, 7), (1, 1), (), (-1,))
        ),
        ({"subsets": Drawn([(0, 1)], -0.5)}, r"probability of \(0, 1\), which it drew, must be in \(0, 1\]. Got -0.5"),
        ({"subsets": Drawn([(0, 1)], np.nan)}, "Got nan"),
        ({"penalty_width": "input", "solver": "greedy"}, "penalty_width"),
        ({"penalty_width": "columns"}, "penalty_width"),
    ],
)
def test_bad_settings_are_named(settings, text):
    with pytest.raises(InputError, match=text):
        model(**settings).fit(X, Y)


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda fitted: fitted.prune("bold"), "must be a number, 'sure', 'safe' or 'smart'"),
        (lambda fitted: fitted.prune(-1.0), "must be a float >= 0"),
        (lambda fitted: fitted.prune(None), "must be a float >= 0"),
        (lambda fitted: fitted.prune("safe", tolerance="1"), "must be > 0"),
        (lambda fitted: fitted.prune("smart"), "needs the training sample"),
        (lambda fitted: fitted.prune("safe", tolerance=0.0), "must be > 0"),
        (lambda fitted: fitted.generalization_bound(X, Y, delta=0.0), r"`delta` must be in \(0, 1\)"),
        (lambda fitted: fitted.generalization_bound(X, Y, loss="hinge"), "`loss` must be 'absolute' or 'squared'"),
        (lambda fitted: fitted.fit(X, Y, np.where(np.arange(60) == 3, -1.0, 1.0)), "Negative values in data"),
        *(
            (lambda _, n=n: MonteCarlo(relu, gaussian, draw, n), f"`n_draws` of MonteCarlo must be an int >= 2. Got {n}")
            for n in (0, 1, 2.5)
        ),
    ],
)
def test_bad_uses_are_named(use, text):
    with pytest.raises(ValueError, match=text):
        use(model().fit(X, Y))

"""Shapley-regularised ridge: the contract, the closed form, and the penalty against explanations of the fitted model."""

import itertools

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as k
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactshap import explain
from exactshap.errors import BudgetError, InputError, UnknownNameError, UnsupportedStructureError
from exactshap.estimators import ShapleyKernelRidge
from exactshap.kernels import RBF, Laplacian, Linear
from exactshap.semivalues import find
from exactshap.solvers.rkhs._functionals import by_quadrature, by_splitting, splitting_pays
from tolerances import EPS, conditioned, roundings

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
X[:, 3] += X[:, 2]
Y = X @ [1.0, 2.0, 3.0, 4.0] + 0.1 * RNG.normal(size=40)


@parametrize_with_checks(
    [ShapleyKernelRidge(), ShapleyKernelRidge(value_function="observational", n_coalitions=4, random_state=0)]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# -- the functionals ---------------------------------------------------------------------------------------------------


def brute_force(inside, outside, weights, player, semivalue):
    """Gamma_A by the definition: all coalitions of the other players."""
    d = len(inside)
    p = semivalue.weights(d)
    total = 0.0
    for mask in itertools.product([False, True], repeat=d):
        if not mask[player]:
            without, joined = np.array(mask), np.array(mask)
            joined[player] = True
            change = _value(inside, outside, weights, joined) - _value(inside, outside, weights, without)
            total = total + p[without.sum()] * change
    return total


def _value(inside, outside, weights, mask):
    return inside[mask].prod(axis=0) * (outside[~mask].prod(axis=0) @ weights)[:, None]


@pytest.mark.parametrize("way", [by_splitting, by_quadrature])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
def test_functionals_equal_enumeration(way, d, index):
    rng = np.random.default_rng(d)
    inside, outside, weights = rng.normal(size=(d, 5, 4)), rng.normal(size=(d, 5, 6)), np.full(6, 1 / 6)
    found = way(inside, outside, weights, list(range(d)), find(index))
    scale = (np.abs(inside).max(axis=(1, 2)) + np.abs(outside).max(axis=(1, 2))).prod()
    for j in range(d):
        expected = brute_force(inside, outside, weights, j, find(index))
        np.testing.assert_allclose(found[j], expected, rtol=0, atol=64 * d * EPS * scale)


def test_the_cheaper_way_is_taken():
    assert splitting_pays(10, 1000, 1000)
    assert not splitting_pays(10, 50, 5)
    assert not splitting_pays(22, 100, 100)
    assert not splitting_pays(40, 10**6, 10**6)


# -- the closed form ---------------------------------------------------------------------------------------------------


def objective(model, dual, X, y, weights, columns):
    """The objective of the docstring, with Shapley values from an explanation of the machine with these coefficients."""
    from exactshap.readers.kernel_machines import KernelMachine

    kernel = model.kernel_(X)
    machine = KernelMachine(X, dual, model.kernel_)
    setting = {"eta": model.eta} if model.value_function == "observational" else {}
    values = explain(machine, X, X, background_weights=weights, value_function=model.value_function, **setting).values
    penalty = (weights[:, None] * values[:, columns] ** 2).sum() / weights.sum()
    residual = y - kernel @ dual
    return weights @ residual**2 + model.alpha * dual @ kernel @ dual + model.shapley_penalty * penalty


@pytest.mark.parametrize("value_function", ["interventional", "observational"])
@pytest.mark.parametrize("features", [3, [0, 2], None])
def test_solution_is_a_stationary_point_of_the_objective(value_function, features):
    weights = np.linspace(0.5, 2.0, 15)
    model = ShapleyKernelRidge(
        gamma=0.3, alpha=0.2, shapley_penalty=5.0, features=features, value_function=value_function, eta=0.01
    ).fit(X[:15], Y[:15], sample_weight=weights)
    columns = [3] if features == 3 else ([0, 2] if features else [0, 1, 2, 3])
    problem = (X[:15], Y[:15], weights, columns)
    best = objective(model, model.dual_coef_, *problem)
    rng = np.random.default_rng(0)
    for _ in range(3):  # a quadratic: (f(a + h) - f(a - h)) vanishes for every h at the minimum
        step = 0.1 * rng.normal(size=15)
        up, down = (objective(model, model.dual_coef_ + s * step, *problem) for s in (1, -1))
        assert up > best
        assert down > best
        np.testing.assert_allclose(up - down, 0, atol=conditioned(1e5) * up)


@pytest.mark.parametrize(
    "kernel", ["rbf", "linear", "poly", k.RBF(0.8) + k.DotProduct(0.4), k.RBF(1.2) + k.ConstantKernel(0.5)]
)
def test_the_penalised_observational_values_are_those_of_an_explanation(kernel):
    """Linear and polynomial factors do not say how close rows are: both condition on Gaussians where there are only such."""
    settings = {"value_function": "observational", "eta": 0.05}
    model = ShapleyKernelRidge(kernel=kernel, gamma=0.3, alpha=0.2, shapley_penalty=5.0, features=[0, 3], **settings).fit(X, Y)
    values = explain(model, X, X, **settings).values[:, [0, 3]]
    np.testing.assert_allclose(model.mean_squared_values_, (values**2).sum(axis=1).mean(), rtol=conditioned(1e5))


def test_without_penalty_it_is_kernel_ridge():
    ours = ShapleyKernelRidge(gamma=0.3, alpha=0.1, shapley_penalty=0.0).fit(X, Y)
    theirs = KernelRidge(kernel="rbf", gamma=0.3, alpha=0.1).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X[::-1]), theirs.predict(X[::-1]), rtol=0, atol=conditioned(1e5))


def test_an_enormous_penalty_silences_the_feature():
    model = ShapleyKernelRidge(gamma=0.3, alpha=0.1, shapley_penalty=1e9, features=3).fit(X, Y)
    values = explain(model, X, X).values
    assert np.abs(values[:, 3]).max() < 1e-3 * np.abs(values).max()
    assert model.mean_squared_values_ < 1e-6


def test_mean_squared_values_are_those_of_the_explanation():
    model = ShapleyKernelRidge(gamma=0.2, shapley_penalty=3.0, features=[1, 3]).fit(X, Y)
    values = explain(model, X, X).values
    assert model.mean_squared_values_ == pytest.approx((values[:, [1, 3]] ** 2).sum(axis=1).mean(), rel=conditioned(1e6))
    assert model.functional_error_ is None


def test_the_authors_penalty_is_a_sum():
    weights = np.linspace(0.5, 2.0, 40)
    mean = ShapleyKernelRidge(gamma=0.2, shapley_penalty=0.3 * weights.sum(), features=1).fit(X, Y, sample_weight=weights)
    total = ShapleyKernelRidge(gamma=0.2, shapley_penalty=0.3, penalty_scale="sum", features=1).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(total.predict(X), mean.predict(X), rtol=0, atol=conditioned(1e6) * np.abs(Y).max())


def test_duplicated_rows_are_weights():
    once = ShapleyKernelRidge(gamma=0.3, shapley_penalty=10.0, features=2).fit(X, Y, sample_weight=np.full(40, 2.0))
    twice = ShapleyKernelRidge(gamma=0.3, shapley_penalty=10.0, features=2).fit(np.vstack([X, X]), np.concatenate([Y, Y]))
    np.testing.assert_allclose(once.predict(X), twice.predict(X), rtol=0, atol=conditioned(1e6) * np.abs(Y).max())


@pytest.mark.parametrize("alpha", [0.0, 1e-12])
def test_singular_kernels_are_solved(alpha):
    rows = np.repeat(X[:10], 3, axis=0)
    model = ShapleyKernelRidge(gamma=0.3, alpha=alpha, shapley_penalty=1.0, features=0).fit(rows, np.repeat(Y[:10], 3))
    assert np.all(np.isfinite(model.dual_coef_))
    assert model.mean_squared_values_ >= 0
    constant = ShapleyKernelRidge(alpha=0.5).fit(np.ones((6, 2)), np.arange(6.0))
    np.testing.assert_allclose(constant.predict(np.ones((1, 2))), 15.0 / 6.5, rtol=roundings(5_000))


ARD = k.ConstantKernel(2.0) * k.RBF([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("kernel", ["laplacian", "linear", "poly", ARD, RBF(1.0) + Linear(), 2.0 * Laplacian(2.0)], ids=str)
@pytest.mark.parametrize("value_function", ["interventional", "observational"])
def test_kernels(kernel, value_function):
    model = ShapleyKernelRidge(kernel, alpha=0.5, shapley_penalty=2.0, features=[1], value_function=value_function).fit(X, Y)
    explanation = explain(model, X, X)
    assert explanation.certificate().passed
    if value_function == "interventional":
        assert model.mean_squared_values_ == pytest.approx((explanation.values[:, 1] ** 2).mean(), rel=conditioned(1e7))


def test_several_targets():
    both = ShapleyKernelRidge(gamma=0.3, shapley_penalty=4.0, features=1).fit(X, np.stack([Y, -2 * Y], axis=1))
    one = ShapleyKernelRidge(gamma=0.3, shapley_penalty=4.0, features=1).fit(X, Y)
    assert both.dual_coef_.shape == (40, 2)
    np.testing.assert_allclose(both.predict(X)[:, 1], -2 * one.predict(X), rtol=0, atol=conditioned(1e6))
    assert explain(both, X[:3], X[:5]).values.shape == (3, 4, 2)
    assert explain(both, X[:3], X[:5], output=1).certificate().passed


# -- path, search, names -----------------------------------------------------------------------------------------------


def test_path_equals_single_fits_and_shrinks():
    estimator = ShapleyKernelRidge(gamma=0.3, alpha=0.1, features=3)
    grid = [0.0, 1.0, 30.0, 1e4]
    path = estimator.path(X, Y, grid)
    assert not hasattr(estimator, "dual_coef_")
    assert np.all(np.diff(path.mean_squared_values) < 0)
    for penalty, dual in zip(grid, path.dual_coef, strict=True):
        fitted = ShapleyKernelRidge(gamma=0.3, alpha=0.1, features=3, shapley_penalty=penalty).fit(X, Y)
        np.testing.assert_allclose(fitted.dual_coef_, dual, rtol=0, atol=roundings(5_000) * np.abs(dual).max())


def test_grid_search_and_automatic_eta():
    search = GridSearchCV(ShapleyKernelRidge(features=3), {"shapley_penalty": [0.0, 1e6], "alpha": [0.1]}, cv=3).fit(X, Y)
    assert search.best_params_["shapley_penalty"] == 0.0  # the penalised feature matters most
    model = ShapleyKernelRidge(features=0, value_function="observational", eta="auto").fit(X, Y)
    assert np.isfinite(model.mean_squared_values_)


def test_features_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    named = ShapleyKernelRidge(features=["b", "d"], shapley_penalty=5.0).fit(frame, Y)
    numbered = ShapleyKernelRidge(features=[1, 3], shapley_penalty=5.0).fit(X, Y)
    np.testing.assert_array_equal(named.dual_coef_, numbered.dual_coef_)
    assert explain(named, frame[:3], frame).feature_names == ("a", "b", "c", "d")
    with pytest.raises(UnknownNameError, match=r"unknown column 'dd'.*Did you mean 'd'"):
        ShapleyKernelRidge(features="dd").fit(frame, Y)


def test_sampled_functionals_report_an_error_that_is_right():
    """The relative error of the functionals, seen in the penalty of a function that the penalty does not change."""
    settings = {"gamma": 0.3, "features": 3, "value_function": "observational", "eta": 0.01, "shapley_penalty": 0.0}
    exact = ShapleyKernelRidge(**settings, n_coalitions=8).fit(X, Y)
    assert exact.functional_error_ is None
    off, claimed = [], []
    for seed in range(60):
        sampled = ShapleyKernelRidge(**settings, n_coalitions=7, random_state=seed).fit(X, Y)
        # a mean square is off by about twice what its root is
        off.append(sampled.mean_squared_values_ / exact.mean_squared_values_ - 1.0)
        claimed.append(2.0 * sampled.functional_error_)
    assert 0.7 < np.sqrt(np.mean(np.square(off)) / np.mean(np.square(claimed))) < 1.4  # both means scatter by about 10 per cent


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"shapley_penalty": -1.0}, ValueError, "'shapley_penalty' parameter of ShapleyKernelRidge must be a float >= 0"),
        ({"alpha": -1.0}, ValueError, "'alpha' parameter of ShapleyKernelRidge"),
        ({"gamma": 0.0}, ValueError, "'gamma' parameter of ShapleyKernelRidge"),
        ({"value_function": "functional"}, ValueError, "'value_function' parameter of ShapleyKernelRidge must be one of"),
        ({"n_coalitions": 1}, ValueError, "'n_coalitions' parameter"),
        ({"features": True}, InputError, "column names or numbers"),
        ({"features": 1.5}, InputError, r"column names or numbers in \[0, 4\).*Got 1.5"),
        ({"features": [1, 1]}, InputError, r"must not name a column twice.*Got \[1, 1\]"),
        ({"eta": True, "value_function": "observational"}, InputError, "'eta' parameter"),
        ({"features": 7}, InputError, r"column names or numbers in \[0, 4\).*Got 7"),
        ({"features": "a"}, UnknownNameError, "unknown column 'a'.*X had no column names"),
        ({"value_function": "observational", "eta": 0}, InputError, "'eta' parameter of .* must be a float > 0"),
        ({"kernel": "sigmoid"}, UnsupportedStructureError, "'sigmoid' is not a product over features"),
    ],
)
def test_bad_settings(settings, error, text):
    with pytest.raises(error, match=text):
        ShapleyKernelRidge(**settings).fit(X, Y)


ROWS = np.arange(20_000.0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda model: model.fit(X, Y, sample_weight=-np.ones(40)),
            ValueError,
            "Negative values in data passed to `sample_weight`",
        ),
        (lambda model: model.fit(X, Y, sample_weight=np.zeros(40)), ValueError, "must not all be zero|at least one non-zero"),
        (lambda model: model.path(X, Y, [1.0, -1.0]), InputError, "must be a list of finite floats >= 0"),
        (lambda model: model.path(X, Y, []), InputError, "`shapley_penalties` must be a list of finite floats >= 0"),
        (
            lambda model: model.fit(np.stack([ROWS, ROWS], axis=1), ROWS),
            BudgetError,
            r"from 20000 rows does not fit.*would need 29.8 GiB; the limit is 8 GiB",
        ),
    ],
)
def test_bad_uses(call, error, text):
    with pytest.raises(error, match=text):
        call(ShapleyKernelRidge())

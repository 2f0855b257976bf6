"""Sums made products at their ends: each input is exact, or refused with a reason and a way out."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from exactshap import Explainer, explain, kernels
from exactshap.errors import BudgetError, ExactnessError, ExactshapError, InputError, UnsupportedStructureError
from exactshap.readers import KernelMachine, OneLayerNetwork
from exactshap.readers.kernel_machines._expansion import expand
from oracles import interventional_values
from tolerances import RESPONSE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
WIDE = RNG.normal(size=(60, 12))


def logistic(weight, intercept=0.0, rows=X):
    model = LogisticRegression().fit(rows, rows[:, 0] > 0)
    model.coef_, model.intercept_ = np.full((1, rows.shape[1]), float(weight)), np.array([float(intercept)])
    return model


def process(kernel, rows=X, **settings):
    return GaussianProcessRegressor(kernel, alpha=1e-2, optimizer=None, **settings).fit(rows, rows[:, 0])


def ridge(gamma):
    return KernelRidge(kernel="rbf", gamma=gamma).fit(X, X[:, 0])


def network(weight, activation, bias=0.0):
    return OneLayerNetwork(np.full((4, 1), float(weight)), [float(bias)], [1.0], activation=activation)


def separated():
    return LogisticRegression(C=1e12, max_iter=10_000, tol=1e-12).fit(X, X[:, 0] > 0)


EXACT = {
    **{
        f"weights {weight:g}": (lambda weight=weight: logistic(weight), "probability")
        for weight in (0, 1e-300, 1, 175, 1e4, 1e15)
    },
    **{f"intercept {b:g}": (lambda b=b: logistic(1.0, b), "probability") for b in (700, -700, 1e4, -1e300)},
    "scores of 700 on both sides": (lambda: logistic(175.0, 350.0), "probability"),
    "separation": (separated, "probability"),
    "a rate of e^700": (lambda: rate(170.0), "response"),
    **{f"matern, length {l:g}": (lambda l=l: process(Matern(l, nu=1.5)), "auto") for l in (1e-12, 1e-3, 1e3, 1e300)},
    **{f"quadratic, length {l:g}": (lambda l=l: process(RationalQuadratic(l)), "auto") for l in (1e-12, 1e3, 1e300)},
    **{f"gaussian, length {l:g}": (lambda l=l: process(RBF(l)), "auto") for l in (1e-300, 1e-160, 1e-12, 1e3, 1e300)},
    **{f"matern, nu {nu:g}": (lambda nu=nu: process(Matern(1.0, nu=nu)), "auto") for nu in (0.5, 0.7, 1.5, 7.0, 10.0)},
    **{f"quadratic, alpha {a:g}": (lambda a=a: process(RationalQuadratic(1.0, alpha=a)), "auto") for a in (0.05, 1, 100, 1e4)},
    "duplicate points": (lambda: process(Matern(1.0, nu=2.5), np.repeat(X[:20], 3, axis=0)), "auto"),
    **{
        f"{activation}, weights {weight:g}": (lambda weight=weight, activation=activation: network(weight, activation), "auto")
        for activation in ("tanh", "logistic", "relu")
        for weight in (0, 1e-300, 1.0, 1e6)
    },
    **{
        f"{activation}, saturated": (lambda activation=activation: network(1.0, activation, 1e8), "auto")
        for activation in ("tanh", "logistic")
    },
}


def rate(weight):
    model = PoissonRegressor().fit(X, np.exp(X[:, 0]))
    model.coef_, model.intercept_ = np.array([weight, 0.0, 0.0, 0.0]), 0.0
    return model


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_exact(name):
    make, output = EXACT[name]
    model = make()
    rows, background = X[:2], X[10:20]
    explanation = explain(model, rows, background, output=output)
    assert explanation.exact
    assert explanation.certificate().passed
    function = (lambda cells: model.predict_proba(cells)[:, 1]) if output == "probability" else model.predict
    frames = pd.DataFrame(rows), pd.DataFrame(background)
    own = interventional_values(lambda cells: function(cells.to_numpy()), *frames)
    size = max(1.0, np.abs(own).max())
    assert np.abs(explanation.values - own).max() <= max(100.0 * RESPONSE * size, explanation.tolerance.max())


@pytest.mark.parametrize("nu", [0.5, 0.8, 1.5])
def test_kernels_of_differences_keep_their_digits_at_training_rows(nu):
    """scikit-learn's processes take distances by differences: the largest Gaussians of a Matern kernel lose none."""
    model = KernelRidge(kernel=Matern(nu=nu), alpha=0.1).fit(X[:40], X[:40, 0])
    explanation = explain(model, X[:2], X[10:20])
    assert explanation.exact
    own = interventional_values(lambda cells: model.predict(cells.to_numpy()), pd.DataFrame(X[:2]), pd.DataFrame(X[10:20]))
    assert np.abs(explanation.values - own).max() <= explanation.tolerance.max() < 1e-9


def test_what_a_mixture_loses_between_equal_rows():
    """The mean over its Gaussians is what the kernel itself changes by over the rounding of a squared distance."""
    expansion = expand(kernels.Matern(nu=0.5), X[:5], np.ones((5, 1)), cancels=True)
    off = np.finfo(float).eps * (X[:5] ** 2).sum(axis=1).max()
    assert 0.5 < expansion.lost(np.finfo(float).eps) / np.sqrt(off) < 2.0
    narrow = expand(kernels.RBF(1e-9), X[:5], np.ones((5, 1)), cancels=True)
    assert narrow.lost(np.finfo(float).eps) == 1.0
    assert expand(kernels.RBF(1e-9), X[:5], np.ones((5, 1))).lost(np.finfo(float).eps) == 0.0


REFUSED = {
    **{
        f"gaussian ridge, gamma {gamma:g}": (
            lambda gamma=gamma: ridge(gamma),
            "auto",
            UnsupportedStructureError,
            "predicts rounding at its",
        )
        for gamma in (1e16, 1e300, 1e308)
    },
    "weights without end": (lambda: logistic(np.inf), "probability", UnsupportedStructureError, "Explain"),
    "an intercept without end": (lambda: logistic(1.0, np.inf), "auto", UnsupportedStructureError, "Explain"),
    "scores of 10,000 of many columns": (lambda: logistic(1e4, 0.0, WIDE), "probability", BudgetError, "output='auto'"),
    "a rate of e^1000": (lambda: rate(1e3), "response", ExactnessError, "overflow"),
    "matern of length 0": (lambda: process(Matern(0.0)), "auto", InputError, "must be > 0"),
    "quadratic of length 0": (lambda: process(RationalQuadratic(0.0)), "auto", InputError, "must be > 0"),
    "matern of length 1e-300": (lambda: process(Matern(1e-300)), "auto", InputError, "coefficients that are not finite"),
    "gaussian of length 1e-320": (lambda: process(RBF(1e-320)), "auto", InputError, "coefficients that are not finite"),
    # scikit-learn's own formula has a product of infinity and zero there; kernels.Matern(nu=50) has none
    "scikit-learn's matern of nu 50": (lambda: process(Matern(1.0, nu=50.0)), "auto", ExactnessError, "overflow"),
    "matern of nu 0.01": (lambda: process(Matern(1.0, nu=0.01)), "auto", BudgetError, "larger nu"),
    "quadratic of alpha 0.01": (lambda: process(RationalQuadratic(1.0, 0.01)), "auto", BudgetError, "larger alpha"),
    "weights of a network without end": (lambda: network(np.inf, "tanh"), "auto", InputError, "finite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(name):
    make, output, error, words = REFUSED[name]
    rows = WIDE if "many" in name else X
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=words):
            explain(make(), rows[:2], rows[10:20], output=output)


@pytest.mark.parametrize("kernel", [Matern, RationalQuadratic])
@pytest.mark.filterwarnings("ignore")
def test_lengths_that_overflow_are_refused_without_a_background(kernel):
    with np.errstate(all="ignore"), pytest.raises(ExactshapError, match="overflow"):
        explain(process(kernel(1e-300)), X[:2])


@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_a_matern_kernel_that_is_not_1_between_equal_rows_is_read_as_it_is(nu):
    """scikit-learn puts a rounding unit in place of distance 0, where such a kernel is steep: 7e-4 below 1 at nu = 0.1."""
    kernel = 2.0 * Matern([1.0, 2.0, 0.5, np.inf], nu=nu) * RBF(3.0) + Matern(2.0, nu=1.5)
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(X[:8], X[:8, 0] * X[:8, 1])
    rows, background = X[:2], np.vstack([X[:1], X[10:11]])  # training rows, one of them in the background as well
    own = interventional_values(lambda cells: model.predict(cells.to_numpy()), pd.DataFrame(rows), pd.DataFrame(background))
    explanation = explain(model, rows, background)
    assert explanation.certificate().passed
    np.testing.assert_allclose(explanation.values, own, rtol=0, atol=explanation.tolerance.max())
    assert explain(model, rows).certificate().passed  # functional
    assert pickle.loads(pickle.dumps(Explainer(model, background)))(rows).certificate().passed
    assert explain(model, rows, background[:2], uncertainty=True).std is not None


LENGTHS = [1e-300, 1e-5, 1e160, np.inf, [1e-300, 1.0, 1e300, np.inf]]


@pytest.mark.parametrize("length", LENGTHS, ids=str)
@pytest.mark.parametrize("make", [kernels.Matern, kernels.RationalQuadratic, kernels.RBF, kernels.Laplacian])
def test_length_scales_of_any_size_with_duplicates(make, length):
    machine = KernelMachine(np.concatenate([X[:40], X[:3]]), np.append(X[:40, 1], [1.0, -2.0, 0.5]), make(length))
    for background in (None, X[1:7]):
        for settings in ({}, {"index": "k-sii", "order": 2}):
            found = explain(machine, X[[0, 1, 50, 51]], background, **settings)
            assert np.isfinite(found.values).all()
            assert found.certificate().passed


def test_a_model_that_predicts_no_number_is_refused():
    model = process(Matern(1.0, nu=50.0))  # scikit-learn's Bessel functions overflow at distance 0
    with pytest.raises(ExactnessError, match="residual nan"):
        explain(model, X[:2])
    elsewhere = X[:2] + 0.3  # the model predicts these rows, but not those of the background
    with pytest.raises(ExactnessError, match="The model predicts NaN or infinity for rows that mix"):
        explain(model, elsewhere, X[2:9])

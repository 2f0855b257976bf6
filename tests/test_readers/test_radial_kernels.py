"""Machines with Matern and rational quadratic kernels: coalitions by the model's own predictions, extremes, refusals."""

import pickle

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp

from exactshap import Explainer, explain, kernels
from exactshap.errors import ExactnessError
from exactshap.readers import KernelMachine
from tolerances import EPS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = np.sin(X[:, 0]) * X[:, 1] + X[:, 2]
ROWS, BACKGROUND = np.concatenate([X[:2], RNG.normal(size=(2, 4))]), np.concatenate([X[:3], RNG.normal(size=(3, 4))])
KERNELS = {
    "matern 1/2": gp.Matern(1.5, nu=0.5),
    "matern 3/2": gp.Matern([1.0, 2.0, 3.0, 4.0], nu=1.5),
    "matern 0.8": gp.Matern(2.0, nu=0.8),
    "quadratic": gp.RationalQuadratic(1.5, 0.4),
    "sum": 2.0 * gp.Matern(2.0) + gp.RBF(1.0) + gp.WhiteKernel(0.1),
    "product": gp.Matern(2.0, nu=2.5) * gp.RBF([1.0, 2.0, 3.0, 4.0]),
    "squared": gp.Matern(2.0, nu=2.5) ** 2,
    "times columns": gp.DotProduct() * gp.Matern(3.0),
}


def process(kernel):
    return GaussianProcessRegressor(kernel, alpha=1e-2, optimizer=None).fit(X, Y)


@pytest.mark.parametrize("name", ["matern 1/2", "quadratic", "sum"])
@pytest.mark.parametrize("value_function", ["functional", "baseline", "interventional-independent", "observational"])
def test_every_value_function(name, value_function):
    background = {"functional": None, "baseline": X[5:6]}.get(value_function, BACKGROUND)
    explainer = Explainer(process(KERNELS[name]), background, value_function=value_function)
    found = explainer(ROWS)
    assert found.certificate().passed
    assert explainer.verify(ROWS).passed
    assert (found.error_bound > 0.0).all()


def test_groups_and_rows_are_alone():
    machine = KernelMachine(X, Y, kernels.Matern(2.0) + kernels.RationalQuadratic([1.0, 2.0, 3.0, 4.0]))
    for background in (None, BACKGROUND):
        explainer = Explainer(machine, background, groups={"a": [0, 2], "b": [1], "c": [3]})
        together = explainer(ROWS)
        assert explainer.verify(ROWS).passed
        for i in range(4):
            np.testing.assert_array_equal(explainer(ROWS[i : i + 1]).values[0], together.values[i])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(explainer))(ROWS).values, together.values)


def test_the_covariance_is_that_of_the_process():
    model = process(KERNELS["matern 3/2"])
    found = explain(model, ROWS[2:3], X[5:6], value_function="baseline", uncertainty=True)
    _, covariance = model.predict(np.concatenate([ROWS[2:3], X[5:6]]), return_cov=True)
    variance = covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]
    np.testing.assert_allclose(found.covariances[0].sum(), variance, rtol=np.sqrt(EPS))
    assert np.isfinite(found.std).all()


LENGTHS = [1e-300, 1e-5, 1e160, np.inf, [1e-300, 1.0, 1e300, np.inf]]


@pytest.mark.parametrize("length", LENGTHS, ids=str)
@pytest.mark.parametrize("make", [kernels.Matern, kernels.RationalQuadratic, kernels.RBF, kernels.Laplacian])
def test_length_scales_of_any_size_with_duplicates(make, length):
    machine = KernelMachine(np.concatenate([X, X[:3]]), np.append(Y, [1.0, -2.0, 0.5]), make(length))
    for background in (None, BACKGROUND):
        for settings in ({}, {"index": "k-sii", "order": 2}):
            found = explain(machine, ROWS, background, **settings)
            assert np.isfinite(found.values).all()
            assert found.certificate().passed


@pytest.mark.parametrize("nu", [1.1, 20.0, 50.0])
def test_any_smoothness(nu):
    assert Explainer(KernelMachine(X, Y, kernels.Matern(1.5, nu=nu)), BACKGROUND).verify(ROWS).passed


def test_a_model_that_predicts_no_number_is_refused():
    model = process(gp.Matern(1.0, nu=50.0))  # scikit-learn's Bessel functions overflow at distance 0
    with pytest.raises(ExactnessError, match="residual nan"):
        explain(model, X[:2])
    elsewhere = X[:2] + 0.3  # the model predicts these rows, but not those of the background
    with pytest.raises(ExactnessError, match="The model predicts NaN or infinity for rows that mix"):
        explain(model, elsewhere, X[2:9])

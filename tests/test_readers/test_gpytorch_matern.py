"""Gpytorch's Matern and rational quadratic kernels, of one column and of several."""

import functools
import operator

import numpy as np
import pytest

from exactshap import Explainer, explain
from exactshap.errors import UnsupportedStructureError
from tolerances import assert_close, conditioned

gpytorch, torch = pytest.importorskip("gpytorch"), pytest.importorskip("torch")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.sin(X[:, 0]) * X[:, 1] + X[:, 2]


class Model(gpytorch.models.ExactGP):
    def __init__(self, kernel, dtype=torch.float64):
        inputs, targets = (torch.tensor(array, dtype=dtype) for array in (X, Y))
        super().__init__(inputs, targets, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), kernel
        self.to(dtype)

    def forward(self, inputs):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))


def matern(nu, column, lengthscale):
    kernel = gpytorch.kernels.MaternKernel(nu=nu, active_dims=(column,))
    kernel.lengthscale = lengthscale
    return kernel


KERNELS = {
    **{f"nu = {nu}": [matern(nu, 0, 0.7), matern(nu, 1, 1.5), matern(nu, 2, 2.0)] for nu in (0.5, 1.5, 2.5)},
    "mixed": [
        gpytorch.kernels.ScaleKernel(matern(2.5, 2, 0.9)),
        gpytorch.kernels.RBFKernel(active_dims=(0, 1)),
        matern(0.5, 0, 3.0),
    ],
}


@pytest.mark.parametrize("name", KERNELS)
def test_products_over_columns(name):
    model = Model(functools.reduce(operator.mul, KERNELS[name])).double()
    explainer = Explainer(model, X[:7])
    explanation = explainer(X[10:13])
    assert explainer.verify(X[10:13]).passed
    assert explanation.certificate().passed
    with torch.no_grad():
        own = model(torch.tensor(X[10:13])).mean.numpy()
    np.testing.assert_allclose(explanation.prediction, own, atol=conditioned(1e6))
    functional = explain(model, X[10:13])
    assert functional.value_function == "functional"
    assert functional.certificate().passed


def test_sums_too():
    kernel = matern(1.5, 0, 0.7) * matern(2.5, 1, 1.0) + gpytorch.kernels.ScaleKernel(matern(0.5, 2, 1.0))
    assert Explainer(Model(kernel).double(), X[:7]).verify(X[10:13]).passed


SEVERAL_COLUMNS = {
    **{f"nu = {nu}": lambda nu=nu: gpytorch.kernels.MaternKernel(nu=nu) for nu in (0.5, 1.5, 2.5)},
    "one length scale per column": lambda: gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(ard_num_dims=3)),
    "some columns": lambda: gpytorch.kernels.MaternKernel(active_dims=(0, 2)),
    "rational quadratic": lambda: gpytorch.kernels.RQKernel(ard_num_dims=3),
    "sum and product": lambda: (
        gpytorch.kernels.MaternKernel() * gpytorch.kernels.RBFKernel() + gpytorch.kernels.RQKernel(active_dims=(0, 1))
    ),
}


@pytest.mark.parametrize("name", SEVERAL_COLUMNS)
def test_one_kernel_of_several_columns(name):
    model = Model(SEVERAL_COLUMNS[name]()).double().eval()

    def mean(rows):
        with torch.no_grad():
            return model(torch.tensor(rows)).mean.numpy()

    # away from the training rows: gpytorch's distances |x|^2 + |y|^2 - 2 x.y of equal rows are 1e-8, not 0
    found, by_call = explain(model, X[10:13] + 0.5, X[:7] + 0.2), explain(mean, X[10:13] + 0.5, X[:7] + 0.2)
    assert_close(found.values, by_call.values, scale=1e4 * np.abs(Y).max(), n_terms=30, n_players=3)
    assert 0.0 < found.error_bound.max() < conditioned(1e4)
    assert found.certificate().passed
    assert np.isfinite(found.std).all()
    assert explain(model, X[10:13] + 0.5).certificate().passed
    assert explain(model, X[10:13], X[:7]).certificate().passed


def test_float32_models():
    model = Model(gpytorch.kernels.MaternKernel()).float()
    model.set_train_data(torch.tensor(X).float(), torch.tensor(Y).float(), strict=False)
    assert explain(model, X[10:13], X[:7]).certificate().passed


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rbf_kernels_of_both_precisions(dtype):
    rbf = gpytorch.kernels.RBFKernel
    for kernel in (
        gpytorch.kernels.ScaleKernel(rbf(ard_num_dims=3)),
        rbf() + gpytorch.kernels.ScaleKernel(rbf(active_dims=[0, 2])),
    ):
        model = Model(kernel, dtype)
        for background in (None, X[8:14]):
            assert explain(model, X[:4], background).certificate().passed


def test_a_kernel_of_no_known_form_is_refused():
    with pytest.raises(UnsupportedStructureError, match="CosineKernel is not a product over features that can be read"):
        Explainer(Model(gpytorch.kernels.CosineKernel()).double())

"""Products of gpytorch's Matern kernels with one active column each are products over columns."""

import functools
import operator

import numpy as np
import pytest

from exactshap import Explainer, explain
from exactshap.errors import UnsupportedStructureError
from tolerances import conditioned

gpytorch, torch = pytest.importorskip("gpytorch"), pytest.importorskip("torch")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.sin(X[:, 0]) * X[:, 1] + X[:, 2]


class Model(gpytorch.models.ExactGP):
    def __init__(self, kernel):
        super().__init__(torch.tensor(X), torch.tensor(Y), gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), kernel

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


@pytest.mark.parametrize("kernel", [gpytorch.kernels.MaternKernel(), gpytorch.kernels.MaternKernel(active_dims=(0, 2))])
def test_one_kernel_of_several_columns_is_refused(kernel):
    with pytest.raises(
        UnsupportedStructureError, match=r"several columns is not a product.*Multiply kernels of one column each"
    ):
        Explainer(Model(kernel).double(), X[:7])

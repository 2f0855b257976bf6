"""BoTorch's SingleTaskGP with its transforms: the posterior mean in the user's units."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("botorch")
from botorch.models import SingleTaskGP  # noqa: E402
from botorch.models.transforms.input import InputStandardize, Normalize  # noqa: E402
from botorch.models.transforms.outcome import Log, Standardize  # noqa: E402
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, ScaleKernel  # noqa: E402
from gpytorch.means import LinearMean  # noqa: E402

from exactshap import Explainer, explain  # noqa: E402
from exactshap.errors import UnsupportedStructureError  # noqa: E402
from tolerances import assert_close  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.random((40, 4)) * [10, 1, 100, 5] - [0, 3, 0, 1]
Y = (np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 50 + 30.0)[:, None]


def model(**settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SingleTaskGP(torch.tensor(X), torch.tensor(Y), **settings).eval()


def matern_product():
    return ScaleKernel(MaternKernel(active_dims=(0,)) * MaternKernel(nu=1.5, active_dims=(2,)))


CASES = {
    "defaults": {},
    "normalised": lambda: {"input_transform": Normalize(4)},
    "standardised": lambda: {"input_transform": InputStandardize(4)},
    "plain target": lambda: {"input_transform": Normalize(4), "outcome_transform": None},
    "scaled target": lambda: {"outcome_transform": Standardize(1)},
    "Matern of one column each": lambda: {"input_transform": Normalize(4), "covar_module": matern_product()},
    "Matern": lambda: {"input_transform": Normalize(4), "covar_module": ScaleKernel(MaternKernel(ard_num_dims=4))},
    "linear mean": lambda: {"input_transform": Normalize(4), "mean_module": LinearMean(4)},
    "linear kernel": lambda: {"covar_module": ScaleKernel(RBFKernel()) + LinearKernel()},
    "known noise": lambda: {"input_transform": Normalize(4), "train_Yvar": torch.full((40, 1), 0.1, dtype=torch.float64)},
}


def mean(fitted):
    def function(rows):
        with torch.no_grad():
            return fitted.posterior(torch.tensor(np.asarray(rows))).mean.numpy()[:, 0]

    return function


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_posterior_mean(name):
    case = CASES[name]
    fitted = model(**(case() if callable(case) else case))
    found, by_call = explain(fitted, X[:3], X[10:20]), explain(mean(fitted), X[:3], X[10:20])
    assert found.certificate().passed
    np.testing.assert_allclose(found.prediction, mean(fitted)(X[:3]))
    assert_close(found.values, by_call.values, scale=1e4 * np.abs(Y).max(), n_terms=40, n_players=4)
    assert Explainer(fitted, X[10:20]).verify(X[:3]).passed
    assert found.method != by_call.method


def test_deviations_are_in_the_units_of_the_target():
    fitted = model(input_transform=Normalize(4))
    found = explain(fitted, X[:2], X[10:11], value_function="baseline")
    if found.covariances is None:
        pytest.skip("no covariance of this value function")
    with torch.no_grad():
        joint = fitted.posterior(torch.tensor(X[[0, 10]])).distribution.covariance_matrix.numpy()
    variance = joint[0, 0] + joint[1, 1] - 2 * joint[0, 1]
    np.testing.assert_allclose(found.covariances[0].sum(), variance, rtol=np.sqrt(np.finfo(float).eps))


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"outcome_transform": Log()}, "outcome transform Log cannot be read"),
        ({"covar_module": LinearKernel(), "input_transform": Normalize(4)}, "LinearKernel behind an input transform"),
    ],
)
def test_what_is_no_scaling_is_refused_with_a_function_that_works(settings, what):
    fitted = model(**settings)
    with pytest.raises(UnsupportedStructureError, match=what) as caught:
        explain(fitted, X[:2], X[10:20])
    assert "model.posterior(torch.tensor(rows)).mean.detach().numpy()[:, 0]" in str(caught.value)
    function = lambda rows: fitted.posterior(torch.tensor(rows)).mean.detach().numpy()[:, 0]  # noqa: E731
    assert explain(function, X[:2], X[10:20]).exact

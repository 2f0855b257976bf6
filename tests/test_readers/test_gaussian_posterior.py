"""Credible intervals through the front door: against each library's own predictive covariance."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as k
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactshap import Explainer, explain
from exactshap.errors import ExactnessError, InputError, UnknownNameError
from exactshap.solvers._gp_covariance import Uncertainty

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = 3.0 * X[:, 0] + np.sin(X[:, 1]) + 0.1 * RNG.normal(size=40)
ROWS, BACKGROUND = X[:4], X[10:17]
WEIGHTS = np.linspace(1, 2, 7) / np.linspace(1, 2, 7).sum()

KERNELS = {
    "ard": k.ConstantKernel(2.0) * k.RBF([1.0, 2.0, 0.5]),
    "sum": k.RBF(1.0) + k.DotProduct(0.5) + k.WhiteKernel(0.1),
    "product": k.RBF(2.0) * k.DotProduct(1.0),
}


def regressor(kernel, **settings):
    return GaussianProcessRegressor(kernel, alpha=0.05, optimizer=None, **settings).fit(X, Y)


def latent_covariance(model, points):
    """The model's own covariance without the observation noise that a WhiteKernel adds at the new points."""
    _, covariance = model.predict(points, return_cov=True)
    noise = sum(part.noise_level for part in _parts(model.kernel_) if isinstance(part, k.WhiteKernel))
    return covariance - noise * model._y_train_std**2 * np.eye(len(points))


def _parts(kernel):
    return _parts(kernel.k1) + _parts(kernel.k2) if hasattr(kernel, "k1") else [kernel]


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_sum_is_the_models_own_variance(kernel, normalize_y):
    model = regressor(kernel, normalize_y=normalize_y)
    explanation = explain(model, ROWS, BACKGROUND, background_weights=WEIGHTS)
    covariance = latent_covariance(model, np.vstack([ROWS, BACKGROUND]))
    for i in range(len(ROWS)):
        direction = np.concatenate([np.eye(len(ROWS))[i], -WEIGHTS])
        expected = direction @ covariance @ direction
        assert explanation.covariance(i).sum() == pytest.approx(expected, rel=1e-9, abs=1e-12 * np.max(model._y_train_std) ** 2)
    assert explanation.std.shape == (4, 3)
    assert np.all(explanation.std > 0)


def test_single_values_by_linearity():
    """phi is linear in f: with two columns, phi_1 is a combination of predictions at four hybrid points."""
    points = X[:, :2]
    model = GaussianProcessRegressor(k.RBF([1.0, 0.7]), alpha=0.1, optimizer=None).fit(points, Y)
    (x1, x2), (z1, z2) = points[0], points[1]
    explanation = explain(model, points[:1], points[1:2], value_function="baseline")
    hybrids = np.array([[x1, x2], [z1, x2], [x1, z2], [z1, z2]])
    first = np.array([0.5, -0.5, 0.5, -0.5])
    second = np.array([0.5, 0.5, -0.5, -0.5])
    mean, covariance = model.predict(hybrids, return_cov=True)
    np.testing.assert_allclose(explanation.values[0], [first @ mean, second @ mean], rtol=0, atol=1e-13)
    operator = np.stack([first, second])
    np.testing.assert_allclose(explanation.covariance(0), operator @ covariance @ operator.T, rtol=0, atol=1e-13)


def test_classifier_latent_variance():
    model = GaussianProcessClassifier(k.ConstantKernel(4.0) * k.RBF(1.5), optimizer=None).fit(X, Y > 0)
    explanation = explain(model, ROWS, BACKGROUND[:1], value_function="baseline")
    base = model.base_estimator_
    points = np.vstack([ROWS[:1], BACKGROUND[:1]])
    sections = base.kernel_(base.X_train_, points)
    solved = np.linalg.solve(base.L_, base.W_sr_[:, None] * sections)  # Rasmussen & Williams, algorithm 3.2
    covariance = base.kernel_(points) - solved.T @ solved
    assert explanation.covariance(0).sum() == pytest.approx(np.array([1, -1]) @ covariance @ np.array([1, -1]), rel=1e-9)


def test_saturated_probabilities_carry_no_information():
    model = GaussianProcessClassifier(k.ConstantKernel(4.0) * k.RBF(1.5), optimizer=None).fit(X, Y > 0)
    base = model.base_estimator_
    base.W_sr_[:5] = 0.0
    base.L_ = np.linalg.cholesky(np.eye(40) + base.W_sr_[:, None] * base.kernel_(X) * base.W_sr_)
    points = np.vstack([ROWS[:1], BACKGROUND[:1]])
    solved = np.linalg.solve(base.L_, base.W_sr_[:, None] * base.kernel_(base.X_train_, points))
    covariance = base.kernel_(points) - solved.T @ solved
    explanation = explain(model, ROWS[:1], BACKGROUND[:1], value_function="baseline")
    assert explanation.covariance(0).sum() == pytest.approx(np.array([1, -1]) @ covariance @ np.array([1, -1]), rel=1e-9)


def test_gpytorch_variance():
    gpytorch, torch = pytest.importorskip("gpytorch"), pytest.importorskip("torch")

    class Model(gpytorch.models.ExactGP):
        def __init__(self, inputs, targets, likelihood):
            super().__init__(inputs, targets, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=3))

        def forward(self, inputs):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))

    model = Model(torch.tensor(X), torch.tensor(Y), gpytorch.likelihoods.GaussianLikelihood()).double()
    explanation = explain(model, ROWS[:1], BACKGROUND[:1], value_function="baseline")
    with torch.no_grad():
        covariance = model(torch.tensor(np.vstack([ROWS[:1], BACKGROUND[:1]]))).covariance_matrix.numpy()
    expected = np.array([1, -1]) @ covariance @ np.array([1, -1])
    assert explanation.covariance(0).sum() == pytest.approx(expected, rel=1e-8)


def test_groups_merge_players():
    model = regressor(KERNELS["ard"])
    one = explain(model, ROWS, BACKGROUND, groups={"all": [0, 1, 2]})
    columns = explain(model, ROWS, BACKGROUND)
    np.testing.assert_allclose(one.covariances[:, 0, 0], columns.covariances.sum(axis=(1, 2)), rtol=1e-9, atol=1e-13)


def test_blocks_and_threads_do_not_matter():
    model = regressor(KERNELS["ard"])
    whole = explain(model, X, BACKGROUND)
    for i in (0, 17, 39):
        np.testing.assert_allclose(explain(model, X[i : i + 1], BACKGROUND).covariances[0], whole.covariances[i], atol=1e-13)


def test_threads_and_pickles_give_the_same_bits():
    many = RNG.normal(size=(300, 3))  # more than one block of rows
    explainer = Explainer(regressor(KERNELS["ard"]), BACKGROUND)
    again = pickle.loads(pickle.dumps(explainer))
    explainer.n_jobs = 2
    np.testing.assert_array_equal(explainer(many).covariances, again(many).covariances)


def test_through_a_pipeline_and_a_scaled_target():
    scaler = StandardScaler().fit(X)
    inner = GaussianProcessRegressor(KERNELS["ard"], alpha=0.05, optimizer=None)
    direct = explain(clone(inner).fit(scaler.transform(X), Y), scaler.transform(ROWS), scaler.transform(BACKGROUND))
    pipeline = make_pipeline(StandardScaler(), inner).fit(X, Y)
    np.testing.assert_allclose(explain(pipeline, ROWS, BACKGROUND).covariances, direct.covariances, rtol=1e-9, atol=1e-14)
    scaled = TransformedTargetRegressor(pipeline, transformer=StandardScaler()).fit(X, 10.0 * Y)
    expected = direct.covariances * (10.0 * Y).std() ** 2
    np.testing.assert_allclose(explain(scaled, ROWS, BACKGROUND).covariances, expected, rtol=1e-9, atol=1e-12)


def test_offered_only_where_it_exists():
    model = regressor(KERNELS["ard"])
    assert explain(model, ROWS).covariances is None
    assert explain(model, ROWS, BACKGROUND, uncertainty=False).covariances is None
    assert explain(model, ROWS, BACKGROUND, order=3).covariances is None
    assert explain(model, ROWS, BACKGROUND, value_function="interventional-independent").std is not None


def test_automatic_skips_what_is_expensive(monkeypatch):
    from exactshap.readers import _gaussian_posterior

    monkeypatch.setattr(_gaussian_posterior, "AUTOMATIC_OPERATIONS", 1.0)
    model = regressor(KERNELS["ard"])
    assert explain(model, ROWS, BACKGROUND).covariances is None
    assert explain(model, ROWS, BACKGROUND, uncertainty=True).covariances is not None


def test_a_covariance_that_does_not_add_up_is_refused(monkeypatch):
    from exactshap.readers import _gaussian_posterior

    exact = _gaussian_posterior.shapley_covariance

    def wrong(*args, **settings):
        found = exact(*args, **settings)
        return Uncertainty(found.covariance, found.total, found.residual + 1e-6, 0.0, found.scale, 0.0)

    monkeypatch.setattr(_gaussian_posterior, "shapley_covariance", wrong)
    with pytest.raises(ExactnessError, match="does not add up to the variance"):
        explain(regressor(KERNELS["ard"]), ROWS, BACKGROUND)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"uncertainty": 2}, InputError, "'uncertainty' parameter must be True, False or 'auto'"),
        ({"uncertainty": True, "value_function": "functional"}, UnknownNameError, "linear in f, which 'functional' is not"),
        ({"uncertain": True}, UnknownNameError, "no setting 'uncertain'"),
    ],
)
def test_bad_settings(settings, error, text):
    with pytest.raises(error, match=text):
        Explainer(regressor(KERNELS["ard"]), BACKGROUND, **settings)(ROWS)


def test_outputs_share_their_covariance_up_to_scale():
    model = GaussianProcessRegressor(k.RBF(1.0), alpha=0.1, optimizer=None, normalize_y=True).fit(X, np.stack([Y, 5 * Y], 1))
    first, second = (explain(model, ROWS, BACKGROUND, output=o).covariances for o in (0, 1))
    np.testing.assert_allclose(second, 25 * first, rtol=1e-9, atol=1e-13)
    both = explain(model, ROWS, BACKGROUND)
    np.testing.assert_array_equal(both.covariances, np.stack([first, second], axis=-1))
    np.testing.assert_array_equal(both.covariance(1, output="target 1"), second[1])
    assert both.std.shape == both.values.shape


def test_a_constant_kernel_has_values_without_uncertainty():
    from sklearn.gaussian_process.kernels import ConstantKernel

    rows = np.random.default_rng(0).normal(size=(12, 3))
    model = GaussianProcessRegressor(ConstantKernel(2.0), optimizer=None, alpha=0.1).fit(rows, rows[:, 0])
    explanation = explain(model, rows[:3], rows[3:8], uncertainty=True)
    assert not explanation.values.any()
    np.testing.assert_allclose(explanation.std, 0.0, atol=1e-7)

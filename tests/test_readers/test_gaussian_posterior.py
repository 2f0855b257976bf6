"""Credible intervals through the front door: against each library's own predictive covariance."""

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as k
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactshap import Explainer, explain
from exactshap.errors import BudgetError, ExactnessError, InputError, UnknownNameError
from exactshap.semivalues import asymmetric, find, owen
from exactshap.solvers.rkhs import Uncertainty
from tolerances import HALF_THE_DIGITS, conditioned, roundings

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = 3.0 * X[:, 0] + np.sin(X[:, 1]) + 0.1 * RNG.normal(size=40)
ROWS, BACKGROUND = X[:4], X[10:17]
WEIGHTS = np.linspace(1, 2, 7) / np.linspace(1, 2, 7).sum()

KERNELS = {
    "ard": k.ConstantKernel(2.0) * k.RBF([1.0, 2.0, 0.5]),
    "sum": k.RBF(1.0) + k.DotProduct(0.5) + k.WhiteKernel(0.1),
    "product": k.RBF(2.0) * k.DotProduct(1.0),
    "matern": k.Matern([1.0, 2.0, 0.5], nu=1.5),
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
def test_sums_miss_the_models_own_variance_by_little_and_that_is_kept(kernel, normalize_y, tmp_path):
    model = regressor(kernel, normalize_y=normalize_y)
    explanation = explain(model, ROWS, BACKGROUND, background_weights=WEIGHTS)
    residual = explanation.covariance_residual  # computed apart, not copied
    assert 0 < np.abs(residual).max() < conditioned(1e6)
    assert "own variance of f(x) - baseline to within" in explanation.facts()["covariance"]
    explanation.save(tmp_path / "e.npz")
    loaded = type(explanation).load(tmp_path / "e.npz")
    for other in (explanation[1:3], loaded[1:3], pickle.loads(pickle.dumps(explanation))[1:3]):
        np.testing.assert_array_equal(other.covariance_residual, residual[1:3])


@pytest.mark.parametrize("saturated", [False, True])
def test_latent_variance_of_a_classifier(saturated):
    """Saturated probabilities carry no information."""
    model = GaussianProcessClassifier(k.ConstantKernel(4.0) * k.RBF(1.5), optimizer=None).fit(X, Y > 0)
    base = model.base_estimator_
    if saturated:
        base.W_sr_[:5] = 0.0
        base.L_ = np.linalg.cholesky(np.eye(40) + base.W_sr_[:, None] * base.kernel_(X) * base.W_sr_)
    points = np.vstack([ROWS[:1], BACKGROUND[:1]])
    solved = np.linalg.solve(base.L_, base.W_sr_[:, None] * base.kernel_(base.X_train_, points))  # R & W, algorithm 3.2
    covariance = base.kernel_(points) - solved.T @ solved
    explanation = explain(model, ROWS[:1], BACKGROUND[:1], value_function="baseline")
    expected = np.array([1, -1]) @ covariance @ np.array([1, -1])
    assert explanation.covariance(0).sum() == pytest.approx(expected, rel=conditioned(1e6))


def test_a_constant_kernel_has_values_without_uncertainty():
    model = GaussianProcessRegressor(k.ConstantKernel(2.0), optimizer=None, alpha=0.1).fit(X, Y)
    explanation = explain(model, ROWS, BACKGROUND, uncertainty=True)
    assert not explanation.values.any()
    np.testing.assert_allclose(explanation.std, 0.0, atol=conditioned(1e8))


def coalition_operator(row, background, weights):
    """All 2^3 coalitions written out: hybrid points, and the values of each player as combinations of f at them."""
    points, coefficients = [], []
    for mask in itertools.product([False, True], repeat=3):
        for z, weight in zip(background, weights, strict=True):
            points.append(np.where(mask, row, z))
            size = sum(mask)
            inside, outside = (1 / 3, 1 / 6, 1 / 3)[max(size - 1, 0)], (1 / 3, 1 / 6, 1 / 3)[min(size, 2)]
            coefficients.append([weight * (inside if known else -outside) for known in mask])
    return np.array(points), np.array(coefficients).T


def gpytorch_model(kernel, mean, kind="float64"):
    gpytorch, torch = pytest.importorskip("gpytorch"), pytest.importorskip("torch")

    class Model(gpytorch.models.ExactGP):
        def __init__(self, inputs, targets, likelihood):
            super().__init__(inputs, targets, likelihood)
            self.mean_module, self.covar_module = getattr(gpytorch.means, mean)(*((3,) if mean == "LinearMean" else ())), kernel

        def forward(self, inputs):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))

    torch.manual_seed(0)
    inputs, targets = (torch.tensor(array).to(getattr(torch, kind)) for array in (X, Y))
    return Model(inputs, targets, gpytorch.likelihoods.GaussianLikelihood()).to(getattr(torch, kind))


GPYTORCH = {
    "ard": lambda g: g.ScaleKernel(g.RBFKernel(ard_num_dims=3)),
    "sum": lambda g: g.RBFKernel() + g.ScaleKernel(g.RBFKernel(active_dims=[0, 2])),
    "product": lambda g: g.RBFKernel(active_dims=[0]) * g.RBFKernel(active_dims=[1, 2]),
    "linear": lambda g: g.LinearKernel(),  # gpytorch solves for columns instead of rows
    "linear and rbf": lambda g: g.LinearKernel(active_dims=[0, 1]) + g.RBFKernel(),
}


def posterior_of_gpytorch(kernel, mean):
    gpytorch, torch = pytest.importorskip("gpytorch"), pytest.importorskip("torch")
    model = gpytorch_model(GPYTORCH[kernel](gpytorch.kernels), mean)

    def posterior(points):
        with torch.no_grad():
            found = model(torch.tensor(points))
            return found.mean.numpy(), found.covariance_matrix.numpy()

    return model, posterior


def posterior_of_sklearn(kernel, normalize_y):
    model = regressor(KERNELS[kernel], normalize_y=normalize_y)
    return model, lambda points: (model.predict(points), latent_covariance(model, points))


MEANS = ("ZeroMean", "ConstantMean", "LinearMean")
PROCESSES = [(posterior_of_sklearn, kernel, normalize_y) for kernel in KERNELS for normalize_y in (False, True)]
PROCESSES += [(posterior_of_gpytorch, kernel, mean) for kernel in GPYTORCH for mean in MEANS]


@pytest.mark.parametrize(("make", "kernel", "mean"), PROCESSES)
def test_values_and_covariance_by_linearity(make, kernel, mean):
    """phi is linear in f: every value and covariance against the library's own joint posterior at all hybrid points."""
    model, posterior = make(kernel, mean)
    for value_function, background, weights in (("interventional", BACKGROUND, WEIGHTS), ("baseline", BACKGROUND[:1], [1.0])):
        chosen = {"background_weights": weights} if value_function == "interventional" else {}
        explanation = explain(model, ROWS[:2], background, value_function=value_function, **chosen)
        assert explanation.certificate().passed
        for i in range(2):
            points, operator = coalition_operator(ROWS[i], background, weights)
            means, covariances = posterior(points)
            covariance = operator @ covariances @ operator.T
            # rounding of the library's own solves: eps times 40 rows times a condition below 1e3
            np.testing.assert_allclose(explanation.values[i], operator @ means, rtol=0, atol=conditioned(1e5))
            np.testing.assert_allclose(explanation.covariance(i), covariance, rtol=0, atol=conditioned(1e5))


def test_gpytorch_in_single_precision():
    gpytorch = pytest.importorskip("gpytorch")
    model = gpytorch_model(gpytorch.kernels.LinearKernel(), "LinearMean", "float32")
    explanation = explain(model, ROWS, BACKGROUND)
    assert explanation.certificate().passed
    assert explanation.tolerance.max() < 1e-2


def test_a_covariance_has_the_same_bits_beside_rows_that_ask_for_more_nodes():
    wide = np.random.default_rng(1).normal(size=(40, 14))
    model = GaussianProcessRegressor(k.RBF(8.0), alpha=0.05, optimizer=None).fit(wide, wide[:, 0])
    rows = np.random.default_rng(2).normal(size=(5, 14)) * np.array([0.1, 1.0, 6.0, 0.5, 2.0])[:, None]
    explainer = Explainer(model, wide[:8], uncertainty=True)
    whole = explainer(rows)
    for i in range(5):
        np.testing.assert_array_equal(explainer(rows[i : i + 1]).covariances[0], whole.covariances[i])


def test_through_a_pipeline():
    scaler = StandardScaler().fit(X)
    inner = GaussianProcessRegressor(KERNELS["ard"], alpha=0.05, optimizer=None)
    direct = explain(clone(inner).fit(scaler.transform(X), Y), scaler.transform(ROWS), scaler.transform(BACKGROUND))
    piped = explain(make_pipeline(StandardScaler(), inner).fit(X, Y), ROWS, BACKGROUND)
    np.testing.assert_allclose(piped.covariances, direct.covariances, rtol=conditioned(1e6), atol=roundings(50))


def test_offered_only_where_it_exists():
    model = regressor(KERNELS["ard"])
    assert explain(model, ROWS).covariances is None
    assert explain(model, ROWS, BACKGROUND, uncertainty=False).covariances is None
    assert explain(model, ROWS, BACKGROUND, order=3).covariances is None
    assert explain(model, ROWS, BACKGROUND, value_function="interventional-independent").std is not None


# Not offered: more than a tenth of a second a row, or 17 times as long as the values alone
@pytest.mark.parametrize(
    ("kernel", "n_background", "automatic"),
    [(k.RBF(3.0), 100, True), (k.RBF(3.0), 300, False)]
    + [(k.Matern(3.0, nu=nu), n, offered) for nu, n, offered in ((1.5, 10, True), (0.5, 10, False), (1.5, 50, False))],
)
def test_an_uncertainty_that_nobody_set_is_cheap_beside_its_values(kernel, n_background, automatic):
    points = np.random.default_rng(3).normal(size=(300, 10))
    model = GaussianProcessRegressor(kernel, alpha=1.0, optimizer=None).fit(points, points[:, 0])
    reader = Explainer(model, points[:n_background], memory_limit=2**34).reader
    assert reader.strategy.offered() == automatic
    assert Explainer(model, points[:n_background], uncertainty=True).reader.strategy.offered()


def test_a_covariance_that_does_not_add_up_is_refused(monkeypatch):
    from exactshap.readers.kernel_machines import _gaussian_posterior

    exact = _gaussian_posterior.shapley_covariance

    def wrong(*args, **settings):
        found = exact(*args, **settings)
        return Uncertainty(found.covariance, found.total, found.residual + 1e-6, 0.0, found.scale, 0.0)

    monkeypatch.setattr(_gaussian_posterior, "shapley_covariance", wrong)
    with pytest.raises(ExactnessError, match="does not add up to the variance"):
        explain(regressor(KERNELS["ard"]), ROWS, BACKGROUND)


@pytest.mark.parametrize("order", [1, 2])
def test_deviations_of_several_outputs_and_of_scaled_targets(order, tmp_path):
    def deviations(explanation):
        return explanation.std if order == 1 else explanation.set_std

    two = GaussianProcessRegressor(k.RBF(1.0), alpha=0.1, optimizer=None, normalize_y=True).fit(X, np.stack([Y, 5 * Y], 1))
    both = explain(two, ROWS, BACKGROUND, order=order)
    np.testing.assert_allclose(deviations(both)[..., 1], 5 * deviations(both)[..., 0], rtol=conditioned(1e6))
    np.testing.assert_array_equal(deviations(both.output(0)), deviations(both)[..., 0])
    residual = both.covariance_residual
    np.testing.assert_allclose(residual[:, 1], 25 * residual[:, 0], rtol=roundings(5_000))
    np.testing.assert_array_equal(both.output(1).covariance_residual, residual[:, 1])
    both.save(tmp_path / "e.npz")
    np.testing.assert_array_equal(deviations(type(both).load(tmp_path / "e.npz")), deviations(both))
    inner = GaussianProcessRegressor(KERNELS["ard"], alpha=0.05, optimizer=None)
    plain = explain(clone(inner).fit(X, (Y - Y.mean()) / Y.std()), ROWS, BACKGROUND, order=order)
    scaled = explain(TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, Y), ROWS, BACKGROUND, order=order)
    np.testing.assert_allclose(deviations(scaled), deviations(plain) * Y.std(), rtol=conditioned(1e6))
    expected = plain.covariance_residual * Y.std() ** 2
    np.testing.assert_allclose(scaled.covariance_residual, expected, rtol=roundings(5_000), atol=1e-300)


# -- several outputs -------------------------------------------------------------------------------------------------------


def test_classes_have_their_own_processes():
    labels = np.digitize(Y, [-2.0, 2.0])
    model = GaussianProcessClassifier(k.ConstantKernel(4.0) * k.RBF(1.5), optimizer=None).fit(X, labels)
    every = explain(model, ROWS, BACKGROUND)
    assert every.covariances.shape == (4, 3, 3, 3)
    assert every.std.shape == every.values.shape == (4, 3, 3)
    for o in range(3):
        alone = explain(model, ROWS, BACKGROUND, output=o)
        np.testing.assert_array_equal(every.covariances[..., o], alone.covariances)
        np.testing.assert_array_equal(every.covariance(2, o), alone.covariance(2))
    assert np.any(every.covariances[..., 0] != every.covariances[..., 1])
    with pytest.raises(InputError, match="There is no output 3"):
        every.covariance(0, output=3)
    with pytest.raises(InputError, match="single output"):
        alone.covariance(0, output=1)


# -- pairs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["shapley", "sii", "banzhaf-interaction", "k-sii", "stii", "fsii", "chaining", "moebius"])
def test_deviations_of_pairs_equal_enumeration(index):
    """Every index is a linear map of coalition values, whose covariance the process itself gives at hybrid points."""
    model = regressor(KERNELS["ard"], normalize_y=True)
    explanation = explain(model, ROWS[:2], BACKGROUND[:3], index=index, order=2, uncertainty=True)
    assert explanation.set_std.shape == explanation.set_values.shape == (2, 6)
    masks = np.array([[code >> j & 1 for j in range(3)] for code in range(8)], bool)
    semivalue = find(index)
    operator = np.zeros((6, 8))
    for row, players in enumerate(explanation.sets):
        p = semivalue.weights(3, len(players), 2)
        for column, mask in enumerate(masks):
            inside = sum(mask[list(players)])
            operator[row, column] = (-1.0) ** (len(players) - inside) * p[mask.sum() - inside]
    for i in range(2):
        points = np.where(masks[:, None, :], ROWS[i], BACKGROUND[None, :3]).reshape(-1, 3)
        covariance = latent_covariance(model, points).reshape(8, 3, 8, 3).mean(axis=(1, 3))
        expected = np.sqrt(np.diag(operator @ covariance @ operator.T))
        np.testing.assert_allclose(explanation.set_std[i], expected, rtol=HALF_THE_DIGITS)
        np.testing.assert_array_equal(explanation.std[i], explanation.set_std[i, :3])
    pieces = explanation[1:]
    np.testing.assert_array_equal(pieces.set_std, explanation.set_std[1:])
    assert (explanation.covariance_residual is not None) == (index in ("shapley", "sii", "chaining"))


def test_pairs_beyond_the_limit(monkeypatch):
    model = regressor(KERNELS["ard"])
    strategy = Explainer(model, BACKGROUND).reader.strategy
    between = (strategy.operations(1) + strategy.operations(2)) / 2.0
    monkeypatch.setattr(f"{type(strategy).__module__}.AUTOMATIC_OPERATIONS", between)
    assert explain(model, ROWS, BACKGROUND).std is not None
    assert explain(model, ROWS, BACKGROUND, order=2).set_std is None
    assert explain(model, ROWS, BACKGROUND, order=2, uncertainty=True).set_std is not None
    monkeypatch.setattr(f"{type(strategy).__module__}.MAX_OPERATIONS", between)
    with pytest.raises(BudgetError, match=r"order 2 is out of reach.*operations a row; the limit is.*uncertainty=False"):
        explain(model, ROWS, BACKGROUND, order=2, uncertainty=True)
    with pytest.raises(InputError, match=r"for values of order 1 and 2.*Got order=3"):
        explain(model, ROWS, BACKGROUND, order=3, uncertainty=True)


@pytest.mark.parametrize("index", [owen({"pair": [0, 1]}), asymmetric([[0], [1, 2]])], ids=lambda index: index.name)
def test_nested_players_and_stages_have_no_uncertainty(index):
    assert explain(regressor(KERNELS["ard"]), ROWS, BACKGROUND, index=index).std is None
    with pytest.raises(InputError, match=r"without groups or stages.*Leave uncertainty= out"):
        explain(regressor(KERNELS["ard"]), ROWS, BACKGROUND, index=index, uncertainty=True)


@pytest.mark.parametrize(("order", "background", "components"), [(1, 20, 2), (2, 20, 1)])
def test_memory_stays_under_the_forecast(order, background, components):
    points = np.random.default_rng(1).normal(size=(300, 8))
    kernel = k.RBF(4.0) if components == 1 else k.RBF(4.0) + k.ConstantKernel(0.5) * k.RBF(2.0)
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(points, points.sum(axis=1))
    explainer = Explainer(model, points[:background], uncertainty=True)
    explainer(points[:2], order=order)
    tracemalloc.start()
    explainer(points[:60], order=order)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    forecast = explainer.plan(points[:2], order=order)
    reader = explainer.reader
    needed = reader.memory(min(60, reader.traits.block_rows), order)
    assert forecast.memory <= needed
    assert needed / 10 < peak < needed + 8 * 60 * 8 * 8 * 6  # and the result itself


# -- memory ----------------------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_with_the_number():
    model = regressor(KERNELS["ard"])
    with pytest.raises(BudgetError, match=r"does not fit in memory_limit.*GiB; the limit is.*uncertainty=False for the mean"):
        explain(model, ROWS, BACKGROUND, uncertainty=True, memory_limit=1e4)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"uncertainty": 2}, InputError, "'uncertainty' parameter must be True, False or 'auto'"),
        *(
            ({"uncertainty": True, "value_function": name}, UnknownNameError, f"linear in f, which '{name}' is not")
            for name in ("functional", "observational")
        ),
    ],
)
def test_bad_settings(settings, error, text):
    with pytest.raises(error, match=text):
        Explainer(regressor(KERNELS["ard"]), BACKGROUND, **settings)(ROWS)

"""Random-feature embeddings against the dense form, their spectral densities, and the forecasts of observational games."""

import itertools
import time

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as k

from exactshap import Explainer, explain
from exactshap._runtime import threads as _coalition_threads
from exactshap.errors import BudgetError, InputError, UnsupportedStructureError
from exactshap.frames import as_table
from exactshap.kernels import RBF, Cauchy, Chi2, Laplacian, Linear
from exactshap.readers.kernel_machines import KernelMachine
from exactshap.readers.kernel_machines.observational._random_features import draw_frequencies, fourier_features

RNG = np.random.default_rng(0)
X, ALPHA, ROWS = RNG.normal(size=(40, 3)), RNG.normal(size=40), RNG.normal(size=(5, 3))
PROPER = np.array(list(itertools.product([False, True], repeat=3)))[1:-1]
KERNELS = {
    "ard": RBF([1.2, 0.8, 2.0]),
    "laplacian": Laplacian(2.0),
    "cauchy": Cauchy(1.5),
    "product": RBF(2.0) * Laplacian(3.0) * Cauchy(2.0),
}
SUMS = {"two": RBF(1.0) + 0.5 * Laplacian(1.5), "linear": RBF(1.0) + Linear(offset=1.0)}


def values(model, **settings):
    explainer = Explainer(model, value_function="observational", eta=0.1, **settings)
    return explainer.reader.game(as_table(ROWS)).value(PROPER)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_features_are_unbiased_for_every_coalition(kernel):
    """z(x) . z(y) is a mean of independent cosines: a z-test of each entry against the kernel of the coalition's columns."""
    (part,) = kernel.expand(3)
    m = 20_000
    frequencies = draw_frequencies(part, 3, m, np.random.default_rng(1))
    factors = part.factors(ROWS, np.ascontiguousarray(X.T))
    for columns in PROPER:
        found = fourier_features(ROWS, frequencies, columns) @ fourier_features(X, frequencies, columns).T
        expected = factors[:, columns].prod(axis=1)
        z = (found - expected) * np.sqrt(2 * m)  # the variance of a cosine is at most 1/2 + the mean's square
        assert np.abs(z).max() < 6
        assert np.abs(found - expected).max() > 0


@pytest.mark.parametrize("kernel", (KERNELS | SUMS).values(), ids=KERNELS | SUMS)
def test_converges_to_the_dense_form(kernel):
    """The error falls as 1 / sqrt(b): 25 times the features, a fifth of the error (a half allows for three draws)."""
    model = KernelMachine(X, np.stack([ALPHA, ALPHA[::-1]], axis=1), kernel)
    dense = values(model)
    errors = [
        np.mean([np.abs(values(model, n_random_features=b, random_state=seed) - dense).mean() for seed in range(3)])
        for b in (32, 800)
    ]
    assert errors[1] < errors[0] / 2
    assert errors[1] < 0.25 * np.abs(dense).mean()


def test_groups_weights_and_another_background():
    model, weights = KernelMachine(X, ALPHA, SUMS["two"]), np.linspace(1, 2, 25)
    settings = {"background": RNG.normal(size=(25, 3)), "background_weights": weights, "groups": {"pair": [0, 2]}, "eta": 0.1}
    masks = [[True, False], [False, True]]
    dense, found = (
        Explainer(model, value_function="observational", **more, **settings).reader.game(as_table(ROWS)).value(masks)
        for more in ({}, {"n_random_features": 1500})
    )
    np.testing.assert_allclose(found, dense, rtol=0, atol=0.2 * np.abs(dense).max())


def test_error_and_method_are_reported_and_the_seed_decides():
    model = KernelMachine(X, ALPHA, RBF(1.0))
    explainer = Explainer(model, value_function="observational", n_random_features=200)
    frequencies = explainer.reader.strategy.embedding.frequencies[0]
    phases = (ROWS[:, None] - X[None]) @ frequencies.T
    missed = np.abs(np.cos(phases).mean(axis=2) @ ALPHA - model.predict(ROWS))
    explanation = explainer(ROWS)
    assert "(200 features)" in explanation.method
    half = Explainer(model, value_function="observational", n_random_features=200)
    embedding = half.reader.strategy.embedding
    embedding.frequencies, embedding.known = [embedding.frequencies[0][:50]], embedding.known[:50]
    change = np.abs(explainer.reader.game(as_table(ROWS)).value(PROPER) - half.reader.game(as_table(ROWS)).value(PROPER))
    np.testing.assert_allclose(explanation.approximation_error, np.maximum(missed, change.max(axis=1)), rtol=1e-9)
    assert explanation.certificate().passed
    settings = {"value_function": "observational", "n_random_features": 200}
    np.testing.assert_array_equal(explain(model, ROWS, **settings).values, explanation.values)
    assert np.any(explain(model, ROWS, random_state=1, **settings).values != explanation.values)


@pytest.mark.parametrize(
    ("kernel", "settings", "error", "text"),
    [
        (RBF(1.0), {"n_random_features": 7}, InputError, "even int >= 2.*Got 7"),
        (RBF(1.0), {"n_random_features": "many"}, InputError, "even int >= 2"),
        (RBF(1.0), {"n_random_features": 8, "n_landmarks": 5}, InputError, "Only one of"),
        (RBF(1.0) * Linear(), {"n_random_features": 8}, UnsupportedStructureError, "factors of x - x'.*n_landmarks=100"),
        (Chi2(1.0), {"n_random_features": 8}, UnsupportedStructureError, "chi-squared"),
    ],
)
def test_refusals(kernel, settings, error, text):
    with pytest.raises(error, match=text):
        Explainer(KernelMachine(np.abs(X), ALPHA, kernel), value_function="observational", **settings)


def test_threads_give_the_same_bits(monkeypatch):
    model = KernelMachine(X, ALPHA, RBF(1.0))
    monkeypatch.setattr(_coalition_threads, "WORTH_IT", 1.0)
    found = []
    for n_jobs in (None, 2, 3):
        with _coalition_threads.using_jobs(n_jobs):
            found.append(values(model))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


# -- forecasts ---------------------------------------------------------------------------------------------------------


def elapsed(function):
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def observational():
    points = np.random.default_rng(2).normal(size=(250, 8))
    model = KernelMachine(points, np.ones(250), RBF(2.0))
    return Explainer(model, value_function="observational"), points


def uncertain():
    points = np.random.default_rng(2).normal(size=(300, 6))
    model = GaussianProcessRegressor(k.RBF(2.0), alpha=0.1, optimizer=None).fit(points, points.sum(axis=1))
    return Explainer(model, points[:30], uncertainty=True), points


@pytest.mark.parametrize(("make", "word"), [(observational, "conditional"), (uncertain, "covariance")])
def test_plan_foretells_the_seconds(make, word):
    """Other work on the machine can slow either side: the best of three, within a factor of four."""
    explainer, points = make()
    explainer(points[:3])
    plans = [explainer.plan(points) for _ in range(3)]
    seconds = min(elapsed(lambda: explainer(points)) for _ in range(3))
    assert word in plans[0].method
    assert plans[0].memory > 8 * 250**2
    assert seconds / 4 < min(plan.seconds for plan in plans) < 4 * seconds


def test_plan_refuses_what_does_not_fit():
    explainer, points = observational()
    explainer.memory_limit = 1e6
    with pytest.raises(BudgetError, match=r"GiB; the limit is"):
        explainer.plan(points)

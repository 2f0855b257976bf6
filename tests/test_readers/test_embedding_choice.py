"""Which form of the embeddings runs, under which limits, on how many threads, and what it says about its error."""

import itertools
import tracemalloc

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as k
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from exactshap import Explainer, explain
from exactshap._runtime import threads as _coalition_threads
from exactshap.errors import BudgetError, ExplanationWarning
from exactshap.frames import as_table
from exactshap.kernels import RBF
from exactshap.readers.kernel_machines import KernelMachine, _observational
from exactshap.solvers import choose
from tolerances import HALF_THE_DIGITS, ridge

RNG = np.random.default_rng(0)
N, D = 60, 4
X = RNG.normal(size=(N, D))
X[:, 1] += X[:, 0]
ALPHA = RNG.normal(size=N)
MASKS = np.array(list(itertools.product([False, True], repeat=D)))
PROPER = MASKS[1:-1]
GAME = {"value_function": "observational"}


def machine(alpha=ALPHA, points=X, **settings):
    return KernelMachine(points, alpha, RBF(1.5), 0.3, **settings)


def direct(rows, mask, eta, weights):
    """Proposition 3 of the paper with weighted conditioning rows, coalition by coalition."""

    def kernel(first, second, columns):
        squared = ((first[:, None, columns] - second[None][:, :, columns]) ** 2).sum(axis=2)
        return np.exp(-0.5 * squared / 1.5**2)

    xi = kernel(X, X, ~mask) @ np.linalg.inv(kernel(X, X, mask) + np.diag(eta / weights))
    return (kernel(X, rows, mask) * (xi @ kernel(X, rows, mask))).T @ ALPHA + 0.3


@pytest.mark.parametrize("rows", [X, X[:20], RNG.normal(size=(90, D))], ids=["training", "few", "many"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_form_of_the_exact_embedding_equals_the_formula(rows, weighted):
    weights = (np.linspace(1, 3, N) if weighted else np.ones(N)) / (2.0 * N if weighted else N)
    explainer = Explainer(machine(), X, background_weights=weights if weighted else None, eta=0.01, **GAME)
    game = explainer.reader.game(as_table(rows))
    found = game.value(MASKS)
    limit = ridge(0.01 * N * weights.min(), np.abs(ALPHA).sum())
    for column, mask in enumerate(PROPER, start=1):
        np.testing.assert_allclose(found[:, column], direct(rows, mask, 0.01, weights), rtol=0, atol=limit)
        alone = game.value(mask[None])[:, 0]  # without its complement
        np.testing.assert_allclose(alone, found[:, column], rtol=0, atol=limit)


@pytest.mark.parametrize("n_rows", [10, 100])
def test_either_side_of_the_general_form(n_rows):
    """Two outputs: the rows are solved for, or the terms."""
    rows, alpha = RNG.normal(size=(n_rows, D)), np.stack([ALPHA, ALPHA[::-1]], axis=1)
    game = Explainer(machine(alpha), eta=0.01, **GAME).reader.game(as_table(rows))
    for column, mask in enumerate(PROPER):
        expected = direct(rows, mask, 0.01, np.full(N, 1 / N))
        np.testing.assert_allclose(game.value(PROPER)[:, column, 0], expected, rtol=0, atol=ridge(0.01, np.abs(ALPHA).sum()))


# -- the choice --------------------------------------------------------------------------------------------------------


def test_what_is_affordable_is_exact():
    for settings in ({}, {"n_landmarks": "auto"}, {"n_landmarks": None}):
        explanation = explain(machine(), X[:3], **GAME, **settings)
        assert explanation.exact
        assert explanation.approximation_error is None
        assert "of conditional mean embeddings" in explanation.method


@pytest.fixture
def few_operations(monkeypatch):
    """A limit that 60 rows exceed: 16 coalitions of exact embeddings cost 3e7 operations."""
    monkeypatch.setattr(_observational, "MAX_OPERATIONS", 2.0e7)


@pytest.mark.usefixtures("few_operations")
def test_beyond_the_limit_the_nystroem_form_is_taken_and_named():
    with pytest.warns(
        ExplanationWarning, match=r"Exact embeddings of 60 rows need .* GiB and .* operations.*Nystroem form with"
    ):
        explainer = Explainer(machine(), **GAME)
    b = explainer.reader.strategy.routes.landmarks()
    assert 16 <= b <= N // 2
    explanation = explainer(X[:20])
    assert f"Nystroem conditional mean embeddings ({b} of 60 rows)" in explanation.method
    assert repr(explanation).startswith("Explanation: approximate Shapley values")
    assert explanation.facts()["approximation"].startswith("v(S) is off by up to about")
    with pytest.warns(ExplanationWarning, match="n_landmarks= decides otherwise"):
        plan = Explainer(machine(), **GAME).plan(X)
    assert "exact embeddings of 60 rows need" in plan.method
    assert "exact for an approximated game" in str(plan)
    assert explain(machine(), X[:3], n_landmarks=None, **GAME).exact  # the user decides
    chosen = explain(machine(), X[:3], n_landmarks=20, **GAME)
    assert "(20 of 60 rows)" in chosen.method


def test_memory_chooses_as_well():
    explainer_limit = 8 * N * N * D  # what the exact form keeps: its own matrices no longer fit
    with pytest.warns(ExplanationWarning, match="limits are"):
        explanation = explain(machine(), X[:3], memory_limit=explainer_limit, **GAME)
    assert explanation.kind == "approximate"
    with pytest.raises(
        BudgetError, match=r"60 rows do not fit in memory_limit.*GiB; the limit is.*n_landmarks=\d+ for the Nys"
    ):
        Explainer(machine(), memory_limit=explainer_limit, n_landmarks=None, **GAME)
    with pytest.raises(BudgetError, match=r"60 rows do not fit in memory_limit.*fewer rows as background"):
        Explainer(machine(), memory_limit=1000, **GAME)


@pytest.mark.parametrize("settings", [{"n_landmarks": None}, {"n_landmarks": 60}], ids=["exact", "landmarks"])
def test_memory_stays_under_the_forecast(settings):
    points = np.random.default_rng(1).normal(size=(400, 5))
    model = KernelMachine(points, np.ones(400), RBF(2.0))
    explain(model, points, **GAME, **settings)
    tracemalloc.start()
    explainer = Explainer(model, **GAME, **settings)
    explainer(points)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    routes, conditional = explainer.reader.strategy.routes, explainer.reader.strategy
    kept = routes.exact_bytes() if settings["n_landmarks"] is None else routes.landmark_bytes(60)
    forecast = kept + conditional.memory(400, 1)
    assert forecast / 6 < peak < forecast


def test_choose_states_the_forecast_of_each_form():
    game = Explainer(machine(), **GAME).reader.game(as_table(X[:2]))
    plan = choose(game)
    assert plan.exact
    assert plan.method == "enumeration"
    assert "exact embeddings of 60 rows need" in plan.reason
    assert "Nystroem with 30 landmarks need" in plan.reason
    approximate = choose(Explainer(machine(), n_landmarks=20, **GAME).reader.game(as_table(X[:2])))
    assert not approximate.exact
    assert "exact for an approximated game" in str(approximate)


# -- the error that is reported ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_landmarks", [40, 120])
def test_the_estimate_is_of_the_size_of_the_error(n_landmarks):
    """The error is the largest of 30 coalitions, the estimate of eight: half of the rows within a factor of two, few values beyond it."""
    rng = np.random.default_rng(5)
    points = rng.normal(size=(300, 5))
    model = KernelMachine(points, rng.normal(size=300), RBF(2.0))
    rows = rng.normal(size=(50, 5))
    masks = np.array(list(itertools.product([False, True], repeat=5)))
    exact = Explainer(model, eta=0.01, **GAME).reader.game(as_table(rows)).value(masks)
    explainer = Explainer(model, eta=0.01, n_landmarks=n_landmarks, **GAME)
    error = np.abs(explainer.reader.game(as_table(rows)).value(masks) - exact).max(axis=1)
    ratio = error / explainer(rows).approximation_error
    assert 0.05 < np.median(ratio) < 2.0, np.median(ratio)
    off = np.abs(explainer(rows).values - explain(model, rows, eta=0.01, **GAME).values).max(axis=1)
    assert np.mean(off <= explainer(rows).approximation_error) > 0.8


def test_the_estimate_follows_the_unit_of_the_target():
    inner = KernelRidge(kernel="rbf", gamma=0.2, alpha=0.1)
    scaled = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, 7.0 * ALPHA)
    plain = KernelRidge(kernel="rbf", gamma=0.2, alpha=0.1).fit(X, (ALPHA - ALPHA.mean()) / ALPHA.std())
    ours = explain(scaled, X[:4], n_landmarks=20, **GAME)
    expected = 7.0 * ALPHA.std() * explain(plain, X[:4], n_landmarks=20, **GAME).approximation_error
    np.testing.assert_allclose(ours.approximation_error, expected, rtol=HALF_THE_DIGITS)


# -- threads -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"n_landmarks": 30}], ids=["exact", "landmarks"])
def test_threads_change_no_bit_and_leave_blas_as_it_was(settings, monkeypatch):
    monkeypatch.setattr(_coalition_threads, "THREADED_VALUES", 1.0)
    with threadpool_limits(2, user_api="blas"):
        one, two = (explain(machine(), X, **GAME, **settings, n_jobs=n_jobs).values for n_jobs in (1, 2))
        assert max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas") == 2
    np.testing.assert_array_equal(two, one)


# -- forecasts ---------------------------------------------------------------------------------------------------------


def observational():
    points = np.random.default_rng(2).normal(size=(250, 8))
    model = KernelMachine(points, np.ones(250), RBF(2.0))
    return Explainer(model, value_function="observational"), points


def uncertain():
    points = np.random.default_rng(2).normal(size=(300, 6))
    model = GaussianProcessRegressor(k.RBF(2.0), alpha=0.1, optimizer=None).fit(points, points.sum(axis=1))
    return Explainer(model, points[:30], uncertainty=True), points


@pytest.mark.parametrize(("make", "word"), [(observational, "conditional"), (uncertain, "covariance")])
def test_plan_foretells_the_method_and_the_memory(make, word):
    """How far the seconds are off is a figure of benchmarks/forecasts.py: a test would fail with other work on the machine."""
    explainer, points = make()
    plan = explainer.plan(points)
    assert word in plan.method
    explainer.memory_limit = 1e6
    with pytest.raises(BudgetError, match=r"GiB; the limit is"):
        explainer.plan(points)
    assert plan.memory > 8 * 250**2
    assert 0.0 < plan.seconds < np.inf

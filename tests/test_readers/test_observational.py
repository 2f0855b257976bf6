"""Observational games against the direct formulas, a finite grid with known conditional expectations, and their limits."""

import itertools

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as k
from sklearn.kernel_ridge import KernelRidge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVR

from exactshap import Explainer, explain
from exactshap.errors import InputError, UnknownNameError
from exactshap.frames import as_table
from exactshap.kernels import RBF, Linear
from exactshap.readers.kernel_machines import KernelMachine
from exactshap.solvers import solve
from exactshap.solvers.rkhs import choose_eta, pivoted_rows
from exactshap.solvers.rkhs._embedding import RANK_CUTOFF, leave_one_out_loss
from tolerances import HALF_THE_DIGITS, ITERATED, conditioned, ridge, roundings

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
X[:, 1] += 0.8 * X[:, 0]
ALPHA = RNG.normal(size=30)
ROWS = RNG.normal(size=(5, 3))
MASKS = np.array(list(itertools.product([False, True], repeat=3)))
PROPER = MASKS[1:-1]


def machine(bandwidth=1.2, alpha=ALPHA, intercept=0.3):
    return KernelMachine(X, alpha, RBF(bandwidth), intercept)


def game(model, rows=ROWS, background=None, **settings):
    explainer = Explainer(model, background, value_function="observational", **settings)
    return explainer.reader.game(as_table(rows))


def gaussian(first, second, mask, bandwidth=1.2):
    squared = ((first[:, None, mask] - second[None][:, :, mask]) ** 2).sum(axis=2)
    return np.exp(-0.5 * squared / bandwidth**2)


def direct(rows, mask, eta, alpha=ALPHA, intercept=0.3, conditioning=X, weights=None):
    """Proposition 3 of the paper, with the training or other rows to condition on."""
    n = len(conditioning)
    ridge = n * eta * np.eye(n) if weights is None else np.diag(eta / weights)
    xi = gaussian(X, conditioning, ~mask) @ np.linalg.inv(gaussian(conditioning, conditioning, mask) + ridge)
    return (gaussian(X, rows, mask) * (xi @ gaussian(conditioning, rows, mask))).T @ alpha + intercept


def tolerance(eta):
    return ridge(eta, np.abs(ALPHA).sum())


def test_empty_and_full_are_exact_by_definition():
    model = machine()
    values = game(model, eta=10.0).value(MASKS)  # a ridge that would shrink both
    np.testing.assert_allclose(values[:, 0], model.predict(X).mean(), rtol=0, atol=tolerance(1.0))
    np.testing.assert_allclose(values[:, -1], model.predict(ROWS), rtol=0, atol=tolerance(1.0))


def test_background_rows_and_weights_are_conditioned_on():
    background, weights = RNG.normal(size=(7, 3)), np.array([1.0, 2, 0, 1, 1, 3, 1])
    model = machine()
    values = game(model, background=background, background_weights=weights, eta=0.01).value(MASKS)
    kept, shares = background[weights > 0], weights[weights > 0] / weights.sum()
    for column, mask in enumerate(PROPER, start=1):
        expected = direct(ROWS, mask, 0.01, conditioning=kept, weights=shares)
        np.testing.assert_allclose(values[:, column], expected, rtol=0, atol=tolerance(0.01))
    np.testing.assert_allclose(values[:, 0], shares @ model.predict(kept), rtol=0, atol=tolerance(1.0))


def test_several_outputs_and_groups():
    alpha = np.stack([ALPHA, ALPHA[::-1]], axis=1)
    values = game(machine(alpha=alpha), groups={"pair": [0, 2]}, eta=0.01).value([[True, False], [False, True]])
    for column, mask in enumerate(np.array([[True, False, True], [False, True, False]])):
        for o in (0, 1):
            expected = direct(ROWS, mask, 0.01, alpha=alpha[:, o])
            np.testing.assert_allclose(values[:, column, o], expected, rtol=0, atol=tolerance(0.01))


@pytest.mark.parametrize(
    "model",
    [
        GaussianProcessRegressor(k.Matern(1.0, nu=1.5), alpha=0.1, optimizer=None),
        GaussianProcessRegressor(k.RBF(1.0) + 0.5 * k.RBF(3.0), alpha=0.1, optimizer=None),
        MultiOutputRegressor(KernelRidge(kernel="rbf")),
        MultiOutputRegressor(SVR(epsilon=0.0)),  # every row is a support vector, in an order of its own
    ],
)
def test_repeated_training_rows_count_as_often_as_they_are_there(model):
    rows = np.repeat(X[:8], [5, 1, 2, 1, 1, 3, 1, 1], axis=0)
    target = rows @ [1.0, 2.0, 3.0] + 0.1 * np.arange(15.0)
    model.fit(rows, np.stack([target, target**2], axis=1) if isinstance(model, MultiOutputRegressor) else target)
    own, passed = (explain(model, ROWS, background, value_function="observational") for background in (None, rows))
    np.testing.assert_allclose(own.baseline[0], model.predict(rows).mean(axis=0), rtol=roundings(5_000))
    np.testing.assert_allclose(own.values, passed.values, rtol=0, atol=ridge(1e-3, np.abs(target).max() ** 2))


def test_sum_of_kernels_conditions_on_every_column():
    """Additive kernel: the mean over z of each component's rest, weighted by one common embedding."""
    model = KernelMachine(X, ALPHA, 2.0 * RBF([1.0, 1e9, 1e9]) + RBF([1e9, 1.5, 2.0]))
    values = game(model, eta=0.01).value(PROPER)
    parts = [(2.0, np.array([1.0, 1e9, 1e9])), (1.0, np.array([1e9, 1.5, 2.0]))]

    def factors(first, second):
        return [np.exp(-0.5 * ((first[:, None] - second[None]) / sigma) ** 2) for _, sigma in parts]

    mean = lambda f: (2.0 * f[0] + f[1]) / 3.0  # noqa: E731
    within, across = mean(factors(X, X)), mean(factors(X, ROWS))
    for column, mask in enumerate(PROPER):
        ridge = within[:, :, mask].prod(axis=2) + 30 * 0.01 * np.eye(30)
        weights = np.linalg.solve(ridge, across[:, :, mask].prod(axis=2))
        expected = sum(
            amplitude * (inside[:, :, mask].prod(axis=2) * (outside[:, :, ~mask].prod(axis=2) @ weights)).T @ ALPHA
            for (amplitude, _), inside, outside in zip(parts, factors(X, ROWS), factors(X, X), strict=True)
        )
        np.testing.assert_allclose(values[:, column], expected, rtol=0, atol=3 * tolerance(0.01))


# -- a finite grid where the truth is known ---------------------------------------------------------------------------


def grid():
    points = np.array(list(itertools.product([-1.0, 0.0, 2.0], [0.0, 1.0], [-1.0, 1.5])))
    weights = np.random.default_rng(7).random(len(points)) + 0.05
    return points, weights / weights.sum()


def conditional_expectation(f, points, weights, x, mask):
    same = np.all(points[:, mask] == x[mask], axis=1)
    return weights[same] @ f(points[same]) / weights[same].sum()


def test_converges_to_conditional_expectations_on_a_grid():
    eta, (points, weights) = 1e-8, grid()
    model = KernelMachine(X, ALPHA, RBF(1.2))
    values = game(model, points, points, background_weights=weights, eta=eta).value(PROPER)
    worst = max(
        abs(values[i, column] - conditional_expectation(model.predict, points, weights, points[i], mask))
        for column, mask in enumerate(PROPER)
        for i in range(len(points))
    )
    # the bias of ridge regression is eta |K^-1| |f|, with |K_S^-1| w <= 300 for the distinct points of this grid
    assert worst < 300 * eta * np.abs(ALPHA).sum() + tolerance(eta)


def test_leave_one_out_loss_equals_leaving_one_out():
    known, unknown = gaussian(X, X, np.array([True, False, False])), gaussian(X, X, np.array([False, True, True]))
    for eta, found in zip((1e-3, 0.1), leave_one_out_loss(known, unknown, (1e-3, 0.1)), strict=True):
        losses = []
        for i in range(30):
            rest = np.delete(np.arange(30), i)
            weights = np.linalg.solve(known[np.ix_(rest, rest)] + 30 * eta * np.eye(29), known[rest, i])
            cross = unknown[np.ix_(rest, rest)]
            losses.append(unknown[i, i] - 2 * weights @ unknown[rest, i] + weights @ cross @ weights)
        assert found == pytest.approx(np.mean(losses), rel=conditioned(1e6))
    explanation = explain(machine(), ROWS, value_function="observational", eta="auto")
    factors = np.stack([gaussian(X, X, np.arange(3) == j) for j in range(3)])
    assert f"eta = {choose_eta(factors):.3g}" in explanation.method


# -- Nystroem ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [RBF(1.2), RBF(1.0) + Linear(offset=1.0), RBF(1.5) + 0.5 * RBF(0.7)], ids=["one", "linear", "two"]
)
def test_landmarks_of_sums_and_another_background(kernel):
    background, weights = RNG.normal(size=(25, 3)), np.linspace(1, 2, 25)
    model = KernelMachine(background, np.stack([ALPHA[:25], ALPHA[5:]], 1), kernel)
    settings = {"background": background, "background_weights": weights, "eta": 0.1}
    exact = game(model, **settings).value(PROPER)
    found = game(model, n_landmarks=25, **settings).value(PROPER)
    np.testing.assert_allclose(found, exact, rtol=0, atol=HALF_THE_DIGITS * np.abs(ALPHA).sum())


def test_landmarks_are_drawn_as_randomly_pivoted_cholesky_says():
    """Against Schur complements written out, with the same random numbers; k(z, z) is not constant."""
    weights, scales = np.linspace(1, 3, 30), np.linspace(0.5, 2, 30)
    matrix = gaussian(X, X, np.ones(3, bool)) * np.outer(scales, scales)
    found = pivoted_rows(lambda i: matrix[i], np.diag(matrix), weights, 8, np.random.default_rng(3))
    rng, chosen = np.random.default_rng(3), []
    for _ in range(8):
        known = matrix[:, chosen]
        left = np.diag(matrix) - np.einsum("za,az->z", known, np.linalg.pinv(matrix[np.ix_(chosen, chosen)]) @ known.T)
        share = np.where(np.isin(np.arange(30), chosen), 0.0, weights * left)
        chosen.append(int(rng.choice(30, p=share / share.sum())))
    assert found.tolist() == chosen


def test_duplicated_rows_are_landmarks_only_when_nothing_else_is_left():
    rows = np.repeat(X[:5], 4, axis=0)
    matrix = gaussian(rows, rows, np.ones(3, bool))
    found = pivoted_rows(lambda i: matrix[i], np.ones(20), np.ones(20), 12, np.random.default_rng(0))
    assert sorted(found[:5] // 4) == [0, 1, 2, 3, 4]
    assert len(set(found.tolist())) == 12


@pytest.mark.parametrize("weights", [None, np.linspace(1, 2, 150)], ids=["equal", "weighted"])
def test_landmarks_in_several_blocks_equal_the_direct_formula(weights, monkeypatch):
    """Alone or with its complement, in blocks of 64 rows: z_S^T [sum c z z'^T] [sum w z' z^T] [sum w z z^T + eta]^-1 z_S."""
    monkeypatch.setattr("exactshap.readers.kernel_machines._embeddings.BLOCK_VALUES", 1)
    rng = np.random.default_rng(2)
    points, alpha = rng.normal(size=(150, 3)), rng.normal(size=(150, 2))
    settings = {} if weights is None else {"background": points, "background_weights": weights}
    explainer = Explainer(
        KernelMachine(points, alpha, RBF(1.2)), value_function="observational", n_landmarks=12, eta=0.1, **settings
    )
    rows, share = rng.normal(size=(7, 3)), np.full(150, 1 / 150) if weights is None else weights / weights.sum()
    found = explainer.reader.game(as_table(rows))
    landmarks = explainer.reader.strategy.embedding.landmarks

    def features(some, mask):
        values, vectors = np.linalg.eigh(gaussian(landmarks, landmarks, mask))
        keep = values > RANK_CUTOFF * values[-1]
        return gaussian(some, landmarks, mask) @ (vectors[:, keep] / np.sqrt(values[keep]))

    for mask in PROPER:
        inside, outside, here = features(points, mask), features(points, ~mask), features(rows, mask)
        gram = (inside.T * share) @ inside + 0.1 * np.eye(inside.shape[1])
        expected = (outside.T * share) @ inside @ np.linalg.solve(gram, here.T)
        direct = np.stack([np.einsum("xa,ax->x", here @ (inside.T * c) @ outside, expected) for c in alpha.T], axis=1)
        alone, both = found.value(mask[None]), found.value(np.stack([mask, ~mask]))
        np.testing.assert_allclose(alone[:, 0], direct, rtol=0, atol=conditioned(1e6) * np.abs(alpha).sum())
        np.testing.assert_allclose(both[:, 0], direct, rtol=0, atol=conditioned(1e6) * np.abs(alpha).sum())


def test_landmark_error_is_reported():
    rng, kernel = np.random.default_rng(1), RBF(1.0)
    points, alpha, rows = rng.normal(size=(200, 3)), rng.normal(size=200), rng.normal(size=(40, 3))
    model = KernelMachine(points, alpha, kernel)
    explainer = Explainer(model, value_function="observational", n_landmarks=40, eta=0.01)
    embedding = explainer.reader.strategy.embedding
    inner = kernel(embedding.landmarks) + 1e-12 * np.eye(40)
    projected = kernel(rows, embedding.landmarks) @ np.linalg.solve(inner, kernel(embedding.landmarks, points)) @ alpha
    expected = np.abs(projected - model.predict(rows))
    np.testing.assert_allclose(embedding.error(rows), expected, rtol=ITERATED, atol=HALF_THE_DIGITS)
    explanation = explainer(rows)
    assert explanation.kind == "approximate"
    assert explanation.certificate().passed
    assert np.all(explanation.approximation_error >= embedding.error(rows))
    exact = explain(model, rows, value_function="observational", eta=0.01)
    assert 0 < np.abs(explanation.values - exact.values).max() < explanation.approximation_error.max()


# -- through the front door -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(kernel="rbf", gamma=0.3, alpha=0.1),
        SVR(C=5.0, gamma=0.3),
        GaussianProcessRegressor(k.ConstantKernel(2.0) * k.RBF([1.0, 2.0, 3.0]), alpha=0.1, optimizer=None, normalize_y=True),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_add_up(model):
    model.fit(X, np.sin(X).sum(axis=1))
    explainer = Explainer(model, X, value_function="observational")
    explanation = explainer(ROWS)
    assert explanation.certificate().passed
    assert explanation.std is None
    np.testing.assert_allclose(explanation.prediction, model.predict(ROWS))
    np.testing.assert_allclose(explanation.baseline, model.predict(X).mean())
    expected = solve(game(model, background=X), "shapley", method="enumeration").values
    np.testing.assert_array_equal(explanation.values, expected)
    assert explainer(ROWS, "banzhaf", 2).interactions.shape == (5, 3, 3)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"eta": 0}, InputError, "'eta' parameter .* must be a float > 0.*Got 0.*eta='auto'"),
        *(({"eta": eta}, InputError, "'eta' parameter") for eta in (-1.0, "best", True, np.inf)),
        *(({"n_landmarks": bad}, InputError, r"int in \[2, 30\] or None") for bad in (1, 31, "many", 2.5, True)),
        ({"budget": 1}, InputError, "'budget' parameter must be an int >= 2"),
        ({"random_state": True}, InputError, "'random_state' parameter must be an int >= 0. Got True"),
        ({"ridge": 1.0}, UnknownNameError, "no setting 'ridge'"),
    ],
)
def test_bad_settings(settings, error, text):
    with pytest.raises(error, match=text):
        Explainer(machine(), value_function="observational", **settings)


def test_singular_kernel_is_named():
    twice = np.vstack([X, X])
    with pytest.raises(InputError, match=r"singular to working precision.*duplicated rows.*Raise eta"):
        game(machine(), background=twice, eta=1e-22).value(PROPER)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVR().fit(X, np.ones(30)), "SVR keeps no training rows.*Pass background=X_train"),
        (KernelMachine(X, ALPHA, Linear()), "Pass background=X_train"),
    ],
)
def test_no_rows_to_learn_from_need_a_background(model, words):
    with pytest.raises(InputError, match=rf"needs rows to learn.*{words}"):
        Explainer(model, value_function="observational")
    explanation = explain(model, ROWS, X, value_function="observational")
    assert explanation.certificate().passed
    assert isinstance(model, KernelMachine) or np.abs(explanation.values).max() <= roundings(5_000)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("seed", range(2))
def test_support_vectors_that_cancel_are_in_the_tolerance(kernel, seed):
    """The model adds up large products, of which little is left: the certificate allows for the rounding of these."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(120, 4))
    model = SVR(kernel=kernel, C=3.0).fit(rows, rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2]))
    found = explain(model, rows[:5], rows[100:106], value_function="observational")
    assert found.certificate().passed
    assert found.tolerance.max() < 1e-9 * np.abs(found.prediction).max()

"""The bound on the change of Shapley values: exact distances by enumeration, and attempts to break the bound."""

import itertools

import numpy as np
import pytest

from exactshap import Explainer, explain
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.kernels import RBF, Component, Custom, Kernel, Laplacian, Linear, Polynomial
from exactshap.readers.kernel_machines import KernelMachine
from exactshap.semivalues import find
from exactshap.solvers.rkhs import conditional_stability, functional_distance
from tolerances import conditioned, roundings

RNG = np.random.default_rng(0)


def distance_by_enumeration(kernel, x, moved, background, j):
    """The functional is a combination of kernel sections at hybrid points: its norm is a quadratic form."""
    d = len(x)
    p = find("shapley").weights(d)
    points, coefficients = [], []
    for mask in itertools.product([False, True], repeat=d):
        mask = np.array(mask)
        for row, sign in ((x, 1.0), (moved, -1.0)):
            for z in background:
                weight = p[mask.sum() - 1] if mask[j] else -p[mask.sum()]
                points.append(np.where(mask, row, z))
                coefficients.append(sign * weight / len(background))
    gram = kernel(np.array(points))
    return np.sqrt(max(0.0, np.array(coefficients) @ gram @ np.array(coefficients)))


@pytest.mark.parametrize("kernel", [RBF(1.2), RBF(1.0) + Laplacian(2.0), Linear(offset=0.5), RBF(2.0) * Linear()], ids=range(4))
@pytest.mark.parametrize("d", [1, 2, 4])
def test_distance_equals_enumeration(kernel, d):
    rows, moved, background = (RNG.normal(size=(n, d)) for n in (3, 3, 2))
    found = functional_distance(kernel, rows, moved, background)
    for i, j in itertools.product(range(3), range(d)):
        assert found[i, j] == pytest.approx(
            distance_by_enumeration(kernel, rows[i], moved[i], background, j), abs=conditioned(1e8)
        )


def stability(kernel, train, alpha, delta):
    """The bound of a machine's explanation: for kernels that fall with the distance it depends on no row."""
    return explain(KernelMachine(train, alpha, kernel), train[:1], train[:1]).stability(delta)


@pytest.mark.parametrize("kernel", [RBF(1.0), RBF([0.5, 1.0, 3.0]), 2.0 * Laplacian(1.0) + RBF(1.0)], ids=range(3))
@pytest.mark.parametrize("delta", [0.01, 0.3, 5.0])
def test_no_value_moves_by_more_than_the_bound(kernel, delta):
    train, alpha = RNG.normal(size=(12, 3)), RNG.normal(size=12)
    rows = RNG.normal(size=(200, 3))
    moved = rows + delta * RNG.uniform(-1, 1, rows.shape)
    background = RNG.normal(size=(4, 3))
    found = stability(kernel, train, alpha, delta)
    exact = functional_distance(kernel, rows, moved, background)
    assert exact.max() <= found.functional
    machine = KernelMachine(train, alpha, kernel)
    change = np.abs(explain(machine, rows, background).values - explain(machine, moved, background).values)
    assert np.all(change <= found.rkhs_norm * exact * (1 + 1e-9) + 1e-12)
    assert change.max() <= found.bound[0]


def test_equation_12():
    found = stability(RBF(0.7), np.zeros((1, 5)), np.ones(1), delta=0.2)
    assert found.functional**2 == pytest.approx(4 * (1 - np.exp(-5 * 0.2**2 / (2 * 0.7**2))))
    # A larger kernel has larger functionals, and the same function a smaller norm.
    assert stability(9.0 * RBF(0.7), np.zeros((1, 5)), np.ones(1), 0.2).functional == pytest.approx(3.0 * found.functional)


def test_the_printed_constant_fails_for_a_signed_kernel():
    """For the linear kernel the squared distance is 2.25 L_delta, above the printed 2 L_delta."""
    x, moved, background = np.array([[1.0, 1.0]]), np.zeros((1, 2)), np.array([[-1.0, 1.0]])
    # k = k_1 k_2 with k_j(u, v) = u v; L_delta over S is 1 and M_mu is 1
    multiply = Custom([lambda u, v: u * v, lambda u, v: u * v])
    squared = functional_distance(multiply, x, moved, background)[0] ** 2
    assert squared.max() == pytest.approx(2.25)
    assert 2.0 < squared.max() <= 4.0


SIGNED = {
    "linear": Linear(offset=0.5),
    "cubic": Polynomial(degree=3, gamma=0.7, offset=0.3),
    "sum": RBF(1.2) + 0.5 * Linear(),
    "product": RBF(2.0) * Linear(offset=1.0),
}


CLOSE_ROWS = {"exact": {}, "landmarks": {"n_landmarks": 10}, "groups": {"groups": {"pair": [0, 2]}}}
OTHERS = {"plain": {}, "independent": {"value_function": "interventional-independent"}, "groups": {"groups": {"pair": [0, 2]}}}
QUESTIONS = {f"{name}, {one}": (kernel, settings) for name, kernel in SIGNED.items() for one, settings in OTHERS.items()}
QUESTIONS |= {
    f"observational {name}, {one}": (kernel, {"value_function": "observational", "eta": 1e-3, **settings})
    for name, kernel in {"one": RBF(1.0), "sum": 2.0 * Laplacian(1.5) + RBF([0.5, 1.0, 3.0])}.items()
    for one, settings in CLOSE_ROWS.items()
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("delta", [0.02, [0.7, 0.0, 0.2]])
def test_explained_rows_move_by_less_than_the_bound(name, delta):
    """At the corners of what may move, for two outputs; linear values attain half of their bound with one column."""
    (kernel, settings), rng = QUESTIONS[name], np.random.default_rng(0)
    train, background = rng.normal(size=(25, 3)), rng.normal(size=(5, 3))
    machine, rows = (
        KernelMachine(train, rng.normal(size=(25, 2)), kernel),
        np.concatenate([train, 2.0 * rng.normal(size=(30, 3))]),
    )
    background = None if "eta" in settings else background
    explanation = explain(machine, rows, background, **settings)
    found = explanation.stability(delta)
    assert found.bound.shape == (2,)
    for signs in itertools.product([-1.0, 1.0], repeat=3):
        change = np.abs(explain(machine, rows + delta * np.array(signs), background, **settings).values - explanation.values)
        assert np.all(change.max(axis=(0, 1)) <= found.bound)
    assert np.all(explanation.stability(0.0).bound == 0.0)


def test_the_bound_of_one_linear_column_is_twice_its_change():
    machine = KernelMachine([[1.0], [2.0]], [3.0, -1.0], Linear())  # f = x
    assert explain(machine, [[5.0]], [[0.0]]).stability(0.1).bound == pytest.approx(0.2)


def test_functionals_of_signed_kernels_stay_within_the_bound():
    """Random attempts to break it: rows that are small or far, backgrounds of one row, products of powers and Gaussians."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(80):
        d = rng.integers(1, 4)
        part = Component(
            squared=None if rng.random() < 0.5 else rng.uniform(0.0, 2.0, d), powers=rng.integers(0, 3, d) + (np.arange(d) == 0)
        )
        x, background = (rng.normal(size=(n, d)) * 10 ** rng.uniform(-1.5, 1) for n in (1, rng.integers(1, 3)))
        delta = 10 ** rng.uniform(-2, 0.5, d)
        moved = x + delta * rng.choice([-1.0, 0.0, 1.0], d)
        machine = KernelMachine(np.ones((1, d)), np.ones(1), _Single(part))
        bound = explain(machine, x, background, on_inexact="warn").stability(delta).functional
        distance = functional_distance(_Single(part), x, moved, background).max()
        assert distance <= bound * (1 + 1e-9) + 1e-7
        largest = max(largest, distance / max(bound, 1e-3))
    assert largest > 0.45


class _Single(Kernel):
    """The kernel of one component."""

    def __init__(self, part):
        self.part = part

    def expand(self, n_features):
        return (self.part,)


# -- observational values ----------------------------------------------------------------------------------------------


def gaussian(first, second, mask):
    return np.exp(-0.5 * ((first[:, None, mask] - second[None][:, :, mask]) ** 2).sum(axis=2))


def conditional_functional(x, rows, eta, weights, j):
    """The functional phi_x,j as kernel sections at points, with coefficients: v(S) puts W_zx on the hybrid (x_S, z)."""
    d = len(x)
    p = find("shapley").weights(d)
    points, coefficients = [], []
    for mask in itertools.product([False, True], repeat=d):
        mask = np.array(mask)
        share = p[mask.sum() - 1] if mask[j] else -p[mask.sum()]
        if mask.all():
            points.append(x)
            coefficients.append(share)
        elif mask.any():  # the empty coalition is a mean over the rows, whatever x is
            embedded = np.linalg.solve(gaussian(rows, rows, mask) + np.diag(eta / weights), gaussian(rows, x[None], mask)[:, 0])
            points += [np.where(mask, x, z) for z in rows]
            coefficients += list(share * embedded)
    return np.array(points), np.array(coefficients)


def test_observational_functionals_stay_within_the_bound():
    """Random attempts to break it, with few rows close to x, where embeddings are steepest; the largest ratio seen is 0.55."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(200):
        d, n, j = rng.integers(2, 4), rng.integers(1, 5), 0
        rows, eta = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-4, 0.5)
        weights = rng.random(n) + 0.1
        weights /= weights.sum()
        x = rows[0] + rng.normal(size=d) * 10 ** rng.uniform(-2, 0.3)
        delta = 10 ** rng.uniform(-3, 0.5)
        moved = x + delta * rng.choice([-1, 0, 1], d)
        first, second = (conditional_functional(row, rows, eta, weights, j) for row in (x, moved))
        points, coefficients = np.concatenate([first[0], second[0]]), np.concatenate([first[1], -second[1]])
        gram = gaussian(points, points, np.ones(d, bool))
        distance = np.sqrt(max(0.0, coefficients @ gram @ coefficients))
        (part,) = RBF(1.0).expand(d)
        bound = conditional_stability([(part, np.ones((1, 1)), np.zeros((d, 1)))], delta, eta, [(c,) for c in range(d)])
        assert distance <= bound.functional
        largest = max(largest, distance / bound.functional)
    assert largest > 0.3  # the attempts are serious, and the bound is not absurd


def test_a_larger_ridge_holds_values_in_place():
    machine = KernelMachine(RNG.normal(size=(9, 2)), np.ones(9), RBF(1.0))
    bounds = [explain(machine, [[0.0, 0.0]], value_function="observational", eta=eta).stability(0.1) for eta in (1e-4, 1e-2)]
    assert bounds[0].functional > 5 * bounds[1].functional


@pytest.mark.parametrize(
    ("kernel", "settings"),
    [(RBF(1.0) + Linear(offset=1.0), {}), (RBF(1.0), {"budget": 6})],
    ids=["linear", "sampled"],
)
def test_no_bound_where_the_theorem_says_nothing(kernel, settings):
    machine = KernelMachine(RNG.normal(size=(9, 3)), np.ones(9), kernel)
    explanation = explain(machine, np.zeros((2, 3)), value_function="observational", **settings)
    with pytest.raises(InputError, match=r"no stability bound.*enumerated observational.*not inside pipelines"):
        explanation.stability(0.1)


@pytest.mark.parametrize("n_background", [1, 30])
def test_the_bound_of_a_fitted_machine_has_the_norm_of_its_function(n_background):
    from sklearn.svm import SVR

    X = RNG.normal(size=(60, 3))
    model = SVR(C=5.0).fit(X, X[:, 0] * X[:, 1])
    explainer = Explainer(model, X[:n_background])
    explanation = explainer(X[:20])
    for delta in (0.0, 0.01, 0.3):
        moved = [np.abs(explainer(X[:20] + sign * delta).values - explanation.values).max() for sign in (1.0, -1.0)]
        assert max(moved) <= explanation.stability(delta).bound[0] + roundings(50)
    gram = RBF((0.5 / model._gamma) ** 0.5)(model.support_vectors_)
    norm = np.sqrt(model.dual_coef_ @ gram @ model.dual_coef_.T)
    assert explanation.stability(0.1).rkhs_norm[0] == pytest.approx(norm.item(), rel=conditioned(1e5))
    with pytest.raises(InputError, match="has no stability bound"):
        explain(model, X[:2]).stability(0.1)


def test_bounds_follow_a_scaled_target():
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.preprocessing import StandardScaler

    X = RNG.normal(size=(30, 3))
    y = X.sum(axis=1)
    model = TransformedTargetRegressor(KernelRidge(kernel="rbf", alpha=0.1), transformer=StandardScaler()).fit(X, 9.0 * y)
    plain = KernelRidge(kernel="rbf", alpha=0.1).fit(X, (y - y.mean()) / y.std())
    for given in ({"background": X[:5]}, {"value_function": "observational"}):
        found, inner = explain(model, X[:3], **given).stability(0.1), explain(plain, X[:3], **given).stability(0.1)
        np.testing.assert_allclose(found.bound, 9.0 * y.std() * inner.bound, rtol=conditioned(1e6))


def test_bad_input():
    with pytest.raises(InputError, match="`delta` must be a finite float >= 0"):
        stability(RBF(1.0), np.zeros((2, 2)), np.ones(2), -1.0)
    own = Custom([lambda u, v: 1.0 + u * v] * 2)
    with pytest.raises(UnsupportedStructureError, match=r"factors that are 1 at x = x'.*functional_distance"):
        stability(own, np.zeros((2, 2)), np.ones(2), 0.1)

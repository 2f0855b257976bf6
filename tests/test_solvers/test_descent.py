"""The minimiser of the relevances' evidence, beside scipy's and beside the recursion written out."""

import numpy as np
import pytest
from scipy.optimize import minimize

from exactshap.solvers._descent import Search, search
from exactshap.solvers._relevance_kernels import fill_descent

WIDE = np.array([[-9.0] * 4, [9.0] * 4])


def rosenbrock(x):
    """Return scipy's test function of four coordinates and its gradient, with a quadratic part that has no valley."""
    from scipy.optimize import rosen, rosen_der

    return rosen(x) / 100.0, rosen_der(x) / 100.0


def quadratic(x):
    curvature = np.diag([1.0, 10.0, 100.0, 0.1]) + 0.3
    return 0.5 * (x - 2.0) @ curvature @ (x - 2.0), curvature @ (x - 2.0)


@pytest.mark.parametrize(("function", "minimum"), [(rosenbrock, 1.0), (quadratic, 2.0)])
def test_the_minimum_is_found(function, minimum):
    found = search(function, Search.at(np.array([0.2, 1.0, 0.5, 3.0])), WIDE, 300, 1e-14)
    np.testing.assert_allclose(found.point, minimum, atol=1e-4)


@pytest.mark.parametrize("upper", [0.5, 1.5, 9.0])
def test_bounds_are_kept_as_scipy_keeps_them(upper):
    bounds = np.array([[-9.0, -9.0, -9.0, 3.0], [9.0, upper, 9.0, 9.0]])
    start = np.array([0.0, 0.0, 0.0, 4.0])
    found = search(quadratic, Search.at(start), bounds, 300, 1e-14)
    scipy = minimize(quadratic, start, jac=True, method="L-BFGS-B", bounds=bounds.T, options={"ftol": 1e-15, "gtol": 1e-12})
    np.testing.assert_allclose(found.point, scipy.x, atol=1e-5)


def test_every_accepted_step_lowers_the_function_and_curvature_makes_the_next_search_short():
    calls = []

    def counted(x):
        calls.append(x)
        return quadratic(x)

    first = search(counted, Search.at(np.zeros(4)), WIDE, 300, 1e-10)
    n_first = len(calls)
    again = search(counted, Search(np.full(4, 1.0), first.steps, first.turns), WIDE, 300, 1e-10)
    assert len(calls) - n_first < n_first / 2
    np.testing.assert_allclose(again.point, 2.0, atol=1e-4)


def test_a_search_stops_where_steps_promise_little():
    rough = search(quadratic, Search.at(np.zeros(4)), WIDE, 300, 1.0)
    fine = search(quadratic, Search.at(np.zeros(4)), WIDE, 300, 1e-12)
    assert quadratic(fine.point)[0] < quadratic(rough.point)[0] < quadratic(np.zeros(4))[0]


def test_failed_evaluations_are_stepped_back_from():
    """A covariance that cannot be factorised counts as a very high value without slope."""
    found = search(lambda x: (1e25, np.zeros(4)) if x[0] > 1.0 else quadratic(x), Search.at(np.zeros(4)), WIDE, 300, 1e-12)
    assert found.point[0] <= 1.0
    assert quadratic(found.point)[0] < quadratic(np.zeros(4))[0]


def inverse_hessian(steps, turns):
    """The matrix that the BFGS updates make of a scaled identity, one rank-two update after another."""
    n = steps.shape[1]
    matrix = np.eye(n) * (steps[-1] @ turns[-1]) / (turns[-1] @ turns[-1])
    for step, turn in zip(steps, turns, strict=True):
        left = np.eye(n) - np.outer(step, turn) / (step @ turn)
        matrix = left @ matrix @ left.T + np.outer(step, step) / (step @ turn)
    return matrix


@pytest.mark.parametrize("n_steps", [1, 2, 7])
def test_directions_against_the_matrix_of_updates(n_steps):
    rng = np.random.default_rng(n_steps)
    root = rng.normal(size=(5, 5))
    steps = rng.normal(size=(n_steps, 5))
    turns = steps @ (root @ root.T + np.eye(5))
    gradient, out = rng.normal(size=5), np.empty(5)
    fill_descent(steps, turns, gradient, out)
    np.testing.assert_allclose(out, -inverse_hessian(steps, turns) @ gradient, rtol=1e-9, atol=1e-12)

"""The minimiser of the relevances' posterior, beside scipy's and beside its own updates written out."""

import numpy as np
import pytest
from scipy.optimize import minimize

from exactshap.solvers.sampled.process._relevance import CONVEX, LONGEST, corrected_curvature, search
from tolerances import ITERATED, conditioned, roundings

WIDE = np.array([[-9.0] * 4, [9.0] * 4])
HESSIAN = np.diag([1.0, 10.0, 100.0, 0.1]) + 0.3


def quadratic(x):
    return 0.5 * (x - 2.0) @ HESSIAN @ (x - 2.0), lambda: (HESSIAN @ (x - 2.0), HESSIAN.copy())


def misjudged(factor):
    """The quadratic with a curvature that is wrong by a factor and knows nothing of the coordinates' ties."""

    def function(x):
        value, slopes = quadratic(x)
        return value, lambda: (slopes()[0], factor * np.diag(np.diag(HESSIAN)))

    return function


def rosenbrock(x):
    """Scipy's test function, with the curvature of its valley's floor left out."""
    from scipy.optimize import rosen, rosen_der, rosen_hess

    return rosen(x) / 100.0, lambda: (rosen_der(x) / 100.0, np.diag(np.maximum(np.diag(rosen_hess(x)) / 100.0, 0.1)))


FUNCTIONS = {
    "quadratic": (quadratic, 2.0),
    "curvature too large": (misjudged(10.0), 2.0),
    "curvature too small": (misjudged(0.1), 2.0),
    "rosenbrock": (rosenbrock, 1.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_minimum_is_found(name):
    function, minimum = FUNCTIONS[name]
    found = search(function, np.array([0.2, 1.0, 0.5, 3.0]), WIDE, 300, 1e-14)
    np.testing.assert_allclose(found, minimum, atol=ITERATED)


@pytest.mark.parametrize("upper", [0.5, 1.5, 9.0])
@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
def test_bounds_are_kept_as_scipy_keeps_them(upper, factor):
    bounds = np.array([[-9.0, -9.0, -9.0, 3.0], [9.0, upper, 9.0, 9.0]])
    start = np.array([0.0, 0.0, 0.0, 4.0])
    found = search(misjudged(factor), start, bounds, 300, 1e-14)
    settings = {"jac": True, "method": "L-BFGS-B", "bounds": bounds.T, "options": {"ftol": 1e-15, "gtol": 1e-12}}
    scipy = minimize(lambda x: (quadratic(x)[0], quadratic(x)[1]()[0]), start, **settings)
    np.testing.assert_allclose(found, scipy.x, atol=ITERATED)


def test_a_known_curvature_needs_one_evaluation_and_slopes_are_asked_for_where_steps_are_taken():
    values, slopes = [], []

    def counted(x):
        values.append(x)
        value, more = quadratic(x)
        return value, lambda: (slopes.append(x), more())[1]

    found = search(counted, np.full(4, 1.5), WIDE, 300, 1e6)
    # The promised gain is below 1e6: the step is the last, and not evaluated
    np.testing.assert_allclose(found, 2.0, atol=roundings(5_000))
    assert len(values) == 1
    values.clear(), slopes.clear()
    search(lambda x: (counted(x)[0], counted(x)[1]), np.full(4, 1.5), WIDE, 300, 1e-9)
    assert len(slopes) <= 2


def test_steps_that_fail_are_shortened_without_their_slopes():
    """A covariance that cannot be factorised counts as a very high value, whose slopes mean nothing."""

    def walled(x):
        if x[0] > 1.0:
            return 1e25, lambda: pytest.fail("slopes of a rejected step")
        return quadratic(x)

    found = search(walled, np.zeros(4), WIDE, 30, 1e-12)
    assert found[0] <= 1.0 + LONGEST
    assert quadratic(found)[0] < quadratic(np.zeros(4))[0]


def test_a_search_stops_where_steps_promise_little():
    rough, fine = (search(misjudged(3.0), np.zeros(4), WIDE, 300, enough) for enough in (1.0, 1e-12))
    assert quadratic(fine)[0] < quadratic(rough)[0] < quadratic(np.zeros(4))[0]


def test_steps_that_bounds_turn_uphill_end_the_search():
    """The Newton step leaves the box in the coordinate that would gain; what is left of it climbs."""
    curvature, gradient = np.array([[1.0, -0.9], [-0.9, 1.0]]), np.array([-1.0, 0.5])
    assert np.linalg.solve(curvature, -gradient)[1] > 0  # uphill in the second coordinate, for the sake of the first

    def function(x):
        return float(gradient @ x), lambda: (gradient, curvature.copy())

    bounds = np.array([[0.0, 0.0], [1e-3, 9.0]])
    np.testing.assert_array_equal(search(function, np.array([0.0, 1.0]), bounds, 9, 1e-9), [0.0, 1.0])


def test_no_step_is_longer_than_allowed():
    found = search(quadratic, np.full(4, -8.0), WIDE, 1, 1e-9)
    assert np.abs(found + 8.0).max() == pytest.approx(LONGEST)


@pytest.mark.parametrize("bend", [1.0, -1.0])
def test_corrections_against_the_formula(bend):
    """Rank-two updates, one after the other; where the gradient turned the wrong way (bend -1), Powell's mixture replaces its turn."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    start = root @ root.T + np.eye(5)
    steps = rng.normal(size=(3, 5))
    turns = bend * steps @ (start + 2.0 * np.eye(5))
    wanted = start
    for s, y in zip(steps, turns, strict=True):
        old = wanted @ s
        t = 1.0 if s @ y >= CONVEX * s @ old else (1.0 - CONVEX) * (s @ old) / (s @ old - s @ y)
        r = t * y + (1.0 - t) * old
        wanted = wanted - np.outer(old, old) / (s @ old) + np.outer(r, r) / (s @ r)
    found = corrected_curvature(start, steps, turns)
    np.testing.assert_allclose(found, wanted, rtol=conditioned(1e5))
    assert np.linalg.eigvalsh(found).min() > 0
    if bend > 0:
        np.testing.assert_allclose(found @ steps[-1], turns[-1], rtol=conditioned(1e6))  # the last step met what it met

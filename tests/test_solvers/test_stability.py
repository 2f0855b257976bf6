"""The bound on the change of Shapley values: exact distances by enumeration, and attempts to break the bound."""

import itertools

import numpy as np
import pytest

from exactshap import explain
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.kernels import RBF, Custom, Laplacian, Linear
from exactshap.readers.kernel_machine import KernelMachine
from exactshap.semivalues import find
from exactshap.solvers._stability import functional_bound, functional_distance, stability

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
        assert found[i, j] == pytest.approx(distance_by_enumeration(kernel, rows[i], moved[i], background, j), abs=1e-7)


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


def test_the_printed_constant_fails_for_a_signed_kernel():
    """For the linear kernel the squared distance is 2.25 L_delta, above the printed 2 L_delta."""
    x, moved, background = np.array([[1.0, 1.0]]), np.zeros((1, 2)), np.array([[-1.0, 1.0]])
    # k = k_1 k_2 with k_j(u, v) = u v; L_delta over S is 1 and M_mu is 1
    multiply = Custom([lambda u, v: u * v, lambda u, v: u * v])
    squared = functional_distance(multiply, x, moved, background)[0] ** 2
    assert squared.max() == pytest.approx(2.25)
    assert squared.max() > functional_bound(1.0) ** 2
    assert squared.max() <= functional_bound(1.0, signed=True) ** 2


def test_zero_change_and_several_outputs():
    train, alpha = RNG.normal(size=(5, 2)), RNG.normal(size=(5, 2))
    assert np.all(stability(RBF(1.0), train, alpha, 0.0).bound == 0)
    assert stability(RBF(1.0), train, alpha, [0.1, 0.2]).bound.shape == (2,)


def test_bad_input():
    with pytest.raises(InputError, match="`delta` must be a finite float >= 0"):
        stability(RBF(1.0), np.zeros((2, 2)), np.ones(2), -1.0)
    with pytest.raises(UnsupportedStructureError, match=r"factors that are 1 at x = x'.*functional_distance"):
        stability(RBF(1.0) + Linear(), np.zeros((2, 2)), np.ones(2), 0.1)

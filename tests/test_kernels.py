"""Kernels against their formulas, and their sums and products against sums and products of matrices."""

import itertools

import numpy as np
import pytest

from exactshap.kernels import RBF, Cauchy, Chi2, Constant, Custom, Laplacian, Linear, Polynomial
from tolerances import roundings

RNG = np.random.default_rng(0)
X, Y = RNG.random((6, 3)), RNG.random((4, 3))  # not negative, as chi-squared asks
SIGMA = np.array([0.5, 1.0, 2.0])


def one_plus(x, y):
    return 1.0 + x * y


KERNELS = {
    "rbf": (RBF(SIGMA), lambda x, y: np.exp(-((x - y) ** 2 / (2 * SIGMA**2)).sum())),
    "laplacian": (Laplacian(SIGMA), lambda x, y: np.exp(-(np.abs(x - y) / SIGMA).sum())),
    "cauchy": (Cauchy(SIGMA), lambda x, y: np.prod(1 / (1 + (x - y) ** 2 / SIGMA**2))),
    "chi2": (Chi2(0.7), lambda x, y: np.exp(-0.7 * ((x - y) ** 2 / (x + y)).sum())),
    "linear": (Linear(offset=0.3, gamma=2.0), lambda x, y: 0.3 + 2.0 * x @ y),
    "polynomial": (Polynomial(degree=2, gamma=0.5, offset=1.0), lambda x, y: (0.5 * x @ y + 1.0) ** 2),
    "custom": (Custom([one_plus, None, one_plus]), lambda x, y: (1 + x[0] * y[0]) * (1 + x[2] * y[2])),
    "constant": (Constant(2.5), lambda x, y: 2.5),
}


def matrix(name):
    return np.array([[KERNELS[name][1](x, y) for y in Y] for x in X])


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_its_formula(name):
    np.testing.assert_allclose(KERNELS[name][0](X, Y), matrix(name), rtol=roundings(50))


@pytest.mark.parametrize(("one", "other"), itertools.combinations_with_replacement(KERNELS, 2))
def test_sums_and_products_are_those_of_matrices(one, other):
    first, second = KERNELS[one][0], KERNELS[other][0]
    np.testing.assert_allclose((first + 2.0 * second)(X, Y), matrix(one) + 2.0 * matrix(other), rtol=roundings(100))
    np.testing.assert_allclose((first * second)(X, Y), matrix(one) * matrix(other), rtol=roundings(200))

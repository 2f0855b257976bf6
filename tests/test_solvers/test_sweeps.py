"""Small compiled sweeps against NumPy: embeddings, and the process over coalitions."""

import numpy as np
import pytest

from exactshap.errors import InputTypeError
from exactshap.solvers.rkhs import _embedding as embeddings
from exactshap.solvers.rkhs import subset_product
from exactshap.solvers.sampled.process import _evidence as process
from exactshap.solvers.sampled.process import functionals
from tolerances import assert_close, roundings

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize(("start", "stop"), [(0, None), (3, 50), (7, 7), (40, 90)])
def test_products_of_factors(make, start, stop):
    factors = RNG.random((4, 60, 50))
    for mask in ([0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 1]):
        found = subset_product(make(factors), np.array(mask, bool), start, stop)
        np.testing.assert_allclose(found, factors[np.array(mask, bool), start:stop].prod(axis=0), rtol=roundings(5))
    with pytest.raises(InputTypeError, match="do not belong together"):
        embeddings.fill_product(factors[0], np.array([60]), 0, np.zeros(3))
    with pytest.raises(InputTypeError, match="do not belong together"):
        embeddings.fill_product(factors[0], np.array([0]), 48, np.zeros(3))


@pytest.mark.parametrize("n", [0, 1, 63, 64, 130])
def test_mirrored_triangles(n):
    matrix = RNG.normal(size=(n, n))
    expected = np.triu(matrix) + np.triu(matrix, 1).T
    embeddings.mirror(matrix)
    np.testing.assert_array_equal(matrix, expected)


@pytest.mark.parametrize("n", [0, 1, 7, 70])
def test_covariances_of_the_process(n):
    matrix, difference = RNG.random((n, n)) + 0.1, np.empty((n, n))
    filled = matrix.copy()
    process.fill_covariance(0.3, -0.2, 1.0, 0.5, filled, difference)
    np.testing.assert_array_equal(filled, 0.3 * matrix + -0.2 / matrix + 1.0 + 0.5 * np.eye(n))
    np.testing.assert_array_equal(difference, 0.3 * matrix - -0.2 / matrix)
    sums = matrix[: n // 2].copy()
    process.fill_sums(0.3, -0.2, 1.0, sums)
    np.testing.assert_array_equal(sums, (0.3 * matrix + -0.2 / matrix + 1.0)[: n // 2])


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray])
def test_singles_of_the_process_are_those_of_sets(make):
    points, rho = RNG.choice([-1.0, 1.0], (9, 5)), 0.9 * RNG.random(5)
    nodes, weights = RNG.random(3), RNG.random(3)
    singles = functionals(make(points), rho, np.arange(5)[:, None], nodes, weights)
    one_by_one = [functionals(points, rho, np.array([[j]]), nodes, weights)[:, 0] for j in range(5)]
    assert_close(singles, np.stack(one_by_one, axis=1), np.abs(singles).max(), 3, 5)

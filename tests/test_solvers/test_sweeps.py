"""Small compiled sweeps of embeddings against NumPy."""

import numpy as np
import pytest

from exactshap.errors import InputTypeError
from exactshap.solvers.rkhs import _embedding as embeddings
from exactshap.solvers.rkhs import subset_product
from tolerances import roundings

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

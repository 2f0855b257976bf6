"""Compiled kernels of RKHS weightings: inner products bit by bit, and what homogeneous functions do not read."""

import numpy as np
import pytest

from exactshap.errors import InputTypeError
from exactshap.estimators.rkhs_weighting._instantiations import fill_inner
from exactshap.readers.additive._homogeneous import fill_homogeneous


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "n_terms"), [(3, 7, 5), (2, 4, 1030), (1, 1, 1), (0, 3, 2), (2, 0, 3), (2, 3, 0)]
)
def test_inner_products_add_up_column_by_column(n_rows, n_columns, n_terms):
    rng = np.random.default_rng(0)
    X, W, out = rng.normal(size=(n_rows, n_columns)), rng.normal(size=(n_columns, n_terms)), rng.normal(size=(n_rows, n_terms))
    expected = out.copy()
    for j in range(n_columns):
        expected += X[:, j : j + 1] * W[j]
    fill_inner(X, W, out)
    np.testing.assert_array_equal(out, expected)


def coefficients_of(n_columns, n_cells=4, n_powers=5):
    axes = (n_cells, n_cells, n_powers, n_powers) if n_columns == 3 else (n_cells, 1, n_powers, 1)
    return np.random.default_rng(n_columns).normal(size=(2 * n_columns, *axes))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_stay_inside(bad):
    """A row of NaN or infinities has no cell: NaN, and nothing outside of the coefficients is read."""
    out = np.empty(2)
    fill_homogeneous(np.array([[bad, 1.0, 0.5], [0.5, bad, bad]]), coefficients_of(3), 1, out)
    assert not np.isfinite(out).any()


@pytest.mark.parametrize("n_columns", [1, 2, 4])
def test_coefficients_of_another_function_are_refused(n_columns):
    with pytest.raises(InputTypeError, match="do not belong together"):
        fill_homogeneous(np.zeros((2, n_columns)), coefficients_of(3), 1, np.zeros(2))

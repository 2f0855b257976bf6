"""Compiled kernels of RKHS weightings against plain Python, value by value."""

import numpy as np
import pytest

from exactshap.errors import InputTypeError
from exactshap.estimators.rkhs_weighting._gaussian import fill_inner
from exactshap.readers.additive._homogeneous import fill_homogeneous, fill_hybrid_means
from tolerances import roundings


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


def evaluate(x, coefficients, degree):
    """r^p P(x / r) by powers: what Horner's rule gives up to rounding."""
    largest = int(np.argmax(np.abs(x)))
    r = abs(x[largest])
    if r == 0.0:
        return 0.0
    n_cells = coefficients.shape[1]
    scaled = (np.delete(x, largest) / r + 1.0) * n_cells / 2.0
    cells = np.minimum(scaled.astype(int), n_cells - 1)
    s, t = np.append(2.0 * (scaled - cells) - 1.0, 0.0)[:2]
    cell, other = np.append(cells, 0)[:2]
    polynomial = coefficients[2 * largest + (x[largest] < 0), cell, other]
    return np.polynomial.polynomial.polyval2d(s, t, polynomial) * r**degree


def coefficients_of(n_columns, n_cells=4, n_powers=5):
    axes = (n_cells, n_cells, n_powers, n_powers) if n_columns == 3 else (n_cells, 1, n_powers, 1)
    return np.random.default_rng(n_columns).normal(size=(2 * n_columns, *axes))


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("n_columns", [2, 3])
def test_homogeneous_functions(n_columns, degree):
    rng, coefficients = np.random.default_rng(1), coefficients_of(n_columns)
    X = np.concatenate([rng.normal(size=(200, n_columns)), rng.integers(-1, 2, (50, n_columns)), np.zeros((1, n_columns))])
    out = np.empty(len(X))
    fill_homogeneous(X, coefficients, degree, out)
    np.testing.assert_allclose(out, [evaluate(x, coefficients, degree) for x in X], rtol=roundings(5_000), atol=roundings(500))


@pytest.mark.parametrize("n_columns", [2, 3])
def test_hybrid_means(n_columns):
    rng, coefficients = np.random.default_rng(2), coefficients_of(n_columns)
    X, background, weights = rng.normal(size=(4, n_columns)), rng.normal(size=(7, n_columns)), np.full(7, 1.0 / 7.0)
    inside = rng.random((5, n_columns)) < 0.5
    inside[0] = True
    out = np.empty((4, 5))
    fill_hybrid_means(X, background, weights, inside, coefficients, 1, out)
    for i in range(4):
        for S in range(5):
            rows = np.where(inside[S], X[i], background)
            values = [evaluate(row, coefficients, 1) for row in rows]
            assert out[i, S] == pytest.approx(weights @ values, rel=roundings(5_000), abs=roundings(500))
    for i in range(4):
        assert out[i, 0] == pytest.approx(evaluate(X[i], coefficients, 1), rel=roundings(5_000))


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

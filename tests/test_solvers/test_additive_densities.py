"""Compiled densities and terms that are evaluated a piece at a time, held against NumPy."""

import numpy as np
import pytest
from scipy.stats import norm

from exactshap.errors import InputTypeError
from exactshap.semivalues import find
from exactshap.solvers.additive import Evaluated, Normals, Singles, add_sizes, fill_densities, solve_stacks

RNG = np.random.default_rng(0)


def normals_of(n_classes, n_columns):
    mean, variance = RNG.normal(size=(n_classes, n_columns)), RNG.random((n_classes, n_columns)) + 0.1
    return Normals(mean, variance, np.log(2.0 * np.pi * variance))


def densities(normals, rows):
    """Return (n_rows, n_columns, n_classes) by NumPy, in the order of the kernel."""
    found = [-0.5 * (np.square(rows - m) / v + c) for m, v, c in zip(*normals, strict=True)]
    return np.stack(found, axis=2)


@pytest.mark.parametrize(("n_rows", "n_columns", "n_classes"), [(0, 3, 2), (1, 1, 1), (70, 14, 3), (9, 33, 2), (5, 0, 2)])
def test_densities(n_rows, n_columns, n_classes):
    normals, rows = normals_of(n_classes, n_columns), RNG.normal(size=(n_rows, n_columns)) * 3.0
    out, sizes = np.empty((n_rows, n_columns, n_classes)), np.full(n_rows, 0.5)
    fill_densities(rows, normals, False, out)
    add_sizes(rows, normals, sizes)
    expected = densities(normals, rows)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_allclose(out, norm.logpdf(rows[:, :, None], normals.mean.T, np.sqrt(normals.variance.T)), 1e-12, 1e-12)
    np.testing.assert_allclose(sizes, 0.5 + np.abs(expected).max(axis=2).sum(axis=1), 1e-14)
    if n_classes == 2:
        margin = np.empty((n_rows, n_columns, 1))
        fill_densities(rows, normals, True, margin)
        np.testing.assert_array_equal(margin[:, :, 0], expected[:, :, 1] - expected[:, :, 0])


def test_sizes_that_do_not_belong_together_are_refused():
    normals, rows = normals_of(3, 4), np.zeros((5, 4))
    for out, is_margin, wrong in (
        (np.empty((5, 4, 2)), False, normals),
        (np.empty((5, 4, 1)), True, normals),
        (np.empty((4, 4, 3)), False, normals),
        (np.empty((5, 4, 3)), False, normals._replace(variance=np.ones((2, 4)))),
        (np.empty((5, 4, 3)), False, normals._replace(constant=np.ones((3, 5)))),
    ):
        with pytest.raises(InputTypeError, match="do not belong together"):
            fill_densities(rows, wrong, is_margin, out)
    with pytest.raises(InputTypeError, match="do not belong together"):
        add_sizes(rows, normals, np.zeros(4))


@pytest.mark.parametrize("n_rows", [0, 1, 100, 30_000])
def test_terms_that_are_evaluated_have_the_bits_of_kept_ones(n_rows):
    rows, slopes, absent = RNG.normal(size=(n_rows, 4)), RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
    players = ((1,), (0,), (1,), (2,))

    def function(some):
        return np.sin(some)[:, :, None] * slopes

    stacks = Evaluated(players, rows, function, absent), Singles(players, function(rows), absent)
    ours, theirs = (solve_stacks([stack], 3, n_rows, 3, find("shapley"), 2) for stack in stacks)
    for name in ("values", "empty", "full", "scale"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_array_equal(stacks[0].tables, stacks[1].tables)

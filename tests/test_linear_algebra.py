"""Triangular solves without Python's lock: the bits of SciPy's own wrapper, in blocks of larger matrices, on threads; inverses."""

import threading

import numpy as np
import pytest
from scipy.linalg import blas, lapack

from exactshap._runtime import linear_algebra
from exactshap._runtime.linear_algebra import inverse_of, solve_factored, solve_lower
from tolerances import conditioned

RNG = np.random.default_rng(0)
SIZES = (1, 2, 5, 64, 130)


@pytest.fixture(params=["direct", "wrapped"])
def way(request, monkeypatch):
    """The routine itself, and SciPy's wrapper, which stands in where SciPy offers the routine in another form."""
    if request.param == "wrapped":
        monkeypatch.setattr(linear_algebra, "_routine", lambda module, name: None)


def positive(n):
    root = RNG.normal(size=(n, n))
    return np.asfortranarray(root @ root.T + n * np.eye(n))


def inside(matrix):
    """Return the matrix as a block of a larger one."""
    n_rows, n_columns = matrix.shape
    larger = np.asfortranarray(RNG.normal(size=(n_rows + 5, n_columns + 7)))
    block = larger[3 : 3 + n_rows, 4 : 4 + n_columns]
    block[...] = matrix
    return block


@pytest.mark.parametrize("n", SIZES)
def test_inverses(n):
    matrix = positive(n)
    factor = lapack.dpotrf(matrix, lower=1)[0]
    found = inverse_of(factor)
    np.testing.assert_array_equal(np.tril(found), np.tril(lapack.dpotri(factor, lower=1)[0]))
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found @ matrix, np.eye(n), atol=conditioned(100))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", SIZES)
def test_a_triangle_and_a_matrix(n):
    triangle, matrix = inside(positive(n)), np.asfortranarray(RNG.normal(size=(n, 7)))
    np.testing.assert_array_equal(solve_lower(triangle, inside(matrix)), blas.dtrsm(1.0, np.tril(triangle), matrix, lower=1))
    np.testing.assert_array_equal(solve_factored(triangle, inside(matrix)), lapack.dpotrs(triangle, matrix, lower=1)[0])


@pytest.mark.parametrize(
    "matrix",
    [np.ones((3, 3))[:, ::-1], np.ones((3, 3), np.float32, order="F"), np.ones((4, 3)), np.ones((6, 3), order="F")[::2]],
    ids=["backwards", "single", "by row", "gaps"],
)
def test_what_lies_otherwise_reaches_no_routine(matrix):
    with pytest.raises(ValueError, match="column by column"):
        solve_lower(np.eye(len(matrix), order="F"), matrix)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("shape", [(0, 0), (3, 0)])
def test_nothing_is_fine(shape):
    assert solve_lower(np.eye(shape[0], order="F"), np.zeros(shape, order="F")).shape == shape


def test_what_may_only_be_read_stays_and_sizes_fit():
    matrix = positive(3)
    matrix.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        solve_lower(np.eye(3, order="F"), matrix)
    with pytest.raises(ValueError, match="must be of shape"):
        solve_lower(np.eye(3, order="F"), np.ones((4, 2), order="F"))


@pytest.mark.parametrize(
    "call",
    [
        lambda matrix: solve_lower(matrix, np.ones((2000, 500), order="F")),
        lambda matrix: lapack.dpotrf(matrix, lower=1),
        inverse_of,
    ],
    ids=["dtrsm", "dpotrf", "dpotri"],
)
def test_other_threads_go_on(call):
    """With the lock held, nothing else would run between the beginning and the end of a call."""
    matrix, ticks, done = np.eye(2000, order="F"), [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(None)
            done.wait(1e-4)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        while not ticks:
            pass
        before = len(ticks)
        call(matrix)
        during = len(ticks) - before
    finally:
        done.set()
        thread.join()
    assert during > 5

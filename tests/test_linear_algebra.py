"""LAPACK and BLAS without Python's lock: the bits of SciPy's own wrappers, in place, in blocks of larger matrices, on threads."""

import threading

import numpy as np
import pytest
from scipy.linalg import blas, lapack

from exactshap._runtime import linear_algebra
from exactshap._runtime.linear_algebra import (
    factorise_lower,
    inverse_of,
    solve_definite,
    solve_factored,
    solve_lower,
)

RNG = np.random.default_rng(0)
SIZES = (1, 2, 5, 64, 130)


@pytest.fixture(params=["direct", "wrapped"])
def way(request, monkeypatch):
    """The routines themselves, and SciPy's wrappers, which stand in where SciPy offers routines of another form."""
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


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("place", [np.copy, inside], ids=["alone", "inside"])
@pytest.mark.parametrize("n", SIZES)
def test_one_triangle(n, place):
    matrix = positive(n)
    factor = np.asfortranarray(place(matrix)) if place is np.copy else place(matrix)
    assert not factorise_lower(factor)
    np.testing.assert_array_equal(factor, lapack.dpotrf(matrix, lower=1, clean=0)[0])  # with what was above the diagonal
    found = inverse_of(factor)
    np.testing.assert_array_equal(np.tril(found), np.tril(lapack.dpotri(factor, lower=1)[0]))
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", SIZES)
def test_a_triangle_and_a_matrix(n):
    triangle, matrix = inside(np.tril(positive(n))), np.asfortranarray(RNG.normal(size=(n, 7)))
    np.testing.assert_array_equal(solve_lower(triangle, inside(matrix)), blas.dtrsm(1.0, triangle, matrix, lower=1))
    np.testing.assert_array_equal(solve_factored(triangle, inside(matrix)), lapack.dpotrs(triangle, matrix, lower=1)[0])
    np.testing.assert_array_equal(
        solve_lower(triangle, inside(matrix), transposed=True), blas.dtrsm(1.0, triangle, matrix, lower=1, trans_a=1)
    )


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", SIZES)
def test_definite_systems_read_one_triangle_and_keep_the_right_side(n):
    matrix, right = positive(n), RNG.normal(size=(n, 7))
    kept = right.copy()
    factor, solution = solve_definite(np.triu(matrix).copy(order="C"), right)
    np.testing.assert_array_equal(np.tril(factor), np.tril(lapack.dpotrf(matrix, lower=1)[0]))
    np.testing.assert_array_equal(solution, lapack.dposv(matrix, right, lower=1)[1])
    np.testing.assert_array_equal(right, kept)
    assert solution.flags.c_contiguous


@pytest.mark.usefixtures("way")
def test_what_cannot_be_done_is_said():
    assert factorise_lower(-np.eye(3, order="F"))
    assert solve_definite(-np.eye(3), np.ones((3, 1))) is None


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
    nothing = np.zeros(shape, order="F")
    for solve in (solve_lower, solve_factored):
        assert solve(np.eye(len(nothing), order="F"), nothing).shape == shape
    assert not factorise_lower(np.zeros((0, 0)))


def test_what_may_only_be_read_stays():
    matrix = positive(3)
    matrix.setflags(write=False)
    for call in (factorise_lower, lambda matrix: solve_lower(np.eye(3, order="F"), matrix)):
        with pytest.raises(ValueError, match="read-only"):
            call(matrix)


def test_triangles_are_square_and_sizes_fit():
    for call in (factorise_lower, inverse_of):
        with pytest.raises(ValueError, match="must be of shape"):
            call(np.ones((4, 3), order="F"))
    for solve in (solve_lower, solve_factored):
        with pytest.raises(ValueError, match="must be of shape"):
            solve(np.eye(3, order="F"), np.ones((4, 2), order="F"))


def test_other_threads_go_on():
    """With the lock held, nothing else would run between the beginning and the end of a call."""
    matrix, ticks, done = positive(2000), [], threading.Event()

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
        factorise_lower(matrix)
        during = len(ticks) - before
    finally:
        done.set()
        thread.join()
    assert during > 5

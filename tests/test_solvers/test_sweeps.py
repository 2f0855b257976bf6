"""Small compiled sweeps against NumPy, and what they refuse: terms, embeddings, the process over coalitions."""

import numpy as np
import pytest

from exactshap._native import Handle
from exactshap.errors import InputTypeError
from exactshap.games import AdditiveGame
from exactshap.semivalues import find
from exactshap.solvers import solve
from exactshap.solvers.additive import LookedUp, Stack, solve_stacks
from exactshap.solvers.additive import _kernels as terms
from exactshap.solvers.rkhs import _embedding_kernels as embeddings
from exactshap.solvers.rkhs import subset_product
from exactshap.solvers.sampled.process import _relevance_kernels as process
from exactshap.solvers.sampled.process import functionals
from tolerances import assert_close, roundings

RNG = np.random.default_rng(0)
STRIDES = np.array([[0, 0, 0], [1, 1, 0], [4, 0, 1], [9, 5, 1]])  # of tables of 1, 3, 5 and 15 cells


@pytest.mark.parametrize(("n_inside", "n_outside", "n_outputs"), [(5, 7, 2), (0, 3, 1), (4, 0, 1), (1, 1, 3)])
def test_folded_backgrounds(n_inside, n_outside, n_outputs):
    scores, weights = RNG.normal(size=(60, n_outputs)), RNG.random(n_outside)
    inside, outside = RNG.integers(0, 30, n_inside), RNG.integers(0, 30, n_outside)
    out = np.full((n_inside, n_outputs), 7.0)
    terms.fill_fold(scores, inside, outside, weights, out)
    assert_close(out, np.einsum("z,czo->co", weights, scores[inside[:, None] + outside]), 20.0, n_outside)


def lookups(cells, **changes):
    """Return arguments: two terms, of 3 x 5 bins and of 4, whose tables lie behind each other."""
    strides = np.zeros((2, 4, 3), np.int64)
    strides[0], strides[1, :, 0] = STRIDES, 24
    strides[1, 1::2, 1] = 1
    given = {
        "term": np.array([0, 1]),
        "shape": np.array([[3, 5], [4, 1]]),
        "strides": strides,
        "folded": RNG.normal(size=(28, 2)),
    }
    return cells, terms.Lookups(**given | changes), np.empty((2, len(cells), 4, 2))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("n_rows", [0, 1, 20])
def test_lookups(n_rows, dtype):
    cells = np.stack([RNG.integers(0, 15, n_rows), RNG.integers(0, 4, n_rows)], axis=1).astype(dtype)
    given = lookups(cells)
    terms.fill_lookups(*given)
    _, (_, shape, strides, folded), out = given
    for term in range(2):
        bins = np.stack(np.unravel_index(cells[:, term], shape[term]), axis=1)
        np.testing.assert_array_equal(out[term], folded[strides[term, :, 0] + bins @ strides[term, :, 1:].T])


def bins(**changes):
    """Return columns 0 and 2 cut into bins, column 0 in two ways; terms of column 0, of 2 and of both."""
    given = {
        "cuts": np.array([-1.0, 0.0, 0.0, 2.0, 0.5]),
        "cut_start": np.array([0, 4, 4, 5]),
        "column": np.array([0, 2, 0]),
        "way_start": np.array([0, 1, 2, 4]),
        "way": np.array([0, 1, 2, 1]),
        "stride": np.array([1, 1, 3, 1]),
    }
    return terms.Bins(**given | changes)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_cells_of_bins(dtype):
    column = np.tile([np.nan, -np.inf, -1.5, -1.0, -0.0, 0.0, 0.3, 0.5, 2.0, 1e300, np.inf], 13)  # more than a tile of rows
    X = np.stack([column, np.zeros(len(column)), column[::-1]], axis=1)
    out = np.empty((len(X), 3), dtype)
    terms.fill_cells(X, bins(), out)
    fine = np.where(np.isnan(X[:, 0]), 0, 1 + np.searchsorted([-1.0, 0.0, 0.0, 2.0], X[:, 0], side="right"))
    coarse = np.where(np.isnan(X[:, 0]), 0, 1 + (X[:, 0] >= 0.5))
    other = np.where(np.isnan(X[:, 2]), 0, 1)
    np.testing.assert_array_equal(out, np.stack([fine, other, 3 * coarse + other], axis=1))


@pytest.mark.parametrize("n_cuts", range(1, 18))
def test_every_number_of_cuts_is_searched_to_its_end(n_cuts):
    x, out = np.arange(-0.5, n_cuts, 0.5)[:, None], np.empty((2 * n_cuts + 1, 1), np.int64)
    one = {"column": np.zeros(1, int), "way_start": np.array([0, 1]), "way": np.zeros(1, int), "stride": np.ones(1, int)}
    terms.fill_cells(x, bins(cuts=np.arange(float(n_cuts)), cut_start=np.array([0, n_cuts]), **one), out)
    np.testing.assert_array_equal(out[:, 0], 1 + np.searchsorted(np.arange(n_cuts), x[:, 0], side="right"))


@pytest.mark.parametrize(
    "change",
    [
        {"cut_start": np.array([0, 4, 3, 5])},
        {"cut_start": np.array([0, 4, 4, 6])},
        {"column": np.array([0, 3, 0])},
        {"column": np.array([0, -1, 0])},
        {"way": np.array([0, 1, 3, 1])},
        {"way": np.array([0, 1, -1, 1])},
        {"way_start": np.array([0, 1, 2, 5])},
        {"way_start": np.empty(0, np.int64)},
        {"stride": np.array([1, 1, 3])},
    ],
)
def test_bins_that_lead_outside_are_refused(change):
    with pytest.raises(InputTypeError, match="do not belong together"):
        terms.fill_cells(np.zeros((2, 3)), bins(**change), np.empty((2, 3), np.int64))


@pytest.mark.parametrize(
    ("cell", "change"),
    [
        (-1, {}),
        (0, {"shape": np.array([[0, 5], [4, 1]])}),
        (0, {"shape": np.array([[3, 16], [4, 1]])}),
        (0, {"strides": np.full((2, 4, 3), 30)}),
        (0, {"strides": np.full((2, 4, 3), -1)}),
        (0, {"strides": np.full((2, 4, 3), 2**62)}),
        (0, {"term": np.array([0, 2])}),
        (0, {"term": np.array([-1, 1])}),
    ],
)
def test_lookups_that_lead_outside_are_refused(cell, change):
    cells, wrong, out = lookups(np.array([[cell, 0]]), **change)
    with pytest.raises(InputTypeError, match="do not belong together"):
        terms.fill_lookups(cells, wrong, out)
    sets, ends = terms.Sets(np.array([[0], [1]]), np.ones(2, int), np.ones((2, 4))), [np.zeros((1, 2)), np.zeros((1, 2))]
    with pytest.raises(InputTypeError, match="do not belong together"):
        terms.add_lookups(cells, wrong, sets, np.array([[0, 1], [1, 2]]), np.zeros((1, 3, 2)), *ends, np.zeros(1))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize(
    ("subsets", "width"),
    [(((), ()), 1), (((2,), (0,)), 1), (((2,), (0,)), 2), (((0, 2), (1, 0)), 2), (((0, 3, 1), (1, 2, 3)), 3)],
)
@pytest.mark.parametrize("n_rows", [0, 1, 150])
def test_values_that_are_looked_up_have_the_bits_of_their_tables(n_rows, subsets, width, n_outputs, order, dtype):
    shape, n_codes = RNG.integers(2, 5, (2, width)), 2 ** len(subsets[0])
    strides = np.zeros((2, n_codes, 1 + width), np.int64)
    strides[:, :, 0] = np.arange(2 * n_codes).reshape(2, n_codes)
    strides[:, :, 1:] = RNG.integers(0, 20, (2, n_codes, width)) * (np.arange(n_codes) > 0)[:, None]
    cells = RNG.integers(0, shape.prod(axis=1), (n_rows, 2)).astype(dtype)
    folded = RNG.normal(size=(300, n_outputs))
    stack = LookedUp(subsets, cells, Handle(terms.Lookups(np.array([0, 1]), shape, strides, folded)), n_outputs)
    parts = (
        solve_stacks([part], 4, n_rows, n_outputs, find("k-sii" if order > 1 else "banzhaf"), order)
        for part in (stack, Stack(subsets, stack.tables))
    )
    quick, slow = parts
    for name in ("values", "empty", "full", "scale"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name))


@pytest.mark.parametrize("arguments", [([30], [30], [1.0]), ([-1], [3], [1.0]), ([1], [-1], [1.0])])
def test_cells_that_lead_outside_are_refused(arguments):
    with pytest.raises(InputTypeError, match="do not belong together"):
        terms.fill_fold(np.zeros((60, 1)), *map(np.array, arguments), np.zeros((1, 1)))


@pytest.mark.parametrize(
    "change",
    [
        {"members": [[0, 2]]},
        {"members": [[1, 1]]},
        {"members": [[1, 0]]},
        {"members": [[-1, 1]]},
        {"members": [[0, 70]]},
        {"sizes": [0]},
        {"sizes": [3]},
        {"positions": [[2]]},
        {"positions": [[-1]]},
        {"tables": np.zeros((1, 1, 3, 1))},
    ],
)
def test_sets_that_lead_outside_are_refused(change):
    given = {
        "tables": np.zeros((1, 1, 4, 1)),
        "members": [[0, 1]],
        "sizes": [2],
        "positions": [[1]],
        "weights": np.ones((3, 4)),
    }
    wrong = {name: np.array(value) for name, value in {**given, **change}.items()}
    right = {name: np.array(value) for name, value in given.items()}
    out = [np.zeros((1, 2, 1)), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(1)]

    def fill_sets(tables, positions, **sets):
        terms.fill_sets(tables, terms.Sets(**sets), positions, *out)

    with pytest.raises(InputTypeError, match="do not belong together"):
        fill_sets(**wrong)
    fill_sets(**right)


def test_terms_of_any_memory_order():
    tables = [RNG.normal(size=(3, 4, 2)), RNG.normal(size=(3, 2, 2))]
    games = [AdditiveGame(3, [(0, 2), (1,)], list(map(make, tables))) for make in (np.ascontiguousarray, np.asfortranarray)]
    np.testing.assert_array_equal(*(solve(game).values for game in games))


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

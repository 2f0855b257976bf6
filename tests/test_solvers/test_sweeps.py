"""Small compiled sweeps against NumPy, and what they refuse: terms, embeddings, the process over coalitions."""

import numpy as np
import pytest

from exactshap.errors import InputTypeError
from exactshap.games import AdditiveGame
from exactshap.solvers import solve
from exactshap.solvers.additive import _stacks as terms
from exactshap.solvers.rkhs import _embedding as embeddings
from exactshap.solvers.rkhs import subset_product
from exactshap.solvers.sampled.process import _evidence as process
from exactshap.solvers.sampled.process import functionals
from tolerances import assert_close, roundings

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("n_inside", "n_outside", "n_outputs"), [(5, 7, 2), (0, 3, 1), (4, 0, 1), (1, 1, 3)])
def test_folded_backgrounds(n_inside, n_outside, n_outputs):
    scores, weights = RNG.normal(size=(60, n_outputs)), RNG.random(n_outside)
    inside, outside = RNG.integers(0, 30, n_inside), RNG.integers(0, 30, n_outside)
    out = np.full((n_inside, n_outputs), 7.0)
    terms.fill_fold(scores, inside, outside, weights, out)
    assert_close(out, np.einsum("z,czo->co", weights, scores[inside[:, None] + outside]), 20.0, n_outside)


@pytest.mark.parametrize("arguments", [([30], [30], [1.0]), ([-1], [3], [1.0]), ([1], [-1], [1.0])])
def test_cells_that_lead_outside_are_refused(arguments):
    with pytest.raises(InputTypeError, match="do not belong together"):
        terms.fill_fold(np.zeros((60, 1)), *map(np.array, arguments), np.zeros((1, 1)))


OUTSIDE = [{"members": [pair]} for pair in ([0, 2], [1, 1], [1, 0], [-1, 1], [0, 70])]
OUTSIDE += [{"sizes": [size]} for size in (0, 3)] + [{"positions": [[place]]} for place in (2, -1)]


@pytest.mark.parametrize("change", [*OUTSIDE, {"tables": np.zeros((1, 1, 3, 1))}])
def test_sets_that_lead_outside_are_refused(change):
    sets = {"members": [[0, 1]], "sizes": [2], "positions": [[1]]}
    given = {"tables": np.zeros((1, 1, 4, 1)), **sets, "weights": np.ones((3, 4))}
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

"""The carrier of results: sums, multiples, shifts and joins of games, beside the games themselves."""

import dataclasses

import numpy as np
import pytest

from exactshap import semivalues
from exactshap.explainer._certify import sum_of_sets
from exactshap.games import ProductGame
from exactshap.solvers import Part, Posterior, Rows, Solution, solve
from exactshap.solvers.product import solve_terms
from tolerances import EPS, assert_close, roundings

D = 4


def game(seed, rows=3, outputs=2, constant=0.0):
    rng = np.random.default_rng(seed)
    c, a, b = rng.normal(size=(5, outputs)), rng.normal(size=(rows, 5, D)), rng.normal(size=(2, 5, D))
    return ProductGame(c, a, b, weights=[0.25, 0.75], constant=np.full(outputs, constant))


def summed(one, other):
    """Write the sum of two games of one background out as one game."""
    return ProductGame(
        np.concatenate([one.c, other.c]),
        np.concatenate([one.a, other.a], axis=1),
        np.concatenate([one.b, other.b], axis=1),
        weights=one.weights,
        constant=one.constant + other.constant,
    )


def assert_same(actual, expected):
    for name in ("values", "empty", "full"):
        assert_close(getattr(actual, name), getattr(expected, name), expected.scale, n_terms=100, n_players=D)


@pytest.mark.parametrize(("index", "order"), [("shapley", 1), ("banzhaf", 1), ("k-sii", 2)])
def test_sum_is_the_solution_of_the_sum(index, order):
    one, other = game(0, constant=1.0), game(1, constant=-3.0)
    found = solve(one, index, order).part + solve(other, index, order).part
    truth = solve(summed(one, other), index, order, method="enumeration")
    assert_same(found, truth)
    assert_close(found.scale, solve(one, index, order).scale + solve(other, index, order).scale, found.scale)


def test_parts_are_finished_with_constant_sets_residual_and_the_games_axes():
    one = game(4, rows=1, outputs=1)
    a, b = (np.ascontiguousarray(array.transpose(0, 2, 1)) for array in (one.a, one.b))
    c, shapley = np.ascontiguousarray(one.c.T), semivalues.find("shapley")
    cut = [
        (np.ascontiguousarray(a[:, :, t]), np.ascontiguousarray(b[:, :, t]), np.ascontiguousarray(c[:, t]))
        for t in (slice(0, 2), slice(2, 5))
    ]
    parts = [solve_terms(*some, np.array(one.weights), shapley, 1) for some in cut]
    whole = sum(parts, start=Part.zeros(1, D, 1, method="quadrature"))
    found = whole.finish(D, shapley, 1, constant=2.0, single_row=True, single_output=True)
    truth = solve(ProductGame(one.c[:, 0], one.a[0], one.b, weights=one.weights, constant=2.0), method="enumeration")
    assert_same(found, truth)
    assert found.sets == truth.sets
    assert found.values.shape == (D,)
    assert abs(found.residual) <= 64 * EPS * found.scale
    assert found.method == "quadrature (2 nodes)"
    assert whole.finish(D, semivalues.find("banzhaf"), 1).residual is None


def test_errors_of_a_sum():
    one, other = solve(game(5)).part, solve(game(6)).part
    sampled = dataclasses.replace(one, std_error=np.full_like(one.values, 3.0), error_bound=np.full(3, 0.5))
    also = dataclasses.replace(other, std_error=np.full_like(one.values, 4.0), error_bound=0.25)
    both = sampled + also
    np.testing.assert_allclose(both.std_error, 5.0, rtol=roundings(4))  # independent: variances add
    np.testing.assert_array_equal(both.error_bound, np.full(3, 0.75))  # bounds add
    np.testing.assert_array_equal((sampled + other).std_error, 3.0)  # an exact game adds no error
    np.testing.assert_array_equal((one + also).std_error, 4.0)
    assert (one + other).std_error is None
    np.testing.assert_array_equal((sampled * -2.0).std_error, 6.0)
    np.testing.assert_array_equal((sampled * -2.0).error_bound, 1.0)


def test_errors_of_a_multiple():
    whole, covariance = solve(game(5)), np.ones((3, D, D, 2))
    posterior = Posterior(covariance, set_std=np.full_like(whole.values, 6.0))
    found = dataclasses.replace(whole, posterior=posterior, approximation_error=np.ones(3)) * -3.0
    np.testing.assert_array_equal(found.covariance, 9.0 * covariance)
    np.testing.assert_array_equal(found.set_std, 18.0)
    np.testing.assert_array_equal(found.approximation_error, 3.0)
    np.testing.assert_allclose(found.residual, -3.0 * whole.residual)
    assert found.covariance_residual is None
    assert not found.exact


def with_part(solution, **changes):
    return dataclasses.replace(solution, part=dataclasses.replace(solution.part, **changes))


def rows_alone():
    """Return the solution of a batch, and those of its rows."""
    batch = game(7)
    alone = [solve(ProductGame(batch.c, row, batch.b, weights=batch.weights)).as_batch() for row in batch.a]
    return solve(batch), alone


def test_join_puts_rows_under_each_other():
    whole, alone = rows_alone()
    joined = Solution.join(alone, 3)
    assert_same(joined, whole)
    np.testing.assert_array_equal(joined.scale, whole.scale)
    assert joined.error_bound.shape == whole.error_bound.shape == (3,)
    assert joined.std_error is None
    assert Solution.join(alone[:1], 1) is alone[0]
    counted = [dataclasses.replace(one, n_evaluations=5) for one in alone]
    assert Solution.join(counted, 3).n_evaluations == 15
    approximate = dataclasses.replace(alone[1], approximation_error=np.ones(1))
    assert Solution.join([approximate, *alone[1:]], 3).approximation_error is None  # not known of all rows


@pytest.mark.parametrize("places", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_rows_come_in_any_order(places):
    whole, rows = rows_alone()
    alone = [
        with_part(row, method=name, n_nodes=i) for i, (row, name) in enumerate(zip(rows, ("a", "bbb", "bba"), strict=True))
    ]
    sampled = with_part(alone[1], std_error=np.ones_like(alone[1].values))
    alone[1] = dataclasses.replace(sampled, approximation_error=np.ones(1))
    # one number for all rows of a part; what is not of rows is that of the first
    alone[2] = dataclasses.replace(with_part(alone[2], error_bound=0.25), sets=())
    rows, joined = Rows(3), Solution.join(alone, 3)
    for place in places:
        rows.put(place, alone[place])
    found = rows.solution()
    assert_same(found, joined)
    for name in ("std_error", "error_bound", "scale"):
        np.testing.assert_array_equal(getattr(found, name), getattr(joined, name))
    np.testing.assert_array_equal(found.std_error[:, 0].ravel()[:: found.std_error[0, 0].size], [0.0, 1.0, 0.0])
    assert found.error_bound[2] == 0.25
    assert found.approximation_error is None
    assert (found.method, found.n_nodes, found.sets) == ("bbb", 2, whole.sets)


@pytest.mark.parametrize(
    "shape", [(1, 1, 2), (40, 33, 2), (7, 200, 3), (0, 4, 2), *((41, n) for n in (1, 2, 3, 7, 8, 33, 200))]
)
@pytest.mark.parametrize("turned", [np.ascontiguousarray, np.asfortranarray])
def test_sums_of_sets_depend_on_their_row_alone_and_on_no_layout(shape, turned):
    values = np.random.default_rng(0).normal(size=shape)
    found = sum_of_sets(turned(values))
    np.testing.assert_array_equal(found[:1], sum_of_sets(values[:1]))
    np.testing.assert_array_equal(found, sum_of_sets(values))
    limit = roundings(shape[1]) * np.abs(values).sum(axis=1).max(initial=0.0)
    np.testing.assert_allclose(found, values.sum(axis=1), rtol=0, atol=limit)

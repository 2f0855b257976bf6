"""Independent draws that spend the whole budget: unbiased, with errors of the right size, and what would bias them."""

import math

import numpy as np
import pytest

from exactshap.games import AdditiveGame, OracleGame
from exactshap.solvers import solve
from exactshap.solvers.sampled._sampling import Draws
from tolerances import assert_regression_close


def names(masks):
    """Pairs as sets of one coalition and its complement."""
    return [frozenset({row.tobytes(), (~row).tobytes()}) for row in masks]


@pytest.mark.parametrize(
    ("d", "n_pairs"), [(2, 1), (3, 2), (4, 6), (5, 14), (6, 12), (8, 100), (9, 30), (13, 349), (30, 200), (2000, 40)]
)
def test_listed_and_drawn_pairs_fill_the_budget(d, n_pairs):
    draws = Draws(d)
    draws.grow(n_pairs, np.random.default_rng(0))
    listed, drawn = names(draws.listed), names(draws.masks)
    assert len(set(listed)) == len(listed)
    assert not set(listed) & set(drawn)
    assert len(set(listed) | set(drawn)) == n_pairs
    assert draws.complete == (n_pairs >= 2 ** (d - 1) - 1)
    if not draws.complete:
        assert len(set(drawn)) == draws.n_certain == n_pairs - len(listed)
        assert names(draws.stream)[len(drawn)] not in set(drawn)  # the draw that had no room
    sizes = {min(int(row.sum()), d - int(row.sum())) for row in draws.listed}
    assert len(listed) == sum(math.comb(d, s) // (2 if 2 * s == d else 1) for s in sizes)


def test_draws_go_on_where_they_were():
    draws, rng = Draws(12), np.random.default_rng(3)
    kept = []
    for n_pairs in (20, 50, 300):
        draws.grow(n_pairs, rng)
        still = [row for row in kept if draws.is_drawn[row.sum()]]
        np.testing.assert_array_equal(draws.masks[: len(still)], np.array(still).reshape(-1, 12))
        kept = list(draws.masks)


def strong_pairs(d):
    rng = np.random.default_rng(5)
    pairs = [(i, j) for j in range(d) for i in range(j)]
    return AdditiveGame(d, pairs, list(rng.normal(size=(len(pairs), 4))))


@pytest.mark.parametrize(("index", "order"), [("shapley", 1), ("banzhaf", 2), ("moebius", 1)])
def test_all_coalitions_give_exact_values(index, order):
    game = strong_pairs(6)
    found = solve(OracleGame(game.value, 6), index, order, method="regression", budget=64, estimator="unbiased")
    assert_regression_close(found.values, solve(game, index, order).values, found.scale)
    assert not found.std_error.any()
    assert "all coalitions" in found.method


def test_a_tolerance_goes_on_with_the_same_draws():
    game = strong_pairs(11)
    calls = []

    def function(masks):
        calls.extend(row.tobytes() for row in masks)
        return game.value(masks)

    found = solve(OracleGame(function, 11), estimator="unbiased", tol=0.2, random_state=0)
    assert len(calls) == len(set(calls)) == found.n_evaluations
    assert found.std_error.max() <= 0.2
    assert np.abs(found.values - solve(game).values).max() <= 5 * 0.2

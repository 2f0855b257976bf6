"""Rectified sums by meeting in the middle, against all coalitions."""

import numpy as np
import pytest

from exactshap import solve
from exactshap.errors import BudgetError
from exactshap.games import OracleGame
from exactshap.semivalues import beta, find
from exactshap.solvers.product import solve_hinges
from tolerances import assert_close


def hinges(d, seed=0):
    """Return sums that bend, that do not, that nobody moves and that have no hinge."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(8, d))
    steps[0, 0], steps[1], steps[2] = 0.0, 0.0, np.abs(steps[2])
    starts = np.array([0, 1, 2, 4, 4, 7, 8, 9, 9])
    shifts = rng.normal(size=9)
    shifts[2:4] = 0.1, -1e3
    return steps, starts, shifts, rng.normal(size=(9, 2))


def all_coalitions(steps, starts, shifts, c, index, order, **settings):
    owner = np.repeat(np.arange(len(steps)), np.diff(starts))

    def value(masks):
        return np.maximum(shifts + masks @ steps[owner].T, 0.0) @ c

    return solve(OracleGame(value, steps.shape[1]), index, order, method="enumeration", **settings)


@pytest.mark.parametrize("d", [1, 2, 3, 7, 10])
@pytest.mark.parametrize(
    ("index", "order"),
    [("shapley", 1), ("banzhaf", 1), ("k-sii", 2), ("stii", 2), ("fsii", 3), ("moebius", 2), (beta(4, 1), 1)],
)
def test_values_are_those_of_all_coalitions(d, index, order):
    if order > d:
        pytest.skip("more than there are players")
    game = hinges(d)
    own, found = all_coalitions(*game, index, order), solve_hinges(*game, find(index), order)
    # sums of 2^d values, each off by rounding relative to the sizes of its sums
    assert_close(found.values[0], own.values, found.scale, n_terms=2**d, n_players=d)
    assert_close(found.full[0], own.full, found.scale, n_terms=2**d, n_players=d)
    assert_close(found.empty[0], own.empty, found.scale, n_terms=2**d, n_players=d)


def test_halves_of_more_than_seven_players():
    game = hinges(17)
    own, found = all_coalitions(*game, "shapley", 1), solve_hinges(*game, find("shapley"), 1)
    assert_close(found.values[0], own.values, found.scale, n_terms=2**17, n_players=17)


def test_thirty_players_add_up_and_more_are_refused():
    rng = np.random.default_rng(0)
    steps, shifts, c = rng.normal(size=(2, 30)), np.zeros(2), np.ones((2, 1))
    found = solve_hinges(steps, np.arange(3), shifts, c, find("shapley"), 1)
    assert_close(found.values.sum(axis=1), found.full - found.empty, found.scale, n_terms=2**15, n_players=30)
    wide = np.concatenate([steps, steps[:, :1]], axis=1)
    with pytest.raises(BudgetError, match="31 players"):
        solve_hinges(wide, np.arange(3), shifts, c, find("shapley"), 1)
    straight = solve_hinges(wide, np.arange(3), np.full(2, 1e3), c, find("shapley"), 1)
    assert_close(straight.values[0, :, 0], wide.sum(axis=0), straight.scale, n_terms=31, n_players=31)

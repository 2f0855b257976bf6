"""Variable elimination, and rectified sums by meeting in the middle, against all coalitions."""

import numpy as np
import pytest

from exactshap import solve
from exactshap.errors import BudgetError
from exactshap.expansions import expand
from exactshap.games import OracleGame
from exactshap.semivalues import beta, find
from exactshap.solvers.product import eliminate, solve_factors, solve_hinges
from tolerances import RESPONSE, assert_close

QUESTIONS = [("shapley", 1), ("banzhaf", 1), ("k-sii", 2), ("stii", 2), ("fsii", 3), ("moebius", 2), (beta(4, 1), 1)]
GRAPHS = {
    "circle": (5, [(0,), (1,), (2,), (3,), (4,), (0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]),
    "parts": (6, [(0,), (5,), (0, 1), (2, 3), (3, 4)]),
    "triple": (6, [(0,), (1,), (0, 1, 2), (2, 3), (3, 4, 5)]),
    "clique": (5, [(0, 1, 2, 3, 4), (1, 3)]),
    "idle players": (4, [(0,), (2,)]),
    "one player": (1, [(0,)]),
    "no factor": (3, []),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(("index", "order"), QUESTIONS)
@pytest.mark.parametrize("link", ["logistic", "exponential"])
def test_values_of_factors_are_those_of_all_coalitions(graph, index, order, link):
    n_players, members = GRAPHS[graph]
    rng, weights = np.random.default_rng(len(graph)), np.array([0.5, 0.3, 0.2])
    factors = [(players, rng.normal(size=(3, 2 ** len(players)))) for players in members]
    expansion = expand(link, 16.0)

    def value(masks):
        scores = np.zeros((3, len(masks)))
        for players, table in factors:
            scores += table[:, masks[:, list(players)] @ (1 << np.arange(len(players)))]
        return weights @ expansion.function(scores)

    order = min(order, n_players)
    own = solve(OracleGame(value, n_players), index, order, method="enumeration")
    found = solve_factors(n_players, factors, expansion.rates, expansion.coefficients, weights, find(index), order)
    limit = 10 * RESPONSE * (1.0 + np.abs(own.full))
    np.testing.assert_allclose(found.values[0, :, 0], own.values, atol=limit)
    np.testing.assert_allclose(found.full[0, 0] + expansion.constant, own.full, atol=limit)
    np.testing.assert_allclose(found.empty[0, 0] + expansion.constant, own.empty, atol=limit)


GRID = [(j, j + 1) for j in range(9) if j % 3 < 2] + [(j, j + 3) for j in range(6)]


@pytest.mark.parametrize(
    ("n_players", "edges", "width"),
    [
        (5, [(j, j + 1) for j in range(4)], 1),  # a path
        (5, [(j, (j + 1) % 5) for j in range(5)], 2),  # a circle
        (9, GRID, 3),
        (6, [(a, b) for a in range(6) for b in range(a)], 5),
        (3, [], 0),
    ],
)
def test_widths(n_players, edges, width):
    assert eliminate(n_players, edges).width == width


# -- rectified sums ----------------------------------------------------------------------------------------------------


def hinges(d):
    """Return sums that bend, that do not, that nobody moves and that have no hinge."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(8, d))
    steps[0, 0], steps[1], steps[2] = 0.0, 0.0, np.abs(steps[2])
    starts = np.array([0, 1, 2, 4, 4, 7, 8, 9, 9])
    shifts = rng.normal(size=9)
    shifts[2:4] = 0.1, -1e3
    return steps, starts, shifts, rng.normal(size=(9, 2))


@pytest.mark.parametrize(
    ("d", "index", "order"), [*((d, *question) for d in (1, 2, 3, 7, 10) for question in QUESTIONS), (17, "shapley", 1)]
)
def test_values_of_hinges_are_those_of_all_coalitions(d, index, order):
    steps, starts, shifts, c = hinges(d)
    owner, order = np.repeat(np.arange(len(steps)), np.diff(starts)), min(order, d)

    def value(masks):
        return np.maximum(shifts + masks @ steps[owner].T, 0.0) @ c

    own = solve(OracleGame(value, d), index, order, method="enumeration")
    found = solve_hinges(steps, starts, shifts, c, find(index), order)
    for name in ("values", "full", "empty"):
        # sums of 2^d values, each off by rounding relative to the sizes of its sums
        assert_close(getattr(found, name)[0], getattr(own, name), found.scale, n_terms=2**d, n_players=d)


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

"""Variable elimination, against all coalitions."""

import numpy as np
import pytest

from exactshap import solve
from exactshap.expansions import expand
from exactshap.games import OracleGame
from exactshap.semivalues import beta, find
from exactshap.solvers.product import eliminate, solve_factors
from tolerances import RESPONSE

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
@pytest.mark.parametrize(
    ("index", "order"),
    [("shapley", 1), ("banzhaf", 1), ("k-sii", 2), ("stii", 2), ("fsii", 3), ("moebius", 2), (beta(4, 1), 1)],
)
@pytest.mark.parametrize("link", ["logistic", "exponential"])
def test_values_are_those_of_all_coalitions(graph, index, order, link):
    n_players, members = GRAPHS[graph]
    if order > n_players:
        pytest.skip("more than there are players")
    rng, weights = np.random.default_rng(len(graph)), np.array([0.5, 0.3, 0.2])
    factors = [(players, rng.normal(size=(3, 2 ** len(players)))) for players in members]
    expansion = expand(link, 16.0)

    def value(masks):
        scores = np.zeros((3, len(masks)))
        for players, table in factors:
            scores += table[:, masks[:, list(players)] @ (1 << np.arange(len(players)))]
        return weights @ expansion.function(scores)

    own = solve(OracleGame(value, n_players), index, order, method="enumeration")
    found = solve_factors(n_players, factors, expansion.rates, expansion.coefficients, weights, find(index), order)
    scale = 1.0 + np.abs(own.full)
    np.testing.assert_allclose(found.values[0, :, 0], own.values, atol=10 * RESPONSE * scale)
    np.testing.assert_allclose(found.full[0, 0] + expansion.constant, own.full, atol=10 * RESPONSE * scale)
    np.testing.assert_allclose(found.empty[0, 0] + expansion.constant, own.empty, atol=10 * RESPONSE * scale)


def test_widths():
    assert eliminate(5, [(j, j + 1) for j in range(4)]).width == 1  # a path
    assert eliminate(5, [(j, (j + 1) % 5) for j in range(5)]).width == 2  # a circle
    grid = [(3 * r + c, 3 * r + c + 1) for r in range(3) for c in range(2)] + [
        (3 * r + c, 3 * r + c + 3) for r in range(2) for c in range(3)
    ]
    assert eliminate(9, grid).width == 3
    assert eliminate(6, [(a, b) for a in range(6) for b in range(a)]).width == 5
    assert eliminate(3, []).width == 0

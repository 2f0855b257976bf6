"""Networks of a few sigmoid units: their values and slopes, which games they are taken for, and their errors."""

import numpy as np
import pytest

from exactshap.games import OracleGame
from exactshap.semivalues import find
from exactshap.solvers import solve
from exactshap.solvers.sampled._network import LONGEST, Network, cross_fit
from tolerances import assert_close


def random_network(rng, n_players, n_outputs, steepness=1.0):
    network = Network.start(n_players, n_outputs)
    parts = (network.weights, network.bias, network.out)
    return Network(*(steepness * rng.normal(size=part.shape) for part in parts))


def quota(rng, d):
    """A vote with weights, and its values: how many orders a player turns, by the sums of those before it."""
    weights = rng.integers(1, 30, size=d)
    return weights, int(np.ceil(0.6 * weights.sum()))


def votes(weights, least):
    return lambda masks: (masks @ weights >= least).astype(float)


def jumping_and_smooth(weights, least):
    """Two outputs, of which the process predicts one only."""
    return lambda masks: np.stack([votes(weights, least)(masks), np.tanh(masks @ weights / weights.sum() - 0.3)], axis=1)


@pytest.mark.parametrize("steepness", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
def test_values_are_those_of_all_coalitions(steepness, n_outputs, index):
    network = random_network(np.random.default_rng(0), 7, n_outputs, steepness)
    expected = solve(OracleGame(lambda masks: network.predict(2.0 * masks - 1.0), 7), index=index).values.reshape(7, n_outputs)
    scale, n_terms = np.abs(network.out).sum(), network.game().n_terms
    assert_close(network.values(find(index)), expected, scale, n_terms=n_terms, n_players=2**7)


def test_predictions_are_odd():
    network, points = random_network(np.random.default_rng(1), 5, 2), np.random.default_rng(2).choice([-1.0, 1.0], size=(20, 5))
    assert_close(network.predict(-points), -network.predict(points), np.abs(network.out).sum(), n_terms=4)
    units = np.tanh(network.bias + points @ network.weights) - np.tanh(network.bias - points @ network.weights)
    np.testing.assert_array_equal(network.predict(points), 0.5 * units @ network.out)


def test_a_network_learns_another_one():
    rng = np.random.default_rng(3)
    points, other = rng.choice([-1.0, 1.0], size=(400, 6)), random_network(rng, 6, 2)
    target = other.predict(points)
    fitted = Network.start(6, 2).fitted(points, target, 1000)
    assert np.mean((fitted.predict(points) - target) ** 2) < 0.01 * np.mean(target**2)


def test_networks_of_long_expansions_are_not_taken():
    points = np.random.default_rng(4).choice([-1.0, 1.0], size=(60, 4))
    steep = random_network(np.random.default_rng(4), 4, 1, steepness=2.0 * LONGEST)
    target, folds = np.sign(steep.predict(points)), np.arange(60) % 3
    assert cross_fit(steep, points, target, folds, np.array([1e9])) is None
    assert cross_fit(Network.start(4, 1), points, target, folds, np.array([1e9])) is not None


def test_votes_are_known_by_networks():
    squares, covered = [], []
    for seed in range(4):
        game = OracleGame(votes(*quota(np.random.default_rng(seed), 14)), 14)
        exact = solve(game, budget=2**14).values
        settings = {"budget": 1500, "method": "regression", "random_state": seed}
        found, alone = solve(game, **settings), solve(game, estimator="process", **settings)
        squares.append([np.mean((one.values - exact) ** 2) for one in (found, alone)])
        covered.append(np.mean(np.abs(found.values - exact) <= 2.0 * found.std_error))
        assert "5 networks of 4 units" in found.method
    ours, process = np.mean(squares, axis=0)
    assert ours < 0.2 * process
    assert np.mean(covered) > 0.8


def test_each_output_has_the_estimate_that_is_known_better():
    weights, least = quota(np.random.default_rng(0), 14)
    settings = {"budget": 1500, "method": "regression", "random_state": 0}
    game = OracleGame(jumping_and_smooth(weights, least), 14)
    found, alone = solve(game, **settings), solve(game, estimator="process", **settings)
    assert "networks of 4 units for 1 of 2 outputs" in found.method
    np.testing.assert_array_equal(found.std_error[:, 1], alone.std_error[:, 1])
    np.testing.assert_array_equal(found.values[:, 1], alone.values[:, 1])
    assert (found.std_error[:, 0] ** 2).sum() < 0.3 * (alone.std_error[:, 0] ** 2).sum()


def test_smooth_games_keep_their_process():
    weights, _ = quota(np.random.default_rng(0), 14)
    found = solve(
        OracleGame(lambda masks: np.tanh(masks @ weights / 100.0), 14), budget=1500, method="regression", random_state=0
    )
    assert "networks" not in found.method

"""Networks of a few sigmoid units: their values and slopes, which games they are taken for, and their errors."""

import numpy as np
import pytest

from exactshap.games import OracleGame, all_masks
from exactshap.semivalues import find
from exactshap.solvers import solve
from exactshap.solvers.sampled._correction import corrected_by_folds
from exactshap.solvers.sampled._network import (
    FIRST_STEPS,
    LONGEST,
    MORE_STEPS,
    TURNED,
    Network,
    cross_fit,
)
from tolerances import VARIANCE_RATIO, assert_close


def random_network(rng, n_players, n_outputs, steepness=1.0):
    network = Network.starts(n_players, n_outputs)[0]
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


def test_the_best_of_several_starts_goes_on():
    """The one that misses least of the pairs it was fitted to after the first steps, for each fold on its own."""
    rng = np.random.default_rng(19)
    points = rng.choice([-1.0, 1.0], size=(200, 9))
    target = np.sign(points @ rng.integers(1, 9, size=9) - 0.5)[:, None]
    starts, folds = Network.starts(9, 1), np.arange(200) % 4
    chosen = set()
    for fold, network in enumerate(cross_fit(starts, points, target, folds, np.array([1e9]))):
        known = points[folds != fold], target[folds != fold]
        begun = [*(start.turned(*known) for start in starts[:TURNED]), *starts[TURNED:]]
        tried = [start.fitted(*known, FIRST_STEPS) for start in begun]
        best = min(range(len(starts)), key=lambda k: np.sum((tried[k].predict(known[0]) - known[1]) ** 2))
        chosen.add(best)
        np.testing.assert_array_equal(network.weights, tried[best].fitted(*known, MORE_STEPS).weights)
    assert len(chosen) > 1


def test_networks_of_long_expansions_are_not_taken():
    points = np.random.default_rng(4).choice([-1.0, 1.0], size=(60, 4))
    steep = random_network(np.random.default_rng(4), 4, 1, steepness=2.0 * LONGEST)
    target, folds = np.sign(steep.predict(points)), np.arange(60) % 3
    assert cross_fit([steep], points, target, folds, np.array([1e9])) is None
    assert cross_fit(Network.starts(4, 1), points, target, folds, np.array([1e9])) is not None


def every_pair(n_players):
    """Return one half of every pair but that of the ends, as points."""
    masks = all_masks(n_players)[1 : 2 ** (n_players - 1)]
    return 2.0 * masks - 1.0


def corrected(points, value, networks, folds):
    """Return corrected values with their known sum, and their variances."""
    masks = points > 0
    values, variance, _ = corrected_by_folds(
        networks, points, (value(masks) - value(~masks)) / 2.0, folds, find("shapley"), 1e9
    )
    ends = value(np.array([[False] * points.shape[1], [True] * points.shape[1]]))
    return values + (ends[1] - ends[0] - values.sum(axis=0)) / len(values), variance


@pytest.mark.parametrize("n_folds", [1, 3])
def test_all_pairs_correct_any_networks_to_the_exact_values(n_folds):
    rng = np.random.default_rng(5)
    game = jumping_and_smooth(*quota(rng, 7))
    networks, points = [random_network(rng, 7, 2) for _ in range(n_folds)], every_pair(7)
    values, variance = corrected(points, game, networks, rng.permutation(len(points)) % n_folds)
    scale = sum(np.abs(network.out).sum() for network in networks)
    assert_close(values, solve(OracleGame(game, 7)).values, scale, n_terms=sum(network.game().n_terms for network in networks))
    assert_close(variance, np.zeros((7, 2)), scale**2)


def test_corrections_are_unbiased_and_their_variance_is_right():
    rng = np.random.default_rng(6)
    game, network, every = votes(*quota(rng, 7)), random_network(rng, 7, 1), every_pair(7)
    exact = solve(OracleGame(game, 7)).values
    sizes = np.minimum((every > 0).sum(axis=1), (every < 0).sum(axis=1))
    draws = []
    numbers = {1: 6, 2: 12, 3: 16}  # of 7, 21 and 35 pairs, half of them in each fold
    for _ in range(400):
        chosen = np.concatenate([rng.choice(np.flatnonzero(sizes == size), n, replace=False) for size, n in numbers.items()])
        folds = np.concatenate([rng.permutation(n) % 2 for n in numbers.values()])
        draws.append(corrected(every[chosen], lambda masks: game(masks)[:, None], [network] * 2, folds))
    values, variances = (np.array(some)[:, :, 0] for some in zip(*draws, strict=True))
    z_scores = (values.mean(axis=0) - exact) / (values.std(axis=0) / np.sqrt(len(values)))
    assert np.abs(z_scores).max() < 4.0
    low, high = VARIANCE_RATIO
    ratio = values.var(axis=0).mean() / variances.mean()
    assert low < ratio < high, ratio


def test_networks_do_not_know_their_fold():
    rng = np.random.default_rng(7)
    points, target = rng.choice([-1.0, 1.0], size=(60, 4)), rng.normal(size=(60, 1))
    folds, easy = np.arange(60) % 3, np.array([1e9])
    networks = cross_fit(Network.starts(4, 1), points, target, folds, easy)
    for fold, network in enumerate(networks):
        others = cross_fit(Network.starts(4, 1), points, np.where(folds[:, None] == fold, 2.0, target), folds, easy)
        np.testing.assert_array_equal(network.weights, others[fold].weights)
        assert sum(np.array_equal(one.weights, other.weights) for one, other in zip(networks, others, strict=True)) == 1


def test_votes_are_known_by_networks():
    squares, covered = [], []
    for seed in range(2):
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

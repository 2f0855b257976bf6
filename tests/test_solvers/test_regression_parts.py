"""The pieces of the regression solver beside slow, obvious twins."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from exactshap.games import AdditiveGame, OracleGame, all_masks
from exactshap.semivalues import find
from exactshap.solvers import solve
from exactshap.solvers.core import Calls, player_sets
from exactshap.solvers.sampled import _placement
from exactshap.solvers.sampled._frontier import additive_frontier, partial_frontier, unanimity_columns
from exactshap.solvers.sampled._placement import design, place
from exactshap.solvers.sampled._polynomial import fit_polynomial, unanimity_shares
from exactshap.solvers.sampled._problem import RegressionProblem, SamplingSettings
from exactshap.solvers.sampled._sampling import (
    Draws,
    draw,
    draw_independent,
    kernel_weights,
    leverage_scores,
    quotas,
    shares_of,
    strata,
    stratum_weights,
)
from exactshap.solvers.sampled.process import Prior, Question, covariance, functionals, white_functionals
from tolerances import assert_regression_close, chance, conditioned, printed, roundings

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("n_players", "order"), [(4, 1), (6, 2), (6, 3), (7, 3), (10, 2)])
def test_leverage_scores_against_the_projected_design(n_players, order):
    masks = all_masks(n_players)[1:-1]
    columns = unanimity_columns(masks, additive_frontier(n_players, order))
    rows = np.sqrt(kernel_weights(n_players)[masks.sum(axis=1) - 1])[:, None] * (columns - columns.mean(axis=1, keepdims=True))
    u, s, _ = np.linalg.svd(rows, full_matrices=False)
    scores = (u[:, s > 1e-9 * s[0]] ** 2).sum(axis=1)
    by_size = np.bincount(masks.sum(axis=1), scores)[1:]
    np.testing.assert_allclose(leverage_scores(n_players, order), by_size / by_size.sum(), rtol=conditioned(1e7))


def test_published_leverage_scores():
    """Ten players, orders 2 and 3, as measured for the paper (MATHS.md, section 5)."""
    np.testing.assert_allclose(leverage_scores(10, 2)[:5], [0.064, 0.0993, 0.1246, 0.1397, 0.1448], atol=1.2 * printed(4))
    np.testing.assert_allclose(leverage_scores(10, 3)[:5], [0.0355, 0.0831, 0.1301, 0.1635, 0.1755], atol=1.2 * printed(4))


@pytest.mark.parametrize(("n_players", "paired"), [(5, True), (6, True), (6, False), (7, False)])
def test_draws_are_distinct_complete_and_even(n_players, paired):
    groups = strata(n_players, paired=paired)
    total = int(groups.counts.sum())
    assert total == (2**n_players - 2) // (2 if paired else 1)
    everything = draw(n_players, total + 50, np.random.default_rng(0), groups, paired=paired)
    assert len(np.unique(everything, axis=0)) == total
    seen = np.zeros(2**n_players)
    n_draws = total // 2
    for seed in range(400):
        masks = draw(n_players, n_draws, np.random.default_rng(seed), groups, paired=paired)
        assert len(masks) == n_draws
        masks = np.concatenate([masks, ~masks]) if paired else masks
        assert len(np.unique(masks, axis=0)) == len(masks)
        seen[masks @ (1 << np.arange(n_players))] += 1
    for size in range(1, n_players):  # the same chance for every coalition of a size: a binomial of 400 draws
        counts = seen[all_masks(n_players).sum(axis=1) == size]
        spread = np.sqrt(400 * 0.25)
        assert np.abs(counts - counts.mean()).max() <= 4.5 * spread


def test_quotas_enumerate_the_border():
    groups = strata(20, paired=True)
    found = quotas(groups, 2000, np.random.default_rng(0))
    assert found.sum() == 2000
    np.testing.assert_array_equal(found[:2], groups.counts[:2])
    assert found[2] < groups.counts[2]


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("number", [0.0, 0.5, np.nextafter(1.0, 0.0)])
def test_quotas_add_up_at_the_ends_of_random_numbers(paired, number):
    for n_players, n in itertools.product((2, 3, 8, 20, 1000), (1, 2, 7, 100, 4001)):
        groups = strata(n_players, paired=paired)
        found = quotas(groups, n, SimpleNamespace(random=lambda: number))
        assert found.sum() == min(n, groups.counts.sum())
        assert np.all((found >= 0) & (found <= groups.counts))


@pytest.mark.parametrize("paired", [True, False])
def test_calls_in_rounds_are_of_all_sizes_as_those_of_one_round_are(paired):
    d, whole = 16, []
    for rounds in ([1002], [102, 202, 602, 1002]):
        calls = Calls(OracleGame(lambda masks: masks.sum(axis=1), d))
        settings = SamplingSettings(estimator="polynomial", pairing=paired)
        problem = RegressionProblem(calls, np.random.default_rng(1), find("shapley"), 1, player_sets(d, 1), settings)
        for n_calls in rounds:
            problem.grow(n_calls)
        sizes = problem.masks.sum(axis=1)
        whole.append(np.bincount(np.minimum(sizes, d - sizes), minlength=d // 2 + 1))
        assert len(problem.masks) == 1000 // (1 + paired) == len(np.unique(problem.masks, axis=0))
    assert np.abs(whole[1] - whole[0]).max() <= 2 * len(rounds)  # a stratum of each round is its share, rounded


def test_stratum_weights_estimate_the_number_of_coalitions():
    masks = draw(12, 300, np.random.default_rng(0), strata(12, paired=True), paired=True)
    assert stratum_weights(masks, paired=True).sum() == pytest.approx(2**11 - 1)
    assert np.all(stratum_weights(masks, paired=True)[np.minimum(masks.sum(1), 12 - masks.sum(1)) == 1] == 1.0)


def test_independent_draws_have_their_probabilities():
    masks, probability = draw_independent(6, 6000, np.random.default_rng(0))
    sizes = np.bincount(masks.sum(axis=1), minlength=6)[1:6] / 6000
    np.testing.assert_allclose(sizes, 0.2, atol=chance(4.5, np.sqrt(0.2 * 0.8 / 6000)))
    assert np.all(probability == 0.2)


def test_no_coalition_is_called_twice():
    called = []
    calls = Calls(
        OracleGame(lambda masks: called.extend(map(tuple, masks.tolist())) or masks.sum(axis=1) * 1.0, 9), batch_size=3
    )
    masks = all_masks(9)[:40]
    first = calls(np.concatenate([masks, masks[::-1]]))
    np.testing.assert_array_equal(calls(masks)[:, 0], masks.sum(axis=1))
    np.testing.assert_array_equal(first[:40], first[:39:-1])
    assert calls.count == 40
    assert len(called) == 40


def test_jackknife_against_refits():
    d = 7
    rng = np.random.default_rng(3)
    masks = draw(d, 40, rng, strata(d, paired=False), paired=False)
    targets, total = rng.normal(size=(40, 1)), np.ones(1)
    sets = additive_frontier(d, 1)
    columns, shares = unanimity_columns(masks, sets), unanimity_shares(d, sets)
    fit = fit_polynomial(columns, targets, total, masks, shares, paired=False)
    weights = kernel_weights(d)[masks.sum(axis=1) - 1] * stratum_weights(masks, paired=False)

    def refit(rows):
        free = np.vstack([np.eye(d - 1), -np.ones(d - 1)])  # coefficients that sum to zero
        a, y = columns[rows] @ free, targets[rows, 0] - columns[rows] @ np.full(d, 1.0 / d)
        root = np.sqrt(weights[rows])
        return free @ np.linalg.lstsq(root[:, None] * a, root * y, rcond=None)[0] + 1.0 / d

    whole = refit(np.arange(40))
    np.testing.assert_allclose(fit.values[:, 0], whole, atol=roundings(5_000))
    unseen = 1.0 - 1.0 / stratum_weights(masks, paired=False)
    moved = np.array([refit(np.arange(40) != row) - whole for row in range(40)])
    np.testing.assert_allclose(fit.std_error[:, 0] ** 2, (unseen[:, None] * moved**2).sum(axis=0), rtol=conditioned(1e7))
    left_out = [targets[row, 0] - columns[row] @ refit(np.arange(40) != row) for row in range(40)]
    np.testing.assert_allclose(fit.left_out, np.abs(left_out).max() / np.abs(targets).max(), rtol=conditioned(1e7))


def test_rows_that_no_other_foretells_leave_the_left_out_residual_open():
    d = 5
    masks = np.array(
        [[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 0, 1, 0, 0], [1, 1, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]], bool
    )
    sets = additive_frontier(d, 1)
    columns, shares = unanimity_columns(masks, sets), unanimity_shares(d, sets)
    fit = fit_polynomial(columns, masks.sum(axis=1)[:, None] * 1.0, np.full(1, 5.0), masks, shares, paired=False)
    assert fit.determined
    assert np.isinf(fit.left_out).all()  # the last row alone tells the fourth player from the fifth


def test_partial_frontiers():
    sets = partial_frontier(6, 12, np.random.default_rng(0))
    assert len(sets) == len(set(sets)) == 12
    assert sets[:6] == tuple((j,) for j in range(6))
    assert all(len(players) == 2 for players in sets[6:])
    assert partial_frontier(3, 99, np.random.default_rng(0))[-1] == (0, 1, 2)


@pytest.mark.parametrize(("sign", "of_each_size"), [(-1, 0), (0, 0), (-1, 3)])
def test_placed_coalitions_lower_the_variance_most(sign, of_each_size):
    """Every placed pair or coalition is the best of all candidates, by refitting the variance with each of them.

    Once as many places are left as sizes lack pairs, it is the best of these sizes.
    """
    d, white = 6, 0.3
    candidates = draw(d, 24, np.random.default_rng(1), strata(d, paired=sign < 0), paired=sign < 0)
    theta = np.array([0.2, 1.5, 0.6, 0.1, 0.9, 0.4])
    known = np.array([[True] * d, [False] * d][: 2 + sign])
    prior, question = Prior(theta, white if sign else 0.0), Question(find("shapley"), 1, player_sets(d, 1))
    points = [2.0 * masks - 1.0 for masks in (known, candidates)]
    chosen = place(*points, 10, _placement.Belief(prior, white, [(sign, 1.0)], question), np.full(d + 1, of_each_size)).tolist()
    assert len(set(chosen)) == 10
    sizes = np.minimum(candidates.sum(axis=1), d - candidates.sum(axis=1))

    def allowed(before, n_left):
        lacking = {size: of_each_size - (sizes[before] == size).sum() for size in set(sizes)}
        lacking = {size: n for size, n in lacking.items() if n > 0}
        return [row for row in range(24) if row not in before and (sum(lacking.values()) < n_left or sizes[row] in lacking)]

    assert np.bincount(sizes[chosen])[1:].min() >= of_each_size
    nodes, weights = find("shapley").rule(degree=d - 1)

    def explained(rows):
        points = 2.0 * np.concatenate([known, candidates[rows]]) - 1
        gram = covariance(points, points, theta, sign) + white * np.eye(len(points))
        players, exact = np.arange(d)[:, None], find("shapley").weights(d)
        cross = functionals(points, np.tanh(theta / 2), players, nodes, weights)
        if sign:
            cross += white * (white_functionals(points, players, exact) - white_functionals(-points, players, exact))
        return (cross * np.linalg.solve(gram, cross)).sum()

    for step in range(10):
        gains = [explained([*chosen[:step], row]) for row in allowed(chosen[:step], 10 - step)]
        assert explained(chosen[: step + 1]) == pytest.approx(max(gains), rel=conditioned(1e5))


@pytest.mark.parametrize(("n", "least"), [(20, 0), (21, 1), (30, 3), (49, 7)])
def test_pairs_of_every_size_are_among_those_that_shapley_values_ask_for(n, least):
    """The design alone leaves sizes out, and so do two pairs a player; the others are as draws by size would be."""
    alone, wide = (design(10, n, np.random.default_rng(0), paired=True, every_size=every) for every in (False, True))
    counts, found = (
        np.bincount(np.minimum(masks.sum(axis=1), 10 - masks.sum(axis=1)), minlength=6)[1:] for masks in (alone, wide)
    )
    assert counts.min() == 0
    assert found.min() == least
    assert np.all(found >= np.floor(shares_of(strata(10, paired=True), n - 20)[0]))
    assert len(wide) == n


def test_designs_repeat_by_seed_and_differ_by_a_relabelling_of_the_players():
    first, again, other = (design(12, 40, np.random.default_rng(seed), paired=True) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_array_equal(first.sum(axis=1), other.sum(axis=1))  # one placement, whose players the seed relabels
    columns = [sorted(map(bytes, masks.T)) for masks in (first, other)]
    assert columns[0] == columns[1]


# --- independent draws that spend the whole budget --------------------------------------------------------------------


def pairs_of(masks):
    """Pairs as sets of one coalition and its complement."""
    return [frozenset({row.tobytes(), (~row).tobytes()}) for row in masks]


@pytest.mark.parametrize(
    ("d", "n_pairs"), [(2, 1), (3, 2), (4, 6), (5, 14), (6, 12), (8, 100), (9, 30), (13, 349), (30, 200), (2000, 40)]
)
def test_listed_and_drawn_pairs_fill_the_budget(d, n_pairs):
    draws = Draws(d)
    draws.grow(n_pairs, np.random.default_rng(0))
    listed, drawn = pairs_of(draws.listed), pairs_of(draws.masks)
    assert len(set(listed)) == len(listed)
    assert not set(listed) & set(drawn)
    assert len(set(listed) | set(drawn)) == n_pairs
    assert draws.complete == (n_pairs >= 2 ** (d - 1) - 1)
    if not draws.complete:
        assert len(set(drawn)) == draws.n_certain == n_pairs - len(listed)
        assert pairs_of(draws.stream)[len(drawn)] not in set(drawn)  # the draw that had no room
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

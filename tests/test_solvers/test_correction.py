"""Values corrected by left-out residuals: the formula from its definition, what it mends, and its errors on games of jumps and kinks."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from exactshap.games import OracleGame
from exactshap.semivalues import beta, find
from exactshap.solvers import solve
from exactshap.solvers.core import player_sets
from exactshap.solvers.sampled import _estimators, _problem
from exactshap.solvers.sampled._correction import Correction, corrected, corrected_by_others, uncorrected
from exactshap.solvers.sampled._frontier import additive_frontier, character_columns
from exactshap.solvers.sampled._polynomial import TINIEST, fit_polynomial, odd_shares
from exactshap.solvers.sampled._sampling import draw, strata
from exactshap.solvers.sampled.process import Prior, Question, _hypercube, covariance, fit_process
from exactshap.solvers.sampled.process._halves import JITTER, FittedHalf
from tolerances import conditioned, roundings

D, PAIRS = 8, 90
SHAPLEY = Question(find("shapley"), 1, tuple((j,) for j in range(D)))


def observed(rng):
    """Return pairs of a game of jumps and of a smooth one, called where they were drawn by size."""
    masks = draw(D, PAIRS, rng, strata(D, paired=True), paired=True)
    weights = rng.integers(1, 9, size=D)

    def value(some):
        return np.stack([3.0 * (some @ weights >= 0.6 * weights.sum()), np.tanh(some @ weights / 9.0)], axis=1)

    whole = np.concatenate([np.ones((1, D), bool), masks])
    return masks, value(whole), value(~whole)


def fitted(rng):
    masks, inside, outside = observed(rng)
    points = 2.0 * np.concatenate([np.ones((1, D), bool), masks]) - 1.0
    process = fit_process(points, inside, outside, even=False, relevance_rows=500, rng=rng)
    sets = additive_frontier(D, 1, odd=True)
    columns, shares = character_columns(masks, sets), odd_shares(D, sets)

    def kernelshap(targets, total):
        return fit_polynomial(columns, targets, total, masks, shares, paired=True)

    return masks, process, kernelshap, (inside - outside) / 2.0


def written_out(masks, process, linear, residuals):
    """Return c, V and C (n_players, n_outputs) by loops over pairs, sizes and the inverse of the covariance of all rows."""
    sizes = np.minimum(masks.sum(axis=1), D - masks.sum(axis=1))
    side = np.sign(D - 2 * masks.sum(axis=1))
    within = np.eye(PAIRS)  # takes the mean of each size from what stands on the smaller side
    spread, unseen = np.ones(PAIRS), np.empty(PAIRS)
    for size in range(1, D // 2 + 1):
        some, halved = np.flatnonzero(sizes == size), 2 * size == D
        unseen[some] = 1.0 - len(some) / (math.comb(D, size) // (1 + halved))
        if not halved and len(some) > 1:
            within[np.ix_(some, some)] -= np.outer(side[some], side[some]) / len(some)
            spread[some] = len(some) / (len(some) - 1)
    left = within @ residuals
    missed = linear @ (unseen[:, None] * left)
    answers = process.halves[0].half.target[process.order > 0]
    alike = [np.mean([one == other for one, other in itertools.combinations(column, 2)]) for column in np.round(answers, 9).T]
    surprises = np.array(alike) ** (PAIRS / D - 1) * (answers**2).mean(axis=0) / (np.bincount(sizes)[sizes] + 1)[:, None]
    variance = linear**2 @ (unseen[:, None] * (spread[:, None] * left**2 + surprises))
    order = np.argsort(process.order)[1:]  # where each pair stands in the process
    points = process.points
    gram = covariance(points, points, process.theta, -1) + (process.white + JITTER) * np.eye(len(points))
    inverse = np.linalg.inv(gram)
    moves = (linear * unseen) @ within / np.diag(inverse)[order]
    expected = np.einsum("ji,ik,jk->j", moves, inverse[np.ix_(order, order)], moves)
    return missed - missed.mean(axis=0), variance, expected[:, None] * process.halves[0].variance


def said_of_values(process, index, order, half):
    """Return c and C (n_sets, n_outputs) of one half, by a table of what every coalition adds to every value."""
    d, fitted, rows = process.points.shape[1], process.halves[half], process.points > 0
    codes = 1 << np.arange(d)
    indicators = OracleGame(lambda masks: np.eye(2**d)[masks @ codes], d)
    added = solve(indicators, index, order, method="enumeration").values
    by_row = added[:, rows @ codes] + fitted.half.sign * added[:, ~rows @ codes]
    sizes = rows.sum(axis=1)
    every = np.array([math.comb(d, size) for size in sizes], float)
    if process.paired:
        every[2 * sizes == d] /= 2.0  # a pair has two halves of this size
        sizes = np.minimum(sizes, d - sizes)
    called = np.array([np.count_nonzero(sizes == size) for size in sizes])
    # Row 0 is the full coalition
    unseen = np.where((sizes == 0) | (sizes == d), 0.0, 1.0 - called / every)
    gram = covariance(process.points, process.points, process.theta, fitted.half.sign)
    inverse = np.linalg.inv(gram + (process.white + JITTER) * np.eye(len(rows)))
    moves = by_row * unseen * every / called / np.diag(inverse)
    return moves @ fitted.dual, np.einsum("ti,ij,tj->t", moves, inverse, moves)[:, None] * fitted.variance


@pytest.mark.parametrize(("index", "order", "paired"), [("k-sii", 2, True), (beta(4, 1), 1, False), ("banzhaf", 1, True)])
@pytest.mark.parametrize("n", [14, 25])
def test_errors_of_values_that_nothing_corrects_written_out(index, order, paired, n):
    d, rng = 6, np.random.default_rng(n)
    drawn = draw(d, n, rng, strata(d, paired=paired), paired=paired)
    masks, weights = np.concatenate([np.ones((1, d), bool), drawn]), rng.integers(1, 9, size=d)

    def value(some):
        return np.stack([some @ weights >= 0.6 * weights.sum(), np.tanh(some @ weights / 9.0)], axis=1) * [3.0, 1.0]

    even, outside = paired and order > 1, value(~masks) if paired else None
    process = fit_process(2.0 * masks - 1, value(masks), outside, even=even, relevance_rows=500, rng=rng)
    question = Question(find(index), order, player_sets(d, order))
    values, errors = uncorrected(process, question)
    own_values, own_errors = process.solve(question)
    np.testing.assert_array_equal(values, own_values)
    variance, squares, expected = 0.0, 0.0, 0.0
    players = np.array([len(some) for some in question.sets])
    said = np.equal.outer(np.arange(1, order + 1), players).astype(float)  # sums over the sets of each size
    for half, posterior in enumerate(process.half_posteriors(question)):
        fitted, scale = posterior.fitted, posterior.fitted.half.scale**2
        missed, believed = said_of_values(process, index, order, half)
        seen, told = said @ missed**2, said @ believed
        precision = fitted.precisions(len(masks))
        squares, expected = squares + scale * seen, expected + scale * told
        z2, moved = fitted.dual**2 / precision[:, None] / fitted.variance, (posterior.influence**2).sum(axis=1) / precision
        ratios = seen / np.maximum(told, TINIEST)  # pairs of players do not see the odd half
        judged = np.maximum(np.maximum(z2.mean(axis=0), moved @ z2 / moved.sum()), ratios[players - 1])
        inflation = _hypercube.HEAVY_TAILS * (judged + d / process.n_answers)
        variance = variance + posterior.left[:, None] * fitted.variance * scale * inflation
    share = 1.0 - process.n_answers / (process.n_answers - d) * expected / squares
    share = np.maximum(share, min(8.0 * d / process.n_answers, 1.0))[players - 1]
    means = (said @ variance / said.sum(axis=1, keepdims=True))[players - 1]
    np.testing.assert_allclose(errors**2, variance + share * np.maximum(means - variance, 0.0), rtol=conditioned(1e10))
    assert np.all(errors >= own_errors * (1.0 - conditioned(1e10)))


def test_correction_written_out():
    masks, process, kernelshap, target = fitted(np.random.default_rng(4))
    fit = kernelshap(target[1:] / process.unit, target[0] / process.unit)
    linear = kernelshap(np.eye(PAIRS), np.zeros(PAIRS)).values  # (n_players, n_pairs)
    residuals = process.checked()[1][1:]
    missed, variance, expected = written_out(masks, process, linear, residuals)
    found = Correction.of(process, fit)
    close = {"rtol": conditioned(1e7), "atol": conditioned(1e5)}
    np.testing.assert_allclose(found.missed, missed, **close)
    np.testing.assert_allclose(found.variance, variance, **close)
    squares, room = (missed**2).sum(axis=0), PAIRS / (PAIRS - D)
    believed = np.minimum(expected.sum(axis=0), variance.sum(axis=0))
    wrong = np.maximum(1.0 - room * believed / squares, 0.0)
    unknown = np.maximum(min(8.0 * D / process.n_answers, 1.0) - wrong, 0.0)
    np.testing.assert_allclose(found.wrong, wrong, **close)
    np.testing.assert_allclose(found.unknown, unknown, **close)
    own = process.posterior(SHAPLEY)[1]
    values = process.solve(SHAPLEY)[0] / process.unit
    chance = chances(masks, linear, residuals, process)
    for times in (4.0, 1.0):  # the first is beyond chance along and across
        added = along_and_across(values, times * missed, variance, chance, room)
        np.testing.assert_allclose(replace(found, missed=times * missed).added(values), added, **close)
    square = (1.0 - wrong - unknown) * own + wrong * variance + unknown * np.maximum(own, variance)
    values = values + added
    away = values - values.mean(axis=0)
    kept = 1.0 - wrong * (D - 3) / (D - 1) * square.sum(axis=0) / (away**2).sum(axis=0)
    assert 0.5 < kept.min() < 1.0 - conditioned(1e7)  # what is drawn together is more than rounding here
    together, std_error = corrected(fit, process, SHAPLEY)
    np.testing.assert_allclose(together, process.unit * (values.mean(axis=0) + kept * away), **close)
    np.testing.assert_allclose(std_error, process.unit * np.sqrt(square), **close)


def chances(masks, linear, residuals, process):
    """Return V as a function of weights (n_players,) of the values: the variance of the weighted sum of c, (n_outputs,)."""

    def chance(weights):
        return written_out(masks, process, np.tile(weights @ linear, (D, 1)), residuals)[1][0]

    return chance


def along_and_across(values, missed, variance, chance, room):
    """Return what is added, one output after the other."""
    added = np.empty(values.shape)
    for k in range(values.shape[1]):
        away = values[:, k] - values[:, k].mean()
        away /= np.linalg.norm(away)
        along, doubt = away @ missed[:, k], chance(away)[k]
        across = missed[:, k] - along * away
        left = variance[:, k].sum() - doubt
        added[:, k] = max(1.0 - room**2 * doubt / along**2, 0.0) * along * away
        added[:, k] += max(1.0 - left / (across @ across), 0.0) * across
    return added


@pytest.mark.parametrize(("copies", "independent"), [(1, 1.0), (3, 1.0), (0, 2.0)])
def test_outputs_that_are_alike_count_once(copies, independent):
    """Numbers that relevances are fitted to: two orthogonal outputs are two, three multiples of one are one."""
    masks = draw(D, PAIRS, np.random.default_rng(4), strata(D, paired=True), paired=True)
    whole = np.concatenate([np.ones((1, D), bool), masks])
    first = (2.0 * whole - 1.0) @ np.arange(1.0, D + 1)
    other = np.where(whole[:, 0], 1.0, -1.0)
    other -= first * (first @ other) / (first @ first)
    target = np.outer(first, np.arange(1.0, copies + 1)) if copies else np.stack([first, other], axis=1)
    settings = {"even": False, "relevance_rows": 9, "rng": np.random.default_rng(0)}
    process = fit_process(2.0 * whole - 1.0, target, -target, **settings)
    assert process.n_answers == pytest.approx(independent * (PAIRS + 1), rel=roundings(500))


def split(rng, n_fitted):
    """Return a process fitted to some pairs of two games, and the other pairs (masks, odd halves), all those that there are."""
    masks = draw(D, 2 ** (D - 1) - 1, rng, strata(D, paired=True), paired=True)
    masks = masks[rng.permutation(len(masks))]
    weights = rng.integers(1, 9, size=D)

    def value(some):
        return np.stack([3.0 * (some @ weights >= 0.6 * weights.sum()), np.tanh(some @ weights / 9.0)], axis=1)

    whole = np.concatenate([np.ones((1, D), bool), masks[:n_fitted]])
    answers = value(whole), value(~whole)
    process = fit_process(2.0 * whole - 1.0, *answers, even=False, relevance_rows=500, rng=rng)
    others = masks[n_fitted:]
    return process, others, (value(others) - value(~others)) / 2.0, value


def test_all_other_pairs_make_the_values_exact():
    process, others, target, value = split(np.random.default_rng(5), 50)
    exact = solve(OracleGame(value, D), method="enumeration").values
    assert np.abs(process.posterior(SHAPLEY)[0] - exact).max() > 1e-3
    values, std_error = corrected_by_others(others, target, process, SHAPLEY)
    values += (exact.sum(axis=0) - values.sum(axis=0)) / D
    # The jitter keeps the process from passing through the answers that it was fitted to
    passed_by = JITTER * np.abs(process.halves[0].dual * process.unit).sum()
    np.testing.assert_allclose(values, exact, rtol=0.0, atol=passed_by + conditioned(1e5))
    np.testing.assert_array_equal(std_error, 0.0)


def test_some_other_pairs_estimate_what_the_process_misses():
    """Without a belief of its own, as if its variances were endless: unbiased over 400 draws within three standard errors, V their variance."""
    rng = np.random.default_rng(6)
    process, others, target, value = split(rng, 50)
    exact = solve(OracleGame(value, D), method="enumeration").values
    base, own = process.posterior(SHAPLEY)
    object.__setattr__(process, "posterior", lambda question: (base, 1e12 * own))
    sizes, found = np.minimum(others.sum(axis=1), D - others.sum(axis=1)), []
    for _ in range(400):
        order = rng.permutation(len(others))
        some = np.concatenate([order[sizes[order] == size][: [0, 9, 9, 12, 12][size]] for size in range(1, D // 2 + 1)])
        found.append(corrected_by_others(others[some], target[some], process, SHAPLEY))
    errors = np.array([values + (exact.sum(axis=0) - values.sum(axis=0)) / D - exact for values, _ in found])
    chance = errors.std(axis=0)
    assert np.all(np.abs(errors.mean(axis=0)) <= 3.0 * chance / np.sqrt(len(errors)) + conditioned(1e5))
    variances = np.mean([std_error**2 for _, std_error in found], axis=0)
    assert np.all(np.abs(np.log(variances.mean(axis=0) / (chance**2).mean(axis=0))) < np.log(1.5))


def test_a_process_that_claims_to_know_nothing_is_corrected():
    """White noise of a huge scale expects every correction; what residuals show is added all the same."""
    _, process, kernelshap, target = fitted(np.random.default_rng(4))
    fit = kernelshap(target[1:] / process.unit, target[0] / process.unit)
    theta = np.full(D, 1e-12)
    white = FittedHalf.at(process.points, process.halves[0].half, theta, 1.0)
    white = replace(white, variance=1e6 * white.variance)
    found = Correction.of(replace(process, prior=Prior(theta, 1.0), halves=(white,)), fit)
    values = process.posterior(SHAPLEY)[0] / process.unit
    assert np.all((found.added(values) * found.missed).sum(axis=0) > 0.5 * (found.missed**2).sum(axis=0))
    assert np.all(found.wrong > 0.5)


def test_some_left_out_pairs_stand_for_all(monkeypatch):
    """Of 60 of 90 pairs: sums of squares are as large, to the chance of which they are."""
    _, process, kernelshap, target = fitted(np.random.default_rng(4))
    fit = kernelshap(target[1:] / process.unit, target[0] / process.unit)
    every = Correction.of(process, fit).variance.sum(axis=0)
    monkeypatch.setattr(_hypercube, "MAX_CHECKED", 60)
    _, process, kernelshap, target = fitted(np.random.default_rng(4))
    assert len(process.checked()[0]) == 60
    some = Correction.of(process, fit).variance.sum(axis=0)
    assert np.all(np.abs(np.log(some / every)) < np.log(2.0))


def kink(rng, d):
    """What is left of an estate when all others have been paid."""
    claims = rng.integers(1, 30, size=d)
    estate = rng.uniform(0.35, 0.7) * claims.sum()
    return lambda masks: np.maximum(estate - ~masks @ claims, 0.0)


def quota(rng, d):
    weights = rng.integers(1, 10, size=d)
    share = rng.uniform(0.4, 0.7)
    return lambda masks: 1.0 * (masks @ weights >= share * weights.sum())


def runs(family, n_runs, budget, **settings):
    """Return whether values are within two errors, and mean squared errors in units of the largest value, of a new game each run."""
    hits, errors = [], []
    for run in range(n_runs):
        function = family(np.random.default_rng([run, 3]), 12)
        exact = solve(OracleGame(function, 12), method="enumeration").values
        found = solve(OracleGame(function, 12), estimator="process", budget=budget, random_state=run, **settings)
        hits.append(np.abs(found.values - exact) <= 2.0 * found.std_error)
        errors.append(np.mean((found.values - exact) ** 2) / np.max(exact**2))
    return np.mean(hits), np.mean(errors)


FAMILIES = pytest.mark.parametrize(("family", "covered"), [(kink, 0.9), (quota, 0.85)])


@FAMILIES
def test_pairs_beyond_the_process_room_correct_it(monkeypatch, family, covered):
    """Twelve players, 1200 calls, of which the process is fitted to half: the others are drawn, as beyond the usual room."""
    monkeypatch.setattr(_problem.RegressionProblem, "most_fitted", 300)
    hits, errors = runs(family, 8, 1200)
    assert hits >= covered
    assert errors <= runs(family, 8, 602)[1]


@FAMILIES
def test_corrected_values_are_nearer_and_their_errors_hold(monkeypatch, family, covered):
    """Twelve players, 400 calls: 0.89 of the values of quotas are covered, of which few are told apart from chance by so many calls."""
    hits, errors = runs(family, 24, 400, method="regression")
    monkeypatch.setattr(_estimators, "corrected", lambda fit, process, question: process.posterior(question))
    assert hits >= covered
    assert errors < runs(family, 24, 400, method="regression")[1]


def test_values_that_chance_scatters_are_drawn_together():
    """Quotas of forty players, 160 calls: equal shares miss less than what so few calls tell apart, and errors hold."""
    for run in range(3):
        weights = np.random.default_rng(run).integers(1, 10, size=40)
        game = OracleGame(lambda masks, w=weights: 1.0 * (masks @ w >= 0.55 * w.sum()), 40)
        found = solve(game, budget=160, random_state=run, method="regression")
        assert np.abs(found.values - found.values.mean()).max() <= found.std_error.min()


def test_residuals_of_sizes_alone_are_neither_values_nor_errors():
    """A game of sizes gives all players the same: residuals of sizes are no correction."""
    found = solve(OracleGame(lambda masks: np.sqrt(masks.sum(axis=1)), 14), budget=700, random_state=0, method="regression")
    assert np.abs(found.values - found.values.mean()).max() <= 3.0 * found.std_error.max()
    assert found.std_error.max() < 0.02 * np.abs(found.values).max()

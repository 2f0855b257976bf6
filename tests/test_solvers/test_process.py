"""Gaussian processes over coalitions beside dense algebra, enumeration and refits."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from exactshap.games import OracleGame, all_masks
from exactshap.semivalues import find
from exactshap.solvers import solve
from exactshap.solvers.core import player_sets
from exactshap.solvers.sampled._sampling import draw, strata
from exactshap.solvers.sampled._surrogate import SURROGATES, game_values
from exactshap.solvers.sampled.process import (
    Prior,
    Question,
    _halves,
    _hypercube,
    covariance,
    fit_process,
    functionals,
    white_functionals,
)
from exactshap.solvers.sampled.process._halves import JITTER, FittedHalf, Half
from exactshap.solvers.sampled.process._hypercube import HEAVY_TAILS
from exactshap.solvers.sampled.process._relevance import (
    COUNTED_OUTPUTS,
    ENOUGH,
    IMPOSSIBLE,
    LARGE,
    LONGEST,
    TYPICAL_WHITE,
    WHITE,
    Evidence,
    Posterior,
    _sizes,
    evenly_spaced,
    find_relevances,
)
from exactshap.solvers.sampled.process._values import prior_variance, white_variance
from tolerances import DIFFERENCES, HALF_THE_DIGITS, assert_regression_close, conditioned, roundings

RNG = np.random.default_rng(0)


def brute_covariance(points, others, theta, sign):
    """Entry by entry from the definition."""
    out = np.empty((len(points), len(others)))
    for i, j in itertools.product(range(len(points)), range(len(others))):
        same = math.exp(-theta[points[i] != others[j]].sum())
        mirrored = math.exp(-theta[points[i] != -others[j]].sum())
        out[i, j] = (same if sign == 0 else (same + sign * mirrored) / 2) + (sign >= 0)
    return out


def some_posterior(signs, n_outputs=2):
    points = 2.0 * (RNG.random((12, 5)) < 0.5) - 1
    inside, outside = RNG.normal(size=(2, 12, n_outputs))
    return Posterior.of(points, [Half.of(inside, outside if sign else None, sign) for sign in signs])


@pytest.mark.parametrize("signs", [(-1,), (0,), (1,), (-1, 1)])
def test_gradients_against_differences(signs):
    function = some_posterior(signs)
    logs = np.append(RNG.normal(size=5) - 1, -2.0)
    gradient, _ = function(logs)[1]()
    for j in range(6):
        step = 1e-6 * (np.arange(6) == j)
        difference = (function(logs + step)[0] - function(logs - step)[0]) / 2e-6
        assert gradient[j] == pytest.approx(difference, rel=DIFFERENCES, abs=DIFFERENCES)


def test_a_covariance_that_cannot_be_factorised_leaves_the_prior(monkeypatch):
    posterior = some_posterior((-1, 1))
    monkeypatch.setattr(Evidence, "of_halves", lambda *given: None)
    np.testing.assert_allclose(np.exp(posterior.typical), [0.1] * 5 + [TYPICAL_WHITE], rtol=roundings(10))  # 1 / (2 d)
    assert posterior(posterior.typical)[0] == IMPOSSIBLE
    found = find_relevances(posterior.points, posterior.halves, start=posterior.typical + 1.0)
    np.testing.assert_allclose(found, posterior.typical, rtol=roundings(100))


def slow_information(posterior, logs, sign, k):
    """Half of V' K^-1 V / s2 - V' alpha alpha' V / (m s2^2), its V by differences of the covariance written out."""
    points, half = posterior.points, posterior.halves[0]
    m = len(points)

    def gram(z):
        return brute_covariance(points, points, np.exp(z[:-1]), sign) + (np.exp(z[-1]) + JITTER) * np.eye(m)

    y = half.target[:, k]
    alpha = np.linalg.solve(gram(logs), y)
    steps = 1e-6 * np.eye(len(logs))
    moved = np.stack([(gram(logs + step) - gram(logs - step)) @ alpha / 2e-6 for step in steps], axis=1)
    variance, slope = y @ alpha / m, alpha @ moved
    return 0.5 * (moved.T @ np.linalg.solve(gram(logs), moved) / variance - np.outer(slope, slope) / (m * variance**2))


@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_curvatures_against_the_average_information_written_out(sign):
    posterior, logs = some_posterior((sign,)), np.append(RNG.normal(size=5) - 1, -2.0)
    curvature = posterior(logs)[1]()[1] - posterior.precision
    np.testing.assert_allclose(
        curvature, sum(slow_information(posterior, logs, sign, k) for k in (0, 1)), rtol=DIFFERENCES, atol=conditioned(1e8)
    )
    assert np.linalg.eigvalsh(curvature).min() > -1e-9


def test_many_outputs_are_represented_by_some():
    posterior, logs = some_posterior((-1,), 2 * COUNTED_OUTPUTS + 1), np.full(6, -1.0)
    curvature = posterior(logs)[1]()[1] - posterior.precision
    counted = range(0, 2 * COUNTED_OUTPUTS + 1, 3)
    some = sum(slow_information(posterior, logs, -1, k) for k in counted)
    np.testing.assert_allclose(
        curvature, some * (2 * COUNTED_OUTPUTS + 1) / len(counted), rtol=DIFFERENCES, atol=conditioned(1e8)
    )


@pytest.mark.parametrize(("n_rows", "wanted"), [(5, 9), (9, 9), (10, 9), (17, 9), (1000, 9), (1, 3)])
def test_evenly_spaced_rows_are_distinct_and_keep_both_ends(n_rows, wanted):
    rows = evenly_spaced(n_rows, wanted)
    assert len(np.unique(rows)) == len(rows) == min(n_rows, wanted)
    assert (rows[0], rows[-1]) == (0, n_rows - 1)


@pytest.mark.parametrize("strength", [1.0, 2000.0])
@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_the_covariance_its_slopes_and_its_factor_are_those_of_the_definition(sign, strength):
    points, theta, white = 2.0 * (RNG.random((30, 6)) < 0.5) - 1, strength * RNG.exponential(size=6), 0.1
    points = np.unique(np.where(points[:, :1] > 0, points, -points), axis=0)
    dense = brute_covariance(points, points, theta, sign)
    np.testing.assert_allclose(covariance(points, points[:5], theta, sign), dense[:, :5], rtol=roundings(5_000), atol=1e-300)
    found = Evidence.of_halves(points, [Half.of(np.ones((len(points), 1)), None, sign)], theta, white)[0]
    mirrored = brute_covariance(points, -points, theta, 0) - 1.0
    expected = dense - (sign >= 0) - (sign * mirrored if sign else 0.0)
    np.testing.assert_allclose(found.difference, expected, rtol=conditioned(1e5), atol=roundings(5_000))
    lower = np.tril(found.factor)
    np.testing.assert_allclose(
        lower @ lower.T, dense + (white + JITTER) * np.eye(len(points)), rtol=roundings(5_000), atol=roundings(5_000)
    )


@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_halves_are_given_their_rows_block_by_block(monkeypatch, sign):
    monkeypatch.setattr(_halves, "BLOCK_ROWS", 7)
    points = 2.0 * draw(6, 22, RNG, strata(6, paired=True), paired=True) - 1.0
    half, theta = Half.of(*RNG.normal(size=(2, len(points), 2)), sign), RNG.exponential(size=6)
    found = FittedHalf.at(points, half, theta, 0.1)
    gram = brute_covariance(points, points, theta, sign) + (0.1 + JITTER) * np.eye(len(points))
    np.testing.assert_allclose(np.tril(found.factor), np.linalg.cholesky(gram), atol=conditioned(10))
    np.testing.assert_allclose(found.dual, np.linalg.solve(gram, half.target), atol=conditioned(100))


def test_searches_of_ever_more_rows_end_where_one_long_search_ends():
    """The most probable relevances of 200 rows: three searches against scipy's long one."""
    d, rng = 6, np.random.default_rng(5)
    theta = np.array([0.6, 0.3, 0.1, 0.05, 0.02, 0.3])
    points = 2.0 * (rng.random((200, d)) < 0.5) - 1
    dense = brute_covariance(points, points, theta, -1) + 0.01 * np.eye(200)
    halves = [Half.of(np.linalg.cholesky(dense) @ rng.normal(size=(200, 2)), np.zeros((200, 2)), -1)]
    assert _sizes(200) == [118, 200]
    found, posterior = find_relevances(points, halves), Posterior.of(points, halves)

    def function(logs):
        value, slopes = posterior(logs)
        return value, slopes()[0]

    long = minimize(function, found + 0.5, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    assert posterior(found)[0] - long.fun <= ENOUGH / 2  # the last step, not evaluated, gains most of its promise


@pytest.mark.parametrize(("n", "far"), [(LARGE, True), (LARGE + 1, False)])
def test_searches_on_many_rows_take_few_steps(n, far):
    """White calls, from a white part of next to nothing: on many rows it has not come far."""
    points, start = 2.0 * (RNG.random((n, 9)) < 0.5) - 1, np.append(np.full(9, -3.0), WHITE[0])
    halves = [Half.of(RNG.normal(size=(n, 1)), np.zeros((n, 1)), -1)]
    found = find_relevances(points, halves, start)[-1] - start[-1]
    assert (found > 6 * LONGEST) == far


def test_searches_go_from_few_rows_to_all():
    assert _sizes(1000) == [120, 204, 346, 588, 1000]
    assert _sizes(120) == [120]


CASES = [*((index, 1, 1) for index in ("shapley", "banzhaf", "leave-one-out"))]
CASES += [("sii", 2, 2), ("stii", 2, 2), ("moebius", 2, 1), ("fsii", 2, 1)]


@pytest.mark.parametrize(("index", "order", "size"), CASES)
def test_functionals_and_variances_against_enumeration(index, order, size):
    """The index is linear in the table of v: apply it to every unit table, then to the covariance of all coalitions."""
    d, semivalue = 4, find(index)
    theta, white = np.array([0.3, 1.5, 0.05, 0.7]), 0.2
    rho, points = np.tanh(theta / 2), 2.0 * all_masks(d) - 1
    sets = np.array(list(itertools.combinations(range(d), size)))
    wanted = [tuple(players) for players in sets.tolist()]
    units = np.eye(2**d)
    codes = 1 << np.arange(d)
    game = OracleGame(lambda masks: units[masks @ codes], d)
    solution = solve(game, semivalue, order, method="enumeration")
    linear = solution.values[[solution.sets.index(players) for players in wanted]]  # (n_sets, 2^d): D_T(S)
    nodes, weights = semivalue.rule(size, order, degree=d - size)
    exact_weights = semivalue.weights(d, size, order)
    kernel = brute_covariance(points, points, theta, 0) - 1.0
    np.testing.assert_allclose(functionals(points, rho, sets, nodes, weights), kernel @ linear.T, atol=roundings(500))
    np.testing.assert_allclose(white_functionals(points, sets, exact_weights), linear.T, atol=roundings(500))
    mirror = np.eye(2**d)[::-1]
    for sign in (-1, 0, 1):
        share = 0.5 if sign else 1.0
        both = share * (kernel + sign * kernel @ mirror)
        spread = np.einsum("ts,sr,tr->t", linear, both, linear)
        np.testing.assert_allclose(
            prior_variance(rho, sets, nodes, weights, sign), spread, rtol=conditioned(1e7), atol=roundings(5_000)
        )
        noise = white * (np.eye(2**d) + sign * mirror)
        found, spread = white * white_variance(d, size, exact_weights, sign), np.einsum("ts,sr,tr->t", linear, noise, linear)
        np.testing.assert_allclose(found, spread, rtol=conditioned(1e7), atol=roundings(5_000))


def observed(n_players, n, paired, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(2**n_players, 2))
    masks = np.concatenate(
        [np.ones((1, n_players), bool), draw(n_players, n, rng, strata(n_players, paired=paired), paired=paired)]
    )
    codes = 1 << np.arange(n_players)
    return masks, table[masks @ codes], table[~masks @ codes] if paired else None


def surprise(gram, joint, fitted, n_answers):
    """By how much refits without each row miss it, and move the values, beyond what the posterior expects of them."""
    m, d = len(gram), joint.shape[0]
    z2, weights = np.empty((m, fitted.dual.shape[1])), np.empty(m)
    for row in range(m):
        rest = np.arange(m) != row
        gain = np.linalg.solve(gram[np.ix_(rest, rest)], gram[rest, row])
        spread = gram[row, row] - gram[row, rest] @ gain
        z2[row] = (fitted.half.target[row] - gain @ fitted.half.target[rest]) ** 2 / spread / fitted.variance
        weights[row] = ((joint[:, row] - joint[:, rest] @ gain) ** 2).sum() / spread
    return HEAVY_TAILS * (np.maximum(z2.mean(axis=0), weights @ z2 / weights.sum()) + d / n_answers)


@pytest.mark.parametrize("paired", [True, False])
def test_the_process_against_the_textbook(paired):
    """Posterior mean and variance of all 2^d values by dense algebra, then the index applied to them."""
    d = 5
    masks, inside, outside = observed(d, 9, paired)
    process = fit_process(2.0 * masks - 1, inside, outside, even=True, relevance_rows=200, rng=RNG)
    every = 2.0 * all_masks(d) - 1
    question = Question(find("shapley"), 1, player_sets(d, 1))
    linear = white_functionals(every, np.arange(d)[:, None], find("shapley").weights(d)).T
    mean, variance = 0.0, 0.0
    for fitted in process.halves:
        sign = fitted.half.sign
        noise = np.eye(2**d) + sign * np.eye(2**d)[::-1]
        full = brute_covariance(every, every, process.theta, sign) + process.white * noise
        rows = masks @ (1 << np.arange(d))
        cross, gram = full[:, rows], full[np.ix_(rows, rows)]
        mean = mean + cross @ np.linalg.solve(gram, fitted.half.target) * fitted.half.scale
        posterior = full - cross @ np.linalg.solve(gram, cross.T)
        spread = np.einsum("ts,sr,tr->t", linear, posterior, linear)
        factor = surprise(gram, linear @ cross, fitted, process.n_answers)
        variance = variance + spread[:, None] * fitted.variance * fitted.half.scale**2 * factor
    values, std_error = process.solve(question)
    assert_regression_close(values, linear @ mean, 1.0)
    assert_regression_close(game_values(process.game(), find("shapley"), 1), linear @ mean, 1.0)
    np.testing.assert_allclose(std_error**2, variance, rtol=HALF_THE_DIGITS, atol=conditioned(1e5))


@pytest.mark.parametrize("paired", [True, False])
def test_predictions_pass_through_the_observations_and_are_the_game(paired):
    d = 5
    masks, inside, outside = observed(d, 8, paired)
    process = fit_process(2.0 * masks - 1, inside, outside, even=True, relevance_rows=200, rng=RNG)
    assert_regression_close(process.predict(masks), inside, 10.0)
    if paired:
        assert_regression_close(process.predict(~masks), outside, 10.0)
    every = all_masks(d)
    difference = process.predict(every) - process.game().value(every)
    np.testing.assert_allclose(difference - difference[0], 0.0, atol=roundings(50_000))  # the game is known up to its constant


def test_left_out_residuals_against_refits():
    masks, inside, outside = observed(6, 12, True)
    points = 2.0 * masks - 1
    process = fit_process(points, inside, outside, even=False, relevance_rows=200, rng=RNG)
    fitted, residuals = process.halves[0], process.unit * process.checked()[1]
    gram = covariance(points, points, process.theta, -1) + process.white * np.eye(len(points))
    for row in range(len(points)):
        rest = np.arange(len(points)) != row
        mean = gram[row, rest] @ np.linalg.solve(gram[np.ix_(rest, rest)], fitted.half.target[rest]) * fitted.half.scale
        np.testing.assert_allclose(
            residuals[row], fitted.half.target[row] * fitted.half.scale - mean, rtol=HALF_THE_DIGITS, atol=conditioned(1e7)
        )


@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
def test_few_nodes_are_enough_for_many_players(index):
    """Values and errors from the nodes that the relevances need, beside the exact rule of all nodes."""
    d, rng = 44, np.random.default_rng(2)
    masks = np.concatenate([np.ones((1, d), bool), draw(d, 60, rng, strata(d, paired=True), paired=True)])
    inside, outside = rng.normal(size=(2, 61, 1))
    process = fit_process(2.0 * masks - 1, inside, outside, even=False, relevance_rows=200, rng=rng)
    strong = replace(process, prior=Prior(np.linspace(0.01, 1.5, d), process.white))
    semivalue, players = find(index), np.arange(d)[:, None]
    question = Question(semivalue, 1, player_sets(d, 1))
    cross, prior = strong.prior.covariances(-1, strong.points, question), strong.prior.variances(-1, question)
    nodes, weights = semivalue.rule(degree=d - 1)
    exact = semivalue.weights(d)
    sides = [functionals(side, strong.prior.rho, players, nodes, weights) for side in (strong.points, -strong.points)]
    white = [white_functionals(side, players, exact) for side in (strong.points, -strong.points)]
    np.testing.assert_allclose(
        cross, (sides[0] - sides[1]) / 2 + strong.white * (white[0] - white[1]), rtol=roundings(50_000), atol=roundings(5)
    )
    expected = prior_variance(strong.prior.rho, players, nodes, weights, -1) + strong.white * white_variance(d, 1, exact, -1)
    np.testing.assert_allclose(prior, expected, rtol=roundings(50_000))


def test_errors_of_many_rows_are_judged_by_some_of_them(monkeypatch):
    """Eleven of 41 rows, evenly spread, stand last in the factor, and have the residuals that they have among all."""
    masks, inside, outside = observed(7, 40, True)
    settings = {"even": False, "relevance_rows": 200, "rng": RNG}
    _, every = fit_process(2.0 * masks - 1, inside, outside, **settings).checked()
    monkeypatch.setattr(_hypercube, "MAX_CHECKED", 11)
    process = fit_process(2.0 * masks - 1, inside, outside, **settings)
    sets, fitted = tuple((j,) for j in range(7)), process.halves[0]
    rows = evenly_spaced(41, 11)
    np.testing.assert_array_equal(process.order[-11:], rows)
    np.testing.assert_array_equal(process.points, 2.0 * masks[process.order] - 1)
    np.testing.assert_allclose(process.checked()[1], every[rows], rtol=HALF_THE_DIGITS, atol=conditioned(1e6))
    question = Question(find("shapley"), 1, sets)
    joint = process.prior.covariances(-1, process.points, question)
    _, some = process.solve(question)
    monkeypatch.setattr(_hypercube, "MAX_CHECKED", 200)
    _, every = replace(process).solve(question)
    gram = covariance(process.points, process.points, process.theta, -1) + process.white * np.eye(41)
    inverse = np.linalg.inv(gram)
    z2 = fitted.dual**2 / np.diag(inverse)[:, None] / fitted.variance
    moved = ((inverse @ joint) ** 2).sum(axis=1) / np.diag(inverse)

    def factor(chosen):
        weighted = moved[chosen] @ z2[chosen] / moved[chosen].sum()
        return np.maximum(z2[chosen].mean(axis=0), weighted) + 7 / process.n_answers

    last, all_rows = np.arange(30, 41), np.arange(41)
    np.testing.assert_allclose((some / every) ** 2, np.tile(factor(last) / factor(all_rows), (7, 1)), rtol=HALF_THE_DIGITS)


@pytest.mark.parametrize("name", ["process", "boosting"])
def test_surrogates_value_what_they_predict(name):
    d = 6
    masks, inside, outside = observed(d, 20, True)
    surrogate = SURROGATES[name](masks, inside, outside, np.random.default_rng(0))
    twin = solve(OracleGame(surrogate.predict, d), "sii", 2, method="enumeration")
    np.testing.assert_allclose(surrogate.values(find("sii"), 2), twin.values, atol=conditioned(1e6))


def test_players_whom_rows_could_overlook_have_errors():
    """Two that 41 rows show nothing of have relevances, and so errors, of nothing; for errors no player is taken for less than 0.3 / d."""
    d, rng = 7, np.random.default_rng(4)
    masks = np.concatenate([np.ones((1, d), bool), draw(d, 40, rng, strata(d, paired=True), paired=True)])
    weights = np.array([1.0, 0.0, -0.7, 0.9, 0.0, 0.8, 1.2])
    inside, outside = (np.tanh(side @ weights)[:, None] for side in (masks, ~masks))
    process = fit_process(2.0 * masks - 1, inside, outside, even=True, relevance_rows=200, rng=rng)
    question = Question(find("k-sii"), 2, player_sets(d, 2))
    errors, careful = process.solve(question)[1][:, 0], process.wary().solve(question)[1][:, 0]
    idle = np.array([not {1, 4}.isdisjoint(players) for players in question.sets])
    assert process.theta[1] < 1e-4 > process.theta[4]
    np.testing.assert_array_equal(process.wary().theta, np.maximum(process.theta, 0.3 / d))
    assert np.all(careful[idle] > 3.0 * errors[idle])
    seen = process.wary()
    assert seen.wary() is seen
    game = OracleGame(lambda some: np.tanh(some @ weights), d)
    found = solve(game, "k-sii", order=2, budget=82, random_state=0)
    exact = solve(game, "k-sii", order=2, method="enumeration").values
    assert np.all(np.abs(found.values - exact) <= 4.0 * found.std_error)


def test_errors_of_interactions_hold_where_most_players_hardly_count():
    """Steps that half of the players move little or not at all: errors of those whom the calls show nothing of were 1,000 times too small."""
    scores = []
    for seed in range(12):  # 0.92 of the values are covered, and single ones missed by 22 errors, with two designs
        rng = np.random.default_rng(seed)
        weights = np.append([2.0, 1.5, 1.0], np.abs(rng.normal(0.0, 0.3, 13)) * (rng.random(13) < 0.5))
        game = OracleGame(lambda masks, w=weights: 1.0 * (masks @ w > 2.2), 16)
        exact = solve(game, "k-sii", order=2, method="enumeration").values
        found = solve(game, "k-sii", order=2, budget=200, random_state=seed)
        scores.append(np.abs(found.values - exact) / found.std_error)
    assert np.mean(np.array(scores) <= 2.0) >= 0.9
    assert np.max(scores) <= 60.0

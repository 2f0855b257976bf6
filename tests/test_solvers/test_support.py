"""Games of few interactions: the search for them, what it accepts, and what unseen coalitions could hold."""

import math

import numpy as np
import pytest
from scipy.linalg import hadamard

from exactshap.games import OracleGame
from exactshap.semivalues import find
from exactshap.solvers import solve
from exactshap.solvers.sampled import _estimators
from exactshap.solvers.sampled._estimators import ADDITIVE, Candidate, Pairs, polynomials
from exactshap.solvers.sampled._frontier import additive_frontier, character_columns
from exactshap.solvers.sampled._polynomial import fit_polynomial, odd_shares
from exactshap.solvers.sampled._sampling import draw, sizes_of, strata
from exactshap.solvers.sampled._support import MAX_TRANSFORMED, Candidates, Polynomial, _transformed, find_support
from tolerances import assert_close


def of_terms(n_players, sets, coefficients):
    """Return a game of products of signs, (n_sets, n_outputs) coefficients, and its Shapley values."""

    def value(masks):
        return character_columns(masks, sets) @ coefficients

    odd = [len(players) % 2 for players in sets]
    return value, odd_shares(n_players, sets) @ (np.array(odd)[:, None] * coefficients)


def test_polynomials_are_what_they_were_made_of():
    rng = np.random.default_rng(8)
    sets, coefficients = (*((j,) for j in range(6)), (0, 1, 4), (1, 2, 3, 4, 5)), rng.normal(size=(8, 2))
    value, exact = of_terms(6, sets, coefficients)
    masks = rng.random((60, 6)) < 0.5
    found = Polynomial.fitted(sets, 2.0 * masks - 1.0, value(masks))
    scale = np.abs(coefficients).sum()
    assert_close(found.coefficients, coefficients, scale, n_terms=100)
    assert_close(found.predict(2.0 * masks - 1.0), value(masks), scale, n_terms=100)
    assert_close(found.values(find("shapley")), exact, scale, n_terms=100)
    by_definition = solve(OracleGame(value, 6), index="banzhaf").values
    assert_close(found.values(find("banzhaf")), by_definition, scale, n_terms=100)
    assert Polynomial.fitted(sets, 2.0 * masks[:5] - 1.0, value(masks[:5])) is None


def blocks(rng, d):
    """Return a game of thresholds of d sums of five players: interactions of three and five in each."""
    members = [np.sort(rng.choice(d, 5, replace=False)) for _ in range(d)]
    weights, heights = rng.normal(size=(d, 5)), rng.normal(size=d)

    def value(masks):
        return sum(
            h * (np.where(masks[:, some], w, -w).sum(axis=1) > 0.3)
            for some, w, h in zip(members, weights, heights, strict=True)
        )

    def exact():
        phi = np.zeros(d)
        for some, w, h in zip(members, weights, heights, strict=True):
            phi[some] += h * solve(OracleGame(lambda m, w=w: np.where(m, w, -w).sum(axis=1) > 0.3, 5)).values
        return phi

    return value, exact


def test_interactions_among_more_players_than_a_transform_has_are_found():
    value, exact = blocks(np.random.default_rng(0), 32)
    found = solve(OracleGame(value, 32), budget=5000, random_state=0, method="regression")
    assert "exact on every call left out" in found.method
    assert_close(found.values, exact(), scale=32.0, n_terms=5000)


def test_terms_that_leave_something_over_are_corrected():
    """Thirty terms and a ripple of a hundredth of them: nearer than the process, and errors hold."""
    squares, covered = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        sets, coefficients = random_terms(rng, 13, 30, 1)
        weights, (few, _) = rng.normal(size=13), of_terms(13, sets, coefficients)
        game = OracleGame(lambda masks, few=few, w=weights: few(masks)[:, 0] + 0.05 * np.sin(5.0 * masks @ w), 13)
        exact = solve(game).values
        settings = {"budget": 700, "method": "regression", "random_state": seed}
        found, alone = solve(game, **settings), solve(game, estimator="process", **settings)
        assert "5 polynomials of" in found.method
        squares.append([np.mean((one.values - exact) ** 2) for one in (found, alone)])
        covered.append(np.mean(np.abs(found.values - exact) <= 2.0 * found.std_error))
    ours, process = np.mean(squares, axis=0)
    assert ours < 0.2 * process
    assert np.mean(covered) > 0.8


def noisy_pairs(rng):
    """Return pairs of few terms and noise."""
    points = np.where(rng.random((150, 8)) < 0.5, -1.0, 1.0)
    target = (points[:, 0] * points[:, 1] * points[:, 2] + points[:, 3] + 0.1 * rng.normal(size=150))[:, None]
    return Pairs(points, target, np.arange(150) % 5, np.ones(1), np.ones(8))


def test_no_set_joins_twice():
    """Where nothing is left over, all sets correlate as little with it as those that are known."""
    known = additive_frontier(6, 5, odd=True)[:20]
    points = 2.0 * draw(6, 25, np.random.default_rng(0), strata(6, paired=True), paired=True) - 1.0
    assert not set(known) & set(Candidates.of(points, np.ones(6)).strongest(np.zeros(len(points)), known))


def test_polynomials_do_not_know_their_fold():
    pairs = noisy_pairs(np.random.default_rng(10))
    support = find_support(pairs.points, pairs.target, pairs.relevances, ADDITIVE)
    models = polynomials(pairs, support).models
    for fold, model in enumerate(models):
        changed = np.where(pairs.folds[:, None] == fold, 2.0, pairs.target)
        other = polynomials(pairs._replace(target=changed), support).models[fold]
        assert model.sets == other.sets
        np.testing.assert_array_equal(model.coefficients, other.coefficients)


@pytest.mark.parametrize("times", [0.5, 2.0])
def test_models_that_miss_more_than_the_process_do_not_count_however_certain(monkeypatch, times):
    class Certain(Candidate):
        def corrected(self, pairs, semivalue):
            return np.zeros((12, 1)), np.zeros((12, 1)), times * pairs.missed

    monkeypatch.setattr(_estimators, "polynomials", lambda *_: Certain("nothing", [], 1.0))
    weights = np.random.default_rng(0).normal(size=12)
    found = solve(OracleGame(lambda masks: np.exp(masks @ weights), 12), budget=300, random_state=0, method="regression")
    assert ("nothing" in found.method) == (times < 1.0)


def random_terms(rng, players, n_sets, n_outputs):
    sets = tuple(tuple(sorted(rng.choice(players, rng.integers(1, 7), replace=False).tolist())) for _ in range(n_sets))
    return sets, rng.normal(size=(n_sets, n_outputs))


@pytest.mark.parametrize("power", [0, 1, 2, 5])
def test_the_transform_is_the_product_with_a_hadamard_matrix(power):
    values = np.random.default_rng(power).integers(-9, 10, size=2**power)
    np.testing.assert_array_equal(_transformed(values.astype(float)), hadamard(2**power) @ values)


def test_characters_are_products_of_signs():
    rng = np.random.default_rng(0)
    masks, sets = rng.random((20, 7)) < 0.5, ((), (0,), (1, 2, 6), (0, 1, 2, 3, 4, 5, 6))
    members = np.array([np.isin(np.arange(7), players) for players in sets], float)
    by_parity = 1.0 - 2.0 * ((~masks).astype(float) @ members.T % 2.0)
    np.testing.assert_array_equal(by_parity[:, 1:], character_columns(masks, sets[1:]))


@pytest.mark.parametrize(("n_players", "n_interacting"), [(9, 9), (14, 14), (MAX_TRANSFORMED + 5, 12)])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_all_terms_are_in_the_support(n_players, n_interacting, n_outputs):
    rng = np.random.default_rng([n_players, n_outputs])
    masks = draw(n_players, min(400, 2 ** (n_players - 1) - 2), rng, strata(n_players, paired=True), paired=True)
    sets, coefficients = random_terms(rng, rng.permutation(n_players)[:n_interacting], 15, n_outputs)
    value, _ = of_terms(n_players, sets, coefficients)
    relevances = np.isin(np.arange(n_players), np.concatenate(sets)).astype(float)
    found = find_support(2.0 * masks - 1.0, (value(masks) - value(~masks)) / 2.0, relevances, ADDITIVE)
    assert found.largest <= ADDITIVE
    assert {players for players in sets if len(players) % 2} <= set(found.polynomial.sets)
    assert set(found.polynomial.sets[:n_players]) == {(j,) for j in range(n_players)}


@pytest.mark.parametrize("n_pairs", [1, 2, 40, 127])
@pytest.mark.parametrize("n_players", [8, 30])
def test_other_games_are_not_predicted(n_players, n_pairs):
    rng = np.random.default_rng(n_pairs)
    masks = draw(n_players, n_pairs, rng, strata(n_players, paired=True), paired=True)
    target = rng.normal(size=(len(masks), 2))
    found = find_support(2.0 * masks - 1.0, target, rng.random(n_players), ADDITIVE)
    assert found is None or (found.largest > 0.1 and np.all(found.missed > 0.5 * np.var(target)))


@pytest.mark.parametrize(("d", "calls"), [(8, 150), (12, 480), (14, 1000)])
def test_values_of_few_interactions_are_exact_with_errors_of_what_no_call_has_met(d, calls):
    """Errors by their formula: G and the pairs of each size from the calls that were made."""
    rng = np.random.default_rng(d)
    sets, coefficients = random_terms(rng, d, 12, 2)
    value, exact = of_terms(d, sets, coefficients)
    seen = []
    game = OracleGame(lambda masks: (seen.append(masks.copy()), value(masks))[1], d)
    found = solve(game, budget=calls, random_state=0, method="regression")
    assert "terms, exact on every call left out" in found.method
    assert_close(found.values, exact, scale=np.abs(coefficients).sum(), n_terms=calls)
    pairs = np.unique(np.concatenate(seen), axis=0)
    pairs = pairs[pairs[:, 0] & ~pairs.all(axis=1)]
    answers = (value(pairs) - value(~pairs)) / 2.0
    frontier = additive_frontier(d, 1, odd=True)
    total = value(np.ones((1, d), bool)) - value(np.zeros((1, d), bool))
    kernelshap = fit_polynomial(
        character_columns(pairs, frontier), answers, total[0] / 2, pairs, odd_shares(d, frontier), paired=True
    )
    sizes = np.minimum(pairs.sum(axis=1), d - pairs.sum(axis=1))
    missed = sum(
        kernelshap.unseen[i] * np.outer(kernelshap.moves[i] ** 2, (answers**2).mean(axis=0)) / (np.sum(sizes == sizes[i]) + 1)
        for i in range(len(pairs))
    )
    n_left_out = -(-len(pairs) // 5)
    assert_close(found.std_error, np.sqrt(missed / (n_left_out + 2)), scale=np.abs(answers).max(), n_terms=calls)


def test_errors_of_few_interactions_are_those_of_games_that_hold_more_than_their_calls():
    """Half of the games have a bonus for one side of some players, which many calls or none may meet."""
    errors, n_wrong = [], 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sets, coefficients = random_terms(rng, 9, 5, 1)
        players = rng.choice(9, rng.integers(2, 10), replace=False)
        sides, bonus = rng.random(len(players)) < 0.5, rng.normal() * (seed % 2)
        value, _ = of_terms(9, sets, coefficients)

        def with_bonus(masks, value=value, players=players, sides=sides, bonus=bonus):
            return value(masks)[:, 0] + bonus * (masks[:, players] == sides).all(axis=1)

        exact = solve(OracleGame(with_bonus, 9)).values
        found = solve(OracleGame(with_bonus, 9), budget=170, random_state=seed, method="regression")
        if "terms, exact on every call left out" in found.method:
            errors.append([np.mean((found.values - exact) ** 2), np.mean(found.std_error**2)] / np.max(exact**2))
            n_wrong += errors[-1][0] > 1e-20
    assert n_wrong >= 3
    squares, stated = np.mean(errors, axis=0)
    assert squares <= stated


@pytest.mark.parametrize(("d", "calls"), [(10, 200), (14, 700), (14, 3200), (30, 2000)])
def test_what_calls_may_well_miss_is_within_twice_what_a_wrong_game_is_expected_to_hold(d, calls):
    """A bonus of the size of all answers where k players are in and l out: values by their definition."""
    rng = np.random.default_rng(0)
    masks = draw(d, calls // 2 - 1, rng, strata(d, paired=True), paired=True)
    sets, answers = additive_frontier(d, 1, odd=True), rng.choice([-1.0, 1.0], size=(len(masks), 1))
    columns, shares = character_columns(masks, sets), odd_shares(d, sets)
    kernelshap = fit_polynomial(columns, answers, np.ones(1), masks, shares, paired=True)
    least = 2.0 * kernelshap.unseen_error(sizes_of(masks, paired=True), answers).min()
    called = np.bincount(sizes_of(masks, paired=True), minlength=d)
    checked = 0
    for k in range(1, d):
        for n_out in range(1, d - k + 1):
            missed = 1.0
            for size in range(k, d - n_out + 1):
                smaller = min(size, d - size)
                n_called = called[smaller] * (2 if 2 * size == d else 1)
                share = math.comb(d - k - n_out, size - k) / math.comb(d, size)
                missed *= (1.0 - share) ** n_called if n_called < math.comb(d, size) else 0.0
            moved = math.exp(math.lgamma(k) + math.lgamma(n_out + 1) - math.lgamma(k + n_out + 1))
            if missed > 0.05:
                checked += 1
                assert moved <= least
    assert checked

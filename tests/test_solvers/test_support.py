"""Games of few interactions: the search for them, what it accepts, and what unseen coalitions could hold."""

import math

import numpy as np
import pytest
from scipy.linalg import hadamard

from exactshap.games import OracleGame
from exactshap.solvers import solve
from exactshap.solvers.sampled._estimators import ADDITIVE
from exactshap.solvers.sampled._frontier import additive_frontier, character_columns
from exactshap.solvers.sampled._polynomial import fit_polynomial, odd_shares
from exactshap.solvers.sampled._sampling import draw, sizes_of, strata
from exactshap.solvers.sampled._support import MAX_TRANSFORMED, _transformed, find_support
from tolerances import assert_close


def of_terms(n_players, sets, coefficients):
    """Return a game of products of signs, (n_sets, n_outputs) coefficients, and its Shapley values."""

    def value(masks):
        return character_columns(masks, sets) @ coefficients

    odd = [len(players) % 2 for players in sets]
    return value, odd_shares(n_players, sets) @ (np.array(odd)[:, None] * coefficients)


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
    found = find_support(masks, (value(masks) - value(~masks)) / 2.0, relevances, ADDITIVE)
    assert {players for players in sets if len(players) % 2} <= set(found)
    assert set(found[:n_players]) == {(j,) for j in range(n_players)}


@pytest.mark.parametrize("n_pairs", [1, 2, 40, 127])
@pytest.mark.parametrize("n_players", [8, 30])
def test_other_games_have_no_support(n_players, n_pairs):
    rng = np.random.default_rng(n_pairs)
    masks = draw(n_players, n_pairs, rng, strata(n_players, paired=True), paired=True)
    assert find_support(masks, rng.normal(size=(len(masks), 2)), rng.random(n_players), ADDITIVE) is None


@pytest.mark.parametrize(("d", "calls"), [(8, 150), (12, 480), (14, 1000)])
def test_values_of_few_interactions_are_exact_and_errors_no_larger_than_those_of_the_process(d, calls):
    rng = np.random.default_rng(d)
    sets, coefficients = random_terms(rng, d, 12, 2)
    value, exact = of_terms(d, sets, coefficients)
    answers = [
        solve(OracleGame(value, d), budget=calls, random_state=0, method="regression", estimator=name)
        for name in ("auto", "process")
    ]
    assert "exact on every call left out" in answers[0].method
    assert_close(answers[0].values, exact, scale=np.abs(coefficients).sum(), n_terms=calls)
    assert np.all(answers[0].std_error <= answers[1].std_error)


@pytest.mark.parametrize(("d", "calls"), [(10, 200), (14, 700), (14, 3200), (30, 2000)])
def test_two_errors_cover_an_interaction_that_calls_may_well_miss(d, calls):
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

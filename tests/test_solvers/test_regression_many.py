"""Sampling where numbers of coalitions are no floats: against rational arithmetic and games whose values are known."""

import math
from fractions import Fraction

import numpy as np
import pytest

import exactshap
from exactshap.errors import BudgetError
from exactshap.games import OracleGame
from exactshap.semivalues import find
from exactshap.solvers import solve
from exactshap.solvers.core import checked_calls, player_sets
from exactshap.solvers.sampled._estimators import _coefficients
from exactshap.solvers.sampled._problem import RegressionProblem, SamplingSettings
from exactshap.solvers.sampled._sampling import counted_weights, draw, kernel_weights, quotas, row_weights, size_counts, strata
from tolerances import END_WEIGHTS, EPS, PROCESS_Z2, VARIANCE_RATIO, conditioned

MANY = [1020, 1021, 1100]


def close(actual, expected, tolerance=8 * EPS):
    """Compare floats with rationals, one by one."""
    assert len(actual) == len(expected)
    errors = [abs(Fraction(float(found)) / exact - 1) for found, exact in zip(actual, expected, strict=True)]
    assert max(errors, default=0) <= tolerance, float(max(errors))


@pytest.mark.parametrize("d", MANY)
def test_numbers_and_weights_against_rational_arithmetic(d):
    counts, finite = size_counts(d), np.flatnonzero(np.isfinite(size_counts(d)))
    assert (len(finite) == d + 1) == (d <= 1020)
    close(counts[finite], [Fraction(math.comb(d, s)) for s in finite.tolist()])
    sizes = [s for s in finite.tolist() if 0 < s < d]
    close(kernel_weights(d)[np.array(sizes) - 1], [Fraction(1, (d - 1) * math.comb(d - 2, s - 1)) for s in sizes])
    for size in (1, 2):
        shapley, banzhaf = (counted_weights(find(index), d, size, 2) for index in ("sii", "banzhaf-interaction"))
        for overlap in range(size + 1):
            many = [math.comb(d, s + overlap) for s in range(d - size + 1)]
            exact = [Fraction(count, (d - size + 1) * math.comb(d - size, s)) for s, count in enumerate(many)]
            close(shapley[overlap], exact, END_WEIGHTS)
            middle = [s for s, count in enumerate(many) if count.bit_length() > d - 900]  # elsewhere they are next to 0
            close(banzhaf[overlap][middle], [Fraction(many[s], 2 ** (d - size)) for s in middle], END_WEIGHTS)


@pytest.mark.parametrize("d", [9, 1020, 1500, 1501])
@pytest.mark.parametrize("paired", [True, False])
def test_row_weights_are_the_share_of_the_kernel_over_the_rows_of_a_size(d, paired):
    masks = draw(d, 60, np.random.default_rng(0), strata(d, paired=paired), paired=paired)
    sizes = masks.sum(axis=1)
    alike = np.minimum(sizes, d - sizes) if paired else sizes
    seen = [int((alike == size).sum()) * (2 if paired and 2 * size == d else 1) for size in alike]
    expected = [Fraction(d, int(s) * int(d - s) * n) for s, n in zip(sizes, seen, strict=True)]
    close(row_weights(masks, paired=paired), expected)


@pytest.mark.parametrize("index", ["shapley", "chaining"])
@pytest.mark.parametrize("d", [1020, 1030, 2000])
def test_unbiased_contributions_against_rational_arithmetic(d, index):
    """D_T(S) / P(S), term by term."""
    calls = checked_calls(OracleGame(lambda masks: masks.sum(axis=1), d), None, None)
    sets, settings = (*player_sets(d, 1)[:3], (0, 1), (0, d - 1)), SamplingSettings(estimator="unbiased")
    problem = RegressionProblem(calls, np.random.default_rng(0), find(index), 2, sets, settings)
    problem.grow(26)
    assert {int(mask[[0, 1]].sum()) for mask in problem.masks} == {0, 1, 2}
    assert problem.draws.is_drawn[1:-1].all()
    found = (d - 1) * _coefficients(problem, problem.masks, counted=True)
    for mask, row in zip(problem.masks, found, strict=True):
        size = int(mask.sum())
        expected = []
        for players in problem.sets:
            s, t = size - int(mask[list(players)].sum()), len(players)
            p = Fraction(1, (d - t + 1) * math.comb(d - t, s))  # the integral of t^s (1 - t)^(d - |T| - s)
            if index == "chaining" and t == 2:
                p = 2 * Fraction(math.factorial(s + 1) * math.factorial(d - 2 - s), math.factorial(d))
            sign = (-1) ** (t - size + s)
            expected.append(sign * p * math.comb(d, size) * (d - 1))  # each size has the chance 1 / (d - 1)
        close(row, expected, END_WEIGHTS)


@pytest.mark.parametrize("paired", [True, False])
def test_quotas_of_many_players_are_even(paired):
    groups = strata(2000, paired=paired)
    taken = quotas(groups, 4100, np.random.default_rng(0))
    assert taken.sum() == 4100
    wanted = 4100 * groups.shares
    full = groups.counts <= wanted  # the ends are enumerated, the rest is shared alike
    left = (4100 - groups.counts[full].sum()) * groups.shares / groups.shares[~full].sum()
    assert np.all(np.abs(taken - np.where(full, groups.counts, left)) < 1)


def additive_with_pairs(d):
    """A sum with two pairs, and its Shapley values."""
    rng = np.random.default_rng(d)
    slopes = rng.normal(size=d)
    exact = slopes.copy()
    exact[:2] += 2.5
    exact[2:4] -= 2.0
    return lambda masks: masks @ slopes + 5.0 * (masks[:, 0] & masks[:, 1]) - 4.0 * (masks[:, 2] & masks[:, 3]), exact


def test_the_polynomial_of_order_1_is_exact_for_pairs():
    game, exact = additive_with_pairs(1030)
    found = solve(OracleGame(game, 1030), estimator="polynomial", polynomial_order=1, random_state=0)
    np.testing.assert_allclose(found.values, exact, rtol=0, atol=conditioned(1e6))


@pytest.mark.parametrize(
    ("estimator", "d", "budget"), [("auto", 1030, 400), ("auto", 1500, 150), ("unbiased", 1100, 2400), ("unbiased", 1200, 150)]
)
def test_errors_of_many_players_are_of_the_reported_size(estimator, d, budget):
    limits = VARIANCE_RATIO if estimator == "unbiased" else PROCESS_Z2
    settings = {"surrogate": "none"} if estimator == "unbiased" else {}
    game, exact = additive_with_pairs(d)
    found = solve(OracleGame(game, d), budget=budget, estimator=estimator, random_state=0, **settings)
    assert found.n_evaluations <= budget
    ratio = np.mean((found.values - exact) ** 2) / np.mean(found.std_error**2)
    # Games smoother than the prior of a process: its errors may be too large
    assert (limits[0] if estimator == "unbiased" else 0.0) <= ratio <= limits[1]


def test_products_of_many_players():
    """A product of four players among 1026 dummies: the values are those of the four, and the process finds them."""
    factors = np.array([1.5, 0.6, 1.3, 0.8])
    game = OracleGame(lambda masks: np.where(masks[:, :4], factors, 1.0).prod(axis=1), 1030)
    exact = np.append(solve(OracleGame(lambda masks: np.where(masks, factors, 1.0).prod(axis=1), 4)).values, np.zeros(1026))
    found = solve(game, budget=800, random_state=0)
    assert np.all(np.abs(found.values - exact) <= 6.0 * found.std_error)
    assert np.abs(found.values - exact).max() < 0.05 * np.abs(exact).max()


def test_functions_of_many_columns_end_to_end():
    rng = np.random.default_rng(0)
    X, slopes = rng.normal(size=(9, 1030)), rng.normal(size=1030)
    function = lambda rows: rows @ slopes + rows[:, 0] * rows[:, 1]  # noqa: E731
    explanation = exactshap.explain(function, X[5:6], X[:5], budget=1500, random_state=0)
    row, mean = X[5], X[:5].mean(axis=0)
    exact = slopes * (row - mean)
    both, neither = row[0] * row[1], (X[:5, 0] * X[:5, 1]).mean()
    exact[:2] += (both - neither + np.array([1.0, -1.0]) * (row[0] * mean[1] - row[1] * mean[0])) / 2.0
    assert np.mean(((explanation.values[0] - exact) / explanation.std_error[0]) ** 2) < PROCESS_Z2[1]
    assert np.abs(explanation.values[0] - exact).max() < 0.1 * np.abs(exact).max()
    assert np.all(np.abs(explanation.residual) <= explanation.tolerance)


@pytest.mark.parametrize(
    ("d", "order", "text"),
    [
        (5001, 1, r"Sampling coalitions of 5001 players is out of reach\. The limit is 5000 players\. Put columns together"),
        (1500, 2, r"order 2 among 1500 players .* 5048 calls for 1125750 sets are 5\.7e\+09 weights; the limit is 2\.1e\+09"),
    ],
)
def test_what_is_beyond_is_refused_with_its_number(d, order, text):
    with pytest.raises(BudgetError, match=text):
        solve(OracleGame(lambda masks: masks.sum(axis=1), d), order=order)

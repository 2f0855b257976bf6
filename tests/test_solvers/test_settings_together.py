"""Every combination of the sampled solver's settings runs once: values that add up, errors, repeatable."""

import itertools

import numpy as np
import pytest

from exactshap.errors import ExplanationWarning, InputError
from exactshap.games import OracleGame
from exactshap.solvers import solve
from tolerances import exact

N_PLAYERS = 6
LINKED = np.zeros((N_PLAYERS, N_PLAYERS))
LINKED[0, 1] = LINKED[2, 3] = 1.0
FRONTIERS = {"none": None, "screened": "screened", "count": 10, "sets": [(0, 1), (2, 3, 4)], "matrix": LINKED}
POLYNOMIAL = [
    {"estimator": "polynomial", "frontier": frontier, "pairing": pairing, "sampling": sampling, "polynomial_order": order}
    for frontier, pairing, sampling, order in itertools.product(
        FRONTIERS, (True, False), ("leverage", "leverage-1", "kernel"), (None, 1, 2, 3)
    )
]
OTHERS = [
    *({"estimator": name, "relevance_rows": rows} for name in ("auto", "process") for rows in (None, 8)),
    *({"estimator": name, "start_relevance": total} for name in ("auto", "process") for total in (0.1, 2.5)),
    *({"estimator": "unbiased", "surrogate": surrogate} for surrogate in ("process", "boosting", "none")),
    *({"estimator": name} for name in ("kernelshap", "kadd-shap", "unbiased-kernelshap")),
]


def named(settings):
    return ", ".join(f"{name}={value}" for name, value in settings.items() if name != "estimator" or value != "polynomial")


def value(masks):
    """A game of all orders; two outputs."""
    inside = masks @ np.linspace(-1.0, 2.0, masks.shape[1])
    return np.stack([np.tanh(inside) + masks[:, 0] * masks[:, 2], np.exp(0.2 * inside)], axis=1)


def run(settings, budget, index="shapley", order=1):
    chosen = {**settings, "frontier": FRONTIERS[settings["frontier"]]} if "frontier" in settings else settings
    return solve(OracleGame(value, N_PLAYERS), index, order, budget=budget, random_state=1, method="regression", **chosen)


@pytest.mark.filterwarnings("ignore::exactshap.errors.ExplanationWarning")
@pytest.mark.parametrize(
    ("settings", "budget"),
    [*((each, 40) for each in POLYNOMIAL + OTHERS), *((each, 9) for each in POLYNOMIAL[::3] + OTHERS)],
    ids=lambda one: named(one) if isinstance(one, dict) else str(one),
)
def test_every_combination_gives_values_that_add_up(settings, budget):
    found = run(settings, budget)
    assert found.values.shape == found.std_error.shape == (N_PLAYERS, 2)
    assert found.n_evaluations <= budget
    np.testing.assert_allclose(found.values.sum(axis=0), found.full - found.empty, rtol=0.0, atol=exact(10.0, n_terms=64))
    assert np.all(found.std_error >= 0.0)
    if budget == 40 and settings.get("polynomial_order") is None and settings.get("surrogate") != "boosting":
        np.testing.assert_array_equal(run(settings, budget).values, found.values)


@pytest.mark.parametrize("settings", [each for each in POLYNOMIAL if each["polynomial_order"] is None], ids=named)
def test_polynomials_of_enough_calls_come_near(settings):
    """With 56 of the 64 coalitions every frontier is near the values, and within a few of its errors."""
    true = solve(OracleGame(value, N_PLAYERS)).values
    found = run(settings, 56)
    assert np.all(np.abs(found.values - true) <= 0.1 * np.abs(true).max(axis=0))
    assert np.all(np.isfinite(found.std_error))


@pytest.mark.parametrize(("index", "order"), [("banzhaf", 1), ("sii", 2), ("k-sii", 2), ("fsii", 2)])
@pytest.mark.parametrize("settings", [each for each in OTHERS if each.get("surrogate") != "boosting"], ids=named)
@pytest.mark.parametrize("budget", [9, 40])
def test_other_indices_are_estimated_or_refused(settings, index, order, budget):
    if settings["estimator"] in ("kernelshap", "kadd-shap"):
        with pytest.raises(InputError, match="Polynomial regression estimates Shapley values"):
            run(settings, budget, index, order)
        return
    found = run(settings, budget, index, order)
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.std_error).all()


def test_too_few_calls_for_a_polynomial_are_warned_of():
    with pytest.warns(ExplanationWarning, match="do not determine the polynomial"):
        run({"estimator": "polynomial", "frontier": "screened", "pairing": False}, 5)


@pytest.mark.parametrize("total", [0.0, -1.0, np.nan, np.inf, "2.5", True])
def test_a_search_starts_from_a_positive_number(total):
    with pytest.raises(InputError, match="'start_relevance' parameter must be a finite float > 0"):
        run({"estimator": "process", "start_relevance": total}, 40)


def test_where_the_search_starts_changes_values_by_less_than_their_errors():
    settled, started = (run({"estimator": "process", "start_relevance": total}, 60) for total in (None, 2.5))
    assert np.abs(settled.values - started.values).max() < settled.std_error.max()
    assert not np.array_equal(settled.values, started.values)


@pytest.mark.filterwarnings("ignore::exactshap.errors.ExplanationWarning")
@pytest.mark.parametrize(
    "settings",
    [*OTHERS, {"estimator": "polynomial", "polynomial_order": 1}, {"estimator": "polynomial", "frontier": "screened"}],
    ids=named,
)
def test_units_of_the_game_change_no_bit(settings):
    """Squares of such numbers are no floats; errors of polynomials and of unbiased estimates were NaN and infinite."""
    tiny, huge = (
        solve(
            OracleGame(lambda masks, unit=unit: unit * value(masks), N_PLAYERS),
            budget=24,
            random_state=1,
            method="regression",
            **settings,
        )
        for unit in np.ldexp(1.0, [-900, 1000])
    )
    for name in ("values", "std_error"):
        np.testing.assert_array_equal(np.ldexp(getattr(tiny, name), 900), np.ldexp(getattr(huge, name), -1000))
    assert tiny.values.any()


@pytest.mark.filterwarnings("ignore::exactshap.errors.ExplanationWarning")
@pytest.mark.parametrize("estimator", ["auto", "process"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_games_of_zeros_have_values_and_errors_of_zero(estimator, n_outputs):
    game = OracleGame(lambda masks: np.zeros((len(masks), n_outputs)), 14)
    for budget in (2, 28, 30, 56, 300):
        for index, order in (("shapley", 1), ("banzhaf", 1), ("sii", 2)):
            found = solve(game, index, order, budget=budget, random_state=0, method="regression", estimator=estimator)
            assert not found.values.any()
            assert not found.std_error.any()


@pytest.mark.filterwarnings("ignore::exactshap.errors.ExplanationWarning")
@pytest.mark.parametrize("d", [2, 3, 5, 14])
def test_interactions_of_any_few_calls_have_errors(d):
    """From a pair a player on some calls are pairs and others single; 30 to 42 calls of 14 players ended in a raw error."""
    weights = np.linspace(-1.0, 2.0, d)
    for budget in [*range(2, 28, 1 if d < 14 else 3), *range(28, 45), 70]:
        if budget > min(2**d, 5 * d):
            break
        for tol in (None, 1e-3)[: 1 + (d < 14 or 30 <= budget <= 42)]:
            found = solve(
                OracleGame(lambda masks: np.tanh(masks @ weights), d), "sii", 2, budget=budget, tol=tol, random_state=0
            )
            assert np.all(found.std_error >= 0.0) if found.std_error is not None else budget == 2**d
            assert found.n_evaluations <= budget

"""What solve passes on: every solver's own settings, and nothing else; those of the sampled solver in every combination."""

import dataclasses
import inspect
import itertools
import re

import numpy as np
import pytest

from exactshap.errors import ExplanationWarning, InputError, UnknownNameError
from exactshap.games import AdditiveGame, OracleGame, ProductGame
from exactshap.solvers import solve
from exactshap.solvers._solve import _COSTS, SETTINGS
from exactshap.solvers.additive import solve_additive
from exactshap.solvers.core import solve_enumerated
from exactshap.solvers.product import solve_folded, solve_product
from exactshap.solvers.sampled import solve_regression
from exactshap.solvers.sampled._problem import SamplingSettings
from tolerances import exact

PRODUCT = ProductGame([1.0], [[2.0, 3.0, 0.5]], [[1.0, 1.0, 1.0]])
ADDITIVE = AdditiveGame(3, [(0,), (1, 2)], [np.array([0.0, 1.0]), np.arange(4.0)])
ORACLE = OracleGame(lambda masks: masks.sum(axis=1), 3)
SOLVERS = {
    "quadrature": (solve_product, PRODUCT),
    "folded enumeration": (solve_folded, PRODUCT),
    "per-term enumeration": (solve_additive, ADDITIVE),
    "enumeration": (solve_enumerated, ORACLE),
    "regression": (solve_regression, ORACLE),
}
VALUES = {
    "all_nodes": True,
    "batch_size": 2,
    "progress": lambda count: None,
    "estimator": "process",
    "polynomial_order": 1,
    "frontier": [(0, 1)],
    "pairing": True,
    "sampling": "leverage",
    "surrogate": "none",
    "relevance_rows": 9,
    "start_relevance": 2.5,
}


def test_the_table_is_what_the_solvers_take():
    assert tuple(SETTINGS) == tuple(_COSTS)
    for method, (solver, _) in SOLVERS.items():
        keywords = {
            name for name, parameter in inspect.signature(solver).parameters.items() if parameter.kind is parameter.KEYWORD_ONLY
        }
        if method == "regression":
            keywords |= {field.name for field in dataclasses.fields(SamplingSettings)}
        assert set(SETTINGS[method]) == keywords - {"budget", "tol", "random_state"}


@pytest.mark.parametrize("method", SETTINGS)
@pytest.mark.parametrize("name", VALUES)
def test_settings_of_other_methods_are_refused_and_their_owners_named(method, name):
    game = SOLVERS[method][1]
    if name in SETTINGS[method]:
        needs = dict.fromkeys(("polynomial_order", "frontier", "pairing", "sampling"), "polynomial") | {"surrogate": "unbiased"}
        extra = {"estimator": needs[name]} if name in needs else {}
        assert len(solve(game, method=method, **{name: VALUES[name]}, **extra).values) == 3
        return
    owners = " or ".join(repr(other) for other in SETTINGS if name in SETTINGS[other])
    text = (
        f"The {method} solver does not take {name!r}. Got {VALUES[name]!r}. Leave it out, or pass method={owners}, which take"
    )
    with pytest.raises(InputError, match=re.escape(text)) as caught:
        solve(game, method=method, **{name: VALUES[name]})
    assert type(caught.value) is InputError
    hint = "Remove it" if not SETTINGS[method] else "Available: "
    with pytest.raises(UnknownNameError, match=rf"The {method} solver has no setting 'colour'\. .*{hint}"):
        solve(game, method=method, colour="red")


CHOSEN = [
    (PRODUCT, {"estimator": "process"}, "The quadrature solver does not take 'estimator'. Got 'process'.*method='regression'"),
    (ADDITIVE, {"batch_size": 5}, "not take 'batch_size'. Got 5. .*method='enumeration' or 'regression', which take it"),
    (ORACLE, {"all_nodes": True}, "The regression solver does not take 'all_nodes'.*'quadrature' or 'folded enumeration'"),
    (ORACLE, {"batch_sise": 5}, r"has no setting 'batch_sise'\. Did you mean 'batch_size'\?"),
]


@pytest.mark.parametrize(("game", "settings", "text"), CHOSEN, ids=["product", "additive", "oracle", "typing error"])
def test_the_method_that_was_chosen_refuses(game, settings, text):
    with pytest.raises(InputError, match=text):
        solve(game, **settings)


# --- every combination runs once: values that add up, errors, repeatable ----------------------------------------------


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


def said_of(settings):
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
    ids=lambda one: said_of(one) if isinstance(one, dict) else str(one),
)
def test_every_combination_gives_values_that_add_up(settings, budget):
    found = run(settings, budget)
    assert found.values.shape == found.std_error.shape == (N_PLAYERS, 2)
    assert found.n_evaluations <= budget
    np.testing.assert_allclose(found.values.sum(axis=0), found.full - found.empty, rtol=0.0, atol=exact(10.0, n_terms=64))
    assert np.all(found.std_error >= 0.0)
    if budget == 40 and settings.get("polynomial_order") is None and settings.get("surrogate") != "boosting":
        np.testing.assert_array_equal(run(settings, budget).values, found.values)


@pytest.mark.parametrize("settings", [each for each in POLYNOMIAL if each["polynomial_order"] is None], ids=said_of)
def test_polynomials_of_enough_calls_come_near(settings):
    """With 56 of the 64 coalitions every frontier is near the values, and within a few of its errors."""
    true = solve(OracleGame(value, N_PLAYERS)).values
    found = run(settings, 56)
    assert np.all(np.abs(found.values - true) <= 0.1 * np.abs(true).max(axis=0))
    assert np.all(np.isfinite(found.std_error))


@pytest.mark.parametrize(("index", "order"), [("banzhaf", 1), ("sii", 2), ("k-sii", 2), ("fsii", 2)])
@pytest.mark.parametrize("settings", [each for each in OTHERS if each.get("surrogate") != "boosting"], ids=said_of)
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
    ids=said_of,
)
def test_units_of_the_game_change_no_bit(settings):
    """Squares of such numbers are no floats; errors of polynomials and of unbiased estimates were NaN and infinite."""
    games = [OracleGame(lambda masks, unit=unit: unit * value(masks), N_PLAYERS) for unit in np.ldexp(1.0, [-900, 1000])]
    tiny, huge = (solve(game, budget=24, random_state=1, method="regression", **settings) for game in games)
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

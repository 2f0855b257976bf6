"""The regression solver against enumeration, its theorems, its error bars, and bad input."""

import numpy as np
import pytest

from exactshap import Explainer
from exactshap.errors import BudgetError, ExplanationWarning, InputError, InputTypeError, UnknownNameError
from exactshap.games import AdditiveGame, OracleGame, ProductGame
from exactshap.semivalues import beta
from exactshap.solvers import solve
from tolerances import (
    HALF_THE_DIGITS,
    ITERATED,
    JACKKNIFE_Z2,
    PROCESS_Z2,
    VARIANCE_RATIO,
    assert_regression_close,
    conditioned,
    roundings,
)


def product_game(n_players=6, n_terms=5, n_outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.normal(size=n_terms if n_outputs is None else (n_terms, n_outputs))
    return ProductGame(c, rng.normal(size=(n_terms, n_players)), rng.normal(size=(n_terms, n_players)), constant=3.0)


def smooth_game(n_players, seed=0):
    """A game with a few strong players and decaying interactions: factors near one."""
    rng = np.random.default_rng(seed)
    strength = rng.exponential(size=n_players) ** 2
    return ProductGame(rng.normal(size=6), 1.0 + 0.4 * strength * rng.normal(size=(6, n_players)), np.ones((6, n_players)))


def oracle(game, calls=None):
    def function(masks):
        if calls is not None:
            calls.extend(row.tobytes() for row in masks)
        return game.value(masks)

    return OracleGame(function, game.n_players)


def regress(game, index="shapley", order=1, **settings):
    settings.setdefault("random_state", 0)
    return solve(oracle(game), index, order, method="regression", **settings)


FRONTIERS = [
    *({"polynomial_order": k} for k in range(1, 7)),
    *({"polynomial_order": k, "pairing": False} for k in range(1, 6)),
    {"frontier": [(0, 1), (2, 3, 4)]},
    {"frontier": [(0, 1, 2)], "pairing": False},
    {"frontier": 17},
    {"frontier": 30, "pairing": False},
    {"frontier": "screened"},
]


@pytest.mark.parametrize("settings", FRONTIERS, ids=str)
@pytest.mark.parametrize("n_players", [4, 6])
@pytest.mark.filterwarnings("ignore:The sampled coalitions do not determine")
def test_polynomials_are_exact_when_all_coalitions_are_called(settings, n_players):
    if isinstance(settings.get("frontier"), list) and n_players < 5:
        settings = {**settings, "frontier": [(0, 1), (1, 2, 3)]}
    game = product_game(n_players, seed=n_players)
    found = regress(game, budget=2**n_players, estimator="polynomial", **settings)
    assert found.n_evaluations == 2**n_players
    assert_regression_close(found.values, solve(game).values, found.scale)


@pytest.mark.parametrize(
    ("index", "order"),
    [("shapley", 1), ("banzhaf", 1), ("moebius", 1), ("sii", 2), ("k-sii", 2), ("stii", 3), ("fsii", 2), (beta(4, 1), 1)],
    ids=str,
)
@pytest.mark.parametrize("n_outputs", [None, 2])
def test_the_process_is_exact_when_all_coalitions_are_called(index, order, n_outputs):
    game = product_game(5, n_outputs=n_outputs)
    found, exact = regress(game, index, order, budget=32, estimator="process"), solve(game, index, order)
    assert found.sets == exact.sets
    assert_regression_close(found.values, exact.values, found.scale)
    assert_regression_close(found.empty, exact.empty, found.scale)
    assert np.all(found.std_error <= 1e-3 * found.scale)


@pytest.mark.parametrize("n_players", [1, 2, 3])
@pytest.mark.parametrize("estimator", ["auto", "process", "polynomial"])
def test_few_players(n_players, estimator):
    game = product_game(n_players)
    found = regress(game, budget=2**n_players, estimator=estimator)
    assert_regression_close(found.values, solve(game).values, found.scale)


@pytest.mark.parametrize("seed", range(3))
def test_theorem_5_1_paired_order_1_is_order_2(seed):
    """With complements, the linear fit has the values of the quadratic one, on far fewer rows than coalitions."""
    game = product_game(8, seed=seed)
    first, frontier = (
        regress(game, budget=90, estimator="polynomial", sampling="leverage-1", random_state=seed, **settings)
        for settings in ({"polynomial_order": 1}, {"frontier": [(i, j) for j in range(8) for i in range(j)]})
    )
    assert_regression_close(first.values, frontier.values, first.scale)
    partial = regress(
        game, budget=90, estimator="polynomial", sampling="leverage-1", random_state=seed, frontier=[(0, 3), (2, 5)]
    )
    assert_regression_close(first.values, partial.values, first.scale)


def test_paired_order_3_is_order_4_with_enough_rows():
    game = product_game(7)
    odd = regress(game, budget=124, estimator="polynomial", sampling="leverage-1", polynomial_order=3)
    every = [players for players in solve(game, "moebius", 4).sets if len(players) > 1]
    unanimity = regress(game, budget=124, estimator="polynomial", sampling="leverage-1", frontier=every)
    cubic = regress(game, budget=124, estimator="polynomial", sampling="leverage-1", frontier=[s for s in every if len(s) < 4])
    assert_regression_close(odd.values, cubic.values, odd.scale)
    assert_regression_close(odd.values, unanimity.values, odd.scale)


def test_unpaired_orders_differ():
    """The theorem needs pairs: this is what keeps the tests above from passing for free."""
    game = product_game(8)
    one, two = (
        regress(game, budget=120, estimator="polynomial", pairing=False, sampling="leverage-1", polynomial_order=k)
        for k in (1, 2)
    )
    assert np.abs(one.values - two.values).max() > 1e-3


@pytest.mark.parametrize(
    "settings",
    [{"estimator": "polynomial", "polynomial_order": 1}, {"estimator": "kernelshap"}, {"estimator": "process"}, {}],
    ids=str,
)
def test_additive_games_need_few_calls(settings):
    rng = np.random.default_rng(1)
    game = AdditiveGame(20, [(j,) for j in range(20)], [np.array([0.0, w]) for w in rng.normal(size=20)])
    found = regress(game, budget=100, **settings)
    np.testing.assert_allclose(found.values, solve(game).values, rtol=0, atol=ITERATED)


def test_quadratic_games_are_exact_for_paired_order_1_and_cubic_for_3():
    rng = np.random.default_rng(2)
    pairs = [(i, j) for j in range(9) for i in range(j)]
    triples = [(0, 1, 2), (3, 4, 5), (6, 7, 8)]
    quadratic = AdditiveGame(9, pairs, list(rng.normal(size=(len(pairs), 4))))
    cubic = AdditiveGame(9, [*pairs, *triples], [*rng.normal(size=(len(pairs), 4)), *(rng.normal(size=8) for _ in triples)])
    for game, order, budget in ((quadratic, 1, 40), (cubic, 3, 300)):
        found = regress(game, budget=budget, estimator="polynomial", polynomial_order=order)
        assert_regression_close(found.values, solve(game).values, found.scale)


@pytest.mark.parametrize("settings", [{}, {"estimator": "polynomial"}, {"estimator": "unbiased"}], ids=str)
def test_more_calls_help_and_the_budget_is_kept(settings):
    game, errors = smooth_game(13), []
    exact = solve(game).values
    for budget in (40, 120, 700):
        calls = []
        found = solve(oracle(game, calls), method="regression", budget=budget, random_state=0, **settings)
        assert len(calls) == len(set(calls))
        assert found.n_evaluations == len(set(calls)) <= budget
        errors.append(np.mean((found.values - exact) ** 2))
        assert abs(found.residual) <= roundings(5_000) * found.scale
    assert errors[-1] < errors[0] / 10


def mean_square(game, n_seeds, **settings):
    """Return the mean squared error over seeds."""
    return np.mean(errors_over_seeds(game, "shapley", 1, n_seeds, **settings)[0] ** 2)


def test_the_process_beats_kernelshap_on_a_game_with_few_strong_players():
    game = smooth_game(14, seed=3)
    ours, kernelshap = (mean_square(game, 3, budget=300, estimator=name) for name in ("auto", "kernelshap"))
    assert ours < kernelshap / 4


def errors_over_seeds(game, index, order, n_seeds, **settings):
    """Errors and standard errors, each of shape (n_seeds, n_sets)."""
    exact = solve(game, index, order).values
    found = [regress(game, index, order, random_state=seed, **settings) for seed in range(n_seeds)]
    return np.array([f.values - exact for f in found]), np.array([f.std_error for f in found])


@pytest.mark.parametrize(
    ("surrogate", "index", "order"),
    [("none", "shapley", 1), ("none", "banzhaf", 1), ("none", "sii", 2), ("process", "sii", 2)],
)
def test_the_unbiased_estimator_is_unbiased_and_its_variance_too(index, order, surrogate):
    n_seeds, budget = (100, 100) if surrogate == "none" else (20, 160)
    game = smooth_game(9, seed=1)
    error, std_error = errors_over_seeds(game, index, order, n_seeds, budget=budget, estimator="unbiased", surrogate=surrogate)
    means = error.mean(axis=0) * np.sqrt(n_seeds) / error.std(axis=0)
    assert np.abs(means).max() < 4.5, "a value is off by more than chance"
    low, high = VARIANCE_RATIO
    assert low <= (error**2).mean() / (std_error**2).mean() <= high


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        ({"estimator": "process"}, PROCESS_Z2),
        ({"estimator": "polynomial", "polynomial_order": 1}, JACKKNIFE_Z2),
        ({"estimator": "polynomial", "polynomial_order": 2, "pairing": False}, JACKKNIFE_Z2),
    ],
    ids=str,
)
def test_standard_errors_have_the_right_size(settings, limits):
    pairs = [errors_over_seeds(smooth_game(10, seed=s), "shapley", 1, 8, budget=240, **settings) for s in range(4)]
    squares = np.mean([(error / std_error) ** 2 for error, std_error in pairs])
    assert limits[0] <= squares <= limits[1], squares


@pytest.mark.parametrize("surrogate", ["boosting", "process"])
def test_surrogates_lower_the_error(surrogate):
    game, settings = smooth_game(10, seed=4), {"budget": 400, "estimator": "unbiased"}
    plain, helped = (mean_square(game, 2, surrogate=name, **settings) for name in ("none", surrogate))
    assert helped < plain / 3


def test_tolerance_adds_calls_until_it_is_met():
    game = smooth_game(16, seed=2)
    loose, tight = (regress(game, tol=tol) for tol in (1e-1, 2e-3))
    assert loose.std_error.max() <= 1e-1
    assert tight.std_error.max() <= 2e-3
    assert loose.n_evaluations < tight.n_evaluations
    with pytest.warns(ExplanationWarning, match=r"not reached within 50 calls\. Largest standard error"):
        regress(game, tol=1e-9, budget=50)


def test_seeds_repeat_and_leave_the_global_generator_alone():
    game = smooth_game(14)
    np.random.seed(7)  # noqa: NPY002 - the state that must not move
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (regress(game, budget=150, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(first.values, again.values)
    assert np.abs(first.values - other.values).max() > 0
    generator = regress(game, budget=150, random_state=np.random.default_rng(1))
    np.testing.assert_array_equal(first.values, generator.values)


def test_batches_and_progress():
    game, sizes, seen = smooth_game(13), [], []

    def function(masks):
        assert not masks.flags.writeable
        sizes.append(len(masks))
        return game.value(masks)

    found = solve(
        OracleGame(function, 13), method="regression", budget=200, batch_size=32, progress=seen.append, random_state=0
    )
    whole = regress(game, budget=200)
    np.testing.assert_allclose(found.values, whole.values, rtol=0, atol=conditioned(1e6))
    assert max(sizes) <= 32
    assert seen == sorted(seen)
    assert seen[-1] == found.n_evaluations == 200


def test_multi_output_is_each_output():
    game = product_game(9, n_outputs=3)
    found = regress(game, budget=300, estimator="polynomial", polynomial_order=3, sampling="leverage-1")
    assert found.values.shape == found.std_error.shape == (9, 3)
    for k in range(3):
        single = ProductGame(game.c[:, k], game.a[0], game.b[0], constant=game.constant[k])
        one = regress(single, budget=300, estimator="polynomial", polynomial_order=3, sampling="leverage-1")
        assert_regression_close(found.values[:, k], one.values, found.scale)
        np.testing.assert_allclose(found.std_error[:, k], one.std_error, rtol=HALF_THE_DIGITS)


def test_named_special_cases_are_what_they_say():
    game = smooth_game(9)
    for name, settings in {
        "kernelshap": {"estimator": "polynomial", "polynomial_order": 1},
        "kadd-shap": {"estimator": "polynomial", "polynomial_order": 2, "pairing": False},
        "unbiased-kernelshap": {"estimator": "unbiased", "surrogate": "none"},
    }.items():
        np.testing.assert_array_equal(
            regress(game, budget=120, estimator=name).values, regress(game, budget=120, **settings).values
        )


@pytest.mark.parametrize("budget", [2, 3, 4, 5, 7, 12])
def test_tiny_budgets_still_add_up(budget):
    game = smooth_game(13)
    found = regress(game, budget=budget)
    assert found.n_evaluations <= budget
    assert np.all(np.isfinite(found.std_error))
    assert abs(found.full - found.empty - found.values.sum()) <= roundings(5_000) * found.scale


def test_rank_deficiency_is_said():
    with pytest.warns(ExplanationWarning, match=r"do not determine the polynomial\. Rank \d+ of \d+"):
        found = regress(smooth_game(12), budget=60, estimator="polynomial", polynomial_order=3)
    assert np.all(np.isinf(found.std_error))
    assert "rank" in found.method


POLYNOMIAL, COUNT = {"estimator": "polynomial"}, r"parameter must be an int >= 1\. Got "
BAD = [
    ({"budget": 1}, BudgetError, r"budget of one call is too small\. Got budget=1\. Pass at least 2"),
    *(({"budget": bad}, InputError, rf"'budget' {COUNT}") for bad in ("300", np.inf, 2.5, 0, True)),
    *(({"tol": bad}, InputError, r"'tol' parameter must be a finite float > 0\. Got") for bad in (0.0, np.nan, True)),
    ({"random_state": -1}, InputError, r"'random_state' parameter must be None, an int >= 0 or a numpy Generator\. Got -1"),
    *(({"random_state": bad}, InputError, rf"'random_state' parameter .* Got {bad!r}") for bad in ("seven", True)),
    ({"batch_size": 0}, InputError, rf"'batch_size' {COUNT}0"),
    ({"estimator": "kernelshp"}, UnknownNameError, r"Unknown estimator 'kernelshp'\. Did you mean 'kernelshap'\?"),
    ({"surrogate": "tree"}, UnknownNameError, r"Unknown surrogate 'tree'\..*Available: 'process', 'boosting', 'none'"),
    ({"sampling": "leverag"}, UnknownNameError, r"Unknown sampling 'leverag'\. Did you mean 'leverage'\?"),
    ({"estimater": "auto"}, UnknownNameError, r"no setting 'estimater'\. Did you mean 'estimator'\?"),
    *(({**POLYNOMIAL, "polynomial_order": bad}, InputError, rf"'polynomial_order' {COUNT}{bad}") for bad in (0, True)),
    *(({**POLYNOMIAL, "frontier": bad}, InputError, rf"'frontier' {COUNT}{bad}") for bad in (0, True, 2.5)),
    ({**POLYNOMIAL, "frontier": "screen"}, UnknownNameError, r"Unknown frontier 'screen'\. Did you mean 'screened'\?"),
    ({**POLYNOMIAL, "frontier": print}, InputTypeError, r"must be sets of players, their number, a graph, an EBM or"),
    ({**POLYNOMIAL, "frontier": [(0, 99)]}, InputError, r"distinct players within 0\.\.12\. Got \(0, 99\)"),
    ({**POLYNOMIAL, "frontier": [(0, 1), (1, 0)]}, InputError, r"named once\. Got \(0, 1\) twice"),
    ({"frontier": [(0, 1)]}, InputError, r"'auto' does not use 'frontier'\. Got \[\(0, 1\)\]\. Pass estimator='polynomial'"),
    ({"surrogate": "boosting"}, InputError, r"estimator='auto' does not use 'surrogate'.*Pass estimator='unbiased'"),
    ({"polynomial_order": 3, "estimator": "kernelshap"}, InputError, r"'kernelshap' fixes polynomial_order=1\. Got 3\. Leave"),
    ({"frontier": [(0, 1)], "estimator": "kadd-shap"}, InputError, r"'kadd-shap' fixes frontier=None\. Got \[\(0, 1\)\]"),
    ({**POLYNOMIAL, "pairing": "no"}, InputTypeError, r"'pairing' parameter must be True or False\. Got 'no'"),
    ({"progress": 5}, InputTypeError, r"'progress' parameter must be callable\. Got int"),
    ({**POLYNOMIAL, "index": "banzhaf"}, InputError, r"Shapley values of single players only\. Got index 'banzhaf'"),
    ({**POLYNOMIAL, "index": "sii", "order": 2}, InputError, r"Got index 'sii', order 2\. Use estimator='process'"),
    ({"index": "moebius", "estimator": "unbiased"}, InputError, r"no weight on coalitions of size"),
    ({"budget": 4, "estimator": "unbiased"}, InputError, r"needs two pairs of coalitions\. Got 1"),
    ({**POLYNOMIAL, "polynomial_order": 9, "n_players": 40}, BudgetError, r"order 9 in 40 players is out of reach"),
]


@pytest.mark.parametrize(("settings", "error", "match"), BAD, ids=lambda value: str(value)[:40])
def test_bad_input(settings, error, match):
    settings = {"budget": 100, **settings}
    game = smooth_game(settings.pop("n_players", 13))
    with pytest.raises(error, match=match):
        solve(oracle(game), method="regression", **settings)


@pytest.mark.parametrize("tol", [-1.0, 0.0, np.nan, np.inf, "1e-3", True, [1e-3]], ids=str)
@pytest.mark.parametrize("n_players", [4, 14])
def test_tolerances_and_budgets_that_are_none_are_refused_also_where_all_coalitions_are_visited(tol, n_players):
    rows, said = np.ones((3, n_players)), r"'tol' parameter must be a finite float > 0\. Got "
    for budget in ("300", np.inf, 2.5, 0, True):
        with pytest.raises(InputError, match=rf"'budget' {COUNT}"):
            solve(oracle(smooth_game(n_players)), budget=budget)
    with pytest.raises(InputError, match=said):
        solve(oracle(smooth_game(n_players)), tol=tol)
    with pytest.raises(InputError, match=said):
        solve(smooth_game(n_players), tol=tol)  # a product game, which is never sampled
    with pytest.raises(InputError, match=said):
        Explainer(lambda X: X.sum(axis=1), rows, tol=tol)(2.0 * rows[:1])


def test_a_batch_of_games_is_refused():
    game = ProductGame([1.0], np.ones((2, 1, 13)), 0.5)
    with pytest.raises(InputError, match=r"one game at a time\. Got a batch of 2"):
        solve(game, method="regression", budget=50)


FAULTS = [
    (lambda m: np.full(len(m), np.nan), InputError, r"returned NaN or infinity\. First for coalition \[\]"),
    (lambda m: np.ma.array(m.sum(axis=1), mask=m[:, 0]), InputError, r"returned NaN or infinity"),
    (lambda m: np.zeros(3), InputError, r"returned shape \(3,\) for \d+ coalitions"),
    (lambda m: np.zeros((len(m), 0)), InputError, r"returned shape \(\d+, 0\) for \d+ coalitions"),
    (lambda m: ["a"] * len(m), InputTypeError, r"must return real numbers"),
    (lambda m: m.sort(), InputError, r"changes its input"),
    (lambda m: 1 / 0, InputError, r"raised ZeroDivisionError on \d+ coalitions, the first \[\].*division by zero"),
]


@pytest.mark.parametrize(
    ("function", "error", "match"), FAULTS, ids=["nan", "masked", "shape", "no outputs", "text", "mutation", "exception"]
)
def test_faulty_functions(function, error, match):
    with pytest.raises(error, match=match) as caught:
        solve(OracleGame(function, 13), budget=100)
    assert isinstance(caught.value.__cause__, ZeroDivisionError) == ("ZeroDivisionError" in match)

"""Solve games by sampled coalitions and a regression, with a standard error for every value."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count, check_tolerance, checked_generator, is_number
from exactshap._runtime.process_settings import single_threaded_blas
from exactshap.errors import (
    BudgetError,
    ExplanationWarning,
    InputError,
    InputTypeError,
    UnknownNameError,
    did_you_mean,
    message,
)
from exactshap.games import Game
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part, Solution, checked_calls, player_sets
from exactshap.solvers.sampled._adaptive import grow
from exactshap.solvers.sampled._estimators import ESTIMATORS
from exactshap.solvers.sampled._problem import NAMED, SAMPLINGS, RegressionProblem, SamplingSettings, warn_alike
from exactshap.solvers.sampled._surrogate import SURROGATES
from exactshap.solvers.sampled.process import MAX_ROWS

# Calls, and 2 d more, when neither a budget nor a tolerance is given
DEFAULT_CALLS = 2048
MAX_PLAYERS = 5000  # more were never compared with known values
# Weights of each call in each set: 16 GiB
MAX_WEIGHTS = 2**31
USED_BY = {
    "polynomial_order": ("polynomial",),
    "frontier": ("polynomial",),
    "pairing": ("polynomial",),
    "sampling": ("polynomial",),
    "surrogate": ("unbiased",),
    "relevance_rows": ("auto", "process"),
    "start_relevance": ("auto", "process"),
}
# Most calls when a tolerance is given without a budget
TOLERANCE_CALLS = 200_000


def solve_regression(
    game: Game,
    semivalue: Semivalue,
    order: int,
    *,
    budget: int | None = None,
    tol: float | None = None,
    random_state: Any = None,
    batch_size: int | None = None,
    progress: Callable[[int], None] | None = None,
    **settings: Any,
) -> Solution:
    r"""Estimate the values of a game from at most ``budget`` calls, or until every standard error is below ``tol``.

    ================ ==================================================================== ============== =========
    estimator        what                                                                 index          sampling
    ================ ==================================================================== ============== =========
    auto             process; a polynomial that predicts all calls left out exactly,      any            placed
                     or polynomials or networks, where more certain; ``method`` says which
    process          Gaussian process over coalitions (all interaction orders, one        any            placed
                     relevance per player), its exact values, corrected by
                     left-out residuals; errors of both
    polynomial       PolySHAP of ``polynomial_order`` or ``frontier``; jackknife errors   Shapley        leverage
    unbiased         exact values of a ``surrogate`` plus an unbiased estimate of the     any            independent
                     cross-fitted residual; replicate standard errors
    kernelshap       polynomial of order 1
    kadd-shap        polynomial of order 2, unpaired
    unbiased-        unbiased without a surrogate
    kernelshap
    ================ ==================================================================== ============== =========

    No budget: 2 d + 2048 calls, or 200,000 with ``tol``; the process calls at most 24,000. The full and the empty coalition are among them.
    The same seed repeats the same calls in the same order, so that a function that remembers its answers resumes a run that was cut off.
    Up to 2 x 800 calls it only relabels the players of one placed design (of 12 calls a player for other indices than Shapley's, of 2 for
    interactions); beyond, answers decide where ``auto`` and ``process`` call next. The global generator is never touched.

    ``settings``: ``polynomial_order`` (default: 3 when there are rows enough, else 1), ``frontier`` (sets of players; a graph, as
    an object with ``edges`` or a square matrix; an EBM, for its terms; a tree model, for the sets of at most ``polynomial_order``
    columns on its paths; "screened"; or the number of terms of a random partial frontier), ``pairing``, ``start_relevance`` (the
    sum of all players' relevances, about 3, at which their search starts: half the time where games of rows are alike),
    ``sampling`` ("leverage", "leverage-1", "kernel"), ``surrogate`` ("process", "boosting", "none"). Unknown names raise.

    References
    ----------
    .. [1] Fumagalli et al. (2026). PolySHAP: Extending KernelSHAP with interaction-informed polynomial regression. ICLR.
    .. [2] Musco & Witter (2025). Provably accurate Shapley value estimation via leverage score sampling. ICLR.
    """
    chosen = read_settings(settings)
    if game.n_players > MAX_PLAYERS:
        text = f"Sampling coalitions of {game.n_players} players is out of reach"
        raise BudgetError(text, f"The limit is {MAX_PLAYERS} players", "Put columns together with groups=")
    most = most_calls(game.n_players, budget, tol)
    calls = checked_calls(game, batch_size, progress)
    limit = _within_reach(most, chosen.estimator, budget)
    rng = checked_generator(random_state)
    problem = RegressionProblem(calls, rng, semivalue, order, _sets(game.n_players, order, limit), chosen)
    estimate = _until(problem, limit, tol)
    return _finish(estimate, game, problem)


def _sets(n_players: int, order: int, limit: int) -> tuple[tuple[int, ...], ...]:
    """Return the sets to estimate; refuse more than have room."""
    sets = player_sets(n_players, order)
    if order > 1 and len(sets) * limit > MAX_WEIGHTS:
        text = f"Sampled interactions of order {order} among {n_players} players are out of reach"
        what = f"{limit} calls for {len(sets)} sets are {len(sets) * limit:.2g} weights; the limit is {MAX_WEIGHTS:.2g}"
        raise BudgetError(text, what, "Ask for order=1, pass a smaller budget=, or put columns together with groups=")
    return sets


def read_settings(settings: dict[str, Any]) -> SamplingSettings:
    """Return checked settings; unknown names, and settings that the estimator would not use, raise."""
    for name in settings:
        if name not in SamplingSettings.__dataclass_fields__:
            raise UnknownNameError(
                f"The regression solver has no setting {name!r}", do=did_you_mean(name, SamplingSettings.__dataclass_fields__)
            )
    fixed = NAMED.get(str(settings.get("estimator")), {})
    # A named special case takes precedence here; a setting that it would override is refused below
    chosen = SamplingSettings(**{**settings, **fixed})
    for name, known in (("estimator", {**ESTIMATORS, **NAMED}), ("sampling", SAMPLINGS), ("surrogate", SURROGATES)):
        value = getattr(chosen, name)
        if not isinstance(value, str) or value not in known:
            raise UnknownNameError(f"Unknown {name} {value!r}", do=did_you_mean(str(value), known))
    _check_used(settings, chosen.estimator, fixed)
    if chosen.polynomial_order is not None:
        check_count("polynomial_order", chosen.polynomial_order)
    if not isinstance(chosen.pairing, (bool, np.bool_)):
        raise InputTypeError("The 'pairing' parameter must be True or False", f"Got {chosen.pairing!r}")
    if chosen.relevance_rows is not None:
        check_count("relevance_rows", chosen.relevance_rows)
    start = chosen.start_relevance
    if start is not None and not is_number(start, above=True):
        raise InputError("The 'start_relevance' parameter must be a finite float > 0", f"Got {start!r}")
    if isinstance(chosen.frontier, str) and chosen.frontier != "screened":
        raise UnknownNameError(f"Unknown frontier {chosen.frontier!r}", do=did_you_mean(chosen.frontier, ["screened"]))
    if isinstance(chosen.frontier, (bool, int, float, np.number)):
        check_count("frontier", chosen.frontier)
    return chosen


def _check_used(settings: dict[str, Any], estimator: str, fixed: dict[str, Any]) -> None:
    """Refuse settings without effect: those of other estimators, and those fixed by a named special case."""
    for name, owners in USED_BY.items():
        given = settings.get(name)
        if given is None:
            continue
        if name in fixed:
            text = f"estimator={settings['estimator']!r} fixes {name}={fixed[name]!r}"
            raise InputError(text, f"Got {given!r}", "Leave it out")
        if estimator not in owners:
            use = " or ".join(f"estimator={owner!r}" for owner in owners)
            raise InputError(f"estimator={estimator!r} does not use {name!r}", f"Got {given!r}", f"Pass {use}")


def most_calls(n_players: int, budget: int | None, tol: float | None) -> int:
    """Return the largest number of calls; refuse invalid budgets and tolerances."""
    check_tolerance(tol)
    everything = 2**n_players
    if budget is None:
        return min(everything, 2 * n_players + DEFAULT_CALLS if tol is None else TOLERANCE_CALLS)
    budget = check_count("budget", budget)
    if budget < 2:
        raise BudgetError(
            "A budget of one call is too small", f"Got budget={budget}", "Pass at least 2: the full and the empty coalition"
        )
    return min(everything, budget)


def _within_reach(limit: int, estimator: str, budget: int | None) -> int:
    """Return the calls that the estimator can use; the cost of the process grows with their cube."""
    most = 2 * MAX_ROWS
    if limit <= most or estimator not in ("auto", "process"):
        return limit
    if budget is not None:
        text = message(
            f"estimator={estimator!r} calls at most {most} coalitions",
            f"Got budget={budget}",
            "Pass estimator='polynomial' or 'unbiased' to use more",
        )
        warnings.warn(text, ExplanationWarning, stacklevel=4)
    return most


def _until(problem: RegressionProblem, limit: int, tol: float | None) -> Part:
    """Return the estimate of ``limit`` calls, or of as many as the tolerance needs: each round doubles the calls."""
    n_calls = limit if tol is None else min(limit, max(4 * problem.n_players, 64))
    estimator = ESTIMATORS[problem.settings.estimator]
    while True:
        grow(problem, n_calls, limit)
        with single_threaded_blas():  # as for rows on threads, which would otherwise get other bits
            estimate = estimator(problem)  # all coalitions are known, so the function is not called here
        largest = float(np.max(np.asarray(estimate.std_error), initial=0.0))
        if tol is None or n_calls >= limit or largest <= tol:
            break
        n_calls = min(limit, 2 * n_calls)
    if tol is not None and largest > tol:
        got = f"Largest standard error {largest:.3g}, tol={tol:.3g}"
        text = message(f"The tolerance was not reached within {limit} calls", got, "Pass a larger budget=")
        warnings.warn(text, ExplanationWarning, stacklevel=4)
    return estimate


def _finish(estimate: Part, game: Game, problem: RegressionProblem) -> Solution:
    values, calls = estimate.values, len(problem.calls.places)
    if problem.semivalue.is_efficient(problem.order):  # rounding, or the error of an unconstrained estimate
        values = values + (problem.unit * problem.total - values.sum(axis=0)) * _shares(estimate, problem.order)
    answers = problem.calls.table()
    alike = calls < 2**problem.n_players and not np.any(answers != answers[0])  # all coalitions may be alike
    if alike:  # no error bar knows what the others would say
        warn_alike("coalitions", f"{calls} calls of {problem.n_players} players")
    method = f"regression ({estimate.method}, {calls} calls{', all with the same answer' if alike else ''})"
    whole = replace(estimate, values=values, method=method, scale=problem.magnitude)
    is_single = game.single_output
    return whole.finish(game.n_players, problem.semivalue, problem.order, single_output=is_single, n_evaluations=calls)


def _shares(estimate: Part, order: int) -> np.ndarray:
    r"""Return the share (n_sets, n_outputs) of each value in the residual of their sum.

    .. math:: s_T^2 \Big/ \sum_U s_U^2

    with the standard errors s if there are sets of several sizes, so that exact values do not change.
    """
    equal = np.full(estimate.values.shape, 1.0 / len(estimate.values))
    if order == 1:
        return equal
    errors = np.asarray(estimate.std_error)
    largest = errors.max(axis=0)
    known = (largest > 0) & np.isfinite(largest)
    squares = (errors / np.where(known, largest, 1.0)) ** 2  # at most 1, as squares of the errors themselves might overflow
    return np.where(known, squares / np.where(known, squares.sum(axis=0), 1.0), equal)

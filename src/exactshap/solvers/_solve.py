"""Choose the method for a game, and solve it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count, check_tolerance
from exactshap._runtime.machine import Sample, seconds_per_unit
from exactshap._runtime.types import RandomState
from exactshap.errors import BudgetError, InputError, InputTypeError, UnknownNameError, did_you_mean
from exactshap.games import AdditiveGame, Game, OracleGame, ProductGame, n_coalitions
from exactshap.semivalues import Hierarchy, Question, Semivalue, find
from exactshap.solvers.core import Cost, Solution, set_sizes

BATCHES = ("batch_size", "progress")
SETTINGS: dict[str, tuple[str, ...]] = {
    "quadrature": ("all_nodes",),
    "folded enumeration": ("all_nodes",),
    "per-term enumeration": (),
    "enumeration": BATCHES,
    "regression": (
        "estimator",
        "polynomial_order",
        "frontier",
        "pairing",
        "sampling",
        "surrogate",
        "relevance_rows",
        "start_relevance",
        *BATCHES,
    ),
}

# Players of an oracle that are enumerated without a budget: 2^d calls are no more than four times those of a sample, 2 d + 2048. Exact
# values are worth that much. A sample's own 0.2 s are as many calls as 2^13 has more of them where a call takes 33 microseconds; 2^14 would be
# eight times a sample's calls. A count of calls, so that the method depends on no machine and no clock: who knows that a function is
# quicker passes a budget, and a forecast says from which speed on.
MAX_ENUMERATED_ORACLE = 13
# squares of the pairs of calls that a process holds at once, each up to so many pairs: relevances are searched and places found among
# them, then places alone, and more are only conditioned on; then those of both halves of the pairs, for sets of players
SQUARES = ((5.7, 900), (2.3, 4000), (1.1, math.inf))
SQUARES_OF_SETS = ((10.5, 1040), (3.7, 4000), (2.4, math.inf))
# Further arrays of pairs and sets in memory.
ARRAYS_OF_SETS = 8.5
# The work of a regression is the square of its calls; for sets of players so many squares, and so many calls' worth for each set and call.
# From 100 to 8,000 calls of 16 and 60 players this is within a factor of two.
SQUARES_OVER_SINGLES, CALLS_OF_A_SET = 3.0, 14.0
# Calls up to which all of them decide the relevances.
ALL_DECIDE = 2000.0


def solve(
    game: Game,
    index: str | Question = "shapley",
    order: int = 1,
    *,
    budget: int | None = None,
    tol: float | None = None,
    random_state: RandomState = None,
    method: str = "auto",
    **settings: Any,
) -> Solution:
    r"""Solve a game for a semivalue or an interaction index.

    .. math:: \phi_T = \int_0^1 \partial_T V(t, \dots, t)\, \mathrm{d}\mu(t)

    Parameters
    ----------
    game : ProductGame, AdditiveGame, OracleGame, or any object with their attributes
        Game (or batch of games) over ``n_players`` players.
    index : str, Semivalue or Hierarchy, default="shapley"
        Which value; see :func:`exactshap.semivalues.available`, and :func:`exactshap.semivalues.owen` for players in groups.
    order : int, default=1
        Sets of 1..order players get a value. Cost grows as ``n_players ** order``.
    budget : int, default=None
        Most calls of an oracle's function; ignored by exact methods of structured games. None: all 2^d coalitions of up to 13
        players, 2 d + 2048 of more.
    tol : float, default=None
        Sample an oracle until every standard error is below ``tol``.
    random_state : int, Generator or None
        Seed of sampled methods, new at every call by default; the global generator is never touched.
    method : str, default="auto"
        As :func:`exactshap.solvers.choose` says, or one of its methods by name.
    **settings
        Passed to the solver; names that the chosen method does not know raise. Product games take ``all_nodes`` (True: exact rules
        even where the a-priori bound allows fewer nodes). Oracles take ``batch_size`` and ``progress``; those that are sampled, because the
        budget is below 2^d or one of these is given, ``estimator`` ("auto", "process", "polynomial", "unbiased",
        "kernelshap", "kadd-shap", "unbiased-kernelshap"), ``surrogate``, ``polynomial_order``, ``frontier``, ``pairing`` and
        ``sampling``: the page "Black boxes" of the user guide says what each does.

    Returns
    -------
    solution : Solution
        ``values`` of shape ([n_rows,] n_sets[, n_outputs]), in the unit of the game.

    Raises
    ------
    UnknownNameError
        If ``index`` or a setting is an unknown name.
    InputError
        If a setting belongs to another method.
    BudgetError
        If the sets or coalitions cannot fit; nothing is allocated.

    Notes
    -----
    Exact methods are exact up to rounding: a small multiple of ``eps * solution.scale``, plus ``solution.error_bound``.

    References
    ----------
    .. [1] Owen, G. (1972). Multilinear extensions of games. Management Science 18(5).

    Examples
    --------
    >>> from exactshap.games import ProductGame
    >>> game = ProductGame(c=[1.0], a=[[2.0, 3.0]], b=[[1.0, 1.0]])
    >>> solve(game).values
    array([2., 3.])
    >>> solve(game, "banzhaf", order=2).sets
    ((0,), (1,), (0, 1))
    """
    question = find(index)
    check_tolerance(tol)
    if isinstance(question, Hierarchy):
        # Groups and stages are no measure over sizes of coalitions: the methods below do not apply
        from exactshap.solvers.hierarchy import solve_hierarchy

        solution = solve_hierarchy(game, question, order, budget=budget, method=method, **settings)
        return replace(solution, index=question.name)
    if method == "auto" and isinstance(game, OracleGame) and settings.keys() - set(BATCHES):
        # A setting of the sampled solver selects it, even where all coalitions could be called
        method = "regression"
    method = method_of(game, question, order, budget=budget, method=method)
    _check_settings(settings, method)
    if method == "regression":
        settings |= {"budget": budget, "tol": tol, "random_state": random_state}
    solution = _solver(method)(game, question, order, **settings)
    return replace(solution, index=question.name)


def _solver(method: str) -> Callable[..., Solution]:
    """Import the solver that a method names."""
    if method == "quadrature":
        from exactshap.solvers.product import solve_product

        return solve_product
    if method == "folded enumeration":
        from exactshap.solvers.product import solve_folded

        return solve_folded
    if method == "per-term enumeration":
        from exactshap.solvers.additive import solve_additive

        return solve_additive
    if method == "enumeration":
        from exactshap.solvers.core import solve_enumerated

        return solve_enumerated
    from exactshap.solvers.sampled import solve_regression

    return solve_regression


def _check_settings(settings: dict[str, Any], method: str) -> None:
    """Refuse settings of other methods, and name the methods that take them."""
    for name in (name for name in settings if name not in SETTINGS[method]):
        owners = [repr(other) for other, names in SETTINGS.items() if name in names]
        if owners:
            text = f"The {method} solver does not take {name!r}"
            do = f"Leave it out, or pass method={' or '.join(owners)}, which {'take' if len(owners) > 1 else 'takes'} it"
            raise InputError(text, f"Got {settings[name]!r}", do)
        known = SETTINGS[method]
        do = did_you_mean(name, known) if known else "Remove it"
        raise UnknownNameError(f"The {method} solver has no setting {name!r}", do=do)


@dataclass(frozen=True)
class Plan:
    """Name the method that will run, and its cost.

    Attributes
    ----------
    method : str
        One of "quadrature", "folded enumeration", "per-term enumeration", "enumeration", "regression".
    cost : Cost
        Seconds are NaN for calls of the user's own function.
    reason : str
        The reason for this method, and the size of the game.
    """

    method: str
    cost: Cost
    reason: str

    @property
    def exact(self) -> bool:
        """Say whether the values will be exact up to rounding."""
        return self.cost.exact

    def __str__(self) -> str:
        sampled = "sampled, with standard errors" if self.method == "regression" else "exact for an approximated game"
        seconds = "" if math.isnan(self.cost.seconds) else f"about {self.cost.seconds:.2g} s, "
        kind = "exact" if self.exact else sampled
        return f"{self.method} ({kind}): {seconds}{self.cost.bytes / 2**20:.1f} MiB; {self.reason}"


def choose(
    game: Game, index: str | Semivalue = "shapley", order: int = 1, *, budget: int | None = None, method: str = "auto"
) -> Plan:
    """Return the method that :func:`exactshap.solve` will use, with its cost. Nothing is run.

    =============== =============================================== ======================== =======
    game            when                                            method                   exact
    =============== =============================================== ======================== =======
    ProductGame     many background rows, few players               folded enumeration       yes
    ProductGame     otherwise                                       quadrature               yes
    AdditiveGame    always                                          per-term enumeration     yes
    OracleGame      2^d calls fit the budget (or d <= 13 and no     enumeration              yes
                    budget is given)
    OracleGame      otherwise                                       regression               no
    =============== =============================================== ======================== =======

    ``method="enumeration"`` visits all coalitions of any game: the reference implementation. Folded enumeration sums the
    background up once, for all rows; whether it is taken depends on players, background rows, terms, outputs, index and order
    only, never on the machine.

    Parameters
    ----------
    game, index, order, budget, method
        As in :func:`exactshap.solve`.

    Returns
    -------
    plan : Plan
        ``method``, ``cost`` (a :class:`Cost`; seconds are NaN for calls of the user's own function), ``exact`` and ``reason``, printed
        as a sentence.

    Raises
    ------
    InputError, InputTypeError, UnknownNameError
        If the request makes no sense; what :func:`exactshap.solve` would raise.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap.games import ProductGame
    >>> inside, outside = np.full((50, 8), 0.5), np.full((100, 50, 8), 0.25)
    >>> choose(ProductGame(np.ones(50), inside)).method
    'quadrature'
    >>> choose(ProductGame(np.ones(50), inside, outside)).method  # 100 background rows
    'folded enumeration'
    """
    chosen = method_of(game, index, order, budget=budget, method=method)
    cost, reason = _COSTS[chosen](game, find(index), order, budget)
    return Plan(chosen, cost, reason)


def method_of(game: Game, index: str | Semivalue, order: int, *, budget: int | None, method: str) -> str:
    """Return the method that solves a game, or refuse an invalid request."""
    if not (hasattr(game, "value") and hasattr(game, "n_players")):
        raise InputTypeError(
            "`game` must be a ProductGame, an AdditiveGame or an OracleGame",
            f"Got {type(game).__name__}",
            "See exactshap.games",
        )
    check_count("order", order)
    if budget is not None:
        check_count("budget", budget)
    if method == "auto":
        return _automatic(game, index, order, budget)
    if method not in SETTINGS:
        raise InputError("Unknown `method`", f"Got {method!r}", f"Available: 'auto', {', '.join(map(repr, SETTINGS))}")
    if not _applies(game, method):
        raise InputError(f"Method {method!r} does not apply to a {type(game).__name__}", do="Use method='auto'")
    return method


def _applies(game: Game, method: str) -> bool:
    if method == "folded enumeration":
        from exactshap.solvers.product import MAX_FOLDED_PLAYERS

        d = game.n_players
        applies = isinstance(game, ProductGame) and not game.is_complex
        if applies and d > MAX_FOLDED_PLAYERS:
            text = f"Folding 2^{d} coalitions is out of reach"
            raise BudgetError(text, f"The limit is {MAX_FOLDED_PLAYERS} players")
        return applies
    owners = {"quadrature": ProductGame, "per-term enumeration": AdditiveGame}
    owner = owners.get(method)
    return owner is None or isinstance(game, owner)


def _automatic(game: Game, index: str | Semivalue, order: int, budget: int | None) -> str:
    if isinstance(game, ProductGame):
        from exactshap.solvers.product import folding_pays

        pays = folding_pays(game.n_players, game.n_background, game.n_terms, game.n_outputs, find(index), order)
        return "folded enumeration" if pays and not game.is_complex else "quadrature"
    if isinstance(game, AdditiveGame):
        return "per-term enumeration"
    # 2^d calls fit the budget if d is at most its logarithm, rounded down
    affordable = MAX_ENUMERATED_ORACLE if budget is None else math.floor(math.log2(max(budget, 1)))
    return "enumeration" if game.n_players <= affordable else "regression"


# -- costs -------------------------------------------------------------------------------------------------------------


def _quadrature(game: ProductGame, semivalue: Semivalue, order: int, budget: int | None) -> tuple[Cost, str]:
    from exactshap.solvers.product import quadrature_cost

    sizes = game.n_rows or 1, game.n_background, game.n_terms, game.n_players, game.n_outputs
    return quadrature_cost(*sizes, semivalue, order), f"a product game with {game.n_terms} terms"


def _folded(game: ProductGame, semivalue: Semivalue, order: int, budget: int | None) -> tuple[Cost, str]:
    from exactshap.solvers.product import folded_cost

    d, n_terms = game.n_players, game.n_terms
    cost = folded_cost(game.n_rows or 1, game.n_background, n_terms, d, game.n_outputs, order)
    tables = Cost(bytes=8.0 * 2.0**d * min(n_terms, 2.0**22 / 2.0**d))
    return cost + tables, f"2^{d} coalitions of {n_terms} terms, with {game.n_background} background rows summed up once"


def _per_term(game: AdditiveGame, semivalue: Semivalue, order: int, budget: int | None) -> tuple[Cost, str]:
    from exactshap.solvers.additive import stacks_cost

    cost = stacks_cost([len(term) for term in game.subsets], game.n_rows or 1, game.n_outputs, order)
    return cost, f"{len(game.subsets)} terms of at most {max(map(len, game.subsets), default=0)} players"


def _enumeration(game: Game, semivalue: Semivalue, order: int, budget: int | None) -> tuple[Cost, str]:
    d, routes = game.n_players, getattr(game, "routes", None)
    outputs = 1 if isinstance(game, OracleGame) else game.n_outputs
    held = (8.0 * (game.n_rows or 1) * outputs + d) * n_coalitions(d)
    reason = f"all 2^{d} coalitions of {d} players" + ("" if routes is None else f"; {routes}")
    return Cost(math.nan, held, not getattr(game, "approximate", False), "enumeration"), reason


def _regression(game: Game, semivalue: Semivalue, order: int, budget: int | None) -> tuple[Cost, str]:
    routes = getattr(game, "routes", None)
    reason = f"sampled coalitions for index {semivalue.name!r}" + ("" if routes is None else f"; {routes}")
    return Cost(math.nan, 24.0 * n_calls(game.n_players, budget, "regression") * game.n_players, False, "regression"), reason


def n_calls(n_players: int, budget: int | None, method: str, tol: float | None = None) -> float:
    """Return the largest number of calls of an oracle."""
    if method == "enumeration":
        return n_coalitions(n_players)
    from exactshap.solvers.sampled import most_calls

    return float(most_calls(n_players, budget, tol))


def seconds_besides_calls(calls: float, method: str, n_players: int, order: int) -> float:
    """Return the seconds of the solver of an oracle without calls: regressions on sampled coalitions."""
    if method == "enumeration":
        return 0.0
    from exactshap.solvers.sampled import MAX_FITTED, MAX_ROWS

    # Pairs beyond are not fitted; a part of many decides the relevances, and places are by region: seconds grow with a power of 4/3
    fitted: float = min(calls, 2.0 * (MAX_FITTED if order == 1 else MAX_ROWS))
    work: float = fitted**2 * min(ALL_DECIDE / fitted, 1.0) ** (2 / 3)
    if order > 1:
        work = SQUARES_OVER_SINGLES * work + CALLS_OF_A_SET * calls * _n_sets(n_players, order)
    return work * seconds_per_unit("sampled calls, squared", _sampled_game)


def seconds_pooled(calls: float, n_rows: float, n_players: int) -> float:
    """Return the seconds of one process over so many calls, without these."""
    from exactshap.solvers.sampled import pooled_work

    return pooled_work(calls, n_rows, n_players) * seconds_per_unit("pooled calls, cubed", _sampled_pool)


def bytes_besides_calls(calls: float, method: str, n_players: int, order: int) -> float:
    """Return the bytes of the solver of an oracle: covariances between pairs of calls."""
    if method == "enumeration":
        return 0.0
    from exactshap.solvers.sampled import MAX_ROWS

    # The process conditions on at most MAX_ROWS pairs, for any budget
    pairs = min(calls / 2.0, MAX_ROWS)
    # Each stage has squares of its own number of pairs; the largest stage decides
    between = max(squares * min(pairs, most) ** 2 for squares, most in (SQUARES if order == 1 else SQUARES_OF_SETS))
    return 8.0 * (between + (0.0 if order == 1 else ARRAYS_OF_SETS * pairs * _n_sets(n_players, order)))


def _n_sets(n_players: int, order: int) -> float:
    return float(sum(math.comb(n_players, size) for size in set_sizes(order)))


def _sampled_pool() -> Sample:
    from exactshap.solvers.sampled import pooled_work, solve_pooled

    n_rows, n_players, budget = 12, 9, 34
    rows, owners = np.random.default_rng(0).normal(size=(n_rows, n_players)), np.arange(n_players)

    def answers(numbers: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return np.asarray(np.tanh((rows[numbers] * masks).sum(axis=1, keepdims=True)))

    def run() -> object:
        moving = [range(n_players)] * n_rows
        return solve_pooled(answers, rows, owners, moving, find("shapley"), budget=budget, rng=np.random.default_rng(0))

    return pooled_work(n_rows * (budget - 1) + 1, n_rows, n_players), run


def _sampled_game() -> Sample:
    from exactshap.solvers.sampled import most_calls, solve_regression

    game = OracleGame(lambda masks: np.tanh(masks @ np.linspace(-1.0, 2.0, 16)), 16)
    return float(most_calls(16, None, None)) ** 2, lambda: solve_regression(game, find("shapley"), 1, random_state=0)


_COSTS: dict[str, Callable[..., tuple[Cost, str]]] = {
    "quadrature": _quadrature,
    "folded enumeration": _folded,
    "per-term enumeration": _per_term,
    "enumeration": _enumeration,
    "regression": _regression,
}

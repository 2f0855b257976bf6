"""Which method will run, and what it will cost, without running it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral

from exactshap.errors import BudgetError, InputError, InputTypeError, message
from exactshap.games import AdditiveGame, Game, OracleGame, ProductGame, n_coalitions
from exactshap.semivalues import Semivalue, find
from exactshap.solvers.core._solution import set_sizes

__all__ = ["METHODS", "Plan", "choose", "folded_method", "folding_pays"]

METHODS = ("quadrature", "folded enumeration", "per-term enumeration", "enumeration", "regression")
MAX_ENUMERATED_ORACLE = 12
MAX_FOLDED_PLAYERS = 20
WORTH_ROWS = 64  # a background is folded where that pays off within as many rows


@dataclass(frozen=True)
class Plan:
    """The method that will run, and its forecast.

    Attributes
    ----------
    method : str
        One of "quadrature", "folded enumeration", "per-term enumeration", "enumeration", "regression".
    exact : bool
        Whether the values will be exact up to rounding.
    operations : float
        Multiplications, or calls of the game's function for oracles.
    memory : float
        Bytes beyond the game and the result.
    reason : str
        Why this method.
    """

    method: str
    exact: bool
    operations: float
    memory: float
    reason: str

    def __str__(self) -> str:
        sampled = "sampled, with standard errors" if self.method == "regression" else "exact for an approximated game"
        return f"{self.method} ({'exact' if self.exact else sampled}): about {self.operations:.2g} operations, {self.memory / 2**20:.1f} MiB; {self.reason}"


def choose(
    game: Game, index: str | Semivalue = "shapley", order: int = 1, *, budget: int | None = None, method: str = "auto"
) -> Plan:
    """Say which method :func:`solve` will use, and what it will cost, without running it.

    ============== =============================================== ======================== =======
    game           when                                            method                   exact
    ============== =============================================== ======================== =======
    ProductGame    many background rows, few players               folded enumeration       yes
    ProductGame    otherwise                                       quadrature               yes
    AdditiveGame   always                                          per-term enumeration     yes
    OracleGame     2^d calls fit the budget (or d <= 12 and no     enumeration              yes
                   budget is given)
    OracleGame     otherwise                                       regression               no
    ============== =============================================== ======================== =======

    ``method="enumeration"`` visits all coalitions of any game: the reference implementation. Folded enumeration sums the background up
    once, for all rows; whether it is taken depends on players, background rows, terms, outputs, index and order only.

    Parameters
    ----------
    game, index, order, budget, method
        As in :func:`solve`.

    Returns
    -------
    plan : Plan
        Method, operations, bytes and the reason; printed, it is a sentence.

    Raises
    ------
    InputError, InputTypeError, UnknownNameError
        If the request makes no sense; what :func:`solve` would raise.

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
    if not (hasattr(game, "value") and hasattr(game, "n_players")):
        raise InputTypeError(
            message(
                "`game` must be a ProductGame, an AdditiveGame or an OracleGame",
                f"Got {type(game).__name__}",
                "See exactshap.games",
            )
        )
    semivalue = find(index)
    sizes = set_sizes(order)
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, Integral) or budget < 1):
        raise InputError(message("The 'budget' parameter must be an int >= 1", f"Got {budget!r}"))
    d = game.n_players
    rows, outputs = game.n_rows or 1, game.n_outputs if not isinstance(game, OracleGame) else 1
    if method not in ("auto", *METHODS):
        raise InputError(message("Unknown `method`", f"Got {method!r}", f"Available: 'auto', {', '.join(map(repr, METHODS))}"))
    if method == "auto":
        method = _automatic(game, budget, semivalue, order)
    if method == "quadrature" and isinstance(game, ProductGame):
        nodes = (d + 1) // 2
        sets = sum(math.comb(d, size) for size in sizes)
        return Plan(
            method,
            True,
            5.0 * rows * game.n_background * game.n_terms * nodes * max(d, sets),
            8.0 * 32 * (6 * d + sets),
            f"a product game with {game.n_terms} terms; at most {nodes} nodes",
        )
    if method == "folded enumeration" and isinstance(game, ProductGame) and not game.is_complex:
        if d > MAX_FOLDED_PLAYERS:
            raise BudgetError(
                message(f"Folding 2^{d} coalitions is out of reach", f"The limit is {MAX_FOLDED_PLAYERS} players")
            )
        tables = 2.0**d * (min(game.n_terms, 2.0**22 / 2.0**d) + rows * outputs)
        operations = 2.0**d * game.n_terms * (game.n_background + 3.0 * rows * outputs)
        reason = f"2^{d} coalitions of {game.n_terms} terms, whose {game.n_background} background rows are summed up once"
        return Plan(method, True, operations, 8.0 * tables, reason)
    if method == "per-term enumeration" and isinstance(game, AdditiveGame):
        work = sum(
            sum(math.comb(len(term), s) for s in sizes if s <= len(term)) * n_coalitions(len(term)) for term in game.subsets
        )
        largest = max((len(term) for term in game.subsets), default=0)
        return Plan(
            method,
            True,
            rows * outputs * work,
            8.0 * rows * outputs * n_coalitions(largest),
            f"{len(game.subsets)} terms of at most {largest} players",
        )
    routes = getattr(game, "routes", None)
    more = "" if routes is None else f"; {routes}"
    if method == "enumeration":
        reason, exact = f"all 2^{d} coalitions of {d} players{more}", not getattr(game, "approximate", False)
        coalitions = n_coalitions(d)
        return Plan(method, exact, coalitions, (8.0 * rows * outputs + d) * coalitions, reason)
    if method == "regression":
        calls = float(budget or 0)
        return Plan(method, False, calls, 8.0 * calls * d, f"sampled coalitions for index {semivalue.name!r}{more}")
    raise InputError(message(f"Method {method!r} does not apply to a {type(game).__name__}", do="Use method='auto'"))


def _automatic(game: Game, budget: int | None, semivalue: Semivalue, order: int) -> str:
    if isinstance(game, ProductGame):
        pays = folding_pays(game.n_players, game.n_background, game.n_terms, game.n_outputs, semivalue, order)
        return "folded enumeration" if pays and not game.is_complex else "quadrature"
    if isinstance(game, AdditiveGame):
        return "per-term enumeration"
    affordable = MAX_ENUMERATED_ORACLE if budget is None else math.floor(math.log2(max(budget, 1)))
    return "enumeration" if game.n_players <= affordable else "regression"


def folding_pays(n_players: int, n_background: int, n_terms: int, n_outputs: int, semivalue: Semivalue, order: int) -> bool:
    """Say whether to sum up the background first: forecasts of both ways in seconds, from measurements of one core.

    The number of rows has no say: values of a row are independent of the batch that it comes in.
    """
    if n_players > MAX_FOLDED_PLAYERS or n_background < 2 or order > n_players:
        return False
    coalitions = 2.0**n_players
    steps = subtractions = 0.0
    for size in set_sizes(order):
        sets, nodes = math.comb(n_players, size), len(semivalue.rule(size, order, degree=n_players - size)[0])
        steps += nodes * max(n_players, sets)
        subtractions += coalitions * sets * 2.0 ** (size - 1)
    sweep = 1e-9 * n_terms * n_background * (0.85 * steps + 1.2 * n_players)
    row = n_outputs * (n_terms * (9e-8 + 2.8e-10 * coalitions) + 5e-10 * subtractions)
    once = n_terms * n_background * (5e-8 + 1.2e-10 * coalitions)
    return once + WORTH_ROWS * row < WORTH_ROWS * sweep


def folded_method(n_players: int, n_background: int) -> str:
    """Return the words of ``Solution.method``."""
    return f"folded enumeration (2^{n_players} coalitions, {n_background} background rows)"

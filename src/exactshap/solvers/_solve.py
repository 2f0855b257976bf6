"""The one way from a game to its values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactshap._runtime.types import RandomState
from exactshap.errors import InputError, UnknownNameError, did_you_mean, message
from exactshap.games import Game, OracleGame
from exactshap.semivalues import Hierarchy, Question, find
from exactshap.solvers._choose import method_of
from exactshap.solvers.core import Solution

__all__ = ["solve"]

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
        Calls of an oracle's function at most; ignored by exact methods of structured games.
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
    solution = _solve(game, question, order, budget, tol, random_state, method, settings)
    return replace(solution, index=question.name)


def _solve(
    game: Game,
    question: Question,
    order: int,
    budget: int | None,
    tol: float | None,
    random_state: RandomState,
    method: str,
    settings: dict[str, Any],
) -> Solution:
    """Pass a game to the solver that a method names."""
    if isinstance(question, Hierarchy):
        from exactshap.solvers.hierarchy import solve_hierarchy

        return solve_hierarchy(game, question, order, budget=budget, method=method, **settings)
    if method == "auto" and isinstance(game, OracleGame) and settings.keys() - set(BATCHES):
        # A setting of the sampled solver asks for it, even where all coalitions could be called
        method = "regression"
    method = method_of(game, question, order, budget=budget, method=method)
    _check_settings(settings, method)
    if method == "quadrature":
        from exactshap.solvers.product import solve_product

        return solve_product(game, question, order, **settings)  # type: ignore[arg-type]
    if method == "folded enumeration":
        from exactshap.solvers.product import solve_folded

        return solve_folded(game, question, order, **settings)  # type: ignore[arg-type]
    if method == "per-term enumeration":
        from exactshap.solvers.additive import solve_additive

        return solve_additive(game, question, order, **settings)  # type: ignore[arg-type]
    if method == "enumeration":
        from exactshap.solvers.core import solve_enumerated

        return solve_enumerated(game, question, order, **settings)
    from exactshap.solvers.sampled import solve_regression

    return solve_regression(game, question, order, budget=budget, tol=tol, random_state=random_state, **settings)


def _check_settings(settings: dict[str, Any], method: str) -> None:
    """Refuse what the method does not take; name those that do."""
    for name in (name for name in settings if name not in SETTINGS[method]):
        owners = [repr(other) for other, names in SETTINGS.items() if name in names]
        if owners:
            text = f"The {method} solver does not take {name!r}"
            do = f"Leave it out, or pass method={' or '.join(owners)}, which {'take' if len(owners) > 1 else 'takes'} it"
            raise InputError(message(text, f"Got {settings[name]!r}", do))
        known = SETTINGS[method]
        do = did_you_mean(name, known) if known else "Remove it"
        raise UnknownNameError(message(f"The {method} solver has no setting {name!r}", do=do))

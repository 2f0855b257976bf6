"""The one way from a game to its values."""

from __future__ import annotations

from typing import Any

from exactshap.games import Game, OracleGame
from exactshap.semivalues import Semivalue, find
from exactshap.solvers._choose import choose
from exactshap.solvers._solution import Solution

__all__ = ["solve"]

BATCHES = {"batch_size", "progress"}  # settings of enumeration, too


def solve(
    game: Game,
    index: str | Semivalue = "shapley",
    order: int = 1,
    *,
    budget: int | None = None,
    tol: float | None = None,
    random_state: Any = None,
    method: str = "auto",
    **settings: Any,
) -> Solution:
    r"""Solve a game for a semivalue or an interaction index.

    .. math:: \phi_T = \int_0^1 \partial_T V(t, \dots, t)\, \mathrm{d}\mu(t)

    Parameters
    ----------
    game : ProductGame, AdditiveGame or OracleGame
        Game (or batch of games) over ``n_players`` players.
    index : str or Semivalue, default="shapley"
        Which value; see :func:`exactshap.semivalues.available`.
    order : int, default=1
        Sets of 1..order players get a value. Cost grows as ``n_players ** order``.
    budget : int, default=None
        Calls of an oracle's function at most; ignored by exact methods of structured games.
    tol : float, default=None
        Sample an oracle until every standard error is below ``tol``.
    random_state : int, Generator or None
        Seed of sampled methods, new at every call by default; the global generator is never touched.
    method : str, default="auto"
        As :func:`choose` says, or one of its methods by name.
    **settings
        Passed to the solver; unknown names raise. Oracles take ``batch_size`` and ``progress``; those that are sampled, because the
        budget is below 2^d or one of these is given, ``estimator`` ("auto", "process", "polynomial", "unbiased",
        "kernelshap", "kadd-shap", "unbiased-kernelshap"), ``surrogate``, ``polynomial_order``, ``frontier``, ``pairing`` and
        ``sampling``: :func:`exactshap.solvers._regression.solve_regression` says what each does.

    Returns
    -------
    solution : Solution
        ``values`` of shape ([n_rows,] n_sets[, n_outputs]), in the unit of the game.

    Raises
    ------
    UnknownNameError
        If ``index`` is a name that nobody knows.
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
    semivalue = find(index)
    if method == "auto" and isinstance(game, OracleGame) and settings.keys() - BATCHES:
        method = "regression"  # a setting of the sampled solver asks for it, even where all coalitions could be called
    plan = choose(game, semivalue, order, budget=budget, method=method)
    if plan.method == "quadrature":
        from exactshap.solvers._quadrature import solve_product

        return solve_product(game, semivalue, order, **settings)  # type: ignore[arg-type]
    if plan.method == "folded enumeration":
        from exactshap.solvers._folding import solve_folded

        return solve_folded(game, semivalue, order, **settings)  # type: ignore[arg-type]
    if plan.method == "per-term enumeration":
        from exactshap.solvers._additive import solve_additive

        return solve_additive(game, semivalue, order, **settings)  # type: ignore[arg-type]
    if plan.method == "enumeration":
        from exactshap.solvers._enumeration import solve_enumerated

        return solve_enumerated(game, semivalue, order, **settings)
    from exactshap.solvers._regression import solve_regression

    return solve_regression(game, semivalue, order, budget=budget, tol=tol, random_state=random_state, **settings)

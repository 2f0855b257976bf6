"""The R2 of a tree ensemble, split over its features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from exactshap.decompose.r2 import _games as games
from exactshap.decompose.r2._forecast import check_memory, cost_of
from exactshap.decompose.r2._input import R2Problem, prepare_problem
from exactshap.decompose.r2._result import R2Decomposition, R2Sums
from exactshap.errors import BudgetError, ExplanationWarning, UnknownNameError, did_you_mean, message, warn
from exactshap.results.decomposition import frame_backend

__all__ = ["check_game", "decompose_r2", "solve_sums"]

GAMES = ("residual", "ensemble")
WARN_SECONDS, REFUSE_SECONDS = 60.0, 86_400.0


def decompose_r2(
    model: Any,
    X: Any,
    y: Any,
    *,
    game: Literal["residual", "ensemble"] = "residual",
    sample_weight: Any = None,
    per_row: bool = False,
    groups: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    memory_limit: float | None = None,
) -> R2Decomposition:
    r"""Split the R2 of a tree ensemble exactly over its features.

    .. math:: \phi_j = -\frac{1}{\sum_i w_i (y_i - \bar y)^2} \operatorname{Shapley}_j(Q), \quad
              Q(S) = \sum_k \sum_i w_i (r_{ki} - f_{k,S}(x_i))^2 \;\text{ or }\; \sum_i w_i (y_i - c - \sum_k f_{k,S}(x_i))^2

    with :math:`f_{k,S}` the path-dependent expectation of tree k when only the features in S are known. Under
    ``game="residual"`` (left) :math:`r_k` is the residual that tree k was fitted to: y minus the full prediction of the trees
    before it. For forests and single trees, which have no order, it is the mean over all orders of the trees, each tree
    centred at its own :math:`f_{k,\emptyset}`. Under ``game="ensemble"`` (right) features enter all trees at once.

    Parameters
    ----------
    model : fitted tree model
        Gradient boosting, forest or tree of scikit-learn (HistGradientBoosting included), XGBoost, LightGBM or CatBoost for
        regression, or a forest or tree for a binary target; or an ``exactshap.trees.TreeModel``, which has been read already
        (nothing can be held against the library's own predictions then).
    X : array or DataFrame of shape (n_rows, n_features)
        Rows to explain: training or held-out ones.
    y : array of shape (n_rows,)
        Their target; class labels for a classifier.
    game : {"residual", "ensemble"}, default="residual"
        Which question to ask; ``docs/r2.md`` compares the two. The residual game depends on the order of boosted trees and
        costs the pairs of leaves within trees; the ensemble game does not and costs all pairs of leaves of the ensemble.
    sample_weight : array of shape (n_rows,), default=None
        Weights of the rows in every sum, the mean of y included. The trees' covers stay those of training.
    per_row : bool, default=False
        Whether to return each row's part of every share, as ``per_row`` (n_rows, n_features).
    groups : mapping of name to list of columns, default=None
        Columns that are one player. Columns in no group are players of their own.
    n_jobs : int, default=None
        Threads; None is one. The result has the same bits for every value.
    memory_limit : float, default=None
        Bytes that may be used; None allows four fifths of the machine's memory.

    Returns
    -------
    shares : R2Decomposition
        ``values`` (n_features,) in units of R2; ``total``, the R2 of the model's predictions; ``drift = sum(values) - total``.

    Raises
    ------
    UnsupportedModelError, UnsupportedStructureError
        Not a tree ensemble, or its output has no R2 (a margin behind a link, several outputs).
    InputError
        y or the weights do not fit X, are not finite, or y does not vary.
    ExactnessError
        Our routing does not reproduce the model's own predictions.
    BudgetError
        The forecast is above the memory limit, or above a day.

    Warns
    -----
    ExplanationWarning
        The forecast is above a minute.

    Notes
    -----
    The drift is not an error. Efficiency gives ``sum(values) = (Q(no feature) - Q(all features)) / SST``, and Q(no feature)
    is SST only where every tree's cover-weighted mean leaf is 0 and the constant is the mean of y: regularised leaves,
    subsampling, weights and held-out rows break that.

    Exact up to rounding (about 1e-14 in units of R2). Cost: n increments for each pair of units of a tree (half as many as
    leaves) plus m 2^m additions for its m features, or n m^2 / 2 multiplications where that is cheaper (deep trees).

    References
    ----------
    .. [1] Jiang, Z., Zhang, M. and Zhang, D. Fast Calculation of Feature Contributions in Boosting Trees. Algorithm 2 and
       equation 9 define the residual game.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> X, y = make_regression(200, 3, n_informative=2, coef=False, random_state=0)
    >>> model = GradientBoostingRegressor(n_estimators=20, max_depth=2, random_state=0).fit(X, y)
    >>> shares = decompose_r2(model, X, y)
    >>> bool(abs(shares.values.sum() - shares.drift - model.score(X, y)) < 1e-12)
    True
    """
    check_game(game)
    problem = prepare_problem(model, X, y, sample_weight, groups)
    seconds = _forecast(problem, game, per_row, memory_limit)
    solved = _solve(problem, game, per_row, n_jobs)
    problem.check_prediction(solved.prediction)
    backend = None if isinstance(problem.native, np.ndarray) else frame_backend(problem.native)
    return sums(problem, game, solved, seconds).result(solved.rows, backend)


def _forecast(problem: R2Problem, game: str, per_row: bool, memory_limit: float | None) -> float:
    cost = cost_of(problem.layout, game, per_row)
    check_memory(cost, problem.layout, game, memory_limit)
    seconds = cost.seconds
    what = f"The {game!r} game of {problem.ensemble.name} is forecast to take {seconds:.2g} s on one core"
    do = "Pass n_jobs=, fewer rows, or game='residual'" if game == "ensemble" else "Pass n_jobs= or fewer rows"
    if seconds > REFUSE_SECONDS:
        raise BudgetError(message(what, "More than a day", do))
    if seconds > WARN_SECONDS:
        warn(message(what, do=do), ExplanationWarning)
    return seconds


@dataclass(frozen=True, eq=False)
class _Solved:
    """Shapley(Q) by player, its rows if asked for, the predictions, and what ``sum(values)`` must be times SST."""

    shares: np.ndarray
    rows: np.ndarray | None
    prediction: np.ndarray
    expected: float


def _solve(problem: R2Problem, game: str, per_row: bool, n_jobs: int | None) -> _Solved:
    if game == "ensemble":
        return _solve_ensemble(problem, per_row, n_jobs)
    return _solve_boosted(problem, per_row, n_jobs) if problem.boosted else _solve_averaged(problem, per_row, n_jobs)


def _solve_ensemble(problem: R2Problem, per_row: bool, n_jobs: int | None) -> _Solved:
    layout, weights = problem.layout, problem.weights
    target = problem.y - problem.ensemble.trees.constant[0]
    prediction = problem.predict()
    rows = games.ensemble_rows(layout, target, weights, n_jobs) if per_row else None
    shares = games.ensemble_shares(layout, target, weights, n_jobs) if rows is None else rows.sum(axis=0)
    empty = np.sum(weights * (target - layout.empty.sum()) ** 2)
    return _Solved(shares, rows, prediction, empty - np.sum(weights * (problem.y - prediction) ** 2))


def _solve_averaged(problem: R2Problem, per_row: bool, n_jobs: int | None) -> _Solved:
    """Tree by tree where the trees have no order: each meets y less half of the others, all centred (see decompose_r2)."""
    layout, weights = problem.layout, problem.weights
    prediction, empty = problem.predict(), problem.ensemble.trees.constant[0] + layout.empty.sum()
    base = problem.y - empty - 0.5 * (prediction - empty)
    rows = games.residual_rows(layout, base, weights, True, n_jobs) if per_row else None
    shares = games.residual_shares(layout, base, weights, True, n_jobs)[0] if rows is None else rows.sum(axis=0)
    lost = np.sum(weights * (problem.y - empty) ** 2) - np.sum(weights * (problem.y - prediction) ** 2)
    return _Solved(shares, rows, prediction, lost)


def _solve_boosted(problem: R2Problem, per_row: bool, n_jobs: int | None) -> _Solved:
    """Tree by tree in the given order: each meets the residual of those before it (Jiang, Zhang & Zhang, equation 9)."""
    layout, weights = problem.layout, problem.weights
    start = problem.y - problem.ensemble.trees.constant[0]
    residual = start.copy()
    if per_row:
        rows = games.residual_rows(layout, start, weights, False, n_jobs)
        prediction = problem.predict()
        shares, met = rows.sum(axis=0), problem.residual_sums(start)
    else:
        rows = None
        shares, met = games.residual_shares(layout, residual, weights, False, n_jobs)
        prediction = problem.y - residual
    lost = np.sum(weights * start**2) - np.sum(weights * (problem.y - prediction) ** 2)
    drift = np.sum(layout.empty**2) * np.sum(weights) - 2.0 * np.sum(layout.empty * met)
    return _Solved(shares, rows, prediction, lost + drift)


def sums(problem: R2Problem, game: str, solved: _Solved, seconds: float) -> R2Sums:
    """Return what the rows of a problem add to each sum that R2 and its shares are made of."""
    weight = float(np.sum(problem.weights))
    return R2Sums(
        facts={
            "model": problem.ensemble.name,
            "n_trees": problem.ensemble.trees.n_trees,
            "order": "given" if problem.boosted else "averaged",
            "checked_against_model": problem.own_prediction is not None,
        },
        statistic="Brier skill score" if problem.ensemble.unit == "probability" else "R2",
        feature_names=problem.player_names,
        game=game,
        shares=solved.shares,
        expected=solved.expected,
        rounding=problem.rounding(game),
        squared_error=float(np.sum(problem.weights * (problem.y - solved.prediction) ** 2)),
        weight=weight,
        mean=float(np.sum(problem.weights * problem.y)) / weight,
        variation=problem.sst,
        n_rows=len(problem.y),
        seconds=seconds,
    )


def solve_sums(problem: R2Problem, game: str, n_jobs: int | None, memory_limit: float | None) -> R2Sums:
    """Return the sums of a problem, checked against the model's own predictions."""
    seconds = _forecast(problem, game, False, memory_limit)
    solved = _solve(problem, game, False, n_jobs)
    problem.check_prediction(solved.prediction)
    return sums(problem, game, solved, seconds)


def check_game(game: Any) -> None:
    """Refuse the name of a game that is not known."""
    if game not in GAMES:
        raise UnknownNameError(message(f"Unknown game {game!r}", do=did_you_mean(str(game), GAMES)))

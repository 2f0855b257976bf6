"""Split R2 over the features, at once or by parts.

Seconds and bytes of trees are forecast before anything is allocated.
"""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from exactshap._runtime.checks import check_memory_limit
from exactshap._runtime.machine import Sample, physical_memory, seconds_per_unit
from exactshap._runtime.progress import duration
from exactshap._runtime.types import Column, Model, RandomState, TableLike
from exactshap.decompose.r2._fixed import fixed_shares
from exactshap.decompose.r2._games import (
    BLOCK_ROWS,
    CHUNK_BYTES,
    EnsembleLayout,
    bytes_of_a_wave,
    ensemble_rows,
    ensemble_shares,
    lay_out,
    residual_rows,
    residual_shares,
)
from exactshap.decompose.r2._input import (
    R2Decomposition,
    R2Problem,
    R2Sums,
    check_seconds,
    is_trees,
    prepare_rows,
    require_variation,
)
from exactshap.decompose.r2._refit import refit_shares
from exactshap.errors import (
    BudgetError,
    InputError,
    InputTypeError,
    UnknownNameError,
    did_you_mean,
    memory_needed,
    refused_beyond_memory,
)
from exactshap.frames import Table
from exactshap.frames.stored import StoredTable, as_rows
from exactshap.results.decomposition import frame_kind
from exactshap.solvers import Cost
from exactshap.trees import apply
from exactshap.trees.ensemble import complete_forest

GAMES = ("residual", "ensemble")
# Shapley(Q) by player and by row, the predictions, and Q of no player
Solved = tuple[np.ndarray, np.ndarray | None, np.ndarray, float]
# Nanoseconds of a core of 2023; a sample of each method scales them to this machine. They were fitted to 200 decompositions
# of trees of depth 2 to 8, 200 to 10,000 rows and 5 to 30 columns, within a factor of 1.7.
CALL, SHALLOW_TREE, SHALLOW_ROW = 30e3, 1e3, 1.6  # trees of depth at most 3, tree by tree
TREE, NODE_ROW, PAIR, INCREMENT, CELL = 10e3, 5.0, 280.0, 1.6, 0.02  # pairs of units by table
FACTOR = {"residual": 1.6, "ensemble": 0.95}  # of a pair, one of its players and a row, by quadrature
BLOCK = {"residual": 50e3, "ensemble": 10e3}  # of a block of rows
# Of a sample's columns: real rows share cells of the tables, and their sums wait for each other.
SKEW = {"residual": 0.5, "ensemble": 1.75}


@refused_beyond_memory("The decomposition", "Pass the paths of files, which are read in pieces, or fewer rows")
def decompose_r2(
    model: Model,
    X: TableLike,
    y: Column,
    *,
    game: Literal["residual", "ensemble", "refit"] = "residual",
    background: TableLike = None,
    value_function: str = "auto",
    sample_weight: Column = None,
    per_row: bool = False,
    groups: Mapping[str, Any] | None = None,
    n_orders: int | None = None,
    n_bootstrap: int = 0,
    level: float = 0.95,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    memory_limit: float | None = None,
) -> R2Decomposition:
    r"""Split the R2 of a model exactly over its features.

    .. math:: \phi_j = -\frac{1}{\sum_i w_i (y_i - \bar y)^2} \operatorname{Shapley}_j(Q), \quad
              Q(S) = \sum_k \sum_i w_i (r_{ki} - f_{k,S}(x_i))^2 \;\text{ or }\; \sum_i w_i (y_i - c - \sum_k f_{k,S}(x_i))^2

    with :math:`f_{k,S}` the path-dependent expectation of tree k when only the features in S are known. Under
    ``game="residual"`` (left) :math:`r_k` is the residual that tree k was fitted to: y minus the full prediction of the trees
    before it. For forests and single trees, which have no order, it is the mean over all orders of the trees, each tree
    centred at its own :math:`f_{k,\emptyset}`. Under ``game="ensemble"`` (right) features enter all trees at once. Linear, additive
    and kernel models are one such tree, at their own value functions: both games are the same. Under ``game="refit"`` a linear
    regression is fitted again to each S, and Q(S) is its squared error (Shapley regression, LMG).

    Parameters
    ----------
    model : fitted model
        Gradient boosting, forest or tree of scikit-learn (HistGradientBoosting included), XGBoost, LightGBM or CatBoost for
        regression, or a forest or tree for a binary target; or an ``exactshap.trees.TreeModel``, which has been read already
        (nothing can be held against the library's own predictions then). Or a linear, additive or kernel regression with one
        output; with ``game="refit"`` a ``LinearRegression``, fitted or not.
    X : array or DataFrame of shape (n_rows, n_features), or path
        Rows to explain: training or held-out ones. A Parquet file or folder (or a ``scale.StoredTable``, which leaves columns out)
        is read in pieces that add up.
    y : array of shape (n_rows,), or str
        Their target; class labels for a classifier. Of a stored X the name of its column.
    game : {"residual", "ensemble", "refit"}, default="residual"
        Which game is solved; ``docs/r2.md`` compares the first two. The residual game depends on the order of boosted trees and
        costs the pairs of leaves within trees; the ensemble game does not and costs all pairs of leaves of the ensemble.
    background : array or DataFrame of shape (n_background, n_features), default=None
        Rows that unknown features of linear, additive and kernel models come from. Trees average over their covers instead.
    value_function : str, default="auto"
        For linear, additive and kernel models, as in :func:`exactshap.explain`.
    sample_weight : array of shape (n_rows,), default=None
        Weights of the rows in every sum, the mean of y included; of a stored X the name of its column. The trees' covers stay those of training.
    per_row : bool, default=False
        Whether to return each row's part of every share, as ``per_row`` (n_rows, n_features).
    groups : mapping of name to list of columns, default=None
        Columns that are one player. Columns in no group are players of their own.
    n_orders : int, default=None
        For refits: random orders of the players to average over. None visits all subsets of up to 25 players, and takes 2,000
        orders beyond; ``std_error`` is then their standard error.
    n_bootstrap : int, default=0
        For refits: resamples of the rows, for ``intervals``.
    level : float, default=0.95
        Confidence level of these intervals.
    random_state : int or Generator, default=None
        Seed of orders and resamples.
    n_jobs : int, default=None
        Threads; None is one, -1 one for each core. The result has the same bits for every value.
    memory_limit : float, default=None
        Bytes that may be used; None allows four fifths of the machine's memory.

    Returns
    -------
    shares : R2Decomposition
        ``values`` (n_features,) in units of R2; ``total``, the R2 of the model's predictions; ``drift = sum(values) - total``.

    Raises
    ------
    UnsupportedModelError, UnsupportedStructureError
        Not one of these models, or its output has no R2 (a margin behind a link, several outputs).
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
    .. [2] Lindeman, R., Merenda, P. and Gold, R. (1980). Introduction to Bivariate and Multivariate Analysis: the game of refits.
       Groemping, U. (2006). Relative importance for linear regression in R: the package relaimpo. JSS 17(1).

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
    is_replaced = background is not None or value_function != "auto"
    _refuse_other_settings(game, per_row, n_orders is not None or n_bootstrap != 0, is_replaced)
    stored = isinstance(X, (StoredTable, str, os.PathLike))
    if game == "refit":
        if stored:
            do = "Read it: decompose_r2(model, pandas.read_parquet(path)[columns], y, game='refit')"
            raise InputError("Refits need their rows in memory", "Got a stored table", do)
        return refit_shares(model, X, y, sample_weight, groups, n_jobs, n_orders, n_bootstrap, level, random_state)
    check_game(game)
    if stored:
        return _of_stored(
            model, X, y, sample_weight, per_row, game=game, groups=groups, n_jobs=n_jobs, memory_limit=memory_limit
        )
    if not is_trees(model):
        if per_row:
            raise InputError("Only trees have parts of R2 by rows", "Got per_row=True", "Pass per_row=False")
        return fixed_shares(model, X, y, sample_weight, groups, background, value_function)
    if background is not None or value_function not in ("auto", "path_dependent"):
        got = "Got a background" if background is not None else f"Got value_function={value_function!r}"
        do = "Leave background= and value_function= out"
        raise InputError("The R2 of trees has one value function: means over their covers", got, do)
    problem = prepare_rows(model, X, y, sample_weight, groups, n_jobs)
    problem.require_variation()
    sums, rows = solve_sums(problem, game, n_jobs, memory_limit, per_row=per_row)
    return sums.result(rows, frame_kind(problem.table.native))


def _refuse_other_settings(game: Any, per_row: bool, is_resampled: bool, is_replaced: bool) -> None:
    """Refuse settings that belong to another game."""
    refit = game == "refit"
    if is_resampled and not refit:
        raise InputError("`n_orders` and `n_bootstrap` are settings of refits", f"Got game={game!r}", "Pass game='refit'")
    if refit and per_row:
        raise InputError("Refits have no parts of R2 by rows", "Got per_row=True", "Pass per_row=False")
    if refit and is_replaced:
        do = "Leave background= and value_function= out, or pass game='ensemble'"
        raise InputError("Refits replace no columns: they leave them out of the fit", "Got a background", do)


def check_game(game: Any) -> None:
    """Refuse an unknown game."""
    if game == "refit":
        do = "Call decompose_r2(model, X, y, game='refit') on all rows"
        raise InputError("Shares of refits are not sums over rows, so that parts cannot be added up", "Got game='refit'", do)
    if game not in GAMES:
        raise UnknownNameError(f"Unknown game {game!r}", do=did_you_mean(str(game), GAMES))


def _of_stored(model: Model, X: TableLike, y: Column, sample_weight: Column, per_row: bool, **settings: Any) -> R2Decomposition:
    """Decompose a stored table by adding up its parts."""
    if per_row:
        do = "Pass per_row=False, or the rows in parts that fit"
        raise InputError("The parts of each row of a stored table are not kept", "Got per_row=True", do)
    column_names = [name for name in (y, sample_weight) if name is not None]
    if y is None or not all(isinstance(name, str) for name in column_names):
        got = f"Got {', '.join(type(name).__name__ for name in (y, sample_weight))}"
        raise InputTypeError("`y` and `sample_weight` of a stored table are names of its columns", got)
    rows = as_rows(X)
    assert isinstance(rows, StoredTable)
    features = rows.select(drop=column_names).names
    if not rows.n_rows:
        raise InputError(f"{rows.source.name} has no rows")

    def part(piece: Table) -> PartialR2:
        names = piece.names or ()
        target, weights = (None if name is None else piece.column(names.index(name)) for name in (y, sample_weight))
        return PartialR2(
            model, piece.select([names.index(name) for name in features]).native, target, sample_weight=weights, **settings
        )

    # Sums of parts are small: one piece of the table is in memory at a time.
    return functools.reduce(operator.add, map(part, rows.pieces())).result()


class PartialR2:
    """Decompose R2 over one part of a table. Parts add up to the whole.

    Parameters
    ----------
    model : fitted tree model
    X : array or DataFrame of shape (n_rows, n_features)
        Some of the rows.
    y : array of shape (n_rows,)
        Their target; it may be constant in a part.
    game, sample_weight, groups, n_jobs, memory_limit
        As in :func:`exactshap.decompose_r2`.

    Raises
    ------
    ExactshapError
        Whatever :func:`exactshap.decompose_r2` raises but for a constant y, which ``result`` refuses.

    Notes
    -----
    Shares are off from those of the whole table by rounding only (about 1e-14 in units of R2). A part is picklable and as small
    as the number of features, whatever its rows.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> X, y = make_regression(200, 3, n_informative=2, coef=False, random_state=0)
    >>> model = GradientBoostingRegressor(n_estimators=20, max_depth=2, random_state=0).fit(X, y)
    >>> shares = (PartialR2(model, X[:50], y[:50]) + PartialR2(model, X[50:], y[50:])).result()
    >>> bool(abs(shares.total - model.score(X, y)) < 1e-12)
    True
    """

    def __init__(
        self,
        model: Model,
        X: TableLike,
        y: Column,
        *,
        game: str = "residual",
        sample_weight: Column = None,
        groups: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        memory_limit: float | None = None,
    ) -> None:
        check_game(game)
        problem = prepare_rows(model, X, y, sample_weight, groups, n_jobs)
        self._backend = frame_kind(problem.table.native)
        self._sums: R2Sums = solve_sums(problem, game, n_jobs, memory_limit)[0]

    def __add__(self, other: PartialR2) -> PartialR2:
        whole = PartialR2.__new__(PartialR2)
        whole._backend, whole._sums = self._backend, self._sums + other._sums
        return whole

    def result(self) -> R2Decomposition:
        """Return the shares of the rows of all parts.

        Returns
        -------
        shares : R2Decomposition

        Raises
        ------
        InputError
            If y does not vary over all parts.
        """
        require_variation(self._sums.variation, self._sums.mean, self._sums.weight)
        return self._sums.result(None, self._backend)

    def __repr__(self) -> str:
        return f"PartialR2 of {self._sums.n_rows:,} rows, {len(self._sums.feature_names)} features, game={self._sums.game!r}"


def solve_sums(
    problem: R2Problem, game: str, n_jobs: int | None, memory_limit: float | None, *, per_row: bool = False
) -> tuple[R2Sums, np.ndarray | None]:
    """Return what some rows add to the sums, and each row's part. The model's own predictions check it."""
    seconds = forecast(problem, game, per_row, memory_limit)
    solve = _solve_ensemble if game == "ensemble" else _solve_boosted if problem.boosted else _solve_averaged
    shares, rows, prediction, empty = solve(problem, per_row, n_jobs)
    problem.check_prediction(prediction)
    squared_error = problem.squared_error(prediction)
    sums = R2Sums(
        facts={
            "model": problem.ensemble.name,
            "n_trees": problem.ensemble.trees.n_trees,
            "order": "given" if problem.boosted else "averaged",
            "checked_against_model": problem.own_prediction is not None,
        },
        statistic="Brier skill score" if problem.ensemble.unit == "probability" else "R2",
        feature_names=problem.player_names,
        game=game,
        shares=shares,
        expected=empty - squared_error,
        rounding=problem.rounding(game),
        squared_error=squared_error,
        weight=problem.weight,
        mean=problem.mean,
        variation=problem.sst,
        n_rows=len(problem.y),
        seconds=seconds,
    )
    return sums, rows


def _solve_ensemble(problem: R2Problem, per_row: bool, n_jobs: int | None) -> Solved:
    layout, weights = problem.layout, problem.weights
    target = problem.y - problem.ensemble.trees.constant[0]
    rows = ensemble_rows(layout, target, weights, n_jobs) if per_row else None
    shares = ensemble_shares(layout, target, weights, n_jobs) if rows is None else rows.sum(axis=0)
    return shares, rows, problem.predict(), float(np.sum(weights * (target - layout.arrays.empty.sum()) ** 2))


def _solve_averaged(problem: R2Problem, per_row: bool, n_jobs: int | None) -> Solved:
    """Solve averaged trees: each tree's residual is y less half of the others, all centred (see decompose_r2)."""
    layout, weights = problem.layout, problem.weights
    prediction, empty = problem.predict(), problem.ensemble.trees.constant[0] + layout.arrays.empty.sum()
    base = problem.y - empty - 0.5 * (prediction - empty)
    rows = residual_rows(layout, base, weights, True, n_jobs) if per_row else None
    shares = residual_shares(layout, base, weights, True, n_jobs)[0] if rows is None else rows.sum(axis=0)
    return shares, rows, prediction, problem.squared_error(empty)


def _solve_boosted(problem: R2Problem, per_row: bool, n_jobs: int | None) -> Solved:
    """Solve boosted trees: each has the residual of those before it (Jiang, Zhang & Zhang, equation 9)."""
    layout, weights, trees = problem.layout, problem.weights, problem.ensemble.trees
    start, rows = problem.y - trees.constant[0], None
    if per_row:
        rows, prediction = residual_rows(layout, start, weights, False, n_jobs), problem.predict()
        added = weights @ trees.value[:, 0][apply(trees, problem.numbers)]
        shares, met = rows.sum(axis=0), np.sum(weights * start) - np.concatenate([[0.0], np.cumsum(added)[:-1]])
    else:
        residual = start.copy()
        shares, met = residual_shares(layout, residual, weights, False, n_jobs)
        prediction = problem.y - residual
    empty = layout.arrays.empty
    drift = np.sum(empty**2) * problem.weight - 2.0 * np.sum(empty * met)
    return shares, rows, prediction, float(np.sum(weights * start**2) + drift)


def forecast(problem: R2Problem, game: str, per_row: bool, memory_limit: float | None) -> float:
    """Return the forecast seconds of one core. Warn above a minute, refuse above a day or the memory limit."""
    cost, layout = cost_of(problem.layout, game, per_row), problem.layout
    if memory_limit is not None:
        check_memory_limit(memory_limit)
    allowed, seconds = 0.8 * physical_memory() if memory_limit is None else float(memory_limit), cost.seconds
    if cost.bytes > allowed:
        raise BudgetError(
            f"The {game!r} game of {layout.trees.n_trees} trees and {layout.n_rows} rows does not fit",
            f"It would need {memory_needed(cost.bytes, allowed)}",
            "Pass fewer rows, a larger memory_limit=, or per_row=False",
        )
    what = f"The {game!r} game of {problem.ensemble.name} is forecast to take {duration(seconds)} on one core"
    do = "Pass n_jobs=, fewer rows, or game='residual'" if game == "ensemble" else "Pass n_jobs= or fewer rows"
    check_seconds(seconds, what, do)
    return seconds


def cost_of(layout: EnsembleLayout, game: str, per_row: bool) -> Cost:
    """Estimate the cost on one core from pairs: n increments and m 2^m additions by table, or n m factors, if that is less."""
    way = "shallow" if _goes_shallow(layout, game, per_row) else "rows" if per_row else "pairs"
    seconds = _work(layout, game, per_row) * seconds_per_unit(f"R2: {game} by {way}", lambda: _sample(game, way))
    return Cost(seconds, _bytes(layout, game, per_row), True, f"{game} game by {way}")


def _work(layout: EnsembleLayout, game: str, per_row: bool) -> float:
    n, n_trees = layout.n_rows, layout.trees.n_trees
    if _goes_shallow(layout, game, per_row):
        return CALL + n_trees * (SHALLOW_TREE + SHALLOW_ROW * n)
    units = np.diff(layout.units.tree_start).astype(float)
    axes = np.add.reduceat(layout.units.size[:-1, 1].astype(float), layout.units.tree_start[:-1]) / units
    rows = np.full(n_trees, float(n))
    if game == "ensemble":
        pairs, rows = units.sum(keepdims=True) ** 2 / 2.0, rows[:1]
        players = 2.0 * np.average(axes, weights=units, keepdims=True)
    else:
        # Pairs of a tree share the upper part of their paths.
        pairs, players = units**2 / 2.0, np.maximum(1.0, 2.0 * axes - 2.0)
        splits = np.diff(layout.trees.tree_start) // 2
        rows = rows if per_row else np.where(splits <= 15, np.minimum(n, 2.0 ** np.minimum(splits, 30)), n)
    players = np.minimum(players, layout.n_players)
    by_rows = rows * players * FACTOR[game]
    if per_row:
        return float(BLOCK[game] * np.ceil(n / BLOCK_ROWS) + np.sum(pairs * by_rows))
    by_table = rows * INCREMENT + (players + 6.0) * 2.0 ** np.minimum(players, 60.0) * CELL
    codes = NODE_ROW * layout.trees.n_nodes * n if game == "ensemble" else 0.0
    return float(n_trees * TREE + codes + np.sum(pairs * (PAIR + np.minimum(by_rows, by_table))))


def _sample(game: str, way: str) -> Sample:
    """Return about a millisecond of work for a method."""
    n_rows, n_features, rng = 1000, 12, np.random.default_rng(0)
    trees = complete_forest(2 if way == "shallow" else 4, 4, n_features)
    layout = lay_out(
        trees, SKEW[game] + rng.normal(size=(n_rows, n_features)), np.arange(n_features, dtype=np.int32), n_features
    )
    target, weights = rng.normal(size=n_rows), np.ones(n_rows)
    if game == "ensemble":
        solve = ensemble_rows if way == "rows" else ensemble_shares
        return _work(layout, game, way == "rows"), lambda: solve(layout, target, weights, None)
    residual_game = residual_rows if way == "rows" else residual_shares
    return _work(layout, game, way == "rows"), lambda: residual_game(layout, target.copy(), weights, False, None)


def _bytes(layout: EnsembleLayout, game: str, per_row: bool) -> float:
    if _goes_shallow(layout, game, per_row):
        return 2.0 * CHUNK_BYTES
    n_units, width = layout.units.player.shape
    alphas = 8.0 * width * BLOCK_ROWS * (n_units if game == "ensemble" else np.diff(layout.units.tree_start).max())
    codes = 2.0 * n_units * layout.n_rows if game == "ensemble" and not per_row else 0.0
    rows = 8.0 * layout.n_rows * layout.n_players if per_row else 0.0
    met = bytes_of_a_wave(layout) if game == "residual" and not per_row else 0.0
    return float(alphas + codes + rows + met + 2.0 * CHUNK_BYTES)


def _goes_shallow(layout: EnsembleLayout, game: str, per_row: bool) -> bool:
    return layout.shallow and game == "residual" and not per_row

"""Split the R2 of a model over its features, at once or in parts."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Mapping
from typing import Any, Literal

from exactshap._runtime.types import Column, Model, RandomState, TableLike
from exactshap.decompose.r2._fixed import fixed_shares
from exactshap.decompose.r2._input import R2Decomposition, R2Sums, is_trees, prepare_rows, require_variation
from exactshap.decompose.r2._refit import refit_shares
from exactshap.decompose.r2._solving import check_game, solve_sums
from exactshap.errors import InputError, InputTypeError, refused_beyond_memory
from exactshap.frames import Table
from exactshap.frames.stored import StoredTable, as_rows
from exactshap.results.decomposition import frame_kind


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
    _refuse_other_settings(game, per_row, n_orders, n_bootstrap, (background, value_function))
    if game == "refit":
        if isinstance(X, (StoredTable, str, os.PathLike)):
            do = "Read it: decompose_r2(model, pandas.read_parquet(path)[columns], y, game='refit')"
            raise InputError("Refits need their rows in memory", "Got a stored table", do)
        drawn = n_orders, n_bootstrap, level, random_state
        return refit_shares(model, X, y, sample_weight, groups, n_jobs, drawn)
    check_game(game)
    if isinstance(X, (StoredTable, str, os.PathLike)):
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


def _refuse_other_settings(game: Any, per_row: bool, n_orders: int | None, n_bootstrap: int, setting: tuple[Any, str]) -> None:
    """Refuse settings that belong to another game."""
    refit, resampled = game == "refit", n_orders is not None or n_bootstrap != 0
    if resampled and not refit:
        raise InputError("`n_orders` and `n_bootstrap` are settings of refits", f"Got game={game!r}", "Pass game='refit'")
    if refit and per_row:
        raise InputError("Refits have no parts of R2 by rows", "Got per_row=True", "Pass per_row=False")
    if refit and (setting[0] is not None or setting[1] != "auto"):
        do = "Leave background= and value_function= out, or pass game='ensemble'"
        raise InputError("Refits replace no columns: they leave them out of the fit", "Got a background", do)


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

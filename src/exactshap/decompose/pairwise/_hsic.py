"""Split the Hilbert-Schmidt independence criterion over the variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from exactshap._runtime.checks import checked_generator
from exactshap._runtime.types import PerColumn, RandomState, TableLike
from exactshap.decompose.pairwise._estimate import (
    Estimate,
    PairwiseSettings,
    Question,
    average,
    choose_method,
    fields_of,
    permutations,
    rows_of_blocks,
)
from exactshap.decompose.pairwise._factors import Factors
from exactshap.decompose.pairwise._hsic_estimate import estimate_hsic, estimate_joint
from exactshap.decompose.pairwise._panels import run_in_waves, showing
from exactshap.decompose.pairwise._reading import read_side
from exactshap.errors import InputError, InputTypeError, UnsupportedStructureError, refused_beyond_memory
from exactshap.frames import Table, as_table, warn_of_other_order
from exactshap.frames.stored import StoredTable, as_rows
from exactshap.results.decomposition import PairwiseDecomposition, frame_kind
from exactshap.semivalues import Semivalue


@refused_beyond_memory("The decomposition", "Pass the paths of files, which are read in pieces, or fewer rows")
def decompose_hsic(
    X: TableLike,
    Y: TableLike,
    *,
    kernel_x: PerColumn = "rbf",
    kernel_y: PerColumn = "rbf",
    bandwidth: PerColumn = "median",
    bandwidth_x: PerColumn = None,
    bandwidth_y: PerColumn = None,
    joint: bool = False,
    estimator: str = "biased",
    groups: Mapping[str, Any] | None = None,
    index: str | Semivalue = "shapley",
    order: int = 1,
    n_permutations: int = 0,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
    settings: PairwiseSettings | None = None,
) -> PairwiseDecomposition:
    r"""Split the dependence of X and Y (HSIC) over X's columns.

    .. math:: v(S) = \frac{1}{(n-1)^2}\, \mathrm{tr}(K_S H L H), \qquad K_S = \bigodot_{j \in S} K_j

    Columns of X outside S have kernel value 1; a constant kernel depends on nothing, so that v(empty) = 0 and the Shapley
    shares sum to the HSIC of X and Y. Swap the arguments to split it over the columns of Y instead (the paper's second
    game); ``joint=True`` makes the columns of both sets players of one game, v(S) = tr(K_S H L_S H) / (n-1)^2.

    Parameters
    ----------
    X : array or DataFrame of shape (n_rows, n_columns), or path
        At least two rows. Text, category and boolean columns are categorical, what is missing is a level of its own, and Parquet
        streams, as in :func:`decompose_mmd`.
    Y : array, Series or DataFrame of shape (n_rows,) or (n_rows, n_targets)
        The other variables, row by row; of a stored X the names of its columns will do. Class labels that are numbers need ``kernel_y="categorical"``.
    kernel_x, kernel_y : str, radial kernel, sequence or mapping, default="rbf"
        As ``kernel`` of :func:`decompose_mmd`.
    bandwidth : float, "median" or "column-median", default="median"
        As of :func:`decompose_mmd`, over the rows of X and of Y.
    bandwidth_x, bandwidth_y : float, "median", "column-median", sequence or mapping, optional
        Bandwidth of one side, if it differs from ``bandwidth``, or one for each column.
    joint : bool, default=False
        One game over the columns of X and Y together.
    estimator : {"biased", "unbiased"}, default="biased"
        The V-statistic above, or the U-statistic of Song et al. (2012), which needs four rows.
    groups : mapping of name to columns, optional
        Columns of X that share one player.
    index, order, n_permutations, random_state, n_jobs, settings
        As in :func:`decompose_mmd`. Permutations reorder the rows of Y: every p-value tests that X and Y are independent. With
        "biased" all rows are taken, up to 50,000: the settings' ``method="blocks"`` needs "unbiased"; their ``map`` does not permute.

    Returns
    -------
    decomposition : PairwiseDecomposition
        ``values`` (n_columns,), in the unit of HSIC; with ``joint`` first the columns of X, then those of Y.

    Raises
    ------
    InputError
        For too few rows, different numbers of rows, infinite values, bandwidths that are not positive.
    InputTypeError
        For dates, which have no distance before they are numbers.
    UnsupportedStructureError
        For ``joint=True`` with ``order > 1`` or ``groups``; for a ``map`` over pairs of blocks with ``joint=True`` or permutations.
    ExactnessError
        If the shares do not add up to the textbook formula, computed on its own.

    Notes
    -----
    Exact up to rounding, about (n + d) eps. Time O(n^2 d nodes), memory O(n d): kernel matrices are never stored. Jackknife
    standard errors cost two more passes over Y's kernel; the joint game has none, and each of its permutations costs a whole
    evaluation, while those of the plain game share one.

    References
    ----------
    .. [1] Mohammadi, Chau & Muandet (2025). Computing exact Shapley values in polynomial time for product-kernel methods.
       Section 4.2 and appendix G (the two games); the joint game is new here.
    .. [2] Song et al. (2012). Feature selection via dependence maximization. JMLR 13.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 3))
    >>> shares = decompose_hsic(X, X[:, 1] ** 2, n_permutations=99)
    >>> int(shares.values.argmax()), shares.p_value
    (1, 0.01)
    """
    settings = PairwiseSettings.given(settings)
    question = Question.checked(estimator, index, order, n_permutations, n_jobs, settings)
    if not isinstance(bandwidth, (str, int, float, np.number)):
        got, do = f"Got {type(bandwidth).__name__}", "Pass bandwidth_x= or bandwidth_y= for one per column"
        raise InputTypeError("`bandwidth` of HSIC is one number or word, for both sides", got, do)
    first, second = _paired(X, Y, 4 if estimator == "unbiased" else 2)
    # One generator for subsamples, blocks and permutations, in this order: a seed gives the same answer every time.
    generator = checked_generator(random_state)
    x = read_side(first, "X", kernel_x, bandwidth if bandwidth_x is None else bandwidth_x, groups, generator)
    y = read_side(second, "Y", kernel_y, bandwidth if bandwidth_y is None else bandwidth_y, None, generator)
    if joint and (order > 1 or groups):
        got, do = f"Got order={order}, groups={groups!r}", "Use joint=False, once for each side"
        raise UnsupportedStructureError("joint=True has values of single columns only", got, do)
    names, sets = (_joint_names(x.names, y.names), ()) if joint else (x.names, question.sets(x.n_players))
    n_columns = len(x.columns) + (len(y.columns) if joint else 0)
    chosen, n_blocks = choose_method(settings.method, first.n_rows, n_columns, settings.block_size, question)
    with showing(settings.progress, "HSIC", first.n_rows, n_columns, n_blocks, len(x.gaussians)):
        estimate = _estimated(x, y, question, n_blocks, generator, joint, settings.map)
    details = {
        "x": x.describe(),
        "y": y.describe(),
        "joint": joint,
        **question.details(chosen, n_blocks, first.n_rows, estimate),
    }
    return PairwiseDecomposition(
        statistic="HSIC", feature_names=names, backend=frame_kind(X), details=details, **fields_of(estimate, question, sets)
    )


def _estimated(
    x: Factors, y: Factors, question: Question, n_blocks: int, generator: np.random.Generator, joint: bool, run: Any
) -> Estimate:
    """Return the estimate of all rows, or the average over random blocks."""
    if run is not None and n_blocks == 1:
        if joint or question.n_permutations:
            got = "Got joint=True" if joint else f"Got n_permutations={question.n_permutations}"
            do = "Leave map= out, or pass method='blocks' with estimator='unbiased'"
            raise UnsupportedStructureError("map= supports the shares of one game only", got, do)
        return estimate_hsic((x, y, question, np.empty((0, x.n_rows), np.int32)), run)
    blocks = rows_of_blocks(x.n_rows, n_blocks, generator) if n_blocks > 1 else [slice(None)]
    sides = ((x.take(rows), y.take(rows)) for rows in blocks)
    tasks = ((x, y, question, permutations(x.n_rows, question.n_permutations, generator)) for x, y in sides)
    return average(run_in_waves(run or map, estimate_joint if joint else estimate_hsic, tasks))


def _paired(X: TableLike, Y: TableLike, minimum: int) -> tuple[Table | StoredTable, Table | StoredTable]:
    first: Table | StoredTable = as_rows(X)
    second: Table | StoredTable
    targets = [Y] if isinstance(Y, str) else list(Y) if isinstance(Y, (list, tuple)) else []
    if isinstance(first, StoredTable) and targets and all(isinstance(name, str) for name in targets):
        # Y is a part of the same file: names of columns say which.
        first, second = first.select(drop=targets), first.select(targets)
    else:
        second = Y if isinstance(Y, StoredTable) else as_table(two_dimensional(Y), what="Y")
    if first.n_rows != second.n_rows:
        raise InputError("`X` and `Y` must have the same number of rows", f"Got {first.n_rows} and {second.n_rows}")
    if isinstance(first, Table):
        warn_of_other_order(first, Y, "Y")
    if first.n_rows < minimum:
        raise InputError(f"`X` has {first.n_rows} row(s)", f"HSIC needs at least {minimum}", "Pass more rows")
    return first, second


def two_dimensional(Y: TableLike) -> Any:
    """Return a series as a frame and a vector as an array, of one column."""
    import narwhals.stable.v2 as nw

    series = nw.from_native(Y, allow_series=True, eager_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series.alias(str(series.name or "y")).to_frame().to_native()
    if hasattr(Y, "columns") or hasattr(Y, "column_names"):
        return Y
    array = np.asarray(Y)
    return array[:, None] if array.ndim == 1 else array


def _joint_names(x: tuple[str, ...], y: tuple[str, ...]) -> tuple[str, ...]:
    clash = set(x) & set(y)
    return (*(f"X: {name}" if name in clash else name for name in x), *(f"Y: {name}" if name in clash else name for name in y))

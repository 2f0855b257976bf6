"""The Hilbert-Schmidt independence criterion of two sets of variables, split exactly over the variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.threads import map_in_threads
from exactshap.decompose.pairwise._columns import pooled_names, refuse_per_column
from exactshap.decompose.pairwise._direct import direct_hsic
from exactshap.decompose.pairwise._estimate import (
    Estimate,
    PairwiseSettings,
    average,
    choose_method,
    fields_of,
    residual_of,
    rows_of_blocks,
)
from exactshap.decompose.pairwise._factors import Factors, read_factors
from exactshap.decompose.pairwise._hsic_weights import CentredKernel, centred_kernel
from exactshap.decompose.pairwise._inference import jackknife_error, permutations
from exactshap.decompose.pairwise._interactions import joint_values
from exactshap.decompose.pairwise._kernels import LANES, add_sides
from exactshap.decompose.pairwise._panels import Progress, Rules, Sweep, followed, rule_table, showing
from exactshap.errors import InputError, UnsupportedStructureError, message
from exactshap.frames import Table, as_table
from exactshap.results.decomposition import PairwiseDecomposition, check_residual, frame_backend, pair_tolerance
from exactshap.semivalues import Semivalue

__all__ = ["decompose_hsic"]

_AT_ONCE = 32  # permutations whose weights are made together: a block of them stays in cache


def decompose_hsic(
    X: Any,
    Y: Any,
    *,
    kernel_x: Any = "rbf",
    kernel_y: Any = "rbf",
    bandwidth: Any = "median",
    bandwidth_x: Any = None,
    bandwidth_y: Any = None,
    joint: bool = False,
    estimator: str = "biased",
    groups: Mapping[str, Any] | None = None,
    index: str | Semivalue = "shapley",
    order: int = 1,
    n_permutations: int = 0,
    correction: str = "max",
    level: float = 0.95,
    method: str = "auto",
    block_size: int = 1000,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: Progress = None,
) -> PairwiseDecomposition:
    r"""Split the dependence between the columns of X and Y, as measured by HSIC, over the columns of X (or of both).

    .. math:: v(S) = \frac{1}{(n-1)^2}\, \mathrm{tr}(K_S H L H), \qquad K_S = \bigodot_{j \in S} K_j

    Columns of X outside S have kernel value 1; a constant kernel depends on nothing, so that v(empty) = 0 and the Shapley
    shares sum to the HSIC of X and Y. Swap the arguments to split it over the columns of Y instead (the paper's second
    game); ``joint=True`` makes the columns of both sets players of one game, v(S) = tr(K_S H L_S H) / (n-1)^2.

    Parameters
    ----------
    X : array or DataFrame of shape (n_rows, n_columns)
        At least two rows. Text, category and boolean columns are categorical.
    Y : array, Series or DataFrame of shape (n_rows,) or (n_rows, n_targets)
        The other variables, row by row. Class labels that are numbers need ``kernel_y="categorical"``.
    kernel_x, kernel_y : str, sequence or mapping, default="rbf"
        As ``kernel`` of :func:`decompose_mmd`.
    bandwidth : float, "median" or "column-median", default="median"
        As of :func:`decompose_mmd`, over the rows of X and of Y.
    bandwidth_x, bandwidth_y : float, "median", "column-median", sequence or mapping, optional
        Of one side, where it is another one than ``bandwidth``, or one for each column.
    joint : bool, default=False
        One game over the columns of X and Y together.
    estimator : {"biased", "unbiased"}, default="biased"
        The V-statistic above, or the U-statistic of Song et al. (2012), which needs four rows.
    groups : mapping of name to columns, optional
        Columns of X that share one player.
    index, order, n_permutations, correction, level, method, block_size, random_state, n_jobs, progress
        As in :func:`decompose_mmd`. Permutations reorder the rows of Y: every p-value tests that X and Y are independent.
        ``method="blocks"`` needs ``estimator="unbiased"``; with "biased" all rows are taken, up to 50,000.

    Returns
    -------
    decomposition : PairwiseDecomposition
        ``values`` (n_columns,), in the unit of HSIC; with ``joint`` first the columns of X, then those of Y.

    Raises
    ------
    InputError
        For too few rows, different numbers of rows, missing values, bandwidths that are not positive.
    UnsupportedStructureError
        For ``joint=True`` with ``order > 1`` or ``groups``.
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
    settings = PairwiseSettings.checked(estimator, index, order, n_permutations, correction, level, n_jobs)
    refuse_per_column(bandwidth)
    first, second = _paired(X, Y, 4 if estimator == "unbiased" else 2)
    generator = np.random.default_rng(random_state)
    x = read_factors(
        (first,),
        ("X",),
        pooled_names((first,), ("X",)),
        kernel=kernel_x,
        bandwidth=bandwidth if bandwidth_x is None else bandwidth_x,
        groups=groups,
        random_state=generator,
        what="_x",
    )
    y = read_factors(
        (second,),
        ("Y",),
        pooled_names((second,), ("Y",), "y"),
        kernel=kernel_y,
        bandwidth=bandwidth if bandwidth_y is None else bandwidth_y,
        groups=None,
        random_state=generator,
        what="_y",
    )
    sets: tuple[tuple[int, ...], ...] = ()
    names, one_block = x.names, _estimate
    if joint:
        from exactshap.decompose.pairwise._hsic_joint import estimate_joint

        _refuse_joint(order, groups)
        names, one_block = _joint_names(x.names, y.names), estimate_joint
    else:
        sets = settings.sets(x.n_players)
    n_columns = len(x.columns) + (len(y.columns) if joint else 0)
    chosen, n_blocks = choose_method(method, first.n_rows, n_columns, block_size, settings)
    blocks = rows_of_blocks(first.n_rows, n_blocks, generator) if n_blocks > 1 else [np.arange(first.n_rows)]
    with showing(progress, "HSIC", first.n_rows, n_columns, n_blocks):
        estimate = average(one_block(x.take(rows), y.take(rows), settings, generator) for rows in blocks)
    details = {
        "x": x.describe(),
        "y": y.describe(),
        "joint": joint,
        "estimator": estimator,
        "level": level,
        "correction": correction,
        "method": chosen,
        "n_blocks": n_blocks,
        "n_rows": first.n_rows,
        "error_bound": estimate.error_bound,
    }
    return PairwiseDecomposition(
        statistic="HSIC", feature_names=names, backend=frame_backend(X), details=details, **fields_of(estimate, settings, sets)
    )


def _paired(X: Any, Y: Any, minimum: int) -> tuple[Table, Table]:
    first, second = as_table(X, what="X"), as_table(_two_dimensional(Y), what="Y")
    if first.n_rows != second.n_rows:
        raise InputError(message("`X` and `Y` must have the same number of rows", f"Got {first.n_rows} and {second.n_rows}"))
    if first.n_rows < minimum:
        raise InputError(message(f"`X` has {first.n_rows} row(s)", f"HSIC needs at least {minimum}", "Pass more rows"))
    return first, second


def _two_dimensional(Y: Any) -> Any:
    """Return a series as a frame of one column and a vector as an array of one column."""
    import narwhals.stable.v2 as nw

    series = nw.from_native(Y, allow_series=True, eager_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series.alias(str(series.name or "y")).to_frame().to_native()
    if hasattr(Y, "columns") or hasattr(Y, "column_names"):
        return Y
    array = np.asarray(Y)
    return array[:, None] if array.ndim == 1 else array


def _refuse_joint(order: int, groups: Any) -> None:
    if order > 1 or groups:
        raise UnsupportedStructureError(
            message(
                "joint=True has values of single columns only",
                f"Got order={order}, groups={groups!r}",
                "Use joint=False, once for each side",
            )
        )


def _joint_names(x: tuple[str, ...], y: tuple[str, ...]) -> tuple[str, ...]:
    clash = set(x) & set(y)
    return (*(f"X: {name}" if name in clash else name for name in x), *(f"Y: {name}" if name in clash else name for name in y))


@dataclass(frozen=True, eq=False)
class _PairSums:
    r"""Sums of the pair contributions G over pairs.

    ``weighted[j, i]`` is :math:`\sum_{i'} G_j[i,i'] L_c[i,i']`, ``plain[j, i]`` the same without the centred kernel, and
    ``permuted[j, b]`` is :math:`\sum_{i,i'} G_j[i,i'] L_c[\pi_b i, \pi_b i']`.
    """

    weighted: np.ndarray
    plain: np.ndarray
    permuted: np.ndarray


def _estimate(x: Factors, y: Factors, settings: PairwiseSettings, generator: np.random.Generator) -> Estimate:
    rules = rule_table(settings.semivalue, x.n_players, settings.order)
    target = centred_kernel(y, settings.estimator, settings.n_jobs)
    orders = permutations(x.n_rows, settings.n_permutations, generator)
    sums = _pair_sums(x, rules, target, orders, settings.n_jobs)
    norm = target.norm(x.n_rows)
    values = norm * sums.weighted.sum(axis=1)
    joint, truncation = joint_values(x, target.block, None, settings, len(settings.sets(x.n_players)) - x.n_players)
    residual = residual_of(direct_hsic(x, y, settings.estimator), values, norm * joint, settings)
    scale = 4.0 * norm * x.n_rows**2
    tolerance = pair_tolerance(scale, x.n_rows, len(x.columns) + len(y.columns))
    check_residual("HSIC", residual, tolerance)
    return Estimate(
        values,
        _jackknife(sums, target, settings.n_jobs),
        norm * sums.permuted,
        norm * joint,
        residual,
        tolerance,
        scale * max(rules.error_bound, truncation),
    )


def _pair_sums(x: Factors, rules: Rules, target: CentredKernel, orders: np.ndarray, n_jobs: int | None) -> _PairSums:
    """Return the sums over pairs, in one sweep: permutations only change the weights of the pair contributions."""
    sweep = Sweep(x, rules)
    shape = (x.n_players + 1, x.n_rows + LANES)

    def panel_sums(panel: tuple[int, int]) -> _PairSums:
        sums = _PairSums(np.zeros(shape), np.zeros(shape), np.zeros((shape[0], len(orders))))
        for block, values in sweep.blocks(panel):
            weights = target.block(block)
            add_sides(values, weights, sums.weighted, block.start, sums.weighted, block.first)
            add_sides(values, np.ones_like(weights), sums.plain, block.start, sums.plain, block.first)
            flat = values.reshape(shape[0], -1)
            for start in range(0, len(orders), _AT_ONCE):
                some = slice(start, start + _AT_ONCE)
                sums.permuted[:, some] += 2.0 * (flat @ target.permuted_block(block, orders[some]).T)
        return sums

    total = _PairSums(np.zeros(shape), np.zeros(shape), np.zeros((shape[0], len(orders))))
    panels = sweep.panels()
    for sums in followed(map_in_threads(panel_sums, panels, n_jobs), panels, x.n_rows):
        for name in ("weighted", "plain", "permuted"):
            getattr(total, name)[...] += getattr(sums, name)
    return replace(total, weighted=total.weighted[:, : x.n_rows], plain=total.plain[:, : x.n_rows])


def _jackknife(sums: _PairSums, target: CentredKernel, n_jobs: int | None) -> np.ndarray | None:
    r"""Return standard errors (n_players + 1,) from all leave-one-out values at once; None where too few rows stay.

    HSIC does not change when :math:`a_i + a_{i'}` is added to the kernel of Y, so the kernel centred on all rows serves the
    samples without one row. With A = sum G L_c, c = (G ∘ L_c) 1, g = G 1 and the row sums of L_c being 0, leaving row i out
    gives A - 2 c_i, the inner product c_i - (L_c g)_i + g_i L_c[i,i] of the row sums, and their totals
    1'g - 2 g_i and L_c[i,i].
    """
    n = sums.plain.shape[1]
    if n - 1 < (4 if target.estimator == "unbiased" else 2):
        return None
    c, g, diagonal = sums.weighted, sums.plain, target.diagonal
    left = c.sum(axis=1, keepdims=True) - 2.0 * c
    inner = c - target.times(g, n_jobs) + g * diagonal
    if target.estimator == "unbiased":
        without = left - 2.0 * inner / (n - 3)
    else:
        without = left - 2.0 * inner / (n - 1) + (g.sum(axis=1, keepdims=True) - 2.0 * g) * diagonal / (n - 1) ** 2
    return jackknife_error(target.norm(n - 1) * without)

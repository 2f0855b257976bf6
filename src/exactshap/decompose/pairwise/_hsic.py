"""Split the Hilbert-Schmidt independence criterion over the variables."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.checks import checked_generator
from exactshap._runtime.slices import slices
from exactshap._runtime.types import PerColumn, RandomState, TableLike
from exactshap.decompose.pairwise._estimate import (
    Estimate,
    PairwiseSettings,
    Question,
    average,
    choose_method,
    enough_rule,
    fields_of,
    jackknife_error,
    joint_values,
    permutations,
    rows_of_blocks,
)
from exactshap.decompose.pairwise._factors import (
    LANES,
    Factors,
    PanelBlock,
    add_sides,
    direct_sums,
    fill_joint_contributions,
    fill_node_products,
    fill_permuted_weights,
    fill_products,
    hsic_of_sums,
    whole_kernel,
)
from exactshap.decompose.pairwise._panels import (
    Run,
    add_up,
    add_up_gaussians,
    block_pairs,
    blocks_of,
    contributions,
    run_in_waves,
    showing,
)
from exactshap.decompose.pairwise._reading import read_side
from exactshap.errors import InputError, InputTypeError, UnsupportedStructureError, refused_beyond_memory
from exactshap.frames import Table, as_table, warn_of_other_order
from exactshap.frames.stored import StoredTable, as_rows
from exactshap.results.decomposition import PairwiseDecomposition, frame_kind
from exactshap.semivalues import Semivalue
from exactshap.solvers.product import GradedRules, graded_rules

# Permutations that are weighted together: a block of them stays in cache.
_PERMUTATIONS_AT_ONCE = 32


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
    """Return a series as a frame of one column, a vector as an array."""
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


def norm_of(n: int, estimator: str) -> float:
    """Return what the sum over pairs is multiplied with: 1 / (n - 1)^2, or 1 / (n (n - 3)) for the unbiased estimator."""
    return 1.0 / (n - 1) ** 2 if estimator == "biased" else 1.0 / (n * (n - 3))


def offsets_of(row_sums: np.ndarray, estimator: str) -> np.ndarray:
    r"""Return a with :math:`L_c[i,i'] = L[i,i'] - a_i - a_{i'}`, from row sums without the diagonal.

    Biased: the double centring H L H, with the diagonal 1 of L counted. Unbiased: the U-centring of Song et al. (2012),
    with diagonal 0 and n - 2 in place of n. Either makes the row sums of :math:`L_c` zero.
    """
    n = row_sums.shape[-1]
    if estimator == "biased":
        full = row_sums + 1.0
        return full / n - full.sum(axis=-1, keepdims=True) / (2.0 * n**2)
    return row_sums / (n - 2) - row_sums.sum(axis=-1, keepdims=True) / (2.0 * (n - 1) * (n - 2))


@dataclass(frozen=True, eq=False)
class CentredKernel:
    """Centre the kernel of Y so that its rows sum to 0. Blocks are computed on demand and never stored."""

    factors: Factors
    offsets: np.ndarray
    estimator: str

    @property
    def diagonal(self) -> np.ndarray:
        return 1.0 - 2.0 * self.offsets if self.estimator == "biased" else np.zeros_like(self.offsets)

    def block(self, block: PanelBlock) -> np.ndarray:
        """Return a block (height, padded) of the centred kernel, 0 unless i' > i."""
        if self.factors.radial is not None:
            return self._radial_block(block, np.arange(self.factors.n_rows))
        out = np.empty((block.height, block.padded))
        fill_products(self.factors.arrays, self.offsets, block, out)
        return out

    def _radial_block(self, block: PanelBlock, order: np.ndarray) -> np.ndarray:
        """Return a block of the centred kernel by the closed form."""
        rows, others = order[block.start : block.stop], order[block.first : block.last]
        one = self.factors.take(np.concatenate([rows, others]))
        kernel = whole_kernel(one, slice(0, block.height), slice(block.height, one.n_rows))
        kernel -= self.offsets[rows][:, None] + self.offsets[others]
        # Where a block meets its own rows, each pair counts once.
        later = np.arange(block.first, block.last) > np.arange(block.start, block.stop)[:, None]
        return np.pad(np.where(later, kernel, 0.0), ((0, 0), (0, block.padded - len(others))))

    def permuted_block(self, block: PanelBlock, orders: np.ndarray) -> np.ndarray:
        """Return a block of the centred kernel for permuted rows, (n_permutations, height * padded)."""
        if self.factors.radial is not None:
            return np.stack([self._radial_block(block, order) for order in orders]).reshape(len(orders), -1)
        out = np.empty((len(orders), block.height, block.padded))
        fill_permuted_weights(self.factors.arrays, self.offsets, orders, block, out)
        return out.reshape(len(orders), -1)

    def off_diagonal(self, vectors: np.ndarray, n_jobs: int | None, begin: int) -> np.ndarray:
        """Return the product without the diagonal; with ``begin``, only of pairs of rows on both sides of it."""
        n = self.factors.n_rows
        # Blocks are padded to whole tiles: their last columns may reach beyond the rows, and hold zeros there.
        padded = np.pad(vectors, ((0, 0), (0, LANES)))

        def add(panel: tuple[int, int], out: np.ndarray) -> None:
            for block in blocks_of(panel, n, 1, begin=begin):
                weights = self.block(block)
                rows, columns = slice(block.start, block.stop), slice(block.first, block.first + block.padded)
                out[:, rows] += padded[:, columns] @ weights.T
                # The kernel is symmetric: each block also counts for its mirror image.
                out[:, columns] += padded[:, rows] @ weights

        return add_up(add, [padded.shape], n, n_jobs, begin)[0][:, :n]


def estimate_hsic(task: tuple[Factors, Factors, Question, np.ndarray], run: Run | None = None) -> Estimate:
    """Return the shares of the columns of ``x``. The last item of the task holds permutations of the rows of ``y``.

    With an ordered map there are three rounds of tasks over pairs of blocks of rows, which may run anywhere; without one the pairs
    of all rows are the only task. The kernel of Y is centred by its row sums over all rows (first round), the contributions of pairs
    are weighted with it (second), and their row sums are multiplied with it for the jackknife (third). A task of these rounds is the
    rows of both samples in two blocks, where the second block begins (0 for a block with itself), and vectors.
    """
    x, y, question, orders = task
    n, d, rules = x.n_rows, x.n_players, graded_rules(question.semivalue, x.n_players, question.order, even=True)
    pairs = block_pairs(n, whole=run is None)
    # Workers of the user's map take no threads of their own.
    of_task = question if run is None else replace(question, n_jobs=None)

    def rounds(function: Callable[..., Any], *vectors: np.ndarray, **others: Any) -> Iterable[tuple[np.ndarray, Any]]:
        """Yield the rows of each pair of blocks and what a function returns for them."""
        tasks = (
            (x.take(rows), y.take(rows), pair.begin, *(np.ascontiguousarray(v[..., rows]) for v in vectors))
            for pair, rows in ((pair, pair.rows) for pair in pairs)
        )
        function = functools.partial(function, question=of_task, **others)
        return zip((pair.rows for pair in pairs), run_in_waves(run or map, function, tasks), strict=True)

    product, row_sums = 0.0, np.zeros((3, n))
    for rows, (more, *parts) in rounds(_row_sums):
        product += more
        row_sums[:, rows] += parts
    k_rows, l_rows, fast = row_sums
    # Centring needs the row sums over all rows: no contribution can be weighted before the first round is over.
    target = CentredKernel(y, offsets_of(fast, question.estimator), question.estimator)
    by_row, permuted = np.zeros((2, d + 1, n)), np.zeros((d + 1, len(orders)))
    joint, truncation = np.zeros(question.n_joint(d)), 2.0 * float(rules.errors[-1])
    for rows, (*parts, more_permuted, more, relative) in rounds(_contributions, target.offsets, rules=rules, orders=orders):
        by_row[:, :, rows] += parts
        permuted += more_permuted
        joint, truncation = joint + more, max(truncation, relative)
    weighted, plain = by_row
    # L_c g: the diagonal here, the rest from the third round.
    products = plain * target.diagonal
    for rows, part in rounds(_products, target.offsets, plain):
        products[:, rows] += part
    norm = norm_of(n, question.estimator)
    return Estimate.checked(
        "HSIC",
        norm * weighted.sum(axis=1),
        hsic_of_sums((product, k_rows, l_rows), question.estimator),
        question,
        scale=4.0 * norm * n**2,
        size=(n, len(x.columns) + len(y.columns)),
        error=x.error,
        truncation=truncation,
        std_error=_jackknife(weighted, plain, products, target),
        permuted=norm * permuted,
        joint=norm * joint,
    )


def _row_sums(task: tuple[Factors, Factors, int], question: Question) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return the direct sums, and the row sums of Y's kernel without its diagonal by the fast path."""
    x, y, begin = task
    # Offsets of 0 leave the kernel uncentred, and "unbiased" leaves its diagonal out.
    plain = CentredKernel(y, np.zeros(y.n_rows), "unbiased")
    fast = plain.off_diagonal(np.ones((1, y.n_rows)), question.n_jobs, begin)[0]
    return (*direct_sums(x, y, begin, question.n_jobs), fast)


def _contributions(
    task: tuple[Factors, Factors, int, np.ndarray], question: Question, rules: GradedRules, orders: np.ndarray
) -> tuple[Any, ...]:
    r"""Return sums of the pair contributions G, then the values of sets and their truncation.

    They are :math:`\sum_{i'} G_j[i,i'] L_c[i,i']` of shape (n_players + 1, n_rows), the same without the centred kernel, and
    :math:`\sum_{i,i'} G_j[i,i'] L_c[\pi_b i, \pi_b i']`, in one sweep: permutations only change the weights.
    """
    x, y, begin, offsets = task
    target = CentredKernel(y, offsets, question.estimator)
    shape = (x.n_players + 1, x.n_rows + LANES)

    def add(one: Factors, panel: tuple[int, int], weighted: np.ndarray, plain: np.ndarray, permuted: np.ndarray) -> None:
        for block, values in contributions(one, rules, panel, begin):
            weights = target.block(block)
            add_sides(values, weights, weighted, block.start, weighted, block.first)
            add_sides(values, np.ones_like(weights), plain, block.start, plain, block.first)
            flat = values.reshape(shape[0], -1)
            for some in slices(len(orders), _PERMUTATIONS_AT_ONCE):
                # Pairs i < i' only, and both kernels are symmetric.
                permuted[:, some] += 2.0 * (flat @ target.permuted_block(block, orders[some]).T)

    shapes = [shape, shape, (shape[0], len(orders))]
    weighted, plain, permuted = add_up_gaussians(add, shapes, x, question.n_jobs, begin)
    joint = joint_values(x, target.block, question, question.n_joint(x.n_players), begin)
    return (weighted[:, : x.n_rows], plain[:, : x.n_rows], permuted, *joint)


def _products(task: tuple[Factors, Factors, int, np.ndarray, np.ndarray], question: Question) -> np.ndarray:
    _, y, begin, offsets, plain = task
    return CentredKernel(y, offsets, question.estimator).off_diagonal(plain, question.n_jobs, begin)


def _jackknife(c: np.ndarray, g: np.ndarray, products: np.ndarray, target: CentredKernel) -> np.ndarray | None:
    r"""Return standard errors (n_players + 1,) from all leave-one-out values at once; None where too few rows stay.

    HSIC does not change when :math:`a_i + a_{i'}` is added to the kernel of Y, so the kernel centred on all rows serves the
    samples without one row. With A = sum G L_c, c = (G ∘ L_c) 1, g = G 1 and the row sums of L_c being 0, leaving row i out
    gives A - 2 c_i, the inner product c_i - (L_c g)_i + g_i L_c[i,i] of the row sums, and their totals
    1'g - 2 g_i and L_c[i,i]. ``products`` are the L_c g.
    """
    n, diagonal = g.shape[1], target.diagonal
    if n - 1 < (4 if target.estimator == "unbiased" else 2):
        return None
    left = c.sum(axis=1, keepdims=True) - 2.0 * c
    inner = c - products + g * diagonal
    if target.estimator == "unbiased":
        without = left - 2.0 * inner / (n - 3)
    else:
        without = left - 2.0 * inner / (n - 1) + (g.sum(axis=1, keepdims=True) - 2.0 * g) * diagonal / (n - 1) ** 2
    return jackknife_error(norm_of(n - 1, target.estimator) * without)


def estimate_joint(task: tuple[Factors, Factors, Question, np.ndarray]) -> Estimate:
    r"""Return the shares of X's columns, then of Y's, then HSIC itself.

    .. math:: \phi_j = \frac{1}{(n-1)^2} \int_0^1 \bigl\langle (K_j - 1) \circ P_{-j}(t),\ H R(t) H \bigr\rangle \mathrm{d}\mu(t)

    for a column of X, with P(t) and R(t) the products of 1 - t + t K over the columns of either side, and with the sides
    exchanged for a column of Y. The kernels of the other side must be centred at every node, which takes one pass for row
    sums before the pass for the shares: O(n^2 (d_x + d_y)) per node. Permutations repeat it all. HSIC is linear in the kernel of
    either side, so that a radial kernel has the values of its Gaussians, added up over all pairs of both sides'.
    """
    x, y, question, orders = task
    norm = norm_of(x.n_rows, question.estimator)
    sums, error_bound = _sums_of_gaussians(x, y, question)
    # Nothing carries over from one order to the next: kernels are centred anew at every node.
    permuted = [norm * _sums_of_gaussians(x, y.take(order), question)[0] for order in orders]
    return Estimate.checked(
        "HSIC",
        norm * sums,
        hsic_of_sums(direct_sums(x, y, n_jobs=question.n_jobs), question.estimator),
        question,
        scale=4.0 * norm * x.n_rows**2,
        size=(x.n_rows, len(x.columns) + len(y.columns)),
        error=0.0,  # that of both sides' kernels is in the bound
        truncation=error_bound,
        std_error=None,
        permuted=np.stack(permuted, axis=1) if permuted else np.empty((len(sums), 0)),
        joint=np.zeros(0),
    )


def _sums_of_gaussians(x: Factors, y: Factors, question: Question) -> tuple[np.ndarray, float]:
    """Return the sums over all pairs of Gaussians, and their relative error."""
    total, bound = np.zeros(x.n_players + y.n_players + 1), 2.0 * (x.error + y.error)
    for (x_weight, one), (y_weight, other) in itertools.product(x.gaussians, y.gaussians):
        nodes, weights, error = _rule(one, other, question)
        total += x_weight * y_weight * _sums(one, other, nodes, weights, question)
        bound += x_weight * y_weight * error
    return total, bound


def _rule(x: Factors, y: Factors, question: Question) -> tuple[np.ndarray, np.ndarray, float]:
    """Return a rule for all players, and then the node t = 1 with weight 0. Narrow ranges need few nodes."""
    measure, spread = question.semivalue.of_size(1, 1), _range_spread(x) + _range_spread(y)
    (nodes, weights), error = enough_rule(measure, x.n_players + y.n_players - 1, spread)
    # The node t = 1 is v(all) itself, HSIC; its weight 0 keeps it out of the shares.
    return np.append(nodes, 1.0), np.append(weights, 0.0), 2.0 * error


def _range_spread(one: Factors) -> float:
    """Bound half the sum of 1 - kernel over the players, for any pair of rows. Every kernel falls with the distance."""
    # Two rows with the largest possible distance in every column.
    ends = np.stack([one.columns.min(axis=1), one.columns.max(axis=1)], axis=1)
    extremes = Factors(ends, one.column_names, one.kernels, one.bandwidths, one.starts, one.names)
    kernels = extremes.kernel_matrices(np.array([0]), np.array([1]))
    return float(0.5 * (1.0 - kernels).sum())


def _sums(x: Factors, y: Factors, nodes: np.ndarray, weights: np.ndarray, question: Question) -> np.ndarray:
    """Return the sums of contributions (n_x + n_y + 1,) over ordered pairs i != i'."""
    x_offsets, y_offsets = (offsets_of(_row_sums_at(nodes, one, question.n_jobs), question.estimator) for one in (x, y))

    n_players = x.n_players + y.n_players

    def add(panel: tuple[int, int], out: np.ndarray) -> None:
        for block in blocks_of(panel, x.n_rows, n_players):
            fill_joint_contributions(x.arrays, x_offsets, y.arrays, y_offsets, block, nodes, weights, out)

    return 2.0 * add_up(add, [(n_players + 1,)], x.n_rows, question.n_jobs)[0]


def _row_sums_at(nodes: np.ndarray, one: Factors, n_jobs: int | None) -> np.ndarray:
    """Return row sums (n_nodes, n_rows) of the product at each node, without the diagonal."""

    def add(panel: tuple[int, int], sums: np.ndarray) -> None:
        for block in blocks_of(panel, one.n_rows, len(nodes)):
            values = np.empty((len(nodes), block.height, block.padded))
            fill_node_products(one.arrays, block, nodes, values)
            add_sides(values, np.ones(values.shape[1:]), sums, block.start, sums, block.first)

    return add_up(add, [(len(nodes), one.n_rows + LANES)], one.n_rows, n_jobs)[0][:, : one.n_rows]

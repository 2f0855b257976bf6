"""Split the maximum mean discrepancy of two samples over their columns."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.checks import checked_generator
from exactshap._runtime.types import PerColumn, RandomState, TableLike
from exactshap.decompose.pairwise._estimate import (
    Estimate,
    PairwiseSettings,
    Question,
    average,
    check_room,
    choose_method,
    fields_of,
    jackknife_error,
    joint_values,
    rows_of_blocks,
)
from exactshap.decompose.pairwise._factors import (
    LANES,
    Factors,
    PanelBlock,
    add_contributions,
    add_sides,
    kernel_sum,
    mmd_of_sums,
)
from exactshap.decompose.pairwise._panels import (
    Run,
    add_up_gaussians,
    block_pairs,
    contributions,
    panels_of,
    run_in_waves,
    showing,
)
from exactshap.decompose.pairwise._reading import pooled_names, read_factors
from exactshap.errors import InputError, refused_beyond_memory
from exactshap.frames.stored import as_rows
from exactshap.results.decomposition import PairwiseDecomposition, frame_kind
from exactshap.semivalues import Semivalue
from exactshap.solvers.product import GradedRules, graded_rules


@refused_beyond_memory("The decomposition", "Pass the paths of files, which are read in pieces, or fewer rows")
def decompose_mmd(
    X: TableLike,
    Z: TableLike,
    *,
    kernel: PerColumn = "rbf",
    bandwidth: PerColumn = "median",
    estimator: str = "unbiased",
    groups: Mapping[str, Any] | None = None,
    index: str | Semivalue = "shapley",
    order: int = 1,
    n_permutations: int = 0,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
    settings: PairwiseSettings | None = None,
) -> PairwiseDecomposition:
    r"""Split the squared maximum mean discrepancy of two samples over their columns.

    .. math:: v(S) = \frac{\sum_{i \ne i'} k_S(x_i, x_{i'})}{n (n-1)} + \frac{\sum_{i \ne i'} k_S(z_i, z_{i'})}{m (m-1)}
              - \frac{2 \sum_{i, i'} k_S(x_i, z_{i'})}{n m}, \qquad k_S = \prod_{j \in S} k_j

    Columns outside S have kernel value 1 (the functional baseline), so that v(empty) = 0 and the Shapley shares sum to the
    statistic. A column that tells the samples apart has a large share; one that does not makes the kernel smaller
    everywhere, hides some of the difference, and has a share of 0 or below.

    Parameters
    ----------
    X, Z : arrays or DataFrames of shapes (n_rows, n_columns), (m_rows, n_columns), or paths
        The two samples, at least two rows each, with the same columns. Text, category and boolean columns are categorical. Missing
        cells are a level of their own: two missing cells are equal (kernel 1), a missing and a known one are not (kernel 0). Parquet
        files and folders (``scale.StoredTable`` leaves columns out) stream into a scratch file.
    kernel : str, radial kernel, sequence or mapping, default="rbf"
        "rbf" exp(-u^2 / (2 sigma^2)), "laplacian" ``exp(-|u| / sigma)``, "cauchy" 1 / (1 + u^2 / sigma^2) for numeric columns,
        "categorical" (1 if equal, else 0): one name for all, or one per column. ``kernels.Matern(nu=...)`` or
        ``kernels.RationalQuadratic(alpha=...)``: one function of the distance in all numeric columns, some 30 to 150 times as slow.
    bandwidth : float, "median", "column-median", sequence or mapping, default="median"
        sigma, in the unit of the column. "median": the median distance of two pooled rows over all numeric columns
        together, the paper's heuristic; columns should have one scale. "column-median": the median distance within each
        column times sqrt(d), for columns in different units. Beyond 2000 pooled rows on a seeded subsample of 2000.
    estimator : {"unbiased", "biased"}, default="unbiased"
        The U-statistic above, or the V-statistic with i = i' and denominators n^2, m^2.
    groups : mapping of name to columns, optional
        Columns that share one player.
    index : str or Semivalue, default="shapley"
        Which value; see :func:`exactshap.semivalues.available`.
    order : int, default=1
        Sets of 1..order players get a value; cost grows with their number.
    n_permutations : int, default=0
        Permutations of the sample labels for p-values of the statistic and of each share. Every p-value, that of a share
        too, tests that X and Z come from one distribution; the order of the shares says where they differ.
    random_state : int, Generator or None, default=0
        Seed of permutations, blocks and bandwidth subsamples.
    n_jobs : int, optional
        Threads, as in scikit-learn; None is one, -1 one for each core. The result has the same bits for every number.
    settings : exactshap.decompose.PairwiseSettings, optional
        How p-values are corrected, the level of intervals, blocks of rows instead of all pairs, progress, a map for many machines.

    Returns
    -------
    decomposition : PairwiseDecomposition
        ``values`` (n_columns,) in the unit of the squared MMD (kernel values, at most 1), ``total``, ``std_error``,
        ``intervals``, ``p_values``, ``residual``, ``to_frame()``, ``plot.bar()``.

    Raises
    ------
    InputError
        For samples of one row, different columns, infinite values, bandwidths that are not positive.
    InputTypeError
        For dates, which have no distance before they are numbers.
    ExactnessError
        If the shares do not add up to the textbook formula, computed on its own.

    Notes
    -----
    Exact up to rounding, about (n + d) eps, and ``details["error_bound"]``. Time O((n + m)^2 d nodes), with at most
    ceil(d / 2) and mostly 4 to 8 nodes; memory O((n + m) d). The jackknife comes from the row sums of the same pass. Under
    X ~ Z the statistic is degenerate and its intervals are not reliable: use the p-values.

    References
    ----------
    .. [1] Mohammadi, Chau & Muandet (2025). Computing exact Shapley values in polynomial time for product-kernel methods.
       Section 4.1; a quadrature replaces its recursion (equation 8).
    .. [2] Gretton et al. (2012). A kernel two-sample test. JMLR 13.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(100, 3)), rng.normal(size=(120, 3)) + [0.0, 1.0, 0.0]
    >>> shares = decompose_mmd(X, Z, n_permutations=99)
    >>> int(shares.values.argmax()), shares.p_value
    (1, 0.01)
    """
    first, second = as_rows(X, what="X"), as_rows(Z, what="Z")
    for table, owner in ((first, "X"), (second, "Z")):
        if table.n_rows < 2:
            raise InputError(f"`{owner}` has {table.n_rows} row", "A sample needs at least 2", "Pass more rows")
    settings = PairwiseSettings.given(settings)
    question = Question.checked(estimator, index, order, n_permutations, n_jobs, settings)
    names = pooled_names((first, second), ("X", "Z"))
    generator = checked_generator(random_state)
    factors = read_factors(
        (first, second), ("X", "Z"), names, kernel=kernel, bandwidth=bandwidth, groups=groups, random_state=generator
    )
    sets = question.sets(factors.n_players)
    chosen, n_blocks = choose_method(settings.method, factors.n_rows, len(factors.columns), 2 * settings.block_size, question)
    blocks = _two_sample_blocks(first.n_rows, second.n_rows, n_blocks, generator)
    # A generator, so that only one block of rows and labels is in memory.
    tasks = ((factors.take(rows), n, question, permuted_labels(size, n, n_permutations, generator)) for rows, n, size in blocks)
    with showing(settings.progress, "MMD", factors.n_rows, len(factors.columns), n_blocks, len(factors.gaussians)):
        if settings.map is None or n_blocks > 1:
            estimate = average(run_in_waves(settings.map or map, estimate_mmd, tasks))
        else:
            estimate = estimate_mmd(next(tasks), settings.map)
    fields = fields_of(estimate, question, sets)
    details = factors.describe() | question.details(chosen, n_blocks, (first.n_rows, second.n_rows), estimate)
    return PairwiseDecomposition(
        statistic="MMD2", feature_names=factors.names, backend=frame_kind(X), details=details, **fields
    )


def _two_sample_blocks(n: int, m: int, n_blocks: int, generator: np.random.Generator) -> list[tuple[Any, int, int]]:
    """Return each block's pooled rows, and the numbers of rows of the samples. Rows of the first sample come first."""
    if n_blocks == 1:
        return [(slice(None), n, n + m)]
    first, second = rows_of_blocks(n, n_blocks, generator), rows_of_blocks(m, n_blocks, generator)
    if min(map(len, first + second)) < 4:
        raise InputError(
            f"{n_blocks} blocks of samples with {n} and {m} rows are too small",
            "A block needs 4 rows of each",
            "Pass a larger block_size, or method='exact'",
        )
    return [(np.concatenate([a, b + n]), len(a), len(a) + len(b)) for a, b in zip(first, second, strict=True)]


def estimate_mmd(task: tuple[Factors, int, Question, np.ndarray], run: Run | None = None) -> Estimate:
    """Return the shares of one pair of samples: pooled rows, the first ``n`` of which are the first sample.

    Tasks are pairs of blocks of rows: with an ordered map they may run anywhere, without one the samples are the only blocks. The tasks
    and the order in which they are added up depend on the numbers of rows only.
    """
    factors, n, question, labels = task
    rules = graded_rules(question.semivalue, factors.n_players, question.order, even=True)
    means = _PairMeans(n, factors.n_rows - n, question.estimator)
    pairs = block_pairs(factors.n_rows, n, whole=run is None)
    # No block crosses the boundary (see ``block_pairs``), so its first row tells its sample.
    samples = [(int(pair.first[0] >= n), int(pair.second[0] >= n)) for pair in pairs]
    # Workers of the user's map take no threads of their own.
    of_task = question if run is None else replace(question, n_jobs=None)
    tasks = (
        (factors.take(pair.rows), pair.begin, np.pad(labels[pair.rows], ((0, LANES), (0, 0))), means.weight(*which))
        for pair, which in zip(pairs, samples, strict=True)
    )
    function = functools.partial(_part, rules=rules, question=of_task)
    sums = np.zeros((2, factors.n_players + 1, factors.n_rows))
    kernels, within = np.zeros((2, 2)), np.zeros((sums.shape[1], labels.shape[1]))
    joint, truncation = np.zeros(question.n_joint(factors.n_players)), 2.0 * float(rules.errors[-1])
    for pair, (own, other), part in zip(pairs, samples, run_in_waves(run or map, function, tasks), strict=True):
        by_row, more_within, more_joint, relative, kernel = part
        height = pair.begin or len(pair.rows)
        sums[other][:, slice(*pair.first)] += by_row[:, :height]
        if pair.begin:
            sums[own][:, slice(*pair.second)] += by_row[:, height:]
        kernels[own, other] += kernel
        within += more_within
        joint += more_joint
        truncation = max(truncation, relative)
    return Estimate.checked(
        "MMD2",
        means.statistic(*_split(sums, n)),
        mmd_of_sums(kernels, n, factors.n_rows - n, question.estimator),
        question,
        scale=4.0,  # the magnitudes of the three means add up to at most 1 + 1 + 2
        size=(factors.n_rows, len(factors.columns)),
        error=factors.error,
        truncation=truncation,
        std_error=means.jackknife(sums),
        permuted=_permuted(sums, within, labels, means),
        joint=joint,
    )


def _part(task: tuple[Factors, int, np.ndarray, float], rules: GradedRules, question: Question) -> tuple[Any, ...]:
    """Return what the pairs of two blocks add to the sums, 0 being the begin of a block with itself.

    They are sums (n_players + 1, n_rows) over the rows of the other block, those for permutations, values of sets with their
    truncation, and the sum of the kernel.
    """
    factors, begin, labels, weight = task

    def weights(block: PanelBlock) -> np.ndarray:
        return np.full((block.height, block.padded), weight)

    joint = joint_values(factors, weights, question, question.n_joint(factors.n_players), begin)
    sums = _pair_sums(factors, rules, labels, question.n_jobs, begin)
    return (*sums, *joint, kernel_sum(factors, begin, question.n_jobs))


def permuted_labels(n_rows: int, n: int, count: int, generator: np.random.Generator) -> np.ndarray:
    """Return which rows are in the first sample, (n_rows, count), one column per permutation."""
    check_room(count, n_rows + LANES, 1)  # a task pads its rows
    labels = np.zeros((count, n_rows), bool)
    labels[:, :n] = True
    return np.ascontiguousarray((generator.permuted(labels, axis=1) if count else labels).T)


def _pair_sums(
    factors: Factors, rules: GradedRules, labels: np.ndarray, n_jobs: int | None, begin: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the pair sums that all estimators and permutations are made of.

    ``sums[j, i]`` is :math:`\sum_{i'} G_j[i, i']` over the rows of the other block, of shape (n_players + 1, n_rows), and
    ``within[j, b]`` is :math:`p_b^\top G_j p_b` for the label vectors p, of shape (n_players + 1, n_permutations). The pair
    contributions G do not depend on the labels, so that all permutations of a block cost one matrix product.
    """
    shape = (factors.n_players + 1, factors.n_rows + LANES)

    def add(one: Factors, panel: tuple[int, int], sums: np.ndarray, within: np.ndarray) -> None:
        if not labels.shape[1]:
            # Only permutations need single pairs: without them the compiled pass stores none.
            block = PanelBlock(*panel, max(panel[0], begin), one.n_rows)
            add_contributions(one.arrays, rules.arrays, block, sums, sums)
            return
        for block, values in contributions(one, rules, panel, begin):
            rows, columns = slice(block.start, block.stop), slice(block.first, block.first + block.padded)
            add_sides(values, np.ones(values.shape[1:]), sums, block.start, sums, block.first)
            product = (values.reshape(-1, block.padded) @ labels[columns].astype(float)).reshape(shape[0], block.height, -1)
            within += 2.0 * np.einsum("jrb,rb->jb", product, labels[rows].astype(float))

    sums, within = add_up_gaussians(add, [shape, (shape[0], labels.shape[1])], factors, n_jobs, begin)
    return sums[:, : factors.n_rows], within


def _split(sums: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sums (n_players + 1,) within the first sample, the second, and between."""
    return sums[0, :, :n].sum(axis=1), sums[1, :, n:].sum(axis=1), sums[1, :, :n].sum(axis=1)


def _permuted(sums: np.ndarray, within: np.ndarray, labels: np.ndarray, means: _PairMeans) -> np.ndarray:
    r"""Return the shares (n_players + 1, n_permutations) for all label vectors p.

    With q = 1 - p: :math:`q^\top G q = 1^\top G 1 - 2 p^\top G 1 + p^\top G p` and
    :math:`p^\top G q = p^\top G 1 - p^\top G p`.
    """
    all_rows = sums.sum(axis=0)
    one_side = np.zeros_like(within)
    for start, stop in panels_of(all_rows.shape[1]):
        # In panels: labels as float64 for all rows at once would be eight times their size.
        one_side += all_rows[:, start:stop] @ labels[start:stop].astype(float)
    everything = all_rows.sum(axis=1, keepdims=True)
    return means.statistic(within, everything - 2.0 * one_side + within, one_side - within)


@dataclass(frozen=True)
class _PairMeans:
    """Turn sums over pairs into the statistic. Pairs i = i' contribute 0 to every share."""

    n: int
    m: int
    estimator: str

    @property
    def _denominators(self) -> tuple[float, float]:
        n, m = float(self.n), float(self.m)
        return (n * n, m * m) if self.estimator == "biased" else (n * (n - 1), m * (m - 1))

    def statistic(self, first: np.ndarray, second: np.ndarray, between: np.ndarray) -> np.ndarray:
        """Return first / (n (n - 1)) + second / (m (m - 1)) - 2 between / (n m), or the biased form."""
        of_first, of_second = self._denominators
        return first / of_first + second / of_second - 2.0 * between / (float(self.n) * self.m)

    def weight(self, own: int, other: int) -> float:
        """Return the weight of an ordered pair of two samples' rows, 0 or 1."""
        if own != other:
            return -1.0 / (self.n * self.m)
        return 1.0 / self._denominators[own]

    def jackknife(self, sums: np.ndarray) -> np.ndarray | None:
        """Return standard errors (n_players + 1,) from leave-one-out values; None below 3 rows."""
        n, m = self.n, self.m
        if min(n, m) < 3:
            return None
        first, second, between = (part[:, None] for part in _split(sums, n))
        # Leaving row i out removes (i, i') and (i', i): its sum counts twice within its sample, once between.
        without_x = replace(self, n=n - 1).statistic(first - 2.0 * sums[0, :, :n], second, between - sums[1, :, :n])
        without_z = replace(self, m=m - 1).statistic(first, second - 2.0 * sums[1, :, n:], between - sums[0, :, n:])
        return jackknife_error(without_x, without_z)

"""Split the maximum mean discrepancy of two samples over their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from exactshap._runtime.checks import checked_generator
from exactshap._runtime.types import PerColumn, RandomState, TableLike
from exactshap.decompose.pairwise._columns import pooled_names
from exactshap.decompose.pairwise._estimate import PairwiseSettings, Question, average, choose_method, fields_of, rows_of_blocks
from exactshap.decompose.pairwise._factors import read_factors
from exactshap.decompose.pairwise._mmd_estimate import estimate_mmd, permuted_labels
from exactshap.decompose.pairwise._panels import run_in_waves, showing
from exactshap.errors import InputError, refused_beyond_memory
from exactshap.frames.stored import as_rows
from exactshap.results.decomposition import PairwiseDecomposition, frame_kind
from exactshap.semivalues import Semivalue


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

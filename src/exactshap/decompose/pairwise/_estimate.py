"""Define what both statistics need: settings, estimates, p-values, errors and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count, check_jobs, check_level
from exactshap._runtime.machine import physical_memory
from exactshap.decompose.pairwise._factors import Factors, PanelBlock, fill_gaps
from exactshap.decompose.pairwise._panels import Progress, add_up, blocks_of
from exactshap.errors import (
    BudgetError,
    ExplanationWarning,
    InputError,
    InputTypeError,
    UnknownNameError,
    did_you_mean,
    message,
    warn,
)
from exactshap.results.decomposition import check_residual, pair_tolerance
from exactshap.semivalues import Measure, Rule, Semivalue, find
from exactshap.solvers import player_sets
from exactshap.solvers.core import coarse_bound, count_sets, enough_nodes

ESTIMATORS = ("unbiased", "biased")
METHODS = ("auto", "exact", "blocks")
CORRECTIONS = ("max", "holm", "fdr_bh", "fdr_by", "none")
# Pooled rows: beyond, even the plain shares of 20 columns take minutes.
MAX_EXACT_ROWS = 50_000
# Permutations of a column over all pairs that take as long as its share.
PERMUTATIONS_OF_A_PASS = 28
# Permutations times pairs times columns: half a minute at 2e-10 s each.
MAX_EXACT_WORK = 1.6e11
# Sets of players: 1.6 MB of values, and minutes of work for a thousand rows.
MAX_SETS = 200_000
Weights = Callable[[PanelBlock], np.ndarray]


@dataclass(frozen=True, eq=False, kw_only=True)
class PairwiseSettings:
    """Hold the settings of MMD and HSIC that most people leave alone.

    Parameters
    ----------
    correction : {"max", "holm", "fdr_bh", "fdr_by", "none"}, default="max"
        How p-values of shares are adjusted for their number: "max" by the permutations' own largest share (Westfall & Young
        1993), with 1 / (1 + n_permutations) the smallest p-value for any number of shares; Holm's is that many times larger.
    level : float, default=0.95
        Of the intervals from jackknife standard errors, and 1 minus the level that p-values are meant for: where no adjusted
        p-value can be as small, a warning says how many permutations it takes.
    method : {"auto", "exact", "blocks"}, default="auto"
        "blocks": the mean over disjoint random blocks of rows, an unbiased estimate with a standard error, linear in n.
        "auto" takes it where the exact sums would take longer than about half a minute on one thread (5,900 pooled rows of 20
        columns with 199 permutations, 17,000 without), and beyond 50,000 pooled rows; the result says so.
    block_size : int, default=1000
        Rows of a block, about; of each sample for MMD.
    progress : bool, callable or None, default=None
        As of :class:`exactshap.Explainer`: a line once the work takes more than two seconds; a function gets pairs of rows.
    map : callable, optional
        An ordered map, such as ``executor.map`` of a process pool: tasks over pairs of blocks of 4,096 rows (or the random blocks)
        go through it, with their rows. The same bits for every number of workers; off those without it by rounding only.

    Examples
    --------
    >>> from exactshap import decompose_mmd
    >>> from exactshap.decompose import PairwiseSettings
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> shares = decompose_mmd(X[:40], X[40:] + 1.0, n_permutations=99, settings=PairwiseSettings(correction="holm", level=0.9))
    >>> shares.details["correction"], shares.details["level"]
    ('holm', 0.9)
    """

    correction: str = "max"
    level: float = 0.95
    method: str = "auto"
    block_size: int = 1000
    progress: Progress = None
    map: Callable[..., Iterable[Any]] | None = None

    @classmethod
    def given(cls, settings: PairwiseSettings | None) -> PairwiseSettings:
        """Return the settings that a user passed, or those by default."""
        if settings is None:
            return cls()
        if isinstance(settings, cls):
            check_count("block_size", settings.block_size)
            if settings.map is not None and not callable(settings.map):
                do = "Pass executor.map of a pool, for example"
                raise InputTypeError("`map` must be a function, or None", f"Got {settings.map!r}", do)
            return settings
        do = "Pass settings=PairwiseSettings(correction='holm', method='exact'), from exactshap.decompose"
        raise InputTypeError("`settings` must be a PairwiseSettings", f"Got {type(settings).__name__}", do)


@dataclass(frozen=True, eq=False)
class Question:
    """Hold the checked request: estimator, index, order and inference."""

    estimator: str
    semivalue: Semivalue
    order: int
    n_permutations: int
    correction: str
    level: float
    n_jobs: int | None

    @classmethod
    def checked(
        cls, estimator: str, index: Any, order: int, n_permutations: int, n_jobs: int | None, settings: PairwiseSettings
    ) -> Question:
        """Return the question, or raise an error that names the invalid part."""
        if estimator not in ESTIMATORS:
            raise UnknownNameError(f"Unknown `estimator` {estimator!r}", do=did_you_mean(str(estimator), ESTIMATORS))
        check_inference(n_permutations, settings.correction, settings.level)
        check_count("order", order)
        check_jobs(n_jobs)
        return cls(estimator, find(index), order, n_permutations, settings.correction, settings.level, n_jobs)

    def details(self, method: str, n_blocks: int, n_rows: Any, estimate: Estimate) -> dict[str, Any]:
        """Return the details of how the result was computed."""
        return {
            "estimator": self.estimator,
            "level": self.level,
            "correction": self.correction,
            "method": method,
            "n_blocks": n_blocks,
            "n_rows": n_rows,
            "error_bound": estimate.error_bound,
        }

    def sets(self, n_players: int) -> tuple[tuple[int, ...], ...]:
        """Return the sets that get a value, by size. Refuse more than fit."""
        if self.order > n_players:
            raise InputError(f"The 'order' parameter must be at most the number of columns, {n_players}", f"Got {self.order}")
        # Listing the triples of hundreds of columns would itself take the memory that this refuses.
        sets = player_sets(n_players, self.order) if self.order < 3 or n_players < 60 else ()
        if not 0 < len(sets) <= MAX_SETS:
            raise BudgetError(
                f"order={self.order} over {n_players} columns has too many sets",
                f"The limit is {MAX_SETS}",
                "Lower the order, or put columns into groups=",
            )
        return sets

    def n_joint(self, n_players: int) -> int:
        """Return the number of sets of several players that get a value."""
        return count_sets(n_players, self.order) - n_players


@dataclass(frozen=True, eq=False)
class Estimate:
    """Hold shares and, last, the statistic: ``values``, ``std_error`` (n_players + 1,), ``permuted`` (n_players + 1, B).

    ``joint_values`` (n_sets - n_players,) belong to the sets of more than one player. ``residual`` and ``tolerance`` compare
    the fast path with the direct one.
    """

    values: np.ndarray
    std_error: np.ndarray | None
    permuted: np.ndarray
    joint_values: np.ndarray
    residual: float
    tolerance: float
    error_bound: float

    @classmethod
    def checked(
        cls,
        statistic: str,
        values: np.ndarray,
        direct: float,
        question: Question,
        *,
        scale: float,
        size: tuple[int, int],
        error: float,
        truncation: float,
        std_error: np.ndarray | None,
        permuted: np.ndarray,
        joint: np.ndarray,
    ) -> Estimate:
        """Return an estimate that agrees with the ``direct`` statistic; ``size``: rows and columns, ``error``: of a radial kernel."""
        # Values that are not efficient do not add up to the statistic: then it is the fast one that is compared.
        fast = values[:-1].sum() + joint.sum() if question.semivalue.is_efficient(question.order) else values[-1]
        residual = direct - float(fast)
        tolerance = pair_tolerance(scale, *size) + scale * error
        check_residual(statistic, residual, tolerance)
        bound = scale * (truncation + 2.0**question.order * error)
        return cls(values, std_error, permuted, joint, residual, tolerance, bound)


def check_inference(n_permutations: int, correction: str, level: float) -> None:
    """Refuse impossible settings of the inference before anything is computed."""
    check_count("n_permutations", n_permutations, 0)
    if correction not in CORRECTIONS:
        raise UnknownNameError(f"Unknown `correction` {correction!r}", do=did_you_mean(str(correction), CORRECTIONS))
    check_level(level)


def check_reach(n_permutations: int, correction: str, n_values: int, level: float) -> None:
    r"""Warn if no adjusted p-value can be as small as 1 - level, whatever the data.

    .. math:: p_j \ge \frac{m}{1 + B}, \qquad m = 1 \text{ ("max", "fdr_bh", "none")}, \quad
              n \text{ ("holm")}, \quad \sum_{k \le n} 1/k \text{ ("fdr_by")}
    """
    times = {"holm": float(n_values), "fdr_by": float(np.sum(1.0 / np.arange(1, n_values + 1)))}.get(correction, 1.0)
    smallest, alpha = times / (1 + n_permutations), 1.0 - level
    # 1 - 0.9 is a little below 0.1 in floating point, which nine permutations reach exactly.
    if smallest <= alpha * (1.0 + 1e-9):
        return
    enough = int(np.ceil(times / alpha * (1.0 - 1e-9))) - 1
    other = " or correction='max'" if times > 1.0 and 1 / (1 + n_permutations) <= alpha else ""
    warn(
        message(
            f"p-values cannot reach 1 - level = {alpha:.3g}",
            f"With {n_permutations} permutations, {n_values} shares and correction={correction!r} they are at least {smallest:.3g}",
            f"Pass n_permutations={enough}{other}",
        ),
        ExplanationWarning,
    )


def check_room(n_permutations: int, numbers: int, size: int) -> None:
    """Refuse permutations that cannot be kept: each has ``numbers`` of ``size`` bytes."""
    needed = 2.0 * n_permutations * numbers * size  # NumPy copies what it permutes
    if needed > 0.8 * physical_memory():
        got = f"They would take {needed / 2.0**30:.3g} GiB"
        raise BudgetError(f"{n_permutations:,} permutations do not fit the memory", got, "Pass a smaller n_permutations")


def choose_method(method: str, n_rows: int, n_columns: int, block_size: int, question: Question) -> tuple[str, int]:
    """Return "exact" or "blocks", and the number of blocks."""
    estimator = question.estimator
    if method not in METHODS:
        raise UnknownNameError(f"Unknown `method` {method!r}", do=did_you_mean(str(method), METHODS))
    # The biased estimator has no blocks, as its bias would stay in their mean: it is computed exactly up to the limit.
    work = float(n_rows) ** 2 * n_columns * (PERMUTATIONS_OF_A_PASS + question.n_permutations)
    long = n_rows > MAX_EXACT_ROWS or (estimator == "unbiased" and work > MAX_EXACT_WORK and n_rows >= 2 * block_size)
    if method == "exact" or (method == "auto" and not long):
        return "exact", 1
    if estimator == "biased":
        raise InputError(
            "Blocks of rows need estimator='unbiased'",
            f"Got 'biased' with {n_rows} rows: the bias of each block would stay in the mean",
            "Pass estimator='unbiased', or method='exact'",
        )
    check_count("block_size", block_size, 8)
    n_blocks = int(n_rows // block_size)
    if n_blocks < 2:
        raise InputError(
            "method='blocks' needs at least two blocks",
            f"Got {n_rows} rows and block_size={block_size}",
            "Pass a smaller block_size, or method='exact'",
        )
    return "blocks", n_blocks


def rows_of_blocks(n_rows: int, n_blocks: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Return a random partition of the rows into (almost) equal blocks."""
    return [np.sort(rows) for rows in np.array_split(generator.permutation(n_rows), n_blocks)]


def permutations(n_rows: int, count: int, generator: np.random.Generator) -> np.ndarray:
    """Return ``count`` random permutations of the rows, of shape (count, n_rows)."""
    check_room(count, n_rows, 4)
    rows = np.arange(n_rows, dtype=np.int32)
    return generator.permuted(np.tile(rows, (count, 1)), axis=1) if count else np.empty((0, n_rows), np.int32)


def average(estimates: Iterable[Estimate]) -> Estimate:
    r"""Return the mean over disjoint random blocks, with a standard error from their spread.

    .. math:: \hat\sigma = \sqrt{\tfrac{1}{B (B - 1)} \sum_b (\phi_b - \bar\phi)^2}

    Blocks are independent and each is unbiased, so that the mean is unbiased and the error honest (Zaremba et al. 2013). The
    b-th permutations of all blocks together are one permutation within blocks: p-values stay valid.
    """
    blocks = list(estimates)
    if len(blocks) == 1:
        return blocks[0]
    values = np.stack([block.values for block in blocks])
    # Residuals could cancel in a mean, so the worst block is reported.
    worst = max(blocks, key=lambda block: abs(block.residual) / block.tolerance)
    return Estimate(
        values=values.mean(axis=0),
        std_error=values.std(axis=0, ddof=1) / np.sqrt(len(blocks)),
        permuted=np.mean([block.permuted for block in blocks], axis=0),
        joint_values=np.mean([block.joint_values for block in blocks], axis=0),
        residual=worst.residual,
        tolerance=worst.tolerance,
        error_bound=max(block.error_bound for block in blocks),
    )


def fields_of(estimate: Estimate, question: Question, sets: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    """Return the fields of the result: shares apart from the statistic, intervals, p-values."""
    values, n = estimate.values, len(estimate.values) - 1
    fields: dict[str, Any] = {
        "values": values[:n],
        "total": values[n],
        "residual": estimate.residual,
        "tolerance": estimate.tolerance,
        "order": question.order,
        "index": question.semivalue.name,
    }
    if estimate.std_error is not None:
        from scipy.special import ndtri

        fields["std_error"], fields["total_std_error"] = estimate.std_error[:n], float(estimate.std_error[n])
        half = ndtri(0.5 + question.level / 2.0) * estimate.std_error[:n]
        fields["intervals"] = np.stack([values[:n] - half, values[:n] + half], axis=-1)
    if question.order > 1:
        fields["sets"], fields["set_values"] = sets, np.concatenate([values[:n], estimate.joint_values])
    if question.n_permutations:
        check_reach(question.n_permutations, question.correction, n, question.level)
        fields |= tested(values, estimate.permuted, n, question.correction, estimate.tolerance)
    return fields


def tested(values: np.ndarray, permuted: np.ndarray, n_shares: int, correction: str, tolerance: float) -> dict[str, Any]:
    r"""Return the fields of a result that permutations give: those of the first values, shares, and of their statistic, if it follows.

    .. math:: p_j = \frac{1 + \#\{b : \phi_j^{(b)} \ge \phi_j\}}{1 + B}

    The observed order counts as one of the permutations, so that p is valid for every B and never 0 (Phipson & Smyth 2010).
    Values within ``tolerance`` (rounding) are ties.
    """
    p_values = (1 + (permuted >= values[:, None] - tolerance).sum(axis=1)) / (1 + permuted.shape[1])
    shares = slice(n_shares)
    found: dict[str, Any] = {"p_values": p_values[shares], "null_values": permuted[shares].T}
    found["p_adjusted"] = adjust(p_values[shares], correction, values[shares], permuted[shares], tolerance)
    if len(values) > n_shares:
        found |= {"p_value": float(p_values[n_shares]), "null_totals": permuted[n_shares]}
    return found


def adjust(p_values: np.ndarray, correction: str, observed: np.ndarray, permuted: np.ndarray, tolerance: float) -> np.ndarray:
    """Return p-values adjusted for looking at several shares.

    "holm" (family-wise, Holm 1979), "fdr_bh" and "fdr_by" (false discovery rate, by SciPy), "none", and "max": family-wise
    by the permutation distribution of the largest studentised share (Westfall & Young 1993), sharper than Holm where the
    shares move together.
    """
    if correction == "none":
        return p_values.copy()
    if correction == "holm":
        order = np.argsort(p_values, kind="stable")
        # Holm: the k-th smallest p-value times the number of those that are not smaller, made monotone.
        steps = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
        adjusted = np.empty_like(p_values)
        adjusted[order] = np.minimum(steps, 1.0)
        return adjusted
    if correction == "max":
        return _largest_share(observed, permuted, tolerance)
    from scipy.stats import false_discovery_control

    return false_discovery_control(p_values, method=correction.removeprefix("fdr_"))


def _largest_share(observed: np.ndarray, permuted: np.ndarray, tolerance: float) -> np.ndarray:
    """Compare each studentised share with the largest one of every permutation. Constant shares have z = 0."""
    # The observed order is one of the permutations, also for mean and spread: all of them are exchangeable.
    everything = np.column_stack([observed, permuted])
    spread = everything.std(axis=1, keepdims=True)
    # A share that only rounds differently has no spread to be measured by.
    moving = spread > tolerance
    z = np.where(moving, everything - everything.mean(axis=1, keepdims=True), 0.0) / np.where(moving, spread, 1.0)
    largest = z.max(axis=0)
    return (largest[None, :] >= z[:, :1] - 1e-12).mean(axis=1)


def jackknife_error(*samples: np.ndarray) -> np.ndarray:
    r"""Return standard errors (n_values,) from leave-one-out values (n_values, n_rows) of each sample.

    .. math:: \hat\sigma^2 = \sum_s \frac{n_s - 1}{n_s} \sum_i \bigl(\theta_{s,-i} - \bar\theta_{s,-\cdot}\bigr)^2
    """
    variance = np.zeros(samples[0].shape[0])
    for left_out in samples:
        n = left_out.shape[1]
        variance += (n - 1) / n * ((left_out - left_out.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return np.sqrt(variance)


def joint_values(factors: Factors, weights: Weights, question: Question, n_sets: int, begin: int) -> tuple[np.ndarray, float]:
    r"""Return the values (n_sets,) of all sets of 2..order players, and their truncation.

    Sets are ordered by size, then lexicographically.

    .. math:: \phi_T = \sum_{i \ne i'} w_{ii'} \prod_{j \in T} (k_j - 1) \int \prod_{k \notin T} (1 - t + t k_k)\, \mathrm{d}\mu(t)

    ``weights(block)`` gives w, of the block's shape (height, padded). The truncation is relative to the sum of the magnitudes
    of w, 0.0 where all rules are exact; each block has its own rules. With ``begin``, only pairs i < begin <= i' count. Cost O(n^2 n_sets nodes).
    """
    total, truncations = np.zeros(n_sets), [0.0]
    # A radial kernel is a mixture of Gaussians, each a product over the columns, and every sum is linear in the kernel.
    for weight, one in factors.gaussians if question.order > 1 else ():

        def add(panel: tuple[int, int], out: np.ndarray, one: Factors = one) -> None:
            for block in blocks_of(panel, one.n_rows, one.n_players, begin):
                values, relative = _block_values(one, block, weights(block), question, n_sets)
                out += values
                truncations.append(relative)

        (values,) = add_up(add, [(n_sets,)], factors.n_rows, question.n_jobs, begin)
        # Pairs i < i' were visited, and w is symmetric.
        total += weight * 2.0 * values
    return total, max(truncations)


def _block_values(
    factors: Factors, block: PanelBlock, weights: np.ndarray, question: Question, n_sets: int
) -> tuple[np.ndarray, float]:
    """Return set values of a block's pairs, as terms of one product game, by a rule for their largest spread."""
    from exactshap.solvers.product import fill_interactions

    d = factors.n_players
    gaps = np.empty((d, block.height, block.padded))
    fill_gaps(factors.arrays, block, gaps)
    # Of factors between 1 and 1 - gap, all of height 1 (see ``solvers/core/_nodes.py``).
    spread = float(gaps.sum(axis=0).max()) / 2.0
    inside = (1.0 - gaps).reshape(1, d, -1)
    outside, coefficients = np.ones_like(inside), np.ascontiguousarray(weights.reshape(1, -1))
    out, offset, truncation = np.zeros((1, n_sets, 1)), 0, 0.0
    for size in range(2, question.order + 1):
        count = math.comb(d, size)
        rule, relative = enough_rule(question.semivalue.of_size(size, question.order), d - size, spread)
        part = np.zeros((1, count, 1))
        fill_interactions(inside, outside, coefficients, np.ones(1), size, *rule, part)
        out[:, offset : offset + count] = part
        offset, truncation = offset + count, max(truncation, relative)
    return out[0, :, 0], truncation


def enough_rule(measure: Measure, degree: int, spread: float) -> tuple[Rule, float]:
    """Return a rule that is exact up to rounding, and its relative truncation. Its arrays are writable."""
    n_nodes = enough_nodes(spread, degree, measure)
    truncated = n_nodes < degree // 2 + 1
    # n Gauss nodes are exact up to degree 2 n - 1, beyond which the factors' product has no more digits to give.
    nodes, weights = measure.rule(2 * n_nodes - 1 if truncated else degree)
    return (np.array(nodes, float), np.array(weights, float)), coarse_bound(spread, n_nodes, measure) if truncated else 0.0

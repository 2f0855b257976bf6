"""Estimates of HSIC and its shares from one table of rows, in one sweep or as tasks over pairs of blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.threads import map_in_threads
from exactshap.decompose.pairwise._direct import direct_hsic, direct_sums, hsic_of_sums
from exactshap.decompose.pairwise._estimate import Estimate, Question, joint_values, residual_of
from exactshap.decompose.pairwise._factors import Factors
from exactshap.decompose.pairwise._hsic_weights import CentredKernel, centred_kernel, offsets_of, row_sums_of
from exactshap.decompose.pairwise._inference import jackknife_error
from exactshap.decompose.pairwise._kernels import LANES, add_sides
from exactshap.decompose.pairwise._panels import Rules, Sweep, block_pairs, followed, rule_table, run_in_waves
from exactshap.results.decomposition import check_residual, pair_tolerance

__all__ = ["estimate_by_tasks", "estimate_hsic"]

_AT_ONCE = 32  # permutations whose weights are made together: a block of them stays in cache
Run = Callable[..., Iterable[Any]]


@dataclass(frozen=True, eq=False)
class _PairSums:
    r"""Sums of the pair contributions G over pairs.

    ``weighted[j, i]`` is :math:`\sum_{i'} G_j[i,i'] L_c[i,i']`, ``plain[j, i]`` the same without the centred kernel, and
    ``permuted[j, b]`` is :math:`\sum_{i,i'} G_j[i,i'] L_c[\pi_b i, \pi_b i']`.
    """

    weighted: np.ndarray
    plain: np.ndarray
    permuted: np.ndarray


def estimate_hsic(task: tuple[Factors, Factors, Question, np.ndarray]) -> Estimate:
    """Return the shares of the columns of ``x``; the last of the task are permutations of the rows of ``y``."""
    x, y, question, orders = task
    rules = rule_table(question.semivalue, x.n_players, question.order)
    target = centred_kernel(y, question.estimator, question.n_jobs)
    sums = _pair_sums(x, rules, target, orders, question.n_jobs)
    joint = joint_values(x, target.block, None, question, len(question.sets(x.n_players)) - x.n_players)
    products = target.times(sums.plain, question.n_jobs)
    direct = direct_hsic(x, y, question.estimator, question.n_jobs)
    return _finished(x, target, question, rules, (sums, products, *joint, direct))


def estimate_by_tasks(x: Factors, y: Factors, question: Question, run: Run) -> Estimate:
    """Return the same shares from three rounds of tasks over pairs of blocks of rows, which any ordered map may run anywhere.

    The kernel of Y is centred by its row sums over all rows (first round), the contributions of pairs are weighted with it
    (second), and their row sums are multiplied with it for the jackknife (third).
    """
    rules, alone = rule_table(question.semivalue, x.n_players, question.order), replace(question, n_jobs=None)
    pairs, n = block_pairs(x.n_rows), x.n_rows

    def tasks(*vectors: np.ndarray) -> Iterable[_Task]:
        for pair in pairs:
            rows = pair.rows
            some = tuple(np.ascontiguousarray(vector[..., rows]) for vector in vectors)
            yield _Task(x.take(rows), y.take(rows), pair.begin, some, rules, alone)

    product, k_rows, l_rows, row_sums = 0.0, np.zeros(n), np.zeros(n), np.zeros(n)
    for pair, (more, k, kernel, fast) in zip(pairs, run_in_waves(run, _row_sums, tasks()), strict=True):
        product += more
        for total, part in ((k_rows, k), (l_rows, kernel), (row_sums, fast)):
            total[pair.rows] += part
    target = CentredKernel(y, offsets_of(row_sums, question.estimator), question.estimator)
    weighted, plain = np.zeros((2, x.n_players + 1, n))
    joint, truncation = np.zeros(len(question.sets(x.n_players)) - x.n_players), 0.0
    for pair, (sums, more, relative) in zip(pairs, run_in_waves(run, _contributions, tasks(target.offsets)), strict=True):
        weighted[:, pair.rows] += sums.weighted
        plain[:, pair.rows] += sums.plain
        joint, truncation = joint + more, max(truncation, relative)
    products = plain * target.diagonal
    for pair, part in zip(pairs, run_in_waves(run, _products, tasks(target.offsets, plain)), strict=True):
        products[:, pair.rows] += part
    sums = _PairSums(weighted, plain, np.empty((len(plain), 0)))
    direct = hsic_of_sums((product, k_rows, l_rows), question.estimator)
    return _finished(x, target, question, rules, (sums, products, joint, truncation, direct))


@dataclass(frozen=True, eq=False)
class _Task:
    """Pairs of two blocks of rows, or of one block with itself (``begin`` 0), and numbers of their rows."""

    x: Factors
    y: Factors
    begin: int
    vectors: tuple[np.ndarray, ...]
    rules: Rules
    question: Question


def _row_sums(task: _Task) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    return (*direct_sums(task.x, task.y, task.begin), row_sums_of(task.y, None, task.begin))


def _contributions(task: _Task) -> tuple[_PairSums, np.ndarray, float]:
    target = CentredKernel(task.y, task.vectors[0], task.question.estimator)
    sums = _pair_sums(task.x, task.rules, target, np.empty((0, task.x.n_rows), np.int32), None, task.begin)
    n_sets = len(task.question.sets(task.x.n_players)) - task.x.n_players
    return (sums, *joint_values(task.x, target.block, None, task.question, n_sets, task.begin))


def _products(task: _Task) -> np.ndarray:
    offsets, plain = task.vectors
    return CentredKernel(task.y, offsets, task.question.estimator).off_diagonal(plain, None, task.begin)


def _finished(x: Factors, target: CentredKernel, question: Question, rules: Rules, found: tuple[Any, ...]) -> Estimate:
    """Return the estimate from all sums over pairs, held against the direct statistic."""
    sums, products, joint, truncation, direct = found
    norm = target.norm(x.n_rows)
    values = norm * sums.weighted.sum(axis=1)
    residual = residual_of(direct, values, norm * joint, question)
    scale = 4.0 * norm * x.n_rows**2
    tolerance = pair_tolerance(scale, x.n_rows, len(x.columns) + len(target.factors.columns))
    check_residual("HSIC", residual, tolerance)
    bound = scale * max(rules.error_bound, truncation)
    return Estimate(values, _jackknife(sums, target, products), norm * sums.permuted, norm * joint, residual, tolerance, bound)


def _pair_sums(
    x: Factors, rules: Rules, target: CentredKernel, orders: np.ndarray, n_jobs: int | None, begin: int = 0
) -> _PairSums:
    """Return the sums over pairs, in one sweep: permutations only change the weights of the pair contributions."""
    sweep = Sweep(x, rules, begin=begin)
    shape = (x.n_players + 1, x.n_rows + LANES)

    def panel_sums(panel: tuple[int, int]) -> _PairSums:
        sums = _PairSums(np.zeros(shape), np.zeros(shape), np.zeros((shape[0], len(orders))))
        if not len(orders):
            for block in sweep.whole(panel):
                target.add_weighted(sweep, block, sums.weighted, sums.plain)
            return sums
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


def _jackknife(sums: _PairSums, target: CentredKernel, products: np.ndarray) -> np.ndarray | None:
    r"""Return standard errors (n_players + 1,) from all leave-one-out values at once; None where too few rows stay.

    HSIC does not change when :math:`a_i + a_{i'}` is added to the kernel of Y, so the kernel centred on all rows serves the
    samples without one row. With A = sum G L_c, c = (G ∘ L_c) 1, g = G 1 and the row sums of L_c being 0, leaving row i out
    gives A - 2 c_i, the inner product c_i - (L_c g)_i + g_i L_c[i,i] of the row sums, and their totals
    1'g - 2 g_i and L_c[i,i]. ``products`` are the L_c g.
    """
    n = sums.plain.shape[1]
    if n - 1 < (4 if target.estimator == "unbiased" else 2):
        return None
    c, g, diagonal = sums.weighted, sums.plain, target.diagonal
    left = c.sum(axis=1, keepdims=True) - 2.0 * c
    inner = c - products + g * diagonal
    if target.estimator == "unbiased":
        without = left - 2.0 * inner / (n - 3)
    else:
        without = left - 2.0 * inner / (n - 1) + (g.sum(axis=1, keepdims=True) - 2.0 * g) * diagonal / (n - 1) ** 2
    return jackknife_error(target.norm(n - 1) * without)

"""Estimate MMD and its shares, as tasks over pairs of blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.threads import map_in_threads
from exactshap.decompose.pairwise._direct import kernel_sum, mmd_of_sums
from exactshap.decompose.pairwise._estimate import Estimate, Question, joint_values, residual_of
from exactshap.decompose.pairwise._factors import Factors
from exactshap.decompose.pairwise._inference import check_room, jackknife_error
from exactshap.decompose.pairwise._kernels import LANES, PanelBlock, add_sides
from exactshap.decompose.pairwise._panels import Rules, Run, Sweep, block_pairs, followed, panels_of, rule_table, run_in_waves
from exactshap.results.decomposition import check_residual, pair_tolerance


def estimate_mmd(task: tuple[Factors, int, Question, np.ndarray], run: Run | None = None) -> Estimate:
    """Return the shares of one pair of samples: pooled rows, the first ``n`` of which are the first sample.

    Tasks are pairs of blocks of rows: with an ordered map they may run anywhere, without one the samples are the only blocks. The tasks
    and the order in which they are added up depend on the numbers of rows only.
    """
    factors, n, question, labels = task
    rules = rule_table(question.semivalue, factors.n_players, question.order)
    scale = _PairMeans(n, factors.n_rows - n, question.estimator)
    pairs = block_pairs(factors.n_rows, n, whole=run is None)
    # No block crosses the boundary (see ``block_pairs``), so its first row tells its sample.
    samples = [(int(pair.first[0] >= n), int(pair.second[0] >= n)) for pair in pairs]
    # Workers of the user's map take no threads of their own.
    of_task = question if run is None else replace(question, n_jobs=None)
    tasks = (
        _Task(
            factors.take(pair.rows),
            pair.begin,
            np.pad(labels[pair.rows], ((0, LANES), (0, 0))),
            scale.weight(*which),
            rules,
            of_task,
        )
        for pair, which in zip(pairs, samples, strict=True)
    )
    sums = np.zeros((2, factors.n_players + 1, factors.n_rows))
    kernels = np.zeros((2, 2))
    within, joint, truncation = np.zeros((sums.shape[1], labels.shape[1])), np.zeros(question.n_joint(factors.n_players)), 0.0
    for pair, (own, other), part in zip(pairs, samples, run_in_waves(run or map, _part, tasks), strict=True):
        height = pair.begin or len(pair.rows)
        sums[other][:, slice(*pair.first)] += part.sums[:, :height]
        if pair.begin:
            sums[own][:, slice(*pair.second)] += part.sums[:, height:]
        kernels[own, other] += part.kernel
        within += part.within
        joint += part.joint
        truncation = max(truncation, part.truncation)
    direct = mmd_of_sums(kernels, n, factors.n_rows - n, question.estimator)
    return _finished(factors, question, scale, rules, labels, (sums, within, joint, truncation, direct))


@dataclass(frozen=True, eq=False)
class _Task:
    """Name the pairs of two blocks of rows; ``begin`` is 0 for a block with itself."""

    factors: Factors
    begin: int
    labels: np.ndarray
    weight: float
    rules: Rules
    question: Question


@dataclass(frozen=True, eq=False)
class _Part:
    """Hold what a task adds to the sums; ``sums`` (n_players + 1, n_rows) sum over the rows of the other block."""

    sums: np.ndarray
    within: np.ndarray
    joint: np.ndarray
    truncation: float
    kernel: float


def _part(task: _Task) -> _Part:
    factors, begin, question = task.factors, task.begin, task.question
    sums, within = _pair_sums(factors, task.rules, task.labels, question.n_jobs, begin)

    def weights(block: PanelBlock) -> np.ndarray:
        return np.full((block.height, block.padded), task.weight)

    joint, truncation = joint_values(factors, weights, question, question.n_joint(factors.n_players), begin)
    return _Part(sums, within, joint, truncation, kernel_sum(factors, begin, question.n_jobs))


def _finished(
    factors: Factors, question: Question, scale: _PairMeans, rules: Rules, labels: np.ndarray, found: tuple[Any, ...]
) -> Estimate:
    """Return the estimate from sums over pairs, with its residual to the direct statistic."""
    sums, within, joint, truncation, direct = found
    values = scale.statistic(*_split(sums, scale.n))
    residual = residual_of(direct, values, joint, question)
    # The magnitudes of the three means add up to at most 1 + 1 + 2.
    tolerance = pair_tolerance(4.0, factors.n_rows, len(factors.columns)) + 4.0 * factors.error
    check_residual("MMD2", residual, tolerance)
    permuted = _permuted(sums, within, labels, scale)
    bound = 4.0 * (max(rules.error_bound, truncation) + 2.0**question.order * factors.error)
    return Estimate(values, scale.jackknife(sums), permuted, joint, residual, tolerance, bound)


def permuted_labels(n_rows: int, n: int, count: int, generator: np.random.Generator) -> np.ndarray:
    """Return which rows are in the first sample, (n_rows + LANES, count), one column per permutation."""
    check_room(count, n_rows + LANES, 1)
    labels = np.zeros((count, n_rows), bool)
    labels[:, :n] = True
    permuted = generator.permuted(labels, axis=1) if count else labels
    return np.ascontiguousarray(np.pad(permuted, ((0, 0), (0, LANES))).T)


def _pair_sums(
    factors: Factors, rules: Rules, labels: np.ndarray, n_jobs: int | None, begin: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the pair sums that all estimators and permutations are made of.

    ``sums[j, i]`` is :math:`\sum_{i'} G_j[i, i']` over the rows of the other block, of shape (n_players + 1, n_rows), and
    ``within[j, b]`` is :math:`p_b^\top G_j p_b` for the label vectors p, of shape (n_players + 1, n_permutations). The pair
    contributions G do not depend on the labels, so that all permutations of a block cost one matrix product.
    """
    if factors.radial is not None:
        parts = [(w, _pair_sums(one, rules, labels, n_jobs, begin)) for w, one in factors.gaussians]
        return tuple(np.sum([w * part[i] for w, part in parts], axis=0) for i in range(2))  # type: ignore[return-value]
    sweep = Sweep(factors, rules, begin)
    shape = (factors.n_players + 1, factors.n_rows + LANES)

    def panel_sums(panel: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        sums, within = np.zeros(shape), np.zeros((shape[0], labels.shape[1]))
        if not labels.shape[1]:
            # Only permutations need single pairs: without them the compiled pass stores none.
            sweep.add(panel, sums)
            return sums, within
        for block, values in sweep.blocks(panel):
            rows, columns = slice(block.start, block.stop), slice(block.first, block.first + block.padded)
            add_sides(values, np.ones(values.shape[1:]), sums, block.start, sums, block.first)
            product = (values.reshape(-1, block.padded) @ labels[columns].astype(float)).reshape(shape[0], block.height, -1)
            within += 2.0 * np.einsum("jrb,rb->jb", product, labels[rows].astype(float))
        return sums, within

    total, total_within = np.zeros(shape), np.zeros((shape[0], labels.shape[1]))
    panels = sweep.panels()
    for sums, within in followed(map_in_threads(panel_sums, panels, n_jobs), panels, factors.n_rows, begin):
        total += sums
        total_within += within
    return total[:, : factors.n_rows], total_within


def _split(sums: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sums (n_players + 1,) within the first sample, the second, and between."""
    return sums[0, :, :n].sum(axis=1), sums[1, :, n:].sum(axis=1), sums[1, :, :n].sum(axis=1)


def _permuted(sums: np.ndarray, within: np.ndarray, labels: np.ndarray, scale: _PairMeans) -> np.ndarray:
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
    return scale.statistic(within, everything - 2.0 * one_side + within, one_side - within)


@dataclass(frozen=True)
class _PairMeans:
    """Turn sums over pairs into the statistic; pairs i = i' contribute 0 to every share."""

    n: int
    m: int
    estimator: str

    def _denominators(self, n: Any, m: Any) -> tuple[Any, Any]:
        return (n * n, m * m) if self.estimator == "biased" else (n * (n - 1), m * (m - 1))

    def statistic(
        self, first: np.ndarray, second: np.ndarray, between: np.ndarray, n: int | None = None, m: int | None = None
    ) -> Any:
        """Return first / (n (n - 1)) + second / (m (m - 1)) - 2 between / (n m), or the biased form."""
        n, m = float(self.n if n is None else n), float(self.m if m is None else m)  # type: ignore[assignment]
        of_first, of_second = self._denominators(n, m)
        return first / of_first + second / of_second - 2.0 * between / (n * m)  # type: ignore[operator]

    def weight(self, own: int, other: int) -> float:
        """Return the weight of an ordered pair of two samples' rows, 0 or 1."""
        if own != other:
            return -1.0 / (self.n * self.m)
        return 1.0 / float(self._denominators(float(self.n), float(self.m))[own])

    def jackknife(self, sums: np.ndarray) -> np.ndarray | None:
        """Return standard errors (n_players + 1,) from leave-one-out values; None below 3 rows."""
        n, m = self.n, self.m
        if min(n, m) < 3:
            return None
        first, second, between = (part[:, None] for part in _split(sums, n))
        # Leaving row i out removes (i, i') and (i', i): its sum counts twice within its sample, once between.
        without_x = self.statistic(first - 2.0 * sums[0, :, :n], second, between - sums[1, :, :n], n=n - 1)
        without_z = self.statistic(first, second - 2.0 * sums[1, :, n:], between - sums[0, :, n:], m=m - 1)
        return jackknife_error(without_x, without_z)

"""Solve trees too deep for tables in linear memory: quadrature along paths, or walks of pairs of rows with a background."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import roots_legendre

from exactshap._native import Handle
from exactshap._runtime.cache import BoundedCache, kept
from exactshap._runtime.slices import slices
from exactshap.semivalues import Rule, Semivalue
from exactshap.solvers.core import Part, coarse_bound, enough_nodes, set_sizes
from exactshap.solvers.trees import _kernels as kernels
from exactshap.solvers.trees._layout import binomials_and_offsets, outputs_of_trees, products_above, sum_by_tree
from exactshap.solvers.trees._sums import ROWS_IN_TURN, pairwise_sum
from exactshap.solvers.trees._table_engine import path_weights
from exactshap.trees import FlatTrees, Paths, cover_shares, paths
from exactshap.trees.ensemble import offsets_of, sum_leaf_values

# Products and sums of one sweep: within the second-level cache.
WORK_BYTES = 2**21
# Rows of one sweep at most.
MAX_SWEPT_ROWS = 128
# A split at one node of the rule, in table look-ups (measured: 1.2 ns, for one row 8 ns, and 0.5 ns).
NODE_COST = 4.0
# Outputs from which leaves are added for all of them at once. Of 8 to 50 outputs (forests of 500 to 13,000 leaves) 200 rows take
# 1/7 to 1/3 of the time of a sweep for each output, one row 1/9 to 1.7 of it; of four outputs one row takes three times as long.
OUTPUTS_TOGETHER = 8
# A player of a leaf for one of those outputs, in table look-ups (measured: 0.2 ns, and 0.5 ns; one row 2 ns).
OUTPUT_COST = 0.5
# Costs of pairs, and of each set of players, in sweeps of single players (benchmarks/growth.py).
PAIR_COST, SET_COST = 1.5, 0.6
# A visit of a node in a walk, in table look-ups (measured: 4 ns and 0.5 ns).
VISIT_COST = 8.0


class OfSize(NamedTuple):
    """Hold the rule for sets of one size, and how it is summed."""

    size: int
    rule: Rule
    # Whether the walks take it: its nodes are inside (0, 1), or their ends are sums of pairs
    is_inside: bool
    constants: np.ndarray  # what the walks read of it
    of_pairs: float  # what single players get of each of their pairs, besides


class PathQuestion(NamedTuple):
    """Hold the rules of an index and order, for any rows."""

    binomials: np.ndarray
    offsets: np.ndarray
    sizes: list[OfSize]
    is_one_rule: bool  # whether singles and pairs have the same nodes and weights, so that one walk does for both
    relative_bound: float  # of the rules' error
    method: str


@dataclass(frozen=True, eq=False)
class DeepEngine:
    """Solve trees without tables.

    ``solve`` takes rows as columns (n_features, n_rows); ``memory`` is in bytes besides the rows, ``work`` is what one row costs, in table
    look-ups.
    """

    trees: FlatTrees
    shape: kernels.Structure
    n_players: int
    cache: BoundedCache = field(default_factory=BoundedCache, kw_only=True)
    held = 0.0  # bytes between calls: what follows from the trees counts as memory of a call

    @property
    @kept(1)
    def steps(self) -> Handle:
        """Return the splits in depth-first order, kept."""
        return Handle(make_steps(self.trees, self.shape))


@dataclass(frozen=True, eq=False)
class PathEngine(DeepEngine):
    """Integrate along the paths by quadrature: cover ratios, any depth, O(n_splits n_nodes) per row."""

    # Coefficients of every split for all three states are not worth filling for so few rows: one row takes half the time without them
    # (forests of depth 8 to 14; pairs likewise), four rows the same, twelve up to 1.7 times as long.
    one_by_one_rows, called = 3, "quadrature along the paths"

    def solve(self, columns: np.ndarray, semivalue: Semivalue, order: int) -> Part:
        question = self.question(semivalue, order)
        out = np.zeros((question.offsets[order + 1], self.trees.n_outputs, columns.shape[1]))
        scale = np.zeros(columns.shape[1])
        # Single players may take their end masses from finished pairs
        for of_size in reversed(question.sizes):  # pairs first
            values = out[question.offsets[of_size.size] : question.offsets[of_size.size + 1]]
            if of_size.size == 1:
                if not question.is_one_rule:
                    self._sweep_paths(columns, of_size.constants, values, scale)
                if of_size.of_pairs:
                    _add_pairs(out[question.offsets[2] : question.offsets[3]], of_size.of_pairs, values)
            if of_size.size == 2 and of_size.is_inside:
                singles = out[: self.n_players] if question.is_one_rule else out[:0]
                self._sweep_pairs(columns, of_size.constants, values, singles, scale)
            elif not of_size.is_inside or of_size.size > 2:
                self._sweep_sets(columns, of_size, question, out)
        full, error_bound = leaf_sums(self.trees, columns), 2.0 * question.relative_bound * scale
        return Part(out.transpose(2, 0, 1), np.zeros_like(full), full, question.method, error_bound=error_bound, scale=scale)

    @kept(1)
    def question(self, semivalue: Semivalue, order: int) -> PathQuestion:
        """Return the rules of an index and order. They are kept, as they take longer than one row's walk."""
        rules = [path_rule(semivalue, size, order, self.shape.n_path_players) for size in set_sizes(order)]
        bounds = [bound for _, bound in rules]
        sizes = [_of_size(size, rule) for size, (rule, _) in enumerate(rules, start=1)]
        if order == 2 and not sizes[0].is_inside and sizes[1].is_inside and not any(bounds):
            sizes[0] = _ends_by_pairs(sizes[0], sizes[1].rule, max(self.shape.n_path_players - 2, 0))
        is_one_rule = False
        if order == 2 and sizes[0].is_inside and sizes[1].is_inside and self.trees.n_outputs < OUTPUTS_TOGETHER:
            # That of singles has a degree more than pairs need, and does for both where the measures are the same
            finer, _ = path_rule(semivalue, 2, order, self.shape.n_path_players + 1)
            if is_one_rule := np.array_equal(_constants(finer), sizes[0].constants):
                sizes[1] = _of_size(2, finer)
        used = max(len(of_size.rule[0]) for of_size in sizes)
        method = f"quadrature along the paths ({used} nodes, {self.shape.n_path_players} players on the longest)"
        return PathQuestion(*binomials_and_offsets(self.n_players, order), sizes, is_one_rule, max(0.0, *bounds), method)

    @functools.cached_property
    def of_single_leaves(self) -> float:
        """Return the part of the scale of trees with one leaf."""
        return single_leaves(self.trees)

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes besides the rows: the splits in depth-first order, kept; beyond order 1 the paths of all leaves."""
        splits_above_leaves = float(self.shape.depth[self.trees.feature < 0].sum()) if order > 1 else 0.0
        return 1.4 * steps_bytes(self.trees) + 32.0 * splits_above_leaves

    def block_work(self, n_rows: int, order: int) -> float:
        return n_rows * self.work(order)

    def work(self, order: int) -> float:
        singles = float(path_costs(self.trees, self.shape, order).sum()) * self.trees.n_outputs
        sets = sum(math.comb(self.shape.n_path_players, size) for size in range(1, order + 1))
        return singles * (1.0 if order == 1 else PAIR_COST if order == 2 else SET_COST * sets)

    def _sweep_paths(self, columns: np.ndarray, nodes: np.ndarray, out: np.ndarray, scale: np.ndarray) -> None:
        """Add the values of single players to ``out`` (n_players, n_outputs, n_rows): the same bits for few rows and many."""
        steps = self.steps
        player_of = self.shape.player_of_column
        scale += self.of_single_leaves
        if self.trees.n_outputs >= OUTPUTS_TOGETHER:
            kernels.sweep_outputs(columns, steps, player_of, nodes, self._lanes(nodes, out.shape[0] * out.shape[1]), out, scale)
            return
        if columns.shape[1] <= self.one_by_one_rows:
            kernels.sweep_rows(np.ascontiguousarray(columns.T), steps, player_of, nodes, out, scale)
            return
        kernels.sweep_paths(columns, steps, player_of, nodes, self._lanes(nodes, len(out)), out, scale)

    def _sweep_pairs(
        self, columns: np.ndarray, nodes: np.ndarray, out: np.ndarray, singles: np.ndarray, scale: np.ndarray
    ) -> None:
        """Add the values of pairs of players to ``out`` (n_pairs, n_outputs, n_rows): the same bits for few rows and many.

        Those of single players go to ``singles`` (n_players, n_outputs, n_rows) unless it is empty, as :meth:`_sweep_paths` adds them.
        """
        player_of = self.shape.player_of_column
        if len(singles):
            scale += self.of_single_leaves
        if columns.shape[1] <= self.one_by_one_rows:
            rows = np.ascontiguousarray(columns.T)
            kernels.sweep_pairs(rows, self.steps, player_of, nodes, out, self.n_players, singles, scale)
            return
        n_lanes = self._lanes(nodes, len(out))
        kernels.sweep_path_pairs(columns, self.steps, player_of, nodes, n_lanes, out, self.n_players, singles, scale)

    def _lanes(self, nodes: np.ndarray, n_sums: int) -> int:
        """Return the rows to sweep at once, within the second-level cache."""
        n_levels = int(self.shape.depth.max(initial=1))
        return int(np.clip(WORK_BYTES // (24 * n_levels * (nodes.shape[1] + 1) + 8 * n_sums), 4, MAX_SWEPT_ROWS))

    def _sweep_sets(self, columns: np.ndarray, of_size: OfSize, question: PathQuestion, out: np.ndarray) -> None:
        trees, size = self.trees, of_size.size
        leaves: Paths = self.cache.get_or_make(("leaves",), lambda: paths(trees, self.shape.player_of_column), keep=1)
        largest = float(question.binomials[min(self.shape.n_path_players, self.n_players), size])
        n_lanes = int(np.clip(WORK_BYTES // (8 * max(largest, 1.0)), 1, MAX_SWEPT_ROWS))
        kernels.sweep_leaf_sets(
            columns,
            kernels.forest_of(trees),
            leaves,
            kernels.SetRule(size, *of_size.rule, question.binomials, question.offsets),
            n_lanes,
            out,
        )


@dataclass(frozen=True, eq=False)
class WalkEngine(DeepEngine):
    """Walk each row with each background row: any depth, any order, O(nodes that hybrids of the two reach) per pair."""

    background: np.ndarray  # (n_features, n_background)
    weights: np.ndarray  # in units of ``unit``: 1.0 each where they are equal
    unit: float

    def solve(self, columns: np.ndarray, semivalue: Semivalue, order: int) -> Part:
        trees, n_rows = self.trees, columns.shape[1]
        binomials, offsets = binomials_and_offsets(self.n_players, order)
        weights = path_weights(semivalue, order, self.shape.n_path_players)
        common = (kernels.forest_of(trees), self.shape.player)
        of_order = weights[1] if order == 1 else kernels.SetWeights(weights, binomials, offsets)
        parts = []
        # A walk adds one background row after the other; blocks keep the rounding from growing with their number
        for rows in slices(len(self.weights), ROWS_IN_TURN):
            out, scale = np.zeros((n_rows, offsets[order + 1], trees.n_outputs)), np.zeros((n_rows, trees.n_outputs))
            background = np.ascontiguousarray(self.background[:, rows])
            walk = kernels.walk_singles if order == 1 else kernels.walk_sets
            walk(columns, background, self.weights[rows], *common, of_order, out, scale)
            parts.append((out, scale))
        out, scale = (pairwise_sum(sums) for sums in zip(*parts, strict=True))
        method = f"walks with {len(self.weights)} background rows"
        full = leaf_sums(trees, columns)
        return Part(self.unit * out, np.zeros_like(full), full, method, scale=self.unit * scale.max(axis=1))

    def memory(self, n_rows: int, order: int) -> float:
        """Return the bytes besides the rows: the background and its way through the largest tree."""
        largest = float(np.diff(self.trees.tree_start).max(initial=0))
        return (8.0 * self.trees.n_features + largest) * len(self.weights)

    def work(self, order: int) -> float:
        sets = sum(math.comb(self.shape.n_path_players, size) for size in range(2, order + 1))
        visits = len(self.weights) * float(visit_shares(self.trees, self.shape).sum())
        return VISIT_COST * visits * self.trees.n_outputs * (1.0 + sets)


def path_costs(trees: FlatTrees, shape: kernels.Structure, order: int = 1) -> np.ndarray:
    """Return each tree's cost of a row and an output by quadrature, in look-ups.

    It is one visit per split and node of the rule, or one per leaf and player where outputs are added together.
    """
    # A Gauss rule of n nodes is exact up to degree 2n - 1, so that half as many nodes as players do
    nodes = shape.n_path_players // 2 + 2.0
    if order == 1 and trees.n_outputs >= OUTPUTS_TOGETHER and (outputs_of_trees(trees).sum(axis=1) > 1).any():
        players = np.where(trees.feature < 0, shape.distinct, 0)
        return OUTPUT_COST * (1.0 + nodes / trees.n_outputs) * (1.0 + sum_by_tree(trees, players))
    return NODE_COST * nodes * (1.0 + sum_by_tree(trees, trees.feature >= 0))


def visit_shares(trees: FlatTrees, shape: kernels.Structure) -> np.ndarray:
    r"""Return the probability that two random rows both reach each node.

    .. math:: \prod_e (1 - (1 - s_e)^2) \text{ over the shares s of the edges above}
    """
    return products_above(shape, 1.0 - (1.0 - cover_shares(trees)) ** 2)


def leaf_sums(trees: FlatTrees, columns: np.ndarray) -> np.ndarray:
    """Return the sums (n_rows, n_outputs) of the leaves that rows reach. Rows are ``columns`` (n_features, n_rows)."""
    out = np.zeros((columns.shape[1], trees.n_outputs))
    sum_leaf_values(np.ascontiguousarray(columns.T), trees.routes, out)
    return out


def single_leaves(trees: FlatTrees) -> float:
    """Return the sum of magnitudes of the trees that are one leaf."""
    roots = trees.tree_start[:-1]
    return float(np.abs(trees.value[roots[trees.feature[roots] < 0]]).max(axis=1, initial=0.0).sum())


def path_rule(semivalue: Semivalue, size: int, order: int, n_path_players: int) -> tuple[Rule, float]:
    """Return the rule for paths of that length and its error bound.

    Paths have at most ``n_path_players``; the bound is relative, 0.0 where exact.

    A factor is 1 or b at t = 0 and b or 0 at t = 1, so that each player adds at most 1/2 to the spread (see ``_nodes``).
    """
    degree = max(n_path_players - size, 0)
    measure = semivalue.of_size(size, order)
    # Deep paths: so many nodes as make the error negligible may be far fewer than an exact rule needs
    spread = n_path_players / 2.0
    n_nodes = enough_nodes(spread, degree, measure)
    if n_nodes < degree // 2 + 1:
        return measure.rule(2 * n_nodes - 1), coarse_bound(spread, n_nodes, measure)
    return measure.rule(degree), 0.0


def _of_size(size: int, rule: Rule) -> OfSize:
    inside = bool(rule[0].min() > 0.0 and rule[0].max() < 1.0)
    # Walks divide by 1 - t, which is zero at an end; without nodes they add to the scale only
    return OfSize(size, rule, inside, _constants(rule if inside else (np.empty(0), np.empty(0))), 0.0)


def _constants(rule: Rule) -> np.ndarray:
    """Return t, 1 - t, -1 / (1 - t) and the weights, of shape (4, n_nodes)."""
    return np.stack([rule[0], 1.0 - rule[0], -1.0 / (1.0 - rule[0]), rule[1]])


def _ends_by_pairs(single: OfSize, pair_rule: Rule, degree: int) -> OfSize:
    r"""Return a rule for single players with end masses moved to pairs.

    That is possible if pairs have the measure that it takes.

    .. math:: w_0 \partial_j V(0) + w_1 \partial_j V(1) = (w_0 + w_1) \int \partial_j V \, dt
              + \sum_{i \ne j} \int (w_1 t - w_0 (1 - t)) \, \partial_{ij} V \, dt

    (partial integration). At an end of [0, 1] factors are zero, and walks divide by them; k-SII and STII have such masses, and
    their pairs the measure of the last integral times -2. ``degree`` is that of the derivatives for pairs.
    """
    nodes, weights = single.rule
    at_0, at_1 = float(weights[nodes == 0.0].sum()), float(weights[nodes == 1.0].sum())
    power = np.arange(degree + 1.0)
    # Moments of the second measure: int t^(k+1) dt = 1/(k+2) and int (1-t) t^k dt = 1/((k+1)(k+2))
    wanted = at_1 / (power + 2.0) - at_0 / ((power + 1.0) * (power + 2.0))
    moments = (pair_rule[0] ** power[:, None]) @ pair_rule[1]
    # The two measures agree up to a factor if all moments do that the integrand's degree can see
    share = float(wanted[0] / moments[0]) if moments[0] else 0.0
    if not np.allclose(wanted, share * moments, rtol=0.0, atol=1e-13):
        return single
    inside = (nodes > 0.0) & (nodes < 1.0)
    nodes, weights = nodes[inside], weights[inside]
    # The first integral is over Lebesgue measure, with the mass that left the ends
    if at_0 + at_1:
        points, masses = roots_legendre(degree // 2 + 2)
        nodes, weights = np.append(nodes, 0.5 + 0.5 * points), np.append(weights, 0.5 * (at_0 + at_1) * masses)
    return single._replace(is_inside=True, constants=_constants((nodes, weights)), of_pairs=share)


def _add_pairs(pairs: np.ndarray, share: float, out: np.ndarray) -> None:
    """Add ``share`` of each pair's values to those of both players. Pairs are in lexicographic order."""
    place = 0
    # All pairs with first player i are next to each other: i's partners are exactly the players behind it
    for i in range(len(out) - 1):
        of_first = pairs[place : place + len(out) - 1 - i]
        # One after the other, for any number of rows
        out[i] += share * np.add.accumulate(of_first, axis=0)[-1]
        out[i + 1 :] += share * of_first
        place += len(of_first)


def steps_bytes(trees: FlatTrees) -> float:
    """Return the memory of :func:`make_steps`; a tree has one split for every two nodes."""
    return 0.5 * trees.n_nodes * (57.0 + 16.0 * trees.n_outputs)


def make_steps(trees: FlatTrees, shape: kernels.Structure) -> kernels.Steps:
    """List the splits of each tree in depth-first order."""
    is_split = trees.feature >= 0
    n, before = int(is_split.sum()), offsets_of(is_split)
    node, level, above, end = (np.empty(n, np.int32) for _ in range(4))
    is_right, is_leaf = np.empty(n, bool), np.empty((n, 2), bool)
    tree_start = before[trees.tree_start]
    share, value = np.empty((n, 2)), np.empty((n, 2, trees.n_outputs))
    out = kernels.EmptySteps(node, level, is_right, above, end, is_leaf, share, value)
    kernels.fill_steps(kernels.forest_of(trees), shape, cover_shares(trees), out)
    nodes, none = trees.nodes, np.empty(0, np.int32)
    names = ("feature", "threshold", "missing", "zero_is_missing", "category_start", "category_count")
    nodes = nodes._replace(left=none, right=none, **{name: getattr(nodes, name)[node] for name in names})
    return kernels.Steps(tree_start, nodes, level, is_right, above, end, is_leaf, share, value)

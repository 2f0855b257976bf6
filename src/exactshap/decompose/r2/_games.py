r"""Drive the compiled kernels of the two R2 games (``src/native/r2``).

A tree's game is a sum over *units*, half as many as its leaves: a unit is an internal node with two leaf children, or a leaf
with an internal sibling. With prefix players F_u (the splits above it), cover ratios b_uk and, for a node, its own split on
player j with leaf values v_left, v_right:

.. math:: f_S(x) = \sum_u \prod_{k \in S} \alpha_{uk}(x) \prod_{k \notin S} \beta_{uk}

with alpha_uk = 1 if x passes every split on k above u (else 0), beta_uk = b_uk, and on the unit's own player j additionally
alpha_uj times v_left or v_right (the side x takes), beta_uj times their cover-weighted mean. Two leaves that differ in
their last split only add up to one product.

Pairs of units are solved by table (``pairs.h``) or by quadrature, row by row (``quadrature.h``); trees of depth at most 3
need neither (``shallow.cpp``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from exactshap._native import Handle, kernel
from exactshap._runtime.slices import slices
from exactshap._runtime.threads import map_in_threads, worker_count
from exactshap.semivalues import gauss_jacobi
from exactshap.trees import FlatTrees, parents, prepared
from exactshap.trees.ensemble import NodeArrays, fill_decisions, sum_leaf_values

MAX_BITS = 16  # of the largest joint table, as in pairs.h
DEEPEST, SHALLOW_PLAYERS = 3, 7  # depth of shallow trees, and the splits of a full one
# Bytes of residuals in memory at a time, or those of this many chunks per thread, if these are more.
WAVE_BYTES, WAVE_CHUNKS = 2**27, 8
# Rows of a task that takes them through the trees: the nodes stay in a core's caches.
MET_ROWS = 1024
# Decisions of the trees of one chunk; trees of one, so that threads have something to share.
CHUNK_BYTES, CHUNK_TREES = 2**25, 8
# Rows of a task, which make its games a twentieth of the work; trees of its chunks.
SHALLOW_ROWS, SHALLOW_TREES = 8192, 64
# Rows that quadrature sweeps at once: eight 512-bit registers, and a pair's arrays stay in cache.
BLOCK_ROWS = 64

fill_columns = kernel("r2.fill_columns(X, used, single_precision, out)")
fill_shares = kernel("r2.fill_shares(tree_start, left, right, cover, value, depths, share, empty)")
count_units = kernel("r2.count_units(tree_start, parent, left, right, depths, start)")
fill_units = kernel("r2.fill_units(trees, parent, depths, units)")
fill_codes = kernel("r2.fill_codes(first, last, units, decisions, offset, codes)")
fill_alphas = kernel("r2.fill_alphas(first, last, units, decisions, offset, alphas)")
fill_half_weights = kernel("r2.fill_half_weights(largest, out)")
add_shallow_trees = kernel("r2.add_shallow_trees(trees, nodes, rows, half_weights, residual, met, out)")
add_residual_trees = kernel("r2.add_residual_trees(first, last, trees, units, rows, half_weights, residual, met, out)")
add_tree_rows = kernel("r2.add_tree_rows(first, last, trees, units, rows, losers_of, rules, residual, out)")
add_ensemble_tree = kernel("r2.add_ensemble_tree(k, codes, weights, linear, units, player_of_node, half_weights, out)")
add_ensemble_rows = kernel("r2.add_ensemble_rows(alphas, weights, linear, units, player_of_node, losers_of, rules, out)")


class Trees(NamedTuple):
    """Hold an ensemble of one output; nodes are numbered through all trees."""

    tree_start: np.ndarray  # int64 (n_trees + 1,)
    feature: np.ndarray  # int32 (n_nodes,), -1 for leaves; left and right likewise
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray  # float64 (n_nodes,)
    player_of_node: np.ndarray  # int32 (n_nodes,)
    share: np.ndarray  # float64 (n_nodes,): cover(node) / cover(parent), 1 at roots
    empty: np.ndarray  # float64 (n_trees,): value of each tree when no player is known


class Units(NamedTuple):
    """Hold all units of an ensemble. The slots of a unit are its prefix players in path order, then its own player if new."""

    tree_start: np.ndarray  # int64 (n_trees + 1,): tree k owns units tree_start[k]:tree_start[k + 1]
    tree: np.ndarray  # int32 (n_units,)
    node: np.ndarray  # int32 (n_units,): global node number
    size: np.ndarray  # int32 (n_units, 3): prefix players, players, slot of the unit's own player (-1 for leaves)
    player: np.ndarray  # int32 (n_units, width)
    beta: np.ndarray  # float64 (n_units, width)
    value: np.ndarray  # float64 (n_units, 3): left and right value of a node (else 1), the value of a leaf (else 1)
    depth: np.ndarray  # int32 (n_units,): number of edges above
    path_node: np.ndarray  # int32 (n_units, width), from the root down
    path_left: np.ndarray  # uint8 (n_units, width)
    path_slot: np.ndarray  # int32 (n_units, width)


class Rows(NamedTuple):
    """Hold the rows that some trees route."""

    decisions: np.ndarray  # uint8 (n_nodes, n_rows): whether a row goes left, from the first of these trees on
    weights: np.ndarray  # float64 (n_rows,)
    averaged: bool  # whether the trees are averaged over their orders (else boosted)


class Table(NamedTuple):
    """Hold the rows that all trees route."""

    X: np.ndarray  # float64 (n_rows, n_features)
    used: np.ndarray  # int64 (n_used,): the columns that are split on
    weights: np.ndarray  # float64 (n_rows,)
    single_precision: bool  # whether the trees compare in float32
    averaged: bool


class Rules(NamedTuple):
    """Hold Gauss-Legendre rules on [0, 1]: row q has the rule of q nodes."""

    nodes: np.ndarray  # float64 (n_rules, n_nodes)
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class EnsembleLayout:
    """Hold an ensemble and its rows in the form that the kernels read."""

    trees: FlatTrees  # single output
    arrays: Trees  # the same for the kernels, with players and cover shares
    nodes: NodeArrays  # what routing reads; ``feature`` counts only the columns that are split on
    used: np.ndarray  # int64 (n_used,): those columns
    X: np.ndarray  # float64 (n_rows, n_features)
    depth: int  # of the deepest tree
    n_players: int
    n_jobs: int | None

    @functools.cached_property
    def columns(self) -> np.ndarray:
        """Return the split columns (n_used, n_rows), contiguous, at the model's precision; unused by shallow kernels."""
        # The kernel reads rows; columns of a transposed array lie together already.
        if not self.X.flags.c_contiguous:
            return prepared(self.trees, self.X.T[self.used])
        out = np.empty((len(self.used), len(self.X)))
        fill_columns(self.X, self.used, self.trees.single_precision, out)
        return out

    @functools.cached_property
    def units(self) -> Units:
        """Return the units and one more, the constant 1; unused by shallow kernels."""
        return _units(self.trees, self.arrays)

    @functools.cached_property
    def handles(self) -> tuple[Handle, Handle]:
        """Prepare ``arrays`` and ``units`` for the many calls of a kernel."""
        return Handle(self.arrays), Handle(self.units)

    @property
    def shallow(self) -> bool:
        """Say whether the tree-by-tree game is solved by :func:`add_shallow_trees`."""
        return self.depth <= DEEPEST

    @property
    def n_rows(self) -> int:
        return len(self.X)


def lay_out(
    trees: FlatTrees, X: np.ndarray, player_of_column: np.ndarray, n_players: int, n_jobs: int | None = None
) -> EnsembleLayout:
    """Return the layout of ``trees`` (one output) for the rows ``X`` (n_rows, n_features)."""
    # The last entry of these three is for leaves, which have column -1.
    found = np.zeros(trees.n_features + 1, bool)
    found[trees.feature] = True
    used = found[:-1].nonzero()[0]
    place, player = np.full((2, trees.n_features + 1), -1, np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    player[:-1] = player_of_column
    depths, share, empty = np.empty(trees.n_nodes, np.int32), np.empty(trees.n_nodes), np.empty(trees.n_trees)
    value = np.ascontiguousarray(trees.value[:, 0])
    depth = fill_shares(trees.tree_start, trees.left, trees.right, trees.cover, value, depths, share, empty)
    arrays = Trees(trees.tree_start, trees.feature, trees.left, trees.right, value, player[trees.feature], share, empty)
    nodes = trees.nodes._replace(feature=place[trees.feature])
    return EnsembleLayout(trees, arrays, nodes, used, X, depth, n_players, n_jobs)


def _units(trees: FlatTrees, arrays: Trees) -> Units:
    parent, _ = parents(trees)
    depths, start = np.empty(trees.n_nodes, np.int32), np.empty(trees.n_trees + 1, np.int64)
    deepest = count_units(trees.tree_start, parent, trees.left, trees.right, depths, start)
    n = int(start[-1]) + 1  # the last one is the constant 1
    ints = functools.partial(np.zeros, dtype=np.int32)
    wide = (n, deepest + 1)
    units = Units(
        start,
        tree=ints(n),
        node=ints(n),
        size=ints((n, 3)),
        player=ints(wide),
        beta=np.zeros(wide),
        value=np.ones((n, 3)),
        depth=ints(n),
        path_node=ints(wide),
        path_left=np.zeros(wide, np.uint8),
        path_slot=ints(wide),
    )
    units.tree[-1], units.size[-1, 2] = -1, -1
    fill_units(arrays, parent, depths, units)
    return units


def residual_shares(
    layout: EnsembleLayout, residual: np.ndarray, weights: np.ndarray, averaged: bool, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return sum_k Shapley(sum_i w_i (r_ki - f_kS(x_i))^2) of shape (n_players,); see :func:`add_residual_trees`.

    ``residual`` (n_rows,) is that before the first tree (boosted) or the common one (averaged); ``weights`` (n_rows,).
    Also returns sum_i w_i r_ki of shape (n_trees,).
    """
    shares = _shallow_shares if layout.shallow else _pair_shares
    return shares(layout, residual, weights, averaged, n_jobs)


def _shallow_shares(
    layout: EnsembleLayout, residual: np.ndarray, weights: np.ndarray, averaged: bool, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Solve tasks of rows, for shallow trees: solving a game is cheaper than summing over rows."""
    arrays, nodes, half_weights = layout.arrays, layout.nodes, _half_weights(SHALLOW_PLAYERS)

    def run(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        out, met = np.zeros(layout.n_players), np.zeros(layout.trees.n_trees)
        X = np.ascontiguousarray(layout.X[rows])
        table = Table(X, layout.used, weights[rows], layout.trees.single_precision, averaged)
        add_shallow_trees(arrays, nodes, table, half_weights, residual[rows], met, out)
        return out, met

    parts = map_in_threads(run, slices(layout.n_rows, SHALLOW_ROWS), n_jobs)
    return functools.reduce(lambda one, two: (one[0] + two[0], one[1] + two[1]), parts)


def _pair_shares(
    layout: EnsembleLayout, residual: np.ndarray, weights: np.ndarray, averaged: bool, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Solve tasks of trees, for deep trees: their tables cost more than the sum over rows."""
    (arrays, units), residual_sums = layout.handles, np.zeros(layout.trees.n_trees)
    half_weights = _half_weights(_table_bits(layout.units) + 1)

    def run(chunk: tuple[int, int], met: np.ndarray) -> np.ndarray:
        # The kernel updates ``met`` in place; the pairs that it leaves over need the original.
        before, out = met.copy(), np.zeros(layout.n_players)
        rows = Rows(_decisions(layout, *chunk), weights, averaged)
        # Where a table does not pay for this number of rows, pairs are solved by quadrature, row by row.
        if add_residual_trees(*chunk, arrays, units, rows, half_weights, met, residual_sums, out):
            out += residual_rows(layout, before, weights, averaged, chosen=chunk, fallback_rows=layout.n_rows).sum(axis=0)
        return out

    chunks = _chunks(layout, layout.n_rows, CHUNK_TREES)
    # One thread updates the residual as it goes, and need not store one per chunk.
    if n_jobs in (None, 1) or len(chunks) == 1:
        return sum((run(chunk, residual) for chunk in chunks), np.zeros(layout.n_players)), residual_sums
    shares = np.zeros(layout.n_players)
    # As many chunks at a time as their residuals fit in memory
    for some in slices(len(chunks), _chunks_of_a_wave(layout.n_rows, n_jobs)):
        tasks = zip(chunks[some], _met_by_chunks(layout, chunks[some], residual, averaged, n_jobs), strict=True)
        shares = sum(map_in_threads(lambda task: run(*task), tasks, n_jobs), shares)
    return shares, residual_sums


def _met_by_chunks(
    layout: EnsembleLayout, chunks: list[tuple[int, int]], residual: np.ndarray, averaged: bool, n_jobs: int | None
) -> Sequence[np.ndarray]:
    """Return the residuals (n_rows,) before the first tree of each chunk; ``residual`` is updated in place.

    .. math:: r_{k+1,i} = r_{ki} - v_k(x_i)

    Threads route rows through the trees. Averaged trees all have the same residual.
    """
    # Trees of a forest have no order: all are compared with the same residual.
    if averaged:
        return [residual] * len(chunks)
    met = np.empty((len(chunks), layout.n_rows))
    trees, routes = layout.trees, layout.trees.routes.value
    # The same nodes, cut by chunks: only the bounds are copied.
    ways = [Handle(routes._replace(tree_start=trees.tree_start[first : last + 1])) for first, last in chunks]

    def run(rows: slice) -> None:
        X, negative = prepared(trees, layout.X[rows]), -residual[rows, None]  # leaves are added to it
        for of_chunk, way in zip(met, ways, strict=True):
            of_chunk[rows] = -negative[:, 0]
            sum_leaf_values(X, way, negative)
        residual[rows] = -negative[:, 0]

    for _ in map_in_threads(run, slices(layout.n_rows, MET_ROWS), n_jobs):
        pass
    return list(met)


def bytes_of_a_wave(layout: EnsembleLayout) -> float:
    """Bound the bytes of residuals held at once. One thread holds those of one chunk."""
    if worker_count(layout.n_jobs) == 1:
        return 8.0 * layout.n_rows
    return 8.0 * layout.n_rows * min(layout.trees.n_trees, _chunks_of_a_wave(layout.n_rows, layout.n_jobs))


def _chunks_of_a_wave(n_rows: int, n_jobs: int | None) -> int:
    return max(WAVE_CHUNKS * worker_count(n_jobs), WAVE_BYTES // max(1, 8 * n_rows))


def residual_rows(
    layout: EnsembleLayout,
    residual: np.ndarray,
    weights: np.ndarray,
    averaged: bool,
    n_jobs: int | None = None,
    *,
    chosen: tuple[int, int] | None = None,
    fallback_rows: int = 0,
) -> np.ndarray:
    """Return each row's part (n_rows, n_players) of :func:`residual_shares` by quadrature; see :func:`add_tree_rows`.

    ``chosen`` are the first of some trees and the one after their last, None for all; ``fallback_rows`` as of :func:`ensemble_rows`.
    """
    arrays, units = layout.handles
    rules, chosen = _rules(layout.units), chosen or (0, layout.trees.n_trees)

    def add(rows: slice, block: np.ndarray) -> None:
        met = Rows(_decisions(layout, *chosen, rows), weights[rows], averaged)
        add_tree_rows(*chosen, arrays, units, met, fallback_rows, rules, residual[rows].copy(), block)

    return _by_rows(layout, add, n_jobs)


def ensemble_shares(layout: EnsembleLayout, target: np.ndarray, weights: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return Shapley(sum_i w_i (target_i - sum_k f_kS(x_i))^2) of shape (n_players,): every pair of units of all trees."""
    units, player_of_node = layout.handles[1], layout.arrays.player_of_node
    codes = _codes(layout)
    linear = -2.0 * target * weights
    half_weights = _half_weights(_table_bits(layout.units) + 1)

    def run(k: int) -> tuple[np.ndarray, int]:
        out = np.zeros(layout.n_players)
        return out, add_ensemble_tree(k, codes, weights, linear, units, player_of_node, half_weights, out)

    total, left_over = np.zeros(layout.n_players), 0
    for part, missed in map_in_threads(run, range(layout.trees.n_trees), n_jobs):
        total += part
        left_over += missed
    if left_over:
        total += ensemble_rows(layout, target, weights, n_jobs, fallback_rows=layout.n_rows).sum(axis=0)
    return total


def _codes(layout: EnsembleLayout) -> np.ndarray:
    """Return the codes of all units, uint16 of shape (n_units, n_rows)."""
    units = layout.units
    codes = np.empty((len(units.node) - 1, layout.n_rows), np.uint16)
    for first, last in _chunks(layout, layout.n_rows, SHALLOW_TREES):
        begin, end = int(units.tree_start[first]), int(units.tree_start[last])
        offset = layout.trees.tree_start[first]
        fill_codes(begin, end, layout.handles[1], _decisions(layout, first, last), offset, codes[begin:end])
    return codes


def ensemble_rows(
    layout: EnsembleLayout, target: np.ndarray, weights: np.ndarray, n_jobs: int | None, *, fallback_rows: int = 0
) -> np.ndarray:
    """Return each row's part of :func:`ensemble_shares` by quadrature, of shape (n_rows, n_players).

    With ``fallback_rows`` only pairs for which a table of that many rows does not pay.
    """
    units, n_units = layout.handles[1], len(layout.units.node) - 1
    rules, player_of_node = _rules(layout.units), layout.arrays.player_of_node

    def add(rows: slice, block: np.ndarray) -> None:
        alphas = np.empty((n_units, layout.units.player.shape[1], block.shape[1]))
        fill_alphas(0, n_units, units, _decisions(layout, 0, layout.trees.n_trees, rows), 0, alphas)
        linear = -2.0 * target[rows] * weights[rows]
        add_ensemble_rows(alphas, weights[rows], linear, units, player_of_node, fallback_rows, rules, block)

    return _by_rows(layout, add, n_jobs)


def _by_rows(layout: EnsembleLayout, add: Callable[[slice, np.ndarray], None], n_jobs: int | None) -> np.ndarray:
    """Return what ``add(rows, block)`` adds to a block (n_players, n_some) for each row, (n_rows, n_players)."""
    out = np.zeros((layout.n_rows, layout.n_players))

    def run(rows: slice) -> None:
        block = np.zeros((layout.n_players, rows.stop - rows.start))
        add(rows, block)
        # Each task writes its own rows: no thread waits, and the bits do not depend on their number.
        out[rows] = block.T

    for _ in map_in_threads(run, slices(layout.n_rows, BLOCK_ROWS), n_jobs):
        pass
    return out


def _chunks(layout: EnsembleLayout, n_rows: int, most: int) -> list[tuple[int, int]]:
    """Cut the trees so that a chunk's decisions of ``n_rows`` rows fit the budget; the cut does not depend on ``n_jobs``."""
    nodes_per_chunk = max(1, CHUNK_BYTES // max(1, n_rows))
    bounds = [0]
    start = layout.trees.tree_start
    while bounds[-1] < layout.trees.n_trees:
        # At least one tree, even if it exceeds the budget alone.
        fit = int(np.searchsorted(start, start[bounds[-1]] + nodes_per_chunk, side="right")) - 1
        bounds.append(min(max(fit, bounds[-1] + 1), bounds[-1] + most, layout.trees.n_trees))
    return list(pairwise(bounds))


def _decisions(layout: EnsembleLayout, first: int, last: int, rows: slice = slice(None)) -> np.ndarray:
    """Return whether rows go left at nodes of some trees. They are uint8 of shape (n_nodes, n_rows)."""
    start, stop = layout.trees.tree_start[first], layout.trees.tree_start[last]
    per_node = ("feature", "threshold", "left", "right", "missing", "zero_is_missing", "category_start", "category_count")
    nodes = layout.nodes._replace(**{name: getattr(layout.nodes, name)[start:stop] for name in per_node})
    columns = np.ascontiguousarray(layout.columns[:, rows])
    out = np.zeros((stop - start, columns.shape[1]), np.uint8)
    fill_decisions(columns, nodes, out)
    return out


def tree_decisions(layout: EnsembleLayout, tree: int) -> np.ndarray:
    """Return whether rows go left at one tree's nodes, (n_rows, n_nodes)."""
    return _decisions(layout, tree, tree + 1).T.astype(bool)


@functools.lru_cache(maxsize=2)
def _half_weights(largest: int) -> np.ndarray:
    out = np.zeros(2 << largest)
    fill_half_weights(largest, out)
    out.flags.writeable = False
    return out


@functools.lru_cache(maxsize=64)
def _legendre(most: int) -> Rules:
    """Return Gauss-Legendre rules on [0, 1] of 1..most nodes, rule q in row q."""
    nodes, weights = np.zeros((most + 1, most)), np.zeros((most + 1, most))
    for q in range(1, most + 1):
        nodes[q, :q], weights[q, :q] = gauss_jacobi(q, 1.0, 1.0)
    return Rules(nodes, weights)


def _rules(units: Units) -> Rules:
    return _legendre(max(1, int(units.size[:, 1].max())))


def _table_bits(units: Units) -> int:
    """Return the bits of the largest joint table that a pair needs."""
    return min(MAX_BITS, 2 * int(units.size[:, 1].max()) + 2)

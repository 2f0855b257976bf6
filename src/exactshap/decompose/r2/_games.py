"""Drive the two R2 games: cut the work, add up what the compiled kernels return."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from exactshap._native import Handle
from exactshap._runtime.threads import map_in_threads, worker_count
from exactshap.decompose.r2._layout import (
    MAX_BITS,
    SHALLOW_PLAYERS,
    EnsembleLayout,
    Rows,
    Rules,
    Table,
    Units,
    add_ensemble_rows,
    add_ensemble_tree,
    add_residual_trees,
    add_shallow_trees,
    add_tree_rows,
    fill_alphas,
    fill_codes,
    fill_half_weights,
)
from exactshap.semivalues import gauss_jacobi
from exactshap.trees import prepared
from exactshap.trees.ensemble import fill_decisions, sum_leaf_values

WAVE_BYTES = 2**27  # bytes of residuals in memory at a time,
WAVE_CHUNKS = 8  # or at most those of this many chunks per thread
# Rows of a task that takes them through the trees: the nodes stay in a core's caches.
MET_ROWS = 1024


def in_waves(
    layout: EnsembleLayout,
    chunks: list[tuple[int, int]],
    run: Callable[[tuple[int, int], np.ndarray], np.ndarray],
    residual: np.ndarray,
    averaged: bool,
    n_jobs: int | None,
) -> Iterator[np.ndarray]:
    """Yield ``run(chunk, met)`` of all chunks from threads. As many run at a time as their residuals ``met`` fit in memory."""
    size = _chunks_of_a_wave(layout.n_rows, n_jobs)
    for first in range(0, len(chunks), size):
        wave = chunks[first : first + size]
        tasks = zip(wave, _met_by_chunks(layout, wave, residual, averaged, n_jobs), strict=True)
        yield from map_in_threads(lambda task: run(*task), tasks, n_jobs)


def bytes_of_a_wave(layout: EnsembleLayout) -> float:
    """Bound the bytes of residuals held at once; one thread holds those of one chunk."""
    n_chunks = (
        min(layout.trees.n_trees, _chunks_of_a_wave(layout.n_rows, layout.n_jobs)) if worker_count(layout.n_jobs) > 1 else 1
    )
    return 8.0 * layout.n_rows * n_chunks


def _chunks_of_a_wave(n_rows: int, n_jobs: int | None) -> int:
    return max(WAVE_CHUNKS * worker_count(n_jobs), WAVE_BYTES // max(1, 8 * n_rows))


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

    def run(start: int) -> None:
        rows = slice(start, start + MET_ROWS)
        X, negative = prepared(trees, layout.X[rows]), -residual[rows, None]  # leaves are added to it
        for of_chunk, way in zip(met, ways, strict=True):
            of_chunk[rows] = -negative[:, 0]
            sum_leaf_values(X, way, negative)
        residual[rows] = -negative[:, 0]

    for _ in map_in_threads(run, range(0, layout.n_rows, MET_ROWS), n_jobs):
        pass
    return list(met)


# Decisions of the trees of one chunk; trees of one, so that threads have something to share.
CHUNK_BYTES, CHUNK_TREES = 2**25, 8
# Rows of a task, which make its games a twentieth of the work; trees of its chunks.
SHALLOW_ROWS, SHALLOW_TREES = 8192, 64
# Rows that quadrature sweeps at once: eight 512-bit registers, and a pair's arrays stay in cache.
BLOCK_ROWS = 64


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

    def run(start: int) -> tuple[np.ndarray, np.ndarray]:
        rows = slice(start, min(start + SHALLOW_ROWS, layout.n_rows))
        out, met = np.zeros(layout.n_players), np.zeros(layout.trees.n_trees)
        X = np.ascontiguousarray(layout.X[rows])
        table = Table(X, layout.used, weights[rows], layout.trees.single_precision, averaged)
        add_shallow_trees(arrays, nodes, table, half_weights, residual[rows], met, out)
        return out, met

    parts = map_in_threads(run, range(0, layout.n_rows, SHALLOW_ROWS), n_jobs)
    return functools.reduce(lambda one, two: (one[0] + two[0], one[1] + two[1]), parts)


def _pair_shares(
    layout: EnsembleLayout, residual: np.ndarray, weights: np.ndarray, averaged: bool, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Solve tasks of trees, for deep trees: their tables cost more than the sum over rows."""
    add_trees, residual_sums = _pair_adder(layout, weights, averaged), np.zeros(layout.trees.n_trees)

    def run(chunk: tuple[int, int], met: np.ndarray) -> np.ndarray:
        out = np.zeros(layout.n_players)
        add_trees(*chunk, met, residual_sums, out)
        return out

    chunks = _chunks(layout, layout.n_rows, CHUNK_TREES)
    # One thread updates the residual as it goes, and need not store one per chunk.
    if n_jobs in (None, 1) or len(chunks) == 1:
        parts: Iterable[np.ndarray] = (run(chunk, residual) for chunk in chunks)
    else:
        parts = in_waves(layout, chunks, run, residual, averaged, n_jobs)
    return sum(parts, np.zeros(layout.n_players)), residual_sums


def _pair_adder(layout: EnsembleLayout, weights: np.ndarray, averaged: bool) -> Callable[..., None]:
    arrays, units = layout.handles
    half_weights = _half_weights(_table_bits(layout.units) + 1)

    def add_trees(first: int, last: int, met: np.ndarray, residual_sums: np.ndarray, out: np.ndarray) -> None:
        # The kernel updates ``met`` in place; the pairs that it leaves over need the original.
        before = met.copy()
        rows = Rows(_decisions(layout, first, last), weights, averaged)
        left_over = add_residual_trees(first, last, arrays, units, rows, half_weights, met, residual_sums, out)
        # Where a table does not pay for this number of rows, pairs are solved by quadrature, row by row.
        if left_over:
            rows_of_losers = residual_rows(layout, before, weights, averaged, chosen=(first, last), fallback_rows=layout.n_rows)
            out += rows_of_losers.sum(axis=0)

    return add_trees


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


def _by_rows(layout: EnsembleLayout, add: Callable[[slice, np.ndarray], None], n_jobs: int | None) -> np.ndarray:
    """Return what ``add(rows, block)`` adds to a block (n_players, n_some) for each row, (n_rows, n_players)."""
    out = np.zeros((layout.n_rows, layout.n_players))

    def run(start: int) -> None:
        rows = slice(start, min(start + BLOCK_ROWS, layout.n_rows))
        block = np.zeros((layout.n_players, rows.stop - start))
        add(rows, block)
        # Each task writes its own rows: no thread waits, and the bits do not depend on their number.
        out[rows] = block.T

    for _ in map_in_threads(run, range(0, layout.n_rows, BLOCK_ROWS), n_jobs):
        pass
    return out


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


def _codes(layout: EnsembleLayout) -> np.ndarray:
    """Return the codes of all units, uint16 of shape (n_units, n_rows)."""
    units = layout.units
    codes = np.empty((len(units.node) - 1, layout.n_rows), np.uint16)
    for first, last in _chunks(layout, layout.n_rows, SHALLOW_TREES):
        begin, end = int(units.tree_start[first]), int(units.tree_start[last])
        offset = layout.trees.tree_start[first]
        fill_codes(begin, end, layout.handles[1], _decisions(layout, first, last), offset, codes[begin:end])
    return codes

"""Conductors of the two R2 games: lay out the units, cut the work, add up what the compiled kernels return."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from exactshap._runtime.threads import map_in_threads
from exactshap.decompose.r2._kernels import MAX_BITS, Work, fill_half_weights
from exactshap.decompose.r2._layout import Layout
from exactshap.decompose.r2._quadrature_kernels import Sweep
from exactshap.decompose.r2._shallow_kernels import (
    SHALLOW_PLAYERS,
    Halves,
    add_shallow_trees,
)
from exactshap.decompose.r2._unit_kernels import CODE_BITS, Units
from exactshap.semivalues import gauss_jacobi
from exactshap.trees.ensemble import fill_decisions

__all__ = ["ensemble_rows", "ensemble_shares", "residual_rows", "residual_shares"]

CHUNK_BYTES = 2**25  # decisions of the trees of one chunk
BLOCK_ROWS = 64  # rows that quadrature sweeps at once: eight 512-bit registers, and a pair's arrays stay in cache


@functools.lru_cache(maxsize=2)
def _half_weights(largest: int) -> np.ndarray:
    out = np.zeros(2 << largest)
    fill_half_weights(largest, out)
    out.flags.writeable = False
    return out


@functools.lru_cache(maxsize=64)
def _legendre(most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Legendre rules on [0, 1] of 1..most nodes, rule q in row q."""
    nodes, weights = np.zeros((most + 1, most)), np.zeros((most + 1, most))
    for q in range(1, most + 1):
        nodes[q, :q], weights[q, :q] = gauss_jacobi(q, 1.0, 1.0)
    return nodes, weights


def _rules(units: Units) -> tuple[np.ndarray, np.ndarray]:
    return _legendre(max(1, int(units.size[:, 1].max())))


def _table_bits(units: Units) -> int:
    """Return the bits of the largest joint table that a pair can ask for."""
    return min(MAX_BITS, 2 * int(units.size[:, 1].max()) + 2)


def _work(units: Units) -> Work:
    cells, codes = 1 << _table_bits(units), 1 << min(CODE_BITS, int(units.size[:, 1].max()) + 1)
    ints = functools.partial(np.zeros, dtype=np.int32)
    return Work(np.zeros((2, codes), np.uint32), ints((2, 64)), ints(64), np.zeros(64), np.zeros(2), np.zeros((4, 16)),
                np.zeros((5, cells)), np.zeros(64))  # fmt: skip


def _halves() -> Halves:
    ints = functools.partial(np.zeros, dtype=np.int64)
    return Halves(np.zeros(15, np.int32), np.zeros(7), ints(7), np.zeros(7, np.int32), np.zeros(15, np.int32),
                  np.zeros((2, 8, 8)), np.zeros((8, 8)), np.zeros((2, 4, 8)), np.zeros((8, 8)), np.zeros((2, 8, 8)),
                  np.zeros((2, 2, 8)), ints(128), np.zeros(128))  # fmt: skip


def _sweep(units: Units) -> Sweep:
    m = 2 * max(1, int(units.size[:, 1].max()))
    ints = functools.partial(np.zeros, dtype=np.int32)
    rows = (m, BLOCK_ROWS)
    return Sweep(ints(m), ints(m), ints(m), np.zeros(m), np.zeros(rows), np.zeros(rows), np.zeros(rows), np.zeros(BLOCK_ROWS),
                 np.zeros(rows))  # fmt: skip


def _decisions(layout: Layout, first: int, last: int, rows: slice = slice(None)) -> np.ndarray:
    """Return whether each row goes left at each node of trees ``first:last``, uint8 of shape (n_nodes, n_rows)."""
    start, stop = layout.trees.tree_start[first], layout.trees.tree_start[last]
    per_node = ("feature", "threshold", "left", "right", "missing", "zero_is_missing", "category_start", "category_count")
    nodes = layout.nodes._replace(**{name: getattr(layout.nodes, name)[start:stop] for name in per_node})
    columns = np.ascontiguousarray(layout.columns[:, rows])
    out = np.zeros((stop - start, columns.shape[1]), np.uint8)
    fill_decisions(columns, nodes, out)
    return out


def _chunks(layout: Layout) -> list[tuple[int, int]]:
    """Cut the trees so that a chunk's decisions fit the budget; the cut depends on the data only, not on ``n_jobs``."""
    nodes_per_chunk = max(1, CHUNK_BYTES // max(1, layout.n_rows))
    bounds = [0]
    start = layout.trees.tree_start
    while bounds[-1] < layout.trees.n_trees:
        fit = int(np.searchsorted(start, start[bounds[-1]] + nodes_per_chunk, side="right")) - 1
        bounds.append(min(max(fit, bounds[-1] + 1), bounds[-1] + 64, layout.trees.n_trees))
    return list(pairwise(bounds))


def residual_shares(
    layout: Layout, residual: np.ndarray, weights: np.ndarray, averaged: bool, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return sum_k Shapley(sum_i w_i (r_ki - f_kS(x_i))^2) of shape (n_players,); see :func:`add_residual_trees`.

    ``residual`` (n_rows,) is what the first tree meets (boosted) or the base of all (averaged); ``weights`` (n_rows,).
    """
    add_trees = _shallow_adder(layout, weights, averaged) if layout.shallow else _pair_adder(layout, weights, averaged)
    met_sums = np.zeros(layout.trees.n_trees)

    def run(first: int, last: int, met: np.ndarray, advance_only: bool) -> np.ndarray:
        out = np.zeros(layout.n_players)
        add_trees((first, last), met, advance_only, met_sums, out)
        return out

    chunks = _chunks(layout)
    if n_jobs in (None, 1) or len(chunks) == 1:
        parts: Iterable[np.ndarray] = (run(first, last, residual, False) for first, last in chunks)
    else:  # the residuals that each chunk meets first, in one quick pass
        tasks = []
        for first, last in chunks:
            tasks.append((first, last, residual.copy(), False))
            run(first, last, residual, True)
        parts = map_in_threads(lambda task: run(*task), tasks, n_jobs)
    return sum(parts, np.zeros(layout.n_players)), met_sums


def _shallow_adder(layout: Layout, weights: np.ndarray, averaged: bool) -> Callable[..., None]:
    half_weights, value = _half_weights(SHALLOW_PLAYERS), np.ascontiguousarray(layout.value)

    def add_trees(chosen: tuple[int, int], met: np.ndarray, advance_only: bool, met_sums: np.ndarray, out: np.ndarray) -> None:
        add_shallow_trees(chosen, layout.shape, value, layout.player_of_node, layout.share, _decisions(layout, *chosen), weights,
                          met, averaged, layout.empty, advance_only, half_weights, _halves(), met_sums, out)  # fmt: skip

    return add_trees


def _pair_adder(layout: Layout, weights: np.ndarray, averaged: bool) -> Callable[..., None]:
    from exactshap.decompose.r2._game_kernels import add_residual_trees

    units = layout.units
    half_weights, ones = _half_weights(_table_bits(units) + 1), bool(np.all(weights == 1.0))

    def add_trees(chosen: tuple[int, int], met: np.ndarray, advance_only: bool, met_sums: np.ndarray, out: np.ndarray) -> None:
        before = met.copy()
        left_over = add_residual_trees(chosen, layout.shape, layout.value, layout.player_of_node, units,
                                       _decisions(layout, *chosen), weights, ones, met, averaged, layout.empty, advance_only,
                                       half_weights, np.zeros(1 << _table_bits(units)), _work(units), met_sums, out)  # fmt: skip
        if left_over:
            out += _residual_rows(layout, chosen, before, weights, averaged, layout.n_rows).sum(axis=0)

    return add_trees


def residual_rows(layout: Layout, residual: np.ndarray, weights: np.ndarray, averaged: bool, n_jobs: int | None) -> np.ndarray:
    """Return each row's part of :func:`residual_shares`, of shape (n_rows, n_players)."""
    n_trees = layout.trees.n_trees
    return _residual_rows(layout, (0, n_trees), residual, weights, averaged, 0, n_jobs)


def _residual_rows(
    layout: Layout, chosen: tuple[int, int], residual: np.ndarray, weights: np.ndarray, averaged: bool, losers_of: int,
    n_jobs: int | None = None,
) -> np.ndarray:  # fmt: skip
    """Return each row's shares of some trees by quadrature; see :func:`add_tree_rows`."""
    from exactshap.decompose.r2._game_kernels import add_tree_rows

    units = layout.units
    out = np.zeros((layout.n_rows, layout.n_players))

    def run(start: int) -> None:
        rows = slice(start, min(start + BLOCK_ROWS, layout.n_rows))
        block = np.zeros((layout.n_players, rows.stop - start))
        add_tree_rows(chosen, layout.shape, layout.value, layout.player_of_node, units, _decisions(layout, *chosen, rows),
                      weights[rows], residual[rows].copy(), averaged, layout.empty, losers_of, _rules(units), _sweep(units),
                      _work(units), block)  # fmt: skip
        out[rows] = block.T

    for _ in map_in_threads(run, range(0, layout.n_rows, BLOCK_ROWS), n_jobs):
        pass
    return out


def ensemble_shares(layout: Layout, target: np.ndarray, weights: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return Shapley(sum_i w_i (target_i - sum_k f_kS(x_i))^2) of shape (n_players,): every pair of units of all trees."""
    from exactshap.decompose.r2._game_kernels import add_ensemble_trees

    units = layout.units
    codes = _codes(layout)
    linear = -2.0 * target * weights
    ones = bool(np.all(weights == 1.0))
    half_weights = _half_weights(_table_bits(units) + 1)

    def run(k: int) -> tuple[np.ndarray, int]:
        out = np.zeros(layout.n_players)
        left_over = add_ensemble_trees((k, k + 1), codes, weights, ones, linear, units, layout.player_of_node, half_weights,
                                       np.zeros(1 << _table_bits(units)), _work(units), out)  # fmt: skip
        return out, left_over

    total, left_over = np.zeros(layout.n_players), 0
    for part, missed in map_in_threads(run, range(layout.trees.n_trees), n_jobs):
        total += part
        left_over += missed
    if left_over:
        total += _ensemble_rows(layout, target, weights, n_jobs, layout.n_rows).sum(axis=0)
    return total


def ensemble_rows(layout: Layout, target: np.ndarray, weights: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return each row's part of :func:`ensemble_shares`, of shape (n_rows, n_players)."""
    return _ensemble_rows(layout, target, weights, n_jobs, 0)


def _ensemble_rows(layout: Layout, target: np.ndarray, weights: np.ndarray, n_jobs: int | None, losers_of: int) -> np.ndarray:
    """Return each row's shares of all pairs by quadrature, or only of those that a table of ``losers_of`` rows does not win."""
    from exactshap.decompose.r2._game_kernels import add_rows
    from exactshap.decompose.r2._unit_kernels import fill_alphas

    units, n_units = layout.units, len(layout.units.node) - 1
    out = np.zeros((layout.n_rows, layout.n_players))

    def run(start: int) -> None:
        rows = slice(start, min(start + BLOCK_ROWS, layout.n_rows))
        n = rows.stop - start
        alphas, block = np.empty((n_units, units.player.shape[1], n)), np.zeros((layout.n_players, n))
        fill_alphas(0, n_units, units, _decisions(layout, 0, layout.trees.n_trees, rows), 0, alphas)
        row_weights = weights[rows]
        add_rows(0, n_units, losers_of, alphas, row_weights, -2.0 * target[rows] * row_weights, units, layout.player_of_node,
                 _rules(units), _sweep(units), _work(units), block)  # fmt: skip
        out[rows] = block.T

    for _ in map_in_threads(run, range(0, layout.n_rows, BLOCK_ROWS), n_jobs):
        pass
    return out


def _codes(layout: Layout) -> np.ndarray:
    """Return the codes of all units, uint16 of shape (n_units, n_rows)."""
    from exactshap.decompose.r2._unit_kernels import fill_codes

    units = layout.units
    codes = np.empty((len(units.node) - 1, layout.n_rows), np.uint16)
    for first, last in _chunks(layout):
        begin, end = int(units.tree_start[first]), int(units.tree_start[last])
        offset = layout.trees.tree_start[first]
        fill_codes(begin, end, units, _decisions(layout, first, last), offset, codes[begin:end])
    return codes
